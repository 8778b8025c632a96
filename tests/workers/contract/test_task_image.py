from __future__ import annotations

import pytest

from tests.manifests.task_verifiers import NAMED_PATH, TASKS, config, instruction
from workers.contract.task import Task
from workers.contract.task_image import build_arguments, image_tag


@pytest.mark.parametrize(
    ("dockerfile", "base", "expected"),
    [
        ("FROM a\n", None, {}),
        ("FROM a\n", "b", {"BASE_IMAGE": "b"}),
        ("FROM a\nARG MARKER_NONCE\n", None, {"MARKER_NONCE": "s"}),
        ("FROM a\n  arg MARKER_NONCE=1\n", "b", {"BASE_IMAGE": "b", "MARKER_NONCE": "s"}),
        ("FROM a\n# ARG MARKER_NONCE\nARG MARKER_NONCE2\n", None, {}),
    ],
)
def test_arguments(dockerfile: str, base: str | None, expected: dict[str, str]) -> None:
    assert build_arguments(dockerfile, "s", base) == expected


def test_a_sweep_has_a_named_path_of_its_own_and_shares_the_other_images() -> None:
    for name, shared in (("user-mention", True), (NAMED_PATH, False)):
        task = Task(digest="d", config=config(name), instruction=instruction(name))
        dockerfile = (TASKS / name / "environment" / "Dockerfile").read_text("utf-8")
        tags = {image_tag(task, build_arguments(dockerfile, sweep, "b")) for sweep in ("s", "t")}
        assert (len(tags) == 1) == shared
        assert all(tag.startswith(f"apiary/{name}:") for tag in tags)


def test_a_tag_tells_digests_and_base_images_apart() -> None:
    tags = {
        image_tag(
            Task(digest=digest, config=config("user-mention"), instruction="x"), {"BASE_IMAGE": b}
        )
        for digest in ("d", "e")
        for b in ("b", "c")
    }
    assert len(tags) == 4
