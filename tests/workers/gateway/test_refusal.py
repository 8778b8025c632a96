from __future__ import annotations

import json

import pytest

from workers.contract.endpoint import Dialect
from workers.gateway.refusal import (
    budget_refusal,
    refusal_body,
    route_refusal,
    token_refusal,
    unreachable_refusal,
)


@pytest.mark.parametrize("dialect", ["chat", "responses", None])
def test_in_the_shape_of_openai(dialect: Dialect | None) -> None:
    assert json.loads(refusal_body(dialect, budget_refusal("solo-1", "max_calls 3"))) == {
        "error": {
            "type": "budget_exhausted",
            "code": "refused_budget",
            "message": "the budget of solo-1 is spent: max_calls 3 of its condition is reached",
            "param": None,
        }
    }


def test_in_the_shape_of_anthropic() -> None:
    body = json.loads(refusal_body("messages", unreachable_refusal("gone")))
    assert body == {"type": "error", "error": {"type": "api_error", "message": "gone"}}


def test_statuses() -> None:
    refusals = (
        budget_refusal("a", "b"),
        token_refusal(),
        route_refusal(404, "x"),
        unreachable_refusal("y"),
    )
    assert [one.status for one in refusals] == [402, 401, 404, 502]
