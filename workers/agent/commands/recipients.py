"""Whom a message will notify: the relay's side of the rules in ``mentions``."""

from __future__ import annotations

import json

from workers.agent.commands import checks, mentions
from workers.agent.commands.call import Call
from workers.agent.commands.errors import CommandError, user_error
from workers.agent.surroundings import read_profile
from workers.nostr.tags import values


def resolve(call: Call, channel: str, content: str, explicit: list[str]) -> list[str]:
    """The keys that a message will notify, each a member of the channel.

    Raises:
        CommandError: a name cannot be resolved and no key stands for it, somebody is no member,
            or the members cannot be had.
    """
    text = mentions.blank_code(content)
    references = [checks.any_key(npub) for npub in mentions.npub_references(text)]
    if "@" not in text and not explicit and not references:
        return []
    members = _members(call, channel)
    from_names: list[str] = []
    if "@" in text:
        table = mentions.name_table(_names(call, members))
        from_names, unresolved = mentions.named(text, table)
        if unresolved and not explicit and not references:
            raise _unresolved(unresolved[0])
    keys = mentions.merge(explicit, references, from_names)
    check_count(keys)
    missing = [key for key in keys if key not in members]
    if missing:
        raise _not_members(channel, missing)
    return keys


def _members(call: Call, channel: str) -> list[str]:
    """The channel's members; a message is not sent on a guess."""
    try:
        found = call.query({"kinds": [39002], "#d": [channel], "limit": 1})
    except CommandError as error:
        raise _no_members(f": {error}") from error
    if not found:
        raise _no_members("")
    return list(values(found[0].tags, "p"))


def _no_members(reason: str) -> CommandError:
    return CommandError("error", f"could not load channel membership for mention preflight{reason}")


def _names(call: Call, members: list[str]) -> list[tuple[str, str]]:
    found = call.query({"kinds": [0], "authors": members, "limit": len(members)})
    return [(event.pubkey, read_profile(event).name) for event in found]


def check_count(keys: list[str]) -> None:
    """Raises a ``user_error`` for more mentions than a message may carry."""
    if len(keys) > mentions.MAX_MENTIONS:
        raise user_error(f"a message mentions at most {mentions.MAX_MENTIONS}")


def _unresolved(name: mentions.Unresolved) -> CommandError:
    if name.candidates:
        return user_error(
            f"@{name.name} is the name of several members: {', '.join(name.candidates)}; "
            "pass the right key with --mention"
        )
    return user_error(
        f"@{name.name} is no member of this channel; write the exact displayed name, "
        "or pass a key with --mention, or leave the @ out"
    )


def _not_members(channel: str, missing: list[str]) -> CommandError:
    """The message is a JSON object of its own, so that a program can act on it."""
    told = {
        "message": "some of the mentioned are not members of the channel; nothing was sent",
        "missing_member_pubkeys": missing,
        "add_member_command": f"buzz channels add-member --channel {channel} --pubkey {missing[0]}",
    }
    return user_error(json.dumps(told))
