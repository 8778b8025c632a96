"""The whole data set, every known mistake, and a task of one's own, in real trials."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.base_image import base_image
from tests.flow.mistakes import CELLS
from tests.flow.sweeps import ROOT, Ran, apiary, left_in_docker
from workers.model import MISTAKES

pytestmark = [pytest.mark.docker, pytest.mark.ray]

ALL_TASKS = ROOT / "manifests" / "sweeps" / "all-tasks.yaml"
WORKFLOW = {
    "ambiguous-user-mention",
    "create-channel-invite-users",
    "cross-thread-requests",
    "interleaved-agent-reports",
}
RUN_S = 600.0
NOTHING_LEFT: dict[str, list[str]] = {"containers": [], "volumes": [], "networks": []}

RICHER_FIXTURE = """\
schema_version: 1
user_display_name: Grace Ada Hill
directory:
  - {name: Quiet Helper Bot, role: bot, about: Helps with nothing., channel_member: true}
directory_ranges:
  - {prefix: guest-, first: 1, last: 3, width: 2, role: user}
memories:
  - {slug: mem/kept, value: The kept word is amber.}
observe_channel_names: [no-such-channel]
verifier_inputs: [/etc/hostname]
"""


@pytest.fixture(scope="module")
def all_tasks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    ran = apiary(tmp_path_factory.mktemp("all"), "run", str(ALL_TASKS))
    yield ran
    assert left_in_docker(ran.sweep) == NOTHING_LEFT


def test_the_solver_passes_the_whole_data_set_at_its_layers_attempts(all_tasks: Ran) -> None:
    assert (all_tasks.code, all_tasks.errors) == (0, "")
    assert len(all_tasks.results) == len(all_tasks.tries()) == 18
    counts = Counter(result["task"].partition("/")[2] for result in all_tasks.results)
    assert {name for name, count in counts.items() if count == 3} == WORKFLOW
    assert sorted(counts.values()) == [1] * 6 + [3] * 4
    for result in all_tasks.results:
        assert (result["verdict"], result["cause"], result["reward"]) == ("pass", "none", 1.0)
        assert set(result["dimensions"].values()) == {1.0}
        assert result["leftovers"] == []


def test_the_evidence_shows_what_each_fixture_sets_up(all_tasks: Ran) -> None:
    documents = {}
    for folder in all_tasks.tries():
        evidence = json.loads((folder / "evidence.json").read_bytes())
        documents[evidence["task_name"]] = evidence
    channel = documents["create-channel-invite-users"]
    assert len({row["pubkey"] for row in channel["directory"]}) == 60
    (made,) = channel["observed_channels"]
    assert (made["name"], made["ttl_seconds"], len(made["members"])) == ("fix-pr-1234", 3600, 6)
    names = [row["name"] for row in documents["ambiguous-user-mention"]["directory"]]
    assert names == ["Taylor Morgan Lee"] * 2
    reports = documents["interleaved-agent-reports"]
    authors = [each["author"] for each in reports["messages"][1:4]]
    assert authors == ["Ledger Scout", "Risk Sentinel", "Ops Forecaster"]
    (second,) = documents["cross-thread-requests"]["scripted_events"]
    assert second["event_id"] == documents["cross-thread-requests"]["messages"][1]["id"]


def test_each_mistake_costs_exactly_what_it_is_known_to_cost(tmp_path: Path) -> None:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "PYTHONPATH": str(ROOT),
        "APIARY_BASE_IMAGE": base_image(),
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.flow.mistakes", str(tmp_path)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=RUN_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    outcome = json.loads((tmp_path / "outcome.json").read_bytes())
    assert outcome["state"] == "settled"
    found = {(cell["task"], cell["condition"]): cell for cell in outcome["cells"]}
    assert set(found) == set(CELLS)
    for (task, condition), cell in found.items():
        known = MISTAKES[condition.removeprefix("scripted-")].loses[task]
        assert set(cell["lost"]) == known, (task, condition, cell["detail"])
        assert cell["came_to"] == ("wrong" if known else "pass")
    assert left_in_docker(outcome["sweep"]) == NOTHING_LEFT


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working directory with the shipped manifests, and a data set elsewhere."""
    home = tmp_path_factory.mktemp("own")
    for name in ("manifests", "deploy"):
        (home / name).symlink_to(ROOT / name)
    return home


def test_a_new_task_passes_its_check_with_all_attempts(own: Path) -> None:
    mine = own.with_name(f"{own.name}-elsewhere") / "mine"
    made = apiary(own, "tasks", "new", "my-first", "--path", str(mine))
    assert made.code == 0, made.errors
    checked = apiary(own, "tasks", "check", "--path", str(mine / "my-first"))
    assert checked.code == 0, checked.errors
    (report,) = checked.events
    assert {**report["tasks"][0]["marks"], "digest": "ok"} == dict.fromkeys(
        report["tasks"][0]["marks"], "ok"
    )
    # The copy of manifests that is linked here knows nothing of it.
    assert sorted(path.name for path in mine.iterdir()) == ["my-first", "proofs"]


def test_tests_that_see_less_than_their_proof_says_are_found_out(own: Path) -> None:
    mine = own.with_name(f"{own.name}-elsewhere") / "blind"
    assert apiary(own, "tasks", "new", "my-third", "--path", str(mine)).code == 0
    verify = mine / "my-third" / "tests" / "verify.py"
    seeing = "seen.final is not None and seen.final.replies_to(seen.task_event_id)"
    assert seeing in verify.read_text("utf-8")
    verify.write_text(verify.read_text("utf-8").replace(seeing, "seen.final is not None"), "utf-8")
    checked = apiary(own, "tasks", "check", "my-third", "--path", str(mine), "--no-attempts")
    assert checked.code == 2
    (report,) = checked.events
    assert report["tasks"][0]["problems"] == [
        "tests: at the top level: should lose reply_to_thread, lost nothing"
    ]


def test_a_task_of_ones_own_runs_by_path_with_its_whole_fixture(own: Path) -> None:
    mine = own.with_name(f"{own.name}-elsewhere") / "richer"
    assert apiary(own, "tasks", "new", "my-second", "--path", str(mine)).code == 0
    (mine / "my-second" / "fixture.yaml").write_text(RICHER_FIXTURE)
    ran = apiary(
        own,
        "run",
        *("--path", str(mine / "my-second"), "--network", "sealed"),
        *("--manifest", "manifests/conditions/scripted-solver.yaml"),
        *("--endpoint-config", "deploy/endpoints/scripted.json"),
    )
    assert (ran.code, ran.errors) == (0, "")
    (result,) = ran.results
    assert (result["verdict"], result["task"]) == ("pass", "buzz-native/my-second")
    (folder,) = ran.tries()
    evidence: dict[str, Any] = json.loads((folder / "evidence.json").read_bytes())
    assert [row["name"] for row in evidence["directory"]] == [
        "Quiet Helper Bot",
        "guest-01",
        "guest-02",
        "guest-03",
    ]
    assert "Grace Ada Hill" in evidence["identities"]
    assert (folder / "inputs" / "etc" / "hostname").is_file()
    lines = (folder / "relay-events.jsonl").read_text("utf-8").splitlines()
    timeline = [json.loads(line) for line in lines]
    assert [event["kind"] for event in timeline].count(30174) == 1
    assert "amber" not in json.dumps(timeline)
