"""Which strategy is better, by how much, and how sure are we.

Strategies are compared within blocks: the statistic is the log-ratio of a run to the baseline's
run of the same block. Student's t gives the interval, a sign-flip test the p value, Holm corrects
for the number of strategies, and the baseline's second arm (A/A) shows what no difference looks
like on this machine. A claim needs all of it: adjusted p below .05 and a difference beyond the
A/A interval, between arms that failed alike (``failures``).

When not to use: two folders from different times. ``compare_folders`` does what can be done there
and says what it cannot know.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import stats

from .failures import Failures, least
from .intervals import (
    ALPHA,
    CONFIDENCE,
    Interval,
    blocks_needed,
    bootstrap,
    holm,
    sign_flip,
    student,
)
from .load import AA_PREFIX, Results
from .summarize import Arm, summarize
from .validity import faults, reasons

COMPARED = ("mean_ms", "p50_ms", "p95_ms", "p99_ms")
UNKNOWN = Interval(math.nan, math.nan, math.nan)


@dataclass(frozen=True)
class Difference:
    """One strategy against the baseline in one metric."""

    label: str
    metric: str
    blocks: list[int]
    log_ratios: np.ndarray
    """One per block, in order: log(strategy / baseline)."""
    ratio: Interval
    """Strategy over baseline with 95 % bounds; below 1 is faster."""
    bootstrap: Interval | None
    """The ratio with bootstrap bounds, from 20 blocks on."""
    p: float
    p_holm: float

    @property
    def percent(self) -> Interval:
        """The ratio as a change in percent."""
        return self.ratio.percent


@dataclass(frozen=True)
class Comparison:
    """All strategies against the baseline."""

    baseline: str
    arms: list[Arm]
    differences: dict[tuple[str, str], Difference]
    """By (label, metric)."""
    floor: Difference | None
    """The A/A arm against its first appearance, mean latency."""
    blocks: int
    blocks_needed: int
    claims: bool = True
    """False for a smoke test, which shows that everything works, and for a result not valid: then
    there is no rank and no difference either."""
    not_valid: tuple[str, ...] = ()
    """Why the result is not valid, by run."""
    reasons: tuple[str, ...] = ()
    """The same, one line a reason."""

    def failing(self, arm: Arm) -> bool:
        """True when so many of its requests failed that its latencies are compared with nothing."""
        best = least([other.failures for other in self.arms])
        return arm.failures.too_many_beside(best)

    def interval(self, arm: Arm, metric: str) -> Interval:
        """An arm's mean over blocks; with bounds only where something may be claimed."""
        value = arm.interval(metric)
        return value if self.claims else Interval(value.point, math.nan, math.nan)

    def mean(self, label: str) -> Difference | None:
        """The difference in mean latency, None where there is none to be had."""
        return self.differences.get((label, "mean_ms"))

    @property
    def floor_log(self) -> float:
        """The largest log-ratio the A/A interval holds; NaN when it has no interval."""
        if self.floor is None or not self.floor.ratio.known:
            return math.nan
        return max(abs(math.log(self.floor.ratio.low)), abs(math.log(self.floor.ratio.high)))

    def claim(self, label: str) -> str:
        """faster, slower or "" for a strategy: what the data allow to say against the baseline."""
        difference = self.mean(label)
        if (
            not self.claims
            or difference is None
            or math.isnan(self.floor_log)
            or math.isnan(difference.p_holm)
        ):
            return ""
        size = float(difference.log_ratios.mean())
        if difference.p_holm >= ALPHA or abs(size) <= self.floor_log:
            return ""
        return "faster" if size < 0 else "slower"

    def ranking(self) -> list[Arm]:
        """Arms that may be ranked (no A/A, none flagged or failing), the fastest mean first; none
        when nothing is claimed."""
        if not self.claims:
            return []
        fit = [a for a in self.arms if not a.aa and not a.flagged and not self.failing(a)]
        fit = [a for a in fit if not math.isnan(a.interval("mean_ms").point)]
        return sorted(fit, key=lambda arm: arm.interval("mean_ms").point)


