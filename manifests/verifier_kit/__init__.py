"""What the verifiers share: reading evidence, its words, figures in text, and the answer.

Standard library only, CPython 3.9 or later; mounted at ``/tests/verifier_kit`` beside a task's
tests. Its bytes are part of every task's digest.
"""

from verifier_kit.evidence import Evidence, Message, Row, key_of, last, rows
from verifier_kit.figures import (
    has_amount,
    has_concluded,
    has_in_sentence,
    has_labelled,
    has_word,
    numbers,
)
from verifier_kit.reading import MalformedError
from verifier_kit.verdict import Answer, Verifier

__all__ = [
    "Answer",
    "Evidence",
    "MalformedError",
    "Message",
    "Row",
    "Verifier",
    "has_amount",
    "has_concluded",
    "has_in_sentence",
    "has_labelled",
    "has_word",
    "key_of",
    "last",
    "numbers",
    "rows",
]
