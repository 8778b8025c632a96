"""A store with a made sweep of any size: what nodes would have left of it, by chance and seed."""

from __future__ import annotations

import random
from typing import Any

from scheduler.lock import Lock, lock_key
from scheduler.lock_format import LockedCondition, Versions
from scheduler.manifest import Scoring, SweepBudget
from scheduler.plan import BaseImage, Profile
from tests.scheduler.builders import condition, task
from workers.contract.base import sha256_hex
from workers.contract.outcome import Cause, Phase, Verdict, outcome_of
from workers.contract.result import Digests, TryRecord, result_key, try_prefix
from workers.contract.spec import Limits, attempt_id, cell_id
from workers.contract.task import Task
from workers.storage import Store

PROMPT = "Be kind."
INVALID = (
    Cause.CONTAINER_LOST,
    Cause.RATE_LIMITED,
    Cause.VERIFIER_CRASH,
    Cause.CANCELLED,
    Cause.UNCLASSIFIED,
)
FAILED = (Cause.WRONG, Cause.WRONG, Cause.NO_REPLY, Cause.AGENT_TIMEOUT)


def make_lock(
    *,
    conditions: int = 2,
    regression: int = 2,
    workflow: int = 3,
    attempts: int = 3,
    canaries: bool = False,
    name: str = "made",
    started_at: str = "2026-01-01T00:00:00Z",
    **changes: Any,
) -> Lock:
    """A lock of so many conditions and tasks."""
    layers = ["regression"] * regression + ["workflow"] * workflow
    tasks = tuple(_task(f"task-{place:02}", layer) for place, layer in enumerate(layers))
    locked = [condition_of(f"condition-{number}") for number in range(conditions)]
    if canaries:
        locked += [condition_of("canary-solver", "solver"), condition_of("canary-nop", "nop")]
    counts = {
        cell_id(under.digest, each.digest): attempts if under.canary is None else 2
        for under in locked
        for each in tasks
    }
    values: dict[str, Any] = {
        "sweep": f"{name}-{started_at.replace('-', '').replace(':', '')}",
        "name": name,
        "started_at": started_at,
        "store": "file:///nowhere",
        "agent": "reference",
        "relay": "embedded",
        "network": "sealed",
        "seed": 1,
        "scoring": Scoring(),
        "limits": Limits(),
        "budget": SweepBudget(),
        "base_image": BaseImage(reference="base", digest=None),
        "profile": Profile(cpus=2),
        "versions": Versions(apiary="0", python="3", ray=None, docker=None, nostr_sdk=None),
        "tasks": tasks,
        "conditions": tuple(locked),
        "prompts": {sha256_hex(PROMPT.encode()): PROMPT},
        "endpoints": {},
        "attempts": counts,
    }
    return Lock.model_validate({**values, **changes})


def condition_of(name: str, canary: Any = None) -> LockedCondition:
    made = condition(name)
    return LockedCondition(digest=made.digest, manifest=made, canary=canary)


def fill(store: Store, lock: Lock, *, seed: int = 1, invalid: float = 0.04) -> None:
    """Writes the lock, and for every attempt its tries; few are invalid, and some stay so."""
    source = random.Random(seed)
    store.put(lock_key(lock.sweep, lock.number), lock.to_json().encode())
    for each in lock.cells:
        rate = source.betavariate(1.2, 0.8)
        if each.condition.canary is not None:
            rate = 0.97 if each.condition.canary == "solver" else 0.02
        for index in range(each.attempts):
            number = 0
            while True:
                number += 1
                cause = _cause(source, rate, invalid)
                counts = write(store, lock, each.task, each.condition, index, number, cause, source)
                if counts or number == 3 or source.random() < 0.1:
                    break


def write(
    store: Store,
    lock: Lock,
    of: Task,
    under: LockedCondition,
    index: int,
    number: int,
    cause: Cause,
    source: random.Random | None = None,
) -> bool:
    """Writes one try as a node does; whether it is the attempt's result."""
    chance = source or random.Random(0)
    outcome = outcome_of(cause, Phase.SEAL)
    passed = outcome.verdict is Verdict.PASS
    attempt = attempt_id(lock.sweep, under.digest, of.digest, index)
    counts = outcome.verdict is not Verdict.INVALID
    values: dict[str, Any] = {
        "sweep": lock.sweep,
        "attempt": attempt,
        "index": index,
        "try": f"1-{number}",
        "cell": cell_id(under.digest, of.digest),
        "condition": under.manifest.condition,
        "task": of.name,
        "layer": of.layer,
        "verdict": outcome.verdict,
        "blame": outcome.blame,
        "phase": outcome.phase,
        "cause": outcome.cause,
        "reward": (1.0 if passed else round(chance.random() * 0.9, 3)) if counts else None,
        "dimensions": {"answer": float(passed), "thread": float(chance.random() < 0.8)}
        if counts
        else {},
        "started_at": "2026-01-01T00:00:00.000Z",
        "ended_at": "2026-01-01T00:00:01.000Z",
        "phase_seconds": {"drive": chance.random(), "verify": chance.random()},
        "usage": {
            "calls": chance.randrange(5),
            "input_tokens": chance.randrange(1000),
            "cached_input_tokens": chance.randrange(100),
            "cache_write_tokens": chance.randrange(100),
            "output_tokens": chance.randrange(1000),
            "reasoning_tokens": chance.randrange(100),
            "cost_usd": chance.random() / 100,
            "uncached_cost_usd": chance.random() / 50,
            "unknown_cost_calls": int(chance.random() < 0.05),
        },
        "node": "n1",
        "epoch": (1, number),
        "digests": Digests(task=of.digest, condition=under.digest),
    }
    document = TryRecord.model_validate(values).to_json().encode()
    store.put(f"{try_prefix(lock.sweep, attempt, f'1-{number}')}/try.json", document)
    if counts:
        store.create(result_key(lock.sweep, attempt), document)
    return counts


def _task(name: str, layer: str) -> Task:
    made = task(name)
    config = made.config.model_copy(
        update={"metadata": made.config.metadata.model_copy(update={"evaluation_layer": layer})}
    )
    digest = sha256_hex(f"{name}/{layer}".encode())
    return made.model_copy(update={"config": config, "digest": digest})


def _cause(source: random.Random, rate: float, invalid: float) -> Cause:
    if source.random() < invalid:
        return source.choice(INVALID)
    return Cause.NONE if source.random() < rate else source.choice(FAILED)
