"""Two ways of parting rows in training, validation and test: 70, 15 and 15 %.

A random split is what the paper presumably did. Neighboring rows share the window of the last
fifty latencies, so it leaks; the split by time does not, and both are reported.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .dataset import Dataset

SHARES = (0.70, 0.15)
"""Training and validation; the rest is the test."""

KINDS = ("random", "blocked")


@dataclass(frozen=True)
class Split:
    """Places of rows, ascending."""

    kind: str
    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray


def split(dataset: Dataset, kind: str, seed: int) -> Split:
    """``random``: a seeded permutation. ``blocked``: of each recording the first, next and last part."""
    if kind == "random":
        places = np.random.default_rng(seed).permutation(len(dataset.frame))
        return Split(kind, *(np.sort(part) for part in _cut(places)))
    recording = dataset.frame["recording"].to_numpy()
    parts = [_cut(np.flatnonzero(recording == r)) for r in np.unique(recording)]
    return Split("blocked", *(np.concatenate(part) for part in zip(*parts, strict=True)))


def _cut(places: np.ndarray) -> list[np.ndarray]:
    ends = np.round(np.cumsum(SHARES) * len(places)).astype(int)
    return np.split(places, ends)
