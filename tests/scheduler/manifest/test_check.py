# ruff: noqa: E501 - tables of refusals, one a line
from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, RootModel

from scheduler.manifest.check import check
from scheduler.manifest.faults import ManifestError
from scheduler.manifest.sweep import SweepFile
from scheduler.manifest.yaml_marks import read_yaml
from tests.scheduler.manifest.builders import SWEEP, condition_text
from workers.contract.base import Strict
from workers.contract.condition import Condition
from workers.contract.endpoint import EndpointFile
from workers.contract.spec import Limits
from workers.contract.task import Fixture


class Pair(Strict):
    left: float
    right: tuple[int, ...] = ()


class Pairs(RootModel[dict[str, Pair]]):
    pass


def test_strict_types_take_what_a_file_can_say() -> None:
    pair = check(Pair, read_yaml("left: 3\nright: [1, 2]\n", "f"))
    assert pair == Pair(left=3.0, right=(1, 2))
    assert isinstance(pair.left, float)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("left: '3'\n", "f:1: left: expected a number, found '3'"),
        ("left: true\n", "f:1: left: expected a number, found true"),
        ("left: null\n", "f:1: left: expected a number, found nothing"),
        ("left: {}\n", "f:1: left: expected a number, found a mapping"),
        ("left: 1\nright: 2\n", "f:2: right: expected a list, found 2"),
        ("left: 1\nright: [1, x]\n", "f:2: right[1]: expected a whole number, found 'x'"),
        ("left: 1\nrigth: []\n", "f:2: rigth: unknown field: no such field here (did you mean 'right'?)"),
        ("left: 1\ncolour: 3\n", "f:2: colour: unknown field: expected one of left, right"),
        ("{}\n", "f:1: left: this field is required and is not there"),
        (f"left: {10**400}\n", "f:1: left: expected a finite number"),
        (f"left: {'x' * 99}\n", f"f:1: left: expected a number, found '{'x' * 56}…"),
    ],
)  # fmt: skip
def test_refuses(text: str, told: str) -> None:
    with pytest.raises(ManifestError) as caught:
        check(Pair, read_yaml(text, "f"))
    assert str(caught.value).startswith(told)


def test_a_present_name_is_no_hint() -> None:
    with pytest.raises(ManifestError) as caught:
        check(Pair, read_yaml("left: 1\nright: []\nrights: []\n", "f"))
    assert caught.value.faults[0].nearest == "right"
    with pytest.raises(ManifestError) as caught:
        check(Limits, read_yaml("build_s: 1\nbuild: 2\n", "f"))
    assert caught.value.faults[0].nearest != "max_tries"


def test_root_models_are_checked_by_entry() -> None:
    with pytest.raises(ManifestError) as caught:
        check(Pairs, read_yaml("a: {left: 1}\nb:\n  lefd: 2\n", "f"))
    assert {str(fault) for fault in caught.value.faults} == {
        "f:3: b.lefd: unknown field: no such field here (did you mean 'left'?)",
        "f:2: b.left: this field is required and is not there",
    }


def test_values_are_not_shown_where_they_may_be_secret() -> None:
    with pytest.raises(ManifestError) as caught:
        check(Pair, read_yaml("left: sk-secret\n", "f"), show_values=False)
    error = caught.value
    assert "sk-secret" not in str(error)
    assert error.__cause__ is None
    assert error.__context__ is None


SOUND: list[tuple[type[BaseModel], str]] = [
    (Condition, condition_text()),
    (SweepFile, SWEEP),
    (EndpointFile, "m: {provider: openai, api_key_env: K, env: {A: b}}\n"),
    (
        Fixture,
        "directory: [{name: A, role: bot}]\n"
        "memories: [{slug: s, value: v}]\n"
        "scripted_messages:\n  - {label: l, actor: A, content: c}\n",
    ),
]
WEEDS = st.text(st.sampled_from(list("[]{}:,-*&!|>'\"#% \n\t0a~.\\<\0é")), max_size=4)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(SOUND), st.lists(st.tuples(st.floats(0, 1), st.integers(0, 6), WEEDS)))
def test_whatever_is_written_is_a_value_or_a_fault(
    sound: tuple[type[BaseModel], str], edits: list[tuple[float, int, str]]
) -> None:
    model, text = sound
    for where, cut, weed in edits:
        start = int(where * len(text))
        text = text[:start] + weed + text[start + cut :]
    try:
        value = check(model, read_yaml(text, "f"))
    except ManifestError as error:
        assert error.faults
        assert all(fault.message for fault in error.faults)
    else:
        assert isinstance(value, model)
