"""A condition manifest with the text of its prompts, checked against their digests."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from scheduler.manifest.check import check
from scheduler.manifest.document import Document
from scheduler.manifest.faults import FaultList, ManifestError, ManifestFault, Place
from scheduler.manifest.files import read_bytes, read_document
from scheduler.manifest.roots import find_manifests
from scheduler.manifest.vary import variants
from workers.contract.base import sha256_hex
from workers.contract.condition import Condition, PromptFile, RosterEntry
from workers.contract.spec import CanaryKind


@dataclass(frozen=True)
class LoadedCondition:
    """A condition that can be used."""

    condition: Condition
    path: Path
    prompts: dict[str, str]
    """The text of every prompt of the roster by its SHA-256."""
    warnings: tuple[str, ...]
    """What the manifest asks for and nobody does."""
    document: Document
    """For faults that only show beside other files."""
    varies: Mapping[str, str] = field(default_factory=dict)
    """What the sweep file varied in it: axis to the value's name."""
    canary: CanaryKind | None = None
    """Of a canary's condition."""


def load_condition(path: Path, manifests: Path | None = None) -> LoadedCondition:
    """Reads a condition manifest and its prompt files.

    A prompt's path is looked up from the manifest's folder, from the folder above that
    (where Buzz keeps its personas), then from the manifests folder; the digest decides.

    Args:
        path: the manifest.
        manifests: the manifests folder; by default the one that the file belongs to.

    Raises:
        ManifestError: with every fault of the manifest and of its prompts.
    """
    document = read_document(path)
    if isinstance(document.data, dict) and "conditions" in document.data:
        message = "this is a sweep file: give it by itself, without --path and --manifest"
        raise ManifestError([document.fault((), message)])
    return _loaded(document, path, manifests or find_manifests(path.parent))


def load_variants(
    path: Path, manifests: Path, sweep: Document, place: Place, vary: Mapping[str, Any]
) -> tuple[LoadedCondition, ...]:
    """Reads a condition manifest and makes a condition of every combination of ``vary``.

    Args:
        path: the manifest, which must be sound as it stands.
        manifests: the manifests folder.
        sweep: the sweep file.
        place: where ``vary`` stands in it.
        vary: axis to its values.

    Raises:
        ManifestError: with every fault of the manifest, or of the combinations.
    """
    base = load_condition(path, manifests)
    faults = FaultList()
    made: list[LoadedCondition] = []
    refused: dict[ManifestFault, list[str]] = {}
    first: dict[str, str] = {}
    for each in variants(sweep, place, vary, base.document, base.condition):
        try:
            loaded = replace(_loaded(each.document, path, manifests), varies=each.varies)
        except ManifestError as error:
            for fault in error.faults:
                refused.setdefault(fault, []).append(each.label)
            continue
        made.append(loaded)
        identity = _nameless(loaded.condition)
        if identity in first:
            message = f"the combinations {first[identity]} and {each.label} are one condition"
            faults.add(sweep.fault(place, message))
        first.setdefault(identity, each.label)
    for fault, labels in refused.items():
        more = f" and {len(labels) - 1} more" if len(labels) > 1 else ""
        faults.add(replace(fault, message=f"combination {labels[0]}{more}: {fault.message}"))
    faults.settle()
    return tuple(made)


def _loaded(document: Document, path: Path, manifests: Path) -> LoadedCondition:
    condition = check(Condition, document)
    bases = (path.parent, path.parent.parent, manifests)
    faults = FaultList()
    prompts: dict[str, str] = {}
    for place, prompt in _prompt_files(condition):
        with faults.gathering():
            prompts[prompt.sha256] = _prompt_text(document, place, prompt, bases)
    faults.settle()
    return LoadedCondition(condition, path, prompts, tuple(_warnings(condition)), document)


def _nameless(condition: Condition) -> str:
    """The identity but for the name: equal ones would be two samples of one condition."""
    return condition.model_copy(update={"condition": "-"}).digest


def _prompt_files(condition: Condition) -> Iterator[tuple[Place, PromptFile]]:
    for index, entry in enumerate(condition.roster):
        here: Place = ("roster", index)
        yield (*here, "prompt"), entry.prompt
        if entry.persona is not None:
            yield (*here, "persona"), entry.persona
        for number, skill in enumerate(entry.skills):
            yield (*here, "skills", number), skill


def _prompt_text(
    document: Document, place: Place, prompt: PromptFile, bases: tuple[Path, ...]
) -> str:
    """The text of the first candidate whose digest is right."""
    found: list[tuple[Path, str]] = []
    for candidate in dict.fromkeys(base / prompt.path for base in bases):
        if not os.path.isfile(candidate):
            continue
        data = read_bytes(candidate)
        digest = sha256_hex(data)
        if digest != prompt.sha256:
            found.append((candidate, digest))
            continue
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            fault = document.fault((*place, "path"), f"{candidate} is not UTF-8 text")
            raise ManifestError([fault]) from error
    raise ManifestError([_prompt_fault(document, place, prompt, bases, found)])


def _prompt_fault(
    document: Document,
    place: Place,
    prompt: PromptFile,
    bases: tuple[Path, ...],
    found: list[tuple[Path, str]],
) -> ManifestFault:
    if not found:
        folders = ", ".join(str(base) for base in dict.fromkeys(bases))
        message = f"there is no file {prompt.path!r} in any of: {folders}"
        return document.fault((*place, "path"), message)
    path, digest = found[0]
    message = f"the manifest says {prompt.sha256}, but {path} has {digest}"
    return document.fault((*place, "sha256"), message)


def _warnings(condition: Condition) -> Iterator[str]:
    for entry in condition.roster:
        for text in _unused(entry):
            yield f"condition {condition.condition}, roster id {entry.id}: {text}"


def _unused(entry: RosterEntry) -> Iterator[str]:
    if "temperature" in entry.generation.model_fields_set:
        yield "temperature is recorded only: it never reaches the provider"
    if entry.generation.extra:
        yield "generation.extra is recorded only: it never reaches the provider"
    if entry.persona is not None or entry.skills:
        yield "persona and skills are recorded only: the prompt is what the agent gets"
