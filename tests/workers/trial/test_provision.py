"""Identities of a trial, and a directory that may be seeded any number of times."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from scheduler.manifest.task import load_task
from tests.manifests.task_verifiers import MANIFESTS, TASKS
from tests.workers.trial.stage import make_condition
from workers.contract.spec import CellSpec, Epoch, Lease, Limits, SweepSpec, cell_id
from workers.nostr.keys import Keypair, derive_identity
from workers.relay import EmbeddedRelay, RelayClient
from workers.trial.files import TrialFolder
from workers.trial.handoff import EMBEDDED_HOST, Job
from workers.trial.provision import directory_rows, make_identities
from workers.trial.secrets import Secrets


def job_of(tmp_path: Path, name: str) -> Job:
    """A trial of a shipped task, nothing of it started."""
    task = load_task(TASKS / name, MANIFESTS / "verifier_kit")
    condition = make_condition()
    cell = CellSpec(
        cell=cell_id(condition.digest, task.digest), task=task, condition=condition, prompts={}
    )
    sweep = SweepSpec(
        sweep="s",
        store="file:///nowhere",
        agent="reference",
        relay="embedded",
        network="sealed",
        base_image=None,
        seed=0,
        limits=Limits(),
        endpoints={},
    )
    lease = Lease(attempt="a" * 32, index=0, cell=cell.cell, epoch=Epoch(1, 1), term_s=60.0)
    return Job(
        sweep=sweep, cell=cell, lease=lease, folder=TrialFolder(tmp_path / "t"), secrets=Secrets()
    )


def test_sixty_identities_derived_from_the_owner(tmp_path: Path) -> None:
    job = job_of(tmp_path, "create-channel-invite-users")
    made = make_identities(job, Keypair.generate())
    rows = directory_rows(job.cell.task, made.directory)
    assert len(rows) == len({row.pubkey for row in rows}) == 60
    for row in (rows[6], rows[59]):
        assert row.pubkey == derive_identity(made.owner, row.identity_id).pubkey
        secret = made.directory[row.identity_id].keypair.secret_hex
        assert job.secrets.found_in(secret.encode())
    assert [row.role for row in rows].count("bot") == 10
    assert rows[59].name == "benchmark-bot-10"


def test_one_name_and_two_keys(tmp_path: Path) -> None:
    job = job_of(tmp_path, "ambiguous-user-mention")
    made = make_identities(job, Keypair.generate())
    first, second = directory_rows(job.cell.task, made.directory)
    assert first.name == second.name == "Taylor Morgan Lee"
    assert first.pubkey != second.pubkey
    assert (
        made.user.keypair.pubkey
        == derive_identity(made.owner, "task-user:ambiguous-user-mention").pubkey
    )
    assert make_identities(job, Keypair.generate()).owner.pubkey != made.owner.pubkey


@pytest.mark.parametrize("times", [1, 3])
def test_a_directory_is_seeded_once_however_often(tmp_path: Path, times: int) -> None:
    job = job_of(tmp_path, "create-channel-invite-users")

    async def seed() -> list[str]:
        made = make_identities(job, Keypair.generate())
        relay = EmbeddedRelay(owner_pubkey=made.owner.pubkey, host=EMBEDDED_HOST)
        try:
            await relay.serve_unix(tmp_path / "r.sock")
            for _ in range(times):
                for row in job.cell.task.fixture.entries if job.cell.task.fixture else ():
                    member = made.directory[row.key_id]
                    async with RelayClient(
                        f"http://{EMBEDDED_HOST}",
                        member.keypair,
                        member.attestation,
                        unix_socket=tmp_path / "r.sock",
                    ) as own:
                        await own.set_profile(row.name, about=row.about or None)
            return [event.pubkey for event in relay.timeline() if event.kind == 0]
        finally:
            await relay.close()

    authors = asyncio.run(seed())
    assert len(authors) == len(set(authors)) == 60
