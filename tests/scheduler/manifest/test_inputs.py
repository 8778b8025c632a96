# ruff: noqa: E501 - tables of refusals, one a line
"""Refusals that only show when the files of a sweep are held against each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from scheduler.lock import lock_of
from scheduler.lock_plan import plan_from_lock
from scheduler.manifest import ManifestError, Overrides, load_sweep, sweep_from_flags
from scheduler.plan import make_plan
from tests.scheduler.manifest.builders import (
    STARTED,
    fault_lines,
    plan_of,
    write,
    write_condition,
    write_world,
)


def refusal(sweep: Path, root: Path, environment: dict[str, str] | None = None) -> list[str]:
    with pytest.raises(ManifestError) as caught:
        plan_of(sweep, environment)
    return fault_lines(caught.value, root)


def test_a_lacking_endpoint_names_the_shipped_file_that_has_it(tmp_path: Path) -> None:
    sweep = write_world(tmp_path)
    write_condition(sweep.parents[1], "one", "live")
    write_condition(sweep.parents[1], "two", "nowhere")
    lines = refusal(sweep, tmp_path)
    assert lines[0].endswith(
        "conditions/one.yaml:8: roster[0].endpoint: "
        "deploy/endpoints/scripted.json has no endpoint 'live' "
        "(it has: scripted-one, scripted-two); deploy/endpoints/anthropic-live.json has it: "
        "use --endpoint-config deploy/endpoints/anthropic-live.json"
    )
    assert lines[1].endswith("has no endpoint 'nowhere' (it has: scripted-one, scripted-two)")


def test_a_missing_key_variable_is_refused_and_one_not_used_is_not(tmp_path: Path) -> None:
    sweep = write_world(tmp_path)
    text = "scripted-one: {provider: openai, api_key_env: ONE_KEY}\n"
    text += "scripted-two: {provider: scripted}\nthree: {provider: openai, api_key_env: X}\n"
    endpoints = write(tmp_path / "e.yaml", text)
    sweep.write_text(
        sweep.read_text().replace("../../deploy/endpoints/scripted.json", "../../e.yaml")
    )
    lines = refusal(sweep, tmp_path)
    assert lines == [
        "e.yaml:1: scripted-one.api_key_env: the environment variable "
        "ONE_KEY must hold the key of 'scripted-one'; it is not set"
    ]
    plan = plan_of(sweep, {"ONE_KEY": "sk-secret"})
    assert "sk-secret" not in repr(plan)
    assert endpoints.exists()


def test_a_missing_key_variable_is_a_warning_where_nothing_is_run(tmp_path: Path) -> None:
    manifests = write_world(tmp_path).parents[1]
    write_condition(manifests, "one", "live")
    sweep = sweep_from_flags(manifests / "tasks" / "alpha", (manifests / "conditions/one.yaml",))
    plan = make_plan(sweep, started_at=STARTED, environment={}, keys_needed=False)
    (warning,) = plan.warnings
    assert "the environment variable LIVE_KEY must hold the key of 'live'" in warning


def test_a_sweep_file_in_place_of_a_condition_is_one_fault(tmp_path: Path) -> None:
    path = write_world(tmp_path)
    sweep = sweep_from_flags(path.parents[1] / "tasks", (path,))
    with pytest.raises(ManifestError) as caught:
        make_plan(sweep, started_at=STARTED, environment={})
    assert fault_lines(caught.value, tmp_path) == [
        "manifests/sweeps/small.yaml:1: this is a sweep file: "
        "give it by itself, without --path and --manifest"
    ]


def test_a_task_without_fixture_is_planned_and_graded_by_state(tmp_path: Path) -> None:
    sweep = write_world(tmp_path)
    (sweep.parents[1] / "tasks/alpha/fixture.yaml").unlink()
    plan = plan_of(sweep)
    assert [(task.bare_name, task.freeze) for task in plan.tasks] == [
        ("alpha", "agent"),
        ("beta", "evidence"),
    ]


def test_what_a_harbor_task_asks_for_in_vain_is_refused_when_planned(tmp_path: Path) -> None:
    sweep = write_world(tmp_path)
    folder = sweep.parents[1] / "tasks/alpha"
    (folder / "fixture.yaml").unlink()
    with (folder / "task.toml").open("a") as stream:
        stream.write("gpus = 1\n")
    (told,) = refusal(sweep, tmp_path)
    assert told.startswith("manifests/tasks/alpha/task.toml:")
    assert "environment.gpus: gpus: this version gives no container a GPU" in told


def test_two_conditions_of_one_name_are_refused(tmp_path: Path) -> None:
    sweep = write_world(tmp_path)
    two = sweep.parents[1] / "conditions/two.yaml"
    two.write_text(two.read_text().replace("condition: two", "condition: one"))
    assert refusal(sweep, tmp_path) == [
        "manifests/conditions/two.yaml:2: condition: "
        "manifests/conditions/one.yaml is called 'one' too: "
        "results are told apart by this name"
    ]


@pytest.mark.parametrize(
    ("store", "words"),
    [
        ("ftp://x", "ftp"),
        ("file://relative", "absolute path"),
        ("s3://user:sk-secret@bucket", "credentials"),
        ("s3://", "bucket"),
    ],
)
def test_a_store_that_cannot_be_is_refused_where_it_was_named(
    tmp_path: Path, store: str, words: str
) -> None:
    sweep = write_world(tmp_path)
    (line,) = refusal(sweep, tmp_path, {"APIARY_STORE": store})
    assert line.startswith("environment: APIARY_STORE: ")
    assert words in line
    assert "sk-secret" not in line
    sweep.write_text(sweep.read_text() + f"store: {store}\n")
    (line,) = refusal(sweep, tmp_path)
    assert line.startswith("manifests/sweeps/small.yaml:8: store: ")


def test_the_store_is_the_sweeps_then_the_environments_then_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep = write_world(tmp_path)
    monkeypatch.chdir(tmp_path)
    here = make_plan(load_sweep(sweep), started_at=STARTED, environment={})
    assert here.spec.store == f"file://{tmp_path}/.apiary"
    assert plan_of(sweep, {"APIARY_STORE": "file:///e"}).spec.store == "file:///e"
    loaded = load_sweep(sweep, Overrides(store="file:///f"))
    plan = make_plan(loaded, started_at=STARTED, environment={"APIARY_STORE": "file:///e"})
    assert plan.spec.store == "file:///f"


def test_faults_of_every_file_are_told_at_once(tmp_path: Path) -> None:
    sweep = write_world(tmp_path)
    manifests = sweep.parents[1]
    write(manifests / "conditions/one.yaml", "x: 1\n")
    (manifests / "conditions/two.yaml").unlink()
    write(manifests / "tasks/alpha/task.toml", "=\n")
    write(tmp_path / "deploy/endpoints/scripted.json", "{")
    text = "\n".join(refusal(sweep, tmp_path))
    for name in (
        "one.yaml:1",
        "small.yaml:5: conditions[1]: there is no file",
        "task.toml:1",
        "scripted.json:1",
    ):
        assert name in text


def test_a_missing_file_is_refused_where_it_is_named_with_the_nearest_beside_it(
    tmp_path: Path,
) -> None:
    sweep = write_world(tmp_path)
    text = sweep.read_text().replace("one.yaml", "oen.yaml").replace("scripted.json", "script.json")
    sweep.write_text(text + "tasks: {path: ../taks}\n")
    conditions = "manifests/conditions"
    endpoints = "deploy/endpoints"
    assert refusal(sweep, tmp_path) == [
        "manifests/sweeps/small.yaml:8: tasks.path: there is no folder manifests/taks "
        "(did you mean 'manifests/tasks'?)",
        f"manifests/sweeps/small.yaml:4: conditions[0]: there is no file {conditions}/oen.yaml "
        f"(did you mean '{conditions}/one.yaml'?)",
        f"manifests/sweeps/small.yaml:6: endpoints: there is no file {endpoints}/script.json "
        f"(did you mean '{endpoints}/scripted.json'?)",
    ]


def test_names_too_long_or_odd_are_faults_like_others(tmp_path: Path) -> None:
    sweep = write_world(tmp_path)
    long = "n" * 5000
    sweep.write_text(
        f"name: s\nconditions: [{long}, 'a\\0b']\nendpoints: {long}\ntasks: {{path: {long}}}\n"
    )
    assert len(refusal(sweep, tmp_path)) == 4
    one = sweep.parents[1] / "conditions/one.yaml"
    one.write_text(one.read_text().replace("personas/solo.md", long))
    sweep.write_text("name: s\nconditions: [../conditions/one.yaml]\n")
    assert "there is no file" in "\n".join(refusal(sweep, tmp_path))


def test_warnings_of_conditions(tmp_path: Path) -> None:
    sweep = write_world(tmp_path)
    one = sweep.parents[1] / "conditions/one.yaml"
    one.write_text(one.read_text().replace("max_output_tokens: 4096", "temperature: 0.7"))
    sweep.write_text(sweep.read_text() + "tasks: {exclude: [zzz]}\n")
    warnings = plan_of(sweep).warnings
    assert warnings[0] == "tasks.exclude: no task matches 'zzz'"
    assert "temperature is recorded only" in warnings[1]


def test_the_flags_default_to_the_shipped_anthropic_file(tmp_path: Path) -> None:
    manifests = write_world(tmp_path).parents[1]
    write_condition(manifests, "one", "live")
    sweep = sweep_from_flags(manifests / "tasks" / "alpha", (manifests / "conditions/one.yaml",))
    with pytest.raises(ManifestError, match="LIVE_KEY"):
        make_plan(sweep, started_at=STARTED, environment={})
    plan = make_plan(sweep, started_at=STARTED, environment={"LIVE_KEY": "k"})
    assert (len(plan.attempts), plan.name) == (1, "one")


USES = """\
conditions:
  - path: ../conditions/one.yaml
    include: [alpha]
    attempts: 7
  - path: ../conditions/two.yaml
    exclude: ["buzz-native/al*"]
