"""A run of many messages against relay after relay, each judged after every message."""

from __future__ import annotations

import json
import random
import resource
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tests.workers.relay.builders import HOST
from tests.workers.relay.fuzzing.judge import BrokenInvariantError
from tests.workers.relay.fuzzing.messages import Messages
from tests.workers.relay.fuzzing.stage import Line, Stage
from workers.nostr.attestation import attest
from workers.nostr.event import Event
from workers.nostr.http_auth import authorize
from workers.relay.bridge import BridgeRequest

STAGE_MESSAGES = 2000
"""How many messages one relay takes before the next one takes its place."""
MAX_MESSAGE_S = 5.0
"""No single message may take longer, on however busy a machine."""
HTTP_SHARE = 0.06


@dataclass
class Tally:
    """What a campaign did."""

    messages: int = 0
    stored: int = 0
    deliveries: int = 0
    worst_s: float = 0.0
    cpu_s: float = 0.0
    grown_kib: int = 0
    """Growth of the largest resident size after the third relay."""
    sorts: Counter[str] = field(default_factory=Counter)
    answers: Counter[str] = field(default_factory=Counter)

    def lines(self) -> list[str]:
        """The figures as text."""
        rate = self.messages / self.cpu_s if self.cpu_s else 0.0
        return [
            f"messages {self.messages} ({rate:.0f} a CPU second), stored {self.stored}, "
            f"deliveries {self.deliveries}, slowest {self.worst_s * 1000:.0f} ms, "
            f"memory grown {self.grown_kib} KiB",
            *(f"  {count:9d} {sort}" for sort, count in self.sorts.most_common()),
            *(f"  {count:9d} → {answer}" for answer, count in self.answers.most_common(40)),
        ]


class Campaign:
    """Sends messages until a number or a time is reached."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.tally = Tally()

    def run(self, messages: int | None = None, seconds: float | None = None) -> Tally:
        """Runs it.

        Raises:
            BrokenInvariantError: the relay did what it never may; seed and place are named.
        """
        began, turn = time.process_time(), 0
        start_kib = 0
        until = None if seconds is None else time.monotonic() + seconds
        while not self._is_over(messages, until):
            left = STAGE_MESSAGES if messages is None else messages - self.tally.messages
            self._stage(turn, min(STAGE_MESSAGES, left), until)
            turn += 1
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            start_kib = peak if turn <= 3 else start_kib
            self.tally.grown_kib = peak - start_kib
            self.tally.cpu_s = time.process_time() - began
        return self.tally

    def _is_over(self, messages: int | None, until: float | None) -> bool:
        if messages is not None and self.tally.messages >= messages:
            return True
        return until is not None and time.monotonic() >= until

    def _stage(self, turn: int, messages: int, until: float | None) -> None:
        chance = random.Random(f"{self.seed}:{turn}")
        stage = Stage(chance)
        made = Messages(stage, chance)
        for step in range(messages):
            if until is not None and time.monotonic() >= until:
                break
            try:
                self._step(stage, made, chance)
            except BrokenInvariantError as error:
                place = f"seed {self.seed}, relay {turn}, message {step}"
                raise BrokenInvariantError(f"{place}: {error}") from error
        self.tally.deliveries += stage.judge.deliveries
        stage.close()

    def _step(self, stage: Stage, made: Messages, chance: random.Random) -> None:
        if chance.random() < 0.02:
            stage.world.clock.now += chance.choice([1, 1, 1, 2, 30])
            stage.world.core.refresh()  # what the time brings goes to subscriptions as they are
        line = chance.choice(stage.lines)
        began = time.perf_counter()
        if chance.random() < HTTP_SHARE:
            sort = "http"
            event, accepted, refused = self._post(stage, made, chance, line)
        else:
            sort, text = made.text(line)
            event, accepted, refused = self._say(line, text)
        took = time.perf_counter() - began
        self.tally.messages += 1
        self.tally.sorts[sort] += 1
        self.tally.worst_s = max(self.tally.worst_s, took)
        if took > MAX_MESSAGE_S:
            raise BrokenInvariantError(f"{took:.1f} s for one message of sort {sort}")
        for other in stage.lines:
            other.ear.take()
        author = None if line.pair is None else line.pair.pubkey
        self.tally.stored += stage.judge.after(author, accepted, refused)
        if event is not None and accepted:
            stage.events.append(event)
            del stage.events[3:-60]

    def _say(self, line: Line, text: str | bytes) -> tuple[Event | None, dict[str, int], set[str]]:
        event = _event_in(text)
        accepted: dict[str, int] = {}
        refused: set[str] = set()
        for reply in line.say(text):
            if reply[0] != "OK":
                self.tally.answers[_summary(reply)] += 1
                continue
            _, event_id, is_accepted, words = reply
            self.tally.answers[f"OK {is_accepted} {words.split('{')[0][:60]}"] += 1
            if not is_accepted:
                refused.add(event_id)
            elif not words.startswith("duplicate:") and event is not None:
                accepted[event_id] = event.kind
        return event, accepted, refused

    def _post(
        self, stage: Stage, made: Messages, chance: random.Random, line: Line
    ) -> tuple[Event | None, dict[str, int], set[str]]:
        path = chance.choice(["/events", "/query", "/query", "/count"])
        data: Any = made.event(line).to_dict() if path == "/events" else made.filters()
        if path == "/events" and chance.random() < 0.2:
            data = made.forged(Event.from_dict(data))
        body = json.dumps(data).encode()
        pair = line.pair or stage.stranger
        signed = body if chance.random() < 0.9 else body + b" "
        header = authorize(pair, f"http://{HOST}{path}", "POST", signed, stage.world.clock())
        tag = None
        if line.pair is not None and pair != stage.world.owner:
            tag = attest(stage.world.owner, pair.pubkey).to_text()
        reply = stage.bridge.handle(BridgeRequest(path, HOST, header, tag, body))
        self.tally.answers[f"HTTP {path} {reply.status}"] += 1
        if line.pair is None and reply.status == 200:
            raise BrokenInvariantError(f"a stranger was served: {path} {reply.body!r}")
        if path == "/query" and reply.status == 200:
            for row in reply.body:
                if row["kind"] != 20001:
                    stage.judge.must_read(pair.pubkey, Event.from_dict(row))
        if path != "/events" or reply.status != 200 or not reply.body["accepted"]:
            return None, {}, set()
        event = Event.from_dict(data)
        is_new = not reply.body["message"].startswith("duplicate:")
        return event, {event.id: event.kind} if is_new else {}, set()


def _event_in(text: str | bytes) -> Event | None:
    """The event of an ``EVENT`` message, where it is one."""
    try:
        verb, data = json.loads(text)
        return Event.from_dict(data) if verb == "EVENT" else None
    except (ValueError, TypeError, RecursionError):
        return None


def _summary(reply: list[Any]) -> str:
    words = reply[-1] if reply[0] in ("NOTICE", "CLOSED") else ""
    return f"{reply[0]} {str(words)[:50]}".strip()
