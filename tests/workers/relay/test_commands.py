"""Group commands (§2.6): rights, effects before the answer, notifications (§2.7, §2.8)."""

from __future__ import annotations

import json
import uuid

import pytest

from tests.workers.relay.builders import NOW, World
from workers.nostr.event import Event
from workers.nostr.keys import Keypair


def said(world: World, author: Keypair, kind: int, *tags: list[str]) -> str:
    answer = world.submit(author, kind, tags)
    assert not answer.accepted
    return answer.message


def notices(world: World, kind: int, pair: Keypair) -> list[Event]:
    return world.stored(pair, {"kinds": [kind], "#p": [pair.pubkey]})


def system(world: World, channel: str) -> list[str]:
    events = [e for e in world.state.store.timeline() if e.kind == 40099]
    return [json.loads(e.content)["type"] for e in events if ("h", channel) in e.tags]


def test_2_6_9007_a_channel_is_described_before_the_answer() -> None:
    world = World()
    channel = world.channel(name=" ##fix ", about="why", ttl="3600")
    assert world.metadata(channel).tags == (
        ("d", channel),
        ("name", "fix"),
        ("about", "why"),
        ("private",),
        ("closed",),
        ("t", "stream"),
        ("ttl", "3600"),
        ("ttl_deadline", "2023-11-14T23:13:20Z"),
    )
    assert world.members(channel) == {world.user.pubkey: "owner"}
    (admins,) = world.stored(world.user, {"kinds": [39001], "#d": [channel]})
    assert admins.tags == (("d", channel), ("p", world.user.pubkey, "owner"))
    assert admins.pubkey == world.state.keypair.pubkey
    (notice,) = notices(world, 44100, world.user)
    assert notice.tags == (("p", world.user.pubkey), ("h", channel))
    assert json.loads(notice.content) == {
        "type": "member_added",
        "channel_id": channel,
        "actor": world.user.pubkey,
    }
    assert system(world, channel) == ["channel_created"]


def test_2_6_9007_defaults_are_open_and_stream() -> None:
    world = World()
    channel = str(uuid.uuid4())
    world.accept(world.user, 9007, [["h", channel], ["name", "x"]])
    tags = world.metadata(channel, world.other).tags
    assert ("public",) in tags
    assert ("t", "stream") in tags


def test_2_6_9007_without_a_uuid_gets_one() -> None:
    world = World()
    world.accept(world.user, 9007, [["name", "x"]])
    (metadata,) = world.stored(world.user, {"kinds": [39000]})
    uuid.UUID(metadata.tags[0][1])


def test_2_6_9007_a_used_uuid_is_a_duplicate_that_is_not_accepted() -> None:
    world = World()
    channel = world.channel()
    tags = [["h", channel], ["name", "other"]]
    for author in (world.user, world.other):
        answer = world.submit(author, 9007, tags)
        assert (answer.accepted, answer.message, answer.status) == (
            False,
            "duplicate: channel already exists",
            200,
        )
    world.accept(world.user, 9008, [["h", channel]])
    assert said(world, world.user, 9007, *tags) == "duplicate: channel already exists"


@pytest.mark.parametrize(
    "tags",
    [
        [],
        [["name", " # "]],
        [["name", "x"], ["h", "nonsense"]],
        [["name", "x"], ["visibility", "public"]],
        [["name", "x"], ["channel_type", "chat"]],
        [["name", "x"], ["ttl", "-1"]],
        [["name", "x"], ["ttl", "0"]],
        [["name", "x"], ["ttl", "1.5"]],
        [["name", "x"], ["ttl", "9" * 5000]],
        [["name", "x"], ["ttl", "\u0663"]],
    ],
)
def test_2_6_9007_what_is_no_channel_is_refused(tags: list[list[str]]) -> None:
    world = World()
    assert said(world, world.user, 9007, *tags).startswith("invalid: ")


def test_2_6_9000_a_member_is_listed_and_told() -> None:
    world = World()
    channel = world.channel(world.agent)
    assert world.members(channel) == {world.user.pubkey: "owner", world.agent.pubkey: "member"}
    (notice,) = notices(world, 44100, world.agent)
    assert json.loads(notice.content)["actor"] == world.user.pubkey
    assert world.state.store.known(notice.id).channel is None  # type: ignore[union-attr]


