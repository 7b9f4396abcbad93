"""Do the numbers that the testbed wrote equal ours? Two programs, one set of rows.

``summary.json`` comes from Rust, this package is numpy and scipy; neither reads the other's
output to make its own. A difference above ``TOLERANCE`` is a defect in one of them.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

from .compare import COMPARED, Comparison
from .intervals import Interval
from .problem import Problem
from .rows import OUTCOMES
from .summarize import METRICS, Run

TOLERANCE = 1e-9
RUN_NUMBERS = (*METRICS, "lateness_p50_ms", "lateness_p99_ms")


def read_summary(path: Path) -> dict | None:
    """``summary.json`` of a folder, None when it has none."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except json.JSONDecodeError as error:
        raise Problem(f"{path}:{error.lineno}:{error.colno}", f"not JSON: {error.msg}") from error


def disagreements(summary: dict, comparison: Comparison) -> list[str]:
    """One sentence for each number that differs; empty when all agree.

    A field that ``summary.json`` does not carry is a disagreement too: a check that finds nothing
    to compare must not pass.
    """
    found: list[str] = []
    ours = {run.run_id: run for arm in comparison.arms for run in arm.runs}
    theirs = {run["run_id"]: run for run in summary["runs"]}
    if ours.keys() != theirs.keys():
        found.append(f"runs: {sorted(ours)} here, {sorted(theirs)} in summary.json")
    for run_id in ours.keys() & theirs.keys():
        found += _run(ours[run_id], theirs[run_id])
    strategies = {s["label"]: s for s in summary["strategies"]}
    for arm in comparison.arms:
        their = strategies.get(arm.label)
        if their is None:
            found.append(f"{arm.label}: missing from summary.json")
            continue
        found += _number(f"{arm.label} failed_share", arm.failures.share, their.get("failed_share"))
        if comparison.failing(arm) != their.get("failing"):
            found.append(
                f"{arm.label} failing: {comparison.failing(arm)} here, not in summary.json"
            )
        for metric in METRICS:
            found += _interval(f"{arm.label} {metric}", arm.interval(metric), their.get(metric))
        for metric in COMPARED:
            difference = comparison.differences.get((arm.label, metric))
            other = their["against_baseline"].get(metric)
            if (difference is None) != (other is None) and not arm.aa:
                found.append(f"{arm.label} {metric} against the baseline: on one side only")
            elif difference is not None:
                where = f"{arm.label} {metric} against the baseline"
                found += _interval(f"{where}, ratio", difference.ratio, other["ratio"])
                found += _number(f"{where}, p_holm", difference.p_holm, other["p_holm"])
    return found


def _run(ours: Run, theirs: dict) -> list[str]:
    found = []
    for name in RUN_NUMBERS:
        found += _number(f"{ours.run_id} {name}", getattr(ours, name), theirs.get(name))
    for name in OUTCOMES:
        found += _number(f"{ours.run_id} {name}", ours.outcomes[name], theirs["outcomes"].get(name))
    for name, share in ours.shares.items():
        found += _number(f"{ours.run_id} share of {name}", share, theirs["shares"].get(name, 0.0))
    if ours.late != theirs["late"]:
        found.append(f"{ours.run_id} late: {ours.late} here, not in summary.json")
    word = theirs["verdict"]["word"]
    if word != ours.verdict.word:
        found.append(f"{ours.run_id} stability: {ours.verdict.word} here, {word} in summary.json")
    return found


def _interval(where: str, ours: Interval, theirs: dict | None) -> list[str]:
    if theirs is None:
        return [f"{where}: missing from summary.json"]
    pairs = (("point", ours.point), ("low", ours.low), ("high", ours.high))
    return [
        text
        for name, value in pairs
        for text in _number(f"{where} {name}", value, theirs.get(name))
    ]


def _number(where: str, ours: float, theirs: float | None) -> list[str]:
    """JSON has no NaN: null stands for an unknown number on the other side."""
    unknown = not math.isfinite(ours)
    if unknown and theirs is None:
        return []
    if (
        unknown
        or theirs is None
        or not math.isclose(ours, theirs, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    ):
        return [f"{where}: {ours!r} here, {theirs!r} in summary.json"]
    return []
