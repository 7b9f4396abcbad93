"""One line per run: latency, throughput, shares, outcomes. The warm-up is left out of all of them.

Latency counts from the time a request was due, over ok rows only; the shares of the other
outcomes stand beside it. Percentiles are those of the sorted latencies, linearly interpolated
(``numpy.quantile``'s default). Throughput is sum(MI)/sum(latency), the paper's measure, in MI/ms:
the work of a request for each ms it took, no rate at which work was done. That rate is completed
requests per second; it stands beside because the paper's text calls the first number so.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from .failures import Failures
from .intervals import Interval, student
from .load import Results, is_aa
from .rows import OUTCOMES
from .stability import Verdict, judge

LATE_FLOOR_MS = 1.0
LATE_GAP_SHARE = 0.1
HELD_BACK = ("never_sent:interrupted", "never_sent:aborted")
"""Column ``error`` of rows that were held back because the run was stopped: they are not failures."""
METRICS = ("mean_ms", "p50_ms", "p95_ms", "p99_ms", "throughput_mi_per_ms", "completed_rps")


@dataclass(frozen=True)
class Run:
    """One strategy replayed once."""

    run_id: str
    block: int
    label: str
    rows: int
    """Rows after the warm-up."""
    warmup_rows: int
    outcomes: dict[str, int]
    """Rows after the warm-up by outcome."""
    mean_ms: float
    p50_ms: float
    p95_ms: float
    p99_ms: float
    throughput_mi_per_ms: float
    completed_rps: float
    shares: dict[str, float]
    """Share of the dispatched requests by worker, warm-up left out."""
    lateness_p50_ms: float
    lateness_p99_ms: float
    lateness_max_ms: float
    late: bool
    """The generator was later than max(1 ms, a tenth of the mean gap) at its 99th percentile after the
    warm-up, or some request, warm-up included, could not be sent."""
    verdict: Verdict
    held_back: int = 0
    """Rows after the warm-up that were not sent because the run was stopped."""
    reasons: Counter[str] = field(default_factory=Counter)
    """Rows after the warm-up that were not answered well, by the column ``error``; those held back
    are left out."""


@dataclass(frozen=True)
class Arm:
    """All runs of one strategy."""

    label: str
    runs: list[Run]

    @property
    def flagged(self) -> bool:
        """True when any run is unstable: then the arm has no mean and no rank."""
        return any(run.verdict.flagged for run in self.runs)

    @property
    def late(self) -> bool:
        """True when the generator was late in any run."""
        return any(run.late for run in self.runs)

    @property
    def aa(self) -> bool:
        """True for the second appearance of the baseline."""
        return is_aa(self.label)

    def values(self, metric: str) -> np.ndarray:
        """The metric of each run, in block order."""
        return np.array([getattr(run, metric) for run in self.runs], dtype=float)

    def interval(self, metric: str) -> Interval:
        """Mean over blocks with its 95 % bounds; nothing for a flagged arm."""
        if self.flagged:
            return Interval(math.nan, math.nan, math.nan)
        values = self.values(metric)
        return student(values[~np.isnan(values)])

    def outcome_total(self, outcome: str) -> int:
        """Rows with this outcome over all runs."""
        return sum(run.outcomes[outcome] for run in self.runs)

    @property
    def failures(self) -> Failures:
        """Requests after the warm-up that were not answered well, over all runs."""
        tried = self.rows - sum(run.held_back for run in self.runs)
        return Failures(tried - self.outcome_total("ok"), tried)

    @property
    def reasons(self) -> Counter[str]:
        """Why requests failed, over all runs, by the column ``error``."""
        return sum((run.reasons for run in self.runs), Counter())

    @property
    def rows(self) -> int:
        """Rows after the warm-up over all runs."""
        return sum(run.rows for run in self.runs)

    def shares(self) -> dict[str, float]:
        """Mean over runs of each worker's share."""
        names = list(dict.fromkeys(name for run in self.runs for name in run.shares))
        return {n: float(np.mean([run.shares.get(n, 0.0) for run in self.runs])) for n in names}


