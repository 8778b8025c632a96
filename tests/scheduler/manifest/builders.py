"""A small manifests folder on disk, sound unless a test breaks it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

from scheduler.manifest import ManifestError, load_sweep
from scheduler.plan import Plan, make_plan
from workers.contract.base import sha256_hex

PROMPT = "You work alone.\n"
STARTED = datetime(2026, 8, 30, 12, 0, 5, tzinfo=UTC)

TASK_TOML = """\
schema_version = "1.3"

[task]
name = "buzz-native/{name}"
description = "A task."
keywords = ["buzz-native"]

[metadata]
evaluation_layer = "{layer}"
difficulty = "easy"
category = "collaboration"

[agent]
timeout_sec = 300.0

[verifier]
timeout_sec = 30.0

[environment]
network_mode = "public"
cpus = 1
memory_mb = 1024
storage_mb = 1024
"""

CONDITION = """\
schema_version: "1"
condition: {name}
roster:
  - id: solo
    kind: orchestrator
    role: solo
    count: 1
    endpoint: {endpoint}
    model_revision: r1
    prompt:
      path: personas/solo.md
      sha256: {sha}
    generation:
      max_output_tokens: 4096
      context_window_tokens: 200000
prices:
  {endpoint}:
    input_per_million_usd: 1
    cached_input_per_million_usd: 0.1
    output_per_million_usd: 4
trial_budget:
  timeout_seconds: 300
"""

SWEEP = """\
name: small
attempts: 2
conditions:
  - ../conditions/one.yaml
  - ../conditions/two.yaml
endpoints: ../../deploy/endpoints/scripted.json
network: sealed
"""


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def write_task(manifests: Path, name: str, layer: str = "regression") -> Path:
    folder = manifests / "tasks" / name
    write(folder / "task.toml", TASK_TOML.format(name=name, layer=layer))
    write(folder / "instruction.md", f"Do {name}.\n")
    write(folder / "environment" / "Dockerfile", "FROM python:3.12-slim-bookworm\n")
    write(folder / "tests" / "test.sh", "#!/bin/sh\n").chmod(0o755)
    write(folder / "fixture.yaml", "schema_version: 1\n")
    return folder


def condition_text(name: str = "one", endpoint: str = "scripted-one") -> str:
    return CONDITION.format(name=name, endpoint=endpoint, sha=sha256_hex(PROMPT.encode()))


def write_condition(manifests: Path, name: str, endpoint: str = "scripted-one") -> Path:
    return write(manifests / "conditions" / f"{name}.yaml", condition_text(name, endpoint))


def write_world(root: Path) -> Path:
    """A root with two tasks, two conditions, endpoints and a sweep; returns the sweep file."""
    manifests = root / "manifests"
    write(manifests / "verifier_kit" / "__init__.py", "")
    write(manifests / "personas" / "solo.md", PROMPT)
    write_task(manifests, "alpha", "regression")
    write_task(manifests, "beta", "workflow")
    write_condition(manifests, "one")
    write_condition(manifests, "two", "scripted-two")
    endpoints = root / "deploy" / "endpoints"
    scripted = {name: {"provider": "scripted"} for name in ("scripted-one", "scripted-two")}
    write(endpoints / "scripted.json", json.dumps(scripted))
    live = {"live": {"provider": "anthropic", "api_key_env": "LIVE_KEY"}}
    write(endpoints / "anthropic-live.json", json.dumps(live))
    return write(manifests / "sweeps" / "small.yaml", SWEEP)


def plan_of(sweep: Path, environment: dict[str, str] | None = None) -> Plan:
    given = {"APIARY_STORE": "file:///nowhere", **(environment or {})}
    return make_plan(load_sweep(sweep), started_at=STARTED, environment=given)


def fault_lines(error: ManifestError, root: Path) -> list[str]:
    """The faults as text, paths relative to the test's folder."""
    return [str(fault).replace(f"{root}/", "") for fault in error.faults]
