"""Reading a verifier's word."""

from __future__ import annotations

import pytest

from workers.contract.outcome import Cause
from workers.trial.handoff import Unverified, Verified
from workers.trial.verify import read_reward


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
