"""The table of the wire specification's rules and the tests that show them.

``python -m tests.workers.relay.conformance`` writes it. A test whose name begins with a section
(``test_1_5_…``), a trap (``test_trap_10_…``) or an appendix (``test_appendix_b_…``) states a rule
of that part; the rest of its name is the rule.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.workers.relay.command_rules import COMMANDS, RULES

ROOT = Path(__file__).resolve().parents[3]
TABLE = ROOT / "docs/relay-conformance.md"
SOURCES = ("tests/workers/nostr", "tests/workers/relay", COMMANDS)
NAME = re.compile(r"test_(?:(trap|appendix)_)?([0-9]{1,2}|[ab])_(?:([0-9]{1,2})_(?=[a-z0-9]))?(.+)")

TITLES = {
    "1.1": "Routes",
    "1.2": "Tenants by host",
    "1.3": "Frames and limits",
    "1.4": "Proof of a key on the socket (NIP-42)",
    "1.5": "Requests, scope and read gates",
    "1.6": "Events on the socket",
    "1.7": "Rate limits (none in a trial's own relay, as Appendix B recommends)",
    "1.8": "Proof of a key over HTTP (NIP-98)",
    "1.9": "Statuses and bodies",
    "1.10": "Queries, extensions and order",
    "1.11": "Information document (NIP-11)",
    "2": "Identity and signatures",
    "2.1": "Rules of acceptance, in order",
    "2.2": "Kinds",
    "2.3": "Messages",
    "2.4": "Threads",
    "2.5": "Profiles",
    "2.6": "Group commands",
    "2.7": "Group state",
    "2.8": "Notifications and system messages",
    "2.9": "Reactions, edits, deletions",
    "2.10": "Presence and typing",
    "2.11": "Observer frames",
    "2.12": "Turn metrics",
    "2.13": "Owner attestations (NIP-OA)",
    "2.14": "Engrams and NIP-44",
    "2.15": "Replaceable events",
    "3.1": "The command: options, errors, retries",
    "3.2": "The command: output",
    "3.3": "The command: messages and mentions",
    "3.4": "The command: channels",
    "3.5": "The command: users",
    "3.6": "The command: memories",
    "3.7": "The command: reactions, feed, canvas, conversations",
    "8": "Traps",
    "A": "Vectors",
    "B": "The smallest relay",
}
"""The parts of the specification, in its order."""


class Rule(NamedTuple):
    """One rule and the test that shows it."""

    section: str
    words: str
    file: str
    test: str


def rules() -> list[Rule]:
    """All rules that a test shows, in the order of the specification."""
    places = list(TITLES)
    named = [rule for path in test_files() for rule in rules_of(path)]
    listed = [
        Rule(section, words, f"{COMMANDS}/{file}.py", test) for section, words, file, test in RULES
    ]
    return sorted([*named, *listed], key=lambda rule: (places.index(rule.section), rule.words))


def test_files() -> Iterator[Path]:
    """The files that tests of the wire stand in."""
    for source in SOURCES:
        yield from sorted((ROOT / source).glob("test_*.py"))


@functools.cache
def tests_in(path: Path) -> list[str]:
    """The names of a file's tests."""
    body = ast.parse(path.read_text("utf-8")).body
    return [
        node.name
        for node in body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]


def rules_of(path: Path) -> Iterator[Rule]:
    """The rules that the names of a file's tests state."""
    for test in tests_in(path):
        match = NAME.fullmatch(test)
        if match is None:
            continue
        part, first, second, rest = match.groups()
        if part is None and not first.isdigit():
            continue  # an article, no appendix
        words = rest.replace("_", " ")
        file = path.relative_to(ROOT).as_posix()
        if part == "trap":
            yield Rule("8", f"{int(first):02d} {words}", file, test)
        elif part == "appendix":
            yield Rule(first.upper(), words, file, test)
        elif second is not None and f"{first}.{second}" in TITLES:
            yield Rule(f"{first}.{second}", words, file, test)
        else:
            yield Rule(first, words if second is None else f"{second} {words}", file, test)


def render() -> str:
    """The table in Markdown."""
    found = rules()
    lines = [
        "# Conformance of the relay and the `buzz` command",
        "",
        f"{len(found)} rules of the wire specification and the test that shows each. Written by",
        "`python -m tests.workers.relay.conformance` from the names of the tests, whose files are",
        "below `tests/workers`; a test keeps it current.",
    ]
    for section, title in TITLES.items():
        rows = [rule for rule in found if rule.section == section]
        if rows:
            lines += ["", f"## {section} {title}", "", "| rule | test |", "|---|---|"]
            lines += [f"| {rule.words} | `{_short(rule.file)}::{rule.test}` |" for rule in rows]
    return "\n".join(lines) + "\n"


def _short(file: str) -> str:
    return file.removeprefix("tests/workers/")


if __name__ == "__main__":
    TABLE.write_text(render(), "utf-8")
