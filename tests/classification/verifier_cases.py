"""Verifiers that give no usable word: the task's doing, whatever the agent did."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.classification.cases import Provoke, case
from tests.classification.trials import SAY, trial
from workers.contract.result import TryRecord
from workers.contract.task import Fixture

REWARD = "/logs/verifier/reward.json"


def verifier(name: str, cause: str, test_sh: str, **options: Any) -> Provoke:
    """A trial whose tests are this script."""

    @case("verifier", name, f"invalid task {cause} verify once")
    async def provoke(folder: Path) -> TryRecord:
        return await trial(folder, SAY, test_sh=test_sh, **options)

    return provoke


verifier("crashes", "verifier_crash", "exit 3\n")
verifier("hangs", "verifier_timeout", "sleep 600\n", verifier_s=2.0)
verifier("writes no reward", "reward_missing", "true\n")
verifier("writes NaN", "reward_malformed", f"echo '{{\"reward\": NaN}}' > {REWARD}\n")
verifier("writes a text", "reward_malformed", f'echo \'{{"reward": "1.0"}}\' > {REWARD}\n')
verifier("writes 2.0", "reward_malformed", f"echo '{{\"reward\": 2.0}}' > {REWARD}\n")
verifier("writes a list", "reward_malformed", f"echo '[1.0]' > {REWARD}\n")
verifier("writes an empty file", "reward_malformed", f": > {REWARD}\n")
verifier("writes invalid UTF-8", "reward_malformed", f"printf '\\xff\\xfe{{}}' > {REWARD}\n")
verifier("leaves a link", "reward_malformed", f"ln -s /etc/passwd {REWARD}\n")
verifier("leaves a pipe", "reward_malformed", f"mkfifo {REWARD}\n")


@case("verifier", "its inputs are not in the image", "invalid task verifier_setup verify once")
async def _setup(folder: Path) -> TryRecord:
    fixture = Fixture(verifier_inputs=("/app/not-there.txt",))
    return await trial(folder, SAY, fixture=fixture)
