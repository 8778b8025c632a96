"""Agent ``buzz`` in a sweep: its programs are checked before anything starts, and locked."""

from __future__ import annotations

import json
import os
import platform
import struct
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from scheduler.cli import run_cli
from scheduler.cli.exits import Exit
from scheduler.doctor import buzz_finding
from scheduler.growth import grow
from scheduler.lock import LockError, lock_of, write_lock
from scheduler.lock_format import Lock
from scheduler.lock_plan import plan_from_lock
from scheduler.manifest import ManifestError, Overrides, load_sweep
from scheduler.plan import Plan
from tests.scheduler.manifest.builders import fault_lines, plan_of, write, write_world
from workers.contract.base import sha256_hex
from workers.contract.buzz import (
    PROGRAMS,
    BuzzStack,
    buzz_dialect,
    program_key,
    program_problem,
)
from workers.contract.endpoint import Endpoint
from workers.storage import open_store

NOW = datetime(2026, 9, 1, tzinfo=UTC)


def elf(machine: int) -> bytes:
    """The head of a program for a machine, by its ELF number."""
    return b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HH", 2, machine) + bytes(44)


def programs(folder: Path, data: bytes = b"#!/bin/sh\n") -> Path:
    """A folder with the three programs."""
    folder.mkdir(exist_ok=True)
    for name in PROGRAMS:
        (folder / name).write_bytes(data + name.encode())
        (folder / name).chmod(0o755)
    return folder


@pytest.fixture
def sweep(tmp_path: Path) -> Path:
    """A sweep file with the stack, and its programs."""
    path = write_world(tmp_path)
    programs(tmp_path / "bin")
    return write(path, f"{path.read_text()}agent: buzz\nagent_bin_dir: ../../bin\n")


def refusal(sweep: Path, root: Path) -> list[str]:
    with pytest.raises(ManifestError) as caught:
        plan_of(sweep)
    return fault_lines(caught.value, root)


def test_the_digests_stand_in_plan_and_lock(sweep: Path, tmp_path: Path) -> None:
    plan = plan_of(sweep)
    assert plan.spec.buzz is not None
    digest = plan.spec.buzz.digests["buzz-agent"]
    assert digest == sha256_hex((tmp_path / "bin" / "buzz-agent").read_bytes())
    lock = lock_of(plan)
    assert lock.buzz == plan.spec.buzz
    assert lock.buzz.effort_default == "medium"
    assert Lock.from_json(lock.to_json(), "lock") == lock
    assert plan_from_lock(lock).spec.buzz == lock.buzz


def test_the_lock_is_written_after_the_programs(sweep: Path, tmp_path: Path) -> None:
    plan = plan_of(sweep)
    store = open_store(f"file://{tmp_path}/store")
    write_lock(store, plan)
    assert plan.spec.buzz is not None
    for name, digest in plan.spec.buzz.digests.items():
        assert store.get(program_key(digest)) == (tmp_path / "bin" / name).read_bytes()


def test_a_program_that_changes_meanwhile_is_refused(sweep: Path, tmp_path: Path) -> None:
    plan = plan_of(sweep)
    (tmp_path / "bin" / "buzz-acp").write_bytes(b"#!/bin/sh\nother")
    store = open_store(f"file://{tmp_path}/store")
    with pytest.raises(LockError, match="buzz-acp: changed since it was planned; start again"):
        write_lock(store, plan)
    assert not store.exists(f"sweeps/{plan.sweep}/lock-1.json")


def grown(sweep: Path, first: Lock) -> Plan:
    loaded = load_sweep(sweep, Overrides(attempts=3))
    return grow(loaded, [first], now=NOW, environment={}, base_image=None).plan


def test_a_sweep_goes_on_with_its_programs_and_with_no_others(sweep: Path, tmp_path: Path) -> None:
    first = lock_of(plan_of(sweep))
    assert grown(sweep, first).spec.buzz == first.buzz
    (tmp_path / "bin" / "buzz-agent").write_bytes(b"#!/bin/sh\nnew")
    with pytest.raises(ManifestError) as caught:
        grown(sweep, first)
    (line,) = fault_lines(caught.value, tmp_path)
    assert "agent_bin_dir: buzz-agent was frozen at the sweep's start as" in line
    assert "another program is another agent, so another sweep" in line
    # Where no folder is named, the store has them.
    write(sweep, sweep.read_text().replace("agent: buzz\nagent_bin_dir: ../../bin\n", ""))
    assert grown(sweep, first).spec.buzz == first.buzz


def _gone(path: Path) -> None:
    path.unlink()


