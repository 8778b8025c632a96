"""JSON as the protocol means it: no NaN, no lone surrogates on the way out, no crash on depth."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from workers.nostr.errors import JsonError

_SHALLOW = 500
"""Opening brackets that cannot exhaust the stack, however they are nested."""


def parse(text: str | bytes, *, unique_keys: bool = False) -> Any:
    """One JSON value.

    Args:
        text: the document.
        unique_keys: refuse an object that names a key twice, at any depth (NIP-AE bodies).

    Raises:
        JsonError: it is not JSON, not UTF-8, nested too deeply, or holds NaN or an infinity.
    """
    try:
        # Left to itself, the library would guess UTF-16 and UTF-32 from bytes.
        told = text.decode() if isinstance(text, bytes) else text
        with _stack_for_finalizers(told):
            return json.loads(
                told,
                parse_constant=_refuse_constant,
                object_pairs_hook=_unique_pairs if unique_keys else None,
            )
    except JsonError:
        raise
    except RecursionError as error:
        raise JsonError("nested too deeply") from error
    except ValueError as error:  # also UnicodeDecodeError and figures of thousands of digits
        raise JsonError(str(error)) from error


def dump(value: Any) -> str:
    """The compact form that event ids are taken from (NIP-01): no spaces, no needless escapes."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


@contextmanager
def _stack_for_finalizers(text: str) -> Iterator[None]:
    """Lets no garbage be collected while a document may be using up the stack.

    A collection at the bottom of it would run the finalizers of others without room for them.
    """
    if text.count("[") + text.count("{") <= _SHALLOW or not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _refuse_constant(name: str) -> NoReturn:
    raise JsonError(f"{name} is not a JSON number")


def _unique_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise JsonError("an object names a key twice")
    return found
