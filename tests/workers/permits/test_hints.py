"""What a provider's headers say about its rate."""

from __future__ import annotations

import pytest

from workers.permits.hints import hints_of

WALL_S = 1_000_000_000.0  # Sun, 09 Sep 2001 01:46:40 GMT


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ([("Retry-After", "7")], 7.0),
        ([("retry-after", " 1.5 ")], 1.5),
        ([("retry-after-ms", "250"), ("retry-after", "1")], 0.25),
        ([("Retry-After", "Sun, 09 Sep 2001 01:47:10 GMT")], 30.0),
        ([("Retry-After", "Sun, 09 Sep 2001 01:46:00 GMT")], 0.0),
        (
            # Measured on the provider's clock, however wrong ours is.
            [
                ("Date", "Mon, 30 Nov 2026 12:00:00 GMT"),
                ("Retry-After", "Mon, 30 Nov 2026 12:00:09 GMT"),
            ],
            9.0,
        ),
        ([], None),
        ([("Retry-After", "")], None),
        ([("Retry-After", "soon")], None),
        ([("Retry-After", "-3")], None),
        ([("Retry-After", "nan")], None),
        ([("Retry-After", "inf")], None),
        ([("Retry-After", "Sun, 99 Sep 2001 01:47:10 GMT")], None),
        ([("Retry-After", "Sun, 09 Sep 99999999999 01:47:10 GMT")], None),
    ],
)
def test_how_long_to_wait(headers: list[tuple[str, str]], seconds: float | None) -> None:
    assert hints_of(headers, WALL_S).retry_after_s == seconds


def test_allowances_are_those_of_a_minute() -> None:
    openai = [("x-ratelimit-limit-requests", "600"), ("x-ratelimit-limit-tokens", "60000")]
    assert hints_of(openai, WALL_S) == (None, 10.0, 1000.0)
    anthropic = [
        ("anthropic-ratelimit-requests-limit", "120"),
        ("anthropic-ratelimit-tokens-limit", "6000"),
    ]
    assert hints_of(anthropic, WALL_S) == (None, 2.0, 100.0)
    assert hints_of([("x-ratelimit-limit-requests", "0")], WALL_S).requests_per_s is None
