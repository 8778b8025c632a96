"""The examples of manifests/README.md are of the formats that they show."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from scheduler.dataset.proof import EXPECTED, Proof
from scheduler.manifest.check import check
from scheduler.manifest.json_marks import read_json
from scheduler.manifest.model_fields import fields_at
from scheduler.manifest.sweep import SweepFile, check_sweep
from scheduler.manifest.vary import variants
from scheduler.manifest.yaml_marks import read_yaml
from workers.contract.condition import Condition
from workers.contract.endpoint import EndpointFile

README = (Path(__file__).parents[3] / "manifests" / "README.md").read_text(encoding="utf-8")


def example(kind: str, first: str) -> str:
    blocks: list[str] = re.findall(rf"```{kind}\n(.*?)```", README, re.DOTALL)
    (block,) = [each for each in blocks if each.startswith(first)]
    return block.replace("…", "a" * 64)


def test_the_condition_and_the_sweep_are_sound() -> None:
    condition = check(Condition, read_yaml(example("yaml", 'schema_version: "1"'), "README"))
    sweep = check_sweep(read_yaml(example("yaml", "name: nightly"), "README"))
    endpoints = check(EndpointFile, read_json(example("json", "{"), "README"))
    assert condition.endpoints == tuple(endpoints.root)
    assert sweep.name == "nightly"


@pytest.mark.parametrize(
    ("model", "place"),
    [
        (Condition, ()),
        (Condition, ("roster", 0)),
        (Condition, ("roster", 0, "generation")),
        (Condition, ("roster", 0, "budget")),
        (Condition, ("prices", "e")),
        (Condition, ("environment",)),
        (Condition, ("trial_budget",)),
        (EndpointFile, ("e",)),
        (SweepFile, ("tasks",)),
        (SweepFile, ("scoring",)),
        (SweepFile, ("canary",)),
        (SweepFile, ("conditions", 0)),
    ],
)
def test_every_field_is_named(model: type[BaseModel], place: tuple[str | int, ...]) -> None:
    names = fields_at(model, place)
    assert names
    assert [name for name in names if name not in README] == []


def test_the_matrix_makes_four_conditions() -> None:
    document = read_yaml("name: matrix\n" + example("yaml", "conditions:"), "README")
    use = check_sweep(document).conditions[1]
    base = read_yaml(example("yaml", 'schema_version: "1"'), "README")
    made = variants(document, ("conditions", 1, "vary"), use.vary, base, check(Condition, base))
    assert made[0].name == "my-condition+thinking_effort=low+luna"
    assert len({check(Condition, each.document).digest for each in made}) == 4
    assert set(fields_at(SweepFile, ("conditions", 1))) == use.model_fields_set


def test_every_field_of_a_sweep_is_in_its_example() -> None:
    shown = read_yaml(example("yaml", "name: nightly"), "README").data
    assert set(fields_at(SweepFile, ())) - set(shown) == {"schema_version"}


def test_the_proof_is_sound() -> None:
    proof = check(Proof, read_yaml(example("yaml", "schema_version: 1"), "README"))
    assert proof.attempts == EXPECTED
    assert proof.dimensions == ("reply_to_thread", "evidence_complete")
