"""Recomputes every number of a ``summary.json`` from the raw records, by other means.

    python tests/scheduler/report/recount.py STORE_FOLDER SWEEP

It reads lock, ``result.json`` and ``try.json`` of a ``file://`` store with the standard library
alone, imports nothing of Apiary, and prints what differs. The exit code is 1 if anything does.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import statistics
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

Json = dict[str, Any]
Z = statistics.NormalDist().inv_cdf(0.975)
WHOLE, ONCE = {"provider", "harness"}, {"task", "unclassified"}
TOKENS = ("input", "cached_input", "cache_write", "output", "reasoning")
COUNTED = ["calls", "unknown_cost_calls", *(f"{kind}_tokens" for kind in TOKENS)]
EXPECTED = {"oracle": "pass", "nop": "fail", "solver": "pass"}


def recount(store: Path, sweep: str) -> Json:
    """What ``summary.json`` must say."""
    root = store / "sweeps" / sweep
    numbered = sorted(root.glob("lock-*.json"), key=lambda path: int(path.stem[5:]))
    locks = [json.loads(path.read_bytes()) for path in numbered]
    lock = locks[-1]
    results = {r["attempt"]: r for r in _load(root.glob("attempts/*/*/result.json"))}
    tries: dict[str, dict[str, Json]] = {}
    for record in [*_load(root.glob("tries/*/*/*/try.json")), *results.values()]:
        tries.setdefault(record["attempt"], {}).setdefault(record["try"], record)
    fresh: dict[str, int] = {}
    for act in _load(root.glob("operators/*.json")):
        for name in act["attempts"]:
            fresh[name] = max(fresh.get(name, 0), act["generation"])
    cells: list[Json] = []
    old: dict[str, Json] = {}
    for each in [*locks, lock]:
        for task, under in itertools.product(each["tasks"], each["conditions"]):
            cell = _hash(under["digest"], task["digest"])[:16]
            attempts = []
            for index in range(each["attempts"].get(cell, 0)):
                name = _hash(sweep, under["digest"], task["digest"], str(index))[:32]
                known = sorted(tries.get(name, {}).values(), key=lambda r: tuple(r["epoch"]))
                spent = _spent_tries(known, fresh.get(name, 0), lock["limits"]["max_tries"])
                attempts.append(
                    {
                        "id": name,
                        "tries": known,
                        "result": results.get(name),
                        "open": name not in results and not spent,
                    }
                )
            if attempts:
                old[cell] = {"cell": cell, "task": task, "under": under, "attempts": attempts}
    for task, under in itertools.product(lock["tasks"], lock["conditions"]):
        cell = _hash(under["digest"], task["digest"])[:16]
        if lock["attempts"].get(cell, 0):
            cells.append(old.pop(cell))
    tried = [c for c in old.values() if any(a["tries"] for a in c["attempts"])]
    rule, gate = lock["scoring"]["rule"], lock["scoring"]["coverage_gate"]
    scored = [c for c in cells if c["under"].get("canary") is None]
    canaries = [c for c in cells if c["under"].get("canary") is not None]
    digests = list(dict.fromkeys(c["under"]["digest"] for c in scored))
    unrun = sum(not a["tries"] for c in cells for a in c["attempts"])
    planned = sum(len(c["attempts"]) for c in cells)
    notes = [] if planned else ["the sweep plans no attempt"]
    notes += [f"{unrun} of {planned} attempts have not been tried yet"] if unrun else []
    return {
        "schema_version": 2,
        "sweep": sweep,
        "rule": rule,
        "coverage_gate": gate,
        "conditions": [
            _condition([c for c in scored if c["under"]["digest"] == digest], rule, gate)
            for digest in digests
        ],
        "cells": [_cell(c) for c in scored],
        "canary_cells": [_cell(c) for c in canaries],
        "canaries": _canaries(canaries),
        "superseded": [_cell(c) for c in tried],
        "causes": _causes(cells),
        "notes": notes,
    }


def differences(wanted: Any, found: Any, place: str = "") -> Iterator[str]:
    """Where two documents differ; numbers may by a billionth."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        for key in wanted.keys() | found.keys():
            if key not in wanted or key not in found:
                yield f"{place}.{key}: only in {'the recount' if key in wanted else 'the summary'}"
            else:
                yield from differences(wanted[key], found[key], f"{place}.{key}")
    elif isinstance(wanted, list) and isinstance(found, list):
        if len(wanted) != len(found):
            yield f"{place}: {len(wanted)} rows recounted, {len(found)} in the summary"
        for row, pair in enumerate(zip(wanted, found, strict=False)):
            yield from differences(*pair, f"{place}[{row}]")
    elif isinstance(wanted, float) and isinstance(found, int | float):
        if not math.isclose(wanted, found, rel_tol=1e-6, abs_tol=1e-9):
            yield f"{place}: {wanted!r} recounted, {found!r} in the summary"
    elif wanted != found:
        yield f"{place}: {wanted!r} recounted, {found!r} in the summary"


