"""The documents of a Harbor job (formats of version 1), from a sweep's records. Pure.

A Harbor job is a folder with ``config.json`` and ``result.json`` and one folder for every trial
with the same two. A trial here is an attempt: its result's try, or the last one where there is no
result. Harbor has no word for an invalid try; it has trials that ended in an exception and carry
no reward, and its own means leave those out or count them as it does with its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid5

from scheduler.lock_format import Lock
from scheduler.report.results import AttemptResults, CellResults, SweepResults
from workers.contract.outcome import Blame, Cause, Phase, Verdict
from workers.contract.result import TryRecord

SPACE = UUID("6f0b6f0c-6f5e-5c4b-9b0a-2f6a3c1d7e55")
"""Under which the ids of jobs and trials are made, so that two exports of a sweep agree."""
NAME_SIGNS = 32
"""Of a task's name in a trial's name."""
ID_DIGITS = 7

EXCEPTIONS: dict[Cause, str] = {
    Cause.AGENT_TIMEOUT: "AgentTimeoutError",
    Cause.RATE_LIMITED: "ApiRateLimitError",
    Cause.PROVIDER_5XX: "ApiInternalServerError",
    Cause.PROVIDER_AUTH: "AgentAuthenticationError",
    Cause.PROVIDER_UNREACHABLE: "ApiConnectionError",
    Cause.PROVIDER_MALFORMED: "UnknownApiError",
    Cause.IMAGE_BUILD: "SandboxBuildFailedError",
    Cause.CONTAINER_START: "EnvironmentStartTimeoutError",
    Cause.READINESS_TIMEOUT: "AgentSetupTimeoutError",
    Cause.VERIFIER_TIMEOUT: "VerifierTimeoutError",
    Cause.VERIFIER_SETUP: "AddTestsDirError",
    Cause.REWARD_MISSING: "RewardFileNotFoundError",
    Cause.REWARD_MALFORMED: "VerifierOutputParseError",
    Cause.CANCELLED: "CancelledError",
    Cause.SWEEP_BUDGET: "CancelledError",
}
"""What Harbor calls it where it has a name; any other cause gets one of ours."""
SCORED_EXCEPTIONS = (Cause.AGENT_TIMEOUT,)
"""Causes of a fail that Harbor shows as an exception beside a reward that counts."""


@dataclass(frozen=True)
class Trial:
    """One attempt as a trial."""

    name: str
    """Of its folder."""
    record: TryRecord
    config: Mapping[str, Any]
    result: Mapping[str, Any]


@dataclass(frozen=True)
class Job:
    """A sweep as a job."""

    config: Mapping[str, Any]
    result: Mapping[str, Any]
    trials: tuple[Trial, ...]


def job_of(lock: Lock, results: SweepResults, name: str) -> Job:
    """The documents of a sweep's attempts that were tried; canaries are left out.

    Args:
        lock: the one in force.
        results: everything the sweep has left so far.
        name: of the job, which is its folder's.
    """
    cells = [cell for cell in results.cells if cell.canary is None]
    job_id = uuid5(SPACE, lock.sweep)
    names = Names()
    trials = tuple(
        _trial(lock, cell, attempt.last, names, name, job_id)
        for cell in cells
        for attempt in cell.attempts
        if attempt.last is not None
    )
    attempts = [attempt for cell in cells for attempt in cell.attempts]
    return Job(_config(lock, cells, name), _result(lock, attempts, trials, job_id), trials)


def _config(lock: Lock, cells: Sequence[CellResults], name: str) -> dict[str, Any]:
    agents = {cell.condition: _agent(lock, cell.condition) for cell in cells}
    return {
        "schema_version": 1,
        "job_name": name,
        "jobs_dir": "jobs",
        "n_attempts": max(lock.attempts.values(), default=1),
        **_multipliers(lock),
        "n_concurrent_trials": lock.profile.n_concurrent or lock.profile.cpus or 1,
        "agents": list(agents.values()),
        "tasks": [{"path": f"tasks/{task.bare_name}"} for task in lock.tasks],
    }


def _multipliers(lock: Lock) -> dict[str, float]:
    told = lock.timeout_multipliers
    return {f"{name}_timeout_multiplier": value for name, value in told.model_dump().items()}


def _agent(lock: Lock, condition: str) -> dict[str, Any]:
    # The condition stands where Harbor has the model: conditions of one model must not be mixed.
    return {"name": f"apiary-{lock.agent}", "model_name": condition}


def _trial(
    lock: Lock, cell: CellResults, record: TryRecord, names: Names, job: str, job_id: UUID
) -> Trial:
    task = record.task.rpartition("/")[2]
    name = names.make(task, record.attempt)
    config = {
        "schema_version": 1,
        "task": {"path": f"tasks/{task}", "source": _source(record)},
        "trial_name": name,
        "trials_dir": f"jobs/{job}",
        **_multipliers(lock),
        "agent": _agent(lock, cell.condition),
        "job_id": str(job_id),
    }
    usage = record.usage
    return Trial(
        name,
        record,
        config,
        {
            "schema_version": 1,
            "id": str(uuid5(SPACE, record.attempt)),
            "task_name": record.task,
            "trial_name": name,
            "trial_uri": f"jobs/{job}/{name}",
            "task_id": {"path": f"tasks/{task}"},
            "source": _source(record),
            "task_checksum": record.digests.task,
            "config": config,
            "agent_info": {
                "name": f"apiary-{lock.agent}",
                "version": lock.versions.apiary or "unknown",
                "model_info": {"name": cell.condition, "provider": None},
            },
            "agent_result": {
                "n_input_tokens": usage.input_tokens,
                "n_cache_tokens": usage.cached_input_tokens,
                "n_output_tokens": usage.output_tokens,
                # An unknown cost is not zero, and a sum with one is not known either.
                "cost_usd": None if usage.unknown_cost_calls else usage.cost_usd,
                "metadata": _metadata(record),
            },
            "verifier_result": _rewards(record),
            "verifier_environment_mode": "separate" if record.freeze == "evidence" else "shared",
            "exception_info": _exception(record),
            "started_at": record.started_at,
            "finished_at": record.ended_at,
            **_times(record),
        },
    )


def _source(record: TryRecord) -> str:
    """The data set, by which Harbor groups: the namespace of the task's name."""
    return record.task.partition("/")[0]


