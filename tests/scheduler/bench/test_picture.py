from __future__ import annotations

import xml.etree.ElementTree as ET

from scheduler.bench.picture import COLOURS, draw_phases
from workers.contract.outcome import Phase

SVG = "{http://www.w3.org/2000/svg}"


def test_every_phase_has_a_colour() -> None:
    assert set(COLOURS) == {phase.value for phase in Phase}


def test_a_row_is_filled_by_its_phases_in_their_proportion() -> None:
    rows = {"alone": {"launch": 3.0, "verify": 1.0}, "8 & more": {"launch": 2.0}}
    picture = ET.fromstring(draw_phases(rows))
    bars = [each for each in picture.iter(f"{SVG}rect") if each.find(f"{SVG}title") is not None]
    launch, verify, other = (float(each.attrib["width"]) for each in bars)
    assert launch == 3 * verify
    assert other == launch + verify
    words = [each.text for each in picture.iter(f"{SVG}text")]
    assert {"alone", "8 & more", "4.00 s", "launch", "verify"} <= set(words)
