"""Messages for a relay: well formed, altered, forged and senseless. Chance is seeded."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

from tests.workers.relay.fuzzing.stage import Line, Stage
from workers.nostr.event import Event

KINDS = [
    *(0, 1, 5, 7, 9, 9, 9, 9, 1059, 9000, 9001, 9002, 9005, 9007, 9008, 9021, 9022, 10100),
    *(20001, 20002, 22242, 24200, 30174, 30175, 30178, 30300, 30315, 39000, 39002, 40002, 40003),
    *(40007, 40099, 40100, 41001, 41010, 44100, 44200, 45001, 45002, 46010, 48106, 65535),
]
WORDS = ["secret", "one", "", "é\n", "\x00", '{"name":"x"}', "+", "x" * 300, "{}", "public", "[]"]
FITTING = {
    0: ['{"display_name":"x"}', "{}", "secret"],
    7: ["+", "-", "👀"],
    10100: ['{"channel_add_policy":"anyone"}', '{"channel_add_policy":"nobody"}', "{}"],
}
"""Contents that kinds with a rule of their own accept."""
TAG_NAMES = ["h", "p", "e", "d", "name", "role", "visibility", "archived", "ttl", "topic", "x", ""]
SCRAPS: list[Any] = [None, True, 0, -1, 1e300, "", "x", [], {}, [[]], "a" * 64, "\ud800", 2**70]


class Messages:
    """Makes messages for one stage."""

    def __init__(self, stage: Stage, chance: random.Random) -> None:
        self.stage = stage
        self.chance = chance
        self.sent: list[str] = ["[]"]
        """Texts to alter, the youngest few hundred."""

    def text(self, line: Line) -> tuple[str, str | bytes]:
        """A message of any sort for a connection, and what sort it is."""
        sorts: list[tuple[float, str, Callable[[Line], str | bytes]]] = [
            (0.30, "event", lambda at: self._say("EVENT", self.event(at).to_dict())),
            (0.06, "foreign event", lambda at: self._say("EVENT", self._foreign().to_dict())),
            (0.06, "forged event", lambda at: self._say("EVENT", self.forged(self.event(at)))),
            (0.06, "repeated event", lambda at: self._say("EVENT", self._known().to_dict())),
            (0.14, "request", lambda at: self._say("REQ", self._name(), *self.filters())),
            (0.05, "count", lambda at: self._say("COUNT", self._name(), *self.filters())),
            (0.03, "close", lambda at: self._say("CLOSE", self._name())),
            (0.02, "proof", lambda at: self._say("AUTH", self.event(at).to_dict())),
            (0.16, "altered text", lambda at: self._altered_text()),
            (0.08, "altered value", lambda at: self._altered_value()),
            (0.04, "noise", lambda at: self.chance.randbytes(self.chance.randrange(200))),
        ]
        ((_, sort, make),) = self.chance.choices(sorts, [weight for weight, _, _ in sorts])
        text = make(line)
        if isinstance(text, str):
            self.sent.append(text)
            del self.sent[:-300]
        return sort, text

    def event(self, line: Line) -> Event:
        """A well-formed event of any kind under a connection's own key."""
        pair = line.pair or self.stage.stranger
        moment = int(self.stage.world.clock()) + self._off_by()
        kind = self.chance.choice(KINDS)
        content = self.chance.choice(FITTING.get(kind, WORDS))
        if kind == 30174 and self.chance.random() < 0.5:
            content = pair.encrypt(self.stage.world.owner.pubkey, "x")
        tags = self._tags()
        readable = self.stage.world.state.groups.readable(pair.pubkey)
        if readable and self.chance.random() < 0.6:
            tags = [tag for tag in tags if tag[0] != "h"]
            known = [channel for channel in self.stage.channels if channel in readable]
            tags.insert(0, ["h", self.chance.choice(known or sorted(readable))])
        return Event.sign(pair, kind, tags, content, moment)

    def forged(self, event: Event) -> dict[str, Any]:
        """An event that was changed after it was signed."""
        other = self._known()
        change: dict[str, Any] = self.chance.choice(
            [
                {"content": event.content + "!"},
                {"sig": other.sig},
                {"id": other.id},
                {"pubkey": other.pubkey},
                {"created_at": event.created_at + 1},
                {"tags": [["h", self.chance.choice(self.stage.channels)]]},
                {"kind": event.kind ^ 1},
            ]
        )
        return {**event.to_dict(), **change}

    def filters(self) -> list[dict[str, Any]]:
        """One to three filters that mostly make sense."""
        return [self._filter() for _ in range(self.chance.choice([1, 1, 1, 2, 3]))]

    def _filter(self) -> dict[str, Any]:
        """Fields drawn one by one; most often of one channel, which passes the gates."""
        chance, stage = self.chance, self.stage
        people = [pair.pubkey for pair in stage.people]
        parts: dict[str, Callable[[], Any]] = {
            "kinds": lambda: chance.sample(KINDS, chance.randrange(4)),
            "#h": lambda: chance.choices(stage.channels, k=chance.randrange(1, 3)),
            "#p": lambda: [chance.choice(people)],
            "authors": lambda: chance.choices(people, k=chance.randrange(3)),
            "ids": lambda: [self._known().id],
            "#e": lambda: [self._known().id],
            "#d": lambda: [chance.choice(stage.channels)],
            "since": lambda: int(stage.world.clock()) - chance.randrange(5),
            "until": lambda: int(stage.world.clock()) - chance.randrange(5),
            "limit": lambda: chance.choice([0, 1, 5, 1000, 10**9]),
            "search": lambda: chance.choice(["secret", "one or public", '"x', "-a b"]),
            "depth_limit": lambda: chance.randrange(4),
            "before_id": lambda: self._known().id,
            "top_level": lambda: True,
            "feed_types": lambda: ["mentions", "activity"],
        }
        wanted: dict[str, Any] = {
            name: make() for name, make in parts.items() if chance.random() < 0.08
        }
        if chance.random() < 0.6:
            wanted["#h"] = [chance.choice(stage.channels)]
        if chance.random() < 0.6:
            wanted.setdefault("kinds", [0, 7, 9, 9000, 39000, 39002, 40003, 40099])
        return wanted

    def _tags(self) -> list[list[str]]:
        chance, stage = self.chance, self.stage
        values: dict[str, Callable[[], str]] = {
            "h": lambda: chance.choice(stage.channels),
            "p": lambda: chance.choice(stage.people).pubkey,
            "e": lambda: self._known().id,
            "d": lambda: chance.choice(["x", "a" * 64, *stage.channels]),
            "role": lambda: chance.choice(["owner", "admin", "member", "guest", "king"]),
            "visibility": lambda: chance.choice(["open", "private", "public"]),
            "archived": lambda: chance.choice(["true", "false", "false", ""]),
            "ttl": lambda: chance.choice(["", "60", "-1", "9" * 30]),
        }
        names = chance.choices(TAG_NAMES, k=chance.randrange(4))
        tags = [[name, values.get(name, lambda: "text")()] for name in names]
        if chance.random() < 0.7:
            tags.insert(0, ["h", values["h"]()])
        if chance.random() < 0.2:
            tags.append(["e", values["e"](), "", chance.choice(["root", "reply"])])
        return tags

    def _off_by(self) -> int:
        return self.chance.choice([0] * 30 + [-1, 1, -900, 901, -5000])

    def _foreign(self) -> Event:
        pair = self.chance.choice([*self.stage.people, self.stage.stranger])
        return Event.sign(pair, self.chance.choice(KINDS), self._tags(), "x", self._now())

    def _known(self) -> Event:
        return self.chance.choice(self.stage.events)

    def _name(self) -> str:
        return self.chance.choice(["a", "b", "c", "d", "everything", ""])

    def _now(self) -> int:
        return int(self.stage.world.clock())

    def _say(self, *message: Any) -> str:
        return json.dumps(message)

    def _altered_text(self) -> str | bytes:
        """An earlier message with a few characters changed, dropped, doubled or cut."""
        letters = list(self.chance.choice(self.sent))
        for _ in range(self.chance.randrange(1, 4)):
            place = self.chance.randrange(len(letters) + 1)
            letters[place : place + 1] = self.chance.choice([[], ["\x00"], ['"'], ["]"], ["9"] * 2])
        text = "".join(letters[: self.chance.choice([len(letters)] * 3 + [len(letters) // 2])])
        return text if self.chance.random() < 0.9 else text.encode("utf-8", "replace")

    def _altered_value(self) -> str:
        """An earlier message with one of its values exchanged."""
        try:
            message = json.loads(self.chance.choice(self.sent))
        except (ValueError, RecursionError):
            message = []
        return json.dumps(self._exchange(message, depth=0))

    def _exchange(self, value: Any, depth: int) -> Any:
        if depth > 4 or not isinstance(value, (list, dict)) or not value:
            return self.chance.choice(SCRAPS)
        copied = value.copy()
        key = self.chance.choice(list(copied) if isinstance(copied, dict) else range(len(copied)))
        copied[key] = self._exchange(copied[key], depth + 1)
        return copied
