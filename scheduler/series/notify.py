"""Notices delivered: by webhook, and into a file; blocks. The door to a webhook's server.

A notice that cannot be delivered is said in the record of its run, and fails nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import aiohttp

from scheduler.series.notice import Notice
from scheduler.series.schedule_file import Notify, Webhook

PAUSES_S = (1.0, 4.0, 16.0)
"""Before the second try, the third, and the fourth."""
ANSWER_S = 10.0
"""For one try of a webhook."""
SIGNATURE = "X-Apiary-Signature"
"""``t=<seconds since 1970>,v1=<hex>``: HMAC-SHA256 of ``<t>.<body>`` with the secret."""
DELIVERY = "X-Apiary-Delivery"
"""The notice's id, which is the same in every try."""


class Notifier:
    """Delivers the notices of one series."""

    def __init__(
        self,
        notify: Notify,
        folder: Path,
        environment: Mapping[str, str],
        *,
        pauses_s: tuple[float, ...] = PAUSES_S,
        answer_s: float = ANSWER_S,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """``folder`` is the schedule's, ``environment`` has the URL and the secret by name."""
        self._notify = notify
        self._folder = folder
        self._environment = environment
        self._pauses_s = pauses_s
        self._answer_s = answer_s
        self._clock = clock

    def tell(self, notice: Notice) -> tuple[str, ...]:
        """Delivers a notice if its events are wished for.

        Returns:
            A line for each way, on how it went.
        """
        if not set(notice.events) & set(self._notify.events):
            return ()
        body = notice.to_json().encode()
        lines = []
        if self._notify.file is not None:
            lines.append(self._append(self._folder / self._notify.file, body))
        if self._notify.webhook is not None:
            lines.append(asyncio.run(self._post(self._notify.webhook, notice.id, body)))
        return tuple(lines)

    def _append(self, path: Path, body: bytes) -> str:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("ab") as stream:
                stream.write(body + b"\n")
        except OSError as error:
            return f"file {self._notify.file}: not written: {error.strerror}"
        return f"file {self._notify.file}: written"

    async def _post(self, webhook: Webhook, delivery: str, body: bytes) -> str:
        url = webhook.url or self._environment.get(webhook.url_env or "", "")
        if not url:
            return f"webhook: not sent: the variable {webhook.url_env} is not set"
        secret = b""
        if webhook.secret_env is not None:
            secret = self._environment.get(webhook.secret_env, "").encode()
            if not secret:
                return f"webhook: not sent: the variable {webhook.secret_env} is not set"
        why = ""
        for number, pause_s in enumerate((0.0, *self._pauses_s), 1):
            await asyncio.sleep(pause_s)
            why, final = await self._try(url, secret, delivery, body)
            if not why:
                return f"webhook: delivered at try {number}"
            if final:
                return f"webhook: not delivered: {why}"
        return f"webhook: not delivered in {1 + len(self._pauses_s)} tries: {why}"

    async def _try(self, url: str, secret: bytes, delivery: str, body: bytes) -> tuple[str, bool]:
        """(Why it failed, whether it always will); empty: it was delivered."""
        headers = {"Content-Type": "application/json", DELIVERY: delivery}
        if secret:
            headers[SIGNATURE] = signature(secret, int(self._clock()), body)
        timeout = aiohttp.ClientTimeout(total=self._answer_s)
        try:
            # A redirect would carry the signature to wherever it points.
            async with (
                aiohttp.ClientSession(timeout=timeout, trust_env=True) as session,
                session.post(url, data=body, headers=headers, allow_redirects=False) as answer,
            ):
                status = answer.status
        except TimeoutError:
            return f"no answer in {self._answer_s:g} s", False
        except (aiohttp.ClientError, ValueError, OSError) as error:
            # The text of the error may hold the URL, and the URL may be a secret.
            return type(error).__name__, isinstance(error, aiohttp.InvalidURL)
        if 200 <= status < 300:
            return "", False
        return f"HTTP {status}", status < 500 and status not in (408, 425, 429)


def signature(secret: bytes, at: int, body: bytes) -> str:
    """The header by which a receiver knows a notice for ours, and a repeated one for old."""
    signed = f"{at}.".encode() + body
    return f"t={at},v1={hmac.new(secret, signed, hashlib.sha256).hexdigest()}"
