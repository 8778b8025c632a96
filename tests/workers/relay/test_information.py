"""The relay information document (§1.11)."""

from __future__ import annotations

from workers.relay.information import relay_information
from workers.relay.state import RelayState


def test_1_11_what_the_relay_says_of_itself() -> None:
    state = RelayState("a" * 64, "h", lambda: 0.0)
    document = relay_information(state)
    assert document["name"] == "Buzz Relay"
    assert document["self"] == state.keypair.pubkey
    assert document["supported_nips"] == [1, 2, 10, 11, 16, 17, 23, 25, 29, 33, 38, 42, 50, 56]
    assert document["limitation"] == {
        "max_message_length": 524_288,
        "max_subscriptions": 1024,
        "max_filters": 10,
        "max_limit": 1000,
        "max_subid_length": 256,
        "auth_required": True,
        "payment_required": False,
        "restricted_writes": True,
        "due_delivery_mode": "push",
        "max_not_before_delta": 0,
    }
