from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.agent import websocket_frames as frames
from workers.agent.websocket_frames import (
    CLOSE,
    CONTINUATION,
    PING,
    PONG,
    TEXT,
    Decoder,
    FramingError,
    Message,
)

NONCE = b"the sample nonce"
"""RFC 6455 §1.3: the key ``dGhlIHNhbXBsZSBub25jZQ==``."""


def server_frame(opcode: int, payload: bytes, final: bool = True) -> bytes:
    """The obvious way to write a server's frame."""
    size = len(payload)
    first = bytes([(0x80 if final else 0) | opcode])
    if size < 126:
        return first + bytes([size]) + payload
    if size < 65536:
        return first + bytes([126]) + size.to_bytes(2, "big") + payload
    return first + bytes([127]) + size.to_bytes(8, "big") + payload


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[a:b] for a, b in itertools.pairwise(edges)]


@st.composite
def conversations(draw: st.DrawFn) -> tuple[bytes, list[Message]]:
    """Bytes of a server, and the messages that they carry."""
    data, expected = b"", []
    for _ in range(draw(st.integers(0, 4))):
        payload = draw(st.binary(max_size=300) | st.just(b"x" * 70_000))
        pieces = cut(payload, draw(st.lists(st.integers(0, 10**6), max_size=3))) or [b""]
        for number, piece in enumerate(pieces):
            last = number == len(pieces) - 1
            data += server_frame(TEXT if number == 0 else CONTINUATION, piece, last)
            if not last and draw(st.booleans()):
                # RFC 6455 §5.4: control frames may stand between fragments.
                control = draw(st.sampled_from([PING, PONG]))
                note = draw(st.binary(max_size=125))
                data += server_frame(control, note)
                expected.append(Message(control, note))
        expected.append(Message(TEXT, payload))
    return data, expected


@given(conversations(), st.lists(st.integers(0, 10**6), max_size=8))
def test_messages_come_out_however_the_bytes_are_cut(
    conversation: tuple[bytes, list[Message]], places: list[int]
) -> None:
    data, expected = conversation
    decoder = Decoder(1 << 20)
    assert [m for piece in cut(data, places) for m in decoder.feed(piece)] == expected


@given(st.binary(max_size=400))
def test_any_bytes_are_messages_or_a_framing_error(data: bytes) -> None:
    try:
        for message in Decoder(1000).feed(data):
            assert len(message.payload) <= 1000
    except FramingError as error:
        assert error.code in (1002, 1009)


@given(st.binary(max_size=300), st.binary(min_size=4, max_size=4))
def test_a_mask_laid_twice_gives_the_payload_back(payload: bytes, mask: bytes) -> None:
    masked = frames.mask_payload(payload, mask)
    assert masked == bytes(byte ^ mask[i % 4] for i, byte in enumerate(payload))
    assert frames.mask_payload(masked, mask) == payload


@given(st.integers(0, 70_000), st.sampled_from([TEXT, PONG]))
def test_a_client_frame_is_final_masked_and_shortest(size: int, opcode: int) -> None:
    mask = b"\x01\x02\x03\x04"
    frame = frames.encode_frame(opcode, b"a" * size, mask)
    assert frame[0] == 0x80 | opcode
    assert frame[1] & 0x80
    head = {True: 2, False: 4 if size < 65536 else 10}[size < 126]
    assert frame[head : head + 4] == mask
    assert len(frame) == head + 4 + size


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\xc1\x00", "reserved bit"),
        (b"\x81\x80\x00\x00\x00\x00", "masked"),
        (b"\x83\x00", "unknown opcode"),
        (b"\x09\x00", "control frame"),
        (b"\x89\x7e\x00\x7e", "control frame"),
        (b"\x80\x00", "continuation of nothing"),
        (b"\x01\x00\x81\x00", "inside another"),
        (b"\x81\x7e\x00\x7d", "shortest"),
        (b"\x81\x7f" + (65535).to_bytes(8, "big"), "shortest"),
        (b"\x82\x7f" + (2**63).to_bytes(8, "big"), "larger than"),
    ],
)
def test_what_the_rules_forbid_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(FramingError, match=reason):
        list(Decoder(1 << 20).feed(data))


def test_the_limit_counts_all_fragments_and_is_known_before_they_are_read() -> None:
    decoder = Decoder(10)
    assert list(decoder.feed(server_frame(TEXT, b"123456", final=False))) == []
    with pytest.raises(FramingError, match="larger than 10 bytes") as caught:
        list(decoder.feed(server_frame(CONTINUATION, b"78901")[:2]))
    assert caught.value.code == 1009


def test_the_handshake_of_the_standard_is_accepted() -> None:
    request = frames.handshake_request("localhost:3600", "/", NONCE)
    assert b"Host: localhost:3600\r\n" in request
    assert b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" in request
    frames.check_handshake(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
        b"SEC-WEBSOCKET-ACCEPT: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=",
        NONCE,
    )


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        (b"HTTP/1.1 404 Not Found\r\n", "404 Not Found"),
        (b"HTTP/1.1 101 X\r\nSec-WebSocket-Accept: nonsense", "does not answer our key"),
        (b"nonsense", "refused"),
    ],
)
def test_another_handshake_is_refused(head: bytes, reason: str) -> None:
    with pytest.raises(FramingError, match=reason):
        frames.check_handshake(head, NONCE)


def test_a_close_reason_is_cut_to_what_a_control_frame_holds() -> None:
    payload = frames.close_payload(1000, "r" * 200)
    assert payload[:2] == (1000).to_bytes(2, "big")
    assert list(Decoder(200).feed(server_frame(CLOSE, payload))) == [Message(CLOSE, payload)]
