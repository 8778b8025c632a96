"""One run of one command: its surroundings, its access to the relay, and what it writes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from workers.agent.addresses import http_base
from workers.agent.bridge import Bridge, BridgeError, Filter, Written
from workers.agent.commands.arguments import Arguments
from workers.agent.commands.errors import CommandError, from_bridge
from workers.agent.identity import Identity
from workers.nostr.errors import NostrError
from workers.nostr.event import Event

DEFAULT_RELAY = "http://localhost:3000"


class Call:
    """What a command sees of the process that ran it.

    Args:
        words: the arguments after ``buzz``.
        variables: the ``BUZZ_…`` variables of that process.
        directory: its working directory.
        stdin: reads its whole standard input; only called by commands that ask for it.
    """

    def __init__(
        self,
        words: Sequence[str],
        variables: Mapping[str, str],
        directory: str,
        stdin: Callable[[], bytes],
    ) -> None:
        self.words = words
        self.globals = Arguments()
        self._variables = variables
        self._directory = directory
        self._stdin = stdin
        self._output: list[str] = []
        self._errors: list[str] = []

    def setting(self, option: str, variable: str, default: str = "") -> str:
        """A global option, else its variable, else the default."""
        return self.globals.optional(option) or self._variables.get(variable) or default

    @cached_property
    def identity(self) -> Identity:
        """Whose command this is.

        Raises:
            CommandError: ``key_error``: there is no key, or key or attestation is malformed.
        """
        key = self.setting("--private-key", "BUZZ_PRIVATE_KEY")
        if not key:
            raise CommandError("key_error", "no key: set BUZZ_PRIVATE_KEY or --private-key")
        try:
            return Identity.from_texts(key, self.setting("--auth-tag", "BUZZ_AUTH_TAG"))
        except NostrError as error:
            raise CommandError("key_error", str(error)) from error

    @cached_property
    def bridge(self) -> Bridge:
        """This identity's access to the relay."""
        return Bridge(
            http_base(self.setting("--relay", "BUZZ_RELAY_URL", DEFAULT_RELAY)),
            self.identity,
            timeout_s=self._seconds("BUZZ_TIMEOUT_SECS", 30.0),
            connect_timeout_s=self._seconds("BUZZ_CONNECT_TIMEOUT_SECS", 15.0),
        )

    def _seconds(self, variable: str, default: float) -> float:
        text = self._variables.get(variable, "")
        return float(text) if text.isascii() and text.isdigit() and int(text) > 0 else default

    @property
    def is_compact(self) -> bool:
        """Whether output is to be cut down to the most needed fields."""
        return self.globals.optional("--format") == "compact"

    def stdin_text(self) -> str:
        """The whole standard input, verbatim.

        Raises:
            CommandError: it is not UTF-8.
        """
        try:
            return self._stdin().decode()
        except UnicodeDecodeError as error:
            raise CommandError("user_error", "standard input is not UTF-8") from error

    def file_text(self, path: str) -> str:
        """A file's text, its path taken from the caller's working directory.

        Raises:
            CommandError: it cannot be read.
        """
        try:
            with open(os.path.join(self._directory, path), encoding="utf-8", newline="") as file:
                return file.read()
        except (OSError, UnicodeDecodeError, ValueError) as error:
            raise CommandError("user_error", f"cannot read {path}: {error}") from error

    def query(self, *filters: Filter) -> list[Event]:
        """The relay's events for some filters.

        Raises:
            CommandError: the relay refused or could not be reached.
        """
        try:
            return self.bridge.query(*filters)
        except BridgeError as error:
            raise self._failure(error, publishing=False) from error

    def query_all(self, filter_: Filter) -> list[Event]:
        """All events of one filter, by paging.

        Raises:
            CommandError: the relay refused or could not be reached.
        """
        try:
            return self.bridge.query_all(filter_)
        except BridgeError as error:
            raise self._failure(error, publishing=False) from error

    def publish(self, event: Event) -> Written:
        """Publishes a signed event.

        Raises:
            CommandError: the relay refused it, could not be reached, or did not answer.
        """
        try:
            return self.bridge.publish(event)
        except BridgeError as error:
            raise self._failure(error, publishing=True) from error

    def _failure(self, error: BridgeError, *, publishing: bool) -> CommandError:
        attested = self.identity.attestation is not None
        return from_bridge(error, publishing=publishing, attested=attested)

    def write(self, kind: int, tags: Iterable[Sequence[str]], content: str = "") -> Written:
        """Signs and publishes an event of now."""
        return self.publish(self.sign(kind, tags, content))

    def sign(
        self,
        kind: int,
        tags: Iterable[Sequence[str]],
        content: str = "",
        *,
        not_before: int = 0,
    ) -> Event:
        """Signs an event of now, or of ``not_before`` if that is later.

        Raises:
            CommandError: the text cannot be encoded.
        """
        try:
            return self.identity.sign(kind, tags, content, not_before=not_before)
        except NostrError as error:
            raise CommandError("user_error", str(error)) from error

    def print(self, text: str) -> None:
        """Adds text to the standard output as it is."""
        self._output.append(text)

    def print_json(self, data: Any) -> None:
        """Adds one JSON document and a line end to the standard output."""
        self._output.append(json.dumps(data, ensure_ascii=False) + "\n")

    def note(self, text: str) -> None:
        """Adds a line to the standard error."""
        self._errors.append(text + "\n")

    def output(self) -> bytes:
        """All that goes to the standard output."""
        return "".join(self._output).encode("utf-8", "replace")

    def errors(self) -> bytes:
        """All that goes to the standard error."""
        return "".join(self._errors).encode("utf-8", "replace")


def write_result(written: Written, **more: Any) -> dict[str, Any]:
    """The output of a command that published."""
    return {
        "event_id": written.event_id,
        "accepted": written.accepted,
        "message": written.message,
        **more,
    }


def event_rows(events: Iterable[Event], compact: bool) -> list[dict[str, Any]]:
    """The output of a command that lists events: without signatures."""
    if compact:
        return [{"id": e.id, "content": e.content, "created_at": e.created_at} for e in events]
    return [
        {
            "id": event.id,
            "pubkey": event.pubkey,
            "kind": event.kind,
            "content": event.content,
            "created_at": event.created_at,
            "tags": [list(tag) for tag in event.tags],
        }
        for event in events
    ]
