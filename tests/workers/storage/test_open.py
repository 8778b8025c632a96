from __future__ import annotations

from pathlib import Path

import pytest

from workers.storage import StoreUrlError, open_store
from workers.storage.filesystem import FileStore
from workers.storage.s3 import S3Store


def test_a_directory(tmp_path: Path) -> None:
    url = (tmp_path / "with space").as_uri()
    store = open_store(url)
    assert isinstance(store, FileStore)
    assert store.url == url
    assert not (tmp_path / "with space").exists()
    store.put("a", b"1")
    assert (tmp_path / "with space" / "a").read_bytes() == b"1"
    assert list(open_store(f"file://localhost{tmp_path}").keys("with space/")) == ["with space/a"]


def test_a_bucket() -> None:
    url = (
        "s3://bucket/some/prefix/?endpoint_url=http://127.0.0.1:9&path_style=true&region=eu-west-1"
    )
    store = open_store(url)
    assert isinstance(store, S3Store)
    assert store.url == url
    assert repr(store) == f"S3Store({url!r})"


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("ftp://host/x", "scheme 'ftp'"),
        ("/a path", "'/a path' is no URL; did you mean 'file:///a%20path'"),
        ("a/path", "did you mean 'file:///.*/a/path'"),
        ("", "scheme ''"),
        ("file://relative/path", "absolute path"),
        ("file:relative", "absolute path"),
        ("file:///a?b=c", "neither query nor fragment"),
        ("file:///a#b", "neither query nor fragment"),
        ("file:///a%00b", "NUL"),
        ("s3:///prefix", "needs a bucket"),
        ("s3://bucket/a/../b", r"part '\.\.'"),
        ("s3://bucket?endpoint=http://x", "did you mean 'endpoint_url'"),
        ("s3://bucket?region=", "one value for 'region'"),
        ("s3://bucket?region=a&region=b", "one value for 'region'"),
        ("s3://bucket?path_style=yes", "path_style=true"),
        ("s3://bucket?endpoint_url=host:9000", "http:// or https://"),
        ("http://[", "cannot be read"),
    ],
)
def test_urls_that_name_no_store(url: str, message: str) -> None:
    with pytest.raises(Exception, match=message) as caught:
        open_store(url)
    assert caught.type.__module__.startswith("workers.storage")


@pytest.mark.parametrize(
    "url",
    [
        "s3://AKIA:hunter2@bucket/prefix",
        "s3://bucket?aws_secret_access_key=hunter2",
        "s3://bucket?access-key=hunter2",
        "s3://bucket?session_token=hunter2",
        "s3://bucket?endpoint_url=http://user:hunter2@host:9000",
        "s3://bucket?endpoint_url=http%3A%2F%2Fuser%3Ahunter2%40host",
        "file://user:hunter2@localhost/a",
        "sftp://user:hunter2@host/a",
    ],
)
def test_credentials_in_a_url_are_refused_and_not_shown(url: str) -> None:
    with pytest.raises(StoreUrlError, match="holds credentials") as caught:
        open_store(url)
    assert "hunter2" not in str(caught.value)
