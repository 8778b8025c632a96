"""An accepted transcript of every task: the first of its proof, as evidence."""

from __future__ import annotations

import copy
import functools
from typing import Any

from scheduler.dataset import transcript
from scheduler.dataset.proof import Proof, load_proof
from scheduler.dataset.transcript import AGENT, CHANNEL, by_agent, derive, event_id, key_of
from tests.manifests.task_verifiers import TASKS, config, fixture, instruction
from workers.contract.task import Task

__all__ = [
    "AGENT",
    "CHANNEL",
    "Evidence",
    "Message",
    "accepted",
    "by_agent",
    "derive",
    "event_id",
    "key_of",
    "proof",
    "scene",
    "task_of",
    "user_name",
]

Evidence = dict[str, Any]
Message = dict[str, Any]


@functools.cache
def task_of(name: str) -> Task:
    """A task as its files have it; its digest is not looked at."""
    return Task(
        digest="", config=config(name), instruction=instruction(name), fixture=fixture(name)
    )


@functools.cache
def proof(name: str) -> Proof:
    """A task's proof."""
    return load_proof(TASKS / name)


def user_name(name: str) -> str:
    """The trial user's display name."""
    return transcript.user_name(task_of(name))


def accepted(name: str) -> Evidence:
    """Evidence that the task's verifier gives a reward of 1."""
    return copy.deepcopy(_accepted(name))


@functools.cache
def _accepted(name: str) -> Evidence:
    return transcript.evidence_of(task_of(name), proof(name).accepted[0])


def scene(name: str) -> Evidence:
    """Evidence of a trial in which the agent has not spoken."""
    return transcript.scene(task_of(name))
