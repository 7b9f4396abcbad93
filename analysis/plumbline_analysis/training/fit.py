"""One fit: the paper's hyperparameters, or tuned ones, on the CPU.

The paper trained on a GPU; a CPU gives another model of the same kind. Seed and thread count are
fixed, so the same rows give the same trees on the same build of the library.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from catboost import CatBoostRegressor, Pool

from .dataset import CATEGORIES, FIXED, Dataset
from .splits import Split

EARLY_STOPPING_ROUNDS = 100
SEED = 42
THREADS = 2


@dataclass(frozen=True)
class Variant:
    """What is learned from which inputs.

    ``robust`` learns log(latency / the API's lower quartile) from requests held and cores alone,
    never falling with the former nor rising with the latter: it keeps its order of containers at
    loads it never saw, where free trees do not.
    """

    name: str

    @property
    def robust(self) -> bool:
        """Whether it is the constrained one."""
        return self.name == "robust"

    def numbers(self, axes: tuple[str, str]) -> list[str]:
        """Inputs that are numbers. Memory is left out of the robust one: it goes with cores."""
        return ["cores", axes[0]] if self.robust else [*FIXED, *axes]

    @property
    def categories(self) -> list[str]:
        """Inputs that are text."""
        return [] if self.robust else CATEGORIES

    def constraints(self, axes: tuple[str, str]) -> dict[str, int]:
        """Direction in which the prediction may move with an input."""
        return {axes[0]: 1, "cores": -1} if self.robust else {}


PAPER_VARIANT = Variant("paper")
"""All inputs, plain latency."""


@dataclass(frozen=True)
class Scales:
    """Lower quartile of latency, ms, by API, by method and of all: what the robust one multiplies."""

    by_api: dict[tuple[str, str], float]
    by_method: dict[str, float]
    overall: float

    @classmethod
    def of(cls, frame: pd.DataFrame) -> Scales:
        """From the rows of a training part."""
        latency = frame["latency_ms"]
        by_api = latency.groupby([frame["method"], frame["url"]]).quantile(0.25)
        by_method = latency.groupby(frame["method"]).quantile(0.25)
        return cls(
            {(str(m), str(u)): float(x) for (m, u), x in by_api.items()},
            {str(m): float(x) for m, x in by_method.items()},
            float(latency.quantile(0.25)),
        )

    def scale(self, method: str | None, url: str | None) -> float:
        """That of the API, else of the method, else of all."""
        known = self.by_api.get((method or "", url or ""))
        return known if known is not None else self.by_method.get(method or "", self.overall)

    def scales(self, frame: pd.DataFrame) -> np.ndarray:
        """One for each row."""
        pairs = zip(frame["method"], frame["url"], strict=True)
        return np.array([self.scale(m, u) for m, u in pairs])


@dataclass(frozen=True)
class Fitted:
    """A trained model with all that is needed to ask it in ms."""

    model: CatBoostRegressor
    variant: Variant
    axes: tuple[str, str]
    kept_trees: int
    cap_trees: int
    seconds: float
    scales: Scales | None = None
    parameters: dict = field(default_factory=dict)

    @property
    def inputs(self) -> list[str]:
        """Columns the model reads, in its order."""
        return [*self.variant.categories, *self.variant.numbers(self.axes)]

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        """Predicted latency, ms, of each row."""
        raw = self.model.predict(Pool(frame[self.inputs], cat_features=self.variant.categories))
        if self.scales is None:
            return raw
        return self.scales.scales(frame) * np.exp(raw)


def fit(
    dataset: Dataset,
    split: Split,
    parameters: dict,
    variant: Variant = PAPER_VARIANT,
    all_trees: bool = False,
    seed: int = SEED,
    threads: int = THREADS,
    verbose: int = 200,
    callbacks: list | None = None,
) -> Fitted:
    """Trains on the training part; the validation part says when to stop, unless ``all_trees``."""
    frame, axes = dataset.frame, dataset.axes
    scales = Scales.of(frame.iloc[split.train]) if variant.robust else None
    target = frame["latency_ms"].to_numpy()
    if scales is not None:
        target = np.log(target / scales.scales(frame))
    inputs = [*variant.categories, *variant.numbers(axes)]

    def pool(places: np.ndarray) -> Pool:
        return Pool(
            frame[inputs].iloc[places], target[places], cat_features=variant.categories or None
        )

    constraints = variant.constraints(axes)
    options = {
        "loss_function": "RMSE",
        "eval_metric": "RMSE",
        "bootstrap_type": "Bayesian",
        "random_seed": seed,
        "thread_count": threads,
        "allow_writing_files": False,
        "verbose": verbose,
        **parameters,
        **({"monotone_constraints": constraints} if constraints else {}),
    }
    if not all_trees:
        options |= {"early_stopping_rounds": EARLY_STOPPING_ROUNDS, "use_best_model": True}
    model = CatBoostRegressor(**options)
    began = time.perf_counter()
    model.fit(
        pool(split.train),
        eval_set=None if all_trees else pool(split.validation),
        callbacks=callbacks,
        log_cout=sys.stderr,
        log_cerr=sys.stderr,
    )
    seconds = time.perf_counter() - began
    return Fitted(
        model, variant, axes, model.tree_count_, options["iterations"], seconds, scales, options
    )