def compare(
    results: Results, baseline: str | None = None, arms: list[Arm] | None = None
) -> Comparison:
    """Paired comparison of every arm with the baseline (default: the first strategy named)."""
    arms = summarize(results) if arms is None else arms
    baseline = baseline or results.baseline
    best = least([arm.failures for arm in arms])
    by_label = {arm.label: arm for arm in arms if not arm.failures.too_many_beside(best)}
    base = by_label.get(baseline)
    others = [arm for arm in arms if not arm.aa and arm.label != baseline]
    differences: dict[tuple[str, str], Difference] = {}
    not_valid = faults(results.manifest)
    claims = results.manifest.get("preset") != "smoke" and not not_valid
    for metric in COMPARED if claims else ():
        fit = [arm for arm in others if base is not None and arm.label in by_label]
        found = [_difference(arm, base, metric) for arm in fit]
        found = [d for d in found if d is not None]
        for difference, adjusted in zip(found, holm([d.p for d in found]), strict=True):
            differences[difference.label, metric] = _with_holm(difference, adjusted)
    floor = _noise_floor(by_label) if claims else None
    blocks = len({run.block for arm in arms for run in arm.runs})
    return Comparison(
        baseline,
        arms,
        differences,
        floor,
        blocks,
        blocks_needed(len(others)),
        claims,
        not_valid,
        reasons(results.manifest),
    )


def leaders(results: Results, comparison: Comparison) -> tuple[list[Arm], Comparison | None]:
    """The fastest arm and those that cannot be told from it, with the comparison that says so.

    The fastest is chosen from the same data it is compared on, so a narrow lead over the next is
    a little easier to claim than the stated 5 %; against the baseline there is no such effect.
    """
    ranking = comparison.ranking()
    if not ranking:
        return [], None
    first = ranking[0]
    against = compare(results, first.label, comparison.arms)
    tied = [arm for arm in ranking[1:] if against.claim(arm.label) != "slower"]
    return [first, *tied], against


def _noise_floor(by_label: dict[str, Arm]) -> Difference | None:
    for label, arm in by_label.items():
        base = by_label.get(label.removeprefix(AA_PREFIX))
        if arm.aa and base is not None:
            return _difference(arm, base, "mean_ms")
    return None


def _difference(arm: Arm, base: Arm, metric: str) -> Difference | None:
    """None when either arm is flagged or they share no block with a value."""
    if arm.flagged or base.flagged:
        return None
    ours = {run.block: getattr(run, metric) for run in arm.runs}
    theirs = {run.block: getattr(run, metric) for run in base.runs}
    blocks = [b for b in sorted(ours) if b in theirs and ours[b] > 0 and theirs[b] > 0]
    if not blocks:
        return None
    logs = np.array([math.log(ours[b] / theirs[b]) for b in blocks])
    resampled = bootstrap(logs)
    return Difference(
        label=arm.label,
        metric=metric,
        blocks=blocks,
        log_ratios=logs,
        ratio=student(logs).exp(),
        bootstrap=resampled.exp() if resampled else None,
        p=sign_flip(logs) if len(blocks) > 1 else math.nan,
        p_holm=math.nan,
    )


def _with_holm(d: Difference, adjusted: float) -> Difference:
    return Difference(
        d.label, d.metric, d.blocks, d.log_ratios, d.ratio, d.bootstrap, d.p, adjusted
    )


@dataclass(frozen=True)
class FolderDifference:
    """One strategy in two result folders."""

    label: str
    mean_a: Interval
    mean_b: Interval
    ratio: Interval
    """B over A by Welch's t on log means."""
    ratio_to_baseline: Interval | None
    """(B's strategy / B's baseline) over the same in A: what is left when the machine as a whole
    got faster or slower. None for the baseline itself."""
    failed_a: Failures
    failed_b: Failures

    @property
    def failing(self) -> bool:
        """True when so many failed, or so unlike, that no latencies are compared."""
        return _unlike(self.failed_a, self.failed_b)