def _still(path: Path) -> None:
    path.chmod(0o644)


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _foreign(path: Path) -> None:
    path.write_bytes(elf(243))


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (_gone, "there is no such file"),
        (_still, "not executable; say chmod +x to it"),
        (_pipe, "not a regular file"),
        (_folder, "not a regular file"),
        (_foreign, f"it is built for riscv64, and this machine is {platform.machine()}"),
    ],
)
def test_a_program_that_cannot_run_is_refused(
    sweep: Path, tmp_path: Path, spoil: Callable[[Path], None], told: str
) -> None:
    spoil(tmp_path / "bin" / "buzz-acp")
    (line,) = refusal(sweep, tmp_path)
    assert line.startswith("manifests/sweeps/small.yaml:9: agent_bin_dir: ")
    assert line.endswith(f"bin/buzz-acp: {told}")


def test_every_missing_program_is_named(sweep: Path, tmp_path: Path) -> None:
    for name in PROGRAMS:
        (tmp_path / "bin" / name).unlink()
    assert len(refusal(sweep, tmp_path)) == len(PROGRAMS)


def test_the_folder_belongs_to_agent_buzz(sweep: Path, tmp_path: Path) -> None:
    text = sweep.read_text()
    write(sweep, text.replace("agent_bin_dir: ../../bin\n", ""))
    (line,) = refusal(sweep, tmp_path)
    assert "agent: agent buzz needs the folder with Linux builds of buzz-acp" in line
    write(sweep, text.replace("agent: buzz\n", ""))
    (line,) = refusal(sweep, tmp_path)
    assert "agent_bin_dir: agent reference has no programs of its own" in line


@pytest.mark.parametrize(
    ("head", "machine", "problem"),
    [
        (elf(62), "x86_64", ""),
        (elf(183), "aarch64", ""),
        (elf(183), "arm64", ""),
        (elf(183), "x86_64", "it is built for aarch64, and this machine is x86_64"),
        (elf(9999), "x86_64", "it is built for ELF machine 9999, and this machine is x86_64"),
        (b"#!/bin/sh", "x86_64", ""),
        (b"\xcf\xfa\xed\xfe" + bytes(60), "aarch64", "it is a program for macOS; a Linux build"),
        (elf(62)[:7] + b"\x09" + elf(62)[8:], "x86_64", "it is a program for another system"),
        (elf(62)[:7] + b"\x03" + elf(62)[8:], "x86_64", ""),
        (b"MZ" + bytes(60), "x86_64", "it is a program for Windows; a Linux build"),
        (b"", "x86_64", "it is no program; a Linux build for x86_64 is needed"),
        (b"\x7fELF", "x86_64", "it is no program"),
    ],
)
def test_what_a_program_is_made_for(head: bytes, machine: str, problem: str) -> None:
    found = program_problem(head, machine)
    assert found.startswith(problem)
    assert bool(found) is bool(problem)


def test_a_stack_is_three_programs() -> None:
    with pytest.raises(ValueError, match="digests must be of buzz-acp, buzz-agent, buzz-dev-mcp"):
        BuzzStack(digests={"buzz-acp": "0" * 64})


def test_the_lock_has_the_dialect_of_the_production_stack(sweep: Path, tmp_path: Path) -> None:
    text = (
        "scripted-one: {provider: openai, api_key_env: K}\nscripted-two: {provider: openai-compat"
    )
    text += ", api_key_env: K, env: {OPENAI_COMPAT_BASE_URL: 'http://models.example.org/v1'}}\n"
    write(tmp_path / "e.yaml", text)
    sweep.write_text(
        sweep.read_text().replace("../../deploy/endpoints/scripted.json", "../../e.yaml")
    )
    environment = {"K": "a-long-enough-key"}
    lock = lock_of(plan_of(sweep, environment))
    assert {name: each.dialect for name, each in lock.endpoints.items()} == {
        "scripted-one": "responses",
        "scripted-two": "chat",
    }
    # What ``env`` says of the address is kept, though the rest of it is not.
    resumed = plan_from_lock(lock, environment=environment).spec.endpoints["scripted-two"]
    assert resumed.upstream == "http://models.example.org/v1"


def test_a_sweep_goes_on_in_the_dialect_that_it_began_in(sweep: Path, tmp_path: Path) -> None:
    text = "scripted-one: {provider: openai, api_key_env: K, env: {OPENAI_COMPAT_API: chat}}\n"
    write(tmp_path / "e.yaml", f"{text}scripted-two: {{provider: scripted}}\n")
    sweep.write_text(
        sweep.read_text().replace("../../deploy/endpoints/scripted.json", "../../e.yaml")
    )
    lock = lock_of(plan_of(sweep, {"K": "a-long-enough-key"}))
    # By its host alone it would be ``responses``.
    resumed = plan_from_lock(lock)
    assert buzz_dialect(resumed.spec.endpoints["scripted-one"]) == "chat"
    assert resumed.warnings == ()
    given = {
        "scripted-one": Endpoint(provider="openai", api_key_env="K"),
        "scripted-two": Endpoint(provider="scripted"),
    }
    (warning,) = plan_from_lock(lock, endpoints=given).warnings
    assert warning == (
        "endpoint scripted-one: the sweep's agents spoke chat to it, and now it is responses"
    )


