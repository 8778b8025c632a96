"""Identity of conditions: Buzz's known vectors from inline data, and what counts in it."""

from __future__ import annotations

import json
import random
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workers.contract.base import FormatError, sha256_hex
from workers.contract.condition import Condition

PERSONA = "972950f0e2bfb9bf540c98e70e075479ab80cd596cb5ad405dad0cafdc60840b"

MINIMAL: dict[str, Any] = {
    "condition": "c",
    "roster": [
        {
            "id": "solo",
            "kind": "orchestrator",
            "role": "solo",
            "count": 1,
            "endpoint": "e",
            "model_revision": "r",
            "prompt": {"path": "p.md", "sha256": "0" * 64},
            "generation": {"max_output_tokens": 1, "context_window_tokens": 2},
        }
    ],
    "prices": {
        "e": {
            "input_per_million_usd": 0,
            "cached_input_per_million_usd": 0,
            "output_per_million_usd": 0,
        }
    },
    "trial_budget": {"timeout_seconds": 1},
}

MINIMAL_BYTES = (
    b'{"condition":"c","metadata":{},"prices":{"e":{"cached_input_per_million_usd":0.0,'
    b'"input_per_million_usd":0.0,"output_per_million_usd":0.0}},"roster":[{"budget":'
    b'{"max_calls":null,"max_cost_usd":null,"max_input_tokens":null,"max_output_tokens":null},'
    b'"concurrency":1,"count":1,"endpoint":"e","generation":{"context_window_tokens":2,'
    b'"extra":{},"max_output_tokens":1,"temperature":0.0},"id":"solo","kind":"orchestrator",'
    b'"model_revision":"r","persona":null,"prompt":{"path":"p.md","sha256":'
    b'"0000000000000000000000000000000000000000000000000000000000000000"},"role":"solo",'
    b'"skills":[]}],"schema_version":"1","trial_budget":{"max_cost_usd":null,'
    b'"timeout_seconds":1}}'
)


def read(data: Any) -> Condition:
    return Condition.from_json(json.dumps(data), "inline")


def entry(**changes: Any) -> dict[str, Any]:
    base = {
        "id": "solo",
        "kind": "orchestrator",
        "role": "solo",
        "count": 1,
        "prompt": {"path": "personas/buzz-native-solo.md", "sha256": PERSONA},
        "generation": {"max_output_tokens": 4096, "context_window_tokens": 200000},
    }
    model = {"model_revision": changes.get("endpoint")}
    return {**base, **model, **changes}


def price(per_input: float, per_cached: float, per_output: float) -> dict[str, float]:
    return {
        "input_per_million_usd": per_input,
        "cached_input_per_million_usd": per_cached,
        "output_per_million_usd": per_output,
    }


LUNA = {
    "condition": "buzz-native-solo-luna-medium",
    "roster": [
        entry(
            endpoint="gpt-5.6-luna",
            generation={
                "max_output_tokens": 4096,
                "context_window_tokens": 200000,
                "thinking_effort": "medium",
            },
        )
    ],
    "prices": {"gpt-5.6-luna": price(0.2, 0.02, 1.2)},
    "trial_budget": {"timeout_seconds": 300},
}

SONNET = {
    "condition": "buzz-native-solo-sonnet46",
    "roster": [entry(endpoint="claude-sonnet-4-6")],
    "prices": {"claude-sonnet-4-6": price(3, 0.3, 15)},
    "trial_budget": {"timeout_seconds": 300},
}

SMALL_WINDOW = {"max_output_tokens": 4096, "context_window_tokens": 128000}

HELLO = {
    "condition": "M1-hello-world",
    "roster": [
        entry(
            id="orch",
            role="lead",
            endpoint="local/placeholder-orchestrator",
            model_revision="m1-placeholder",
            prompt={
                "path": "personas/orchestrator-m1.md",
                "sha256": "af64b515de914c99fbdfc5a50830909ac10ab3a4f37e8352a354019a6be74151",
            },
            generation=SMALL_WINDOW,
        ),
        entry(
            id="worker",
            kind="worker",
            role="implementer",
            endpoint="local/placeholder-worker",
            model_revision="m1-placeholder",
            prompt={
                "path": "personas/worker-m1.md",
                "sha256": "f3fef3d2c42105c256ff019d71ef99506b31a23e8cb252cac727c8bc470eb304",
            },
            generation=SMALL_WINDOW,
        ),
    ],
    "prices": {
        "local/placeholder-orchestrator": price(0, 0, 0),
        "local/placeholder-worker": price(0, 0, 0),
    },
    "trial_budget": {"timeout_seconds": 1800},
}

