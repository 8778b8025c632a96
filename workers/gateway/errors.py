"""The errors of the gateway. None of them ever holds a key or a token."""

from __future__ import annotations


class GatewayError(Exception):
    """The gateway cannot serve what was asked of it, or could not keep its ledger."""


class UpstreamError(Exception):
    """The provider was not reached, or stopped in the middle of an answer."""
