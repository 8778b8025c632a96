"""The parts of set-up that a machine's first start gets in the way of."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.layout.tree import ROOT

SETUP = ROOT / "deploy" / "setup.sh"
APT = """\
#!/bin/sh
echo "$1" >>"$STATE/asked"
[ "$1" = install ] && [ -e "$STATE/lists" ] && exit 0
[ "$1" = install ] && { echo 'E: Unable to locate package' >&2; exit 100; }
if [ -e "$STATE/held" ]; then
    rm "$STATE/held"
    echo 'E: Could not get lock /var/lib/apt/lists/lock. It is held by process 7 (apt-get)' >&2
    exit 100
fi
[ ! -e "$STATE/away" ] || { echo 'E: Could not resolve the mirror' >&2; exit 100; }
touch "$STATE/lists"
"""


def asked(folder: Path, *marks: str) -> tuple[int, list[str]]:
    """Installs a package with a stand-in for apt: the status, and what apt was asked for."""
    for mark in marks:
        (folder / mark).touch()
    apt = folder / "bin" / "apt-get"
    apt.parent.mkdir()
    apt.write_text(APT)
    apt.chmod(0o755)
    *lines, last = SETUP.read_text("utf-8").rstrip().splitlines()
    assert last == "main"
    script = [*lines, f"state={folder}", "apt_install something"]
    done = subprocess.run(
        ["bash", "-c", "\n".join(script), str(SETUP)],
        env={"PATH": f"{apt.parent}:/usr/bin:/bin", "STATE": str(folder)},
        capture_output=True,
        timeout=60,
        check=False,
    )
    return done.returncode, (folder / "asked").read_text().split()


@pytest.mark.long
def test_a_package_is_installed_though_another_apt_reads_the_lists(tmp_path: Path) -> None:
    assert asked(tmp_path, "held") == (0, ["install", "update", "update", "install"])


def test_a_mirror_that_is_not_reached_is_told_of_at_once(tmp_path: Path) -> None:
    assert asked(tmp_path, "away") == (5, ["install", "update"])
