"""``buzz feed``, ``buzz canvas`` and ``buzz dms``: what concerns the identity beside messages."""

from __future__ import annotations

import json
from typing import Any

from workers.agent.commands import checks
from workers.agent.commands.arguments import Arguments, Command, Option
from workers.agent.commands.call import Call, event_rows, write_result
from workers.agent.commands.errors import user_error
from workers.nostr.tags import values

CANVAS_KIND = 40100
DM_OPEN_KIND = 41010
DM_RECORD_KIND = 41001
FEED_LIMIT = 50
FEED_TYPES = ("mentions", "needs_action", "activity", "agent_activity")
MAX_DM_KEYS = 8
_RESPONSE = "response:"


def get(call: Call, args: Arguments) -> None:
    """Prints what mentions the identity, newest first."""
    wanted: dict[str, Any] = {
        "#p": [call.identity.pubkey],
        "limit": min(args.number("--limit", 20), FEED_LIMIT),
        "feed_types": list(FEED_TYPES),
    }
    types = args.optional("--types")
    if types is not None:
        wanted["feed_types"] = [part.strip() for part in types.split(",")]
        if not set(wanted["feed_types"]) <= set(FEED_TYPES):
            raise user_error(f"--types takes {', '.join(FEED_TYPES)}")
    if args.has("--since"):
        wanted["since"] = args.number("--since", 0)
    found = sorted(call.query(wanted), key=lambda event: -event.created_at)
    call.print_json(event_rows(found, call.is_compact))


def canvas_get(call: Call, args: Arguments) -> None:
    """Prints a channel's canvas as it is."""
    channel = checks.channel_id(args.text("--channel"))
    found = call.query({"kinds": [CANVAS_KIND], "#h": [channel], "limit": 1})
    checks.found(found, "a canvas")
    call.print(found[0].content)


def canvas_set(call: Call, args: Arguments) -> None:
    """Replaces a channel's canvas."""
    channel = checks.channel_id(args.text("--channel"))
    content = args.text("--content")
    if content == "-":
        content = call.stdin_text()
    call.print_json(write_result(call.write(CANVAS_KIND, (("h", channel),), content)))


def dms_open(call: Call, args: Arguments) -> None:
    """Opens a direct conversation."""
    keys = [checks.any_key(key) for key in args.all("--pubkey")]
    if len(keys) > MAX_DM_KEYS:
        raise user_error(f"a direct conversation is with 1 to {MAX_DM_KEYS} others")
    written = call.write(DM_OPEN_KIND, [("p", key) for key in keys])
    call.print_json(write_result(written, **_dm(written.message)))


def _dm(message: str) -> dict[str, str]:
    """The conversation's id, where the relay's answer names it."""
    if not message.startswith(_RESPONSE):
        return {}
    try:
        data = json.loads(message[len(_RESPONSE) :])
    except ValueError:
        return {}
    return {"dm_id": str(data["channel_id"])} if "channel_id" in data else {}


def dms_list(call: Call, _args: Arguments) -> None:
    """Lists direct conversations."""
    found = call.query({"kinds": [DM_RECORD_KIND], "#p": [call.identity.pubkey]})
    rows = [
        {
            "dm_id": next(values(event.tags, "h"), None),
            "participants": list(values(event.tags, "p")),
            "created_at": event.created_at,
        }
        for event in found
    ]
    call.print_json(rows)


_CHANNEL = Option("--channel", "Channel's UUID", "UUID", required=True)

COMMANDS = (
    Command(
        ("feed", "get"),
        "Show what concerns you, newest first.",
        get,
        (
            Option("--since", "Not older than this Unix time", "TIME", number=True),
            Option("--limit", "How many at most", "N", number=True),
            Option("--types", "Kinds of entries, with commas", "LIST"),
        ),
    ),
    Command(("canvas", "get"), "Print a channel's canvas.", canvas_get, (_CHANNEL,)),
    Command(
        ("canvas", "set"),
        "Replace a channel's canvas.",
        canvas_set,
        (_CHANNEL, Option("--content", "Text; - reads standard input", "TEXT", required=True)),
    ),
    Command(
        ("dms", "open"),
        "Open a direct conversation.",
        dms_open,
        (Option("--pubkey", "Key, hex or npub", "KEY", required=True, repeats=True),),
    ),
    Command(("dms", "list"), "List direct conversations.", dms_list),
)
