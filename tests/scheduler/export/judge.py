"""Harbor itself as the judge of an exported job: ``python -m tests.scheduler.export.judge JOB…``.

Harbor needs Python 3.12 or later, which Apiary does not. This makes a virtual environment of such
a Python in a temporary folder, installs Harbor into it, and has Harbor's result models, scanner and
viewer read every job. ``--schemas FOLDER`` writes the JSON Schemas of the models instead; the ones
of ``HARBOR`` lie beside this file and judge in the fast tests.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HARBOR = "0.26.0"
SCHEMAS = Path(__file__).parent / f"harbor-{HARBOR}"
NAMES = ("python3.14", "python3.13", "python3.12")
NEEDED = "import sys; raise SystemExit(sys.version_info < (3, 12))"
BY_HAND = (
    "there is no Python 3.12 or later here: put one on the path (for example with `uv python "
    "install 3.12` or `pyenv install 3.12`), or name it with --python"
)
MODELS = {
    "job-config": ("harbor.models.job.config", "JobConfig"),
    "job-result": ("harbor.models.job.result", "JobResult"),
    "trial-config": ("harbor.models.trial.config", "TrialConfig"),
    "trial-result": ("harbor.models.trial.result", "TrialResult"),
    "task": ("harbor.models.task.config", "TaskConfig"),
}
"""Name of a schema to its module and class."""

JUDGING = """
import json, logging, sys
from pathlib import Path
from fastapi.testclient import TestClient
from harbor.models.job.config import JobConfig
from harbor.models.job.result import JobResult, JobStats
from harbor.models.trial.config import TrialConfig
from harbor.models.trial.result import TrialResult
from harbor.viewer.scanner import JobScanner
from harbor.viewer.server import create_app

job = Path(sys.argv[1]).resolve()
JobConfig.model_validate_json((job / "config.json").read_text())
told = JobResult.model_validate_json((job / "result.json").read_text())
scanner = JobScanner(job.parent)
assert job.name in scanner.list_jobs(), scanner.list_jobs()
assert scanner.get_job_config(job.name) and scanner.get_job_result(job.name)
results = []
for name in scanner.list_trials(job.name):
    TrialConfig.model_validate_json((job / name / "config.json").read_text())
    results.append(TrialResult.model_validate_json((job / name / "result.json").read_text()))
    assert results[-1].trial_name == name == results[-1].config.trial_name
folders = [path for path in job.iterdir() if path.is_dir()]
assert len(results) == len(folders), (len(results), len(folders))

# What Harbor itself would count of these trials is what the job says.
counted = JobStats.from_trial_results(results, n_total_trials=told.n_total_trials)
for field in ("n_completed_trials", "n_errored_trials", "n_cancelled_trials", "n_pending_trials",
              "n_input_tokens", "n_cache_tokens", "n_output_tokens"):
    assert getattr(counted, field) == getattr(told.stats, field), field
assert set(counted.evals) == set(told.stats.evals)
for key, mine in counted.evals.items():
    theirs = told.stats.evals[key]
    assert (mine.n_trials, mine.n_errors) == (theirs.n_trials, theirs.n_errors), key
    assert mine.reward_stats == theirs.reward_stats, (key, mine.reward_stats, theirs.reward_stats)
    assert mine.exception_stats == theirs.exception_stats, key

asked = 0
with TestClient(create_app(job.parent)) as client:
    def get(path):
        global asked
        reply = client.get(path)
        assert reply.status_code == 200, (path, reply.status_code, reply.text[:300])
        asked += 1
        return reply.json()
    assert any(row["name"] == job.name for row in get("/api/jobs")["items"])
    get(f"/api/jobs/{job.name}")
    get(f"/api/jobs/{job.name}/tasks")
    rows = get(f"/api/jobs/{job.name}/trials?page_size=100")["items"]
    assert len(rows) == min(100, len(results)), len(rows)
    for result in results:
        base = f"/api/jobs/{job.name}/trials/{result.trial_name}"
        for part in ("", "/agent-logs", "/verifier-output", "/files"):
            get(base + part)
valid = sum(result.reward_valid for result in results)
print(json.dumps({"trials": len(results), "with_reward": valid, "pages": asked,
                  "errors": told.stats.n_errored_trials}))
"""

WRITING = """
import importlib, json, sys
from pathlib import Path
for name, (module, model) in json.loads(sys.argv[2]).items():
    schema = getattr(importlib.import_module(module), model).model_json_schema()
    text = json.dumps(schema, indent=1, sort_keys=True) + "\\n"
    (Path(sys.argv[1]) / f"{name}.json").write_text(text)
"""


def find_python(given: str | None) -> str:
    """A Python that Harbor runs on.

    Raises:
        SystemExit: there is none; the message says how to get one.
    """
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = [shutil.which(name) for name in NAMES]
    found += [str(path) for path in sorted(versions.glob("3.1[2-9]*/bin/python"), reverse=True)]
    for candidate in [given] if given else found:
        if candidate and subprocess.run([candidate, "-c", NEEDED], capture_output=True).returncode == 0:  # fmt: skip  # noqa: E501
            return candidate
    raise SystemExit(BY_HAND)


def install(python: str, folder: Path) -> str:
    """Harbor in a virtual environment of its own; gives that environment's Python."""
    subprocess.run([python, "-m", "venv", str(folder)], check=True)
    inside = str(folder / "bin" / "python")
    # httpx is what its viewer's test client asks with.
    wanted = [f"harbor=={HARBOR}", "httpx"]
    subprocess.run([inside, "-m", "pip", "install", "--quiet", *wanted], check=True)
    return inside


def main() -> int:
    """Judges, or writes schemas."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("jobs", nargs="*", type=Path)
    parser.add_argument("--python", help="a Python of version 3.12 or later")
    parser.add_argument("--venv", type=Path, help="where Harbor is installed already, or is to be")
    parser.add_argument("--schemas", type=Path, help="write the models' JSON Schemas there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="harbor-") as scratch:
        home = options.venv or Path(scratch)
        inside = home / "bin" / "python"
        python = str(inside) if inside.exists() else install(find_python(options.python), home)
        if options.schemas:
            import json

            options.schemas.mkdir(parents=True, exist_ok=True)
            told = [str(options.schemas), json.dumps(MODELS)]
            return subprocess.run([python, "-c", WRITING, *told], check=False).returncode
        codes = [
            subprocess.run([python, "-c", JUDGING, str(job)], check=False).returncode
            for job in options.jobs
        ]
    return max(codes, default=0)


if __name__ == "__main__":
    sys.exit(main())
