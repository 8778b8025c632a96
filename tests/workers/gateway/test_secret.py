from __future__ import annotations

import base64
import html
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.gateway import GatewayError
from workers.gateway.secret import (
    SHORTEST_KEY,
    Scrubber,
    Secret,
    SecretSource,
    read_secret,
    scrub,
)


def test_a_secret_is_not_shown() -> None:
    secret = Secret("hunter2")
    assert "hunter2" not in f"{secret} {secret!r} {[secret]} {vars(type(secret))}"
    assert secret.reveal() == "hunter2"


def test_where_keys_are_read(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("from-file\n")

    def read(**environment: str) -> str | None:
        secret = read_secret("K", environment)
        return None if secret is None else secret.reveal()

    assert read(K=" direct ") == "direct"
    assert read(K_FILE=str(file)) == "from-file"
    assert read(K="direct", K_FILE=str(file)) == "direct"
    assert read(K="", K_FILE=str(file)) == "from-file"
    assert read() is None
    assert read(K="  ", K_FILE=str(file)) == "from-file"
    file.write_text("\n")
    assert read(K_FILE=str(file)) is None


@pytest.mark.parametrize("value", ["hun ter2", "hun\nter2", "hunter2é", "hun\0ter2"])
def test_keys_that_no_header_may_carry(value: str) -> None:
    with pytest.raises(GatewayError, match=r"^K holds a key") as caught:
        read_secret("K", {"K": value})
    assert "ter2" not in str(caught.value)


def test_a_file_that_is_none_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_bytes(b"")
    os.truncate(tmp_path / "large", 2**30)
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    for name in ("pipe", "large", "link", "."):
        with pytest.raises(GatewayError, match="K_FILE names a file that cannot be read"):
            read_secret("K", {"K_FILE": str(tmp_path / name)})


def test_a_file_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(GatewayError, match="K_FILE"):
        read_secret("K", {"K_FILE": str(tmp_path / "missing")})


@given(
    st.text("ab", min_size=1, max_size=5),
    st.lists(st.text("abc", max_size=6), max_size=8),
)
def test_a_key_is_blanked_wherever_pieces_are_cut(unit: str, texts: list[str]) -> None:
    # Each letter twelve times, so that the shortest key is long enough to be one.
    key = "".join(letter * SHORTEST_KEY for letter in unit)
    pieces = ["".join(letter * SHORTEST_KEY for letter in text).encode() for text in texts]
    scrubber = Scrubber([Secret(key)])
    out = b"".join([*(scrubber.feed(piece) for piece in pieces), scrubber.flush()])
    whole = b"".join(pieces)
    assert len(out) == len(whole)
    assert key.encode() not in out
    if key.encode() not in whole:
        assert out == whole


def test_nothing_is_held_back_without_reason() -> None:
    scrubber = Scrubber([Secret("sk-123456789")])
    assert scrubber.feed(b"data: x\n\n") == b"data: x\n\n"
    assert scrubber.feed(b"ends in sk") == b"ends in "
    assert scrubber.feed(b"y") == b"sky"
    assert Scrubber([]).feed(b"sk-123456789") == b"sk-123456789"


@pytest.mark.parametrize("key", ["x", "EMPTY", "ollama", "test"])
def test_a_placeholder_is_no_secret_and_changes_no_answer(key: str) -> None:
    said = f"fix-pr-1234 is {key} and {key}".encode()
    scrubber = Scrubber([Secret(key)])
    assert scrubber.feed(said) + scrubber.flush() == said
    assert scrub(said.decode(), [Secret(key)]) == said.decode()


def spelled_by_dotnet(key: str) -> str:
    return json.dumps(key).replace("+", "\\u002B").replace("&", "\\u0026").replace("<", "\\u003C")


@pytest.mark.parametrize("key", ["sk-123456789", "kP3/x+Q8==z&7<w%5Q"])
@pytest.mark.parametrize(
    "spell",
    [
        str,
        lambda key: quote(key, safe=""),
        lambda key: re.sub("%..", lambda found: found[0].lower(), quote(key, safe="")),
        quote_plus,
        json.dumps,
        lambda key: json.dumps(key).replace("/", "\\/"),
        lambda key: json.dumps(key).replace("&", "\\u0026").replace("<", "\\u003c"),
        spelled_by_dotnet,
        html.escape,
        lambda key: base64.b64encode(key.encode()).decode(),
        lambda key: base64.urlsafe_b64encode(f"Bearer {key} was refused".encode()).decode(),
        lambda key: base64.b64encode(f":{key}".encode()).decode(),
        lambda key: base64.b64encode(f"u:{key}!".encode()).decode(),
    ],
)
def test_a_key_is_blanked_however_it_is_spelled(key: str, spell: Callable[[str], str]) -> None:
    secrets = [Secret(key)]
    spelled = spell(key)
    # Of base64, what stands beside the key has a part in the letters at its ends.
    most = spelled[len(spelled) // 2 - 4 : len(spelled) // 2 + 4]
    said = f"<{spelled}>"
    scrubber = Scrubber(secrets)
    pieces = [said[at : at + 5].encode() for at in range(0, len(said), 5)]
    out = b"".join([*(scrubber.feed(piece) for piece in pieces), scrubber.flush()])
    assert most.encode() not in out
    assert len(out) == len(said)
    assert most not in scrub(said, secrets)


def test_short_texts() -> None:
    assert scrub("a sk-123456789 b", [Secret("sk-123456789")]) == "a *** b"
    assert scrub("a", []) == "a"


def test_several_keys_are_blanked_in_one_stream() -> None:
    scrubber = Scrubber([Secret("sk-123456789"), Secret("header-9876543")])
    pieces = [b"a sk-1234", b"56789 b header-", b"9876543 c sk-x"]
    out = b"".join([*(scrubber.feed(piece) for piece in pieces), scrubber.flush()])
    assert out == b"a ************ b ************** c sk-x"


def test_a_key_in_a_file_rotates(tmp_path: Path) -> None:
    """As Kubernetes mounts a secret: a link to a folder that is swapped for another."""
    for number in (1, 2):
        (tmp_path / f"v{number}").mkdir()
        (tmp_path / f"v{number}" / "key").write_text(f"key-number-{number}\n")
    mount = tmp_path / "mount"
    mount.symlink_to("v1")
    source = SecretSource("K", {"K_FILE": str(mount / "key")})

    def key() -> str:
        secret = source.current()
        assert secret is not None
        return secret.reveal()

    assert key() == "key-number-1"
    mount.unlink()
    assert key() == "key-number-1"
    mount.symlink_to("v2")
    assert key() == "key-number-2"
    (tmp_path / "v2" / "key").write_text("")
    assert key() == "key-number-2"
    (tmp_path / "v2" / "key").write_text("key-number-3, written in place".replace(" ", "-"))
    assert key() == "key-number-3,-written-in-place"


def test_a_variable_goes_before_a_file_and_does_not_rotate(tmp_path: Path) -> None:
    source = SecretSource("K", {"K": "direct", "K_FILE": str(tmp_path / "missing")})
    secret = source.current()
    assert secret is not None and secret.reveal() == "direct"
    assert SecretSource("K", {}).current() is None
