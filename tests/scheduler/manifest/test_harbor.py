# ruff: noqa: E501 - tables of refusals, one a line
from __future__ import annotations

from pathlib import Path

import pytest

from scheduler.manifest.faults import ManifestError
from scheduler.manifest.task import load_task
from tests.scheduler.manifest.builders import fault_lines, write, write_task
from workers.contract.task import Task

TOML = """\
version = "1.0"

[metadata]
author_name = "Somebody"
difficulty = "hard"
category = "system-administration"
tags = ["a", "b"]
expert_time_estimate_min = 15.5

[agent]
timeout_sec = 900.0

[verifier]
timeout_sec = 90

[environment]
cpus = 2
memory = "4G"
storage = "20G"
"""


@pytest.fixture
def kit(tmp_path: Path) -> Path:
    write(tmp_path / "verifier_kit" / "__init__.py", "")
    return tmp_path / "verifier_kit"


def folder_with(root: Path, text: str, name: str = "fix-git") -> Path:
    folder = write_task(root, name)
    (folder / "fixture.yaml").unlink()
    (folder / "task.toml").write_text(text)
    return folder


def load(root: Path, kit: Path, text: str, name: str = "fix-git") -> Task:
    return load_task(folder_with(root, text, name), kit)


def test_a_task_of_harbors_is_read_as_it_is(tmp_path: Path, kit: Path) -> None:
    task = load(tmp_path, kit, TOML)
    config = task.config
    assert (task.name, task.layer, task.freeze) == ("harbor/fix-git", "workflow", "agent")
    assert (config.agent.timeout_sec, config.verifier.timeout_sec) == (900.0, 90.0)
    environment = config.environment
    assert (environment.cpus, environment.memory_mb, environment.storage_mb) == (2, 4096, 20480)
    assert environment.network_mode == "public"
    assert (config.metadata.difficulty, config.metadata.tags) == ("hard", ("a", "b"))
    assert Task.from_json(task.to_json(), "task") == task


def test_what_it_leaves_out_is_harbors_default(tmp_path: Path, kit: Path) -> None:
    bare = "[agent]\ntimeout_sec = 1\n[verifier]\ntimeout_sec = 1\n"
    config = load(tmp_path, kit, bare, "Odd Name (2)").config
    assert config.task.name == "harbor/odd-name-2"
    assert (config.environment.memory_mb, config.environment.storage_mb) == (2048, 10240)
    assert (config.metadata.difficulty, config.metadata.category) == (None, "unknown")


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ('difficulty = "hard"', 'difficulty = "unknown"', {"difficulty": None}),
        ("[metadata]", '[metadata]\nfreeze = "all"', {"freeze": "all"}),
        ("[metadata]", '[metadata]\nevaluation_layer = "regression"', {"evaluation_layer": "regression"}),
        ("[agent]", '[task]\nname = "terminal-bench/fix-git"\n[agent]', {}),
    ],
)  # fmt: skip
def test_metadata_is_free_and_some_of_it_means_something(
    tmp_path: Path, kit: Path, old: str, new: str, found: dict[str, object]
) -> None:
    task = load(tmp_path, kit, TOML.replace(old, new))
    told = task.config.metadata.model_dump()
    assert {name: told[name] for name in found} == found
    if "terminal-bench" in new:
        assert task.name == "terminal-bench/fix-git"


@pytest.mark.parametrize(
    ("line", "mode"),
    [
        ("allow_internet = false", "none"),
        ("allow_internet = true", "public"),
        ('network_mode = "none"', "none"),
        ('network_mode = "no-network"', "none"),
        ('network_mode = "public"', "public"),
    ],
)
def test_both_words_for_the_network_are_known(
    tmp_path: Path, kit: Path, line: str, mode: str
) -> None:
    assert load(tmp_path, kit, f"{TOML}{line}\n").config.environment.network_mode == mode


