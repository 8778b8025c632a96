"""What a model does to answer each kind of request: the solver's scripts.

A script recognises its request by the facts that must stand in it, whatever its wording. What
the request does not say it reads through the agent's tools: history, profiles, memories, files.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence

from workers.model import answers
from workers.model.output import object_of, rows_of
from workers.model.play import Output, Post, Script
from workers.model.wake import Wake

SENT = "The answer was sent."
NOT_SENT = "The answer could not be sent."
WAITING = "I am waiting for the others."
NOTHING_TO_DO = "There is nothing to do."
UNKNOWN = "I do not know how to do this."

NAMED_PATH = re.compile(r"(?:~|(?<![\w.~])/)[\w./-]*/SKILL\.md")
_TICKED = re.compile(r"`([^`\n]+)`")
_COUNTS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
_SECONDS = {"minute": 60, "hour": 3600, "day": 86_400}


def solve(wakes: Sequence[Wake]) -> Script:
    """Answers every request among the messages, one after the other."""
    words = NOTHING_TO_DO
    for wake in requests_of(wakes):
        words = yield from script_of(wake, wakes)
    return words


def requests_of(wakes: Sequence[Wake]) -> Iterator[Wake]:
    """The messages that ask for something, which reports for somebody's formula do not."""
    labels = tuple(label for wake in wakes for label in answers.wanted_inputs(wake.text))
    for wake in wakes:
        if answers.wanted_inputs(wake.text) or not answers.inputs_of(labels, [wake.text]):
            yield wake


def script_of(wake: Wake, wakes: Sequence[Wake]) -> Script:
    """The script for one request."""
    for content_of in _CONTENTS:
        if (content := content_of(wake.text)) is not None:
            return answer(wake, content)
    if answers.wanted_inputs(wake.text):
        return _synthesise(wake, looks=len(wakes))
    for recognise, script in _ERRANDS:
        if recognise(wake.text):
            return script(wake)
    return answer(wake, UNKNOWN)


_CONTENTS: tuple[Callable[[str], str | None], ...] = (
    answers.growth,
    answers.yearly_price,
    answers.text_below,
    answers.bot_status,
    answers.labelled_sum,
)
"""Requests that hold all that their answer needs."""


def reply(wake: Wake, content: str) -> Post:
    """An answer in the thread of the message, handed back to who sent it."""
    return Post(wake.channel, content, reply_to=wake.event, mentions=(wake.sender,))


def answer(wake: Wake, content: str) -> Script:
    """Sends an answer and says what became of it."""
    return _words((yield reply(wake, content)))


def _synthesise(wake: Wake, looks: int) -> Script:
    """Reads the request's thread, once for each message so far, until it holds all reports."""
    thread = ["buzz", "messages", "thread", "--channel", wake.channel, "--event", wake.event]
    for _ in range(looks):
        read = rows_of((yield shlex.join(thread)))
        reports = [str(row.get("content")) for row in read if row.get("id") != wake.event]
        content = answers.synthesis(wake.text, reports)
        if content is not None:
            return (yield from answer(wake, content))
    return WAITING


def _recall(wake: Wake) -> Script:
    """Lists the memories, reads those that may hold it, answers with the one figure."""
    listing = yield "buzz mem ls"
    slugs = [line.split("\t")[0] for line in listing.stdout.splitlines() if line.strip()]
    likely = [slug for slug in slugs if "customer" in slug] or slugs
    if not likely:
        return (yield from answer(wake, UNKNOWN))
    read = " && ".join(f"buzz mem get {shlex.quote(slug)} && echo" for slug in likely)
    values = yield read
    content = answers.total_of_month(wake.text, values.stdout.splitlines())
    return (yield from answer(wake, content or UNKNOWN))


def _read_path(wake: Wake) -> Script:
    """Reads exactly the file that the request names."""
    found = NAMED_PATH.search(wake.text)
    path = found[0] if found is not None else ""
    home = '"$HOME"/' if path.startswith("~/") else ""
    file = yield "cat " + home + shlex.quote(path.removeprefix("~/"))
    return (yield from answer(wake, answers.skill_facts(file.stdout) or UNKNOWN))


def _create_channel(wake: Wake) -> Script:
    """Finds the keys, makes the channel, adds its members with their roles."""
    names = _TICKED.findall(wake.text)
    roles = dict(_wanted_roles(wake.text))
    found = yield shlex.join(["buzz", "users", "get", "--name", _shared_start(roles)])
    keys = {
        str(row.get("display_name") or row.get("name")): str(row.get("pubkey"))
        for row in rows_of(found)
    }
    made = yield shlex.join(["buzz", "channels", "create", *_channel_words(names[0], wake.text)])
    channel = str(object_of(made).get("channel_id", ""))
    add = ["buzz", "channels", "add-member", "--channel", channel, "--pubkey"]
    yield " && ".join(
        shlex.join([*add, keys.get(name, ""), "--role", role]) for name, role in roles.items()
    )
    return (yield from answer(wake, f"The channel {names[0]} is ready."))


def _wanted_roles(text: str) -> Iterator[tuple[str, str]]:
    """Name and role of everybody whom a line gives a role."""
    for line in text.splitlines():
        role = re.search(r"\brole (\w+)", line)
        if role is not None:
            yield from ((name, role[1]) for name in _TICKED.findall(line))


def _shared_start(names: Iterable[str]) -> str:
    """What all names begin with; one look-up finds them all."""
    first, *others = names or [""]
    while not all(name.startswith(first) for name in others):
        first = first[:-1]
    return first


def _channel_words(name: str, text: str) -> Iterator[str]:
    """The options of the channel that a request describes."""
    kind = re.search(r"\b(stream|forum)\b", text)
    lifetime = re.search(r"\b(\w+) (minute|hour|day)s?\b", text)
    yield from ("--name", name, "--type", kind[1] if kind is not None else "stream")
    yield from ("--visibility", "private" if re.search(r"\bprivate\b", text) else "open")
    if lifetime is not None:
        count = int(lifetime[1]) if lifetime[1].isdecimal() else _COUNTS.get(lifetime[1].lower(), 1)
        yield from ("--ttl", str(count * _SECONDS[lifetime[2]]))


def _find_person(wake: Wake) -> Script:
    """Tells two people of one name apart by the code in their profile."""
    code = re.search(r"\b[A-Z]{3,}-\d+\b", wake.text)
    name = re.search(r"display name ([A-Z]\w+(?: [A-Z]\w+)+)", wake.text)
    message = next((text for text in _TICKED.findall(wake.text) if " " in text), "")
    query = name[1] if name is not None else ""
    found = yield shlex.join(["buzz", "users", "get", "--name", query])
    wanted = code[0] if code is not None else ""
    keys = [row.get("pubkey") for row in rows_of(found) if wanted in str(row.get("about"))]
    if len(keys) != 1:
        return (yield from answer(wake, UNKNOWN))
    yield Post(wake.channel, message, reply_to=wake.event, mentions=(str(keys[0]),))
    return (yield from answer(wake, "It was sent."))


_ERRANDS: tuple[tuple[Callable[[str], bool], Callable[[Wake], Script]], ...] = (
    (lambda text: "customers" in text and "total" in text, _recall),
    (lambda text: "CHECK_ID" in text and NAMED_PATH.search(text) is not None, _read_path),
    (lambda text: "channel called `" in text and " role " in text, _create_channel),
    (lambda text: "routing code" in text, _find_person),
)
"""Requests that need something looked up or done first."""


def _words(output: Output) -> str:
    """The script's last words after it sent a message."""
    return SENT if object_of(output).get("accepted") is True else NOT_SENT
