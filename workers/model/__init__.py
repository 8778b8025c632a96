"""The scripted model: a provider for demonstrations, tests and load, with known results."""

from __future__ import annotations

from workers.model.mistakes import MISTAKES
from workers.model.profile import Profile
from workers.model.profiles import PREFIX, PROFILES, profile_of
from workers.model.server import ScriptedModel

__all__ = ["MISTAKES", "PREFIX", "PROFILES", "Profile", "ScriptedModel", "profile_of"]
