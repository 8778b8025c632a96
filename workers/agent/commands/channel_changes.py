"""``buzz channels``: make and change channels, and who is in them."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable

from workers.agent.commands import checks
from workers.agent.commands.arguments import Arguments, Command, Option
from workers.agent.commands.call import Call, write_result
from workers.agent.commands.errors import user_error

CREATE_KIND = 9007
DELETE_KIND = 9008
ADD_KIND = 9000
REMOVE_KIND = 9001
EDIT_KIND = 9002
JOIN_KIND = 9021
LEAVE_KIND = 9022
AGENT_PROFILE_KIND = 10100


def create(call: Call, args: Arguments) -> None:
    """Creates a channel under a fresh UUID."""
    channel = str(uuid.uuid4())
    tags = [
        ("h", channel),
        ("name", args.text("--name")),
        ("visibility", args.text("--visibility")),
        ("channel_type", args.text("--type")),
    ]
    description = args.optional("--description")
    if description:
        tags.append(("about", description))
    if args.has("--ttl"):
        tags.append(("ttl", str(_ttl(args))))
    written = call.write(CREATE_KIND, tags)
    more = {"channel_id": channel} if written.accepted else {}
    call.print_json(write_result(written, **more))


def _ttl(args: Arguments) -> int:
    seconds = args.number("--ttl", 0)
    if seconds == 0:
        raise user_error("--ttl must be a number of seconds above 0")
    return seconds


def add_member(call: Call, args: Arguments) -> None:
    """Adds somebody to a channel; without a role a member keeps theirs."""
    tags = [("h", _channel(args)), ("p", checks.hex_key(args.text("--pubkey")))]
    role = args.optional("--role")
    if role:
        tags.append(("role", role))
    call.print_json(write_result(call.write(ADD_KIND, tags)))


def remove_member(call: Call, args: Arguments) -> None:
    """Takes somebody out of a channel."""
    tags = (("h", _channel(args)), ("p", checks.hex_key(args.text("--pubkey"))))
    call.print_json(write_result(call.write(REMOVE_KIND, tags)))


def update(call: Call, args: Arguments) -> None:
    """Changes a channel's name, description, visibility or lifetime."""
    if args.has("--ttl") and args.has("--no-ttl"):
        raise user_error("--ttl and --no-ttl exclude each other")
    tags = []
    for option, name in (
        ("--name", "name"),
        ("--description", "about"),
        ("--visibility", "visibility"),
    ):
        value = args.optional(option)
        if value is not None:
            tags.append((name, value))
    if args.has("--ttl"):
        tags.append(("ttl", str(_ttl(args))))
    if args.has("--no-ttl"):
        tags.append(("ttl", ""))
    if not tags:
        raise user_error("nothing to change: give --name, --description, --visibility or --ttl")
    call.print_json(write_result(call.write(EDIT_KIND, [("h", _channel(args)), *tags])))


def _channel(args: Arguments) -> str:
    return checks.channel_id(args.text("--channel"))


def _edit(name: str, option: str | None, value: str = "") -> Callable[[Call, Arguments], None]:
    """A command that sets one field of a channel, to an option's value or a fixed one."""

    def run(call: Call, args: Arguments) -> None:
        text = value if option is None else args.text(option)
        call.print_json(write_result(call.write(EDIT_KIND, (("h", _channel(args)), (name, text)))))

    return run


def _bare(kind: int) -> Callable[[Call, Arguments], None]:
    """A command that is one event with the channel's tag."""

    def run(call: Call, args: Arguments) -> None:
        call.print_json(write_result(call.write(kind, (("h", _channel(args)),))))

    return run


def set_add_policy(call: Call, args: Arguments) -> None:
    """Says who may add this identity to channels."""
    content = json.dumps({"channel_add_policy": args.text("--policy")})
    call.print_json(write_result(call.write(AGENT_PROFILE_KIND, (), content)))


_CHANNEL = Option("--channel", "Channel's UUID", "UUID", required=True)
_PUBKEY = Option("--pubkey", "Key, 64 hex digits", "HEX", required=True)
_VISIBILITY = ("open", "private")
_ROLES = ("owner", "admin", "member", "guest", "bot")
_TTL = Option("--ttl", "Seconds of idleness after which it is archived", "SECONDS", number=True)
_DESCRIPTION = Option("--description", "What it is about", "TEXT")

COMMANDS = (
    Command(
        ("channels", "create"),
        "Create a channel; you become its owner.",
        create,
        (
            Option("--name", "Name", "NAME", required=True),
            Option("--type", "Kind of channel", "T", required=True, choices=("stream", "forum")),
            Option("--visibility", "Who finds it", "V", required=True, choices=_VISIBILITY),
            _DESCRIPTION,
            _TTL,
        ),
    ),
    Command(
        ("channels", "add-member"),
        "Add somebody to a channel, or change a role.",
        add_member,
        (_CHANNEL, _PUBKEY, Option("--role", "Role", "ROLE", choices=_ROLES)),
    ),
    Command(
        ("channels", "remove-member"),
        "Take somebody out of a channel.",
        remove_member,
        (_CHANNEL, _PUBKEY),
    ),
    Command(
        ("channels", "update"),
        "Change a channel.",
        update,
        (
            _CHANNEL,
            Option("--name", "New name", "NAME"),
            _DESCRIPTION,
            Option("--visibility", "Who finds it", "V", choices=_VISIBILITY),
            _TTL,
            Option("--no-ttl", "No end any more"),
        ),
    ),
    Command(
        ("channels", "topic"),
        "Set a channel's topic.",
        _edit("topic", "--topic"),
        (_CHANNEL, Option("--topic", "Topic", "TEXT", required=True)),
    ),
    Command(
        ("channels", "purpose"),
        "Set a channel's purpose.",
        _edit("purpose", "--purpose"),
        (_CHANNEL, Option("--purpose", "Purpose", "TEXT", required=True)),
    ),
    Command(("channels", "join"), "Join an open channel.", _bare(JOIN_KIND), (_CHANNEL,)),
    Command(("channels", "leave"), "Leave a channel.", _bare(LEAVE_KIND), (_CHANNEL,)),
    Command(
        ("channels", "archive"),
        "Archive a channel.",
        _edit("archived", None, "true"),
        (_CHANNEL,),
    ),
    Command(
        ("channels", "unarchive"),
        "Bring an archived channel back.",
        _edit("archived", None, "false"),
        (_CHANNEL,),
    ),
    Command(("channels", "delete"), "Delete a channel.", _bare(DELETE_KIND), (_CHANNEL,)),
    Command(
        ("channels", "set-add-policy"),
        "Say who may add you to channels.",
        set_add_policy,
        (
            Option(
                "--policy",
                "Who",
                "WHO",
                required=True,
                choices=("anyone", "owner_only", "nobody"),
            ),
        ),
    ),
)
