"""PID 1 of the task container: one forked process per agent, all of them watched and reaped.

``nostr_sdk`` is loaded once, before the forks. The agents' variables come as one JSON document in
``APIARY_AGENTS``; it is wiped from this process's memory before anything of the model runs, since
``/proc/1/environ`` would show every agent's key and token to every command.

Where the container's state is graded it stays when its agents have ended, so that tests can run
there: SIGUSR1 tells it to kill the agents, and a mark on a folder that only the harness writes
says that the container was started again and no agent is to run.
"""

from __future__ import annotations

import ctypes
import io
import json
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from workers.agent.process_tree import kill_trees

AGENTS_VARIABLE = "APIARY_AGENTS"
LIMIT_VARIABLE = "APIARY_TIME_LIMIT_S"
TIME_LIMIT_EXIT_CODE = 124
LINGER_S = 2.0
"""The container's counters die with it, and the harness reads them to know why an agent was
killed; it ends the container itself long before this is over."""
ORPHANS_S = 0.1
"""Between two looks for orphans while there is no child to wait for."""
STAY_VARIABLE = "APIARY_STAYS"
FROZEN_MARK = Path("/opt/apiary/prompts/frozen")
LOGS = Path("/logs/agents")
_OWN_PREFIXES = ("APIARY_", "BUZZ_ACP_", "BUZZ_AGENT_")
_OWN_NAMES = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")
_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_OOM_SCORE = 100
_FORWARDED = (signal.SIGTERM, signal.SIGINT)


class StartError(Exception):
    """The environment does not say what to run; the message never holds a value of it."""


def main(logs: Path = LOGS) -> int:
    """Runs every agent to its end. 0: all ended well, 1: one did not, 124: out of time."""
    started = time.monotonic()
    try:
        agents = read_agents(os.environ.get(AGENTS_VARIABLE, ""))
        limit_s = time_limit(agents)
    except StartError as error:
        sys.stderr.write(f"agent supervisor: {error}\n")
        return 2
    stays = os.environ.get(STAY_VARIABLE) == "1"
    environment = conceal()
    if stays and FROZEN_MARK.exists():
        agents = []
    if agents:
        # Loaded before the forks, so that all agents share it.
        from workers.agent import agent  # noqa: F401

    children = {_fork(variables, environment, logs): variables for variables in agents}
    names = {pid: variables["APIARY_AGENT_ID"] for pid, variables in children.items()}
    for number in _FORWARDED:
        # Who stays is not told to go from inside: the container's state would go with it.
        signal.signal(number, _ignore if stays else _end)
    if stays:
        signal.signal(signal.SIGUSR1, lambda _caught, _frame: kill_trees(names))
    if limit_s is not None:
        _limit(limit_s - (time.monotonic() - started))
    return stay(names, logs) if stays else reap(names, logs)


def _end(caught: int, _frame: object) -> NoReturn:
    os._exit(128 + caught)


def _ignore(_caught: int, _frame: object) -> None:
    """A handler and not ``SIG_IGN``, which a child would inherit."""


def read_agents(document: str) -> list[dict[str, str]]:
    """The agents' variables.

    Raises:
        StartError: the document is not a list of objects of texts, each with an id of its own.
    """
    try:
        agents = json.loads(document)
    except ValueError:
        # The cause would carry the document, and with it the keys.
        raise StartError(f"{AGENTS_VARIABLE} is not set to a JSON document") from None
    if not isinstance(agents, list) or not agents:
        raise StartError(f"{AGENTS_VARIABLE} must be a list of at least one agent")
    for variables in agents:
        if not isinstance(variables, dict) or not all(
            isinstance(value, str) for value in variables.values()
        ):
            raise StartError(f"{AGENTS_VARIABLE} must hold objects of texts")
    ids = [variables.get("APIARY_AGENT_ID", "") for variables in agents]
    if len(set(ids)) != len(ids) or not all(ids) or any("/" in name for name in ids):
        raise StartError("each agent needs an APIARY_AGENT_ID of its own, without slashes")
    return agents


def time_limit(agents: Sequence[Mapping[str, str]]) -> float | None:
    """The seconds after which the whole container ends: the smallest that an agent names.

    Raises:
        StartError: one is no number.
    """
    texts = [agent[LIMIT_VARIABLE] for agent in agents if LIMIT_VARIABLE in agent]
    texts += [os.environ[LIMIT_VARIABLE]] if LIMIT_VARIABLE in os.environ else []
    try:
        return min((float(text) for text in texts), default=None)
    except ValueError as error:
        raise StartError(f"{LIMIT_VARIABLE} must be a number of seconds") from error


