"""What stands beside a task's folder to prove it: facts that agree, transcripts, expectations.

A proof is ``proofs/<name>.yaml`` of the data set. It is no part of the task's digest: a better
proof makes no other task.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from scheduler.manifest.check import check
from scheduler.manifest.faults import ManifestError, ManifestFault
from scheduler.manifest.files import read_document
from workers.contract.base import Strict
from workers.contract.condition import NonEmpty

PROOFS = "proofs"
"""The data set's folder of proofs."""

Expected = Literal["pass", "wrong", "no_reply"]
"""A pass, or the cause of a fail that is the model's."""

EXPECTED: dict[str, Expected] = {
    "scripted-solver": "pass",
    "scripted-refuser": "wrong",
    "scripted-silent": "no_reply",
}
"""By condition, what its attempt at any task of a data set must come to."""


class Fact(Strict):
    """Something that is written in several places; see ``places`` for how they are named."""

    what: NonEmpty
    """In a few words, for people."""
    values: NonEmpty | Annotated[tuple[str | int, ...], Field(min_length=1)]
    """A place, or the values themselves."""
    equal: tuple[NonEmpty, ...] = ()
    """Places that have the same values in the same order."""
    stands_in: tuple[NonEmpty, ...] = ()
    """Places whose text has each of them."""
    absent_from: tuple[NonEmpty, ...] = ()
    """Places whose text has none of them."""

    @model_validator(mode="after")
    def _compares(self) -> Self:
        if not (self.equal or self.stands_in or self.absent_from):
            raise ValueError("a fact needs equal, stands_in or absent_from")
        return self


class Said(Strict):
    """A message of the agent in the trial's channel."""

    text: str
    label: str = ""
    """What later messages may reply to."""
    reply_to: NonEmpty | None = None
    """``task``, the label of a scripted message or of an earlier one; any other is nobody's."""
    mentions: tuple[NonEmpty, ...] = ()
    """``user``, ``agent``, or identity ids of the directory."""


class MadeChannel(Strict):
    """A channel that is observed after the run."""

    name: NonEmpty
    channel_type: str = "stream"
    visibility: str = "open"
    ttl_seconds: int | None = None
    archived: bool = False
    members: dict[str, str]
    """Role by ``user``, ``agent`` or identity id."""


class Transcript(Strict):
    """What an agent did, from which evidence is made as the harness would write it."""

    name: NonEmpty
    says: tuple[Said, ...] = ()
    channels: tuple[MadeChannel, ...] = ()
    evidence: Mapping[str, Any] = Field(default_factory=dict)
    """Laid over the evidence made (RFC 7396): null removes a field, a list takes a list's place."""


class Refused(Transcript):
    """A transcript that must not pass."""

    loses: Annotated[tuple[NonEmpty, ...], Field(min_length=1)]
    """Exactly the dimensions that are 0."""


class Proof(Strict):
    """A proof file."""

    schema_version: Literal[1] = 1
    facts: tuple[Fact, ...] = ()
    inputs: dict[str, str] = Field(default_factory=dict)
    """By path in the image, the text of each file that the verifier sees."""
    accepted: Annotated[tuple[Transcript, ...], Field(min_length=1)]
    refused: Annotated[tuple[Refused, ...], Field(min_length=1)]
    attempts: dict[str, Expected] = Field(default_factory=lambda: dict(EXPECTED))
    """What an attempt under each scripted condition must come to; one left out is not made."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        names = [each.name for each in (*self.accepted, *self.refused)]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two transcripts are called {name!r}")
        for name in self.attempts:
            if name not in EXPECTED:
                known = ", ".join(EXPECTED)
                raise ValueError(f"attempts: no condition {name!r} is run by a check; {known} are")
        return self

    @property
    def dimensions(self) -> tuple[str, ...]:
        """Every dimension that some refused transcript loses, in order of appearance."""
        return tuple(dict.fromkeys(name for each in self.refused for name in each.loses))


def proof_path(folder: Path) -> Path:
    """Where the proof of a task's folder is."""
    return folder.parent / PROOFS / f"{folder.name}.yaml"


def load_proof(folder: Path) -> Proof:
    """The proof of a task's folder.

    Raises:
        ManifestError: it is missing, or not of the format.
    """
    path = proof_path(folder)
    if not path.is_file():
        message = "there is no proof of this task: no transcript says what passes and what does not"
        raise ManifestError([ManifestFault(str(path), None, "", message)])
    return check(Proof, read_document(path))
