"""Everything that follows a sweep, in a bucket: what a driver shows, wishes, trials, journals."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import boto3
import pytest
from moto.server import ThreadedMotoServer

from scheduler.journal_reading import JournalReader
from scheduler.watch.sweep_reader import SweepReader
from scheduler.watch.trial_reader import Subject, TrialReader
from tests.scheduler.builders import SWEEP
from tests.scheduler.test_live import ATTEMPT, SETTLED, live_view, until, view
from tests.scheduler.watch.builders import trial_document
from workers.journal import Journal
from workers.showing import Showing
from workers.storage import Store, open_store

pytestmark = pytest.mark.long

BUCKET = "results"


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """A store in a bucket of moto's."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "an-access-key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "canary-of-the-secret-key")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    url = f"http://{host}:{port}"
    boto3.client("s3", endpoint_url=url, region_name="us-east-1").create_bucket(Bucket=BUCKET)
    yield open_store(f"s3://{BUCKET}/x?endpoint_url={url}&path_style=true&region=us-east-1")
    server.stop()


def test_from_the_wish_to_the_trial_and_the_journal(bucket: Store) -> None:
    subject = Subject(SWEEP, ATTEMPT, "buzz-native/greet", "condition-0", 0)
    document = trial_document(sweep=SWEEP, attempt=ATTEMPT).to_json().encode()

    async def go() -> None:
        async with (
            live_view(bucket) as live,
            Showing(bucket, SWEEP, pause_s=0.05) as showing,
            Journal(bucket, SWEEP, "n1", flush_s=0.1) as journal,
        ):
            live.moved(view())
            journal.tell("phase", attempt=ATTEMPT, phase="drive")
            with (
                TrialReader(bucket, subject) as reader,
                showing.of(ATTEMPT, lambda _: lambda: document),
            ):
                await asyncio.to_thread(reader.look)
                await until(lambda: live.watched == (ATTEMPT,))
                showing.want(live.watched)
                await until(lambda: ATTEMPT in showing.shown)
                moment = await asyncio.to_thread(reader.look)
                assert moment.standing == "shown"
            live.end = SETTLED

    asyncio.run(go())
    assert SweepReader(bucket, SWEEP).look().standing == "ended"
    (line,) = JournalReader(bucket, SWEEP).lines()
    assert (line.event, line.attempt, line.phase) == ("phase", ATTEMPT, "drive")
    left = [key.removeprefix(f"sweeps/{SWEEP}/") for key in bucket.keys(f"sweeps/{SWEEP}/")]
    assert [key.partition("/")[0] for key in left] == ["events", "live.json"]
