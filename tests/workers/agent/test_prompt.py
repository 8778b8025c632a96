from __future__ import annotations

import pytest

from workers.agent import prompt
from workers.agent.prompt import Channel, Profile, Surroundings
from workers.nostr.event import Event

ME, USER, BOT, OTHER = "1" * 64, "2" * 64, "3" * 64, "4" * 64
ROOT, PARENT = "a" * 64, "b" * 64
CHANNEL = Channel("45efb0ba-a515-450f-b753-7411dfd6b163", "trial", "about it")

ROWS = {
    "visibility": "Nobody sees your reasoning, your tool calls or the text that you write here.",
    "duty to answer": "A request from a person always gets a reply",
    "no empty acknowledgement": "never send a message that only acknowledges",
    "callback": "When delegated work is finished, the message with the result mentions whoever "
    "gave it to you: pass the key of the event's `From` line with `--mention`.",
    "callback on completion only": "Mention them in that message and not in any on the way there.",
    "exact names": "only if it is the exact displayed name of a channel member, without bold, "
    "italics or backticks around it",
    "known keys": "pass the right key with `--mention`",
    "who must act": "Mention only those who must act or were waiting for this.",
    "narrative": "write the plain name without `@`, and do not pass the key",
    "proof of delivery": "`mention_pubkeys` lists exactly who was notified: that is proof enough",
    "non-members": "Sending never adds anyone to a channel.",
    "threading": "add `--reply-to` with the reply destination that `[Context]` names",
    "threading without destination": "or else the Event ID of the message that you answer",
    "flat work": "Work for a person stays flat",
    "nested agent threads": "Threads among agents alone may nest",
    "newlines": "goes through standard input, with `--content -` and a quoted here-document, so "
    "that its line breaks are real",
    "sessions": "What belongs to another channel belongs to that channel's session.",
    "resumption": "carry on from it silently",
    "paths": "A path that the request names is read where it is, also outside the working "
    "directory",
    "memory": "Keep it small, only who you are and what always holds; details go to entries of "
    "their own below `mem/`.",
}


@pytest.mark.parametrize("row", ROWS)
def test_the_base_prompt_teaches(row: str) -> None:
    assert ROWS[row] in prompt.BASE_PROMPT.read_text(encoding="utf-8")


def message(author: str = USER, *tags: tuple[str, ...], number: int = 7) -> Event:
    return Event(
        f"{number:064x}",
        author,
        1_700_000_000 + number,
        9,
        (("h", CHANNEL.id), *tags, ("auth", "o", "", "s")),
        "please",
        "0" * 128,
    )


def around(**profiles: Profile) -> Surroundings:
    keys = {"user": USER, "bot": BOT, "me": ME}
    return Surroundings(CHANNEL, {keys[name]: profile for name, profile in profiles.items()})


AGENT_USER = around(user=Profile("Jane Doe", True), me=Profile("solo-1", True))
REPLY = (("e", ROOT, "", "root"), ("e", PARENT, "", "reply"))


def test_a_top_level_message_among_attested_identities_names_no_destination() -> None:
    text = prompt.turn_prompt([message(USER, ("p", ME))], ME, AGENT_USER)
    assert text == (
        "[Context]\n"
        "Scope: channel\n"
        f"Channel: trial (#{CHANNEL.id})\n"
        "Description: about it\n"
        "\n"
        "[Buzz event: mention]\n"
        f"Event ID: {7:064x}\n"
        f"Channel: trial (#{CHANNEL.id})\n"
        "Kind: 9\n"
        f"From: Jane Doe ({USER})\n"
        "Time: 2023-11-14T22:13:27Z\n"
        "Content: please\n"
        f'Tags: [["h", "{CHANNEL.id}"], ["p", "{ME}"]]\n'
        f"Parsed: a top-level message; mentions solo-1 ({ME})"
    )


def test_a_thread_reply_names_root_and_parent() -> None:
    text = prompt.turn_prompt([message(USER, *REPLY)], ME, AGENT_USER)
    assert f"Scope: thread\nChannel: trial (#{CHANNEL.id})" in text
    assert f"Thread root: {ROOT}\nParent: {PARENT}\n" in text
    assert "--reply-to" not in text


@pytest.mark.parametrize(
    ("event", "known", "target"),
    [
        (message(USER), {USER: Profile("u", True)}, None),
        (message(USER), {USER: Profile("u", False)}, f"{7:064x}"),
        (message(USER), {}, f"{7:064x}"),
        (message(USER, *REPLY), {USER: Profile("u", False)}, ROOT),
        (message(BOT, ("p", USER)), {BOT: Profile("b", True)}, f"{7:064x}"),
        (message(BOT, ("p", ME)), {BOT: Profile("b", True)}, None),
        (message(BOT, ("p", OTHER)), {BOT: Profile("", True), OTHER: Profile("", True)}, None),
    ],
)
def test_a_person_s_affair_has_a_destination(
    event: Event, known: dict[str, Profile], target: str | None
) -> None:
    assert prompt.reply_target(event, ME, known) == target
    text = prompt.turn_prompt([event], ME, Surroundings(CHANNEL, known))
    assert ("--reply-to" in text) == (target is not None)
    assert target is None or f"--reply-to {target}" in text


def test_several_events_each_with_its_id_and_the_last_one_deciding() -> None:
    events = [message(USER, number=1), message(USER, *REPLY, number=2)]
    text = prompt.turn_prompt(events, ME, AGENT_USER)
    assert "[Buzz events \u2014 2 events]" in text
    assert text.index(f"Event ID: {1:064x}") < text.index(f"Event ID: {2:064x}")
    assert "Scope: thread" in text


def test_the_thread_so_far_is_shown() -> None:
    there = Surroundings(CHANNEL, AGENT_USER.profiles, (message(USER, number=3),))
    text = prompt.turn_prompt([message(USER, *REPLY)], ME, there)
    assert f"[Thread Context (1 messages)]\n2023-11-14T22:13:23Z Jane Doe ({USER}): please" in text


def test_added_events_carry_no_context() -> None:
    text = prompt.added_prompt([message(USER)], AGENT_USER)
    assert "[Context]" not in text
    assert f"Event ID: {7:064x}" in text


def test_a_time_beyond_every_calendar_does_no_harm() -> None:
    event = Event("0" * 64, USER, 2**63 - 1, 9, (), "x", "0" * 128)
    assert str(2**63 - 1) in prompt.turn_prompt([event], ME, AGENT_USER)


def test_the_system_prompt_leaves_out_what_is_empty() -> None:
    full = prompt.system_prompt("base\n", "persona\n", "/app", "I am I.")
    assert full == (
        "[Base]\nbase\n\n[Workspace]\nWorking directory: /app\n\n"
        "[Agent Instructions]\npersona\n\n[Agent Memory \u2014 core]\nI am I."
    )
    assert prompt.system_prompt("", "persona", "/", None) == "[Agent Instructions]\npersona"
    bare = prompt.system_prompt("b", " ", "/", None)
    assert bare == "[Base]\nb\n\n[Workspace]\nWorking directory: /"