COBOL = {
    "condition": "tb-cobol-sonnet46-2haiku45",
    "roster": [
        entry(
            id="orch",
            role="lead",
            endpoint="claude-sonnet-4-6",
            prompt={
                "path": "personas/orchestrator-tb.md",
                "sha256": "206829331cdd85fb277266901b9489e190ba23097600a8bb69142d044b9a42e6",
            },
        ),
        entry(
            id="worker",
            kind="worker",
            role="implementer",
            count=2,
            endpoint="claude-haiku-4-5",
            prompt={
                "path": "personas/worker-tb.md",
                "sha256": "664a994ae3ba93f02ebbb8f61f781f6a59ea3327b21e26e7ffc2d06827ed3e45",
            },
        ),
    ],
    "prices": {"claude-sonnet-4-6": price(3, 0.3, 15), "claude-haiku-4-5": price(1, 0.1, 5)},
    "trial_budget": {"timeout_seconds": 900},
}


@pytest.mark.parametrize(
    ("data", "identity"),
    [
        (MINIMAL, "22f765bf45b602d0b124721653d33ca2ac32feb36835a0bce345873229543447"),
        (LUNA, "cffd54632fab9d79b23cd0c3ff560d363024a3a45feff21dbd38360299a74baa"),
        (SONNET, "9d6038f69d867e249adf6ed95c45e19b038e2a2c8603d248f0dc6cebab902525"),
        (HELLO, "ed8c13d2981250c61faab2d85ec0195a23bf80646e647a61f53bacf354e1455f"),
        (COBOL, "af2417b3d0f26d3b8371c4a42797b500790dba0e3b01e1d332a6196384b09b5a"),
    ],
    ids=lambda value: value["condition"] if isinstance(value, dict) else "",
)
def test_identities_are_buzzs(data: dict[str, Any], identity: str) -> None:
    assert read(data).digest == identity


def test_the_canonical_bytes_of_the_minimal_condition() -> None:
    assert read(MINIMAL).canonical() == MINIMAL_BYTES
    assert sha256_hex(MINIMAL_BYTES) == read(MINIMAL).digest


FULL: dict[str, Any] = {
    "schema_version": "1",
    "condition": "full-ü",
    "roster": [
        {
            "id": "lead",
            "kind": "orchestrator",
            "role": "lead",
            "count": 1,
            "endpoint": "e",
            "model_revision": "r",
            "prompt": {"path": "p.md", "sha256": "0" * 64},
            "persona": {"path": "q.md", "sha256": "1" * 64},
            "skills": [{"path": "s.md", "sha256": "2" * 64}],
            "generation": {
                "temperature": 0.5,
                "max_output_tokens": 10,
                "context_window_tokens": 1000,
                "thinking_effort": "low",
                "compact_at_percent": 50,
                "compact_at_tokens": 500,
                "extra": {"a": [1, {"b": None}]},
            },
            "budget": {
                "max_calls": 1,
                "max_input_tokens": 2,
                "max_output_tokens": 3,
                "max_cost_usd": 4.0,
            },
            "concurrency": 1,
            "include_platform_prompt": False,
        },
        {
            "id": "worker",
            "kind": "worker",
            "role": "w",
            "count": 3,
            "endpoint": "e",
            "model_revision": "r",
            "prompt": {"path": "p.md", "sha256": "0" * 64},
            "concurrency": 2,
        },
    ],
    "prices": {"e": {**price(1.0, 2.0, 3.0), "cache_read_rate": 0.25}, "spare": price(0, 0, 0)},
    "trial_budget": {"timeout_seconds": 60, "max_cost_usd": 1.0},
    "environment": {"override_cpus": 2, "override_memory_mb": 3, "override_storage_mb": 4},
    "metadata": {"note": "x", "nested": {"k": [True, 1.5]}},
}


