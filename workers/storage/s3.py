"""A store in an S3 bucket: ``s3://bucket/prefix``. The only door to boto3.

``create`` is a conditional write (``If-None-Match: *``), which S3 and the stores that speak
its protocol decide atomically. Its answer can be lost on the way, and the repeated request
then finds the object of the first: each ``create`` therefore leaves a mark of its own in the
object's metadata, by which it knows its own work again. Only a ``create`` that ended in
``StoreError`` is undecided: the object may be there or not.

Every request is bounded in time and in repeats (``S3Bounds``). Credentials are found by
boto3 in its usual places and are never part of the URL.
"""

from __future__ import annotations

import functools
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, BinaryIO

import boto3
import botocore.loaders
import botocore.session
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    HTTPClientError,
    IncompleteReadError,
    NoCredentialsError,
)

from workers.storage.interface import ClockSkewError, MissingKeyError, StoreError
from workers.storage.keys import check_folder, check_key, check_prefix, is_key
from workers.storage.source import open_regular

_MARK = "apiary-writer"
_MISSING = frozenset({"404", "NoSuchKey", "NotFound"})
_TAKEN = frozenset({"412", "PreconditionFailed"})
_CONFLICT = frozenset({"409", "ConditionalRequestConflict"})
_SKEWED = frozenset({"RequestTimeTooSkewed", "RequestExpired"})


@dataclass(frozen=True)
class S3Bounds:
    """How long one request may take, and how often it is made; seconds."""

    connect_s: float = 5.0
    read_s: float = 20.0
    """Without a byte from the server."""
    requests: int = 4
    """In all, for one call; boto3 waits up to 1, 2, 4 s between them."""
    conflict_wait_s: float = 0.2
    """Before a conditional write that met another in flight is repeated; grows with each."""


class S3Store:
    """Objects in a bucket, under an optional prefix. May be shared by threads."""

    def __init__(
        self,
        url: str,
        bucket: str,
        prefix: str,
        *,
        endpoint_url: str | None = None,
        region: str | None = None,
        path_style: bool = False,
        bounds: S3Bounds | None = None,
    ) -> None:
        self.url = url
        self._bucket = bucket
        self._under = f"{prefix}/" if prefix else ""
        self._bounds = bounds or S3Bounds()
        with _faults("open", url):
            self._client = _session().client(
                "s3",
                endpoint_url=endpoint_url,
                region_name=region,
                config=_config(self._bounds, path_style=path_style),
            )

    def __repr__(self) -> str:
        return f"S3Store({self.url!r})"

    def create(self, key: str, data: bytes) -> bool:
        """Writes an object only if there is none: atomic over all writers.

        Raises:
            StoreError: undecided; the object may have been written.
        """
        place = self._place(key)
        mark = secrets.token_hex(16)
        with _faults("create", key):
            for turn in range(1, self._bounds.requests + 1):
                try:
                    self._client.put_object(
                        Bucket=self._bucket,
                        Key=place,
                        Body=data,
                        IfNoneMatch="*",
                        Metadata={_MARK: mark},
                    )
                except ClientError as error:
                    if _code(error) in _TAKEN:
                        return self._is_ours(place, mark)
                    if _code(error) not in _CONFLICT or turn == self._bounds.requests:
                        raise
                    # S3: another conditional write of this key was in flight; ask again.
                    time.sleep(self._bounds.conflict_wait_s * turn)
                else:
                    return True
        raise StoreError(f"create {key!r}: no request was allowed")

    def put(self, key: str, data: bytes) -> None:
        """Writes an object, whole or not at all; the last writer wins."""
        self._put("put", key, data)

    def put_file(self, key: str, path: Path) -> None:
        """Like ``put``, from a regular file, without holding it in memory (S3: up to 5 GB)."""
        check_key(key)
        with open_regular(key, path) as source:
            self._put("put_file", key, source)

    def get(self, key: str) -> bytes:
        """An object's bytes.

        Raises:
            MissingKeyError: there is none.
        """
        place = self._place(key)
        with _faults("get", key):
            return self._read(place)

    def exists(self, key: str) -> bool:
        """Whether there is an object at the key."""
        place = self._place(key)
        try:
            with _faults("exists", key):
                self._client.head_object(Bucket=self._bucket, Key=place)
        except MissingKeyError:
            return False
        return True

    def keys(self, prefix: str) -> Iterator[str]:
        """All keys that begin with the prefix, sorted by the server, a page at a time."""
        check_prefix(prefix)
        return self._listed(prefix)

    def children(self, folder: str) -> list[str]:
        """The names of the folders right below a folder, sorted."""
        check_folder(folder)
        above = self._under + folder
        pages = self._client.get_paginator("list_objects_v2").paginate(
            Bucket=self._bucket, Prefix=above, Delimiter="/"
        )
        with _faults("children", folder):
            names = [
                item["Prefix"].removeprefix(above).rstrip("/")
                for page in pages
                for item in page.get("CommonPrefixes", ())
            ]
        return sorted(name for name in names if is_key(name))

    def delete(self, key: str) -> None:
        """Removes an object; none there is no error."""
        place = self._place(key)
        with _faults("delete", key):
            self._client.delete_object(Bucket=self._bucket, Key=place)

    def clock(self) -> float | None:
        """The ``Date`` of an answer of the server's, whatever else it says; None without one."""
        with _faults("clock", self.url):
            try:
                answer: Any = self._client.head_object(
                    Bucket=self._bucket, Key=self._under + "clock"
                )
            except ClientError as error:
                answer = error.response
        return _date_of(answer["ResponseMetadata"]["HTTPHeaders"])

    def _place(self, key: str) -> str:
        check_key(key)
        return self._under + key

    def _put(self, operation: str, key: str, body: bytes | BinaryIO) -> None:
        place = self._place(key)
        with _faults(operation, key):
            self._client.put_object(Bucket=self._bucket, Key=place, Body=body)

    def _read(self, place: str) -> bytes:
        for turn in range(1, self._bounds.requests + 1):
            answer = self._client.get_object(Bucket=self._bucket, Key=place)
            try:
                with closing(answer["Body"]) as body:
                    return bytes(body.read())
            except (HTTPClientError, IncompleteReadError):
                # boto3 repeats a request, not a body that broke off.
                if turn == self._bounds.requests:
                    raise
        raise StoreError(f"get {place!r}: no request was allowed")

    def _listed(self, prefix: str) -> Iterator[str]:
        pages = self._client.get_paginator("list_objects_v2").paginate(
            Bucket=self._bucket, Prefix=self._under + prefix
        )
        pending = iter(pages)
        while True:
            with _faults("keys", prefix):
                page = next(pending, None)
            if page is None:
                return
            for item in page.get("Contents", ()):
                key = item["Key"].removeprefix(self._under)
                if is_key(key):
                    yield key

    def _is_ours(self, place: str, mark: str) -> bool:
        """Whether the object that is there was written by this very call.

        It is where boto3 repeated a request whose answer had been lost.
        """
        try:
            head = self._client.head_object(Bucket=self._bucket, Key=place)
        except ClientError as error:
            if _code(error) in _MISSING:
                return False  # It was there, and was deleted since.
            raise
        return bool(head["Metadata"].get(_MARK) == mark)


