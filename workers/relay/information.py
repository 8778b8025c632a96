"""The relay information document (NIP-11)."""

from __future__ import annotations

from typing import Any

from workers.relay.state import RelayState

VERSION = "0.1.0"


def relay_information(state: RelayState) -> dict[str, Any]:
    """What the relay says of itself to anybody."""
    limits = state.limits
    return {
        "name": "Buzz Relay",
        "description": "Apiary's embedded relay: one trial, one relay",
        "supported_nips": [1, 2, 10, 11, 16, 17, 23, 25, 29, 33, 38, 42, 50, 56],
        "supported_extensions": ["nip-er"],
        "software": "apiary",
        "version": VERSION,
        "self": state.keypair.pubkey,
        "limitation": {
            "max_message_length": limits.frame_bytes,
            "max_subscriptions": limits.subscriptions,
            "max_filters": limits.filters,
            "max_limit": limits.page,
            "max_subid_length": limits.subscription_id_bytes,
            "auth_required": True,
            "payment_required": False,
            "restricted_writes": True,
            "due_delivery_mode": "push",
            "max_not_before_delta": 0,
        },
    }
