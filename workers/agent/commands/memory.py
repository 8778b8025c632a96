"""``buzz mem``: the agent's own memories, encrypted between it and its owner (engrams)."""

from __future__ import annotations

import hashlib

from workers.agent.bridge import Bridge
from workers.agent.commands import checks, diff
from workers.agent.commands.arguments import Arguments, Command, Option, Positional
from workers.agent.commands.call import Call
from workers.agent.commands.errors import CommandError, user_error
from workers.nostr.engram import (
    CORE,
    ENGRAM_KIND,
    HEAD_LIMIT,
    Engram,
    EngramCodec,
    next_timestamp,
    slug_of,
)
from workers.nostr.errors import NostrError

_DUPLICATE = "duplicate:"


def read_core(bridge: Bridge, owner: str) -> str | None:
    """The memory that a system prompt shows, or None.

    Raises:
        BridgeError: the relay does not tell.
    """
    identity = bridge.identity
    codec = EngramCodec(identity.keypair, agent=identity.pubkey, owner=owner)
    head = codec.head(CORE, bridge.query(_head_filter(codec, CORE)))
    return None if head is None else head.value


def _head_filter(codec: EngramCodec, slug: str) -> dict[str, object]:
    return {**_all_filter(codec), "#d": [codec.d_tag(slug)], "limit": HEAD_LIMIT}


def _all_filter(codec: EngramCodec) -> dict[str, object]:
    return {"kinds": [ENGRAM_KIND], "authors": [codec.agent], "#p": [codec.owner]}


def _codec(call: Call, args: Arguments) -> EngramCodec:
    """The key between agent and owner; ``--agent`` reads as the owner."""
    me = call.identity
    agent, owner = args.optional("--agent"), args.optional("--owner")
    if agent is not None and owner is not None:
        raise user_error("--agent and --owner exclude each other")
    try:
        if agent is not None:
            return EngramCodec(me.keypair, agent=checks.any_key(agent), owner=me.pubkey)
        if owner is not None:
            return EngramCodec(me.keypair, agent=me.pubkey, owner=checks.any_key(owner))
        if me.attestation is None:
            raise user_error("whose memories? Set BUZZ_AUTH_TAG or pass --owner")
        return EngramCodec(me.keypair, agent=me.pubkey, owner=me.attestation.owner)
    except NostrError as error:
        raise user_error(str(error)) from error


def _slug(text: str) -> str:
    try:
        return slug_of(text)
    except NostrError as error:
        raise user_error(str(error)) from error


def _head(call: Call, codec: EngramCodec, slug: str) -> Engram | None:
    return codec.head(slug, call.query(_head_filter(codec, slug)))


def _value(call: Call, codec: EngramCodec, slug: str) -> str:
    head = _head(call, codec, slug)
    if head is None or head.value is None:
        raise CommandError("not_found", f"no memory {slug}")
    return head.value


def ls(call: Call, args: Arguments) -> None:
    """Lists memories by name; ``core`` and removed ones are left out."""
    codec = _codec(call, args)
    heads = codec.heads(call.query_all(_all_filter(codec)))
    rows = [head for slug, head in sorted(heads.items()) if slug != CORE and head.value is not None]
    if args.has("--json"):
        call.print_json(
            [{"slug": h.slug, "event_id": h.event_id, "created_at": h.created_at} for h in rows]
        )
        return
    for head in rows:
        call.print(f"{head.slug}\t{head.created_at}\t{head.event_id}\n")
    if not rows:
        call.note("no memories")


def get(call: Call, args: Arguments) -> None:
    """Prints a memory as it is, without a line end of ours."""
    call.print(_value(call, _codec(call, args), _slug(args.text("SLUG"))))


def hash_(call: Call, args: Arguments) -> None:
    """Prints a memory's SHA-256, for ``patch --base-hash``."""
    call.print(_digest(_value(call, _codec(call, args), _slug(args.text("SLUG")))) + "\n")


def _digest(value: str) -> str:
    return hashlib.sha256(value.encode("utf-8", "replace")).hexdigest()


