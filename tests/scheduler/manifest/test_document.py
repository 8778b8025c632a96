from __future__ import annotations

from scheduler.manifest.document import Document
from scheduler.manifest.yaml_marks import read_yaml


def test_a_fault_is_located_by_key_by_item_or_by_the_nearest_parent() -> None:
    document = read_yaml("a:\n  b:\n    - 1\n    - 2\n", "f.yaml")
    places = [(), ("a",), ("a", "b"), ("a", "b", 1), ("a", "b", 7), ("a", "none"), ("none",)]
    assert [document.fault(place, "m").line for place in places] == [1, 1, 2, 4, 2, 1, 1]


def test_a_document_without_marks_has_faults_without_lines() -> None:
    assert Document("f", {}).fault(("a",), "m").line is None


def test_flags_lie_over_a_file_and_their_faults_name_them() -> None:
    document = read_yaml("name: x\ntasks: {include: [a], exclude: [b]}\n", "f.yaml")
    laid = document.with_flags({("tasks", "include"): ("--include-task", ["c"])})
    assert laid.data == {"name": "x", "tasks": {"include": ["c"], "exclude": ["b"]}}
    assert document.data["tasks"]["include"] == ["a"]
    assert str(laid.fault(("tasks", "include", 0), "m")) == "command line: --include-task: m"
    assert str(laid.fault(("tasks", "exclude", 0), "m")) == "f.yaml:2: tasks.exclude[0]: m"


def test_flags_make_the_mappings_on_their_way() -> None:
    laid = Document("f", {"tasks": 3}).with_flags({("tasks", "path"): ("--path", "p")})
    assert laid.data == {"tasks": {"path": "p"}}


def test_values_of_another_document_are_located_there() -> None:
    base = read_yaml("agents:\n  - id: a\n    size: 1\nname: x\n", "base.yaml")
    source = read_yaml("first: 1\nvary:\n  size:\n    - {deep: 7}\n", "source.yaml")
    made = base.with_values(source, {("agents", 0, "size"): (("vary", "size", 0), {"deep": 7})})
    assert made.data == {"agents": [{"id": "a", "size": {"deep": 7}}], "name": "x"}
    assert base.data["agents"] == [{"id": "a", "size": 1}]
    assert str(made.fault(("agents", 0, "size", "deep"), "bad")) == (
        "source.yaml:4: vary.size[0].deep: bad"
    )
    assert str(made.fault(("agents", 0, "id"), "bad")) == "base.yaml:2: agents[0].id: bad"
    assert str(made.fault(("agents",), "bad")) == "base.yaml:1: agents: bad"
