"""One store against bare means, as a process of its own: it alone has the store's credentials.

Takes a ``Task`` as JSON on the command line, and writes a figure a line.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

import boto3

from scheduler.bench.turns import Turns, figures, micros
from workers.contract.base import Strict
from workers.storage import open_store

OBJECT_BYTES = 4096
"""About the middle one of a Buzz-native try's files."""


class Task(Strict):
    """How much is measured."""

    store: str = ""
    """URL."""
    objects: int
    """In each round, of each kind."""
    rounds: int
    seed: int


class Bare(Protocol):
    """The least that does the same."""

    name: str

    def put(self, key: str, data: bytes) -> None:
        """Writes an object."""
        ...

    def get(self, key: str) -> bytes:
        """Reads it."""
        ...

    def keys(self, prefix: str) -> int:
        """Lists how many there are."""
        ...


class BareFiles:
    """Files that are written, flushed to disk and renamed into their place."""

    name = "bare files, flushed"

    def __init__(self, root: Path) -> None:
        self._root = root

    def put(self, key: str, data: bytes) -> None:
        """See ``Bare``."""
        path = self._root / key
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_suffix(".new")
        with beside.open("wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        beside.rename(path)

    def get(self, key: str) -> bytes:
        """See ``Bare``."""
        return (self._root / key).read_bytes()

    def keys(self, prefix: str) -> int:
        """See ``Bare``."""
        return sum(len(names) for _, _, names in os.walk(self._root / prefix))


class BareS3:
    """boto3's client, as it comes."""

    name = "bare boto3"

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        options = {name: values[0] for name, values in parse_qs(parts.query).items()}
        self._bucket, self._under = parts.netloc, parts.path.strip("/") + "/"
        self._client: Any = boto3.client(
            "s3", endpoint_url=options["endpoint_url"], region_name=options["region"]
        )

    def put(self, key: str, data: bytes) -> None:
        """See ``Bare``."""
        self._client.put_object(Bucket=self._bucket, Key=self._under + key, Body=data)

    def get(self, key: str) -> bytes:
        """See ``Bare``."""
        answer = self._client.get_object(Bucket=self._bucket, Key=self._under + key)
        return bytes(answer["Body"].read())

    def keys(self, prefix: str) -> int:
        """See ``Bare``."""
        pages = self._client.get_paginator("list_objects_v2").paginate(
            Bucket=self._bucket, Prefix=self._under + prefix
        )
        return sum(len(page.get("Contents", ())) for page in pages)


def measure(task: Task) -> list[Turns]:
    """Writes, creates, reads and lists, ours and bare in turn."""
    store, parts = open_store(task.store), urlsplit(task.store)
    kind = "files" if parts.scheme == "file" else "S3"
    bare: Bare = BareFiles(Path(parts.path)) if kind == "files" else BareS3(task.store)
    draws = random.Random(task.seed)
    data = draws.randbytes(OBJECT_BYTES)
    names = ("put", "create", "get", "listing")
    turns = {name: Turns(f"{name}, {kind}", "µs an object", _against(bare, name)) for name in names}
    # Imports, connections and folders of the first are no object's cost.
    store.put("warm/a", data)
    bare.put("warm/b", data)
    for _ in range(task.rounds):
        # As attempts have it: the folders of 256 first bytes, and one for each below.
        under = [
            f"{draws.randrange(256):02x}/{UUID(int=draws.getrandbits(128)).hex}"
            for _ in range(task.objects)
        ]

        def each(act: Callable[[str], object], way: str, under: list[str] = under) -> float:
            return micros(lambda: [act(f"{way}/{one}/o") for one in under], len(under))

        plain = each(lambda key: bare.put(key, data), "bare")
        turns["put"].add(each(lambda key: store.put(key, data), "put"), plain)
        turns["create"].add(each(lambda key: store.create(key, data), "create"), plain)
        turns["get"].add(each(store.get, "put"), each(bare.get, "bare"))
        found = len(list(store.keys("put/")))
        turns["listing"].add(
            micros(lambda: list(store.keys("put/")), found),
            micros(lambda: bare.keys("bare/"), found),
        )
    return list(turns.values())


def _against(bare: Bare, name: str) -> str:
    return f"{bare.name}, unconditional" if name == "create" else bare.name


if __name__ == "__main__":
    for figure in figures(measure(Task.from_json(sys.argv[1], "task"))):
        sys.stdout.write(figure.to_json() + "\n")
