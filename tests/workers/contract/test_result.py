from __future__ import annotations

import json

import pytest

from workers.contract.base import FormatError
from workers.contract.outcome import Blame, Cause, Phase, Verdict
from workers.contract.result import Digests, TryRecord, attempt_prefix, result_key, try_prefix

RECORD = TryRecord.model_validate(
    {
        "sweep": "s", "attempt": "ab" * 16, "index": 0, "try": "1-2", "cell": "c",
        "condition": "one", "task": "buzz-native/t", "layer": "regression",
        "verdict": Verdict.FAIL, "blame": Blame.MODEL, "phase": Phase.SEAL, "cause": Cause.WRONG,
        "reward": 0.0, "dimensions": {"answer_correct": 0.0}, "started_at": "2026-08-30T12:00:00Z",
        "ended_at": "2026-08-30T12:00:01Z", "node": "n", "epoch": (1, 2),
        "digests": Digests(task="t", condition="c"),
    }
)  # fmt: skip

PROMISED = {
    "attempt", "try", "condition", "task", "layer", "verdict", "blame", "phase", "cause",
    "reward", "dimensions", "phase_seconds", "usage", "node", "epoch", "digests",
}  # fmt: skip


def test_a_record_has_the_promised_keys_and_survives_its_stored_form() -> None:
    data = json.loads(RECORD.to_json())
    assert data.keys() >= PROMISED
    assert "try_" not in data
    assert TryRecord.from_json(RECORD.to_json(), "result.json") == RECORD


def test_unknown_versions_and_words_are_refused() -> None:
    for change in ({"schema_version": 2}, {"verdict": "maybe"}, {"extra": 1}, {"reward": "1"}):
        text = json.dumps({**json.loads(RECORD.to_json()), **change})
        with pytest.raises(FormatError, match=r"^result\.json: "):
            TryRecord.from_json(text, "result.json")


def test_keys_lie_where_the_layout_says() -> None:
    attempt = RECORD.attempt
    assert attempt_prefix("s", attempt) == f"sweeps/s/attempts/ab/{attempt}"
    assert result_key("s", attempt) == f"sweeps/s/attempts/ab/{attempt}/result.json"
    assert try_prefix("s", attempt, "1-2") == f"sweeps/s/tries/ab/{attempt}/1-2"
