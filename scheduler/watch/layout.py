"""Fits what there is to say into a terminal's lines. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from scheduler.report.transcript import visible

ROOMY = 30
"""Lines from which on sections stand apart."""


@dataclass(frozen=True)
class Column:
    """One column of a section."""

    heading: str
    right: bool = False
    """Figures: never narrower than its heading."""
    least: int = 1
    takes_rest: bool = False
    """Gets what the others leave."""


@dataclass(frozen=True)
class Section:
    """A small table of which as many rows are shown as there is room for."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Text, ...], ...]
    what: str = "more"
    """What the rows are that are not shown."""


def screen(
    head: Sequence[Text], sections: Sequence[Section], foot: Text, width: int, height: int | None
) -> RenderableType:
    """A whole screen of exactly ``height`` lines: head, sections one below the other, foot.

    Where ``height`` is null everything is said, without a foot.
    """
    for line in (*head, foot):
        line.no_wrap, line.overflow = height is not None, "ellipsis"
    if height is None:
        told = [each for each in sections if each.rows]
        tables = [(Text(""), _table(each, len(each.rows), width)) for each in told]
        return Group(*head, *(part for pair in tables for part in pair))
    lines: list[RenderableType] = list(head[: max(1, height - 1)])
    room = height - len(lines) - 1
    filled = [section for section in sections if section.rows]
    apart = 1 if height >= ROOMY else 0
    given = share([len(each.rows) for each in filled], room, 1 + apart)
    for section, rows in zip(filled, given, strict=True):
        if rows:
            lines += [*[Text("")] * apart, _table(section, rows, width)]
            room -= rows + 1 + apart
    lines += [Text("")] * max(0, room)
    if height > 1:
        lines.append(foot)
    return Group(*lines)


def share(wanted: Sequence[int], room: int, heading: int = 2) -> list[int]:
    """How many rows each section gets of ``room`` lines; each that gets any has a heading, too.

    Sections come in the order of their weight: where there is no room for all, the last ones go.
    """
    given = [0] * len(wanted)
    for place, rows in enumerate(wanted):
        if rows and room > heading:
            given[place] = 1
            room -= 1 + heading
    while room > 0:
        short = [p for p, rows in enumerate(given) if 0 < rows < wanted[p]]
        if not short:
            break
        for place in short[:room]:
            given[place] += 1
            room -= 1
    return given


def one_line(text: str) -> str:
    """Text of others on one line, with nothing that a terminal would act upon."""
    return " ".join(visible(text).split())


def _table(section: Section, rows: int, width: int) -> Table:
    table = Table(
        box=None, header_style="dim", pad_edge=False, padding=(0, 1, 0, 0), width=max(1, width)
    )
    for column in section.columns:
        least = max(column.least, len(column.heading) if column.right else 1)
        table.add_column(
            column.heading,
            justify="right" if column.right else "left",
            no_wrap=True,
            overflow="ellipsis",
            min_width=least,
            ratio=1 if column.takes_rest else None,
        )
    is_cut = rows < len(section.rows)
    shown = section.rows[: rows - 1 if is_cut and rows > 1 else rows]
    for row in shown:
        table.add_row(*row)
    if is_cut and rows > 1:
        left = len(section.rows) - len(shown)
        rest = [Text("") for _ in section.columns[1:]]
        table.add_row(Text(f"… {left} {section.what}", style="dim"), *rest)
    return table