"""


def with_uses(root: Path, uses: str = USES) -> Path:
    sweep = write_world(root)
    old = "conditions:\n  - ../conditions/one.yaml\n  - ../conditions/two.yaml\n"
    return write(sweep, sweep.read_text().replace(old, uses))


def test_a_condition_has_its_own_tasks_and_attempts(tmp_path: Path) -> None:
    plan = plan_of(with_uses(tmp_path))
    found = {
        (cell.condition.condition, cell.task.bare_name): plan.counts[cell.cell]
        for cell in plan.cells
    }
    assert found == {("one", "alpha"): 7, ("two", "beta"): 2}
    assert len(plan.attempts) == 9
    lock = lock_of(plan)
    again = plan_from_lock(lock, environment={})
    assert (again.cells, again.attempts) == (plan.cells, plan.attempts)


def test_attempts_on_the_command_line_are_every_conditions(tmp_path: Path) -> None:
    sweep = load_sweep(with_uses(tmp_path), Overrides(attempts=1))
    plan = make_plan(sweep, started_at=STARTED, environment={})
    assert set(plan.counts.values()) == {1}


def test_a_task_that_no_condition_runs_is_left_out_with_a_warning(tmp_path: Path) -> None:
    plan = plan_of(with_uses(tmp_path, USES.replace("  - path: ../conditions/two.yaml\n", "")
                             .replace('    exclude: ["buzz-native/al*"]\n', "")))  # fmt: skip
    assert [task.bare_name for task in plan.tasks] == ["alpha"]
    assert plan.warnings == ("task buzz-native/beta: no condition runs it",)


def test_to_try_one_task_leaves_out_who_does_not_run_it(tmp_path: Path) -> None:
    sweep = load_sweep(with_uses(tmp_path), Overrides(include=("beta",)))
    plan = make_plan(sweep, started_at=STARTED, environment={})
    assert plan.conditions == ("two",)
    assert plan.warnings == ("../conditions/one.yaml: runs none of these tasks",)
    only_one = USES.partition("  - path: ../conditions/two.yaml")[0]
    sweep = load_sweep(with_uses(tmp_path, only_one), Overrides(include=("beta",)))
    with pytest.raises(ManifestError, match="no condition runs any of these tasks"):
        make_plan(sweep, started_at=STARTED, environment={})


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("[alpha]", "[alhpa]", "5: conditions[0].include[0]: no task of the sweep matches 'alhpa'; it has alpha, beta (did you mean 'alpha'?)"),
        ('["buzz-native/al*"]', '["x"]', "8: conditions[1].exclude[0]: no task of the sweep matches 'x'; it has alpha, beta"),
        ("include: [alpha]", "exclude: ['*']", "4: conditions[0]: its globs leave no task of the sweep"),
        ("include:", "includes:", "5: conditions[0].includes: unknown field: no such field here (did you mean 'include'?)"),
        ("attempts: 7", "attempts: 0", "6: conditions[0].attempts: expected a number of at least 1, found 0"),
    ],
)  # fmt: skip
def test_refuses_what_a_condition_cannot_have(
    tmp_path: Path, old: str, new: str, told: str
) -> None:
    with pytest.raises(ManifestError) as caught:
        plan_of(with_uses(tmp_path, USES.replace(old, new)))
    (fault,) = fault_lines(caught.value, tmp_path)
    assert fault == f"manifests/sweeps/small.yaml:{told}"
