"""Every cause is provoked on real parts, and told from every other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.classification.cases import End
from tests.classification.every import CASES
from tests.classification.running import run
from tests.classification.table import faults, table
from tests.classification.watermark import draining_on_a_small_disk
from workers.contract.outcome import BLAME_OF, RULES, Blame, Cause


def test_every_cause_has_a_provocation() -> None:
    provoked = {each.expected.cause for each in CASES}
    assert provoked == set(Cause)


def test_what_is_expected_agrees_with_the_table_of_outcomes() -> None:
    for each in CASES:
        end = each.expected
        rule = RULES[BLAME_OF[end.cause]]
        assert end == End(rule.verdict, BLAME_OF[end.cause], end.cause, end.phase, rule.retry)
    assert {each.expected.blame for each in CASES} == set(Blame)


@pytest.mark.docker
def test_every_case_ends_as_it_must(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    rows = run(CASES, tmp_path)
    record_property("classification", table(rows))
    assert [row.found for row in rows] == [row.expected for row in rows], faults(rows)
    assert not faults(rows)


@pytest.mark.docker
def test_a_node_below_its_watermark_takes_no_lease_and_says_why(tmp_path: Path) -> None:
    progress = draining_on_a_small_disk(tmp_path)
    assert progress.free_slots == 0
    assert not progress.running
    assert "limits.disk_free_mb" in progress.draining
