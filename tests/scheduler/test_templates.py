from __future__ import annotations

from pathlib import Path

import jinja2
import pytest

from scheduler.templates import Templates, style


@pytest.fixture
def templates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Templates:
    folder = tmp_path / "pages_of_a_test" / "inner"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").touch()
    (folder / "hello.html").write_text("{{ name | loud }}{% if more %}!{% endif %}")
    (folder / "other.txt").write_text("{{ broken")
    monkeypatch.syspath_prepend(str(tmp_path))
    return Templates("pages_of_a_test", {"loud": str.upper}, "inner")


def test_what_is_printed_is_escaped(templates: Templates) -> None:
    assert templates.render("hello.html", name="<b>", more=True) == "&lt;B&gt;!"


def test_a_forgotten_value_is_an_error(templates: Templates) -> None:
    with pytest.raises(jinja2.UndefinedError, match="more"):
        templates.render("hello.html", name="a")


def test_the_style_has_both_colour_schemes() -> None:
    assert "prefers-color-scheme: dark" in style()
    assert "@import" not in style()
    assert "url(" not in style()
