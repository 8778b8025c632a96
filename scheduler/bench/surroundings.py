"""What a bench's commands see of the surroundings: nothing of the person's own but the engine."""

from __future__ import annotations

import secrets
from pathlib import Path

from scheduler.bench.command import PACKAGES
from scheduler.bench.processes import BenchError
from scheduler.settings import LOCAL_BASE, Settings

_OWN = ("RAY_", "AWS_", "APIARY_")


def bench_environment(folder: Path, settings: Settings) -> dict[str, str]:
    """The variables of commands that live in a folder of their own.

    Args:
        folder: has, or gets, ``home`` as working directory, ``t`` for temporary files and ``w``
            as the node's workspace.
        settings: of the command that runs the bench.
    """
    for name in ("home", "t", "w"):
        (folder / name).mkdir(exist_ok=True)
    kept = {
        name: value for name, value in settings.environment.items() if not name.startswith(_OWN)
    }
    base = {"APIARY_BASE_IMAGE": settings.base_image} if settings.base_image else {}
    return {
        **kept,
        "HOME": str(folder / "home"),
        "TMPDIR": str(folder / "t"),
        "PYTHONPATH": str(PACKAGES),
        "APIARY_WORKSPACE": str(folder / "w"),
        **base,
    }


def bucket_credentials() -> dict[str, str]:
    """For clients of an S3 server of this machine, which asks for none; no person's own."""
    return {
        "AWS_ACCESS_KEY_ID": "bench",
        "AWS_SECRET_ACCESS_KEY": secrets.token_hex(16),
        "AWS_EC2_METADATA_DISABLED": "true",
    }


def base_image(settings: Settings) -> str:
    """The image that a bench's containers are made from.

    Raises:
        BenchError: none was chosen.
    """
    if not settings.base_image:
        raise BenchError(
            f"no base image was chosen: run `bash deploy/setup.sh`, which makes {LOCAL_BASE}…, or "
            "name one in APIARY_BASE_IMAGE"
        )
    return settings.base_image
