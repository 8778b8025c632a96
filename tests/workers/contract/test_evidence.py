from __future__ import annotations

import pytest

from workers.contract.evidence import channel_of, mentioned, reply_target

Tags = tuple[tuple[str, ...], ...]


@pytest.mark.parametrize(
    ("tags", "target", "keys", "channel"),
    [
        ((), None, (), None),
        ((("e", "1", "", "reply"),), "1", (), None),
        ((("e", "1", "", "root"), ("e", "2", "", "reply"), ("e", "3", "", "reply")), "2", (), None),
        ((("e", "1"), ("e", "1", "reply"), ("q", "1", "", "reply")), None, (), None),
        ((("p", "a"), ("p", "b", "x"), ("p",), ("p", "a")), None, ("a", "b", "a"), None),
        ((("h",), ("h", "c"), ("h", "d")), None, (), "c"),
        (((),), None, (), None),
    ],
)
def test_derived_fields_follow_the_tags(
    tags: Tags, target: str | None, keys: tuple[str, ...], channel: str | None
) -> None:
    assert reply_target(tags) == target
    assert mentioned(tags) == keys
    assert channel_of(tags) == channel
