"""Channels as the relay describes them (§2.7)."""

from __future__ import annotations

from workers.relay.groups import Channel, Groups, admin_tags, member_tags, metadata_tags

A, B, C = "a" * 64, "b" * 64, "c" * 64


def test_2_7_every_metadata_tag_in_its_order() -> None:
    channel = Channel(
        "id", "n", "private", "dm", "a", "t", "p", True, 60, 0.0, members={A: "owner", B: "bot"}
    )
    assert metadata_tags(channel) == (
        ("d", "id"),
        ("name", "n"),
        ("about", "a"),
        ("private",),
        ("hidden",),
        ("p", A),
        ("p", B),
        ("closed",),
        ("t", "dm"),
        ("topic", "t"),
        ("purpose", "p"),
        ("archived", "true"),
        ("ttl", "60"),
        ("ttl_deadline", "1970-01-01T00:00:00Z"),
    )


def test_2_7_optional_tags_are_left_out() -> None:
    assert metadata_tags(Channel("id", "n")) == (
        ("d", "id"),
        ("name", "n"),
        ("public",),
        ("closed",),
        ("t", "stream"),
    )


def test_trap_23_the_role_stands_third_among_admins_and_fourth_among_members() -> None:
    channel = Channel("id", "n", members={B: "member", A: "owner", C: "admin"})
    assert admin_tags(channel) == (("d", "id"), ("p", A, "owner"), ("p", C, "admin"))
    assert member_tags(channel) == (
        ("d", "id"),
        ("p", B, "", "member"),
        ("p", A, "", "owner"),
        ("p", C, "", "admin"),
    )


def test_2_6_who_reads() -> None:
    groups = Groups()
    groups.add(Channel("open", "n"))
    groups.add(Channel("closed", "n", "private", members={A: "owner"}))
    assert groups.readable(A) == {"open", "closed"}
    assert groups.readable(B) == {"open"}
    groups.remove("closed")
    assert groups.readable(A) == {"open"}
    assert groups.was_used("closed")
    assert groups.get("closed") is None
    assert groups.get(None) is None


def test_2_6_owners() -> None:
    channel = Channel("id", "n", members={A: "owner", B: "admin"})
    assert channel.is_last_owner(A)
    assert not channel.is_last_owner(B)
    channel.members[B] = "owner"
    assert not channel.is_last_owner(A)


def test_2_6_idle_lifetimes() -> None:
    groups = Groups()
    channel = Channel("id", "n", ttl_s=10)
    channel.touch(100)
    groups.add(channel)
    groups.add(Channel("stays", "n"))
    assert list(groups.expired(109)) == []
    assert list(groups.expired(110)) == [channel]
    channel.archived = True
    assert list(groups.expired(110)) == []
