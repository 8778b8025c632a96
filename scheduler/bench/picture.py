"""Where the time of a trial goes, as a picture: a bar for each number at once, a piece a phase."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

WIDTH = 760
LEFT = 90
"""Of the bars, with their names before it."""
BAR = 34
STEP = 62
TOP = 16
LEGEND = 22
COLUMNS = 4
COLOURS = {
    "prepare": "#8c9aab",
    "provision": "#6a9fd8",
    "launch": "#4b7fc4",
    "drive": "#3f9d6e",
    "freeze": "#86b84d",
    "collect": "#c9a63b",
    "verify": "#cf7f3f",
    "seal": "#a873b8",
}
"""As in the report."""


def draw_phases(rows: Mapping[str, Mapping[str, float]]) -> str:
    """An SVG picture; each row has its own scale, since side by side a trial takes longer.

    Args:
        rows: name of a row to its phases' seconds, in their order.
    """
    names = list(dict.fromkeys(phase for row in rows.values() for phase in row))
    lines = -(-len(names) // COLUMNS)
    height = TOP + STEP * len(rows) + LEGEND * lines + TOP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" font-family="sans-serif" font-size="13">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
    ]
    for place, (name, row) in enumerate(rows.items()):
        parts += _bar(name, row, TOP + STEP * place)
    top = TOP + STEP * len(rows)
    for place, name in enumerate(names):
        x = LEFT + (WIDTH - LEFT) // COLUMNS * (place % COLUMNS)
        y = top + LEGEND * (place // COLUMNS)
        parts.append(f'<rect x="{x}" y="{y}" width="12" height="12" fill="{COLOURS[name]}"/>')
        parts.append(f'<text x="{x + 18}" y="{y + 11}" fill="#222222">{escape(name)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _bar(name: str, row: Mapping[str, float], top: int) -> list[str]:
    total = sum(row.values())
    scale = (WIDTH - LEFT - 20) / total if total else 0.0
    middle = top + BAR // 2 + 5
    parts = [f'<text x="8" y="{middle}" fill="#222222">{escape(name)}</text>']
    x = float(LEFT)
    for phase, seconds in row.items():
        width = seconds * scale
        parts.append(
            f'<rect x="{x:.1f}" y="{top}" width="{width:.1f}" height="{BAR}" '
            f'fill="{COLOURS[phase]}"><title>{escape(phase)} {seconds:.3f} s</title></rect>'
        )
        if width > 40:
            parts.append(
                f'<text x="{x + width / 2:.1f}" y="{middle}" fill="#ffffff" '
                f'text-anchor="middle">{seconds:.2f}</text>'
            )
        x += width
    parts.append(
        f'<text x="{WIDTH - 20}" y="{top + BAR + 15}" fill="#555555" text-anchor="end">'
        f"{total:.2f} s</text>"
    )
    return parts