def _load(paths: Any) -> list[Json]:
    return [json.loads(path.read_bytes()) for path in sorted(paths)]


def _hash(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _spent_tries(known: Sequence[Json], fresh: int, most: int) -> bool:
    counted = [
        r
        for r in known
        if r["epoch"][0] >= fresh and not (r.get("probe") and r["blame"] == "provider")
    ]
    once = sum(r["blame"] in ONCE for r in counted)
    return once >= 2 or once + sum(r["blame"] in WHOLE for r in counted) >= most


def _rates(attempts: Sequence[Json]) -> Json:
    verdicts = [a["result"]["verdict"] for a in attempts if a["result"]]
    passed, planned = verdicts.count("pass"), len(attempts)
    records = [r for a in attempts for r in a["tries"]]
    waiting = sum(a["open"] for a in attempts)
    return {
        "planned": planned,
        "passed": passed,
        "failed": verdicts.count("fail"),
        "invalid": planned - len(verdicts) - waiting,
        "open": waiting,
        "tries": len(records),
        "invalid_tries": sum(r["verdict"] == "invalid" for r in records),
        "coverage": len(verdicts) / planned,
        "strict": passed / planned,
        "valid_only": passed / len(verdicts) if verdicts else None,
        "low": passed / planned,
        "high": 1 - verdicts.count("fail") / planned,
    }


def _cell(cell: Json) -> Json:
    counts = _rates(cell["attempts"])
    results = [a["result"] for a in cell["attempts"] if a["result"]]
    lost = Counter(n for r in results for n, value in r["dimensions"].items() if value < 1)
    return {
        "cell": cell["cell"],
        "condition": cell["under"]["manifest"]["condition"],
        "condition_digest": cell["under"]["digest"],
        "task": cell["task"]["config"]["task"]["name"],
        "task_digest": cell["task"]["digest"],
        "layer": _layer(cell),
        "rates": counts,
        "interval": _wilson(counts["passed"], len(results)) if results else None,
        "mean_reward": _reward(cell),
        "lost_dimensions": dict(lost),
        "spent": _spent([cell]),
    }


def _layer(cell: Json) -> str:
    return str(cell["task"]["config"]["metadata"]["evaluation_layer"])


def _reward(cell: Json) -> float | None:
    found = [a["result"]["reward"] for a in cell["attempts"] if a["result"]]
    found = [reward for reward in found if reward is not None]
    return statistics.fmean(found) if found else None


def _spent(cells: Sequence[Json]) -> Json:
    records = [r for c in cells for a in c["attempts"] for r in a["tries"]]
    made: Json = {name: sum(r["usage"].get(name, 0) for r in records) for name in COUNTED}
    for name in ("cost_usd", "uncached_cost_usd"):
        made[name] = math.fsum(r["usage"].get(name, 0.0) for r in records)
    made["trial_seconds"] = math.fsum(s for r in records for s in r["phase_seconds"].values())
    return made


def _condition(cells: Sequence[Json], rule: str, gate: float) -> Json:
    attempts = [a for c in cells for a in c["attempts"]]
    counts = _rates(attempts)
    tasks = [c for c in cells if _layer(c) == "workflow"]
    withheld = _withheld(cells, tasks, gate)
    workflow = _workflow(tasks, rule, bool(withheld)) if tasks else None
    return {
        "condition": cells[0]["under"]["manifest"]["condition"],
        "digest": cells[0]["under"]["digest"],
        "rates": counts,
        "headline": not withheld,
        "withheld": withheld,
        "figure": None if withheld or workflow is None else workflow[rule],
        "workflow": workflow,
        "spent": _spent(cells),
    }


def _withheld(cells: Sequence[Json], tasks: Sequence[Json], gate: float) -> str:
    for some, of in ((cells, ""), (tasks, " of the workflow tasks")):
        if some:
            coverage = _rates([a for c in some for a in c["attempts"]])["coverage"]
            if coverage < gate:
                return f"coverage{of} {coverage:.1%} is below the gate {gate:.1%}"
    for cell in cells:
        if not any(a["result"] for a in cell["attempts"]):
            return f"task {cell['task']['config']['task']['name']} has no valid attempt"
    return ""


def _workflow(cells: Sequence[Json], rule: str, withheld: bool) -> Json:
    rows = [_rates(c["attempts"]) for c in cells]
    valid = [(r["passed"], r["passed"] + r["failed"]) for r in rows if r["passed"] + r["failed"]]
    counted = [(r["passed"], r["planned"]) for r in rows] if rule == "strict" else valid
    rewards = [reward for c in cells if (reward := _reward(c)) is not None]
    low = _clustered([(r["passed"], r["planned"]) for r in rows])
    high = _clustered([(r["planned"] - r["failed"], r["planned"]) for r in rows])
    ks = []
    for k in range(1, max((n for _, n in valid), default=0) + 1):
        carrying = [(x, n) for x, n in valid if n >= k]
        ks.append(
            {
                "k": k,
                "tasks": len(carrying),
                "pass_at": statistics.fmean(1 - _all_of(n - x, n, k) for x, n in carrying),
                "pass_all": statistics.fmean(_all_of(x, n, k) for x, n in carrying),
            }
        )
    return {
        "tasks": len(cells),
        "tasks_valid": len(valid),
        "strict": statistics.fmean(r["strict"] for r in rows),
        "valid_only": statistics.fmean(x / n for x, n in valid) if valid else None,
        "low": statistics.fmean(r["low"] for r in rows),
        "high": statistics.fmean(r["high"] for r in rows),
        "interval": None if withheld else _clustered(counted),
        "outer": {"low": low["low"], "high": high["high"], "method": high["method"]},
        "mean_reward": statistics.fmean(rewards) if rewards else None,
        "detectable": _detectable(counted),
        "k": [] if withheld else ks,
    }


def _all_of(good: int, of: int, k: int) -> float:
    """The chance that k different ones of ``of`` are all good: a product, no binomials."""
    return math.prod((good - i) / (of - i) for i in range(k))


def _wilson(passes: float, trials: float, z: float = Z, method: str = "wilson") -> Json:
    """Both roots of (p̂ − p)² = z² p (1 − p) / n, the definition of Wilson's interval."""
    rate = passes / trials
    a, b, c = 1 + z * z / trials, -(2 * rate + z * z / trials), rate * rate
    root = math.sqrt(max(0.0, b * b - 4 * a * c))
    low, high = (-b - root) / (2 * a), (-b + root) / (2 * a)
    return {"low": max(0.0, low), "high": min(1.0, high), "method": method}


def _clustered(tasks: Sequence[tuple[int, int]]) -> Json:
    if len(tasks) == 1 or {n for _, n in tasks} == {1}:
        return _wilson(sum(x for x, _ in tasks), sum(n for _, n in tasks))
    count, rates = len(tasks), [x / n for x, n in tasks]
    mean = statistics.fmean(rates)
    most, single = mean * (1 - mean), statistics.fmean(1 / n for _, n in tasks)
    if most < 1e-15:
        return _wilson(mean * count, count, method="clustered")
    # Steadied by half a task of the largest spread.
    spread = (statistics.variance(rates) * (count - 1) + 0.5 * most) / (count - 0.5)
    effective = min(max(count * most / spread, 1.0), count / single)
    share = max(0.0, 1 - most * single / spread)
    z = _t_quantile((count - 1) / share**2) if share else Z
    return _wilson(mean * effective, effective, z, "clustered")


def _t_quantile(freedom: float) -> float:
    """The 97.5 % point of Student's t, from its density by Simpson's rule and bisection."""
    if freedom > 1e6:
        return Z
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2))
    scale /= math.sqrt(freedom * math.pi)

    def density(t: float) -> float:
        return scale * (1 + t * t / freedom) ** (-(freedom + 1) / 2)

    low, high = 0.0, 20.0
    while high - low > 1e-10:
        middle = (low + high) / 2
        low, high = (middle, high) if _simpson(density, 0, middle) < 0.475 else (low, middle)
    return low


