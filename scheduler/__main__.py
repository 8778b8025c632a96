"""``python -m scheduler`` is ``apiary``."""

from __future__ import annotations

from scheduler.cli import main

if __name__ == "__main__":
    main()
