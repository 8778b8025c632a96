"""Writes the help of ``apiary`` into the README; a test fails while they differ.

Run ``.venv/bin/python docs/write_help.py`` after adding or renaming a command.
"""

from __future__ import annotations

import re
from pathlib import Path

import click

from scheduler.cli import apiary

README = Path(__file__).parents[1] / "README.md"


def help_block() -> str:
    """The help in its fence, as the README has it."""
    context = click.Context(
        apiary, info_name="apiary", terminal_width=80, **apiary.context_settings
    )
    lines = (line.rstrip() for line in apiary.get_help(context).splitlines())
    return "```text\n" + "\n".join(lines) + "\n```"


def main() -> None:
    """Replaces the block that begins with the usage line."""
    text = README.read_text("utf-8")
    changed = re.sub(r"```text\nUsage: apiary.*?```", lambda _: help_block(), text, flags=re.DOTALL)
    README.write_text(changed, "utf-8")


if __name__ == "__main__":
    main()
