"""Reads files that nobody vouches for: regular ones only, bounded, and as strict JSON.

A relay takes no event above 512 KiB and an honest trial's evidence is far below a megabyte, so the
bounds cost nothing; they keep the answer to a hostile file within its time and memory.
"""

from __future__ import annotations

import json
import os
import re
import stat
import sys
from typing import Any, NoReturn

MAX_BYTES = 16 * 1024 * 1024
MAX_DIGITS = 4300
"""Of one integer; CPython's own bound, kept on versions that have none or had it lifted."""

_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")


class MalformedError(ValueError):
    """A file that cannot be read as a whole; the text says which part, and never its content."""


def read_text(path: str) -> str:
    """The text of a regular UTF-8 file.

    Raises:
        MalformedError: not a regular file, too large, or not UTF-8.
        OSError: it cannot be opened.
    """
    # Opening a pipe would wait for its writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise MalformedError("not a regular file")
        with open(descriptor, "rb", closefd=False) as stream:
            data = stream.read(MAX_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(data) > MAX_BYTES:
        raise MalformedError(f"larger than {MAX_BYTES} bytes")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise MalformedError(f"not UTF-8 at byte {error.start}") from error


def parse_json(text: str) -> object:
    """One JSON document (RFC 8259), without the NaN and Infinity that Python would let in.

    Raises:
        MalformedError: not JSON, nested too deeply, an integer too long, or a lone surrogate.
    """
    hooks: dict[str, Any] = {} if _has_digit_bound() else {"parse_int": _integer}
    try:
        document = json.loads(text, parse_constant=_refuse_constant, **hooks)
        if _SURROGATE_ESCAPE.search(text):
            # Only well-formed text can be written as UTF-8 again.
            json.dumps(document, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError as error:
        raise MalformedError("a lone surrogate") from error
    except RecursionError as error:
        raise MalformedError("nested too deeply") from error
    except MalformedError:
        raise
    except ValueError as error:
        raise MalformedError(f"not JSON: {str(error)[:200]}") from error
    return document


def _has_digit_bound() -> bool:
    bound = getattr(sys, "get_int_max_str_digits", lambda: 0)()
    return 0 < bound <= MAX_DIGITS


def _integer(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise MalformedError(f"an integer of more than {MAX_DIGITS} digits")
    return int(digits)


def _refuse_constant(name: str) -> NoReturn:
    raise MalformedError(f"{name} is not JSON")
