"""A sweep whose store is a bucket, reached over a real connection."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import boto3
import pytest
from moto.server import ThreadedMotoServer

from tests.flow.sweeps import DEMO, apiary, left_in_docker

pytestmark = [pytest.mark.docker, pytest.mark.ray]

BUCKET = "results"
VARIABLES = {
    "AWS_ACCESS_KEY_ID": "an-access-key",
    "AWS_SECRET_ACCESS_KEY": "canary-of-the-secret-key",
    "AWS_EC2_METADATA_DISABLED": "true",
}


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Where a server of moto's answers; the bucket is there."""
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    url = f"http://{host}:{port}"
    boto3.client("s3", endpoint_url=url, region_name="us-east-1").create_bucket(Bucket=BUCKET)
    yield url
    server.stop()


def test_it_runs_and_is_reported_from_the_bucket(endpoint: str, tmp_path: Path) -> None:
    options = {"endpoint_url": endpoint, "path_style": "true", "region": "us-east-1"}
    store = f"s3://{BUCKET}/buzz?{urlencode(options)}"
    ran = apiary(
        tmp_path, "run", str(DEMO), "-k", "1", "-i", "user-mention", "--store", store,
        variables=VARIABLES,
    )  # fmt: skip
    assert ran.errors == ""
    assert ran.code == 0
    assert ran.events[-1]["report"].startswith(f"s3://{BUCKET}/buzz/sweeps/{ran.sweep}/")
    assert left_in_docker(ran.sweep) == {"containers": [], "volumes": [], "networks": []}
    assert not (tmp_path / ".apiary" / "sweeps").exists()

    again = apiary(tmp_path, "report", "latest", "--store", store, variables=VARIABLES)
    assert again.code == 0
    verdicts = {cell["condition"]: cell["rates"]["passed"] for cell in again.events[0]["cells"]}
    assert verdicts == {"scripted-solver": 1, "scripted-sloppy": 0, "scripted-refuser": 0}

    client = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1")
    found = client.list_objects_v2(Bucket=BUCKET)["Contents"]
    stored = {row["Key"]: _bytes(client, row["Key"]) for row in found}
    results = [json.loads(data) for key, data in stored.items() if key.endswith("/result.json")]
    assert len(results) == 3
    secret = VARIABLES["AWS_SECRET_ACCESS_KEY"].encode()
    places = {**stored, **{str(p): p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}}
    assert not [place for place, data in places.items() if secret in data]


def _bytes(client: object, key: str) -> bytes:
    data: bytes = client.get_object(Bucket=BUCKET, Key=key)["Body"].read()  # type: ignore[attr-defined]
    return data