def _detectable(tasks: Sequence[tuple[int, int]]) -> float | None:
    """80 % power at 5 %, two-sided, of a paired t test with the spread that these tasks tell."""
    several = [(x, n) for x, n in tasks if n > 1]
    if not several or len(tasks) < 2:
        return None
    within = statistics.fmean(statistics.variance([1] * x + [0] * (n - x)) for x, n in several)
    spread = math.sqrt(0.1**2 + 2 * within * statistics.fmean(1 / n for _, n in tasks))
    freedom = len(tasks) - 1
    critical = _t_quantile(freedom)
    normal = statistics.NormalDist()

    def power(effect: float) -> float:
        shift = effect * math.sqrt(len(tasks))

        def beyond(s: float) -> float:
            """The chance at one value of s, the sample's share of the true spread."""
            weight = 2 * (freedom / 2) ** (freedom / 2) / math.gamma(freedom / 2)
            weight *= s ** (freedom - 1) * math.exp(-freedom * s * s / 2)
            upper = 1 - normal.cdf(critical * s - shift)
            return weight * (upper + normal.cdf(-critical * s - shift))

        return _simpson(beyond, 0, 8)

    low, high = 0.0, 20.0
    while high - low > 1e-8:
        middle = (low + high) / 2
        low, high = (middle, high) if power(middle) < 0.8 else (low, middle)
    return low * spread


