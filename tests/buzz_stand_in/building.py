"""Makes the three programs: archives of this package that Python runs, each under its name.

A failure mode is part of a build, since the environment has no room for it.
"""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

NAMES = ("buzz-acp", "buzz-agent", "buzz-dev-mcp")
_SOURCES = ("__init__", "acp", "agent", "dev_mcp", "lines", "nostr", "specification")
_MAIN = """\
import sys
name, mode = {name!r}, {mode!r}
if name == "buzz-acp":
    from tests.buzz_stand_in.acp import main
    sys.exit(main(mode))
if name == "buzz-agent":
    from tests.buzz_stand_in.agent import main
    sys.exit(main(mode))
from tests.buzz_stand_in.dev_mcp import main
sys.exit(main(sys.argv[0]))
"""


def build(folder: Path, **mode: float) -> Path:
    """Writes the programs into a folder, and gives it.

    Args:
        folder: made if it is not there.
        mode: ``dies_after=seconds``, ``never_ready=1``, ``cancels=1``, ``notices=1``,
            ``miscounts=1``; none: all goes well.
    """
    folder.mkdir(parents=True, exist_ok=True)
    here = Path(__file__).parent
    for name in NAMES:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr(zipfile.ZipInfo("__main__.py"), _MAIN.format(name=name, mode=mode))
            archive.writestr(zipfile.ZipInfo("tests/__init__.py"), "")
            for source in _SOURCES:
                text = (here / f"{source}.py").read_text("utf-8")
                archive.writestr(zipfile.ZipInfo(f"tests/buzz_stand_in/{source}.py"), text)
        path = folder / name
        path.write_bytes(b"#!/usr/bin/env python3\n" + buffer.getvalue())
        path.chmod(0o755)
    return folder
