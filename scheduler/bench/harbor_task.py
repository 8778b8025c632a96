"""The smallest task in Harbor's format, for both harnesses: hardly anything of it takes time.

It asks for a network, since Harbor refuses a task without one where the kernel lacks what it needs
to take it away. A sweep says ``sealed`` where it is measured against containers without one.
"""

from __future__ import annotations

from pathlib import Path

NAME = "write-a-word"
_FILES = {
    "instruction.md": "Write the word done into /tmp/word.\n",
    "task.toml": """\
version = "1.0"

[agent]
timeout_sec = 120.0

[verifier]
timeout_sec = 120.0

[environment]
build_timeout_sec = 600.0
cpus = 1
memory_mb = 256
storage_mb = 256
allow_internet = true
""",
    "solution/solve.sh": "#!/bin/sh\necho done > /tmp/word\n",
    "tests/test.sh": """\
#!/bin/sh
if [ "$(cat /tmp/word)" = done ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
""",
}


def write_task(tasks: Path, image: str) -> None:
    """Writes the task's folder into a folder of tasks.

    Args:
        tasks: the folder, made here.
        image: what its Dockerfile of one line names.
    """
    folder = tasks / NAME
    for name, text in {**_FILES, "environment/Dockerfile": f"FROM {image}\n"}.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    for name in ("solution/solve.sh", "tests/test.sh"):
        (folder / name).chmod(0o755)
