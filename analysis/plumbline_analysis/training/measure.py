"""How good is it: variance explained, calibration, importance, and order within a request.

R² is not what routing needs: most of the variance is between APIs, and the API is the same for all
candidates of a request. What counts is the order of the candidates, so that is measured too, when
the true costs of all candidates are known (a simulator knows them).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from catboost import EFstrType
from sklearn.metrics import r2_score

from ..problem import Problem
from .dataset import AXES, CATEGORIES, FIXED, SOURCES, Dataset
from .fit import Fitted
from .splits import Split

CLEAR_DIFFERENCE = 0.05
"""Pairs whose true costs differ by less than this share are left out."""

HIT = 0.01
"""A pick within this share of the least cost is a hit."""


def r2(actual: np.ndarray, predicted: np.ndarray) -> float | None:
    """Share of the variance explained; None where it is undefined."""
    if len(actual) < 2 or np.ptp(actual) == 0:
        return None
    return float(r2_score(actual, predicted))


def r2_of(fitted: Fitted, dataset: Dataset, split: Split) -> dict[str, float | None]:
    """Of the validation and the test part, in ms."""
    out = {}
    for name, places in (("validation", split.validation), ("test", split.test)):
        rows = dataset.frame.iloc[places]
        out[name] = r2(rows["latency_ms"].to_numpy(), fitted.predict(rows)) if len(rows) else None
    return out


def calibration(actual: np.ndarray, predicted: np.ndarray, bins: int = 10) -> dict:
    """Mean latency beside mean prediction in equal parts of the rows, by prediction.

    ``slope`` and ``intercept`` are those of latency over prediction: 1 and 0 when calibrated.
    """
    order = np.argsort(predicted, kind="stable")
    parts = [
        {
            "rows": len(part),
            "predicted_ms": float(predicted[part].mean()),
            "latency_ms": float(actual[part].mean()),
        }
        for part in np.array_split(order, bins)
        if len(part)
    ]
    # A model without a split predicts one value: no line goes through one point.
    if np.ptp(predicted) == 0:
        return {"slope": None, "intercept_ms": None, "parts": parts}
    slope = float(np.cov(predicted, actual, bias=True)[0, 1] / np.var(predicted))
    intercept_ms = float(actual.mean() - slope * predicted.mean())
    return {"slope": slope, "intercept_ms": intercept_ms, "parts": parts}


def importance(fitted: Fitted) -> dict[str, float]:
    """Percent of the prediction's change that each input causes, largest first."""
    values = np.nan_to_num(
        fitted.model.get_feature_importance(type=EFstrType.PredictionValuesChange)
    )
    pairs = zip(fitted.model.feature_names_, values, strict=True)
    return dict(sorted(((n, float(v)) for n, v in pairs), key=lambda pair: -pair[1]))


def ranking(fitted: Fitted, candidates: pd.DataFrame) -> dict[str, float | int | None]:
    """Order of the candidates within each request, against their true costs.

    ``accuracy``: share of pairs with clearly different costs that are predicted in the right
    order, an equal prediction counting half. ``hit_rate`` and ``regret_ms``: of the pick by least
    prediction, first of equals.
    """
    # The candidates of one request stand together in one row of the matrices.
    ordered = candidates.sort_values(["run_id", "seq"], kind="stable")
    sizes = ordered.groupby(["run_id", "seq"], sort=True, observed=True).size().to_numpy()
    costs, predictions = ordered["cost_ms"].to_numpy(), fitted.predict(ordered)
    pairs = right = hits = 0
    regrets = []
    ends = np.cumsum(sizes)
    for begin, end in zip(ends - sizes, ends, strict=True):
        cost, predicted = costs[begin:end], predictions[begin:end]
        i, j = np.triu_indices(len(cost), 1)
        clear = np.abs(cost[i] - cost[j]) > CLEAR_DIFFERENCE * np.minimum(cost[i], cost[j])
        i, j = i[clear], j[clear]
        agree = np.sign(cost[i] - cost[j]) * np.sign(predicted[i] - predicted[j])
        pairs += len(i)
        right += float(((agree + 1) / 2).sum())
        chosen = cost[int(np.argmin(predicted))]
        regrets.append(chosen - cost.min())
        hits += chosen <= (1 + HIT) * cost.min()
    return {
        "requests": len(sizes),
        "pairs": pairs,
        "accuracy": right / pairs if pairs else None,
        "hit_rate": hits / len(sizes) if len(sizes) else None,
        "regret_ms": float(np.mean(regrets)) if regrets else None,
    }


def read_candidates(paths: list[Path | str], statistics: str) -> pd.DataFrame:
    """CSV files with one line for each candidate of each request, as ``twin run --candidates`` writes.

    Columns: ``run_id, seq, method, url, cores, memory_gb``, the two run-time inputs as rows.csv calls
    them (empty while nothing was known: 0, as at a pick), and ``cost_ms`` (what the request would have
    taken there).
    """
    frames = [_read_candidates(path, statistics) for path in paths]
    # Two recordings may have one run_id.
    named = [f.assign(run_id=f"{i} " + f["run_id"].astype(str)) for i, f in enumerate(frames)]
    return pd.concat(named, ignore_index=True)


def _read_candidates(path: Path | str, statistics: str) -> pd.DataFrame:
    axes, told = AXES[statistics], SOURCES[statistics]
    columns = ["run_id", "seq", *CATEGORIES, *FIXED, *told, "cost_ms"]
    try:
        frame = pd.read_csv(path, dtype={"run_id": object, "method": object, "url": object})
    except FileNotFoundError as error:
        raise Problem(str(path), "no such file", next_step="name a file of candidates") from error
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise Problem(str(path), f"not CSV: {error}") from error
    for name in columns:
        if name not in frame:
            raise Problem(f"{path}:1", "column is missing", field=name)
    for name in (*FIXED, *told, "cost_ms"):
        numbers = pd.to_numeric(frame[name], errors="coerce")
        if name in told:
            numbers = numbers.mask(frame[name].isna(), 0.0)
        bad = ~np.isfinite(numbers.to_numpy(float))
        if bad.any():
            place = int(np.argmax(bad))
            raise Problem(
                f"{path}:{place + 2}",
                "not a finite number",
                field=name,
                value=repr(frame[name].iloc[place]),
            )
        frame[name] = numbers
    for name in ("method", "url"):
        frame[name] = pd.Series([str(x) for x in frame[name]], dtype=object)
    frame["url"] = pd.Series([x.partition("?")[0] for x in frame["url"]], dtype=object)
    return frame[columns].rename(columns=dict(zip(told, axes, strict=True)))
