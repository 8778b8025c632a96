from __future__ import annotations

import pytest

from scheduler.watch.words import amount, duration, money


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (59.6, "1 min 00 s"), (185, "3 min 05 s"), (7620, "2 h 07 min")],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_amounts_and_money() -> None:
    assert [amount(n) for n in (0, 9999, 10_000, 999_949, 999_950)] == [
        "0",
        "9999",
        "10.0k",
        "999.9k",
        "1.0M",
    ]
    assert [money(usd) for usd in (0, 0.00123, 12.3)] == ["$0.00", "$0.0012", "$12.30"]
