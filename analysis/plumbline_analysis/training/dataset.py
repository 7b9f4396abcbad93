"""From recorded rows to a training set: which rows count, and what the model may see of them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from ..load import load
from ..problem import Problem

CATEGORIES = ["method", "url"]
FIXED = ["cores", "memory_gb"]
AXES = {
    "polled": ("active", "mean50"),
    "piggyback": ("active", "mean50"),
    "live": ("active", "mean50"),
    "docker": ("cpu_percent", "memory_used_mib"),
}
"""The two run-time inputs of each kind of statistics."""

SOURCES = {
    "polled": ("active_requests", "mean_latency_ms_last_50"),
    "piggyback": ("active_requests", "mean_latency_ms_last_50"),
    "live": ("in_flight", "mean_latency_ms_last_50"),
    "docker": ("cpu_percent", "memory_mib"),
}
"""The columns of rows.csv they are read from. Missing ones read as 0, as they do at a pick."""

MIN_ROWS = 100
"""Fewer rows than this cannot be split in three and mean anything."""


@dataclass(frozen=True)
class Dataset:
    """Rows to learn from, in order of time within each recording.

    ``frame`` has the inputs, ``latency_ms``, ``recording`` (place of the file) and ``sent_ns``.
    """

    frame: pd.DataFrame
    statistics: str
    strategy: str
    loads: list[float]
    left_out: dict[str, int] = field(default_factory=dict)
    """Rows not used, by reason."""
    sources: list[str] = field(default_factory=list)

    @property
    def axes(self) -> tuple[str, str]:
        """Names of the two run-time inputs."""
        return AXES[self.statistics]

    @property
    def latency_ms(self) -> np.ndarray:
        """The target."""
        return self.frame["latency_ms"].to_numpy()

    @property
    def containers(self) -> list[tuple[float, float]]:
        """Distinct (cores, memory in GB), largest first."""
        shapes = {(float(c), float(m)) for c, m in self.frame[FIXED].to_numpy()}
        return sorted(shapes, reverse=True)

    @property
    def apis(self) -> list[tuple[str, str]]:
        """Distinct (method, URL), sorted."""
        return sorted(set(zip(self.frame["method"], self.frame["url"], strict=True)))

    @property
    def digest(self) -> str:
        """SHA-256 of what is learned from, in hex."""
        frame = self.frame[[*CATEGORIES, *FIXED, *self.axes, "latency_ms", "recording"]]
        return hashlib.sha256(frame.to_csv(index=False).encode()).hexdigest()


def read_dataset(
    paths: list[Path | str],
    statistics: str = "polled",
    strategy: str | None = None,
    limit: int | None = None,
    loads: list[float] | None = None,
) -> Dataset:
    """The ok rows after the warm-up of one strategy, of each recording the first ``limit``.

    ``strategy`` may be left out when a recording has only one (an ``aa:`` arm is another). Loads
    not given are taken from the manifests, where there are any.
    """
    if loads and len(loads) != len(paths):
        raise Problem(
            "--load", f"{len(loads)} given for {len(paths)} recordings", next_step="name one each"
        )
    frames, found, left_out, strategies = [], [], {}, []
    for place, path in enumerate(paths):
        results = load(path)
        label = strategy or _only_strategy(path, results.labels)
        if label not in results.labels:
            raise Problem(
                str(path),
                f"known: {', '.join(results.labels)}",
                field="strategy",
                value=label,
                next_step="name one that was recorded",
            )
        strategies.append(label)
        frame = _useful(path, results.rows[results.rows["strategy"] == label], statistics, left_out)
        if limit is not None:
            left_out["beyond the limit"] = left_out.get("beyond the limit", 0) + max(
                0, len(frame) - limit
            )
            frame = frame.iloc[:limit]
        frames.append(frame.assign(recording=place))
        known = results.manifest.get("burn", {}).get("load")
        found.append(loads[place] if loads else known)
    frame = pd.concat(frames, ignore_index=True)
    if len(frame) < MIN_ROWS:
        raise Problem(
            ", ".join(str(p) for p in paths),
            f"{len(frame)} rows to learn from (allowed: at least {MIN_ROWS})",
            next_step="record more, or name another --strategy",
        )
    return Dataset(
        frame=frame,
        statistics=statistics,
        strategy=", ".join(dict.fromkeys(strategies)),
        loads=[] if None in found else [float(x) for x in found],
        left_out={reason: n for reason, n in left_out.items() if n},
        sources=[str(path) for path in paths],
    )


def _only_strategy(path: Path | str, labels: list[str]) -> str:
    if len(labels) == 1:
        return labels[0]
    raise Problem(
        str(path),
        f"has {len(labels)} strategies: {', '.join(labels)}",
        next_step="name one with --strategy",
    )


def _useful(
    path: Path | str, rows: pd.DataFrame, statistics: str, left_out: dict[str, int]
) -> pd.DataFrame:
    """The inputs and the target of rows that have them, in order of time."""
    reasons = {
        "warm-up": rows["warmup"],
        "not ok": rows["outcome"] != "ok",
        "latency of 0": rows["latency_ms"] <= 0,
        "container unknown": rows["cores"].isna() | rows["memory_gb"].isna(),
    }
    keep = pd.Series(True, index=rows.index)
    for reason, bad in reasons.items():
        left_out[reason] = left_out.get(reason, 0) + int((keep & bad).sum())
        keep &= ~bad
    rows = rows[keep]
    first, second = SOURCES[statistics]
    if len(rows) and rows[first].isna().all():
        raise Problem(
            str(path),
            f"no row has it, so there are no {statistics} statistics",
            field=first,
            next_step="choose another --statistics",
        )
    run_order = {run: i for i, run in enumerate(dict.fromkeys(rows["run_id"].astype(str)))}
    order = np.lexsort((rows["sent_ns"], rows["run_id"].astype(str).map(run_order)))
    rows = rows.iloc[order]
    axes = AXES[statistics]
    # Lists, not arrays: text columns stay what CatBoost reads, Python strings.
    return pd.DataFrame(
        {
            "method": pd.Series([str(x) for x in rows["method"]], dtype=object),
            "url": pd.Series([str(x).partition("?")[0] for x in rows["url"]], dtype=object),
            "cores": rows["cores"].to_numpy(float),
            "memory_gb": rows["memory_gb"].to_numpy(float),
            axes[0]: rows[first].fillna(0.0).to_numpy(float),
            axes[1]: rows[second].fillna(0.0).to_numpy(float),
            "latency_ms": rows["latency_ms"].to_numpy(float),
            "sent_ns": rows["sent_ns"].to_numpy(float),
        }
    )
