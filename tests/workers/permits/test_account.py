"""Which endpoints share an account, and what an endpoint file may limit."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from tests.scheduler.permits.world import endpoint
from workers.contract.endpoint import Endpoint


def test_provider_base_url_and_key_make_an_account_and_the_model_does_not() -> None:
    one = endpoint(model="a", max_concurrency=3)
    assert one.account == endpoint(model="b", base_url="http://p/").account
    others = (
        endpoint(base_url="http://q"),
        endpoint(api_key_env="L"),
        endpoint(provider="anthropic"),
    )
    assert len({one.account, *(each.account for each in others)}) == 4
    own = Endpoint.model_validate({"provider": "openai", "api_key_env": "K"})
    assert own.account == "openai https://api.openai.com/v1 K"


def test_what_a_node_serves_itself_has_no_account() -> None:
    assert Endpoint.model_validate({"provider": "scripted"}).account is None
    assert Endpoint.model_validate({"provider": "scripted", "base_url": "http://s"}).account


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_concurrency": 0},
        {"max_concurrency": 2.5},
        {"max_concurrency": "4"},
        {"requests_per_minute": 0},
        {"requests_per_minute": -1},
        {"requests_per_minute": True},
        {"tokens_per_minute": float("inf")},
        {"tokens_per_minute": float("nan")},
        {"requests_per_second": 1},
    ],
)
def test_a_limit_that_makes_no_sense_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        endpoint(**wrong)


def test_limits_may_be_whole_numbers_or_not() -> None:
    made = endpoint(max_concurrency=4, requests_per_minute=60, tokens_per_minute=1e6)
    assert (made.max_concurrency, made.requests_per_minute, made.tokens_per_minute) == (4, 60, 1e6)
