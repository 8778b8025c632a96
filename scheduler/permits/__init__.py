"""Rate control of providers' accounts over the whole cluster, and the health of endpoints."""

from __future__ import annotations

from scheduler.permits.control import ProviderControl

__all__ = ["ProviderControl"]
