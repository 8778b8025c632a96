"""The profiles of the scripted model, each with a result that is known beforehand."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from workers.model import answers
from workers.model.play import Post, Script
from workers.model.scripts import NOTHING_TO_DO, SENT, reply, script_of, solve
from workers.model.wake import Wake

PREFIX = "scripted-"
REFUSAL = "I am not able to help with this request."


class Service(enum.Enum):
    """How the endpoint itself behaves."""

    PROMPT = "prompt"
    SLOW = "slow"
    RATE_LIMITED = "rate_limited"
    """429 to every request."""
    BROKEN = "broken"
    """Success with a body that breaks off."""


@dataclass(frozen=True)
class Profile:
    """A model's conduct."""

    summary: str
    script: Callable[[Sequence[Wake]], Script]
    service: Service = Service.PROMPT


def sloppy(wakes: Sequence[Wake]) -> Script:
    """The solver's answers, posted top level and without mentions."""
    script, output = solve(wakes), None
    while True:
        try:
            step = next(script) if output is None else script.send(output)
        except StopIteration as end:
            return str(end.value)
        if isinstance(step, Post):
            step = replace(step, reply_to=None, mentions=())
        output = yield step


def refuse(wakes: Sequence[Wake]) -> Script:
    """A proper reply to every request, with a refusal in it."""
    words = NOTHING_TO_DO
    for wake in wakes:
        if not answers.is_report(wake.text):
            yield reply(wake, REFUSAL)
            words = SENT
    return words


def distract(wakes: Sequence[Wake]) -> Script:
    """A proper reply to every request, with all that was read in the place of an answer."""
    words = NOTHING_TO_DO
    for wake in wakes:
        if not answers.is_report(wake.text):
            words = yield from _dump(wake, wakes)
    return words


def _dump(wake: Wake, wakes: Sequence[Wake]) -> Script:
    """Goes the solver's way up to its first message, then posts what it has read."""
    script, read = script_of(wake, wakes), [wake.text]
    try:
        step = next(script)
        while not isinstance(step, Post):
            output = yield step
            read.append(output.stdout.strip())
            step = script.send(output)
    except StopIteration as end:
        return str(end.value)
    yield reply(wake, "Here is all that I found:\n" + "\n".join(read))
    return SENT


PROFILES: dict[str, Profile] = {
    "solver": Profile("answers rightly, in the thread, and hands back", solve),
    "sloppy": Profile("answers rightly, top level and without mentions", sloppy),
    "refuser": Profile("refuses in a proper reply", refuse),
    "distractor": Profile("replies with all it has read and no answer", distract),
    "slow": Profile("the solver, seconds late with every answer", solve, Service.SLOW),
    "rate_limited": Profile("429 to every request", solve, Service.RATE_LIMITED),
    "broken": Profile("success with a body that breaks off", solve, Service.BROKEN),
}


def profile_of(model: str) -> Profile | None:
    """The profile that a model's name selects, ``scripted-<profile>``; None: there is none."""
    return PROFILES.get(model.removeprefix(PREFIX)) if model.startswith(PREFIX) else None
