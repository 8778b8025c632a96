"""The image that tests build task images on: what set-up chose for this machine."""

from __future__ import annotations

import os
from pathlib import Path

_CHOSEN = Path(__file__).resolve().parents[1] / ".apiary" / "base-image"


def base_image() -> str:
    """``APIARY_BASE_IMAGE``, else what ``deploy/setup.sh`` wrote down, else what tasks name."""
    if given := os.environ.get("APIARY_BASE_IMAGE"):
        return given
    if _CHOSEN.is_file():
        return _CHOSEN.read_text("utf-8").strip()
    return "python:3.12-slim-bookworm"
