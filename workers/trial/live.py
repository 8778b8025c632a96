"""What a running trial shows to those who follow it.

Texts are struck of the trial's secrets before they are cut, and the whole document once more, so
that no half of one remains.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from workers.contract.evidence import MESSAGE_KINDS, Evidence, TrialRef, channel_of
from workers.contract.live import LiveAgent, LiveCall, LiveTrial, LogEntry
from workers.contract.outcome import Phase
from workers.gateway.ledger import LedgerLine, usage_of
from workers.nostr.event import Event
from workers.trial.collect import identities_of, message_of, names_by_key, signed_tags
from workers.trial.files import LogTail, UnsafeFileError
from workers.trial.handoff import Job, Provisioned
from workers.trial.markers import TurnLog
from workers.trial.secrets import Secrets

MESSAGES_SHOWN = 100
"""The last ones."""
TEXT_MAX = 4000
"""Characters of a message."""
CALLS_SHOWN = 20
LOG_LINES_SHOWN = 20
"""Of each agent."""
LOG_LINE_MAX = 300
DOCUMENT_MAX = 512 * 1024
TOOL_FINISHES = ("tool_calls", "tool_use")
"""Why a model stopped, where it wants a tool."""


class _Seen(NamedTuple):
    """What was there at one moment."""

    number: int
    phase: Phase
    elapsed_s: float
    timeline: Sequence[Event]
    ledger: Sequence[LedgerLine]


class LiveLook:
    """Looks at one running trial."""

    def __init__(
        self, job: Job, provisioned: Provisioned, node: str, phase: Callable[[], Phase]
    ) -> None:
        """``phase`` says where the trial is."""
        self._job = job
        self._provisioned = provisioned
        self._node = node
        self._phase = phase
        self._logs = {
            agent.id: _AgentLog(job.folder.agent_logs / f"{agent.id}.stdout.log", job.secrets)
            for agent in provisioned.agents
        }

    def __call__(self, number: int) -> Callable[[], bytes]:
        """Takes in what there is, at once; what is returned makes the document, in a thread."""
        seen = _Seen(
            number,
            self._phase(),
            time.monotonic() - self._provisioned.opened_s,
            self._provisioned.relay.timeline(),
            self._provisioned.gateway.lines(),
        )
        return lambda: self._document(seen)

    def _document(self, seen: _Seen) -> bytes:
        for log in self._logs.values():
            log.read()
        data = b""
        shown, text_max = MESSAGES_SHOWN, TEXT_MAX
        while shown:
            document = self._trial(seen, shown, text_max)
            data = self._job.secrets.strike(document.to_json().encode("utf-8", "replace"))
            if len(data) <= DOCUMENT_MAX:
                break
            shown, text_max = shown // 2, text_max // 2
        return data + b"\n"

    def _trial(self, seen: _Seen, shown: int, text_max: int) -> LiveTrial:
        job, lease = self._job, self._job.lease
        return LiveTrial.model_validate(
            {
                "number": seen.number,
                "sweep": job.sweep.sweep,
                "attempt": lease.attempt,
                "index": lease.index,
                "try": job.try_,
                "condition": job.cell.condition.condition,
                "task": job.cell.task.name,
                "node": self._node,
                "phase": seen.phase.value,
                "elapsed_s": round(seen.elapsed_s, 1),
                "agents": tuple(
                    _agent(name, seen.ledger, log.turns) for name, log in self._logs.items()
                ),
                "calls": tuple(_call(line) for line in seen.ledger[-CALLS_SHOWN:]),
                "log": tuple(
                    LogEntry(agent=agent, text=text)
                    for agent, log in self._logs.items()
                    for text in log.last
                ),
                "channel": self._channel(seen, shown, text_max),
            }
        )

    def _channel(self, seen: _Seen, shown: int, text_max: int) -> Evidence:
        job, provisioned = self._job, self._provisioned
        ours = [
            event
            for event in seen.timeline
            if event.kind in MESSAGE_KINDS
            and channel_of(signed_tags(event)) == provisioned.channel_id
        ]
        user = provisioned.user.keypair.pubkey
        names = names_by_key(provisioned)
        messages = []
        for event in ours[-shown:]:
            message = message_of(event, names)
            text = _cut(message.content, text_max, job.secrets)
            messages.append(message.model_copy(update={"content": text}))
        return Evidence(
            trial=TrialRef(
                run_id=job.sweep.sweep,
                trial_id=f"{job.lease.attempt}/{job.try_}",
                channel_id=provisioned.channel_id,
            ),
            task_event_id=next((event.id for event in ours if event.pubkey == user), None),
            completion_message_id=None,
            task_name=job.cell.task.bare_name,
            identities=identities_of(provisioned),
            directory=provisioned.directory,
            scripted_events=(),
            observed_channels=(),
            message_count=len(ours),
            truncated=len(ours) > shown,
            messages=tuple(messages),
        )


class _AgentLog:
    """An agent's log as far as it has been read; used by one thread."""

    def __init__(self, path: Path, secrets: Secrets) -> None:
        self._tail = LogTail(path)
        self._secrets = secrets
        self.turns = TurnLog()
        self.last: deque[str] = deque(maxlen=LOG_LINES_SHOWN)

    def read(self) -> None:
        """Reads on; of a long log a part, the rest comes the next times."""
        try:
            lines = self._tail.lines()
        except UnsafeFileError:
            return  # The trial itself ends for that.
        self.turns.read(lines)
        for line in lines[-LOG_LINES_SHOWN:]:
            struck = self._secrets.strike(line.encode("utf-8", "replace"))
            self.last.append(struck.decode("utf-8", "replace")[:LOG_LINE_MAX])


def _cut(text: str, most: int, secrets: Secrets) -> str:
    if len(text) <= most:
        return text
    struck = secrets.strike(text.encode("utf-8", "replace")).decode("utf-8", "replace")
    left = len(struck) - most
    return f"{struck[:most]}… [{left} more characters]" if left > 0 else struck


def _agent(agent: str, ledger: Sequence[LedgerLine], turns: TurnLog) -> LiveAgent:
    own = [line for line in ledger if line.agent == agent]
    return LiveAgent(
        agent=agent,
        turns_started=turns.starts,
        turns_ended=turns.ends,
        tool_calls=sum(line.finish in TOOL_FINISHES for line in own),
        usage=usage_of(own),
    )


def _call(line: LedgerLine) -> LiveCall:
    return LiveCall(
        agent=line.agent,
        model=line.model,
        result=line.result.value,
        seconds=round(line.seconds, 3),
        input_tokens=line.input_tokens,
        output_tokens=line.output_tokens,
        finish=line.finish,
    )