@functools.cache
def _descriptions() -> botocore.loaders.Loader:
    """boto3's descriptions of S3: reading them takes a quarter of a second, once a process."""
    return botocore.loaders.create_loader()


def _session() -> boto3.session.Session:
    """A session of its own, with the credentials that are found now."""
    core = botocore.session.Session()
    core.register_component("data_loader", _descriptions())
    return boto3.session.Session(botocore_session=core)


def _config(bounds: S3Bounds, *, path_style: bool) -> Config:
    return Config(
        connect_timeout=bounds.connect_s,
        read_timeout=bounds.read_s,
        retries={"total_max_attempts": bounds.requests, "mode": "standard"},
        max_pool_connections=32,
        s3={"addressing_style": "path" if path_style else "auto"},
        # Trailing checksums, boto3's default, are unknown to many stores that speak S3.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        user_agent_extra="apiary",
    )


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def _date_of(headers: Mapping[str, str]) -> float | None:
    """The ``Date`` of an HTTP answer, seconds since 1970; headers' names are in lower case."""
    try:
        return parsedate_to_datetime(headers.get("date", "")).timestamp()
    except ValueError:
        return None


@contextmanager
def _faults(operation: str, key: str) -> Iterator[None]:
    """Turns what boto3 raises into the errors of a store."""
    try:
        yield
    except ClientError as error:
        if _code(error) in _MISSING and operation not in ("create", "put", "put_file"):
            raise MissingKeyError(f"{operation} {key!r}: there is no such object") from error
        detail: Any = error.response.get("Error", {}).get("Message") or "no message"
        fault = ClockSkewError if _code(error) in _SKEWED else StoreError
        raise fault(
            f"{operation} {key!r}: the server refused with {_code(error)}: {str(detail)[:200]}"
        ) from error
    except NoCredentialsError as error:
        raise StoreError(
            f"{operation} {key!r}: no credentials were found: set AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
        ) from error
    except (BotoCoreError, ValueError) as error:
        # ValueError: botocore's word for an endpoint URL that is none.
        raise StoreError(f"{operation} {key!r}: {str(error)[:300]}") from error
