"""``buzz messages``: send, read, find, change."""

from __future__ import annotations

from typing import Any

from workers.agent.commands import checks, mentions, recipients
from workers.agent.commands.arguments import Arguments, Command, Option
from workers.agent.commands.call import Call, event_rows, write_result
from workers.agent.commands.errors import CommandError, user_error
from workers.agent.surroundings import read_profile
from workers.nostr.event import Event
from workers.nostr.tags import first, reply_tags, thread_of, values

MESSAGE_KINDS = (9, 40002, 40008, 45001, 45003)
SEARCH_KINDS = (9, 40002, 45001, 45003)
REPLY_KINDS = (9, 40002, 40003, 40008, 45003)
EDIT_KIND = 40003
DELETE_KIND = 9005
VOTE_KIND = 45002
MAX_CONTENT_BYTES = 65536
GET_LIMIT = 200
SEARCH_LIMIT = 100
THREAD_LIMIT = 500


def send(call: Call, args: Arguments) -> None:
    """Sends a message; see the mention rules in ``mentions``."""
    channel = checks.channel_id(args.text("--channel"))
    parent = args.optional("--reply-to")
    parent = None if parent is None else checks.event_id(parent)
    explicit = mentions.merge(checks.any_key(key) for key in args.all("--mention"))
    recipients.check_count(explicit)
    if args.has("--file"):
        raise user_error("--file is not offered here: say in the text where the file is")
    content = args.text("--content")
    if content == "-":
        content = call.stdin_text()
    if len(content.encode("utf-8", "replace")) > MAX_CONTENT_BYTES:
        raise user_error(f"a message has at most {MAX_CONTENT_BYTES} bytes")
    keys = recipients.resolve(call, channel, content, explicit)
    tags: list[tuple[str, ...]] = [("h", channel)]
    if parent is not None:
        tags += reply_tags(parent, _event(call, parent).tags)
    tags += [("p", key) for key in keys]
    if args.has("--broadcast"):
        tags.append(("broadcast", "1"))
    event = call.sign(int(args.optional("--kind") or "9"), tags, content)
    written = call.publish(event)
    call.print_json(write_result(written, mention_pubkeys=list(values(event.tags, "p"))))


def _event(call: Call, event_id: str) -> Event:
    found = call.query({"ids": [event_id], "limit": 1})
    checks.found(found, f"event {event_id}")
    return found[0]


def _channel_of(event: Event) -> str:
    channel = first(event.tags, "h")
    if channel is None:
        raise user_error(f"event {event.id} belongs to no channel")
    return channel


def get(call: Call, args: Arguments) -> None:
    """Prints the newest messages of a channel, oldest first."""
    kinds = args.optional("--kinds")
    wanted: dict[str, Any] = {
        "kinds": MESSAGE_KINDS if kinds is None else _kinds(kinds),
        "#h": [checks.channel_id(args.text("--channel"))],
        "limit": min(args.number("--limit", 50), GET_LIMIT),
    }
    for option, field in (("--before", "until"), ("--since", "since")):
        if args.has(option):
            wanted[field] = args.number(option, 0)
    _print_in_order(call, call.query(wanted))


