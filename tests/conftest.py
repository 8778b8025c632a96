"""Surroundings of every test, and the rule that nothing is skipped where it must run."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

# No deadline for an example: a machine that is busy for a moment is no fault of what is tested.
settings.register_profile("fast", max_examples=30, deadline=None)
settings.register_profile("long", max_examples=300, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))

NO_SKIPS = "APIARY_NO_SKIPS"
"""Set by ``deploy/test.sh``: a test that was skipped fails the run."""


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No store and no key of the person who runs the tests."""
    for name in ("APIARY_STORE", "ANTHROPIC_API_KEY", "OPENAI_COMPAT_API_KEY", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Turns skips into a failed run where they are not allowed."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if not os.environ.get(NO_SKIPS) or reporter is None:
        return
    skipped = len(reporter.stats.get("skipped", []))
    if skipped:
        reporter.write_line(f"{NO_SKIPS}: {skipped} tests were skipped", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