def conceal() -> dict[str, str]:
    """Wipes our variables from this process and gives the container's own, for commands.

    The kernel keeps a process's first environment readable in ``/proc``, where deleting a
    variable changes nothing: its bytes are overwritten. Not being dumpable shuts the memory of
    this process and its forks to others without privileges.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    libc.getenv.restype = ctypes.c_void_p
    for name in [name for name in os.environ if _is_ours(name)]:
        address = libc.getenv(name.encode())
        if address:
            ctypes.memset(address, 0, len(ctypes.string_at(address)))
        del os.environ[name]
    libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    return dict(os.environ)


def _is_ours(name: str) -> bool:
    return name.startswith(_OWN_PREFIXES) or name in _OWN_NAMES


def _fork(variables: Mapping[str, str], environment: dict[str, str], logs: Path) -> int:
    """Starts one agent; in the child this does not return."""
    supervisor = os.getpid()
    pid = os.fork()
    if pid == 0:
        _become_agent(supervisor, variables, environment, logs)
    return pid


def _become_agent(
    supervisor: int, variables: Mapping[str, str], environment: dict[str, str], logs: Path
) -> NoReturn:
    code = 1
    try:
        _die_with(supervisor)
        _die_before(supervisor)
        os.setsid()
        _redirect(logs, variables["APIARY_AGENT_ID"])
        code = run_agent(variables, environment)
    except BaseException:  # noqa: BLE001 - the process ends here, whatever it was
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _die_with(supervisor: int) -> None:
    """Ends this process when its supervisor ends, also where that is not PID 1."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != supervisor:
        raise SystemExit("the supervisor ended first")


def _die_before(supervisor: int) -> None:
    """Lets the kernel take this process first where there is no memory.

    Its supervisor must live to tell of it, and with it the counters that say whose limit it was.
    """
    try:
        score = int(Path(f"/proc/{supervisor}/oom_score_adj").read_text())
        Path("/proc/self/oom_score_adj").write_text(str(min(1000, score + _OOM_SCORE)))
    except OSError:
        # Not root, and since we cannot be dumped not the owner of that file either.
        return


def run_agent(variables: Mapping[str, str], environment: dict[str, str]) -> int:
    """The life of one agent; 2 if its settings are wrong."""
    from workers.agent.agent import Agent
    from workers.agent.config import Config, ConfigError
    from workers.nostr.errors import NostrError

    try:
        one = Agent(Config.from_variables(variables), environment, os.getcwd())
    except (ConfigError, NostrError) as error:
        sys.stderr.write(f"agent: {error}\n")
        return 2
    one.run()
    return 1


def _redirect(logs: Path, agent_id: str) -> None:
    """Points the standard streams at ``/dev/null`` and the agent's log files."""
    logs.mkdir(parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    for descriptor, stream in ((1, "stdout"), (2, "stderr")):
        file = os.open(logs / f"{agent_id}.{stream}.log", flags, 0o644)
        os.dup2(file, descriptor)
        os.close(file)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    for log in (sys.stdout, sys.stderr):
        if isinstance(log, io.TextIOWrapper):
            # Whatever the image's locale is, no character of a message may end the agent.
            log.reconfigure(encoding="utf-8", errors="backslashreplace")


def _limit(seconds: float) -> None:
    """Ends this process, and as PID 1 with it the container, after some seconds."""

    def end() -> None:
        sys.stderr.write("agent supervisor: out of time\n")
        sys.stderr.flush()
        os._exit(TIME_LIMIT_EXIT_CODE)

    timer = threading.Timer(max(seconds, 0.0), end)
    timer.daemon = True
    timer.start()


def reap(agents: Mapping[int, str], logs: Path) -> int:
    """Waits for all agents, and for every orphan that the kernel hands to PID 1."""
    running = dict(agents)
    worst = 0
    killed = False
    while running:
        pid, status = os.wait()
        name = running.pop(pid, None)
        if name is not None:
            write_exit(logs, name, status)
            worst = worst or int(status != 0)
            killed = killed or (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL)
    if killed:
        time.sleep(LINGER_S)
    return worst


def stay(agents: Mapping[int, str], logs: Path) -> NoReturn:
    """Reaps whatever there is, for as long as the container is needed."""
    running = dict(agents)
    while True:
        try:
            pid, status = os.wait()
        except ChildProcessError:
            # No child is left; the next is an orphan of a command that was run in here.
            time.sleep(ORPHANS_S)
            continue
        name = running.pop(pid, None)
        if name is not None:
            write_exit(logs, name, status)


def write_exit(logs: Path, agent_id: str, status: int) -> None:
    """Tells the harness how an agent's process ended; the file appears whole or not at all.

    What an agent put in its place takes away the telling, and not whoever tells: the container's
    state would go with its first process.
    """
    signalled = os.WIFSIGNALED(status)
    told = {
        "exit_code": None if signalled else os.WEXITSTATUS(status),
        "signal": os.WTERMSIG(status) if signalled else None,
    }
    target = logs / f"{agent_id}.exit.json"
    partial = target.with_suffix(".partial")
    try:
        with suppress(FileNotFoundError):
            partial.unlink()
        # Made anew: a pipe put there meanwhile would be waited for.
        with partial.open("x", encoding="utf-8") as stream:
            stream.write(json.dumps(told))
        partial.replace(target)
    except OSError as error:
        sys.stderr.write(f"agent supervisor: {target.name}: {error}\n")
