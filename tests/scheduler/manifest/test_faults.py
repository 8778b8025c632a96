from __future__ import annotations

import pytest

from scheduler.manifest.faults import (
    FaultList,
    ManifestError,
    ManifestFault,
    field_text,
    nearest_name,
)


def test_a_fault_reads_as_path_line_field_message_and_nearest() -> None:
    fault = ManifestFault("a/c.yaml", 3, "rolle", "unknown field", "role")
    assert str(fault) == "a/c.yaml:3: rolle: unknown field (did you mean 'role'?)"
    assert str(ManifestFault("f", None, "", "gone")) == "f: gone"


def test_an_error_lists_each_fault_once() -> None:
    fault = ManifestFault("f", 1, "a", "wrong")
    error = ManifestError([fault, fault, ManifestFault("g", None, "", "gone")])
    assert str(error) == "f:1: a: wrong\ng: gone"


def test_faults_of_several_files_are_gathered() -> None:
    faults = FaultList()
    for name in ("a", "b"):
        with faults.gathering():
            raise ManifestError([ManifestFault(name, None, "", "wrong")])
    with pytest.raises(ManifestError, match="a: wrong\nb: wrong"):
        faults.settle()
    FaultList().settle()


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ((), ""),
        (("roster", 0, "id"), "roster[0].id"),
        (("prices", "gpt-5.6", "input"), 'prices["gpt-5.6"].input'),
        (("prices", "claude-4-6"), "prices.claude-4-6"),
    ],
)
def test_places_are_written_as_people_do(place: tuple[str | int, ...], text: str) -> None:
    assert field_text(place) == text


@pytest.mark.parametrize(
    ("name", "candidates", "nearest"),
    [
        ("conditon", ["condition", "roster"], "condition"),
        ("Temperature", ["temperature"], "temperature"),
        ("max-output-tokens", ["max_output_tokens", "max_input_tokens"], "max_output_tokens"),
        ("timeout", ["timeout_seconds", "max_cost_usd"], "timeout_seconds"),
        ("colour", ["condition", "roster"], None),
        ("x", ["condition"], None),
        ("anything", [], None),
    ],
)
def test_nearest_name(name: str, candidates: list[str], nearest: str | None) -> None:
    assert nearest_name(name, candidates) == nearest