def _simpson(f: Any, a: float, b: float, steps: int = 600) -> float:
    width = (b - a) / steps
    inner = sum((4 if i % 2 else 2) * f(a + i * width) for i in range(1, steps))
    return float((f(a) + inner + f(b)) * width / 3)


def _canaries(cells: Sequence[Json]) -> list[Json]:
    kinds = [k for k in EXPECTED if any(c["under"]["canary"] == k for c in cells)]
    rows = [_canary(k, [c for c in cells if c["under"]["canary"] == k]) for k in kinds]
    return [*rows, _canary("all", cells)] if rows else []


def _canary(kind: str, cells: Sequence[Json]) -> Json:
    attempts = [(c["under"]["canary"], a) for c in cells for a in c["attempts"]]
    judged = [r for _, a in attempts for r in a["tries"] if r["blame"] != "operator"]
    broken = sum(r["verdict"] == "invalid" for r in judged)
    valid = [(k, a["result"]["verdict"]) for k, a in attempts if a["result"]]
    odd = sum(verdict != EXPECTED[k] for k, verdict in valid)
    return {
        "kind": kind,
        "condition": "" if kind == "all" else cells[0]["under"]["manifest"]["condition"],
        "rates": _rates([a for _, a in attempts]),
        "judged_tries": len(judged),
        "error_tries": broken,
        "error_rate": broken / len(judged) if judged else None,
        "error_interval": _wilson(broken, len(judged)) if judged else None,
        "unexpected": odd,
        "noise_floor": odd / len(valid) if valid else None,
        "noise_interval": _wilson(odd, len(valid)) if valid else None,
    }


def _causes(cells: Sequence[Json]) -> list[Json]:
    rows: dict[tuple[str, ...], Json] = {}
    for cell in cells:
        expected = EXPECTED.get(cell["under"].get("canary"), "pass")
        for attempt in cell["attempts"]:
            for record in attempt["tries"]:
                if record["verdict"] == expected:
                    continue
                key = tuple(record[name] for name in ("condition", "task", "blame", "cause"))
                row = rows.setdefault(
                    key,
                    {
                        **dict(zip(("condition", "task", "blame", "cause"), key, strict=True)),
                        "tries": 0,
                        "example": attempt["id"],
                    },
                )
                row["tries"] += 1
    return sorted(rows.values(), key=lambda row: -row["tries"])


def main(arguments: Sequence[str]) -> int:
    """Compares a store's ``summary.json`` with the recount."""
    store, sweep = Path(arguments[0]), arguments[1]
    found = json.loads((store / "sweeps" / sweep / "report" / "summary.json").read_bytes())
    lines = list(differences(recount(store, sweep), found))
    for line in lines:
        sys.stdout.write(f"{line}\n")
    attempts = sum(c["rates"]["planned"] for c in (*found["cells"], *found["canary_cells"]))
    sys.stdout.write(f"{attempts} attempts recounted, {len(lines)} differences\n")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
