"""``buzz users``: profiles and presence."""

from __future__ import annotations

import json
from typing import Any

from workers.agent.commands import checks
from workers.agent.commands.arguments import Arguments, Command, Option
from workers.agent.commands.call import Call, write_result
from workers.agent.commands.errors import user_error
from workers.agent.surroundings import profile_content
from workers.nostr import attestation
from workers.nostr.event import Event

PROFILE_KIND = 0
PRESENCE_KIND = 40902
MAX_KEYS = 200
SEARCH_LIMIT = 100


def get(call: Call, args: Arguments) -> None:
    """Prints profiles by key or by name; without either, the own one."""
    name = args.optional("--name")
    if name is not None:
        if args.has("--pubkey"):
            raise user_error("--name and --pubkey exclude each other")
        events = _by_name(call, name, args.optional("--owner"))
    else:
        if args.has("--owner"):
            raise user_error("--owner goes with --name")
        keys = [checks.hex_key(key) for key in args.all("--pubkey")] or [call.identity.pubkey]
        if len(keys) > MAX_KEYS:
            raise user_error(f"at most {MAX_KEYS} keys at once")
        events = call.query({"kinds": [PROFILE_KIND], "authors": keys, "limit": len(keys)})
    call.print_json([{**profile_content(event), "pubkey": event.pubkey} for event in events])


def _by_name(call: Call, name: str, owner: str | None) -> list[Event]:
    found = call.query({"kinds": [PROFILE_KIND], "search": name, "limit": SEARCH_LIMIT})
    wanted = name.lower()
    if owner is None:
        return [event for event in found if any(wanted in text for text in _names(event))]
    key = call.identity.pubkey if owner == "me" else checks.any_key(owner)
    return [event for event in found if wanted in _names(event) and _is_agent_of(event, key)]


def _names(event: Event) -> list[str]:
    """Both names of a profile, in lower case."""
    content = profile_content(event)
    return [
        content[name].lower()
        for name in ("display_name", "name")
        if isinstance(content.get(name), str)
    ]


def _is_agent_of(event: Event, owner: str) -> bool:
    found = attestation.find(event.tags)
    return found is not None and found.owner == owner and found.verify(event.pubkey)


def set_profile(call: Call, args: Arguments) -> None:
    """Changes the named fields of the own profile and keeps the others."""
    changes = {
        field: args.text(option)
        for option, field in (
            ("--name", "display_name"),
            ("--avatar", "picture"),
            ("--about", "about"),
            ("--nip05", "nip05"),
        )
        if args.has(option)
    }
    if not changes:
        raise user_error("nothing to change: give --name, --avatar, --about or --nip05")
    mine = {"kinds": [PROFILE_KIND], "authors": [call.identity.pubkey], "limit": 1}
    found = call.query(mine)
    content: dict[str, Any] = {**(profile_content(found[0]) if found else {}), **changes}
    text = json.dumps(content, ensure_ascii=False)
    # Of two profiles of one second the relay keeps the lower id, so ours must be later.
    later = found[0].created_at + 1 if found else 0
    event = call.sign(PROFILE_KIND, (), text, not_before=later)
    call.print_json(write_result(call.publish(event)))


def presence(call: Call, args: Arguments) -> None:
    """Prints who is online."""
    keys = [checks.hex_key(key.strip()) for key in args.text("--pubkeys").split(",")]
    found = call.query({"kinds": [PRESENCE_KIND], "authors": keys})
    rows = [
        {"pubkey": tag[1], "status": event.content, "updated_at": event.created_at}
        for event in found
        for tag in event.tags
        if len(tag) >= 2 and tag[0] == "p"
    ]
    call.print_json(rows)


COMMANDS = (
    Command(
        ("users", "get"),
        "Show profiles: your own, those of keys, or those with a name.",
        get,
        (
            Option("--pubkey", "Key, 64 hex digits", "HEX", repeats=True),
            Option("--name", "Part of a name", "NAME"),
            Option("--owner", "Only agents of this owner (me, hex or npub), by exact name", "KEY"),
        ),
    ),
    Command(
        ("users", "set-profile"),
        "Change your profile.",
        set_profile,
        (
            Option("--name", "Displayed name", "NAME"),
            Option("--avatar", "Address of a picture", "URL"),
            Option("--about", "Description", "TEXT"),
            Option("--nip05", "NIP-05 address", "ADDRESS"),
        ),
    ),
    Command(
        ("users", "presence"),
        "Show who is online.",
        presence,
        (Option("--pubkeys", "Keys, with commas", "LIST", required=True),),
    ),
)
