"""One agent's process: subscribed, woken by mentions, one turn at a time.

Threads: the link listens, the command server serves the ``buzz`` command, this one runs turns.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from workers.agent import journal, prompt, surroundings
from workers.agent.bridge import Bridge, BridgeError
from workers.agent.command_server import CommandServer
from workers.agent.commands.memory import read_core
from workers.agent.config import Config
from workers.agent.doorkeeper import Doorkeeper
from workers.agent.identity import Identity
from workers.agent.inbox import Inbox
from workers.agent.llm import ModelSettings
from workers.agent.model import DIALECTS, Model, ModelError
from workers.agent.relay_link import RelayLink
from workers.agent.session import Session
from workers.agent.shell import Shell
from workers.agent.tools import Toolbox
from workers.agent.turn import Turn
from workers.nostr.event import Event

QUERY_TIMEOUT_S = 3.0


class Agent:
    """The parts of one agent, put together from its settings.

    Args:
        config: its settings.
        environment: the container's own variables, without any of ours.
        workdir: where its commands start.
    """

    def __init__(self, config: Config, environment: dict[str, str], workdir: str) -> None:
        self._config = config
        self._workdir = workdir
        self._started = time.time()
        self.identity = Identity.from_texts(config.private_key, config.auth_tag)
        self._bridge = Bridge(config.bridge_url, self.identity, timeout_s=QUERY_TIMEOUT_S)
        self._inbox = Inbox()
        self._sessions: dict[str, Session] = {}
        self._channels: dict[str, prompt.Channel] = {}
        self._server = CommandServer()
        self._model = Model(
            ModelSettings(config.model, config.provider, config.effort, config.max_output_tokens),
            DIALECTS[config.dialect],
            config.gateway_url,
            config.gateway_token,
        )
        variables = {**environment, **config.buzz_variables(), **self._server.variables()}
        variables["PATH"] = f"{self._server.bin_directory}:{environment.get('PATH', os.defpath)}"
        self._toolbox = Toolbox(Shell(variables, config.shell), workdir)

    def run(self) -> None:
        """Listens and works until the relay cannot be reached or refuses the agent."""
        self._in_background(self._server.serve)
        allowed = self._config.channels
        doorkeeper = Doorkeeper(self.identity.pubkey, allowed, self._inbox, self._discover)
        link = RelayLink(self._config.relay_url, self.identity, allowed, self._started, doorkeeper)
        doorkeeper.link = link
        self._in_background(link.run)
        while True:
            batch = self._inbox.next_batch()
            if batch is None:
                return
            self._work(*batch)

    def _discover(self) -> Iterable[str]:
        found = surroundings.discover(self._bridge, self.identity.pubkey)
        journal.write(f"discovered {len(found)} channel(s)")
        return found

    def _in_background(self, body: Callable[[], None]) -> None:
        """Runs a thread for the process's whole life; its end is the end of the agent."""

        def live() -> None:
            try:
                body()
            except Exception as error:  # noqa: BLE001 - a thread's last word, before all ends
                journal.write(f"agent ends: {type(error).__name__}: {error}")
            self._inbox.close()

        threading.Thread(target=live, daemon=True).start()

    def _work(self, channel: str, events: list[Event]) -> None:
        """Runs one turn and logs its markers."""
        journal.turn_starting(channel)
        delivered = [event.id for event in events]
        try:
            session = self._session(channel)
            around = surroundings.gather(self._bridge, self._channel(channel), events)

            def additions() -> list[str]:
                nonlocal around
                more = self._inbox.take_more(channel)
                if not more:
                    return []
                around = surroundings.more_profiles(self._bridge, around, more)
                delivered.extend(event.id for event in more)
                return [prompt.added_prompt(more, around)]

            turn = Turn(self._model, self._toolbox, session, additions, self._config.max_rounds)
            reason = turn.run(prompt.turn_prompt(events, self.identity.pubkey, around))
        except ModelError as error:
            journal.turn_failed(channel, str(error))
        else:
            journal.turn_ended(channel, reason.value, delivered)

    def _channel(self, channel: str) -> prompt.Channel:
        if channel not in self._channels:
            self._channels[channel] = surroundings.describe_channel(self._bridge, channel)
        return self._channels[channel]

    def _session(self, channel: str) -> Session:
        if channel not in self._sessions:
            system = prompt.system_prompt(
                prompt.BASE_PROMPT.read_text(encoding="utf-8") if self._config.base_prompt else "",
                self._persona(),
                self._workdir,
                self._core_memory(),
            )
            self._sessions[channel] = Session(system, self._config.handoff_tokens)
        return self._sessions[channel]

    def _persona(self) -> str:
        path = self._config.system_prompt_file
        return Path(path).read_text(encoding="utf-8") if path else ""

    def _core_memory(self) -> str | None:
        if not self._config.inject_memory or self.identity.attestation is None:
            return None
        try:
            return read_core(self._bridge, self.identity.attestation.owner)
        except BridgeError as error:
            journal.write(f"no core memory: {error}")
            return None
