"""``buzz channels``: find and read; ``channel_changes`` makes and changes them."""

from __future__ import annotations

from typing import Any

from workers.agent.commands import checks
from workers.agent.commands.arguments import Arguments, Command, Option
from workers.agent.commands.call import Call
from workers.nostr.event import Event
from workers.nostr.tags import first, values

METADATA_KIND = 39000
MEMBERS_KIND = 39002


def search(call: Call, args: Arguments) -> None:
    """Finds channels by name, in any case."""
    query, exact = args.text("--query").lower(), args.has("--exact")
    rows = []
    for event in _latest(call.query_all({"kinds": [METADATA_KIND]})):
        row = _search_row(event)
        name = str(row["name"]).lower()
        if (name == query if exact else query in name) and (
            args.has("--include-archived") or not row["archived"]
        ):
            rows.append(row)
    rows.sort(key=lambda row: (row["name"], row["channel_id"]))
    call.print_json(rows[: args.number("--limit", 1000)])


def _search_row(event: Event) -> dict[str, Any]:
    tags = event.tags
    ttl = first(tags, "ttl")
    return {
        "channel_id": first(tags, "d"),
        "name": first(tags, "name") or "",
        "channel_type": first(tags, "t") or "stream",
        "visibility": "private" if ("private",) in tags else "public",
        "archived": first(tags, "archived") == "true",
        "about": first(tags, "about"),
        "topic": first(tags, "topic"),
        "purpose": first(tags, "purpose"),
        "ttl_seconds": int(ttl) if ttl is not None and ttl.isdigit() else None,
    }


def _latest(events: list[Event]) -> list[Event]:
    """One metadata event a channel: the newest."""
    newest: dict[str, Event] = {}
    for event in events:
        channel = first(event.tags, "d") or ""
        if channel not in newest or newest[channel].created_at < event.created_at:
            newest[channel] = event
    return list(newest.values())


def list_(call: Call, args: Arguments) -> None:
    """Lists the channels that can be read."""
    if args.has("--member"):
        mine = call.query({"kinds": [MEMBERS_KIND], "#p": [call.identity.pubkey]})
        ids = [channel for event in mine for channel in values(event.tags, "d")]
        events = call.query({"kinds": [METADATA_KIND], "#d": ids}) if ids else []
    else:
        events = call.query_all({"kinds": [METADATA_KIND]})
    wanted = args.optional("--visibility")
    if wanted is not None:
        private = wanted == "private"
        events = [event for event in events if (("private",) in event.tags) == private]
    rows = [_list_row(event) for event in _latest(events)]
    call.print_json(rows[: args.number("--limit", 500)])


def _list_row(event: Event) -> dict[str, Any]:
    return {
        "channel_id": first(event.tags, "d"),
        "name": first(event.tags, "name") or "",
        "description": first(event.tags, "about") or "",
        "created_at": event.created_at,
    }


def get(call: Call, args: Arguments) -> None:
    """Prints one channel, or null."""
    channel = checks.channel_id(args.text("--channel"))
    found = call.query({"kinds": [METADATA_KIND], "#d": [channel], "limit": 1})
    row = {**_list_row(found[0]), "pubkey": found[0].pubkey} if found else None
    call.print_json(row)


def members(call: Call, args: Arguments) -> None:
    """Prints who is in a channel, with roles."""
    channel = checks.channel_id(args.text("--channel"))
    found = call.query({"kinds": [MEMBERS_KIND], "#d": [channel], "limit": 1})
    tags = found[0].tags if found else ()
    call.print_json(
        [
            {"pubkey": tag[1], "role": tag[3] if len(tag) > 3 and tag[3] else "member"}
            for tag in tags
            if len(tag) >= 2 and tag[0] == "p"
        ]
    )


_CHANNEL = Option("--channel", "Channel's UUID", "UUID", required=True)
_VISIBILITY = ("open", "private")
_LIMIT = Option("--limit", "How many at most", "N", number=True)

COMMANDS = (
    Command(
        ("channels", "search"),
        "Find channels by name.",
        search,
        (
            Option("--query", "Part of the name", "TEXT", required=True),
            Option("--exact", "The whole name, not a part"),
            Option("--include-archived", "Archived ones too"),
            _LIMIT,
        ),
    ),
    Command(
        ("channels", "list"),
        "List the channels that you can read.",
        list_,
        (
            Option("--visibility", "Only these", "V", choices=_VISIBILITY),
            Option("--member", "Only those that you are a member of"),
            _LIMIT,
        ),
    ),
    Command(("channels", "get"), "Show one channel.", get, (_CHANNEL,)),
    Command(("channels", "members"), "List a channel's members with roles.", members, (_CHANNEL,)),
)
