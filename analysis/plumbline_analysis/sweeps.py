"""Paired comparison of strategies over the cells of a sweep.

A cell is a scenario; its runs under one seed see the same requests. The statistic is the
log-ratio of two strategies' mean latencies under the same seed, with Student's t over the seeds.
Gap closed is the share of the way from a baseline to an oracle,
``(base - x) / (base - oracle)`` on means over the seeds, with a delete-one jackknife.

When not to use: results with an unstable run. Such a run has no mean, and a comparison with it
is left out (None), never computed from the other seeds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from .intervals import CONFIDENCE, Interval, student
from .problem import Problem

NEEDED = ("strategy", "seed", "verdict", "mean_ms")
MAX_BYTES = 256 << 20
"""Largest result that is read; the largest sweep writes about a fifth of it."""


@dataclass(frozen=True)
class Sweep:
    """A result of ``twin sweep``: one row a run."""

    source: str
    runs: pd.DataFrame

    def cell(self, **where: object) -> Cell:
        """The runs whose columns have these values; refused when there are none."""
        kept = self.runs
        for column, value in where.items():
            if column not in kept:
                raise Problem(self.source, "no such column", field=column)
            kept = kept[kept[column] == value]
        if kept.empty:
            said = ", ".join(f"{column} = {value}" for column, value in where.items())
            raise Problem(self.source, f"no run has {said}")
        return Cell(self.source, kept)


@dataclass(frozen=True)
class Cell:
    """The runs of one scenario."""

    source: str
    runs: pd.DataFrame

    def means(self, strategy: str) -> pd.Series | None:
        """Mean latency in ms by seed; None where a run is unstable or there is none."""
        runs = self.runs[self.runs["strategy"] == strategy]
        if runs["seed"].duplicated().any():
            raise Problem(
                self.source,
                f"{strategy} has several runs of one seed in a cell",
                next_step="name more columns",
            )
        if runs.empty or runs["mean_ms"].isna().any():
            return None
        return runs.set_index("seed")["mean_ms"].sort_index()

    def mean(self, strategy: str) -> Interval | None:
        """Mean latency in ms over the seeds."""
        means = self.means(strategy)
        return None if means is None else student(means.to_numpy())

    def ratio(self, strategy: str, base: str) -> Interval | None:
        """Mean latency over that of ``base``, paired by seed; below 1 is faster."""
        paired = self._paired(strategy, base)
        if paired is None:
            return None
        ours, theirs = paired
        return student(np.log(ours / theirs)).exp()

    def gap_closed(self, strategy: str, base: str, oracle: str) -> Interval | None:
        """Share of the way from ``base`` to ``oracle``; None where the oracle is not faster."""
        paired = self._paired(strategy, base, oracle)
        if paired is None:
            return None
        ours, base_ms, oracle_ms = paired
        gains, gaps = base_ms - ours, base_ms - oracle_ms
        if gaps.sum() <= 0:
            return None
        point = float(gains.sum() / gaps.sum())
        n = len(gains)
        left_out = gaps.sum() - gaps
        if n < 2 or (left_out <= 0).any():
            return Interval(point, math.nan, math.nan)
        shares = (gains.sum() - gains) / left_out
        error = math.sqrt((n - 1) / n * float(((shares - shares.mean()) ** 2).sum()))
        reach = float(stats.t.ppf((1 + CONFIDENCE) / 2, n - 1)) * error
        return Interval(point, point - reach, point + reach)

    def _paired(self, *strategies: str) -> list[np.ndarray] | None:
        found = [self.means(strategy) for strategy in strategies]
        if any(means is None for means in found):
            return None
        seeds = [means.index for means in found]
        if not all(s.equals(seeds[0]) for s in seeds):
            raise Problem(
                self.source,
                f"{' and '.join(strategies)} ran under different seeds",
                next_step="run the sweep again",
            )
        return [means.to_numpy() for means in found]


def read_sweep(path: Path | str) -> Sweep:
    """Reads a result of ``twin sweep``; a file that is none is refused."""
    path = Path(path)
    if not path.is_file():
        raise Problem(
            str(path), "no such file", next_step="make findings writes those of the findings"
        )
    if path.stat().st_size > MAX_BYTES:
        raise Problem(str(path), f"larger than {MAX_BYTES} bytes")
    try:
        # A case may be called "no" or "none": only an empty field is missing.
        runs = pd.read_csv(
            path, keep_default_na=False, na_values={"mean_ms": [""]}, low_memory=False
        )
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise Problem(str(path), f"not a CSV file ({error})") from error
    missing = [column for column in NEEDED if column not in runs]
    if missing:
        raise Problem(
            str(path), f"no column {', '.join(missing)}", next_step="name a result of twin sweep"
        )
    means = pd.to_numeric(runs["mean_ms"], errors="coerce")
    wrong = (means.isna() & runs["mean_ms"].notna()) | (means <= 0) | np.isinf(means)
    if wrong.any():
        line = int(np.argmax(wrong)) + 2
        value = str(runs["mean_ms"].iloc[line - 2])
        raise Problem(f"{path}:{line}", "not a latency", field="mean_ms", value=value)
    runs["mean_ms"] = means
    return Sweep(str(path), runs)
