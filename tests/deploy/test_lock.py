"""The lock of the images beside that of a checkout."""

from __future__ import annotations

import re
import tomllib

from tests.layout.tree import ROOT

PIN = re.compile(r"^([a-z0-9._-]+)==(\S+)", re.MULTILINE)


def pinned(place: str) -> dict[str, str]:
    return dict(PIN.findall((ROOT / place).read_text("utf-8")))


def test_an_image_has_the_versions_of_a_checkout_and_nothing_that_only_tests_need() -> None:
    checkout, image = pinned("deploy/requirements.lock"), pinned("deploy/images/requirements.lock")
    shared = checkout.keys() & image.keys()
    assert {name: image[name] for name in shared} == {name: checkout[name] for name in shared}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

    def names(requirements: list[str]) -> set[str]:
        return {re.split(r"[\[<>=~! ]", each)[0].lower() for each in requirements}

    assert names(project["dependencies"]) <= image.keys(), "run deploy/lock.sh"
    only_tests = {"pytest", "mypy", "ruff", "moto", "hypothesis", "playwright"}
    assert only_tests <= names(project["optional-dependencies"]["dev"])
    assert not only_tests & image.keys()
    assert "aiohttp-cors" in image, "Ray's dashboard"
