"""Intervals and tests over few paired blocks.

The unit is one run; the pairs are runs of one block. Student's t on log-ratios covers what it
promises from two blocks on; a percentile bootstrap over six to nine pairs covers only 87-90 %
instead of 95, so it is added from 20 blocks on, never in place of t.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import stats

CONFIDENCE = 0.95
ALPHA = 0.05
EXACT_BLOCKS = 16
"""Up to 2^16 sign patterns are walked; above that they are drawn."""
DRAWN_PATTERNS = 100_000
BOOTSTRAP_BLOCKS = 20
BOOTSTRAP_RESAMPLES = 10_000


@dataclass(frozen=True)
class Interval:
    """A point with its 95 % bounds; the bounds are NaN where one block cannot give any."""

    point: float
    low: float
    high: float

    @property
    def known(self) -> bool:
        """True when there are bounds."""
        return math.isfinite(self.low) and math.isfinite(self.high)

    @property
    def half_width(self) -> float:
        """Half of high - low."""
        return (self.high - self.low) / 2

    @property
    def percent(self) -> Interval:
        """A ratio as a change in percent."""
        return Interval(*((x - 1) * 100 for x in (self.point, self.low, self.high)))

    def exp(self) -> Interval:
        """The interval of the ratio, from one of a log-ratio."""
        return Interval(math.exp(self.point), math.exp(self.low), math.exp(self.high))


def student(values: np.ndarray, confidence: float = CONFIDENCE) -> Interval:
    """Mean with Student's t bounds; no bounds from fewer than two values."""
    values = np.asarray(values, dtype=float)
    mean = float(values.mean()) if len(values) else math.nan
    if len(values) < 2:
        return Interval(mean, math.nan, math.nan)
    spread = float(values.std(ddof=1)) / math.sqrt(len(values))
    reach = float(stats.t.ppf((1 + confidence) / 2, len(values) - 1)) * spread
    return Interval(mean, mean - reach, mean + reach)


def bootstrap(values: np.ndarray, seed: int = 0, confidence: float = CONFIDENCE) -> Interval | None:
    """Percentile bootstrap of the mean over blocks; None below ``BOOTSTRAP_BLOCKS``."""
    values = np.asarray(values, dtype=float)
    if len(values) < BOOTSTRAP_BLOCKS:
        return None
    rng = np.random.default_rng(seed)
    means = rng.choice(values, (BOOTSTRAP_RESAMPLES, len(values))).mean(axis=1)
    low, high = np.quantile(means, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(float(values.mean()), float(low), float(high))


def sign_flip(values: np.ndarray, seed: int = 0) -> float:
    """Two-sided p of the hypothesis that every difference is as likely to have the other sign.

    Exact over all 2^m patterns up to ``EXACT_BLOCKS`` blocks, so the smallest p is 2^(1-m); drawn
    above that, with the observed pattern counted. NaN without values.
    """
    values = np.asarray(values, dtype=float)
    m = len(values)
    if m == 0:
        return math.nan
    observed = abs(values.sum())
    # Equal up to rounding counts as equal: the mirrored pattern must never be missed.
    bound = observed - 1e-12 * max(np.abs(values).sum(), 1e-300)
    if m <= EXACT_BLOCKS:
        patterns = 1 - 2 * ((np.arange(2**m)[:, None] >> np.arange(m)) & 1)
        return float((np.abs(patterns @ values) >= bound).mean())
    rng = np.random.default_rng(seed)
    patterns = rng.integers(0, 2, (DRAWN_PATTERNS, m)) * 2 - 1
    return float((1 + (np.abs(patterns @ values) >= bound).sum()) / (1 + DRAWN_PATTERNS))


def holm(p_values: list[float]) -> list[float]:
    """Holm's step-down adjustment, in the given order; NaN stays NaN and is not counted."""
    known = [(p, place) for place, p in enumerate(p_values) if not math.isnan(p)]
    adjusted = [math.nan] * len(p_values)
    running = 0.0
    for rank, (p, place) in enumerate(sorted(known)):
        running = max(running, min(1.0, (len(known) - rank) * p))
        adjusted[place] = running
    return adjusted


def blocks_needed(comparisons: int) -> int:
    """Fewest blocks with which ``comparisons`` claims can all be made: 2^(1-m) <= .05/k, m >= 6."""
    return next(m for m in range(6, 64) if 2.0 ** (1 - m) <= ALPHA / max(1, comparisons))
