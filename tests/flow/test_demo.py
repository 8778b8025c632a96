"""The demonstration, with the results that are known beforehand."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.flow.sweeps import DEMO, Ran, Watch, apiary, left_in_docker, watching
from workers.nostr.errors import KeyFormatError
from workers.nostr.keys import Keypair

pytestmark = [pytest.mark.docker, pytest.mark.ray]

TASKS = (
    "memory-retrieval",
    "read-named-path-outside-workspace",
    "reply-to-thread",
    "user-mention",
)
NAMED_PATH = "buzz-native/read-named-path-outside-workspace"
SLOPPY_LOSES = {
    "buzz-native/reply-to-thread": {"reply_to_thread"},
    "buzz-native/user-mention": {"user_p_tagged"},
    "buzz-native/memory-retrieval": {"threaded_reply"},
}
PHASES = ["prepare", "provision", "launch", "drive", "freeze", "collect", "verify", "seal"]
NSEC = re.compile(rb"nsec1[02-9ac-hj-np-z]{58}")
HEX = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")


class Demo(NamedTuple):
    """A run of the demonstration and what was seen of it from outside."""

    ran: Ran
    seen: Watch


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    with watching() as seen:
        ran = apiary(tmp_path_factory.mktemp("demo"), "run", str(DEMO))
    yield Demo(ran, seen)
    assert left_in_docker(ran.sweep) == {"containers": [], "volumes": [], "networks": []}


def test_it_ends_well(demo: Demo) -> None:
    assert demo.ran.errors == ""
    assert demo.ran.code == 0
    assert (demo.ran.events[-1]["event"], demo.ran.events[-1]["state"]) == ("end", "settled")


def test_thirty_six_attempts_are_settled_and_fifteen_of_them_are_passes(demo: Demo) -> None:
    results = demo.ran.results
    assert len(results) == 36
    assert Counter(result["verdict"] for result in results) == {"pass": 15, "fail": 21}
    cells = Counter((result["task"], result["condition"]) for result in results)
    assert set(cells.values()) == {3}
    assert {task for task, _ in cells} == {f"buzz-native/{task}" for task in TASKS}


def test_the_solver_passes_everything_with_every_dimension(demo: Demo) -> None:
    solver = [result for result in demo.ran.results if result["condition"] == "scripted-solver"]
    assert len(solver) == 12
    for result in solver:
        assert (result["verdict"], result["blame"], result["cause"]) == ("pass", "none", "none")
        assert result["reward"] == 1.0
        assert set(result["dimensions"].values()) == {1.0}


def test_the_sloppy_one_loses_what_it_was_sloppy_about_and_nothing_else(demo: Demo) -> None:
    sloppy = [result for result in demo.ran.results if result["condition"] == "scripted-sloppy"]
    assert len(sloppy) == 12
    for result in sloppy:
        lost = {name for name, value in result["dimensions"].items() if value < 1.0}
        assert lost == SLOPPY_LOSES.get(result["task"], set()), result["task"]
        assert result["verdict"] == ("pass" if result["task"] == NAMED_PATH else "fail")
        assert result["reward"] == (0.0 if lost else 1.0)


def test_the_refuser_is_wrong_and_that_is_the_models_doing(demo: Demo) -> None:
    refuser = [result for result in demo.ran.results if result["condition"] == "scripted-refuser"]
    assert len(refuser) == 12
    for result in refuser:
        assert (result["verdict"], result["blame"], result["cause"]) == ("fail", "model", "wrong")


def test_nothing_is_invalid_and_coverage_is_whole(demo: Demo) -> None:
    for condition in demo.ran.summary["conditions"]:
        assert condition["rates"]["coverage"] == 1.0
        assert condition["rates"]["invalid_tries"] == 0
        assert condition["headline"]
    assert len(demo.ran.tries()) == 36


def test_every_try_left_its_evidence_and_the_times_of_its_phases(demo: Demo) -> None:
    for folder in demo.ran.tries():
        record = json.loads((folder / "try.json").read_bytes())
        assert list(record["phase_seconds"]) == sorted(PHASES)
        assert {"evidence.json", "relay-events.jsonl", "reward.json", "usage.jsonl"} <= set(
            record["files"]
        )
        evidence = json.loads((folder / "evidence.json").read_bytes())
        assert evidence["trial"]["run_id"] == demo.ran.sweep
        assert record["digests"]["image"].startswith("sha256:")
        assert record["usage"]["calls"] > 0


def test_the_lock_names_what_was_run(demo: Demo) -> None:
    sweep = demo.ran.home / ".apiary" / "sweeps" / demo.ran.sweep
    lock = json.loads((sweep / "lock-1.json").read_bytes())
    assert lock["base_image"]["digest"].startswith("sha256:")
    assert len(lock["tasks"]) == 4
    assert len(lock["conditions"]) == 3
    assert (sweep / "report" / "report.html").is_file()


def test_no_key_of_an_agent_is_stored_or_shown_anywhere(demo: Demo) -> None:
    started = demo.seen.of(demo.ran.sweep)
    agents = [each for each in started if each.secrets]
    assert len(agents) == 36
    secrets = {secret for each in agents for secret in each.secrets}
    assert len(secrets) == 72
    spellings = {form.encode() for secret in secrets for form in (secret, secret.upper())}
    spellings |= {Keypair.from_secret(s).nsec.encode() for s in secrets if len(s) == 64}
    places = dict(_stored(demo.ran.home))
    places["container labels and commands"] = "\n".join(each.shown for each in started).encode()
    places["process list"] = b"\n".join(demo.seen.command_lines)
    assert len(places) > 36 * 5
    for place, data in places.items():
        assert not [1 for spelling in spellings if spelling in data], f"{place} holds a secret"
        assert not NSEC.search(data), f"{place} holds a secret key"


def test_no_stored_number_is_the_secret_of_a_stored_identity(demo: Demo) -> None:
    """No container ever sees the keys of user, owner and directory: they are tried out here."""
    numbers = {found for _, data in _stored(demo.ran.home) for found in HEX.findall(data)}
    public = {number.decode() for number in numbers}
    assert len(public) > 36
    for number in public:
        try:
            pubkey = Keypair.from_secret(number).pubkey
        except KeyFormatError:
            continue
        assert pubkey not in public, "a secret key is stored beside its public key"


def test_a_person_can_read_one_attempt(demo: Demo) -> None:
    attempt = demo.ran.results[0]["attempt"]
    shown = apiary(demo.ran.home, "show", attempt[:12])
    assert shown.code == 0
    document = shown.events[0]
    assert document["attempt"] == attempt
    assert document["evidence"]["messages"]


def test_the_same_seed_gives_the_same_verdicts_and_another_sweep_another_marker(
    demo: Demo, tmp_path: Path
) -> None:
    again = apiary(tmp_path, "run", str(DEMO), "-k", "1", "-x", "memory-*", "-x", "user-*")
    assert again.code == 0
    known = {
        (result["task"], result["condition"], result["index"]): result
        for result in demo.ran.results
    }
    assert len(again.results) == 6
    for result in again.results:
        before = known[result["task"], result["condition"], result["index"]]
        for field in ("verdict", "blame", "cause", "reward", "dimensions"):
            assert result[field] == before[field]
    assert not _markers(demo.ran) & _markers(again)
    assert left_in_docker(again.sweep) == {"containers": [], "volumes": [], "networks": []}


def _stored(home: Path) -> Iterator[tuple[str, bytes]]:
    """Every stored byte: store, workspace and logs."""
    for path in sorted(home.rglob("*")):
        if path.is_file() and not path.is_symlink():
            yield str(path.relative_to(home)), path.read_bytes()


def _markers(ran: Ran) -> set[str]:
    """The markers of the named path that agents of a sweep have read; one a sweep and node."""
    found: set[str] = set()
    for folder in ran.tries():
        evidence = (folder / "evidence.json").read_text("utf-8")
        found |= set(re.findall(r"chc-[0-9a-f]{24}", evidence))
    assert len(found) == 1
    return found
