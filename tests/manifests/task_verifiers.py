"""The task folders as the tests see them: fixtures, instructions, and verifiers in this process."""

from __future__ import annotations

import functools
import importlib.util
import sys
import tomllib
from pathlib import Path
from typing import Any

import yaml

from workers.contract.base import canonical_json
from workers.contract.task import Fixture, TaskConfig

MANIFESTS = Path(__file__).resolve().parents[2] / "manifests"
TASKS = MANIFESTS / "tasks"
NAMED_PATH = "read-named-path-outside-workspace"
NAMES = (
    "reply-to-thread",
    "user-mention",
    NAMED_PATH,
    "multiline-message",
    "narrative-agent-names",
    "memory-retrieval",
    "create-channel-invite-users",
    "interleaved-agent-reports",
    "cross-thread-requests",
    "ambiguous-user-mention",
)
CHECK_ID = "chc-0123456789abcdef01234567"
ACTION = "Recommend compaction when remaining context is low."
SKILL_TEXT = f"# Context Health Check\n\nCHECK_ID: {CHECK_ID}\nACTION: {ACTION}\n"

Scores = dict[str, float]


@functools.cache
def load(task: str) -> Any:
    """The module of a task's ``verify.py``, loaded from its path and leaving no bytecode."""
    path = TASKS / task / "tests" / "verify.py"
    spec = importlib.util.spec_from_file_location(f"verify_{task.replace('-', '_')}", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    paths = list(sys.path)
    try:
        spec.loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = before
        sys.path[:] = paths
    return module


def judge(task: str, evidence: object) -> Scores:
    """The dimensions and the reward that a task's verifier gives."""
    return answer(task, evidence)[0]


def answer(task: str, evidence: object) -> tuple[Scores, dict[str, Any]]:
    """The same with the details."""
    module = load(task)
    inputs = {"skill_file": module.read_skill(SKILL_TEXT)} if task == NAMED_PATH else {}
    told = module.VERIFIER.judge(evidence, inputs)
    return told.reward, told.details


def dimensions(task: str) -> tuple[str, ...]:
    """The names of a task's dimensions."""
    return tuple(rule.__name__ for rule in load(task).VERIFIER.dimensions)


@functools.cache
def fixture(task: str) -> Fixture:
    """A task's ``fixture.yaml``."""
    told = yaml.safe_load((TASKS / task / "fixture.yaml").read_text("utf-8"))
    return Fixture.from_json(canonical_json(told), f"{task}/fixture.yaml")


def config(task: str) -> TaskConfig:
    """A task's ``task.toml``."""
    told = tomllib.loads((TASKS / task / "task.toml").read_text("utf-8"))
    return TaskConfig.from_json(canonical_json(told), f"{task}/task.toml")


@functools.cache
def instruction(task: str) -> str:
    """A task's ``instruction.md``."""
    return (TASKS / task / "instruction.md").read_text("utf-8")
