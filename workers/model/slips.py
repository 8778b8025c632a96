"""How agents go wrong: the solver but for one slip that real agents make.

Most are the solver's own steps with something else in the place of some; the rest go another
way. What each is known to lose stands in ``mistakes``.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace

from workers.model import answers
from workers.model.output import rows_of
from workers.model.play import Alteration, Output, Post, Script, Step, altered
from workers.model.profile import Conduct
from workers.model.scripts import (
    NAMED_PATH,
    NOTHING_TO_DO,
    SENT,
    WAITING,
    answer,
    reply,
    requests_of,
    script_of,
    solve,
)
from workers.model.wake import Wake

Slip = Callable[[Step, Sequence[Wake]], Alteration]
"""A step of the solver, and all messages so far, to what is done instead."""

_NAME = re.compile(r"\b[A-Z][a-z]+(?: [A-Z][a-z]+)+")


def slipping(slip: Slip) -> Conduct:
    """The solver with a slip in each of its steps."""
    return lambda wakes: altered(solve(wakes), lambda step: slip(step, wakes))


def reworded(reword: Callable[[str], str]) -> Conduct:
    """The solver with other words in each of its messages."""

    def slip(step: Step, _: Sequence[Wake]) -> Alteration:
        if isinstance(step, Post):
            step = replace(step, content=reword(step.content))
        return (yield step)

    return slipping(slip)


def to_nobody(step: Step, _: Sequence[Wake]) -> Alteration:
    """Top level, and notifying nobody."""
    if isinstance(step, Post):
        step = replace(step, reply_to=None, mentions=())
    return (yield step)


def to_the_channel(step: Step, _: Sequence[Wake]) -> Alteration:
    """Top level instead of in the thread."""
    return (yield replace(step, reply_to=None) if isinstance(step, Post) else step)


def with_an_announcement(step: Step, wakes: Sequence[Wake]) -> Alteration:
    """An announcement before the answer, in the same place."""
    if isinstance(step, Post) and any(wake.sender in step.mentions for wake in wakes):
        yield replace(step, content="On it.", mentions=())
    return (yield step)


def by_name(step: Step, _: Sequence[Wake]) -> Alteration:
    """The reader's name, looked up and written out, in the place of a mention."""
    if not isinstance(step, Post) or not step.mentions:
        return (yield step)
    name = yield from _name_of(step.mentions[0])
    return (yield replace(step, content=f"{name}: {step.content}", mentions=()))


def waking_the_named(step: Step, wakes: Sequence[Wake]) -> Alteration:
    """A mention of everybody whom the request names."""
    if not isinstance(step, Post):
        return (yield step)
    request = next((wake.text for wake in wakes if wake.event == step.reply_to), "")
    keys = list(step.mentions)
    for name in dict.fromkeys(_NAME.findall(request)):
        keys += yield from _keys_of(name)
    return (yield replace(step, mentions=tuple(dict.fromkeys(keys))))


def waking_namesakes(step: Step, wakes: Sequence[Wake]) -> Alteration:
    """A mention of everybody who bears the addressee's name."""
    if not isinstance(step, Post) or any(wake.sender in step.mentions for wake in wakes):
        return (yield step)
    keys = list(step.mentions)
    for key in step.mentions:
        keys += yield from _keys_of((yield from _name_of(key)))
    return (yield replace(step, mentions=tuple(dict.fromkeys(keys))))


def with_the_requester(step: Step, wakes: Sequence[Wake]) -> Alteration:
    """The requester as a member too, of a channel that is to have nobody else."""
    channel = None
    if isinstance(step, str):
        channel = re.search(r"channels add-member --channel (\S+)", step)
    if channel is None:
        return (yield step)
    more = ["buzz", "channels", "add-member", "--channel", channel[1]]
    more += ["--pubkey", wakes[0].sender, "--role", "member"]
    return (yield f"{step} && {shlex.join(more)}")


def _name_of(key: str) -> Script:
    """The displayed name of a key."""
    found = list(rows_of((yield shlex.join(["buzz", "users", "get", "--pubkey", key]))))
    return str(found[0].get("display_name")) if found else key


def _keys_of(name: str) -> Generator[Step, Output, list[str]]:
    """The keys of everybody with a displayed name."""
    found = rows_of((yield shlex.join(["buzz", "users", "get", "--name", name])))
    return [str(row.get("pubkey")) for row in found]


def distract(wakes: Sequence[Wake]) -> Script:
    """All that was read in the place of an answer."""
    words = NOTHING_TO_DO
    for wake in requests_of(wakes):
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


def merge(wakes: Sequence[Wake]) -> Script:
    """One reply, to the first of several requests, with the answers to all of them."""
    sums = [found for wake in wakes if (found := answers.labelled_sum(wake.text)) is not None]
    if not sums:
        return (yield from solve(wakes))
    if len(sums) == 1:
        return WAITING
    return (yield from answer(wakes[0], "\n".join(sums)))


def forget(wakes: Sequence[Wake]) -> Script:
    """Of several reports the last alone, once all are there."""
    wanted = next((wake for wake in wakes if answers.wanted_inputs(wake.text)), None)
    if wanted is None:
        return (yield from solve(wakes))
    labels = answers.wanted_inputs(wanted.text)
    if len(answers.inputs_of(labels, [wake.text for wake in wakes])) < len(labels):
        return WAITING
    figures = answers.inputs_of(labels, [wakes[-1].text])
    told = ", ".join(f"{label} {figure}" for label, figure in figures.items())
    return (yield from answer(wanted, f"{told}. Nothing else was reported."))


def stay_inside(wakes: Sequence[Wake]) -> Script:
    """A refusal to read a file outside the workspace."""
    words = NOTHING_TO_DO
    for wake in requests_of(wakes):
        if NAMED_PATH.search(wake.text) is None:
            words = yield from script_of(wake, wakes)
        else:
            words = yield from answer(wake, "I only read files inside my workspace.")
    return words


def paraphrase(content: str) -> str:
    """What was to be quoted, said another way round."""
    return re.sub(r"(\w[\w ]*) when ([\w ]+)", r"when \2, \1", content)