def set_(call: Call, args: Arguments) -> None:
    """Writes a memory."""
    slug, value = _slug(args.text("SLUG")), args.text("VALUE")
    if value == "-":
        value = call.stdin_text()
        if not value and not args.has("--allow-empty"):
            raise user_error("standard input is empty; --allow-empty writes that")
    codec = _codec(call, args)
    _write(call, codec, slug, value, _head(call, codec, slug))
    call.note(f"set {slug}")


def _write(
    call: Call, codec: EngramCodec, slug: str, value: str | None, head: Engram | None
) -> None:
    """Writes after a head; a conflict is when somebody else's write stands instead of ours."""
    try:
        event = codec.seal(slug, value, next_timestamp(call.identity.now(), head))
    except NostrError as error:
        raise user_error(str(error)) from error
    written = call.publish(event)
    if written.message.startswith(_DUPLICATE):
        raise CommandError(
            "conflict", f"{slug} was written by somebody else meanwhile", retryable=True
        )


def patch(call: Call, args: Arguments) -> None:
    """Changes a memory by a unified diff."""
    slug = _slug(args.text("SLUG"))
    base = args.optional("--base-hash")
    if (base is None) != args.has("--no-base-hash"):
        raise user_error("give either --base-hash or --no-base-hash")
    path = args.optional("--patch-file")
    text = call.stdin_text() if path is None else call.file_text(path)
    codec = _codec(call, args)
    head = _head(call, codec, slug)
    if head is None or head.value is None:
        raise CommandError("not_found", f"no memory {slug}")
    if base is not None and base.lower() != _digest(head.value):
        raise CommandError("conflict", f"{slug} is not what --base-hash says: read it again")
    try:
        value = diff.apply(head.value, text)
    except diff.PatchMismatch as error:
        raise CommandError("conflict", f"{slug}: {error}") from error
    except diff.PatchFormatError as error:
        raise user_error(str(error)) from error
    if not value and not args.has("--allow-empty"):
        raise user_error("nothing would be left; --allow-empty writes that")
    if args.has("--dry-run"):
        call.print(value)
        return
    _write(call, codec, slug, value, head)
    call.note(f"patched {slug}")


def rm(call: Call, args: Arguments) -> None:
    """Removes a memory by a tombstone."""
    slug = _slug(args.text("SLUG"))
    if slug == CORE:
        raise user_error("core cannot be removed; set it instead")
    codec = _codec(call, args)
    _write(call, codec, slug, None, _head(call, codec, slug))
    call.note(f"removed {slug}")


_SLUG_ARGUMENT = Positional("SLUG", "Name: core, or words with / between ('mem/' is added)")
_OWNER = Option("--owner", "Owner's key, if not the attestation's", "KEY")
_READ = (_OWNER, Option("--agent", "Read as the owner of this agent", "KEY"))
_ALLOW_EMPTY = Option("--allow-empty", "Write an empty text")

COMMANDS = (
    Command(
        ("mem", "ls"),
        "List your memories: name, time, event id.",
        ls,
        (Option("--json", "As JSON"), *_READ),
    ),
    Command(("mem", "get"), "Print a memory.", get, _READ, (_SLUG_ARGUMENT,)),
    Command(("mem", "hash"), "Print a memory's SHA-256.", hash_, _READ, (_SLUG_ARGUMENT,)),
    Command(
        ("mem", "set"),
        "Write a memory.",
        set_,
        (_ALLOW_EMPTY, _OWNER),
        (_SLUG_ARGUMENT, Positional("VALUE", "Text; - reads standard input")),
    ),
    Command(
        ("mem", "patch"),
        "Change a memory by a unified diff from standard input.",
        patch,
        (
            Option("--patch-file", "Read the diff from here", "PATH"),
            Option("--base-hash", "What 'hash' says of the text the diff was made for", "HASH"),
            Option("--no-base-hash", "Do not check that"),
            Option("--dry-run", "Print the result and write nothing"),
            _ALLOW_EMPTY,
            _OWNER,
        ),
        (_SLUG_ARGUMENT,),
    ),
    Command(("mem", "rm"), "Remove a memory.", rm, (_OWNER,), (_SLUG_ARGUMENT,)),
)
