from __future__ import annotations

from workers.model.wake import Wake, read_wakes

E1, E2 = "1" * 64, "2" * 64
KEY = "ab" * 32
NPUB = "npub1" + "q" * 58
CHANNEL = "0a1b2c3d-0000-4000-8000-00000000abcd"


def block(event: str, content: str, sender: str = KEY) -> str:
    return (
        f"Event ID: {event}\nChannel: trial (#{CHANNEL})\nKind: 9\nFrom: Eleanor ({sender})\n"
        f"Time: 2026-01-01T00:00:00Z\nContent: {content}\n"
        f'Tags: [["h", "{CHANNEL}"]]\nParsed: a top-level message; mentions x'
    )


def test_one_event() -> None:
    prompt = f"[Context]\nScope: channel\n\n[Buzz event: mention]\n{block(E1, '@solo-1 Hello.')}"
    assert read_wakes((prompt,)) == (Wake(E1, CHANNEL, KEY, "Hello."),)


def test_a_content_of_many_lines() -> None:
    text = "@solo-1 One.\n\n- two: three\n\nFrom: nobody"
    (wake,) = read_wakes((block(E1, text),))
    assert wake.text == "One.\n\n- two: three\n\nFrom: nobody"
    assert wake.sender == KEY


def test_events_of_a_batch_and_of_later_prompts() -> None:
    batch = f"[Buzz events — 2 events]\n\n--- Event 1 ---\n{block(E1, 'a')}\n\n{block(E2, 'b')}"
    later = block("3" * 64, "c", NPUB)
    wakes = read_wakes(("no event", batch, later, block(E1, "again")))
    assert [(wake.event[0], wake.text) for wake in wakes] == [("1", "a"), ("2", "b"), ("3", "c")]
    assert wakes[2].sender == NPUB


def test_a_channel_that_only_the_context_names() -> None:
    prompt = f"[Context]\nChannel: #{CHANNEL}\n\nEvent ID: {E1}\nFrom: {KEY}\nContent: x"
    assert read_wakes((prompt,)) == (Wake(E1, CHANNEL, KEY, "x"),)


def test_blocks_that_lack_something() -> None:
    assert read_wakes(("", "Event ID: 123", f"Event ID: {E1}\nContent: x")) == ()


def test_several_names_before_the_text() -> None:
    (wake,) = read_wakes((block(E1, "@solo-1 @other.x, do it for me@example.org"),))
    assert wake.text == "do it for me@example.org"