def _metadata(record: TryRecord) -> dict[str, Any]:
    """What Harbor has no field for."""
    return {
        "apiary": {
            "sweep": record.sweep,
            "attempt": record.attempt,
            "index": record.index,
            "try": record.try_,
            "condition_digest": record.digests.condition,
            "layer": record.layer,
            "verdict": record.verdict.value,
            "blame": record.blame.value,
            "cause": record.cause.value,
            "calls": record.usage.calls,
            "unknown_cost_calls": record.usage.unknown_cost_calls,
        }
    }


def _rewards(record: TryRecord) -> dict[str, Any] | None:
    """A reward of an invalid try is none: it says nothing of the model."""
    if record.verdict is Verdict.INVALID or record.reward is None:
        return None
    return {"rewards": {"reward": record.reward, **record.dimensions}}


def _exception(record: TryRecord) -> dict[str, Any] | None:
    if record.verdict is not Verdict.INVALID and record.cause not in SCORED_EXCEPTIONS:
        return None
    return {
        "exception_type": exception_name(record.cause),
        "exception_message": f"{record.blame}: {record.cause} in {record.phase}: {record.detail}",
        "exception_traceback": record.traceback or "",
        "occurred_at": record.ended_at,
    }


def exception_name(cause: Cause) -> str:
    """The type under which Harbor counts a cause."""
    ours = "".join(word.capitalize() for word in cause.value.split("_"))
    return EXCEPTIONS.get(cause, f"{ours}Error")


