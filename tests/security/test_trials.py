"""Whole trials of a hostile image, of a hostile model, and beside a hostile neighbour.

A docstring that begins with an id is a row of ``docs/security.md``.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from aiohttp import web

from tests.workers.container.hostile import FORK_BOMB
from tests.workers.trial.stage import (
    DOCKERFILE,
    Reply,
    Stage,
    end_of_turn,
    shell_call,
    stage,
)
from tests.workers.trial.test_run import SAY, left_of, run_trial
from tests.workers.trial.test_state import COUNT, TASKS
from tests.workers.trial.test_state import run as run_state
from workers.contract.outcome import Blame, Cause, Verdict
from workers.contract.trial import TrialEnd

pytestmark = pytest.mark.docker

TAKE_OVER = (
    "import os; open('/tmp/taken-%d' % os.getpid(), 'w').write("
    "os.environ.get('APIARY_AGENTS', '') + chr(10) + ' '.join(sorted(os.environ)))"
)
IMAGE = (
    DOCKERFILE
    + f"""\
RUN useradd --uid 4711 somebody && cp /usr/bin/id /as-root && chmod 4755 /as-root
RUN python3 -c "import os, sysconfig; p = sysconfig.get_path('stdlib') + '/sitecustomize.py'; \
os.path.lexists(p) and os.remove(p); open(p, 'w').write(\\"\\"\\"{TAKE_OVER}\\"\\"\\")"
RUN mkdir -p /logs/verifier /logs/artifacts /tests && echo '{{"reward": 0}}' \
> /logs/verifier/reward.json && echo 'exit 9' > /tests/test.sh
ENV PYTHONPATH=/evil PYTHONSTARTUP=/evil.py BASH_ENV=/evil.sh APIARY_AGENTS=[] \
APIARY_TIME_LIMIT_S=1 APIARY_STAYS=1 BUZZ_ACP_RESPOND_TO=nobody
VOLUME ["/logs/agents", "/logs/verifier", "/opt/apiary/lib", "/tests"]
ENTRYPOINT ["/bin/false"]
CMD ["/bin/false"]
HEALTHCHECK --interval=1s CMD touch /tmp/checked
ONBUILD RUN exit 9
USER somebody
"""
)
"""It sets whatever an image may set, and its Python runs its own code before ours."""


def said(body: dict[str, Any]) -> str:
    """What the last command of an agent wrote."""
    return str(json.loads(body["messages"][-1]["content"])["stdout"])


class Taken(NamedTuple):
    """A trial of the hostile image."""

    end: TrialEnd
    stage: Stage
    effective: str
    """The user of a setuid program's process."""
    files: list[str]
    """In its folder for temporary files."""
    agent: dict[str, str]
    """Our variables, as the image's own code found them."""


@pytest.fixture(scope="module")
def taken(tmp_path_factory: pytest.TempPathFactory) -> Taken:
    seen: list[str] = []

    def note(body: dict[str, Any]) -> web.StreamResponse:
        seen.append(said(body))
        return web.json_response(end_of_turn())

    command = f"sleep 1.5; {SAY} >/dev/null; /as-root -u; head -1 /tmp/taken-1; ls /tmp"
    folder = tmp_path_factory.mktemp("image")
    end, here = run_trial(folder, command, note, dockerfile=IMAGE)
    assert len(seen) == 1, end.record
    effective, agents, *files = seen[0].splitlines()
    return Taken(end, here, effective, files, json.loads(agents)[0])


def test_a_hostile_image(taken: Taken) -> None:
    """I2 | an image that sets entrypoint, command, health check, volumes over our mounts, our own
    variables, files where ours are mounted | command, mounts and variables are ours and come
    before the image's; its health check is off; volumes go with the container"""
    record = taken.end.record
    assert (record.verdict, record.cause, record.reward) == (Verdict.PASS, Cause.NONE, 1.0), record
    assert "checked" not in taken.files
    assert taken.agent["BUZZ_ACP_RESPOND_TO"] == "anyone"


def test_an_image_whose_python_is_hostile(taken: Taken) -> None:
    """I3 | an image whose Python runs its own code before ours, and so has the agent's key and
    token | both are of this trial alone, die with it, and are struck out of all that is stored"""
    for name in ("BUZZ_PRIVATE_KEY", "APIARY_GATEWAY_TOKEN"):
        secret = taken.agent[name].encode()
        stored = [path for path in taken.stage.store_folder.rglob("*") if path.is_file()]
        assert len(stored) > 5
        assert not [path.name for path in stored if secret in path.read_bytes()]