def test_what_the_agent_would_not_start_with_is_told_before(sweep: Path, tmp_path: Path) -> None:
    pinned = "      max_output_tokens: 4096\n      context_window_tokens: 200000\n"
    one = tmp_path / "manifests" / "conditions" / "one.yaml"
    text = one.read_text()
    assert plan_of(sweep).warnings == ()
    write(one, text.replace(pinned, "      context_window_tokens: 65536\n"))
    (warning,) = plan_of(sweep).warnings
    assert warning.endswith(
        "one.yaml: solo: buzz-agent needs an output below the window, and has 65536 (its own) of "
        "65536 (the condition's): it will not start"
    )
    write(one, text.replace(pinned, "      thinking_effort: minimal\n"))
    assert plan_of(sweep).warnings == ()
    live = "scripted-one: {provider: anthropic, api_key_env: K, env: "
    live += "{BUZZ_AGENT_MAX_OUTPUT_TOKENS: '300000'}}\nscripted-two: {provider: scripted}\n"
    write(tmp_path / "e.yaml", live)
    whole = sweep.read_text().replace("../../deploy/endpoints/scripted.json", "../../e.yaml")
    write(sweep, whole)
    words = plan_of(sweep, {"K": "a-long-enough-key"}).warnings
    assert ["300000 (the endpoint's) of 200000 (its own)" in each for each in words] == [
        True,
        False,
    ]
    assert "refuses thinking_effort minimal for provider anthropic" in words[1]
    write(sweep, whole.replace("agent: buzz\nagent_bin_dir: ../../bin\n", ""))
    assert plan_of(sweep, {"K": "a-long-enough-key"}).warnings == ()


def test_a_recorded_address_in_env_may_hold_no_secret(sweep: Path, tmp_path: Path) -> None:
    text = "scripted-one: {provider: openai, api_key_env: K, env: {OPENAI_COMPAT_BASE_URL: "
    text += "'https://me:word@models.example.org/v1'}}\nscripted-two: {provider: scripted}\n"
    write(tmp_path / "e.yaml", text)
    sweep.write_text(
        sweep.read_text().replace("../../deploy/endpoints/scripted.json", "../../e.yaml")
    )
    (line,) = refusal(sweep, tmp_path)
    assert "e.yaml:1: scripted-one.env.OPENAI_COMPAT_BASE_URL: a base URL may hold no user" in line


def test_databricks_needs_an_address_and_its_first_form_agent_buzz(
    sweep: Path, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match="needs base_url, or DATABRICKS_HOST in env"):
        Endpoint(provider="databricks_v2", api_key_env="K")
    text = "scripted-one: {provider: databricks, api_key_env: K, base_url: 'https://w.example.org'}"
    write(tmp_path / "e.yaml", f"{text}\nscripted-two: {{provider: scripted}}\n")
    sweep.write_text(
        sweep.read_text().replace("../../deploy/endpoints/scripted.json", "../../e.yaml")
    )
    environment = {"K": "a-long-enough-key"}
    assert plan_of(sweep, environment).spec.agent == "buzz"
    whole = sweep.read_text()
    write(sweep, whole.replace("agent: buzz\nagent_bin_dir: ../../bin\n", ""))
    with pytest.raises(ManifestError, match="only agent buzz speaks to provider databricks"):
        plan_of(sweep, environment)


def test_the_command_line_names_the_folder(
    sweep: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(sweep, sweep.read_text().replace("agent: buzz\nagent_bin_dir: ../../bin\n", ""))
    words = ["plan", str(sweep), "--json", "--agent", "buzz", "--agent-bin-dir"]
    assert run_cli([*words, str(tmp_path / "bin")]) == Exit.DONE
    told = json.loads(capsys.readouterr().out)
    assert (told["agent"], sorted(told["programs"])) == ("buzz", sorted(PROGRAMS))
    assert run_cli([*words, str(tmp_path / "nowhere")]) == Exit.USAGE
    assert "--agent-bin-dir" in capsys.readouterr().err


def test_doctor_looks_at_the_programs(tmp_path: Path) -> None:
    folder = programs(tmp_path / "bin")
    assert buzz_finding(folder).state == "ok"
    assert "anthropic, openai, openrouter, databricks, databricks_v2" in buzz_finding(None).found
    (folder / "buzz-acp").unlink()
    finding = buzz_finding(folder)
    assert (finding.state, "put Linux builds of" in finding.todo) == ("fail", True)
