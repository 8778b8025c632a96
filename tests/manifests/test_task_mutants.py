"""Changed transcripts get what the specification says, dimension for dimension."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.manifests import task_oracle
from tests.manifests.task_mutants import OPERATORS, NotApplicableError, Pick, every_mutant
from tests.manifests.task_transcripts import accepted
from tests.manifests.task_verifiers import NAMES, judge


@pytest.mark.parametrize("task", NAMES)
def test_every_single_change_is_judged_as_the_rules_say(task: str) -> None:
    for name, mutant in every_mutant(accepted(task)):
        assert judge(task, mutant) == task_oracle.judge(task, mutant), name


@pytest.mark.parametrize("task", NAMES)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_chained_changes_are_judged_as_the_rules_say(task: str, data: st.DataObject) -> None:
    mutant: dict[str, Any] = copy.deepcopy(accepted(task))
    pick = Pick(lambda choices: data.draw(st.sampled_from(choices)))
    for operator in data.draw(st.lists(st.sampled_from(OPERATORS), min_size=2, max_size=4)):
        try:
            operator(mutant, pick)
        except NotApplicableError:
            continue
    assert judge(task, mutant) == task_oracle.judge(task, mutant)