def compare_folders(a: Results, b: Results) -> tuple[list[FolderDifference], list[str]]:
    """Strategies in both folders, and the reasons why the two may not be comparable.

    Between two folders of which one is not valid there is no ratio, only the means of each.
    The folders were recorded at different times, so the runs are not paired: a machine that
    drifted between them looks like a difference. The ratio to each folder's own baseline is the
    safer number.
    """
    arms_a = {arm.label: arm for arm in summarize(a) if not arm.aa}
    arms_b = {arm.label: arm for arm in summarize(b) if not arm.aa}
    base = a.baseline if a.baseline == b.baseline else None
    invalid = [
        f"the {which} is not valid: {line}"
        for which, results in (("first", a), ("second", b))
        for line in reasons(results.manifest)
    ]
    found = []
    for label in [x for x in arms_a if x in arms_b]:
        one, two = arms_a[label], arms_b[label]
        unlike = bool(invalid) or _unlike(one.failures, two.failures)
        ratio = UNKNOWN if unlike else welch(_logs(one), _logs(two)).exp()
        to_base = None
        if base and label != base:
            base_one, base_two = arms_a[base], arms_b[base]
            unlike = unlike or _unlike(base_one.failures, base_two.failures)
            to_base = (
                UNKNOWN if unlike else welch(_logs_to(one, base_one), _logs_to(two, base_two)).exp()
            )
        found.append(
            FolderDifference(
                label,
                one.interval("mean_ms"),
                two.interval("mean_ms"),
                ratio,
                to_base,
                one.failures,
                two.failures,
            )
        )
    return found, invalid + differing_conditions(a.manifest, b.manifest)


def _unlike(a: Failures, b: Failures) -> bool:
    return a.too_many_beside(b) or b.too_many_beside(a)


def _logs(arm: Arm) -> np.ndarray:
    if arm.flagged:
        return np.array([])
    values = arm.values("mean_ms")
    return np.log(values[values > 0])


def _logs_to(arm: Arm, base: Arm) -> np.ndarray:
    difference = _difference(arm, base, "mean_ms")
    return np.array([]) if difference is None else difference.log_ratios


def welch(a: np.ndarray, b: np.ndarray) -> Interval:
    """mean(b) - mean(a) with Welch's 95 % bounds; no bounds with fewer than two values on a side."""
    if len(a) == 0 or len(b) == 0:
        return Interval(math.nan, math.nan, math.nan)
    point = float(b.mean() - a.mean())
    if len(a) < 2 or len(b) < 2:
        return Interval(point, math.nan, math.nan)
    bounds = stats.ttest_ind(b, a, equal_var=False).confidence_interval(CONFIDENCE)
    return Interval(point, float(bounds.low), float(bounds.high))


_CONDITIONS = (
    ("workload.sha256", "workload"),
    ("burn.mips_per_core", "pinned speed"),
    ("burn.fraction", "burn fraction"),
    ("backend.kind", "back end"),
    ("backend.workers", "workers"),
    ("protection", "protection"),
    ("stats_interval_ms", "stats interval"),
    ("ask_first_ms", "wait for reports asked for before a pick"),
    ("host.cpu_model", "processor"),
    ("host.cores", "host cores"),
    ("versions.git_commit", "commit"),
)


def differing_conditions(a: dict, b: dict) -> list[str]:
    """What the two manifests do not have in common, one sentence each."""
    differing = []
    for path, name in _CONDITIONS:
        one, two = _at(a, path), _at(b, path)
        if one != two:
            shown = [
                x if isinstance(x, str | int | float | None) else "another" for x in (one, two)
            ]
            differing.append(f"{name}: {shown[0]} in the first, {shown[1]} in the second")
    return differing


def _at(manifest: dict, path: str):
    value = manifest
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value
