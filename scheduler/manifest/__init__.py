"""Stage 1, manifest: files -> LoadedSweep.

YAML, JSON and TOML files become checked, frozen values, or one error that lists every
fault with file, line, field, expectation and nearest right name. ``sweep`` reads a sweep
file or the flags that stand for one; ``inputs`` reads all that it names, by way of
``selection``, ``condition`` and ``endpoints``; ``check`` holds each document against its
strict model.
"""

from scheduler.manifest.canary import CanaryInput
from scheduler.manifest.condition import LoadedCondition, load_condition
from scheduler.manifest.endpoints import (
    LoadedEndpoints,
    find_endpoint_file,
    load_endpoints,
    missing_keys,
    open_endpoints,
)
from scheduler.manifest.faults import FaultList, ManifestError, ManifestFault
from scheduler.manifest.inputs import SweepInputs, read_inputs
from scheduler.manifest.selection import ChosenTask, choose_tasks
from scheduler.manifest.sweep import (
    BUDGET_FLAGS,
    CanaryRule,
    ConditionUse,
    LoadedSweep,
    Overrides,
    Scoring,
    SweepBudget,
    SweepFile,
    load_sweep,
    sweep_from_flags,
)
from scheduler.manifest.task import load_task

__all__ = [
    "BUDGET_FLAGS",
    "CanaryInput",
    "CanaryRule",
    "ChosenTask",
    "ConditionUse",
    "FaultList",
    "LoadedCondition",
    "LoadedEndpoints",
    "LoadedSweep",
    "ManifestError",
    "ManifestFault",
    "Overrides",
    "Scoring",
    "SweepBudget",
    "SweepFile",
    "SweepInputs",
    "choose_tasks",
    "find_endpoint_file",
    "load_condition",
    "load_endpoints",
    "load_sweep",
    "load_task",
    "missing_keys",
    "open_endpoints",
    "read_inputs",
    "sweep_from_flags",
]
