"""Permits lent to nodes in batches: who may ask which account how much. Pure.

What a node was told stays in force there until it says otherwise, so what is lent to a node comes
out of what no other node may have. What a node does not use goes to those that wait, by its next
orders. Requests under way keep their permits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from scheduler.permits.account import AccountControl, Given
from scheduler.permits.shares import shares, whole_shares
from workers.contract.endpoint import Endpoint
from workers.contract.permits import AccountNews, Loan
from workers.contract.report import Progress

POLL_S = 0.5
"""A node's long poll while requests wait, so that what is free soon goes where it is missed."""
AFTER_TRY_S = 1.0
"""Until what one node has tried is known on the others."""
MINUTE_S = 60.0
NOTHING = AccountNews(permits=0)


@dataclass
class _Borrower:
    """A node at one account."""

    news: AccountNews = NOTHING
    permits: int = 0
    """The most that may be in force there."""
    requests_per_s: float = 0.0
    tokens_per_s: float = 0.0
    owed: float = 0.0

    @property
    def wanted(self) -> float:
        return self.news.in_use + self.news.waiting


@dataclass
class _Account:
    control: AccountControl
    endpoints: tuple[str, ...]
    borrowers: dict[str, _Borrower] = field(default_factory=dict)
    held_until: float = 0.0
    trying: str = ""
    """The node that chose for itself how long to wait, and tries first; empty: none."""

    @property
    def in_use(self) -> int:
        return sum(each.news.in_use for each in self.borrowers.values())

    @property
    def waiting(self) -> int:
        return sum(each.news.waiting for each in self.borrowers.values())


@dataclass(frozen=True)
class Throttled:
    """An account that the provider has refused something lately."""

    account: str
    endpoints: tuple[str, ...]
    window: int
    requests_per_s: float | None
    waiting: int
    refused_s: float
    """How long ago it was, seconds."""


class PermitLender:
    """The permits of all accounts of a sweep."""

    def __init__(self, endpoints: Mapping[str, Endpoint], clock: Callable[[], float]) -> None:
        """Nothing is lent yet; ``clock`` is monotonic seconds."""
        self._clock = clock
        self._accounts: dict[str, _Account] = {}
        by_account: dict[str, list[str]] = {}
        for name, endpoint in endpoints.items():
            if endpoint.account is not None:
                by_account.setdefault(endpoint.account, []).append(name)
        for account, names in by_account.items():
            given = given_of(endpoints[name] for name in names)
            self._accounts[account] = _Account(AccountControl(given, clock()), tuple(names))

    def lend(self, node: str) -> dict[str, Loan]:
        """What to tell a node now."""
        now = self._clock()
        return {name: self._loan(each, node, now) for name, each in self._accounts.items()}

    def heard(self, node: str, progress: Progress) -> None:
        """A node has answered the orders that it was sent last."""
        now = self._clock()
        for name, news in progress.accounts.items():
            account = self._accounts.get(name)
            if account is None:
                continue
            borrower = account.borrowers.setdefault(node, _Borrower())
            before = borrower.news
            if news.started < before.started or before is NOTHING:
                # Counts do not shrink: another process has its name, or this driver is new.
                before = news
            borrower.news = news
            borrower.permits = max(news.permits, news.in_use)
            borrower.requests_per_s = news.requests_per_s or 0.0
            borrower.tokens_per_s = news.tokens_per_s or 0.0
            if now + news.hold_s > account.held_until:
                account.held_until = now + news.hold_s
                account.trying = "" if news.asked_to_wait else node
            account.control.heard(before, news, account.in_use, _is_short(account), now)

    def lost(self, node: str) -> None:
        """A node is dead, or was given up: what it had is free."""
        for account in self._accounts.values():
            account.borrowers.pop(node, None)

    @property
    def is_tight(self) -> bool:
        """Whether requests wait for permits somewhere."""
        return any(account.waiting for account in self._accounts.values())

    def throttled(self, within_s: float) -> tuple[Throttled, ...]:
        """The accounts with refusals in the last seconds."""
        now = self._clock()
        found = []
        for name, account in self._accounts.items():
            at = account.control.refused_at
            if at is not None and now - at <= within_s:
                control = account.control
                found.append(
                    Throttled(
                        name,
                        account.endpoints,
                        control.window,
                        control.requests_per_s,
                        account.waiting,
                        now - at,
                    )
                )
        return tuple(found)

    def _loan(self, account: _Account, node: str, now: float) -> Loan:
        borrower = account.borrowers.setdefault(node, _Borrower())
        control = account.control
        control.joined(len(account.borrowers))
        wanted = {name: each.wanted for name, each in account.borrowers.items()}
        owed = {name: each.owed for name, each in account.borrowers.items()}
        due = whole_shares(control.window, wanted, owed)[node]
        others = [each for name, each in account.borrowers.items() if name != node]
        permits = max(0, min(due, control.window - sum(each.permits for each in others)))
        exact = shares(control.window, wanted)[node]
        borrower.owed = min(1.0, max(-1.0, borrower.owed + exact - permits))
        borrower.permits = max(borrower.permits, permits)
        requests = _lent(
            control.requests_per_s, wanted, node, [each.requests_per_s for each in others]
        )
        tokens = _lent(control.tokens_per_s, wanted, node, [each.tokens_per_s for each in others])
        borrower.requests_per_s = max(borrower.requests_per_s, requests or 0.0)
        borrower.tokens_per_s = max(borrower.tokens_per_s, tokens or 0.0)
        return Loan(
            permits=permits,
            requests_per_s=requests,
            tokens_per_s=tokens,
            hold_s=self._hold_s(account, node, now),
            round=control.round,
        )

    def _hold_s(self, account: _Account, node: str, now: float) -> float:
        left = account.held_until - now
        if left <= 0:
            return 0.0
        return left if account.trying in ("", node) else left + AFTER_TRY_S


def given_of(endpoints: Iterable[Endpoint]) -> Given:
    """The least that the endpoints of one account give."""
    every = list(endpoints)
    concurrency = [e.max_concurrency for e in every if e.max_concurrency is not None]
    requests = [e.requests_per_minute for e in every if e.requests_per_minute is not None]
    tokens = [e.tokens_per_minute for e in every if e.tokens_per_minute is not None]
    return Given(
        min(concurrency, default=None),
        min(requests) / MINUTE_S if requests else None,
        min(tokens) / MINUTE_S if tokens else None,
    )


def _is_short(account: _Account) -> bool:
    """Whether requests wait, or all that the window lets be under way is."""
    return account.waiting > 0 or account.in_use >= account.control.window


def _lent(
    whole: float | None, wanted: Mapping[str, float], node: str, others: Iterable[float]
) -> float | None:
    if whole is None:
        return None
    total = sum(each + 1.0 for each in wanted.values())
    return max(0.0, min(whole * (wanted[node] + 1.0) / total, whole - sum(others)))