def test_2_6_9000_any_member_adds_to_a_private_channel_and_anybody_to_an_open_one() -> None:
    world = World()
    private, public = world.channel(world.agent), world.channel(visibility="open")
    world.accept(world.agent, 9000, [["h", private], ["p", world.other.pubkey]])
    world.accept(world.other, 9000, [["h", public], ["p", world.agent.pubkey]])


def test_2_6_9000_roles_are_given_by_leaders() -> None:
    world = World()
    channel = world.channel(world.agent)
    to_other = [["h", channel], ["p", world.other.pubkey]]
    for role in ("owner", "admin"):
        assert "not authorized" in said(world, world.agent, 9000, *to_other, ["role", role])
    world.accept(world.agent, 9000, [*to_other, ["role", "bot"]])
    assert "not authorized" in said(world, world.agent, 9000, *to_other, ["role", "guest"])
    world.accept(world.user, 9000, [*to_other, ["role", "admin"]])
    assert world.members(channel)[world.other.pubkey] == "admin"


def test_trap_32_a_known_member_without_a_role_keeps_its_own() -> None:
    world = World()
    channel = world.channel()
    target = [["h", channel], ["p", world.agent.pubkey]]
    world.accept(world.user, 9000, [*target, ["role", "bot"]])
    world.clock.now += 1
    world.accept(world.user, 9000, target)
    assert world.members(channel)[world.agent.pubkey] == "bot"
    assert len(notices(world, 44100, world.agent)) == 1


def test_2_6_9000_the_last_owner_is_not_demoted() -> None:
    world = World()
    channel = world.channel(world.agent)
    demote = [["h", channel], ["p", world.user.pubkey], ["role", "member"]]
    assert "last owner" in said(world, world.user, 9000, *demote)
    world.accept(world.user, 9000, [["h", channel], ["p", world.agent.pubkey], ["role", "owner"]])
    world.accept(world.user, 9000, demote)


@pytest.mark.parametrize("tags", [[], [["p", "x"]], [["p", "a" * 64], ["p", "b" * 64]]])
@pytest.mark.parametrize("kind", [9000, 9001])
def test_2_6_9000_9001_name_exactly_one_key(kind: int, tags: list[list[str]]) -> None:
    world = World()
    assert said(world, world.user, kind, ["h", world.channel()], *tags).startswith("invalid: ")


def test_2_6_9000_an_unknown_role_is_refused() -> None:
    world = World()
    tags = [["h", world.channel()], ["p", "a" * 64], ["role", "king"]]
    assert said(world, world.user, 9000, *tags) == "invalid: unknown role"


@pytest.mark.parametrize(
    ("policy", "user", "owner"),
    [
        ("anyone", "", ""),
        ("owner_only", "policy:owner_only", ""),
        ("nobody",) + ("policy:nobody",) * 2,
    ],
)
def test_trap_60_the_targets_policy_counts(policy: str, user: str, owner: str) -> None:
    world = World()
    world.accept(world.agent, 10100, (), json.dumps({"channel_add_policy": policy}))
    for author, reason in ((world.user, user), (world.owner, owner)):
        tags = [["h", world.channel(creator=author)], ["p", world.agent.pubkey]]
        answer = world.submit(author, 9000, tags)
        assert answer.accepted is (reason == "")
        assert answer.message.startswith(reason)


def test_2_6_9001_who_may_remove_whom() -> None:
    world = World()
    channel = world.channel(world.agent, world.other, world.owner)
    agent = [["h", channel], ["p", world.agent.pubkey]]
    assert "not authorized" in said(world, world.other, 9001, *agent)
    world.accept(world.owner, 9001, agent)  # the agent's owner, itself a plain member
    (notice,) = notices(world, 44101, world.agent)
    assert json.loads(notice.content)["type"] == "member_removed"
    assert "not a channel member" in said(world, world.user, 9001, *agent)
    world.accept(world.other, 9001, [["h", channel], ["p", world.other.pubkey]])
    assert "last owner" in said(world, world.user, 9001, ["h", channel], ["p", world.user.pubkey])
    assert set(world.members(channel)) == {world.user.pubkey, world.owner.pubkey}
    assert system(world, channel)[-2:] == ["member_removed", "member_left"]


