"""``buzz reactions``: add, remove, count."""

from __future__ import annotations

from workers.agent.commands import checks
from workers.agent.commands.arguments import Arguments, Command, Option
from workers.agent.commands.call import Call, write_result
from workers.agent.commands.errors import user_error

REACTION_KIND = 7
DELETION_KIND = 5
MAX_EMOJI_CHARACTERS = 64


def add(call: Call, args: Arguments) -> None:
    """Reacts to an event."""
    emoji = args.text("--emoji")
    if not emoji or len(emoji) > MAX_EMOJI_CHARACTERS:
        raise user_error(f"--emoji must have 1 to {MAX_EMOJI_CHARACTERS} characters")
    tags: list[tuple[str, ...]] = [("e", checks.event_id(args.text("--event")))]
    url = args.optional("--emoji-url")
    content = emoji
    if url is not None:
        shortcode = emoji.strip(":")
        tags.append(("emoji", shortcode, url))
        content = f":{shortcode}:"
    call.print_json(write_result(call.write(REACTION_KIND, tags, content)))


def remove(call: Call, args: Arguments) -> None:
    """Takes an own reaction back."""
    target, emoji = checks.event_id(args.text("--event")), args.text("--emoji")
    mine = {"kinds": [REACTION_KIND], "authors": [call.identity.pubkey], "#e": [target]}
    found = [event for event in call.query(mine) if event.content == emoji]
    checks.found(found, f"a reaction {emoji} of yours")
    call.print_json(write_result(call.write(DELETION_KIND, (("e", found[0].id),))))


def get(call: Call, args: Arguments) -> None:
    """Counts the reactions to an event."""
    target = checks.event_id(args.text("--event"))
    by_emoji: dict[str, list[str]] = {}
    for event in call.query({"kinds": [REACTION_KIND], "#e": [target]}):
        by_emoji.setdefault(event.content, []).append(event.pubkey)
    rows = [
        {"emoji": emoji, "count": len(keys), "pubkeys": keys} for emoji, keys in by_emoji.items()
    ]
    call.print_json({"reactions": rows})


_EVENT = Option("--event", "Event id", "ID", required=True)
_EMOJI = Option("--emoji", "Emoji or :shortcode:", "EMOJI", required=True)

COMMANDS = (
    Command(
        ("reactions", "add"),
        "React to a message.",
        add,
        (_EVENT, _EMOJI, Option("--emoji-url", "Picture of a custom emoji", "URL")),
    ),
    Command(("reactions", "remove"), "Take a reaction back.", remove, (_EVENT, _EMOJI)),
    Command(("reactions", "get"), "Count reactions to a message.", get, (_EVENT,)),
)
