from __future__ import annotations

from pathlib import Path

import pytest

from scheduler.manifest.faults import ManifestError
from scheduler.manifest.selection import choose_tasks
from scheduler.manifest.sweep import Overrides, load_sweep, sweep_from_flags
from tests.scheduler.manifest.builders import write, write_task, write_world


def names(sweep: Path, overrides: Overrides | None = None) -> list[str]:
    chosen, _ = choose_tasks(load_sweep(sweep, overrides))
    return [each.task.bare_name for each in chosen]


def refusal(sweep: Path, overrides: Overrides | None = None) -> list[str]:
    with pytest.raises(ManifestError) as caught:
        choose_tasks(load_sweep(sweep, overrides))
    return [str(fault) for fault in caught.value.faults]


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        (Overrides(), ["alpha", "beta"]),
        (Overrides(layer="regression"), ["alpha"]),
        (Overrides(include=("b*",)), ["beta"]),
        (Overrides(include=("buzz-native/*",)), ["alpha", "beta"]),
        (Overrides(include=("buzz-native/alpha", "beta")), ["alpha", "beta"]),
        (Overrides(exclude=("a*",)), ["beta"]),
        (Overrides(include=("*",), exclude=("beta",)), ["alpha"]),
    ],
)
def test_globs_and_layer_choose(tmp_path: Path, overrides: Overrides, expected: list[str]) -> None:
    assert names(write_world(tmp_path), overrides) == expected


def test_a_glob_without_a_match_is_refused_where_it_stands(tmp_path: Path) -> None:
    sweep = write_world(tmp_path)
    sweep.write_text(sweep.read_text() + "tasks:\n  include:\n    - alpha\n    - bata\n")
    assert refusal(sweep) == [
        f"{sweep}:11: tasks.include[1]: no task matches 'bata'; "
        "there are alpha (regression), beta (workflow) (did you mean 'beta'?)"
    ]


def test_an_idle_exclusion_is_a_warning(tmp_path: Path) -> None:
    _, warnings = choose_tasks(load_sweep(write_world(tmp_path), Overrides(exclude=("gamma",))))
    assert warnings == ("tasks.exclude: no task matches 'gamma'",)


def test_a_layer_without_tasks_lists_layers_and_tasks(tmp_path: Path) -> None:
    sweep = write_world(tmp_path)
    assert refusal(sweep, Overrides(layer="workflow", exclude=("beta",))) == [
        "command line: --layer: no task has the layer 'workflow'; there are alpha (regression)"
    ]


def test_excluding_everything_is_refused(tmp_path: Path) -> None:
    assert (
        "no task is left; there are alpha"
        in refusal(write_world(tmp_path), Overrides(exclude=("*",)))[0]
    )


def test_one_task_folder_is_a_data_set_of_one(tmp_path: Path) -> None:
    manifests = write_world(tmp_path).parents[1]
    sweep = sweep_from_flags(manifests / "tasks" / "beta", (manifests / "conditions/one.yaml",))
    chosen, _ = choose_tasks(sweep)
    assert [each.task.bare_name for each in chosen] == ["beta"]
    assert chosen[0].kit == manifests.resolve() / "verifier_kit"


def test_a_path_without_tasks_is_refused(tmp_path: Path) -> None:
    manifests = write_world(tmp_path).parents[1]
    for path, words in [
        (manifests / "personas", "is no task and has no tasks"),
        (manifests / "none", "there is no folder"),
        (manifests / "personas" / "solo.md", "there is no folder"),
    ]:
        with pytest.raises(ManifestError, match=f"--path: .*{words}"):
            choose_tasks(sweep_from_flags(path, (manifests / "conditions/one.yaml",)))


def test_a_task_with_faults_stops_only_who_chooses_it(tmp_path: Path) -> None:
    sweep = write_world(tmp_path)
    tasks = sweep.parents[1] / "tasks"
    write(tasks / "broken" / "task.toml", "nonsense\n")
    write(tasks / "half" / "instruction.md", "x\n")
    write(tasks / "notes" / "README.md", "not a task\n")
    write(tasks / ".hidden" / "task.toml", "nonsense\n")
    assert names(sweep, Overrides(include=("alpha",))) == ["alpha"]
    told = "\n".join(refusal(sweep))
    assert f"{tasks}/half/task.toml: there is no such file" in told
    assert f"{tasks}/broken/instruction.md: there is no such file" in told
    assert "notes" not in told
    assert "broken (unreadable)" in refusal(sweep, Overrides(include=("zzz",)))[0]
    assert f"{tasks}/broken" in "\n".join(refusal(sweep, Overrides(include=("broken",))))


def test_two_tasks_of_one_name_are_refused(tmp_path: Path) -> None:
    sweep = write_world(tmp_path)
    other = write_task(sweep.parents[1], "copy")
    text = (other / "task.toml").read_text().replace("buzz-native/copy", "buzz-native/alpha")
    (other / "task.toml").write_text(text)
    assert "has the same name, 'buzz-native/alpha'" in refusal(sweep)[0]


def test_long_lists_are_cut(tmp_path: Path) -> None:
    sweep = write_world(tmp_path)
    for number in range(30):
        write_task(sweep.parents[1], f"many-{number:02d}")
    assert "and 12 more" in refusal(sweep, Overrides(include=("zzz",)))[0]
