"""What the production stack's own logs say of its tokens, held against the gateway's ledger.

``buzz-agent`` writes a line for each successful call with the provider's counts (``llm: call
completed``), and one without counts for each summary of a conversation that grew too long. Two
countings that differ are a note on the try, never a verdict: what the agent reports of itself is
not what its provider bills.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from workers.contract.result import TokenDifference, Tokens
from workers.gateway import CallResult, LedgerLine
from workers.trial.files import UnsafeFileError, lines_with, read_guarded
from workers.trial.handoff import Job, Provisioned
from workers.trial.markers import without_colours

LOG_BYTES = 64 * 1024 * 1024
"""A longer log is not compared."""
_COMPLETED = "llm: call completed"
_SUMMARISED = "llm: summarize completed"
_FIELD = re.compile(r"\b(input_tokens|cached_input_tokens|output_tokens)=(?:Some\((\d+)\)|(\d+))")


class _Call(NamedTuple):
    """The counts of one call; null: not reported."""

    input: int | None
    cached: int | None
    output: int | None


class _Told(NamedTuple):
    """What a log says."""

    calls: list[_Call]
    summaries: int


def token_differences(job: Job, provisioned: Provisioned) -> tuple[TokenDifference, ...]:
    """The agents whose log and ledger do not agree; blocks. Nobody but agent ``buzz`` is asked."""
    if job.sweep.agent != "buzz":
        return ()
    ledger = provisioned.gateway.lines()
    found = []
    for agent in provisioned.agents:
        path = job.folder.agent_logs / f"{agent.id}.stderr.log"
        lines = [line for line in ledger if line.agent == agent.id]
        try:
            told = read_told(read_guarded(path, LOG_BYTES))
        except FileNotFoundError:
            told = _Told([], 0)
        except UnsafeFileError as error:
            found.append(TokenDifference(agent=agent.id, unread=str(error)))
            continue
        difference = compare(agent.id, told, lines)
        if difference is not None:
            found.append(difference)
    return tuple(found)


def read_told(data: bytes) -> _Told:
    """The calls of an agent's standard error."""
    calls, summaries = [], 0
    for raw in lines_with(data, (b"llm: ",)):
        line = without_colours(raw.decode("utf-8", "replace"))
        if _SUMMARISED in line:
            summaries += 1
        elif _COMPLETED in line:
            fields = {match[1]: int(match[2] or match[3]) for match in _FIELD.finditer(line)}
            calls.append(
                _Call(
                    fields.get("input_tokens"),
                    fields.get("cached_input_tokens"),
                    fields.get("output_tokens"),
                )
            )
    return _Told(calls, summaries)


def compare(agent: str, told: _Told, lines: Iterable[LedgerLine]) -> TokenDifference | None:
    """What is left when each call of the log has taken its own line of the ledger.

    A summary has no counts in the log: as many lines of the ledger may be left over. Nothing
    cached is the same as no word of it.
    """
    answered = Counter(
        _Call(line.input_tokens, line.cached_input_tokens or 0, line.output_tokens)
        for line in lines
        if line.result is CallResult.OK
    )
    logged = Counter(call._replace(cached=call.cached or 0) for call in told.calls)
    only_log, only_ledger = logged - answered, answered - logged
    if not only_log and only_ledger.total() <= told.summaries:
        return None
    return TokenDifference(
        agent=agent,
        log=_sum(logged),
        ledger=_sum(answered),
        summaries=told.summaries,
        only_in_log=only_log.total(),
        only_in_ledger=only_ledger.total(),
    )


def _sum(calls: Counter[_Call]) -> Tokens:
    return Tokens(
        calls=calls.total(),
        input_tokens=sum((call.input or 0) * count for call, count in calls.items()),
        cached_input_tokens=sum((call.cached or 0) * count for call, count in calls.items()),
        output_tokens=sum((call.output or 0) * count for call, count in calls.items()),
    )
