from __future__ import annotations

import os
from pathlib import Path

import pytest

from scheduler.manifest.faults import ManifestError
from scheduler.manifest.files import MAX_FILE_BYTES, read_document, read_text


@pytest.mark.parametrize(
    ("name", "data", "line", "words"),
    [
        ("a.yaml", b"ok: 1\nname: \xff\xfe\n", 2, "not UTF-8 text: byte 12 is 0xff"),
        ("a.json", b"\xff\xfe{\x00}\x00", 1, "not UTF-8 text: byte 0"),
        ("a.yaml", "é: 1".encode("latin-1"), 1, "not UTF-8"),
        ("a.toml", b"a = '\xc3'", 1, "not UTF-8"),
        ("a.yaml", b"#" * (MAX_FILE_BYTES + 1), None, f"larger than {MAX_FILE_BYTES} bytes"),
    ],
)
def test_refuses_contents(
    tmp_path: Path, name: str, data: bytes, line: int | None, words: str
) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ManifestError) as caught:
        read_document(tmp_path / name)
    assert caught.value.faults[0].line == line
    assert words in caught.value.faults[0].message


def test_refuses_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "folder.yaml").mkdir()
    (tmp_path / "loop.yaml").symlink_to("loop.yaml")
    for name, words in [
        ("pipe.yaml", "expected a file, found a special file"),
        ("folder.yaml", "expected a file, found a folder"),
        ("none.yaml", "there is no such file"),
        ("loop.yaml", "cannot be read"),
        ("a\0b.yaml", "not a file name"),
        ("n" * 300, "cannot be read"),
    ]:
        with pytest.raises(ManifestError, match=words):
            read_document(tmp_path / name)


def test_the_nearest_name_of_a_missing_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "demo.yaml").write_text("a: 1")
    with pytest.raises(ManifestError, match=r"did you mean '.*/demo\.yaml'"):
        read_document(tmp_path / "demo.yml")


def test_the_ending_says_how_to_read(tmp_path: Path) -> None:
    (tmp_path / "tabs.json").write_bytes(b'\xef\xbb\xbf{\n\t"a": "\\ud83d\\ude00"\n}')
    (tmp_path / "a.toml").write_text("a = 1")
    (tmp_path / "plain").write_text("a: 1")
    assert read_document(tmp_path / "tabs.json").data == {"a": "😀"}
    assert read_document(tmp_path / "a.toml").data == {"a": 1}
    assert read_document(tmp_path / "plain").data == {"a": 1}


def test_line_ends_are_kept(tmp_path: Path) -> None:
    (tmp_path / "p.md").write_bytes(b"a\r\nb\rc\n")
    assert read_text(tmp_path / "p.md") == "a\r\nb\rc\n"