def _kinds(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError as error:
        raise user_error(f"--kinds must be numbers with commas, not {text[:80]!r}") from error


def _print_in_order(call: Call, events: list[Event]) -> None:
    """Oldest first; within a second in the relay's order."""
    ordered = sorted(events, key=lambda event: event.created_at)
    call.print_json(event_rows(ordered, call.is_compact))


def thread(call: Call, args: Arguments) -> None:
    """Prints a thread, its root included, oldest first."""
    channel = checks.channel_id(args.text("--channel"))
    event = _event(call, checks.event_id(args.text("--event")))
    if _channel_of(event) != channel:
        raise user_error(f"event {event.id} belongs to another channel")
    place = thread_of(event.tags)
    root = event.id if place is None else place.root
    replies: dict[str, Any] = {
        "kinds": REPLY_KINDS,
        "#h": [channel],
        "#e": [root],
        "limit": min(args.number("--limit", 100), THREAD_LIMIT),
    }
    if args.has("--depth-limit"):
        replies["depth_limit"] = args.number("--depth-limit", 0)
    found = call.query(replies, {"ids": [root], "#h": [channel], "limit": 1})
    _print_in_order(call, list({event.id: event for event in found}.values()))


def search(call: Call, args: Arguments) -> None:
    """Prints messages that contain words, or that somebody wrote."""
    wanted: dict[str, Any] = {
        "kinds": SEARCH_KINDS,
        "limit": min(args.number("--limit", 20), SEARCH_LIMIT),
    }
    query, author = args.optional("--query"), args.optional("--author")
    if not query and not author:
        raise user_error("search needs --query or --author")
    if query:
        wanted["search"] = query
    if author:
        wanted["authors"] = [_author(call, author)]
    if args.has("--since"):
        wanted["since"] = args.number("--since", 0)
    found = call.query(wanted)
    if not query:
        found.sort(key=lambda event: -event.created_at)
    call.print_json(event_rows(found, call.is_compact))


def _author(call: Call, text: str) -> str:
    """A key, or the one whose displayed name is exactly this."""
    try:
        return checks.any_key(text)
    except CommandError:
        found = call.query({"kinds": [0], "search": text, "limit": 100})
    keys = [event.pubkey for event in found if read_profile(event).name.lower() == text.lower()]
    checks.found(keys, f"a profile named {text!r}")
    if len(set(keys)) > 1:
        raise user_error(f"several profiles are named {text!r}: {', '.join(keys)}")
    return keys[0]


def edit(call: Call, args: Arguments) -> None:
    """Replaces the text of an own message."""
    target = _event(call, checks.event_id(args.text("--event")))
    tags = (("h", _channel_of(target)), ("e", target.id))
    call.print_json(write_result(call.write(EDIT_KIND, tags, args.text("--content"))))


def delete(call: Call, args: Arguments) -> None:
    """Deletes a message."""
    target = _event(call, checks.event_id(args.text("--event")))
    tags = (("h", _channel_of(target)), ("e", target.id))
    call.print_json(write_result(call.write(DELETE_KIND, tags)))


def vote(call: Call, args: Arguments) -> None:
    """Votes on a forum post."""
    target = _event(call, checks.event_id(args.text("--event")))
    tags = (("h", _channel_of(target)), ("e", target.id))
    content = "+" if args.text("--direction") == "up" else "-"
    call.print_json(write_result(call.write(VOTE_KIND, tags, content)))


_CHANNEL = Option("--channel", "Channel's UUID", "UUID", required=True)
_EVENT = Option("--event", "Message's event id", "ID", required=True)
_LIMIT = Option("--limit", "How many at most", "N", number=True)
_SINCE = Option("--since", "Not older than this Unix time", "TIME", number=True)

COMMANDS = (
    Command(
        ("messages", "send"),
        "Send a message to a channel. Several lines: --content - and a here-document.",
        send,
        (
            _CHANNEL,
            Option("--content", "Text; - reads standard input", "TEXT", required=True),
            Option("--reply-to", "Event id of the message that this answers", "ID"),
            Option("--mention", "Key to notify, hex or npub", "KEY", repeats=True),
            Option("--kind", "Kind of event", "KIND", choices=("9", "45001", "45003")),
            Option("--broadcast", "Show a reply in the channel too"),
            Option("--file", "Not offered here", "PATH", repeats=True),
        ),
    ),
    Command(
        ("messages", "get"),
        "Read the newest messages of a channel, oldest first (at most 200).",
        get,
        (
            _CHANNEL,
            _LIMIT,
            Option("--before", "Not newer than this Unix time", "TIME", number=True),
            _SINCE,
            Option("--kinds", "Kinds of events, with commas", "LIST"),
        ),
    ),
    Command(
        ("messages", "thread"),
        "Read the thread that a message belongs to.",
        thread,
        (_CHANNEL, _EVENT, _LIMIT, Option("--depth-limit", "How deep", "N", number=True)),
    ),
    Command(
        ("messages", "search"),
        "Find messages by words or by author.",
        search,
        (
            Option("--query", "Words", "TEXT"),
            Option("--author", "Key or exact displayed name", "WHO"),
            _SINCE,
            _LIMIT,
        ),
    ),
    Command(
        ("messages", "edit"),
        "Replace the text of a message of your own.",
        edit,
        (_EVENT, Option("--content", "The new text, as it is", "TEXT", required=True)),
    ),
    Command(("messages", "delete"), "Delete a message.", delete, (_EVENT,)),
    Command(
        ("messages", "vote"),
        "Vote on a forum post.",
        vote,
        (
            _EVENT,
            Option("--direction", "Which way", "WAY", required=True, choices=("up", "down")),
        ),
    ),
)
