"""Who may use the relay (§2.13)."""

from __future__ import annotations

import dataclasses

from workers.nostr.attestation import attest
from workers.nostr.keys import Keypair
from workers.relay.state import RelayState


def test_2_13_the_owner_and_those_it_attests() -> None:
    owner, agent, stranger = (Keypair.generate() for _ in range(3))
    state = RelayState(owner.pubkey, "h", lambda: 0.0)
    good = attest(owner, agent.pubkey)
    assert state.admit(owner.pubkey, None, record=True)
    assert state.admit(agent.pubkey, good, record=False)
    assert not state.admit(agent.pubkey, None, record=True)
    assert not state.admit(stranger.pubkey, good, record=True)
    assert not state.admit(agent.pubkey, attest(stranger, agent.pubkey), record=True)
    assert not state.admit(agent.pubkey, dataclasses.replace(good, sig="0" * 128), record=True)
    assert state.owners == {}


def test_2_13_conditions_are_checked_for_form_and_not_for_truth() -> None:
    owner, agent = Keypair.generate(), Keypair.generate()
    state = RelayState(owner.pubkey, "h", lambda: 0.0)
    assert state.admit(agent.pubkey, attest(owner, agent.pubkey, "created_at<1"), record=True)


def test_2_13_a_proven_owner_is_recorded_once() -> None:
    owner, agent = Keypair.generate(), Keypair.generate()
    state = RelayState(owner.pubkey, "h", lambda: 0.0)
    assert state.admit(agent.pubkey, attest(owner, agent.pubkey), record=True)
    assert state.is_owner_of(owner.pubkey, agent.pubkey)
    assert not state.is_owner_of(agent.pubkey, owner.pubkey)
