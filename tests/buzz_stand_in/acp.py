"""``buzz-acp``: one identity between the relay and its agent (spec §4)."""

from __future__ import annotations

import json
import os
import queue
import random
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any

from tests.buzz_stand_in.lines import Child, RpcError
from tests.buzz_stand_in.nostr import Bridge, WebSocket, event, pubkey_of
from tests.buzz_stand_in.specification import problems

CONNECT_WAITS_S = (1, 2, 4, 8, 16)
WARNING = "\N{WARNING SIGN}"
BASE = "Nobody sees what you do not send with `buzz messages send`."


class Log:
    """Coloured lines on standard output, of the targets that ``RUST_LOG`` enables."""

    def __init__(self, filters: str) -> None:
        self._enabled = {
            part.partition("=")[0] for part in filters.split(",") if part.endswith("=info")
        }

    def line(self, target: str, text: str, level: str = "INFO") -> None:
        """Writes it at once."""
        if target.partition("::")[0] in self._enabled or target in self._enabled:
            now = time.strftime("%Y-%m-%dT%H:%M:%S")
            sys.stdout.write(
                f"\x1b[2m{now}\x1b[0m \x1b[32m{level:>5}\x1b[0m \x1b[2m{target}\x1b[0m: {text}\n"
            )
            sys.stdout.flush()


