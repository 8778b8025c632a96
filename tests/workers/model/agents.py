"""An agent's loop over the scripted model, with a real shell and a ``buzz`` that takes notes.

Prompts, dialects and shell are the reference agent's own, so what the scripts read and run is
what they will meet.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workers.agent.llm import Entry, ModelSettings, ToolResults, User
from workers.agent.model import DIALECTS, Model
from workers.agent.prompt import Channel, Profile, Surroundings, turn_prompt
from workers.agent.shell import Shell
from workers.agent.tools import Toolbox
from workers.model import ScriptedModel
from workers.nostr.event import Event

TASKS = Path(__file__).parents[3] / "manifests" / "tasks"
CHANNEL = "6f0b3a52-0a51-4c39-9a0e-5f2d6c1b7e11"
ME = "aa" * 32
USER = "bb" * 32

_BUZZ = """#!{python} -IS
import json, os, sys
words = sys.argv[1:]
options = [words[i + 1] for i, word in enumerate(words) if word == "--mention"]
def value(name):
    return words[words.index(name) + 1] if name in words else None
world = json.load(open(os.environ["WORLD"]))
note = {{"words": words}}
if words[:2] == ["messages", "send"]:
    note = {{"channel": value("--channel"), "reply_to": value("--reply-to"),
            "mentions": options, "content": sys.stdin.read()}}
    assert value("--content") == "-"
    print(json.dumps({{"event_id": "ee" * 32, "accepted": True, "message": ""}}))
elif words[:2] == ["mem", "ls"]:
    for slug in sorted(world["memories"]):
        print(slug, 1700000000, "ff" * 32, sep="\\t")
elif words[:2] == ["mem", "get"]:
    sys.stdout.write(world["memories"][words[2]])
elif words[:2] == ["users", "get"]:
    rows = world["people"]
    if value("--name") is not None:
        rows = [row for row in rows if value("--name") in row["display_name"]]
    if value("--pubkey") is not None:
        rows = [row for row in rows if value("--pubkey") == row["pubkey"]]
    print(json.dumps(rows))
elif words[:2] == ["messages", "thread"]:
    print(json.dumps(world["thread"]))
elif words[:2] == ["channels", "create"]:
    print(json.dumps({{"event_id": "dd" * 32, "accepted": True, "channel_id": world["channel"]}}))
else:
    print(json.dumps({{"event_id": "cc" * 32, "accepted": True, "message": ""}}))
with open(os.environ["NOTES"], "a") as notes:
    notes.write(json.dumps(note) + "\\n")
"""


def instruction(task: str) -> str:
    """The text that the user posts."""
    return (TASKS / task / "instruction.md").read_text("utf-8")


def event(text: str, *, name: str = "task", sender: str = USER) -> Event:
    """A message that mentions the agent; its id follows from ``name``."""
    return Event(
        id=hashlib.sha256(name.encode()).hexdigest(),
        pubkey=sender,
        created_at=1_700_000_000,
        kind=9,
        tags=(("h", CHANNEL), ("p", ME)),
        content=f"@solo-1 {text}",
        sig="0" * 128,
    )


@dataclass(frozen=True)
class Post:
    """A message that was sent."""

    channel: str
    reply_to: str | None
    mentions: list[str]
    content: str


@dataclass
class Seen:
    """What an agent did."""

    posts: list[Post] = field(default_factory=list)
    commands: list[list[str]] = field(default_factory=list)
    """Words of the other ``buzz`` commands."""
    said: list[str] = field(default_factory=list)
    """The last words of each turn."""
    calls: int = 0
    """Of the model."""


async def act(
    folder: Path,
    profile: str,
    turns: Sequence[Sequence[Event]],
    *,
    dialect: str = "chat",
    world: dict[str, Any] | None = None,
) -> Seen:
    """Lets an agent of a profile live through turns."""
    async with ScriptedModel(seed=7) as model:
        origin = model.base_url.removesuffix("/v1")
        asked = Model(
            ModelSettings(f"scripted-{profile}", "openai", "", 4096),
            DIALECTS[dialect],
            origin,
            "token",
        )
        return await asyncio.to_thread(_live, folder, asked, turns, world or {})


def _live(
    folder: Path, model: Model, turns: Sequence[Sequence[Event]], world: dict[str, Any]
) -> Seen:
    tools, notes = _toolbox(folder)
    around = Surroundings(Channel(CHANNEL, "trial"), {USER: Profile("Eleanor June Brooks", True)})
    history: list[Entry] = []
    seen = Seen()
    thread: list[dict[str, str]] = []
    for events in turns:
        thread += [{"id": event.id, "content": event.content} for event in events]
        (folder / "world.json").write_text(json.dumps({**world, "thread": thread}))
        history.append(User(turn_prompt(events, ME, around)))
        while True:
            answer = model.ask("You are an agent.", history, tools.tools)
            seen.calls += 1
            history.append(answer.message)
            if not answer.message.calls:
                seen.said.append(answer.message.text)
                break
            history.append(ToolResults(tools.run(answer.message.calls)))
    for line in notes.read_text().splitlines() if notes.exists() else ():
        note = json.loads(line)
        if "words" in note:
            seen.commands.append(note["words"])
        else:
            seen.posts.append(Post(**note))
    return seen


def _toolbox(folder: Path) -> tuple[Toolbox, Path]:
    tools = folder / "bin"
    tools.mkdir()
    buzz = tools / "buzz"
    buzz.write_text(_BUZZ.format(python=sys.executable))
    buzz.chmod(0o755)
    notes = folder / "notes.jsonl"
    variables = {
        "PATH": f"{tools}:{os.environ['PATH']}",
        "HOME": str(folder),
        "WORLD": str(folder / "world.json"),
        "NOTES": str(notes),
    }
    return Toolbox(Shell(variables), str(folder)), notes
