"""The summary as text for a terminal and as JSON for programs."""

from __future__ import annotations

import math

from .compare import Comparison
from .intervals import Interval
from .load import Results
from .summarize import METRICS, Arm, Run
from .verdict import verdict


def as_json(results: Results, comparison: Comparison) -> dict:
    """Every number of the summary; unknown ones are null."""
    said = verdict(results, comparison)
    return {
        "schema": "plumbline.analysis/1",
        "folder": str(results.path),
        "complete": results.manifest.get("complete"),
        "emulated": results.manifest.get("burn", {}).get("emulated"),
        "baseline": comparison.baseline,
        "blocks": comparison.blocks,
        "blocks_needed": comparison.blocks_needed,
        "verdict": {
            "claim": said.claim,
            "headline": said.headline,
            "sure": said.sure,
            "further": said.further,
        },
        "not_valid": list(comparison.not_valid),
        "not_valid_reasons": list(comparison.reasons),
        "noise_floor": _difference(comparison.floor) if comparison.floor else None,
        "strategies": [_arm(arm, comparison) for arm in comparison.arms],
        "runs": [run_json(run) for arm in comparison.arms for run in arm.runs],
        "left_out": results.left_out,
    }


def run_json(run: Run) -> dict:
    """One run, flat; an unstable run keeps its numbers here, where nobody ranks them."""
    numbers = {name: _number(getattr(run, name)) for name in METRICS}
    return {
        "run_id": run.run_id,
        "block": run.block,
        "label": run.label,
        "rows": run.rows,
        "warmup_rows": run.warmup_rows,
        **run.outcomes,
        "reasons": dict(run.reasons),
        **(dict.fromkeys(METRICS) if run.verdict.flagged else numbers),
        "shares": run.shares,
        "lateness_p50_ms": _number(run.lateness_p50_ms),
        "lateness_p99_ms": _number(run.lateness_p99_ms),
        "lateness_max_ms": _number(run.lateness_max_ms),
        "late": run.late,
        "stability": run.verdict.word,
        "stability_reasons": run.verdict.reasons,
    }


def as_text(results: Results, comparison: Comparison) -> str:
    """The table and the verdict, as they fit a terminal."""
    head = [
        "",
        "strategy",
        "mean ms",
        "vs baseline",
        "p50",
        "p95",
        "p99",
        "MI/ms",
        "req/s",
        "shares",
        "not ok",
    ]
    ranking = comparison.ranking()
    ordered = ranking + [arm for arm in comparison.arms if arm not in ranking]
    lines = [head] + [_cells(arm, comparison, ranking, results.workers) for arm in ordered]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    table = "\n".join(
        "  ".join(
            cell.ljust(w) if i in (1, 9) else cell.rjust(w)
            for i, (cell, w) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    )
    said = verdict(results, comparison)
    stamp = "emulated: " if results.manifest.get("burn", {}).get("emulated") else ""
    tail = [f"{stamp}{said.headline}.", said.sure, *said.further]
    if comparison.not_valid:
        # Reasons come before figures that must not be read as a ranking.
        return "\n".join([*[text for text in tail if text], "", table])
    if not results.manifest:
        tail.append(
            "Rows without a manifest: whether they are whole, and on what they were recorded, is not known."
        )
    if results.manifest and not results.manifest["complete"]:
        tail.append("The bench is incomplete: only finished runs are counted.")
    return "\n".join([table, "", *[text for text in tail if text]])


def interval_json(value: Interval) -> dict:
    """Point and bounds; null where there is none."""
    return {"point": _number(value.point), "low": _number(value.low), "high": _number(value.high)}


def _cells(arm: Arm, comparison: Comparison, ranking: list[Arm], workers: list[str]) -> list[str]:
    rank = str(ranking.index(arm) + 1) if arm in ranking else ""
    shares = arm.shares()
    shown = " ".join(f"{name} {shares.get(name, 0) * 100:.1f}" for name in workers)
    bad = str(arm.rows - arm.outcome_total("ok"))
    if arm.flagged:
        return [rank, arm.label, "unstable", "-", "-", "-", "-", "-", "-", shown, bad]
    difference = comparison.floor if arm.aa else comparison.mean(arm.label)
    if comparison.failing(arm):
        change = "failed: not ranked"
    elif not comparison.claims:
        change = "-"
    elif arm.label == comparison.baseline:
        change = "baseline"
    elif difference is None:
        change = "-"
    else:
        p = difference.percent
        change = f"{p.point:+.1f} %" + (f" ({p.low:+.1f} .. {p.high:+.1f})" if p.known else "")
    mean = comparison.interval(arm, "mean_ms")
    text = f"{mean.point:.2f}" + (f" ± {mean.half_width:.2f}" if mean.known else "")
    plain = [f"{arm.interval(m).point:.{d}f}" for m, d in (("p50_ms", 1), ("p95_ms", 1), ("p99_ms", 1), ("throughput_mi_per_ms", 2), ("completed_rps", 1))]  # fmt: skip
    return [rank, arm.label, text, change, *plain, shown, bad]


def _arm(arm: Arm, comparison: Comparison) -> dict:
    difference = comparison.floor if arm.aa else comparison.mean(arm.label)
    ranking = comparison.ranking()
    return {
        "label": arm.label,
        "rank": ranking.index(arm) + 1 if arm in ranking else None,
        "runs": len(arm.runs),
        "unstable": arm.flagged,
        "failed_share": arm.failures.share,
        "failing": comparison.failing(arm),
        "late": arm.late,
        **{name: interval_json(arm.interval(name)) for name in METRICS},
        "shares": arm.shares(),
        "against_baseline": _difference(difference) if difference else None,
        "claim": comparison.claim(arm.label) or None if not arm.aa else None,
    }


def _difference(d) -> dict:
    return {
        "metric": d.metric,
        "blocks": d.blocks,
        "log_ratios": d.log_ratios.tolist(),
        "ratio": interval_json(d.ratio),
        "bootstrap_ratio": interval_json(d.bootstrap) if d.bootstrap else None,
        "p": _number(d.p),
        "p_holm": _number(d.p_holm),
    }


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
