"""Shows the classification table at the end of a run that made one."""

from __future__ import annotations

import pytest

PROPERTY = "classification"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints what the suite has recorded."""
    for outcome in ("passed", "failed"):
        for report in terminalreporter.getreports(outcome):
            for name, text in report.user_properties:
                if name == PROPERTY:
                    terminalreporter.section("classification")
                    terminalreporter.write_line(str(text))
