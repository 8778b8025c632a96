"""The table of rules is current, and names tests that are there."""

from __future__ import annotations

from collections import Counter

from tests.workers.relay import conformance
from tests.workers.relay.command_rules import COMMANDS

ENOUGH = 150


def test_the_table_is_current() -> None:
    assert conformance.TABLE.read_text("utf-8") == conformance.render(), (
        "run python -m tests.workers.relay.conformance"
    )


def test_there_is_a_test_for_every_part_and_there_are_enough() -> None:
    found = conformance.rules()
    assert {rule.section for rule in found} == set(conformance.TITLES)
    own = [rule for rule in found if not rule.file.startswith(COMMANDS)]
    assert len(own) >= ENOUGH


def test_every_rule_names_a_test_that_is_there_and_no_two_state_the_same() -> None:
    there = {
        (path.relative_to(conformance.ROOT).as_posix(), name)
        for path in conformance.test_files()
        for name in conformance.tests_in(path)
    }
    found = conformance.rules()
    assert {(rule.file, rule.test) for rule in found} <= there
    repeated = [
        key for key, count in Counter((r.section, r.words) for r in found).items() if count > 1
    ]
    assert repeated == []
