"""Reading a verifier's word."""

from __future__ import annotations

import pytest

from workers.contract.outcome import Cause
from workers.trial.handoff import Unverified, Verified
from workers.trial.verify import read_reward, read_reward_text


def test_a_reward_and_its_dimensions() -> None:
    verified = read_reward(b'{"a": 1, "b": 0.0, "reward": 0.0}')
    assert verified == Verified(reward=0.0, dimensions={"a": 1.0, "b": 0.0})


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"1.0",
        b"{}",
        b'{"a": 1.0}',
        b'{"reward": true}',
        b'{"reward": "1.0"}',
        b'{"reward": null}',
        b'{"reward": NaN}',
        b'{"reward": Infinity}',
        b'{"reward": 1e999}',
        b'{"reward": 2}',
        b'{"reward": -0.5}',
        b'{"reward": 1.0, "a": []}',
        b'{"reward": 1' + b"0" * 5000 + b"}",
        b"[" * 100_000,
        b"\xff\xfe",
    ],
)
def test_anything_else_is_malformed(data: bytes) -> None:
    verified = read_reward(data)
    assert isinstance(verified, Unverified)
    assert verified.cause is Cause.REWARD_MALFORMED


@pytest.mark.parametrize(
    ("data", "reward"),
    [(b"1\n", 1.0), (b"0", 0.0), (b" 1.0 ", 1.0), (b"+.5", 0.5), (b"2e-1", 0.2), (b"1.", 1.0)],
)
def test_a_reward_in_plain_text(data: bytes, reward: float) -> None:
    assert read_reward_text(data) == Verified(reward=reward, dimensions={})


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"nan",
        b"inf",
        b"1_0",
        b"2",
        b"-1",
        b"1 1",
        b"true",
        b"0x1",
        b"\xff",
        b"\xd9\xa1",
        b"1e400",
    ],
)
def test_any_other_text_is_malformed(data: bytes) -> None:
    verified = read_reward_text(data)
    assert isinstance(verified, Unverified)
    assert verified.cause is Cause.REWARD_MALFORMED


@pytest.mark.parametrize(
    ("data", "reward", "dimensions"),
    [
        (b'{"a": 1, "b": 0.5}', 0.5, {"a": 1.0, "b": 0.5}),
        (b'{"accuracy": 1}', 1.0, {"accuracy": 1.0}),
        (b'{"reward": 0.25, "a": 0}', 0.25, {"a": 0.0}),
    ],
)
def test_of_several_rewards_without_a_name_the_least_counts(
    data: bytes, reward: float, dimensions: dict[str, float]
) -> None:
    assert read_reward(data, several=True) == Verified(reward=reward, dimensions=dimensions)


@pytest.mark.parametrize("data", [b"{}", b'{"a": -1, "b": 1}', b'{"a": "1"}', b'{"a": 2}'])
def test_several_rewards_may_be_malformed_too(data: bytes) -> None:
    word = read_reward(data, several=True)
    assert isinstance(word, Unverified) and word.cause is Cause.REWARD_MALFORMED
