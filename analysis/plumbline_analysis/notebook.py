"""The tables that the notebooks show: frames made from the same summaries as the report."""

from __future__ import annotations

import json
import math
from itertools import groupby

import matplotlib as mpl
import numpy as np
import pandas as pd

from .compare import COMPARED, Comparison, compare
from .figures import arm_name, signed
from .intervals import Interval
from .load import Results, is_aa
from .paper import is_workload, match
from .style import SETTINGS
from .verdict import counted, verdict

EVEN = 0.001
"""Coefficient of variation of gaps up to which they are called constant."""


def begin(results: Results) -> None:
    """Sets the figures' style and says which results these are, caveats first."""
    mpl.rcParams.update(SETTINGS)
    manifest = results.manifest
    burn = manifest["burn"]
    print(
        f"{manifest['name']}: {counted(len(results.rows), 'row')}, {counted(len(set(results.rows['run_id'])), 'run')}"
    )
    if "synthetic" in manifest.get("flags", []):
        print("synthetic: computed rows, nothing was measured")
    if burn["emulated"]:
        print(f"emulated: {burn['fraction'] * 100:.3g} % of the instructions really burned")
    if not manifest["complete"]:
        print("incomplete: only finished runs are here")
    print(f"command: {' '.join(manifest['command'])}")
    print(f"commit {manifest['versions'].get('git_commit')}, seed {manifest['seed']}")


def say(results: Results, comparison: Comparison) -> None:
    """The verdict in words."""
    said = verdict(results, comparison)
    print(f"{said.headline}.")
    for text in (said.sure, *said.further):
        if text:
            print(text)


def say_workload(results: Results) -> None:
    """What was replayed, as its rows show it and as its file says it was made."""
    run = _first_run(results)
    sizes = run.groupby("api_id", observed=True)["task_size_mi"]
    fixed = bool((sizes.nunique() == 1).all())
    gaps_ms = np.diff(np.sort(run["intended_ns"].to_numpy())) / 1e6
    known = "the paper's workload" if is_workload(results) else "not the paper's workload"
    print(f"{results.manifest['workload']['name']}, {known}:")
    print(
        f"{counted(sizes.ngroups, 'API')}, {run['task_size_mi'].min():g} to {run['task_size_mi'].max():g} MI; "
        + ("each has one size" if fixed else "sizes vary from request to request")
    )
    if len(gaps_ms):
        mean, variation = gaps_ms.mean(), gaps_ms.std() / gaps_ms.mean()
        even = f"one request every {mean:.4g} ms"
        uneven = f"gaps of {mean:.4g} ms on average, coefficient of variation {variation:.2f} (Poisson: 1)"
        print(even if variation < EVEN else uneven)
    recipe = results.path / "workload.json"
    if recipe.is_file():
        made = json.loads(recipe.read_text(encoding="utf-8")).get("generator") or {}
        print("made by: " + ", ".join(f"{key} {value}" for key, value in made.items()))


def task_size_table(results: Results) -> pd.DataFrame:
    """Sizes over APIs and over requests, MI."""
    run = _first_run(results)
    frame = pd.DataFrame(
        {
            "APIs": run.drop_duplicates("api_id")["task_size_mi"].describe(),
            "requests": run["task_size_mi"].describe(),
        }
    )
    return frame.round(1)


def pace_table(results: Results) -> pd.DataFrame:
    """Rate, gap, offered work and load of one run."""
    run = _first_run(results)
    due_ms = np.sort(run["intended_ns"].to_numpy()) / 1e6
    gap = float(np.diff(due_ms).mean())
    offered = float(run["task_size_mi"].mean()) / gap
    workers = results.manifest["backend"]["workers"]
    capacity = sum(w["cores"] for w in workers) * results.mips_per_core / 1000
    lines = [
        ("requests a run", len(run)),
        ("mean gap, ms", round(gap, 3)),
        ("offered work, MI/ms", round(offered, 2)),
        ("capacity of all cores, MI/ms", round(capacity, 2)),
        ("load", round(offered / capacity, 4)),
    ]
    return pd.DataFrame(lines, columns=["", "value"], dtype=object).set_index("")