def leaves(data: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(data, dict):
        return [leaf for key in data for leaf in leaves(data[key], (*place, key))]
    if isinstance(data, list):
        return [leaf for index in range(len(data)) for leaf in leaves(data[index], (*place, index))]
    return [place]


OTHER: dict[Any, Any] = {
    "thinking_effort": "high", "sha256": "f" * 64, "include_platform_prompt": True,
    "cache_read_rate": 0.5,
}  # fmt: skip

FIXED = {("schema_version",), ("roster", 0, "kind"), ("roster", 1, "kind")}
TIED = {("roster", 0, "endpoint"), ("roster", 1, "endpoint"), ("roster", 0, "count")}
TIED |= {("roster", 0, "concurrency")}


@pytest.mark.parametrize(
    "place", [leaf for leaf in leaves(FULL) if leaf not in FIXED | TIED], ids=str
)
def test_every_field_counts(place: tuple[Any, ...]) -> None:
    data = deepcopy(FULL)
    holder = data
    for part in place[:-1]:
        holder = holder[part]
    value = holder[place[-1]]
    if place[-1] in OTHER:
        holder[place[-1]] = OTHER[place[-1]]
    elif isinstance(value, bool):
        holder[place[-1]] = not value
    elif value is None:
        holder[place[-1]] = 0
    else:
        holder[place[-1]] = value + ("x" if isinstance(value, str) else 1)
    assert read(data).digest != read(FULL).digest


@pytest.mark.parametrize(
    "place",
    [
        ("roster", 0, "generation", "max_output_tokens"),
        ("roster", 0, "generation", "context_window_tokens"),
        ("roster", 0, "generation", "thinking_effort"),
        ("roster", 0, "generation", "compact_at_percent"),
        ("roster", 0, "generation", "compact_at_tokens"),
        ("roster", 0, "include_platform_prompt"),
        ("environment", "override_cpus"),
        ("environment", "override_memory_mb"),
        ("environment", "override_storage_mb"),
        ("environment",),
        ("prices", "e", "cache_read_rate"),
    ],
    ids=str,
)
def test_a_later_field_that_is_absent_or_null_leaves_no_trace(place: tuple[Any, ...]) -> None:
    absent, null = deepcopy(FULL), deepcopy(FULL)
    for data in (absent, null):
        holder = data
        for part in place[:-1]:
            holder = holder[part]
        if data is absent:
            del holder[place[-1]]
        else:
            holder[place[-1]] = None
    assert read(absent).digest == read(null).digest != read(FULL).digest
    assert f'"{place[-1]}"' not in read(absent).canonical().decode().replace(
        '"budget":{"max_calls":1,"max_cost_usd":4.0,"max_input_tokens":2,"max_output_tokens":3}', ""
    ).replace('"max_output_tokens":null', "")


def test_absent_and_empty_generation_and_environment_are_one_condition() -> None:
    absent = deepcopy(MINIMAL)
    del absent["roster"][0]["generation"]
    empty = deepcopy(absent)
    empty["roster"][0]["generation"] = {}
    empty["environment"] = {}
    assert read(absent).digest == read(empty).digest
    assert b'"generation":{"extra":{},"temperature":0.0}' in read(absent).canonical()


def test_whole_numbers_count_as_floats_where_the_field_is_one() -> None:
    data = deepcopy(FULL)
    data["prices"]["e"]["input_per_million_usd"] = 1
    assert read(data).digest == read(FULL).digest
    assert b'"input_per_million_usd":1.0' in read(data).canonical()


@settings(max_examples=40)
@given(st.randoms(use_true_random=False))
def test_the_order_of_keys_does_not_count(shuffler: random.Random) -> None:
    assert read(shuffled(FULL, shuffler)).canonical() == read(FULL).canonical()


def shuffled(data: Any, shuffler: random.Random) -> Any:
    if isinstance(data, dict):
        keys = list(data)
        shuffler.shuffle(keys)
        return {key: shuffled(data[key], shuffler) for key in keys}
    return [shuffled(child, shuffler) for child in data] if isinstance(data, list) else data


FLOATS = st.floats(allow_nan=False, allow_infinity=False)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | FLOATS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(st.dictionaries(st.text(max_size=5), PLAIN, max_size=4))
def test_the_canonical_form_is_a_condition_of_the_same_identity(metadata: dict[str, Any]) -> None:
    data = {**MINIMAL, "metadata": metadata}
    try:
        json.dumps(data, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return
    first = read(data)
    again = Condition.from_json(first.canonical(), "canonical")
    assert again.digest == first.digest
    stored = Condition.from_json(first.to_json(), "stored")
    assert stored.digest == first.digest


def test_agents_and_endpoints() -> None:
    condition = read(FULL)
    assert [agent for agent, _ in condition.agents] == [
        "lead-1",
        "worker-1",
        "worker-2",
        "worker-3",
    ]
    assert condition.endpoints == ("e",)


@pytest.mark.parametrize("name", ["", " ", " a", "a\n", "a\x00b", "a\u202eb", "x" * 501])
def test_a_name_that_no_table_could_show_is_refused(name: str) -> None:
    condition = json.loads(read(FULL).to_json())
    assert Condition.from_json(json.dumps({**condition, "condition": "ünï [x]"}), "c")
    with pytest.raises(FormatError, match=r"c: condition: "):
        Condition.from_json(json.dumps({**condition, "condition": name}), "c")
