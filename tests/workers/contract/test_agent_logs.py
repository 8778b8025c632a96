"""Logs of agents that are kept in one archive, and archives that are none."""

from __future__ import annotations

import io
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.contract.agent_logs import ARCHIVE, kept_of, pack, unpack
from workers.contract.base import FormatError

NAMES = st.from_regex(r"[a-z][a-z0-9-]{0,20}\.(stdout|stderr)\.log", fullmatch=True)


@given(st.dictionaries(NAMES, st.binary(max_size=300), max_size=9))
def test_what_is_packed_comes_out_again(logs: dict[str, bytes]) -> None:
    assert unpack(pack(logs)) == logs
    assert pack(dict(reversed(logs.items()))) == pack(logs)


def test_a_search_for_a_secret_sees_into_it() -> None:
    assert b"the-secret" in pack({"a.log": b"x" * 900 + b"the-secret" + b"x" * 900})


@given(st.binary(max_size=400))
def test_what_is_no_archive_is_said_to_be_none(data: bytes) -> None:
    with pytest.raises(FormatError, match=r"logs/agents\.zip: no archive of logs"):
        unpack(data)


@given(st.data())
def test_a_broken_archive_ends_in_logs_or_a_clear_error(draw: st.DataObject) -> None:
    data = bytearray(pack({"a-1.stdout.log": b"one\n" * 20, "b-1.stderr.log": b"two\n"}))
    for _ in range(draw.draw(st.integers(1, 4))):
        data[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(st.integers(0, 255))
    try:
        logs = unpack(bytes(data))
    except FormatError as error:
        assert str(error).startswith(ARCHIVE)
    else:
        assert all("/" not in name for name in logs)


@pytest.mark.parametrize("name", ["../up.log", "/etc/passwd", "a/b.log", "..", "."])
def test_a_name_that_leads_elsewhere_is_refused(name: str) -> None:
    with pytest.raises(FormatError, match="is no name of a log"):
        unpack(forged({name: b"x"}))


def test_an_archive_that_would_grow_is_refused() -> None:
    bomb = forged({"a.log": b"\0" * 5_000_000}, zipfile.ZIP_DEFLATED)
    assert len(bomb) < 10_000
    with pytest.raises(FormatError, match=r"a\.log is not stored as it is"):
        unpack(bomb)


def test_a_log_is_pointed_at_where_it_is() -> None:
    apart, packed = "logs/agents/a-1.stderr.log", ("evidence.json", ARCHIVE)
    assert kept_of([apart, "evidence.json"], [apart, "evidence.json"]) == (apart, "evidence.json")
    assert kept_of([apart, "evidence.json", apart], packed) == (ARCHIVE, "evidence.json")
    assert kept_of([apart, "logs/verifier/output.log"], ["evidence.json"]) == ()


def forged(files: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return data.getvalue()