@pytest.mark.parametrize(
    ("size", "megabytes"), [("512M", 512), ("2g", 2048), ("1 GiB", 1024), ("1025K", 2)]
)
def test_sizes(tmp_path: Path, kit: Path, size: str, megabytes: int) -> None:
    text = TOML.replace('"4G"', f'"{size}"')
    assert load(tmp_path, kit, text).config.environment.memory_mb == megabytes


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("cpus = 2", "gpus = 1", "environment.gpus: gpus: this version gives no container a GPU"),
        ("cpus = 2", 'gpu_types = ["H100"]', "environment.gpu_types: gpu_types: this version gives no container a GPU"),
        ("cpus = 2", 'tpu = { type = "v4", topology = "2x2" }', "environment.tpu: tpu: this version gives no container a TPU"),
        ("cpus = 2", '[[environment.mcp_servers]]\nname = "a"', "environment.mcp_servers: mcp_servers: this version starts no MCP server"),
        ("cpus = 2", 'skills_dir = "/skills"', "environment.skills_dir: skills_dir: this version hands no folder of skills"),
        ("cpus = 2", 'healthcheck = { command = "true" }', "environment.healthcheck: healthcheck: this version waits for no health check"),
        ("cpus = 2", 'os = "windows"', "environment.os: os: containers run Linux here, not 'windows'"),
        ("cpus = 2", "cpus = 0.5", "environment.cpus: cpus: whole cores are given out here, not 0.5"),
        ("cpus = 2", 'workdir = "here"', "environment.workdir: workdir: expected an absolute path, found 'here'"),
        ("cpus = 2", 'network_mode = "allowlist"\nallowed_hosts = ["pypi.org"]', "environment.allowed_hosts: allowed_hosts: this version opens the whole internet"),
        ("cpus = 2", 'network_mode = "allowlist"', "environment.network_mode: network_mode: 'allowlist': this version opens"),
        ("cpus = 2", 'env = { APIARY_AGENTS = "x" }', "environment.env: env: APIARY_AGENTS is the harness's own"),
        ("cpus = 2", 'env = { "A=B" = "x" }', "environment.env: env: 'A=B' is no variable's name"),
        ("cpus = 2", "privileged = true", "environment.privileged: unknown field"),
        ("[agent]", '[agent]\nnetwork_mode = "no-network"', "agent: network_mode and allowed_hosts of one phase"),
        ("[verifier]", '[verifier]\nenvironment_mode = "separate"', "verifier.environment_mode: environment_mode: 'separate' would grade"),
        ("[environment]", '[verifier.environment]\ndocker_image = "a"\n[environment]', "verifier.environment: environment: this version runs the tests in the agent's own"),
        ("[environment]", '[[verifier.collect]]\ncommand = "dump"\n[environment]', "verifier.collect: collect: this version runs no commands before"),
        ("[environment]", '[solution.env]\nKEY = "${KEY}"\n[environment]', "solution.env: env: KEY refers to a variable of the machine"),
        ('version = "1.0"', 'version = "1.0"\nartifacts = ["/app/out"]', "artifacts: this version takes no files out of a container"),
        ('version = "1.0"', 'version = "1.0"\nmulti_step_reward_strategy = "final"', "multi_step_reward_strategy: this version has no tasks of several steps"),
        ("cpus = 2", "memory_mb = 5", "environment.memory: memory and memory_mb say different things"),
        ('"4G"', '"plenty"', "environment.memory: memory: expected a size like 512M or 2G, found 'plenty'"),
        ('"4G"', '"0G"', "environment.memory: memory: expected a size"),
        ("cpus = 2", 'allow_internet = true\nnetwork_mode = "public"', "environment.allow_internet: allow_internet and network_mode say the same"),
        ("timeout_sec = 90\n", 'timeout_sec = 90\nenv = { KEY = "${OPENAI_API_KEY}" }\n', "verifier.env: env: KEY refers to a variable of the machine"),
        ("timeout_sec = 900.0", "", "agent.timeout_sec: this field is required"),
        ("[metadata]", '[metadata]\nfreeze = "some"', "metadata.freeze: expected 'agent', 'all' or 'restart', found 'some'"),
        ('"1.0"', '"3.0"', "version: expected '1.0', '1.1', '1.2', '1.3' or '1.4', found '3.0'"),
        ("[agent]", '[[steps]]\nname = "one"\n[agent]', "steps: this version has no tasks of several steps"),
    ],
)  # fmt: skip
def test_what_cannot_be_honoured_is_refused_by_name(
    tmp_path: Path, kit: Path, old: str, new: str, told: str
) -> None:
    assert old in TOML
    with pytest.raises(ManifestError) as caught:
        load(tmp_path, kit, TOML.replace(old, new, 1))
    lines = fault_lines(caught.value, tmp_path)
    assert any(told in line for line in lines), lines