def summarize(results: Results) -> list[Arm]:
    """Arms in the order of ``Results.labels``, each with its runs in block order."""
    arms = []
    groups = dict(tuple(results.rows.groupby("run_id", observed=True, sort=False)))
    by_label: dict[str, list[Run]] = {}
    for run_id, rows in groups.items():
        run = summarize_run(str(run_id), rows, results.mips_per_core, results.workers)
        by_label.setdefault(run.label, []).append(run)
    for label in results.labels:
        arms.append(Arm(label, sorted(by_label[label], key=lambda run: run.block)))
    return arms


def summarize_run(
    run_id: str,
    rows: pd.DataFrame,
    mips_per_core: float | None = None,
    workers: list[str] | None = None,
) -> Run:
    """The summary of the rows of one run."""
    measured = rows[~rows["warmup"]]
    ok = measured[measured["outcome"] == "ok"]
    latency = ok["latency_ms"].to_numpy(dtype=float)
    lateness = ((measured["sent_ns"] - measured["intended_ns"]) / 1e6).dropna().to_numpy()
    p50, p95, p99 = np.quantile(latency, [0.5, 0.95, 0.99]) if len(latency) else (math.nan,) * 3
    late_p50, late_p99 = np.quantile(lateness, [0.5, 0.99]) if len(lateness) else (math.nan,) * 2
    total_ms = latency.sum()
    return Run(
        run_id=run_id,
        block=int(rows["block"].iloc[0]),
        label=str(rows["strategy"].iloc[0]),
        rows=len(measured),
        warmup_rows=len(rows) - len(measured),
        outcomes={name: int((measured["outcome"] == name).sum()) for name in OUTCOMES},
        mean_ms=float(latency.mean()) if len(latency) else math.nan,
        p50_ms=float(p50),
        p95_ms=float(p95),
        p99_ms=float(p99),
        throughput_mi_per_ms=float(ok["task_size_mi"].sum() / total_ms)
        if total_ms > 0
        else math.nan,
        completed_rps=_completed_rps(measured, ok),
        shares=_shares(measured, workers or []),
        lateness_p50_ms=float(late_p50),
        lateness_p99_ms=float(late_p99),
        lateness_max_ms=float(lateness.max()) if len(lateness) else math.nan,
        late=bool(late_p99 > lateness_bound_ms(rows))
        or bool(((rows["outcome"] == "never_sent") & ~rows["error"].isin(HELD_BACK)).any()),
        verdict=judge(rows, mips_per_core),
        held_back=int(measured["error"].isin(HELD_BACK).sum()),
        reasons=_reasons(measured),
    )


def lateness_bound_ms(rows: pd.DataFrame) -> float:
    """max(1 ms, a tenth of the mean gap between due times)."""
    due = rows["intended_ns"]
    if len(due) < 2:
        return LATE_FLOOR_MS
    return max(LATE_FLOOR_MS, LATE_GAP_SHARE * (due.max() - due.min()) / (len(due) - 1) / 1e6)


def _completed_rps(measured: pd.DataFrame, ok: pd.DataFrame) -> float:
    """Ok answers per second between the first due time and the last end, warm-up left out."""
    if ok.empty:
        return 0.0
    span_ns = ok["done_ns"].max() - measured["intended_ns"].min()
    return float(len(ok) / span_ns * 1e9) if span_ns > 0 else math.nan


def _reasons(measured: pd.DataFrame) -> Counter[str]:
    bad = measured[(measured["outcome"] != "ok") & ~measured["error"].isin(HELD_BACK)]
    return Counter(str(reason) for reason in bad["error"])


def _shares(measured: pd.DataFrame, workers: list[str]) -> dict[str, float]:
    chosen = measured["container"].dropna().astype(str)
    chosen = chosen[chosen != ""]
    if chosen.empty:
        return {}
    counts = chosen.value_counts()
    names = workers + [name for name in sorted(counts.index) if name not in workers]
    return {name: float(counts.get(name, 0) / len(chosen)) for name in names}
