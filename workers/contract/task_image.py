"""What a task's image is built with, and the tag under which it is found again. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from workers.contract.base import sha256_hex
from workers.contract.task import Task

BASE_ARGUMENT = "BASE_IMAGE"
NONCE_ARGUMENT = "MARKER_NONCE"
_DECLARES_NONCE = re.compile(rf"^\s*ARG\s+{NONCE_ARGUMENT}\b", re.MULTILINE | re.IGNORECASE)


def build_arguments(dockerfile: str, sweep: str, base_image: str | None) -> dict[str, str]:
    """The build arguments of a task's image in a sweep.

    Args:
        dockerfile: its text.
        sweep: the sweep's id; given to an image that asks for it, so that no marker in an
            image is used by two sweeps.
        base_image: what builds start from; null: what the Dockerfile names.
    """
    arguments = {BASE_ARGUMENT: base_image} if base_image else {}
    if _DECLARES_NONCE.search(dockerfile):
        arguments[NONCE_ARGUMENT] = sweep
    return arguments


def image_tag(task: Task, arguments: Mapping[str, str]) -> str:
    """The tag of a task's image: its name, and a hash of what it is built from."""
    text = task.digest + "".join(f"\0{name}={arguments[name]}" for name in sorted(arguments))
    return f"apiary/{task.bare_name.lower()}:{sha256_hex(text.encode())[:20]}"
