"""Writes the table of outcomes into the README; a test fails while it differs from the code's.

Run ``.venv/bin/python docs/write_outcomes.py`` after a change of ``workers/contract/outcome.py``.
"""

from __future__ import annotations

import re
from pathlib import Path

from workers.contract.outcome import BLAME_OF, RULES, Blame, Retry, Verdict

README = Path(__file__).parents[1] / "README.md"
HEAD = "| verdict | blame | causes | scored | tried again |\n|---|---|---|---|---|\n"
AGAIN = {
    Retry.NEVER: "never",
    Retry.WHOLE: "up to `limits.max_tries`",
    Retry.ONCE: "once",
    Retry.ON_RESUME: "on resume",
}


def outcome_block() -> str:
    """The table of everything that is not a pass, one blame a line."""
    rows = []
    for blame, rule in RULES.items():
        if blame is Blame.NONE:
            continue
        causes = ", ".join(f"`{cause}`" for cause, of in BLAME_OF.items() if of is blame)
        scored = "no" if rule.verdict is Verdict.INVALID else "yes"
        rows.append(f"| {rule.verdict} | {blame} | {causes} | {scored} | {AGAIN[rule.retry]} |\n")
    return HEAD + "".join(rows)


def main() -> None:
    """Replaces the table that begins with verdict and blame."""
    text = README.read_text("utf-8")
    table = r"\| verdict \| blame \|.*?\n\n"
    changed = re.sub(table, lambda _: f"{outcome_block()}\n", text, count=1, flags=re.DOTALL)
    README.write_text(changed, "utf-8")


if __name__ == "__main__":
    main()