class Acp:
    """One process of it."""

    def __init__(self, environment: Mapping[str, str], mode: Mapping[str, float]) -> None:
        self._env = environment
        self._mode = mode
        self._log = Log(environment["RUST_LOG"])
        self._secret = environment["BUZZ_PRIVATE_KEY"]
        self._me = pubkey_of(self._secret)
        self._channel = environment["BUZZ_ACP_CHANNELS"]
        self._bridge = Bridge(
            environment["BUZZ_RELAY_URL"], self._secret, environment["BUZZ_AUTH_TAG"]
        )
        self._events: queue.Queue[dict[str, Any]] = queue.Queue()
        self._seen: set[str] = set()
        self._session = ""

    def run(self) -> int:
        """Start-up (4.2), then one turn after the other until the relay is gone."""
        log, me = self._log.line, self._me
        self._agent = Child([self._env["BUZZ_ACP_AGENT_COMMAND"]])
        self._agent.ask("initialize", protocolVersion=2, clientCapabilities={})
        log("buzz_acp", "agent initialized")
        log("buzz_acp", "agent_pool_ready agents=1")
        since = int(time.time()) - 5
        relay = self._connected()
        self._follow_changes(relay, since)
        log("buzz_acp::relay", "subscribed to membership notifications")
        rosters = self._bridge.query({"kinds": [39002], "#p": [me]})
        mine = sorted(_first(each, "d") for each in rosters)
        known = self._bridge.query({"kinds": [39000], "#d": mine})
        self._name = next((_first(e, "name") for e in known if _first(e, "d") == self._channel), "")
        log("buzz_acp", f"discovered {len(mine)} channel(s)")
        threading.Thread(target=self._work, daemon=True).start()
        if "never_ready" not in self._mode and self._channel in mine:
            self._follow_channel(relay, since)
            log("buzz_acp::relay", f"subscribed to channel {self._channel}")
        relay.send(["EVENT", event(self._secret, 20001, "online", [])])
        log("buzz_acp::relay", "presence set to online")
        if "dies_after" in self._mode:
            threading.Timer(self._mode["dies_after"], os._exit, (101,)).start()
        seen_at = since + 5
        while True:
            try:
                message = relay.receive(None)
            except OSError:
                relay = self._connected()
                self._follow_changes(relay, seen_at - 5)
                self._follow_channel(relay, seen_at - 5)
                continue
            if message[0] == "EVENT" and message[1] == f"ch-{self._channel}":
                seen_at = max(seen_at, int(message[2]["created_at"]))
                self._hear(message[2])

    def _follow_changes(self, relay: WebSocket, since: int) -> None:
        changes = {"kinds": [44100, 44101], "#p": [self._me], "since": since}
        relay.send(["REQ", "membership-notif", changes])

    def _follow_channel(self, relay: WebSocket, since: int) -> None:
        wanted = {"kinds": [9, 46010, 40007], "#h": [self._channel], "#p": [self._me]}
        relay.send(["REQ", f"ch-{self._channel}", {**wanted, "since": since}])

    def _connected(self) -> WebSocket:
        """A connection that is authenticated (NIP-42), at the last attempt or before (4.2, 4.3)."""
        for wait in CONNECT_WAITS_S:
            try:
                return self._dialled()
            except OSError:
                time.sleep(wait * random.uniform(0.8, 1.2))
        return self._dialled()

    def _dialled(self) -> WebSocket:
        url = self._env["BUZZ_RELAY_URL"]
        relay = WebSocket(url)
        challenge = _until(relay, "AUTH")[1]
        tags = [["relay", url], ["challenge", challenge], json.loads(self._env["BUZZ_AUTH_TAG"])]
        relay.send(["AUTH", event(self._secret, 22242, "", tags)])
        answer = _until(relay, "OK")
        if not answer[2]:
            raise RpcError(f"authentication refused: {answer[3]}")
        self._log.line("buzz_acp::relay", f"connected to relay at {url}")
        return relay

    def _hear(self, heard: dict[str, Any]) -> None:
        """The inbound chain (4.4) of a mention; anyone may speak outside of DMs."""
        if heard["pubkey"] == self._me or heard["id"] in self._seen:
            return
        self._seen.add(heard["id"])
        self._react(heard, "\N{EYES}")
        self._events.put(heard)

    def _react(self, heard: dict[str, Any], emoji: str) -> None:
        self._bridge.publish(7, emoji, [["e", heard["id"]]])

    def _work(self) -> None:
        """Turns, one at a time (4.5)."""
        while True:
            batch = [self._events.get()]
            while not self._events.empty():
                batch.append(self._events.get())
            batch.sort(key=lambda each: int(each["created_at"]))
            self._turn(batch)

    def _turn(self, batch: list[dict[str, Any]]) -> None:
        log, channel = self._log.line, self._channel
        self._react(batch[-1], "\N{SPEECH BALLOON}")
        log("pool::prompt", f"turn starting for channel {channel}")
        try:
            reason = self._prompt(batch)
        except RpcError as error:
            # No end marker (4.9). Requeued, or dropped with a notice (4.5, 4.8).
            if "Re-authenticate" in str(error) or "API Error: 401" in str(error):
                self._notice(batch[-1])
            else:
                time.sleep(5 * random.uniform(0.8, 1.2))
                for each in batch:
                    self._events.put(each)
            return
        words = {
            "end_turn": f"turn complete for channel {channel}: end_turn",
            "cancelled": f"turn cancelled for channel {channel}",
            "max_tokens": f"turn hit max_tokens for channel {channel}",
            "max_turn_requests": f"turn hit max_turn_requests for channel {channel}",
            "refusal": f"turn refused for channel {channel}",
        }
        log("buzz_acp::pool", words[reason], "INFO" if reason == "end_turn" else "WARN")
        if reason == "end_turn":
            ids = ",".join(sorted(each["id"] for each in batch))
            log("buzz_acp::pool", f"turn delivered Buzz events for channel {channel}: {ids}")

    def _notice(self, trigger: dict[str, Any]) -> None:
        """A failure notice: an agent's own message, threaded as its trigger is (4.8, trap 47)."""
        self._bridge.publish(
            9,
            f"{WARNING} I could not process this message.",
            [["h", self._channel], *([t for t in trigger["tags"] if t[0] == "e"])],
        )

    def _prompt(self, batch: list[dict[str, Any]]) -> str:
        if "cancels" in self._mode:
            return "cancelled"
        if "notices" in self._mode:
            raise RpcError("API Error: 401")
        if not self._session:
            made = self._agent.ask(
                "session/new",
                cwd=os.getcwd(),
                systemPrompt=self._system_prompt(),
                mcpServers=[
                    {
                        "name": "buzz-dev-mcp",
                        "command": self._env["BUZZ_ACP_MCP_COMMAND"],
                        "env": {
                            name: self._env[name]
                            for name in ("BUZZ_RELAY_URL", "BUZZ_PRIVATE_KEY", "BUZZ_AUTH_TAG")
                        },
                    }
                ],
            )
            self._session = made["sessionId"]
        text = "\n\n".join([self._context(), *(self._block(each) for each in batch)])
        answer = self._agent.ask("session/prompt", sessionId=self._session, prompt=text)
        return str(answer["stopReason"])

    def _system_prompt(self) -> str:
        with open(self._env["BUZZ_ACP_SYSTEM_PROMPT_FILE"], encoding="utf-8") as stream:
            persona = stream.read()
        base = "" if "BUZZ_ACP_NO_BASE_PROMPT" in self._env else f"[Base]\n{BASE}\n\n"
        return f"{base}[Agent Instructions]\n{persona}"

    def _context(self) -> str:
        return f"[Context]\nScope: channel\nChannel: {self._name} (#{self._channel})"

    def _block(self, heard: dict[str, Any]) -> str:
        return "\n".join(
            [
                "[Buzz event: mention]",
                f"Event ID: {heard['id']}",
                f"Channel: {self._name} (#{self._channel})",
                f"Kind: {heard['kind']}",
                f"From: {heard['pubkey']}",
                f"Time: {heard['created_at']}",
                f"Content: {heard['content']}",
                f"Tags: {heard['tags']}",
            ]
        )


def _until(relay: WebSocket, verb: str) -> Any:
    while True:
        message = relay.receive(20)
        if message[0] == verb:
            return message


def _first(found: dict[str, Any], name: str) -> str:
    return next((str(tag[1]) for tag in found["tags"] if tag[0] == name), "")


def main(mode: Mapping[str, float]) -> int:
    """The process; 2 where its environment is not the specification's."""
    wrong = problems(os.environ)
    prompt = os.environ.get("BUZZ_ACP_SYSTEM_PROMPT_FILE", "")
    if not wrong and not os.path.isfile(prompt):
        wrong = [f"BUZZ_ACP_SYSTEM_PROMPT_FILE: there is no {prompt}"]
    if wrong:
        for line in wrong:
            sys.stderr.write(f"buzz-acp: {line}\n")
        return 2
    try:
        return Acp(os.environ, mode).run()
    except (OSError, RpcError) as error:
        sys.stderr.write(f"buzz-acp: {error}\n")
        return 1
