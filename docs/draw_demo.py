"""Draws ``docs/demo.svg``, the picture of the README, from the last sweep of a store.

Run ``bash deploy/demo.sh`` first, then ``.venv/bin/python docs/draw_demo.py [STORE_URL]``.
"""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

from rich.console import Console

from scheduler.cli.names import find_sweep
from scheduler.cli.options import opened
from scheduler.report.collect import collect
from scheduler.report.score import score
from scheduler.report.tables import closing_tables

PICTURE = Path(__file__).with_name("demo.svg")
COLUMNS = 112


def main() -> None:
    """Draws the closing tables of the last sweep."""
    store = opened(sys.argv[1] if len(sys.argv) > 1 else None)
    summary = score(collect(store, find_sweep(store, "latest")))
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(closing_tables(summary))
    # The font is the reader's own: a picture that fetches one would call a stranger's server.
    drawn = console.export_svg(title="bash deploy/demo.sh", unique_id="demo")
    drawn = re.sub(r"@font-face \{.*?\}\n", "", drawn, flags=re.DOTALL)
    PICTURE.write_text(re.sub(r"[ \t]+\n", "\n", drawn), "utf-8")


if __name__ == "__main__":
    main()
