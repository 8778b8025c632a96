"""The strict model under every persisted format, and its canonical JSON."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, Self

import pydantic


class FormatError(ValueError):
    """A document does not have the format that its reader needs.

    The message names the document, the place inside it, and what was expected.
    """


class Strict(pydantic.BaseModel):
    """A frozen value that refuses unknown fields and wrong types."""

    model_config = pydantic.ConfigDict(
        frozen=True, extra="forbid", strict=True, populate_by_name=True, allow_inf_nan=False
    )

    @classmethod
    def from_json(cls, text: str | bytes, source: str) -> Self:
        """Reads one JSON document.

        Args:
            text: the document.
            source: what to call it in an error, for example its path.

        Raises:
            FormatError: the text is not JSON, or not this format.
        """
        try:
            return cls.model_validate_json(text)
        except pydantic.ValidationError as error:
            raise FormatError(explain(error, source)) from error

    def to_json(self) -> str:
        """This value as one line of JSON with sorted keys."""
        return json.dumps(
            self.model_dump(mode="json", by_alias=True), sort_keys=True, ensure_ascii=False
        )


def explain(error: pydantic.ValidationError, source: str) -> str:
    """The faults of a document, one a line: place, expectation, what was found."""
    lines = []
    for fault in error.errors(include_url=False):
        place = ".".join(str(part) for part in fault["loc"]) or "document"
        found = "" if fault["type"] == "missing" else f", found {str(fault.get('input'))[:80]!r}"
        lines.append(f"{source}: {place}: {fault['msg']}{found}")
    return "\n".join(lines)


def canonical_json(data: Any) -> bytes:
    """Sorted keys, no spaces, no ASCII escapes, no NaN; UTF-8 (spec: Buzz manifest identity)."""
    return json.dumps(
        data, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    ).encode()


def sha256_hex(data: bytes) -> str:
    """SHA-256 of bytes as 64 lower-case hex digits."""
    return hashlib.sha256(data).hexdigest()


def sha256_file(path: Path) -> str:
    """SHA-256 of a file's bytes, read in pieces."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
