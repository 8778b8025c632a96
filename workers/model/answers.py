"""Right answers, computed from what a request says. Pure: text in, text out.

Each function gives None for a request that is not its own. Figures are read from the text,
never remembered, so a reworded request with other figures is answered rightly too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction

_NAME = r"[A-Z][a-z]+(?: [A-Z][a-z]+)+"
_EXPRESSION = re.compile(r"\(\s*(\d+)\s*([-+*/×÷])\s*(\d+)\s*\)\s*([-+*/×÷])\s*(\d+)")


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


def release_update(text: str) -> str | None:
    """The update that the request holds, as it stands there."""
    block = re.search(r"^Release readiness$.*^Owner: [^\n]*", text, re.MULTILINE | re.DOTALL)
    return None if block is None else block[0].rstrip()


def bot_status(text: str) -> str | None:
    """Two lines on two bots, named in prose and not addressed."""
    names = list(dict.fromkeys(re.findall(rf"{_NAME} Bot", text)))
    if len(names) != 2 or "idle" not in text:
        return None
    return f"{names[0]} completed the audit.\n{names[1]} remains idle."


def labelled_sum(text: str) -> str | None:
    """A request with a label in capitals and one expression."""
    label = re.search(r"\b([A-Z]{4,}) request", text)
    expression = _EXPRESSION.search(text)
    if label is None or expression is None:
        return None
    first, inner, second, outer, third = expression.groups()
    value = _apply(outer, _apply(inner, Fraction(first), Fraction(second)), Fraction(third))
    return f"{label[1]}: {value}"


def synthesis(reports: Sequence[str]) -> str | None:
    """The four inputs of three reports and what they come to; None: one is still missing."""
    found: dict[str, int] = {}
    for label in ("North", "South", "reserve", "multiplier"):
        for report in reports:
            figure = re.search(rf"\b{label}\D+(\d+)", report, re.IGNORECASE)
            if figure is not None:
                found.setdefault(label, int(figure[1]))
    if len(found) < 4:
        return None
    total = (found["North"] + found["South"] - found["reserve"]) * found["multiplier"]
    inputs = ", ".join(f"{label} {value}" for label, value in found.items())
    return f"{inputs}. Final value: (North + South - reserve) * multiplier = {total}"


def wants_synthesis(text: str) -> bool:
    """Whether a message asks for a synthesis of reports that others will send."""
    return "synthesis" in text and "(North + South" in text


def is_report(text: str) -> bool:
    """Whether a message is such a report: it informs and asks for nothing."""
    figures = (r"North\D+\d+", r"reserve\D+\d+", r"multiplier\D+\d+")
    return not wants_synthesis(text) and any(re.search(one, text) for one in figures)


def april_total(entries: Sequence[str]) -> str | None:
    """The one figure of the customers in total in April 2024, out of memory entries."""
    for entry in entries:
        for clause in re.split(r"[.;\n]\s|[.;]?$", entry):
            lower = clause.lower()
            if "april 2024" not in lower or "total" not in lower or "new" in lower:
                continue
            numbers = re.findall(r"\d{1,3}(?:,\d{3})+|\d{5,}", clause)
            if len(numbers) == 1:
                return f"We had {numbers[0]} customers in total in April 2024."
    return None


def skill_facts(file: str) -> str | None:
    """One sentence with the check id and the action of a skill's file."""
    check = re.search(r"^\s*CHECK_ID:\s*(\S+)\s*$", file, re.MULTILINE)
    action = re.search(r"^\s*ACTION:\s*(.+?)\s*$", file, re.MULTILINE)
    if check is None or action is None:
        return None
    return f"The CHECK_ID is {check[1]} and the ACTION is: {action[1]}"


def _apply(sign: str, left: Fraction, right: Fraction) -> Fraction:
    match sign:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*" | "×":
            return left * right
        case _:
            return left / right


def _number(text: str) -> int:
    return int(text.replace(",", ""))