def _times(record: TryRecord) -> dict[str, Any]:
    """Harbor's four parts of a trial, of phases that follow one another from its start."""
    parts = {
        "environment_setup": ("prepare", "provision"),
        "agent_setup": ("launch",),
        "agent_execution": ("drive",),
        "verifier": ("verify",),
    }
    spans: dict[str, tuple[datetime, datetime]] = {}
    at = datetime.fromisoformat(record.started_at)
    for phase in Phase:
        took = timedelta(seconds=record.phase_seconds.get(phase.value, 0.0))
        if phase.value in record.phase_seconds:
            spans[phase.value] = (at, at + took)
        at += took
    told: dict[str, Any] = {}
    for part, phases in parts.items():
        there = [spans[phase] for phase in phases if phase in spans]
        told[part] = None
        if there:
            begin, end = there[0][0], there[-1][1]
            told[part] = {"started_at": begin.isoformat(), "finished_at": end.isoformat()}
    return told


def _result(
    lock: Lock, attempts: Sequence[AttemptResults], trials: Sequence[Trial], job_id: UUID
) -> dict[str, Any]:
    open_ = sum(attempt.open for attempt in attempts)
    ends = [trial.record.ended_at for trial in trials]
    usages = [trial.record.usage for trial in trials]
    errored = [trial for trial in trials if trial.result["exception_info"] is not None]
    last = max(ends, default=lock.started_at)
    return {
        "schema_version": 1,
        "id": str(job_id),
        "started_at": lock.started_at,
        "updated_at": last,
        "finished_at": None if open_ else last,
        "n_total_trials": len(attempts),
        "stats": {
            "n_completed_trials": len(trials),
            "n_errored_trials": len(errored),
            "n_cancelled_trials": sum(trial.record.blame is Blame.OPERATOR for trial in errored),
            "n_running_trials": 0,
            "n_pending_trials": len(attempts) - len(trials),
            "n_retries": sum(max(0, len(attempt.tries) - 1) for attempt in attempts),
            "evals": dict(_evals(trials)),
            "n_input_tokens": sum(each.input_tokens for each in usages),
            "n_cache_tokens": sum(each.cached_input_tokens for each in usages),
            "n_output_tokens": sum(each.output_tokens for each in usages),
            "cost_usd": None
            if any(each.unknown_cost_calls for each in usages)
            else math.fsum(each.cost_usd for each in usages),
        },
    }


def _evals(trials: Iterable[Trial]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Harbor's statistics of each agent, condition and data set."""
    groups: dict[str, list[Trial]] = {}
    for trial in trials:
        agent = trial.config["agent"]
        key = f"{agent['name']}__{agent['model_name']}__{trial.result['source']}"
        groups.setdefault(key, []).append(trial)
    for key, group in groups.items():
        rewards: dict[str, dict[float, list[str]]] = {}
        exceptions: dict[str, list[str]] = {}
        for trial in group:
            told = trial.result["verifier_result"]
            for name, value in (told["rewards"] if told else {}).items():
                rewards.setdefault(name, {}).setdefault(value, []).append(trial.name)
            if raised := trial.result["exception_info"]:
                exceptions.setdefault(raised["exception_type"], []).append(trial.name)
        valid = [trial.record.reward for trial in group if trial.result["verifier_result"]]
        scores = [each for each in valid if each is not None]
        yield (
            key,
            {
                "n_trials": len(scores),
                "n_errors": sum(map(len, exceptions.values())),
                # Over what counts: an invalid trial is no zero.
                "metrics": [{"mean": math.fsum(scores) / len(scores)}] if scores else [],
                "pass_at_k": {},
                "reward_stats": rewards,
                "exception_stats": exceptions,
            },
        )


class Names:
    """Names of trials that are used once each."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    def make(self, task: str, attempt: str) -> str:
        """``<task>__<attempt>``, with as many digits of the attempt as it takes."""
        for digits in range(ID_DIGITS, len(attempt) + 1):
            name = f"{task[:NAME_SIGNS].rstrip('_-')}__{attempt[:digits]}"
            if name not in self._used:
                break
        else:
            raise AssertionError(f"two attempts have the id {attempt}")
        self._used.add(name)
        return name
