"""Endpoints that fail: the provider's doing only where that decided the end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.classification.cases import case
from tests.classification.endpoints import (
    Answer,
    always,
    answering,
    closing,
    recovering,
    silent,
)
from tests.classification.trials import SAY, trial
from workers.contract.result import TryRecord


async def under(folder: Path, answer: Answer, **options: Any) -> TryRecord:
    """A trial on an endpoint that answers like this."""
    async with answering(answer) as endpoint:
        return await trial(folder, endpoint=endpoint, **options)


def failed(record: TryRecord, status: int | None) -> TryRecord:
    """A record that says which provider failed how, in fields."""
    assert record.endpoint == "test-model"
    assert record.provider is not None
    assert record.provider.last_status == status
    assert record.provider.since_last_s <= 30.0 or record.provider.share > 0.5
    return record


@case("provider", "401", "invalid provider provider_auth drive whole")
async def _auth(folder: Path) -> TryRecord:
    return failed(await under(folder, always("401 Unauthorized")), 401)


@case("provider", "429 for ever", "invalid provider rate_limited drive whole")
async def _limited(folder: Path) -> TryRecord:
    return failed(await under(folder, always("429 Too Many Requests")), 429)


@case("provider", "500", "invalid provider provider_5xx drive whole")
async def _broken(folder: Path) -> TryRecord:
    return failed(await under(folder, always("500 Internal Server Error")), 500)


@case("provider", "200 with broken JSON", "invalid provider provider_malformed drive whole")
async def _malformed(folder: Path) -> TryRecord:
    return failed(await under(folder, always("200 OK", b'{"choices": [')), 200)


@case("provider", "404 from the first", "invalid provider provider_malformed drive whole")
async def _unknown_model(folder: Path) -> TryRecord:
    return failed(await under(folder, always("404 Not Found")), 404)


@case("provider", "a closed connection", "invalid provider provider_unreachable drive whole")
async def _closing(folder: Path) -> TryRecord:
    return failed(await under(folder, closing), None)


@case("provider", "nothing at all", "invalid provider provider_unreachable drive whole")
async def _silent(folder: Path) -> TryRecord:
    record = failed(await under(folder, silent, agent_s=12.0), None)
    assert record.provider is not None
    assert record.provider.share > 0.5
    return record


@case(
    "provider",
    "failed most of the time, then worked until the deadline",
    "fail model agent_timeout drive never",
)
async def _recovered(folder: Path) -> TryRecord:
    record = await under(folder, recovering(2, 5.0, f"{SAY}; sleep 600"), agent_s=18.0)
    assert record.endpoint is None
    assert record.usage.failed_calls == 2
    return record
