"""What a sweep grows to, without a store; through the command line: ``cli/test_growth``."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from scheduler.growth import Growth, check_base, grow
from scheduler.lock import Lock, LockError, lock_of, superseded
from scheduler.lock_difference import difference
from scheduler.manifest import ManifestError, Overrides, load_sweep
from scheduler.plan import BaseImage
from tests.scheduler.manifest.builders import plan_of, write, write_world

NOW = datetime(2026, 9, 1, tzinfo=UTC)


@pytest.fixture
def sweep(tmp_path: Path) -> Path:
    return write_world(tmp_path)


def grown(
    sweep: Path, *locks: Lock, base: BaseImage | None = None, attempts: int | None = None
) -> Growth:
    return grow(
        load_sweep(sweep, Overrides(attempts=attempts)),
        locks,
        now=NOW,
        environment={},
        base_image=base,
    )


def test_it_keeps_ids_start_store_and_profile(sweep: Path) -> None:
    plan = plan_of(sweep)
    first = lock_of(replace(plan, profile=plan.profile.model_copy(update={"n_concurrent": 3})))
    growth = grown(sweep, first, attempts=3)
    second = lock_of(growth.plan)
    assert growth.is_new
    assert (second.number, second.grown_at) == (2, "2026-09-01T00:00:00Z")
    for field in ("sweep", "name", "started_at", "store", "profile", "base_image"):
        assert getattr(second, field) == getattr(first, field), field
    assert set(plan.attempts) < set(growth.plan.attempts)
    assert (growth.difference.added, growth.difference.kept) == (4, 8)
    assert Lock.from_json(second.to_json(), "lock") == second


def test_the_same_again_is_no_growth(sweep: Path) -> None:
    first = lock_of(plan_of(sweep))
    growth = grown(sweep, first)
    assert not growth.is_new
    assert growth.plan.number == 1
    assert lock_of(growth.plan) == first


def test_what_the_file_leaves_out_is_as_the_sweep_has_it(sweep: Path) -> None:
    text = sweep.read_text()
    write(sweep, f"{text}seed: 7\nlimits: {{poison: 9}}\nscoring: {{rule: valid_only}}\n")
    first = lock_of(plan_of(sweep))
    later = first.limits.model_copy(update={"build_s": 1.0})
    first = first.model_copy(update={"limits": later})
    write(sweep, text.replace("network: sealed\n", "scoring: {coverage_gate: 0.9}\n"))
    growth = grown(sweep, first, attempts=3)
    assert growth.plan.spec.limits == later
    assert (growth.plan.spec.seed, growth.plan.spec.network) == (7, "sealed")
    assert growth.plan.scoring == first.scoring


def test_differences_are_between_a_lock_and_all_before(sweep: Path) -> None:
    first = lock_of(plan_of(sweep))
    instruction = sweep.parents[1] / "tasks/alpha/instruction.md"
    text = instruction.read_text()
    write(instruction, "Otherwise.\n")
    changed = grown(sweep, first)
    second = lock_of(changed.plan)
    assert (changed.difference.added, changed.difference.kept) == (4, 4)
    assert [each.what for each in changed.difference.changed] == ["task"]
    write(instruction, text)
    third = lock_of(grown(sweep, first, second).plan)
    back = difference([first, second], third)
    assert (back.added, back.kept, len(back.superseded)) == (0, 8, 2)
    assert {each.task.digest for each in superseded([first, second, third])} == {
        task.digest for task in second.tasks if task.bare_name == "alpha"
    }


def test_a_sweep_of_another_start_is_not_taken_for_this_one(sweep: Path) -> None:
    first = lock_of(plan_of(sweep)).model_copy(update={"sweep": "small-19990101T000000Z"})
    with pytest.raises(LockError, match="its lock says that it is small-20260830T120005Z"):
        grown(sweep, first)


def test_the_base_image_is_that_of_the_start(sweep: Path) -> None:
    base = BaseImage(reference="base:1", digest="sha256:aa")
    first = lock_of(replace(plan_of(sweep), base_image=base))
    with pytest.raises(ManifestError, match="sweep's start as base:1, and here it is base:2"):
        grown(sweep, first, base=BaseImage(reference="base:2", digest=None))
    growth = grown(sweep, first, base=BaseImage(reference="base:1", digest=None), attempts=5)
    assert growth.plan.base_image == base
    check_base(first, BaseImage(reference="base:1", digest=None))
    check_base(first, base)
    with pytest.raises(LockError, match="is sha256:aa, and here sha256:bb"):
        check_base(first, BaseImage(reference="base:1", digest="sha256:bb"))


def test_many_cells_with_fewer_attempts_are_one_fault(sweep: Path) -> None:
    first = lock_of(plan_of(sweep))
    with pytest.raises(ManifestError) as caught:
        grown(sweep, first, attempts=1)
    (fault,) = caught.value.faults
    assert fault.field == "--attempts"
    assert fault.message.count(": 2 -> 1") == 4
