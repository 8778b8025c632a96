"""All cases: importing their modules registers them."""

from __future__ import annotations

from tests.classification import (
    cases,
    harness_cases,
    model_cases,
    node_cases,
    provider_cases,
    store_cases,
    verifier_cases,
)

__all__ = ["CASES", "MODULES"]

MODULES = (model_cases, provider_cases, harness_cases, store_cases, node_cases, verifier_cases)
_ORDER = ("model", "provider", "start", "run", "store", "node", "verifier", "operator", "bug")
CASES = tuple(sorted(cases.CASES, key=lambda each: _ORDER.index(each.group)))
"""By group, the model's first."""
