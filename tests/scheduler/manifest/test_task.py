# ruff: noqa: E501 - tables of refusals, one a line
from __future__ import annotations

import os
from pathlib import Path

import pytest

from scheduler.manifest.faults import ManifestError
from scheduler.manifest.task import REQUIRED_FILES, load_task
from tests.scheduler.manifest.builders import fault_lines, write, write_task
from workers.contract.task_folder import digest_of


@pytest.fixture
def kit(tmp_path: Path) -> Path:
    write(tmp_path / "verifier_kit" / "__init__.py", "")
    return tmp_path / "verifier_kit"


def faults_of(folder: Path, kit: Path, root: Path) -> list[str]:
    with pytest.raises(ManifestError) as caught:
        load_task(folder, kit)
    return fault_lines(caught.value, root)


def test_a_task_has_config_instruction_fixture_and_digest(tmp_path: Path, kit: Path) -> None:
    folder = write_task(tmp_path, "alpha")
    (folder / "instruction.md").write_bytes(b"Line\r\n\tend")
    task = load_task(folder, kit)
    assert (task.name, task.bare_name, task.layer) == ("buzz-native/alpha", "alpha", "regression")
    assert task.instruction == "Line\r\n\tend"
    assert task.fixture is not None
    assert task.digest == digest_of(folder, kit)


def test_a_folder_without_fixture_is_a_harbor_task(tmp_path: Path, kit: Path) -> None:
    folder = write_task(tmp_path, "alpha")
    (folder / "fixture.yaml").unlink()
    assert load_task(folder, kit).fixture is None


@pytest.mark.parametrize("name", REQUIRED_FILES)
def test_every_required_file_must_be_there_and_be_a_file(
    tmp_path: Path, kit: Path, name: str
) -> None:
    folder = write_task(tmp_path, "alpha")
    (folder / name).rename(tmp_path / "away")
    told = f"tasks/alpha/{name}: there is no such file: a task folder needs task.toml"
    assert faults_of(folder, kit, tmp_path)[0].startswith(told)
    (folder / name).symlink_to(tmp_path / "away")
    assert faults_of(folder, kit, tmp_path)[0].startswith(told)
    (folder / name).unlink()
    (folder / name).mkdir()
    assert faults_of(folder, kit, tmp_path)[0].startswith(told)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('"easy"', '"esay"', "10: metadata.difficulty: expected 'easy', 'medium' or 'hard', found 'esay' (did you mean 'easy'?)"),
        ('"regression"', '"regresion"', "9: metadata.evaluation_layer: expected 'regression' or 'workflow', found 'regresion' (did you mean 'regression'?)"),
        ("[agent]\ntimeout_sec", "[agent]\ntimeout_seconds", "14: agent.timeout_seconds: unknown field: no such field here (did you mean 'timeout_sec'?)"),
        ("timeout_sec = 300.0", "timeout_sec = 0", "14: agent.timeout_sec: expected a number greater than 0, found 0"),
        ("timeout_sec = 30.0", "timeout_sec = nan", "17: verifier.timeout_sec: a number must be finite"),
        ("cpus = 1\n", "cpus = 1.5\n", "21: environment.cpus: expected a whole number, found 1.5"),
        ("cpus = 1\n", "gpus = 1\n", "21: environment.gpus: unknown field: no such field here (did you mean 'cpus'?)"),
        ('"1.3"', '"1.2"', "1: schema_version: expected '1.3', found '1.2'"),
        ('"buzz-native/alpha"', '"alpha"', "4: task.name: expected text of the form ^"),
        ("[environment]", "[enviroment]", "19: enviroment: unknown field: no such field here (did you mean 'environment'?)"),
        ("[verifier]", "[verifier", "16: not TOML: Expected ']' at the end of a table declaration"),
        ("description =", "description = 2026-08-01 #", "5: task.description: a date is not plain data: put it in quotes"),
    ],
)  # fmt: skip
def test_task_toml_faults(tmp_path: Path, kit: Path, old: str, new: str, told: str) -> None:
    folder = write_task(tmp_path, "alpha")
    path = folder / "task.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    lines = faults_of(folder, kit, tmp_path)
    assert any(line.startswith(f"tasks/alpha/task.toml:{told}") for line in lines), lines


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "fixture.yaml:1: expected a mapping, found nothing"),
        ("user_name: X\n", "fixture.yaml:1: user_name: unknown field: no such field here (did you mean 'user_display_name'?)"),
        ("memories:\n  - {slug: Bad Slug, value: x}\n", "fixture.yaml:2: memories[0].slug: expected text of the form"),
        ("memories:\n  - {slug: s}\n", "fixture.yaml:2: memories[0].value: this field is required"),
        ("directory:\n  - {name: A, role: robot}\n", "fixture.yaml:2: directory[0].role: expected 'user' or 'bot', found 'robot' (did you mean 'bot'?)"),
        ("scripted_messages:\n  - {label: l, actor: nobody, content: c}\n", "fixture.yaml:1: scripted message 'l': actor 'nobody' is neither"),
        ("verifier_inputs: [../x]\n", "fixture.yaml:1: verifier input '../x' must be an absolute path"),
    ],
)  # fmt: skip
def test_fixture_faults(tmp_path: Path, kit: Path, text: str, told: str) -> None:
    folder = write_task(tmp_path, "alpha")
    write(folder / "fixture.yaml", text)
    assert faults_of(folder, kit, tmp_path)[0].startswith(f"tasks/alpha/{told}")


def test_faults_of_several_files_are_told_at_once(tmp_path: Path, kit: Path) -> None:
    folder = write_task(tmp_path, "alpha")
    write(folder / "task.toml", "x = 1\n")
    write(folder / "fixture.yaml", "memory: []\n")
    write(folder / "instruction.md", " \n")
    text = "\n".join(faults_of(folder, kit, tmp_path))
    for name in ("task.toml", "fixture.yaml", "instruction.md"):
        assert f"tasks/alpha/{name}" in text


def test_a_kit_must_be_there(tmp_path: Path) -> None:
    folder = write_task(tmp_path, "alpha")
    told = faults_of(folder, tmp_path / "none", tmp_path)
    assert len(told) == 1
    assert told[0].startswith("none: there is no verifier kit here: every task's digest covers it")
    assert told[0].endswith("in manifests/ of the working directory")


def test_links_and_special_files_are_refused(tmp_path: Path, kit: Path) -> None:
    folder = write_task(tmp_path, "alpha")
    os.mkfifo(folder / "tests" / "pipe")
    assert "a special file" in faults_of(folder, kit, tmp_path)[0]
