"""What a model does to answer each kind of request: the solver's scripts.

A script recognises its request by the facts that must stand in it, whatever its wording.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from workers.model import answers
from workers.model.play import Output, Post, Script
from workers.model.wake import Wake

SENT = "The answer was sent."
NOT_SENT = "The answer could not be sent."
WAITING = "I am waiting for the reports."
NOTHING_TO_DO = "There is nothing to do."
UNKNOWN = "I do not know how to do this."

_PATH = re.compile(r"(?:~|(?<![\w.~])/)[\w./-]*/SKILL\.md")
_TICKED = re.compile(r"`([^`\n]+)`")


def solve(wakes: Sequence[Wake]) -> Script:
    """Answers every request among the messages, one after the other."""
    words = NOTHING_TO_DO
    for wake in wakes:
        if not answers.is_report(wake.text):
            words = yield from script_of(wake, wakes)
    return words


def script_of(wake: Wake, wakes: Sequence[Wake]) -> Script:
    """The script for one request."""
    for content_of in _CONTENTS:
        if (content := content_of(wake.text)) is not None:
            return _answer(wake, content)
    if answers.wants_synthesis(wake.text):
        return _synthesise(wake, [one.text for one in wakes if answers.is_report(one.text)])
    for recognise, script in _ERRANDS:
        if recognise(wake.text):
            return script(wake)
    return _answer(wake, UNKNOWN)


_CONTENTS: tuple[Callable[[str], str | None], ...] = (
    answers.growth,
    answers.yearly_price,
    answers.release_update,
    answers.bot_status,
    answers.labelled_sum,
)
"""Requests that hold all that their answer needs."""


def reply(wake: Wake, content: str) -> Post:
    """An answer in the thread of the message, handed back to who sent it."""
    return Post(wake.channel, content, reply_to=wake.event, mentions=(wake.sender,))


def _answer(wake: Wake, content: str) -> Script:
    return _words((yield reply(wake, content)))


def _synthesise(wake: Wake, reports: Sequence[str]) -> Script:
    content = answers.synthesis(reports)
    if content is None:
        return WAITING
    return (yield from _answer(wake, content))


def _recall(wake: Wake) -> Script:
    """Lists the memories, reads those that may hold it, answers with the one figure."""
    listing = yield "buzz mem ls"
    slugs = [line.split("\t")[0] for line in listing.stdout.splitlines() if line.strip()]
    likely = [slug for slug in slugs if "customer" in slug] or slugs
    if not likely:
        return (yield from _answer(wake, UNKNOWN))
    read = " && ".join(f"buzz mem get {shlex.quote(slug)} && echo" for slug in likely)
    values = yield read
    content = answers.april_total(values.stdout.splitlines())
    return (yield from _answer(wake, content or UNKNOWN))


def _read_path(wake: Wake) -> Script:
    """Reads exactly the file that the request names."""
    found = _PATH.search(wake.text)
    path = found[0] if found is not None else ""
    home = '"$HOME"/' if path.startswith("~/") else ""
    file = yield "cat " + home + shlex.quote(path.removeprefix("~/"))
    return (yield from _answer(wake, answers.skill_facts(file.stdout) or UNKNOWN))


def _create_channel(wake: Wake) -> Script:
    """Finds the keys, makes the channel, adds its members with their roles."""
    names = _TICKED.findall(wake.text)
    members = {name: "bot" if "-bot-" in name else "member" for name in names[1:]}
    found = yield "buzz users get --name benchmark-"
    keys = {str(_name_of(row)): str(row.get("pubkey")) for row in _rows(found)}
    words = ["--name", names[0], "--type", "stream", "--visibility", "private", "--ttl", "3600"]
    made = yield shlex.join(["buzz", "channels", "create", *words])
    channel = str(_object(made).get("channel_id", ""))
    add = ["buzz", "channels", "add-member", "--channel", channel, "--pubkey"]
    yield " && ".join(
        shlex.join([*add, keys.get(name, ""), "--role", role]) for name, role in members.items()
    )
    return (yield from _answer(wake, f"The channel {names[0]} is ready."))


def _find_person(wake: Wake) -> Script:
    """Tells two people of one name apart by the code in their profile."""
    code = re.search(r"\b[A-Z]{3,}-\d+\b", wake.text)
    name = re.search(r"display name ([A-Z]\w+(?: [A-Z]\w+)+)", wake.text)
    message = next((text for text in _TICKED.findall(wake.text) if " " in text), "")
    query = name[1] if name is not None else ""
    found = yield shlex.join(["buzz", "users", "get", "--name", query])
    wanted = code[0] if code is not None else ""
    keys = [row.get("pubkey") for row in _rows(found) if wanted in str(row.get("about"))]
    if len(keys) != 1:
        return (yield from _answer(wake, UNKNOWN))
    yield Post(wake.channel, message, reply_to=wake.event, mentions=(str(keys[0]),))
    return (yield from _answer(wake, "It was sent."))


_ERRANDS: tuple[tuple[Callable[[str], bool], Callable[[Wake], Script]], ...] = (
    (lambda text: "April 2024" in text and "customers" in text, _recall),
    (lambda text: "CHECK_ID" in text and _PATH.search(text) is not None, _read_path),
    (lambda text: "channel" in text and "benchmark-user-" in text, _create_channel),
    (lambda text: "routing code" in text, _find_person),
)
"""Requests that need something looked up or done first."""


def _words(output: Output) -> str:
    """The script's last words after it sent a message."""
    return SENT if _object(output).get("accepted") is True else NOT_SENT


def _rows(output: Output) -> Iterator[dict[str, Any]]:
    """The rows of a command that prints a JSON array."""
    try:
        told = json.loads(output.stdout)
    except ValueError:
        return
    if isinstance(told, list):
        yield from (row for row in told if isinstance(row, dict))


def _object(output: Output) -> dict[str, Any]:
    """What a command that prints a JSON object printed."""
    try:
        told = json.loads(output.stdout)
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


def _name_of(row: dict[str, Any]) -> object:
    return row.get("display_name") or row.get("name")