def test_all_that_is_honoured_arrives(tmp_path: Path, kit: Path) -> None:
    text = """\
schema_version = "1.3"
source = "somewhere"
artifacts = []
[task]
name = "some/task"
version = "2.0"
[agent]
timeout_sec = 5
user = "worker"
network_mode = "no-network"
[verifier]
user = 0
environment_mode = "shared"
env = { A = "1" }
[environment]
build_timeout_sec = 30
docker_image = "somebody/image:1"
os = "Linux"
cpus = 2.0
memory = "1G"
memory_mb = 1024
gpus = 0
mcp_servers = []
workdir = "/srv"
env = { B = "2" }
network_mode = "no-network"
[solution]
env = { C = "3" }
"""
    folder = folder_with(tmp_path, text)
    (folder / "environment" / "Dockerfile").unlink()
    config = load_task(folder, kit).config
    assert (config.agent.user, config.verifier.user) == ("worker", "0")
    assert config.verifier.timeout_sec == 600.0
    assert (config.verifier.env, config.solution.env) == ({"A": "1"}, {"C": "3"})
    told = config.environment
    assert (told.docker_image, told.build_timeout_sec) == ("somebody/image:1", 30.0)
    assert (told.workdir, told.env, told.network_mode) == ("/srv", {"B": "2"}, "none")
    assert (told.cpus, told.memory_mb) == (2, 1024)


def test_a_task_of_several_steps_is_refused_for_that(tmp_path: Path, kit: Path) -> None:
    folder = folder_with(tmp_path, TOML.replace("[agent]", '[[steps]]\nname = "one"\n[agent]'))
    (folder / "instruction.md").unlink()
    with pytest.raises(ManifestError) as caught:
        load_task(folder, kit)
    assert any("steps: this version has no" in line for line in fault_lines(caught.value, tmp_path))


def test_a_buzz_native_task_asks_for_none_of_it(tmp_path: Path, kit: Path) -> None:
    folder = write_task(tmp_path, "alpha")
    path = folder / "task.toml"
    path.write_text(path.read_text() + 'docker_image = "a"\n')
    with pytest.raises(ManifestError) as caught:
        load_task(folder, kit)
    (told,) = fault_lines(caught.value, tmp_path)
    assert "environment.docker_image: only a task without fixture.yaml may say this" in told


def test_a_buzz_native_task_is_not_frozen_otherwise(tmp_path: Path, kit: Path) -> None:
    folder = write_task(tmp_path, "alpha")
    path = folder / "task.toml"
    path.write_text(path.read_text().replace("[metadata]", '[metadata]\nfreeze = "all"'))
    with pytest.raises(ManifestError) as caught:
        load_task(folder, kit)
    (told,) = fault_lines(caught.value, tmp_path)
    assert told.startswith("tasks/alpha/task.toml:9: metadata.freeze: only a task that is graded")
    (folder / "fixture.yaml").unlink()
    assert load_task(folder, kit).freeze == "all"
