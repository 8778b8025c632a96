"""The one image that holds something, built for real, and a verifier in a container of it."""

from __future__ import annotations

import json
import re
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.base_image import base_image
from tests.manifests.task_transcripts import accepted
from tests.manifests.task_verifiers import ACTION, CHECK_ID, MANIFESTS, NAMED_PATH, TASKS, fixture

BASE = base_image()
LABEL = "apiary.test=task-images"
(SKILL,) = fixture(NAMED_PATH).verifier_inputs
SEALED = (
    "--rm",
    "--network=none",
    "--cap-drop=ALL",
    "--security-opt=no-new-privileges",
    "--read-only",
    "--memory=1024m",
    f"--label={LABEL}",
)


def docker(*words: str) -> str:
    done = subprocess.run(["docker", *words], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def images() -> Iterator[list[str]]:
    """Images of two sweeps' nonces; the third has the second's, built as on another node.

    Another node's engine has no layer of the first one's, which is to build without the cache.
    """
    tags = [f"apiary-test:{secrets.token_hex(6)}" for _ in range(3)]
    nonces = [tags[0], tags[1], tags[1]]
    try:
        for tag, nonce in zip(tags, nonces, strict=True):
            docker(
                "build",
                "--force-rm",
                *(["--no-cache"] if tag == tags[2] else []),
                f"--label={LABEL}",
                f"--build-arg=BASE_IMAGE={BASE}",
                f"--build-arg=MARKER_NONCE={nonce}",
                f"--tag={tag}",
                str(TASKS / NAMED_PATH / "environment"),
            )
        yield tags
    finally:
        subprocess.run(["docker", "image", "rm", "--force", *tags], capture_output=True)


def stored_input(image: str, folder: Path) -> Path:
    """The skill file out of a container that never runs, where a try keeps it."""
    target = folder / "inputs" / SKILL.lstrip("/")
    target.parent.mkdir(parents=True)
    container = docker("create", f"--label={LABEL}", image)
    try:
        docker("cp", f"{container}:{SKILL}", str(target))
    finally:
        docker("rm", "--force", "--volumes", container)
    return target


def marker(text: str) -> str:
    found = re.fullmatch(
        rf"# Context Health Check\n\nCHECK_ID: (chc-[0-9a-f]{{24}})\nACTION: {ACTION}\n", text
    )
    assert found, text
    return found.group(1)


@pytest.mark.docker
def test_another_sweep_and_another_node_make_another_marker(
    images: list[str], tmp_path: Path
) -> None:
    texts = [
        stored_input(image, tmp_path / str(number)).read_text("utf-8")
        for number, image in enumerate(images)
    ]
    assert len({marker(text) for text in texts}) == 3


@pytest.mark.docker
@pytest.mark.parametrize("user", ["0", "65534", "12345:6789"])
def test_any_user_reads_the_file_in_its_home(images: list[str], user: str) -> None:
    path = "~/.claude/skills/context-health-check"
    seen = docker("run", *SEALED, "--user", user, images[0], "sh", "-c", f"ls {path}; cat {path}/*")
    assert seen.startswith("SKILL.md\n# Context Health Check")
    assert docker("run", *SEALED, images[0], "pwd") == "/app"


@pytest.mark.docker
@pytest.mark.parametrize("stored", [True, False], ids=["stored input", "the image's own file"])
def test_verifier_in_a_sealed_container(images: list[str], stored: bool, tmp_path: Path) -> None:
    skill = stored_input(images[1], tmp_path)
    # Verified in the image it was run in, or, when regraded, in any other.
    image = images[0] if stored else images[1]
    evidence = json.dumps(accepted(NAMED_PATH)).replace(CHECK_ID, marker(skill.read_text("utf-8")))
    for name in ("artifacts", "verifier"):
        (tmp_path / name).mkdir()
    (tmp_path / "artifacts" / "buzz-evidence.json").write_text(evidence)
    tests = tmp_path / "tests"
    bytecode = shutil.ignore_patterns("__pycache__")
    shutil.copytree(TASKS / NAMED_PATH / "tests", tests, ignore=bytecode)
    shutil.copytree(MANIFESTS / "verifier_kit", tests / "verifier_kit", ignore=bytecode)
    mounts = [f"{tests}:/tests:ro", f"{tmp_path / 'artifacts'}:/logs/artifacts:ro"]
    if stored:
        mounts.append(f"{tmp_path / 'inputs'}:/inputs:ro")
    docker(
        "run",
        *SEALED,
        *(f"--volume={mount}" for mount in mounts),
        f"--volume={tmp_path / 'verifier'}:/logs/verifier",
        image,
        "bash",
        "/tests/test.sh",
    )
    reward = json.loads((tmp_path / "verifier" / "reward.json").read_text("utf-8"))
    assert set(reward.values()) == {1.0}
    assert not list(tests.rglob("*.pyc"))
