"""Pages from templates: the only door to ``jinja2``.

Everything that a template prints is escaped: what a run left behind came out of a container.
"""

from __future__ import annotations

import importlib.resources
from collections.abc import Callable, Mapping
from typing import Any

from jinja2 import DictLoader, Environment, StrictUndefined, select_autoescape

STYLE = "style.css"
"""The look that the report and the served pages share, beside this module."""


class Templates:
    """The templates (``*.html``) of one folder of a package."""

    def __init__(
        self, package: str, filters: Mapping[str, Callable[..., Any]], folder: str = "."
    ) -> None:
        """Reads them all; a name that a template uses and nobody gives is an error."""
        found = importlib.resources.files(package).joinpath(folder)
        sources = {
            each.name: each.read_text("utf-8")
            for each in found.iterdir()
            if each.name.endswith(".html")
        }
        self._environment = Environment(
            loader=DictLoader(sources),
            autoescape=select_autoescape(default=True),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters.update(filters)

    def render(self, template: str, **values: Any) -> str:
        """A page."""
        return self._environment.get_template(template).render(values)


def style() -> str:
    """The shared style sheet."""
    return importlib.resources.files("scheduler").joinpath(STYLE).read_text("utf-8")
