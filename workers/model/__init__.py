"""The scripted model: a provider for demonstrations, tests and load, with known results."""

from __future__ import annotations

from workers.model.profiles import PROFILES, Profile, profile_of
from workers.model.server import ScriptedModel

__all__ = ["PROFILES", "Profile", "ScriptedModel", "profile_of"]
