from __future__ import annotations

import json
from typing import Any

import pytest

from workers.contract.base import FormatError
from workers.contract.task import DEFAULT_ATTEMPTS, Fixture, Task, TaskConfig

CONFIG: dict[str, Any] = {
    "schema_version": "1.3",
    "task": {"name": "buzz-native/reply", "authors": [{"name": "A", "email": "a@b"}]},
    "metadata": {"evaluation_layer": "regression", "difficulty": "easy", "category": "c"},
    "agent": {"timeout_sec": 300},
    "verifier": {"timeout_sec": 30.0},
    "environment": {},
}


def fixture(**fields: Any) -> Fixture:
    return Fixture.from_json(json.dumps(fields), "fixture.yaml")


def test_a_task_knows_its_names_and_layer() -> None:
    config = TaskConfig.from_json(json.dumps(CONFIG), "task.toml")
    task = Task(digest="0" * 64, config=config, instruction="Do.")
    assert (task.name, task.bare_name, task.layer) == ("buzz-native/reply", "reply", "regression")
    assert config.environment.memory_mb == 1024
    assert DEFAULT_ATTEMPTS == {"regression": 1, "workflow": 3}
    assert Task.from_json(task.to_json(), "t") == task


@pytest.mark.parametrize("name", ["reply", "a/b/c", "A/b", "a/", "/b", "a b/c", ""])
def test_a_whole_name_has_two_plain_parts(name: str) -> None:
    with pytest.raises(FormatError, match=r"task\.name"):
        TaskConfig.from_json(json.dumps({**CONFIG, "task": {"name": name}}), "t")


def test_ranges_are_written_out_after_the_directory() -> None:
    entries = fixture(
        directory=[{"name": "X", "role": "bot", "identity_id": "x"}],
        directory_ranges=[{"prefix": "user-", "first": 9, "last": 11, "role": "user"}],
    ).entries
    assert [(each.name, each.key_id, each.role) for each in entries] == [
        ("X", "x", "bot"),
        ("user-09", "user-09", "user"),
        ("user-10", "user-10", "user"),
        ("user-11", "user-11", "user"),
    ]


SAY = {"label": "l", "content": "c"}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"directory": [{"name": "X", "role": "bot"}] * 2}, "'X' stands more than once"),
        (
            {
                "directory": [{"name": "u-1", "role": "user"}],
                "directory_ranges": [
                    {"prefix": "u-", "first": 1, "last": 1, "width": 1, "role": "user"}
                ],
            },
            "'u-1' stands more than once",
        ),
        ({"scripted_messages": [{**SAY, "actor": "nobody"}]}, "neither 'user' nor an identity"),
        ({"scripted_messages": [{**SAY, "actor": "user"}] * 2}, "have one label"),
        ({"verifier_inputs": ["a/b"]}, "absolute path"),
        ({"verifier_inputs": ["/a/../b"]}, "absolute path"),
        ({"memories": [{"slug": "A", "value": "v"}]}, "slug"),
        ({"memories": [{"slug": "a//b", "value": "v"}]}, "slug"),
        ({"memories": [{"slug": "a", "value": ""}]}, "value"),
        ({"schema_version": 2}, "schema_version"),
    ],
)
def test_a_fixture_that_does_not_hold_is_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(FormatError, match=words):
        fixture(**fields)


def test_actors_are_the_user_or_identities() -> None:
    directory = [{"name": "Same", "role": "bot", "identity_id": "one"}]
    messages = [{**SAY, "actor": "user"}, {**SAY, "label": "m", "actor": "one"}]
    held = fixture(directory=directory, scripted_messages=messages)
    assert [message.actor for message in held.scripted_messages] == ["user", "one"]
    assert held.scripted_messages[0].mention_orchestrator
    assert not held.scripted_messages[0].reply_to_task
