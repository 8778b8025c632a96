from __future__ import annotations

import os
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.container import copying
from workers.container.calls import Deadline
from workers.container.interface import ContainerError


def member(name: str = "x", kind: bytes = tarfile.REGTYPE, content: bytes = b"") -> bytes:
    """One member of a tar, without the end of the archive."""
    info = tarfile.TarInfo(name)
    info.type, info.size, info.linkname = kind, len(content), "/etc/passwd"
    padding = -len(content) % 512
    return info.tobuf(tarfile.GNU_FORMAT) + content + b"\0" * padding


END = b"\0" * 1024


def pieces(data: bytes, size: int = 100) -> Iterator[bytes]:
    return (data[place : place + size] for place in range(0, len(data), size))


@given(st.binary(max_size=3000), st.integers(1, 2000), st.text("ab/.", min_size=1, max_size=20))
def test_the_content_arrives_however_it_is_cut(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, size: int, name: str
) -> None:
    target = tmp_path_factory.mktemp("copy") / "target"
    copying.write_single(
        Deadline("copy", 30), pieces(member(name, content=content) + END, size), target, 3000
    )
    assert target.read_bytes() == content
    assert os.listdir(target.parent) == ["target"]


def test_the_target_is_replaced_and_gets_a_plain_mode(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.symlink_to(tmp_path / "elsewhere")
    copying.write_single(Deadline("copy", 30), pieces(member(content=b"new") + END), target, 3)
    assert not target.is_symlink()
    assert (target.read_bytes(), target.stat().st_mode & 0o7777) == (b"new", 0o644)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (member(kind=tarfile.SYMTYPE) + END, "no regular file"),
        (member(kind=tarfile.LNKTYPE) + END, "no regular file"),
        (member(kind=tarfile.FIFOTYPE) + END, "no regular file"),
        (member(kind=tarfile.CHRTYPE) + END, "no regular file"),
        (member(kind=tarfile.DIRTYPE) + END, "no regular file"),
        (member(kind=tarfile.GNUTYPE_SPARSE) + END, "no regular file|broken"),
        (member(content=b"1") + member("y", content=b"2") + END, "more than one file"),
        (member(content=b"1" * 101) + END, "101 bytes, at most 100"),
        (END, "no regular file"),
        (b"", "no regular file|broken"),
        (b"no tar at all" * 100, "broken"),
        (member(content=b"1" * 90)[:560], "broken"),
        (member(kind=tarfile.GNUTYPE_LONGNAME, content=b"n" * 10**6), "larger than allowed"),
    ],
)
def test_everything_else_is_refused_and_leaves_nothing(
    tmp_path: Path, data: bytes, reason: str
) -> None:
    with pytest.raises(ContainerError, match=f"copy it: .*({reason})"):
        copying.write_single(Deadline("copy it", 30), pieces(data), tmp_path / "target", 100)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("mode", "link"), [(1 << 31, ""), (1 << 27, "/x"), (1 << 25, ""), (1 << 24, ""), (0, "/x")]
)
def test_what_the_engine_calls_no_regular_file_is_refused_early(mode: int, link: str) -> None:
    with pytest.raises(ContainerError, match="no regular file"):
        copying.check_told("copy", {"mode": mode | 0o644, "size": 1, "linkTarget": link}, 10)


def test_a_size_is_refused_early() -> None:
    copying.check_told("copy", {"mode": (1 << 23) | 0o755, "size": 10, "linkTarget": ""}, 10)
    with pytest.raises(ContainerError, match="11 bytes, at most 10"):
        copying.check_told("copy", {"mode": 0o644, "size": 11, "linkTarget": ""}, 10)
