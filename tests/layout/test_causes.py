"""The page of causes and the README's table have every cause once, under its blame."""

from __future__ import annotations

import re
import runpy

from tests.layout.tree import ROOT
from workers.contract.outcome import BLAME_OF, Blame, Cause

SECTIONS = {
    "The model": Blame.MODEL,
    "The provider": Blame.PROVIDER,
    "The harness": Blame.HARNESS,
    "The task": Blame.TASK,
    "The operator": Blame.OPERATOR,
    "Nobody": Blame.UNCLASSIFIED,
}


def test_every_cause_is_explained_once_under_its_blame() -> None:
    page = (ROOT / "docs" / "causes.md").read_text("utf-8")
    told: list[tuple[str, Blame]] = []
    for section in page.split("\n## ")[1:]:
        blame = next(blame for start, blame in SECTIONS.items() if section.startswith(start))
        told += [(name, blame) for name in re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)]
    known = [(cause.value, BLAME_OF[cause]) for cause in Cause if cause is not Cause.NONE]
    assert sorted(told) == sorted(known)


def test_the_table_of_outcomes_is_the_one_in_the_code() -> None:
    written = runpy.run_path(str(ROOT / "docs" / "write_outcomes.py"))["outcome_block"]()
    readme = (ROOT / "README.md").read_text("utf-8")
    assert f"\n\n{written}\n" in readme, "run docs/write_outcomes.py"
    assert readme.count("| verdict | blame |") == 1
    for cause in Cause:
        assert cause is Cause.NONE or f"`{cause}`" in written