def test_2_6_9022_leaving() -> None:
    world = World()
    channel = world.channel(world.agent)
    world.accept(world.agent, 9022, [["h", channel]])
    assert notices(world, 44101, world.agent)
    world.clock.now += 1
    assert said(world, world.agent, 9022, ["h", channel]) == "restricted: not a channel member"
    assert "last owner" in said(world, world.user, 9022, ["h", channel])


def test_2_6_9021_joining() -> None:
    world = World()
    private, public = world.channel(), world.channel(visibility="open")
    assert said(world, world.other, 9021, ["h", private]) == "restricted: channel is private"
    world.accept(world.other, 9021, [["h", public]])
    assert world.members(public)[world.other.pubkey] == "member"
    world.clock.now += 1
    world.accept(world.other, 9021, [["h", public]])
    assert len(notices(world, 44100, world.other)) == 1


@pytest.mark.parametrize(
    ("field", "value", "tag"),
    [
        ("name", "#new", ("name", "new")),
        ("about", "text", ("about", "text")),
        ("visibility", "open", ("public",)),
        ("archived", "true", ("archived", "true")),
        ("ttl", "60", ("ttl", "60")),
    ],
)
def test_2_6_9002_guarded_fields(field: str, value: str, tag: tuple[str, ...]) -> None:
    world = World()
    channel = world.channel(world.agent)
    change = [["h", channel], [field, value]]
    refused = "invalid: actor not authorized for name/about/archived/visibility/ttl changes"
    for author in (world.agent, world.other):
        assert said(world, author, 9002, *change) == refused
    world.accept(world.user, 9002, change)
    assert tag in world.metadata(channel).tags


def test_trap_31_the_refusal_to_archive_contains_the_word() -> None:
    world = World()
    channel = world.channel(world.agent)
    assert "archived" in said(world, world.agent, 9002, ["h", channel], ["archived", "true"])


def test_2_6_9002_the_owner_of_the_owning_agent_may_edit() -> None:
    world = World()
    channel = world.channel(creator=world.agent)
    world.accept(world.owner, 9002, [["h", channel], ["archived", "true"]])


@pytest.mark.parametrize("field", ["topic", "purpose"])
def test_2_6_9002_topic_and_purpose_are_every_members(field: str) -> None:
    world = World()
    channel = world.channel(world.agent)
    world.accept(world.agent, 9002, [["h", channel], [field, "x"]])
    assert (field, "x") in world.metadata(channel).tags
    assert said(world, world.other, 9002, ["h", channel], [field, "y"]) == (
        "restricted: not a channel member"
    )
    assert system(world, channel)[-1] == f"{field}_changed"


@pytest.mark.parametrize(
    "tags",
    [
        [],
        [["name", "#"]],
        [["archived", "yes"]],
        [["visibility", "public"]],
        [["ttl", "x"]],
    ],
)
def test_2_6_9002_what_is_no_change_is_refused(tags: list[list[str]]) -> None:
    world = World()
    assert said(world, world.user, 9002, ["h", world.channel()], *tags).startswith("invalid: ")


def test_2_6_9002_an_empty_ttl_clears() -> None:
    world = World()
    channel = world.channel(ttl="60")
    world.accept(world.user, 9002, [["h", channel], ["ttl", ""]])
    assert not {"ttl", "ttl_deadline"} & {tag[0] for tag in world.metadata(channel).tags}


def test_2_6_9002_unarchiving_tells_every_member() -> None:
    world = World()
    channel = world.channel(world.agent)
    world.accept(world.user, 9002, [["h", channel], ["archived", "true"]])
    assert ("archived", "true") in world.metadata(channel, world.agent).tags
    world.clock.now += 5
    world.accept(world.user, 9002, [["h", channel], ["archived", "false"]])
    assert len(notices(world, 44100, world.agent)) == 2
    assert system(world, channel)[-2:] == ["channel_archived", "channel_unarchived"]


def test_2_6_9008_only_an_owner_deletes_and_nothing_is_left_to_read() -> None:
    world = World()
    channel = world.channel(world.agent)
    world.message(world.agent, channel)
    assert said(world, world.agent, 9008, ["h", channel]).startswith("invalid: ")
    assert said(world, world.other, 9008, ["h", channel]) == "restricted: not a channel member"
    world.accept(world.user, 9008, [["h", channel]])
    assert world.stored(world.user, {"#h": [channel]}) == []
    assert world.stored(world.user, {"kinds": [9, 39000, 39002]}) == []
    assert said(world, world.user, 9, ["h", channel]) == "restricted: not a channel member"


