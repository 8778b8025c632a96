"""Judges ``create-channel-invite-users``: one channel, exactly as it was asked for."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

# The kit lies beside this folder's files in a container, and two levels above in the repository.
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), *(str(folder) for folder in list(HERE.parents)[2:3])]

from verifier_kit import Evidence, Row, Verifier, key_of, rows  # noqa: E402

TASK = "create-channel-invite-users"
CHANNEL = "fix-pr-1234"
LIFETIME_S = 3600
MEMBERS = ("benchmark-user-07", "benchmark-user-19", "benchmark-user-42")
BOTS = ("benchmark-bot-03", "benchmark-bot-08")
USERS_IN_DIRECTORY = 50
BOTS_IN_DIRECTORY = 10


def channel_created(seen: Evidence) -> bool:
    """There is exactly one channel of that exact name."""
    return channel(seen) is not None


def channel_shape(seen: Evidence) -> bool:
    """It is a private stream and not archived."""
    found = channel(seen)
    return (
        found is not None
        and found.get("channel_type") == "stream"
        and found.get("visibility") == "private"
        and found.get("archived") is False
    )


def temporary_channel(seen: Evidence) -> bool:
    """It lives for one hour."""
    found = channel(seen)
    return found is not None and found.get("ttl_seconds") == LIFETIME_S


def exact_membership(seen: Evidence) -> bool:
    """Its members are the agent and the five, each once."""
    keys = [key for key, _ in roster(seen)]
    wanted = wanted_roles(seen)
    return wanted is not None and len(set(keys)) == len(keys) and set(keys) == set(wanted)


def expected_roles(seen: Evidence) -> bool:
    """Every member has its role, and nobody else has one."""
    wanted = wanted_roles(seen)
    return wanted is not None and dict(roster(seen)) == wanted


def evidence_complete(seen: Evidence) -> bool:
    """The evidence is this task's and shows the whole directory; no look at truncation."""
    roles = [row.get("role") for row in seen.directory]
    directory = seen.directory_keys()
    return (
        seen.is_complete(TASK, look_at_truncated=False)
        and len(roles) == len(directory) == USERS_IN_DIRECTORY + BOTS_IN_DIRECTORY
        and roles.count("user") == USERS_IN_DIRECTORY
        and roles.count("bot") == BOTS_IN_DIRECTORY
        and all(directory.get(name) is not None for name in MEMBERS + BOTS)
    )


def channel(seen: Evidence) -> Row | None:
    """The only observed channel of the name; null with none or several."""
    found = [row for row in seen.observed_channels if row.get("name") == CHANNEL]
    return found[0] if len(found) == 1 else None


def roster(seen: Evidence) -> list[tuple[str | None, object]]:
    """Key and role of every row of the channel's roster; empty without the channel."""
    return [(key_of(row), row.get("role")) for row in rows(channel(seen) or {}, "members")]


def wanted_roles(seen: Evidence) -> dict[str, str] | None:
    """Key to role as asked for; null if the channel or one of the six keys is not known."""
    directory = seen.directory_keys()
    wanted = {seen.agent: "owner"}
    wanted.update({directory.get(name): "member" for name in MEMBERS})
    wanted.update({directory.get(name): "bot" for name in BOTS})
    known = {key: role for key, role in wanted.items() if key is not None}
    return known if channel(seen) is not None and len(known) == len(wanted) else None


def details(seen: Evidence) -> dict[str, Any]:
    """What was found under the name, and which members are missing or too many."""
    found = channel(seen) or {}
    keys = {key for key, _ in roster(seen) if key is not None}
    wanted = set(wanted_roles(seen) or {})
    return {
        "archived": found.get("archived"),
        "channel_id": found.get("channel_id"),
        "channel_type": found.get("channel_type"),
        "channels_of_that_name": sum(row.get("name") == CHANNEL for row in seen.observed_channels),
        "members_missing": sorted(wanted - keys),
        "members_unwanted": sorted(keys - wanted),
        "ttl_seconds": found.get("ttl_seconds"),
        "visibility": found.get("visibility"),
    }


VERIFIER = Verifier(
    dimensions=(
        channel_created,
        channel_shape,
        temporary_channel,
        exact_membership,
        expected_roles,
        evidence_complete,
    ),
    details=details,
)

if __name__ == "__main__":
    sys.exit(VERIFIER.run())
