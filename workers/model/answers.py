"""Right answers, computed from what a request says. Pure: text in, text out.

Each function gives None for a request that is not its own. Figures and names are read from the
text, never remembered, so a reworded request with other figures is answered rightly too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fractions import Fraction

_NAME = r"[A-Z][a-z]+(?: [A-Z][a-z]+)+"
_TERM = r"(?:\d+|[A-Za-z]+)"
_SIGN = r"\s*[-+*/×÷]\s*"
_FORMULA = re.compile(rf"\(\s*({_TERM}(?:{_SIGN}{_TERM})+)\s*\)({_SIGN})({_TERM})")
_DEED = re.compile(rf"({_NAME} Bot)\s+([a-z][^,.;:\n]*)")


def growth(text: str) -> str | None:
    """Revenue and expenses that grow each month, and the profit they add up to."""
    amounts = [_number(found) for found in re.findall(r"\$?(\d{1,3}(?:,\d{3})+)", text)]
    rates = [float(found) for found in re.findall(r"(\d+(?:\.\d+)?)\s*(?:%|percent)", text)]
    span = re.search(r"months?\s+1\s*(?:to|through|until|[-–])\s*(\d+)", text)
    if len(amounts) < 2 or len(rates) < 2 or span is None or "revenue" not in text.lower():
        return None
    revenue, expenses, profit = float(amounts[0]), float(amounts[1]), 0.0
    for _ in range(int(span[1])):
        revenue *= 1 + rates[0] / 100
        expenses *= 1 + rates[1] / 100
        profit += revenue - expenses
    return "\n".join(
        (
            f"Revenue in month {span[1]}: ${revenue:,.0f}",
            f"Expenses in month {span[1]}: ${expenses:,.0f}",
            f"Cumulative operating profit of months 1 to {span[1]}: ${profit:,.0f}",
        )
    )


def yearly_price(text: str) -> str | None:
    """The price of a year of licences that are paid each month."""
    count = re.search(r"(\d+)\s+(?:\w+\s+)?licen[cs]es", text)
    price = re.search(r"\$\s?(\d+)|(\d+)\s+dollars", text)
    if count is None or price is None:
        return None
    total = int(count[1]) * int(price[1] or price[2]) * 12
    return f"The annual total is ${total:,}."


def text_below(text: str) -> str | None:
    """The text that a request holds below its first paragraph and wants back as it stands."""
    request, _, below = text.partition("\n\n")
    if "below" not in request or "back" not in request:
        return None
    return below.strip("\n") or None


def bot_status(text: str) -> str | None:
    """A line for each bot that a wanted status is about; named in prose and not addressed."""
    deeds = dict(_DEED.findall(text))
    if "status" not in text or len(deeds) < 2:
        return None
    return "\n".join(f"{name} {deed.strip()}." for name, deed in deeds.items())


def labelled_sum(text: str) -> str | None:
    """A request with a label in capitals and one expression."""
    label = re.search(r"\b([A-Z]{4,}) request", text)
    value = _value(text, {})
    return None if label is None or value is None else f"{label[1]}: {value}"


def wanted_inputs(text: str) -> tuple[str, ...]:
    """The names in the formula of a message that asks for a synthesis of others' reports."""
    formula = _FORMULA.search(text)
    if formula is None or "synthesis" not in text:
        return ()
    return tuple(re.findall(r"[A-Za-z]+", formula[0]))


def inputs_of(labels: Iterable[str], reports: Sequence[str]) -> dict[str, int]:
    """The figures that reports give for labels; each label's first one."""
    found: dict[str, int] = {}
    for label in labels:
        for report in reports:
            figure = re.search(rf"\b{re.escape(label)}\b\D+(\d+)", report, re.IGNORECASE)
            if figure is not None:
                found.setdefault(label, int(figure[1]))
    return found


def synthesis(request: str, reports: Sequence[str]) -> str | None:
    """All inputs of a request's formula and what they come to; None: one is still missing."""
    figures = inputs_of(wanted_inputs(request), reports)
    value = _value(request, figures)
    if value is None:
        return None
    inputs = ", ".join(f"{label} {figure}" for label, figure in figures.items())
    return f"{inputs}. Final value: {value}"


def total_of_month(question: str, entries: Sequence[str]) -> str | None:
    """The one figure of all customers in the month that is asked about, out of memory entries."""
    month = re.search(r"\b([A-Z][a-z]+ \d{4})\b", question)
    if month is None:
        return None
    for entry in entries:
        for clause in re.split(r"[.;\n]\s|[.;]?$", entry):
            lower = clause.lower()
            if month[1].lower() not in lower or "total" not in lower or "new" in lower:
                continue
            numbers = re.findall(r"\d{1,3}(?:,\d{3})+|\d{5,}", clause)
            if len(numbers) == 1:
                return f"We had {numbers[0]} customers in total in {month[1]}."
    return None


def skill_facts(file: str) -> str | None:
    """One sentence with the check id and the action of a skill's file."""
    check = re.search(r"^\s*CHECK_ID:\s*(\S+)\s*$", file, re.MULTILINE)
    action = re.search(r"^\s*ACTION:\s*(.+?)\s*$", file, re.MULTILINE)
    if check is None or action is None:
        return None
    return f"The CHECK_ID is {check[1]} and the ACTION is: {action[1]}"


def _value(text: str, names: dict[str, int]) -> Fraction | None:
    """The value of the formula in a text; None without one, or if a name has no figure."""
    formula = _FORMULA.search(text)
    if formula is None:
        return None
    tokens = re.findall(rf"{_TERM}|[-+*/×÷]", formula[1])
    tokens += [formula[2].strip(), formula[3]]
    if len({sign in "+-" for sign in tokens[1:-2:2]}) > 1:
        return None  # Which goes first is not ours to guess.
    terms = [_term(token, names) for token in tokens[0::2]]
    value = terms[0]
    for sign, term in zip(tokens[1::2], terms[1:], strict=True):
        value = None if value is None or term is None else _apply(sign, value, term)
    return value


def _term(token: str, names: dict[str, int]) -> Fraction | None:
    figure = int(token) if token.isdigit() else names.get(token)
    return None if figure is None else Fraction(figure)


def _apply(sign: str, left: Fraction, right: Fraction) -> Fraction | None:
    match sign:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*" | "×":
            return left * right
        case _:
            return left / right if right else None


def _number(text: str) -> int:
    return int(text.replace(",", ""))