def test_trap_2_group_state_is_monotonic_within_one_second() -> None:
    world = World()
    channel = world.channel(world.agent, world.other)
    moments = [event.created_at for event in world.state.store.timeline() if event.kind == 39002]
    assert moments == [NOW, NOW + 1, NOW + 2]
    assert len(world.members(channel)) == 3


def test_2_8_a_member_removed_and_added_again_in_one_second_is_told_of_both() -> None:
    world = World()
    channel = world.channel(world.agent)
    target = [["h", channel], ["p", world.agent.pubkey]]
    world.accept(world.user, 9001, target)
    world.accept(world.user, 9000, [*target, ["role", "member"]])
    assert len(notices(world, 44100, world.agent)) == 2


def test_2_6_an_idle_channel_is_archived_and_messages_put_it_off() -> None:
    world = World()
    channel = world.channel(ttl="60")
    world.clock.now += 59
    world.message(world.user, channel)
    world.clock.now += 59
    world.core.refresh()
    assert not world.state.groups.get(channel).archived  # type: ignore[union-attr]
    world.clock.now += 1
    assert said(world, world.user, 9, ["h", channel]) == "invalid: channel is archived"
    assert ("archived", "true") in world.metadata(channel).tags
    assert system(world, channel)[-1] == "channel_auto_archived"


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (["visibility", "open"], "visibility_changed"),
        (["ttl", "60"], "ttl_changed"),
        (["archived", "true"], "channel_archived"),
        (["topic", "x"], "topic_changed"),
        (["purpose", "x"], "purpose_changed"),
    ],
)
def test_2_8_a_change_is_told_in_the_channel(change: list[str], word: str) -> None:
    world = World()
    channel = world.channel()
    world.accept(world.user, 9002, [["h", channel], change])
    assert system(world, channel)[-1] == word


def test_2_8_joining_and_leaving_are_told_with_who_and_whom() -> None:
    world = World()
    channel = world.channel(world.agent)
    joined = json.loads(
        next(
            event.content for event in reversed(world.state.store.timeline()) if event.kind == 40099
        )
    )
    assert joined == {
        "type": "member_joined",
        "actor": world.user.pubkey,
        "target": world.agent.pubkey,
    }
    assert system(world, channel) == ["channel_created", "member_joined"]


def test_2_8_a_deleted_message_is_told_in_the_channel() -> None:
    world = World()
    channel = world.channel()
    message = world.message(world.user, channel)
    world.accept(world.user, 9005, [["h", channel], ["e", message.id]])
    assert system(world, channel)[-1] == "message_deleted"


@pytest.mark.parametrize(("asked", "told"), [("open", "public"), ("private", "private")])
def test_trap_24_visibility_has_one_word_in_commands_and_one_in_metadata(
    asked: str, told: str
) -> None:
    world = World()
    channel = world.channel(visibility=asked)
    assert (told,) in world.metadata(channel).tags


@pytest.mark.parametrize(
    "twice",
    [
        [["visibility", "private"], ["visibility", "public"]],
        [["ttl", "60"], ["ttl", "soon"]],
        [["archived", "false"], ["archived", "perhaps"]],
        [["name", "good"], ["name", "#"]],
    ],
)
def test_2_6_9002_of_a_field_named_twice_the_first_counts(twice: list[list[str]]) -> None:
    world = World()
    channel = world.channel()
    world.accept(world.user, 9002, [["h", channel], *twice])
    held = world.state.groups.get(channel)
    assert held is not None
    assert held.visibility == "private"
    assert held.ttl_s in (None, 60)
    assert not held.archived
    assert held.name in ("trial", "good")


def test_2_6_a_ttl_of_a_command_starts_when_it_is_given() -> None:
    world = World()
    channel = world.channel()
    world.clock.now += 1000
    world.accept(world.user, 9002, [["h", channel], ["ttl", "60"]])
    assert ("ttl_deadline", "2023-11-14T22:31:00Z") in world.metadata(channel).tags
