"""Did a run keep up with what was offered to it? A run that did not has no mean and no rank.

Verdict on recorded rows, in the window after the first tenth of the time (the twin applies the
same rule to its own event stream):

(a) the work routed to some worker is at least what that worker can do in the window;
(b) the number in the system over 20 equal slices rises: slope with t > 3.61, and the last five
    slices hold at least 1.5 times what the first five hold.

Both: *unstable*. Neither: *stable*. One: *inconclusive*. A simulation would run longer; a recorded
run cannot, so an inconclusive one is judged by two more signs: latency rises significantly over
the last half, or requests were sent that never got an answer. With either it counts as
*unstable*, without as *inconclusive*, which is shown but keeps its mean.

Cost: a sort of the rows. When not to use: below some 200 requests nothing can be seen in slices.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pandas as pd
from scipy import stats

SLICES = 20
SLOPE_T = 3.61
"""Two-sided p of .002 at 18 degrees of freedom: one false alarm in a thousand upward."""
GROWTH = 1.5
SKIPPED_SHARE = 0.1
MIN_ROWS = 200


@dataclass(frozen=True)
class Verdict:
    """What was found about one run."""

    word: str
    """stable, inconclusive, unstable, or unknown (too few rows)."""
    reasons: list[str] = field(default_factory=list)
    worker: str = ""
    """The worker with the highest routed load."""
    worker_load: float = float("nan")
    """Work routed to it over what it could do in the window; 1 = full."""

    @property
    def flagged(self) -> bool:
        """True when the run gets no mean and no rank."""
        return self.word == "unstable"


def judge(run: pd.DataFrame, mips_per_core: float | None) -> Verdict:
    """The verdict on one run's rows, warm-up included.

    ``mips_per_core`` is the calibrated speed of one core; without it sign (a) cannot be seen.
    """
    sent = run[run["sent_ns"].notna()]
    if len(sent) < MIN_ROWS:
        return Verdict("unknown", [f"{len(sent)} requests are too few to tell"])
    first, last = run["intended_ns"].min(), run["intended_ns"].max()
    start = first + SKIPPED_SHARE * (last - first)
    worker, load = highest_load(sent, start, last, mips_per_core)
    growth_t, growth = backlog_growth(sent, start, last)
    overload = load >= 1.0
    rising = growth_t > SLOPE_T and growth >= GROWTH
    reasons = []
    if overload:
        reasons.append(f"{worker} was sent {load:.2f} times what it can do")
    if rising:
        reasons.append(f"the number in the system grew {growth:.1f}-fold (t = {growth_t:.1f})")
    if overload != rising:
        reasons += _further_signs(sent, first, last)
    signs = len(reasons)
    word = "unstable" if signs >= 2 else "inconclusive" if signs == 1 else "stable"
    return Verdict(word, reasons, worker, load)


def highest_load(
    sent: pd.DataFrame, start_ns: float, end_ns: float, mips_per_core: float | None
) -> tuple[str, float]:
    """The worker whose routed work is the largest share of its own capacity, and that share."""
    if mips_per_core is None or end_ns <= start_ns:
        return "", float("nan")
    window = sent[
        (sent["intended_ns"] >= start_ns) & sent["container"].notna() & sent["cores"].notna()
    ]
    window = window[window["container"].astype(str) != ""]
    if window.empty:
        return "", float("nan")
    grouped = window.groupby(window["container"].astype(str))
    capacity_mi = grouped["cores"].max() * mips_per_core * (end_ns - start_ns) / 1e9
    load = grouped["task_size_mi"].sum() / capacity_mi
    return str(load.idxmax()), float(load.max())


def backlog_growth(sent: pd.DataFrame, start_ns: float, end_ns: float) -> tuple[float, float]:
    """t of the slope of the mean number in the system, and last five slices over first five.

    A request is in the system from its due time to its end; one whose end is unknown stays.
    """
    edges = np.linspace(start_ns, end_ns, SLICES + 1)
    begin = sent["intended_ns"].to_numpy(dtype=float)
    end = sent["done_ns"].fillna(np.inf).to_numpy()
    held = np.array(
        [
            np.clip(np.minimum(end, hi) - np.maximum(begin, lo), 0, None).sum() / (hi - lo)
            for lo, hi in pairwise(edges)
        ]
    )
    early = held[:5].mean()
    growth = held[-5:].mean() / early if early > 0 else float("inf")
    return slope_t(held), float(growth)


def slope_t(values: np.ndarray) -> float:
    """Student's t of the slope of equally spaced values; infinite for an exact line."""
    fit = stats.linregress(np.arange(len(values)), values)
    if fit.stderr == 0:
        return float(np.sign(fit.slope) * np.inf) if fit.slope else 0.0
    return float(fit.slope / fit.stderr)


def _further_signs(sent: pd.DataFrame, first_ns: float, last_ns: float) -> list[str]:
    signs = []
    middle = (first_ns + last_ns) / 2
    half = sent[(sent["intended_ns"] >= middle) & (sent["outcome"] == "ok")]
    if len(half) >= MIN_ROWS / 2:
        slices = np.linspace(middle, last_ns, SLICES + 1)
        place = np.digitize(half["intended_ns"], slices[1:-1])
        means = half.groupby(place)["latency_ms"].mean().to_numpy()
        t = slope_t(means) if len(means) > 2 else 0.0
        if t > SLOPE_T:
            signs.append(f"latency rises over the last half (t = {t:.1f})")
    unanswered = int(sent["outcome"].isin(["timeout", "cancelled"]).sum())
    if unanswered:
        signs.append(f"{unanswered} requests were sent and never answered")
    return signs
