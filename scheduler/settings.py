"""What the command line takes from its surroundings; read once, when a command starts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

LOCAL_BASE = "apiary-base:"
"""How the references begin of base images that ``deploy/setup.sh`` built itself."""


@dataclass(frozen=True)
class Settings:
    """The surroundings of one command."""

    environment: Mapping[str, str]
    """Key variables are looked up here, by name."""
    state: Path
    """``.apiary`` of the working directory: what set-up left, and the default store."""

    @property
    def store_url(self) -> str:
        """``APIARY_STORE``, else the state folder."""
        return self.environment.get("APIARY_STORE") or f"file://{self.state}"

    @property
    def base_image(self) -> str | None:
        """``APIARY_BASE_IMAGE``, else what set-up chose; null: what task builds name."""
        if given := self.environment.get("APIARY_BASE_IMAGE"):
            return given
        try:
            return (self.state / "base-image").read_text("utf-8").strip() or None
        except FileNotFoundError:
            return None


def read_settings() -> Settings:
    """The settings of this process."""
    return Settings(environment=dict(os.environ), state=Path(".apiary").absolute())