def results_table(comparison: Comparison) -> pd.DataFrame:
    """Table 3 with intervals, rank, shares and outcomes."""
    ranking = comparison.ranking()
    ordered = ranking + [arm for arm in comparison.arms if arm not in ranking]
    lines = []
    for arm in ordered:
        lines.append(
            {
                "rank": str(ranking.index(arm) + 1) if arm in ranking else "",
                "strategy": arm_name(arm),
                "mean, ms": plus_minus(comparison.interval(arm, "mean_ms"), 2),
                "p50": plus_minus(comparison.interval(arm, "p50_ms"), 1),
                "p95": plus_minus(comparison.interval(arm, "p95_ms"), 1),
                "p99": plus_minus(comparison.interval(arm, "p99_ms"), 1),
                "ΣMI/Σlatency, MI/ms": plus_minus(
                    comparison.interval(arm, "throughput_mi_per_ms"), 3
                ),
                "completed/s": plus_minus(comparison.interval(arm, "completed_rps"), 1),
                "shares, %": " · ".join(f"{s * 100:.1f}" for s in arm.shares().values()),
                "not ok": arm.rows - arm.outcome_total("ok"),
                "stability": ", ".join(sorted({run.verdict.word for run in arm.runs})),
            }
        )
    return pd.DataFrame(lines).set_index("strategy")


def differences_table(comparison: Comparison) -> pd.DataFrame:
    """Every strategy against the baseline in every compared metric; the A/A arm last."""
    lines = []
    for arm in comparison.arms:
        for metric in COMPARED:
            d = comparison.differences.get((arm.label, metric))
            if d is not None:
                lines.append((arm.label, metric, *_change(d.percent), d.p, d.p_holm, len(d.blocks)))
    if comparison.floor is not None:
        d = comparison.floor
        lines.append((d.label, d.metric, *_change(d.percent), d.p, math.nan, len(d.blocks)))
    columns = ["strategy", "metric", "change", "95 % interval", "p", "p, Holm", "blocks"]
    return pd.DataFrame(lines, columns=columns).set_index(["strategy", "metric"]).round(4)


def paper_table(results: Results, comparison: Comparison) -> pd.DataFrame:
    """The paper's Table 3 beside ours, as ratios to round robin; no lines for another workload."""
    matched = comparison.arms if is_workload(results) else []
    arms = [(arm, match(arm.label)) for arm in matched if not arm.aa and match(arm.label)]
    rr = next((pair for pair in arms if pair[1].name == "RR"), None)
    to_rr = compare(results, rr[0].label, comparison.arms) if rr else None
    lines = []
    for arm, line in arms:
        d = to_rr.mean(arm.label) if to_rr else None
        ours = "1" if rr and arm is rr[0] else _ratio(d.ratio) if d else "-"
        lines.append(
            {
                "the paper": line.name,
                "here": arm.label,
                "its mean, ms": line.mean_ms,
                "our mean, ms": plus_minus(comparison.interval(arm, "mean_ms"), 2),
                "its MI/ms": line.throughput_mi_per_ms,
                "our MI/ms": plus_minus(comparison.interval(arm, "throughput_mi_per_ms"), 2),
                "its mean over RR's": f"{line.mean_ms / rr[1].mean_ms:.3f}" if rr else "-",
                "our mean over RR's": ours,
            }
        )
    columns = ["the paper"] if not lines else None
    return pd.DataFrame(lines, columns=columns).set_index("the paper")


def streak_table(results: Results) -> pd.DataFrame:
    """Mean and longest run of consecutive requests to one worker, and what chance would give."""
    lines = []
    for label in [x for x in results.labels if not is_aa(x)]:
        rows = results.rows[(results.rows["strategy"] == label) & results.rows["sent_ns"].notna()]
        streaks, shares = [], []
        for _, run in rows.groupby("run_id", observed=True):
            chosen = run.sort_values("intended_ns")["container"].dropna().astype(str)
            streaks += [len(list(group)) for _, group in groupby(chosen)]
            shares.append(chosen.value_counts(normalize=True))
        mean_shares = pd.concat(shares, axis=1).fillna(0).mean(axis=1)
        switching = float((mean_shares * (1 - mean_shares)).sum())
        lines.append(
            {
                "strategy": label,
                "mean streak": round(float(np.mean(streaks)), 2),
                "by chance": round(1 / switching, 2) if switching else math.inf,
                "longest": max(streaks),
            }
        )
    return pd.DataFrame(lines).set_index("strategy")


def plus_minus(value: Interval, digits: int) -> str:
    """``12.34 ± 0.05``; the point alone without an interval, a dash without a value."""
    if math.isnan(value.point):
        return "-"
    text = f"{value.point:.{digits}f}"
    return f"{text} ± {value.half_width:.{digits}f}" if value.known else text


def _ratio(value: Interval) -> str:
    text = f"{value.point:.3f}"
    return f"{text} ({value.low:.3f} to {value.high:.3f})" if value.known else text


def _change(percent: Interval) -> tuple[str, str]:
    bounds = f"{percent.low:+.2f} to {percent.high:+.2f}" if percent.known else "-"
    return signed(percent.point), bounds


def _first_run(results: Results) -> pd.DataFrame:
    return results.rows[results.rows["run_id"] == results.rows["run_id"].iloc[0]]
