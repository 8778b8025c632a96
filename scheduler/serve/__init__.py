"""``apiary serve``: the sweeps of a store as pages, read only."""

from __future__ import annotations

from scheduler.serve.server import Pages, ServeOptions

__all__ = ["Pages", "ServeOptions"]