def test_setuid_programs_gain_nothing(taken: Taken) -> None:
    """I4 | setuid programs of the image, from a Buzz-native task of another user than root
    | no-new-privileges"""
    assert taken.effective == "4711"


def called(*calls: tuple[str, str]) -> web.Response:
    """An answer that calls tools, with arguments of any text."""
    answer = shell_call("")
    answer["choices"][0]["message"]["tool_calls"] = [
        {"id": f"c{place}", "type": "function", "function": {"name": name, "arguments": text}}
        for place, (name, text) in enumerate(calls)
    ]
    return web.json_response(answer)


def bare(data: bytes) -> web.Response:
    return web.Response(body=data, content_type="application/json")


ANSWERS: list[Callable[[Any], web.StreamResponse]] = [
    lambda _: bare(b'{"choices": ' + b"[" * 50_000 + b"]" * 50_000 + b"}"),
    lambda _: bare(b"\xff\xfe{}"),
    lambda _: called(("\x1b[2J\ud800", "{}"), ("shell", "{}")),
    lambda _: called(("shell", '{"command": ' + "[" * 2000 + "]" * 2000 + "}")),
    lambda _: called(("shell", '"text"'), ("shell", "no JSON")),
    lambda _: called(
        ("shell", json.dumps({"command": "printf '\\033]0;t\\007\\377'; echo \ud800"})),
        ("shell", json.dumps({"command": "true\0false"})),
        ("shell", json.dumps({"command": "true", "workdir": "\0", "timeout_ms": -1})),
        ("shell", json.dumps({"command": "true", "timeout_ms": 1e300, "more": {"a": []}})),
    ),
]
"""Of three in a row that cannot be read the agent asks no fourth time: here are never three."""


def test_hostile_answers_of_a_model(tmp_path: Path) -> None:
    """M4 | a model's answers: nested beyond reading, no text, calls of no tool, arguments of any
    form, control characters, NUL, lone surrogates
    | each is an error that the model is told, or asked for again; the trial goes on"""
    say = SAY.replace("hello", "\x1b[2J\u202ehello")
    end, here = run_trial(tmp_path, *ANSWERS, say)
    assert (end.record.verdict, end.record.cause) == (Verdict.PASS, Cause.NONE), end.record
    assert len(here.requests) == len(ANSWERS) + 2
    stored = json.loads(here.stored(end, "evidence.json"))["messages"][-1]["content"]
    assert stored == "\x1b[2J\u202ehello"


HARM = (
    "python3 -c 'bytearray(400 << 20)'; head -c 150000000 /dev/zero > /tmp/filled; "
    f"{FORK_BOMB}; exec sleep 0.5"
)
"""The bomb comes last: beside it nothing more can be started."""


def test_a_neighbour_that_takes_all_it_can(tmp_path: Path) -> None:
    """N6 | a fork bomb, more memory than there is, and a full disk, in the trial beside
    | bounds of processes, memory and processor on each container, and a share of the disk that is
    watched; the neighbour passes"""

    async def go() -> tuple[list[TrialEnd], list[str]]:
        replies: list[Reply] = [HARM, SAY]
        async with stage(tmp_path, *replies) as here:
            ends = await asyncio.gather(here.trial(0), here.trial(1))
            words = [here.stored(end, "evidence.json").decode() for end in ends]
            assert left_of(here.sweep.sweep) == []
            return list(ends), words

    ends, words = asyncio.run(go())
    (spoke,) = (place for place, word in enumerate(words) if '"hello"' in word)
    assert (ends[spoke].record.verdict, ends[spoke].record.cause) == (Verdict.PASS, Cause.NONE)
    assert ends[1 - spoke].record.blame in (Blame.NONE, Blame.MODEL), ends[1 - spoke].record


@pytest.mark.parametrize("told", ["[" * 4000, '{"exit_code": true}'], ids=["deep", "no number"])
def test_an_agent_that_lies_about_its_end(tmp_path: Path, told: str) -> None:
    """A15 | an agent that forges how it ended, with words that no reader can bear, and hides how
    it really ended | they are read within a bound, as a code or as none: an agent that died"""
    forge = (
        f"{COUNT}; cd /logs/agents; mkdir -p solo-1.exit.partial/in; "
        f"printf '%s' '{told}' > new; mv new solo-1.exit.json; sleep 5"
    )
    record = run_state(tmp_path, TASKS / "count-words", forge).end.record
    assert (record.verdict, record.cause) == (Verdict.INVALID, Cause.AGENT_DIED), record
    assert record.agent_exits == {"solo-1": None}
