# ruff: noqa: E501 - tables of refusals, one a line
"""``vary``: the combinations, their names and digests, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from scheduler.manifest import ManifestError
from scheduler.plan import Plan
from tests.scheduler.manifest.builders import (
    fault_lines,
    plan_of,
    write,
    write_world,
)

PRICE = "{input_per_million_usd: 2, cached_input_per_million_usd: 1, output_per_million_usd: 3}"
MODELS = f"""\
      model:
        first: {{endpoint: scripted-one, model_revision: r1}}
        second:
          endpoint: scripted-two
          model_revision: r2
          prices: {{scripted-two: {PRICE}}}
"""


def world(root: Path, vary: str) -> Path:
    """A sweep whose only condition is varied; ``vary`` is indented by six."""
    sweep = write_world(root)
    return write(
        sweep,
        "name: small\nattempts: 2\nconditions:\n  - path: ../conditions/one.yaml\n    vary:\n"
        f"{vary}endpoints: ../../deploy/endpoints/scripted.json\n",
    )


def names(plan: Plan) -> list[str]:
    return list(plan.conditions)


def refused(root: Path, vary: str) -> list[str]:
    with pytest.raises(ManifestError) as caught:
        plan_of(world(root, vary))
    return [line.removeprefix("manifests/sweeps/") for line in fault_lines(caught.value, root)]


def test_every_combination_is_a_condition_of_its_own(tmp_path: Path) -> None:
    plan = plan_of(world(tmp_path, MODELS + "      thinking_effort: [low, high]\n"))
    assert names(plan) == [
        "one+first+thinking_effort=low",
        "one+first+thinking_effort=high",
        "one+second+thinking_effort=low",
        "one+second+thinking_effort=high",
    ]
    conditions = {cell.condition.condition: cell.condition for cell in plan.cells}
    assert len({each.digest for each in conditions.values()}) == 4
    second = conditions["one+second+thinking_effort=high"]
    assert second.roster[0].endpoint == "scripted-two"
    assert second.roster[0].generation.thinking_effort == "high"
    assert second.roster[0].generation.max_output_tokens == 4096
    assert plan.varies[second.digest] == {
        "model": "second",
        "thinking_effort": "thinking_effort=high",
    }
    assert len(plan.attempts) == 2 * 4 * 2


def test_prices_go_with_the_model_and_those_of_others_are_left_out(tmp_path: Path) -> None:
    plan = plan_of(world(tmp_path, MODELS))
    prices = {cell.condition.condition: cell.condition.prices for cell in plan.cells}
    assert prices["one+first"].keys() == {"scripted-one"}
    assert prices["one+second"].keys() == {"scripted-two"}
    assert prices["one+second"]["scripted-two"].input_per_million_usd == 2


def test_the_identity_is_that_of_a_manifest_that_says_the_same(tmp_path: Path) -> None:
    varied = plan_of(world(tmp_path, "      timeout_seconds: [60]\n"))
    text = (tmp_path / "manifests/conditions/one.yaml").read_text()
    text = text.replace("condition: one", "condition: one+timeout_seconds=60")
    write(
        tmp_path / "manifests/conditions/one.yaml",
        text.replace("timeout_seconds: 300", "timeout_seconds: 60"),
    )
    sweep = tmp_path / "manifests/sweeps/small.yaml"
    plain = plan_of(
        write(sweep, sweep.read_text().replace("    vary:\n      timeout_seconds: [60]\n", ""))
    )
    assert varied.cells == plain.cells


@pytest.mark.parametrize(
    ("vary", "name"),
    [
        ("max_calls: [null]", "one+max_calls=unset"),
        ("include_platform_prompt: [false]", "one+include_platform_prompt=false"),
        ("generation.thinking_effort: [low]", "one+thinking_effort=low"),
        ("roster.solo.budget.max_cost_usd: [1.5]", "one+max_cost_usd=1.5"),
        ("trial_budget.max_cost_usd: [2]", "one+max_cost_usd=2"),
        ("override_memory_mb: [4096]", "one+override_memory_mb=4096"),
        ("size: {large: {environment.override_cpus: 4, override_memory_mb: 8192}}", "one+large"),
        ("note: {a: {metadata: {x: 1}}}", "one+a"),
    ],
)
def test_fields_may_be_named_in_full_or_by_what_is_theirs_alone(
    tmp_path: Path, vary: str, name: str
) -> None:
    assert names(plan_of(world(tmp_path, f"      {vary}\n"))) == [name]


@pytest.mark.parametrize(
    ("vary", "told"),
    [
        ("thinking_efort: [low]", "small.yaml:6: conditions[0].vary.thinking_efort: 'thinking_efort' is no field of a condition that can be varied (did you mean 'thinking_effort'?)"),
        ("x: {a: {generation.thinking: low}}", "small.yaml:6: conditions[0].vary.x.a[\"generation.thinking\"]: 'generation.thinking' is no field of a condition that can be varied (did you mean 'generation.thinking_effort'?)"),
        ("condition: [a]", "small.yaml:6: conditions[0].vary.condition: 'condition' is no field of a condition that can be varied"),
        ("max_cost_usd: [1]", "small.yaml:6: conditions[0].vary.max_cost_usd: 'max_cost_usd' may be any of roster.solo.budget.max_cost_usd, trial_budget.max_cost_usd"),
        ("thinking_effort: [low, lwo]", "small.yaml:6: conditions[0].vary.thinking_effort[1]: combination thinking_effort=lwo: expected 'none', 'minimal', 'low', 'medium', 'high', 'xhigh' or 'max', found 'lwo' (did you mean 'low'?)"),
        ("generation.max_output_tokens: [999999]", "small.yaml:6: conditions[0].vary[\"generation.max_output_tokens\"][0]: combination max_output_tokens=999999: max_output_tokens 999999 must be less than context_window_tokens 200000: output is reserved from the window"),
        ("thinking_effort: []", "small.yaml:6: conditions[0].vary.thinking_effort: expected a list of values for a field of this name, or named variants"),
        ("thinking_effort: low", "small.yaml:6: conditions[0].vary.thinking_effort: expected a list of values for a field of this name, or named variants"),
        ("role: ['[red]']", "small.yaml:6: conditions[0].vary.role[0]: '[red]' would be part of a condition's name: give it a name of its own"),
        ("x: {'a b': {max_calls: 3}}", "small.yaml:6: conditions[0].vary.x[\"a b\"]: expected a name of letters, digits and . _ - / :"),
        ("x: {'': {max_calls: 3}}", "small.yaml:6: conditions[0].vary.x[\"\"]: expected a name of letters, digits"),
        ("prompt: [{path: a}]", "small.yaml:6: conditions[0].vary.prompt[0]: expected text, a number, true, false or null: give anything else a name"),
        ("prompt: {path: a, sha256: b}", "small.yaml:6: conditions[0].vary.prompt.path: expected the fields that variant 'path' of 'prompt' sets, with their values"),
        ("thinking_effort: [low, low]", "small.yaml:5: conditions[0].vary: the combinations thinking_effort=low and thinking_effort=low are one condition"),
        ("size: {a: {max_calls: 3}, b: {max_calls: 3}}", "small.yaml:5: conditions[0].vary: the combinations a and b are one condition"),
        ("endpoint: [scripted-one, scripted-two]", "small.yaml:6: conditions[0].vary.endpoint: a model is varied by named variants that set endpoint and model_revision, and prices"),
        ("prices: [1]", "small.yaml:6: conditions[0].vary.prices: a model is varied by named variants"),
        ("model: {a: {endpoint: scripted-two}}", "small.yaml:6: conditions[0].vary.model.a: variant 'a' does not set model_revision: a model is varied"),
        ("model: {a: {model_revision: r2}}", "small.yaml:6: conditions[0].vary.model.a: variant 'a' does not set endpoint: a model is varied"),
        ("model: {a: {endpoint: scripted-two, model_revision: r2}}", "small.yaml:6: conditions[0].vary.model.a: variant 'a' sets no prices for 'scripted-two', and the condition has none"),
        ("model: {a: {endpoint: scripted-one, model_revision: r2}}", "small.yaml:6: conditions[0].vary.model.a: variant 'a' sets no prices, and those that the condition has for 'scripted-one' are of 'r1', not of 'r2'"),
        ("model: {a: {max_calls: 2, roster.solo.budget.max_calls: 3}}", "small.yaml:6: conditions[0].vary.model.a[\"roster.solo.budget.max_calls\"]: roster[0].budget.max_calls is set by conditions[0].vary.model.a.max_calls already"),
        ("x: {a: {max_calls: 2, budget: {max_calls: 3}}}", "small.yaml:6: conditions[0].vary.x.a.budget: roster[0].budget is set by conditions[0].vary.x.a.max_calls already"),
    ],
)  # fmt: skip
def test_refuses(tmp_path: Path, vary: str, told: str) -> None:
    faults = refused(tmp_path, f"      {vary}\n")
    assert len(faults) == 1, faults
    assert faults[0].startswith(told), faults


def test_two_axes_that_set_one_field_are_refused(tmp_path: Path) -> None:
    vary = "      thinking_effort: [low]\n      x: {a: {thinking_effort: high}}\n"
    assert refused(tmp_path, vary) == [
        "small.yaml:7: conditions[0].vary.x.a.thinking_effort: "
        "roster[0].generation.thinking_effort is set by conditions[0].vary.thinking_effort[0] already"
    ]


def test_one_wrong_value_of_a_large_matrix_is_one_fault(tmp_path: Path) -> None:
    vary = "      thinking_effort: [low, medium, oops]\n      max_calls: [1, 2, 3, 4]\n"
    with pytest.raises(ManifestError) as caught:
        plan_of(world(tmp_path, vary))
    (fault,) = caught.value.faults
    assert "combination thinking_effort=oops × max_calls=1 and 3 more: expected" in fault.message


def test_a_matrix_that_is_too_large_is_refused_at_once(tmp_path: Path) -> None:
    numbers = ", ".join(str(number) for number in range(1, 41))
    vary = f"      max_calls: [{numbers}]\n      timeout_seconds: [{numbers}]\n"
    assert refused(tmp_path, vary) == [
        "small.yaml:5: conditions[0].vary: 1600 combinations, expected at most 1000"
    ]


def with_a_helper(root: Path, vary: str) -> Path:
    """The same sweep, its condition with a second agent."""
    sweep = world(root, vary)
    path = root / "manifests/conditions/one.yaml"
    text = path.read_text()
    solo = text.partition("roster:\n")[2].partition("prices:")[0]
    helper = solo.replace("id: solo", "id: helper").replace("orchestrator", "worker")
    write(path, text.replace("prices:", f"{helper}prices:"))
    return sweep


def test_of_several_agents_each_is_varied_by_its_id(tmp_path: Path) -> None:
    vary = MODELS.replace("endpoint:", "roster.helper.endpoint:")
    vary = vary.replace("model_revision:", "roster.helper.model_revision:")
    plan = plan_of(with_a_helper(tmp_path, vary))
    assert names(plan) == ["one+first", "one+second"]
    second = next(c.condition for c in plan.cells if c.condition.condition == "one+second")
    assert [each.endpoint for each in second.roster] == ["scripted-one", "scripted-two"]
    assert second.prices.keys() == {"scripted-one", "scripted-two"}


def test_a_field_that_several_agents_have_needs_the_id(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match=r"may be any of roster\.solo\.gen.*roster\.helper\."):
        plan_of(with_a_helper(tmp_path, "      thinking_effort: [low]\n"))


def test_two_agents_may_be_varied_over_the_same_models(tmp_path: Path) -> None:
    def axis(agent: str) -> str:
        text = MODELS.replace("model:", f"{agent}:", 1).replace(
            "r1}", f"r1, prices: {{scripted-one: {PRICE}}}}}"
        )
        text = text.replace("endpoint:", f"roster.{agent}.endpoint:")
        return text.replace("model_revision:", f"roster.{agent}.model_revision:")

    plan = plan_of(with_a_helper(tmp_path, axis("solo") + axis("helper")))
    assert names(plan) == [
        "one+first+first", "one+first+second", "one+second+first", "one+second+second",
    ]  # fmt: skip
    other = axis("helper").replace("output_per_million_usd: 3", "output_per_million_usd: 4")
    with pytest.raises(
        ManifestError, match=r'prices\["scripted-one"\]|prices\.scripted-\w+ is set by'
    ):
        plan_of(with_a_helper(tmp_path, axis("solo") + other))


def test_a_lacking_endpoint_is_told_at_the_variant(tmp_path: Path) -> None:
    vary = (
        f"      m: {{a: {{endpoint: nowhere, model_revision: r, prices: {{nowhere: {PRICE}}}}}}}\n"
    )
    (fault,) = refused(tmp_path, vary)
    assert fault.startswith("small.yaml:6: conditions[0].vary.m.a.endpoint: ")
    assert "has no endpoint 'nowhere'" in fault


def test_faults_of_the_manifest_itself_are_told_once_and_there(tmp_path: Path) -> None:
    sweep = world(tmp_path, "      thinking_effort: [low, high]\n")
    path = tmp_path / "manifests/conditions/one.yaml"
    write(path, path.read_text().replace("count: 1", "count: 0"))
    with pytest.raises(ManifestError) as caught:
        plan_of(sweep)
    (fault,) = caught.value.faults
    assert fault.file.endswith("one.yaml")
    assert "combination" not in fault.message


def test_thousands_of_values_are_refused_before_they_are_held_against_each_other(
    tmp_path: Path,
) -> None:
    values = ", ".join(map(str, range(1, 5001)))
    axes = ("roster.solo.generation.max_output_tokens", "roster.solo.budget.max_calls")
    vary = "".join(f"      {axis}: [{values}]\n" for axis in axes)
    (line,) = refused(tmp_path, vary)
    assert "25000000 combinations, expected at most 1000" in line
