"""From dimensions to ``reward.json`` and ``details.json``, failing closed."""

from __future__ import annotations

import argparse
import gc
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable

from verifier_kit.evidence import Evidence
from verifier_kit.reading import parse_json, read_text

MAX_SHOWN_ROWS = 5_000
MAX_SHOWN_TEXT = 500

Dimension = Callable[[Evidence], bool]


@dataclass(frozen=True)
class Answer:
    """What a verifier says."""

    reward: dict[str, float]
    """``reward`` and every dimension, each 0.0 or 1.0."""
    details: dict[str, Any]
    """Which messages and values were looked at; ``error`` if the evidence could not be read."""


@dataclass(frozen=True)
class Verifier:
    """A task's rule: one function a dimension, the reward being all of them together."""

    dimensions: tuple[Dimension, ...]
    """Named as their dimensions are."""
    details: Callable[[Evidence], dict[str, Any]]
    """What the page itself has to show beside the judged messages."""
    inputs: Mapping[str, Callable[[str], Any]] = field(default_factory=dict)
    """Option name to the reader of that further file's text."""

    def judge(self, document: object, inputs: Mapping[str, Any] | None = None) -> Answer:
        """Judges a parsed document; what cannot be read as evidence gives zeros and ``error``."""
        try:
            return self._judge(Evidence(document, inputs))
        except Exception as error:  # noqa: BLE001
            return self._refuse(error)

    def judge_files(self, evidence: str, inputs: Mapping[str, str]) -> Answer:
        """The same for files, none of which needs to exist.

        Args:
            evidence: path of the evidence.
            inputs: option name to path.
        """
        try:
            read = {name: self.inputs[name](read_text(path)) for name, path in inputs.items()}
            return self._judge(Evidence(parse_json(read_text(evidence)), read))
        except Exception as error:  # noqa: BLE001
            # Nothing that a file holds may end this process without an answer, or with a pass.
            return self._refuse(error)

    def run(self, arguments: Sequence[str] | None = None) -> int:
        """The command line; writes both files and gives the exit code."""
        parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
        names = ("evidence", "reward", "details", *self.inputs)
        for name in names:
            parser.add_argument(f"--{name.replace('_', '-')}", required=True, metavar="FILE")
        given = vars(parser.parse_args(arguments))
        # A parsed document has no cycles; looking for them would cost more than parsing it.
        gc.disable()
        answer = self.judge_files(given["evidence"], {name: given[name] for name in self.inputs})
        # The reward comes last: where it stands, its details stand too.
        _write(Path(given["details"]), answer.details)
        _write(Path(given["reward"]), answer.reward)
        return 0

    def _judge(self, seen: Evidence) -> Answer:
        scores = {rule.__name__: float(rule(seen)) for rule in self.dimensions}
        scores["reward"] = float(all(score == 1.0 for score in scores.values()))
        details = {
            "agent_pubkey": seen.agent,
            "agent_message_ids": [message.id for message in seen.agent_messages],
            "task_event_id": seen.task_event_id,
            **self.details(seen),
        }
        return Answer(scores, {name: shown(value) for name, value in details.items()})

    def _refuse(self, error: Exception) -> Answer:
        zeros = dict.fromkeys([*(rule.__name__ for rule in self.dimensions), "reward"], 0.0)
        return Answer(zeros, {"error": f"{type(error).__name__}: {str(error)[:500]}"})


def shown(value: Any) -> Any:
    """A value as details may hold it: a scalar or a list of them, bounded, numbers finite."""
    if isinstance(value, list):
        return [_scalar(part) for part in value[:MAX_SHOWN_ROWS]]
    return _scalar(value)


def _scalar(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return value[:MAX_SHOWN_TEXT]
    if isinstance(value, (int, float)):
        return value if abs(value) < 2**63 else "beyond range"
    return f"a {type(value).__name__}"


def _write(path: Path, value: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(json.dumps(value, sort_keys=True, allow_nan=False) + "\n", "utf-8")
    os.replace(partial, path)
