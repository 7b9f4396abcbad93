"""Searches for hyperparameters with Optuna, as the paper did: least RMSE of the validation part.

The study is a SQLite file: an interrupted search goes on where it was, and a finished one is only
read. It belongs to one training set, one split and one kind of model, and refuses others.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import optuna
from sqlalchemy.exc import SQLAlchemyError

from ..problem import Problem
from .dataset import Dataset
from .fit import PAPER_VARIANT, Variant, fit
from .splits import Split

TRIALS = 25
DEPTH = (4, 10)
LEARNING_RATE = (0.005, 0.3)
L2_LEAF_REG = (1.0, 10.0)
BAGGING_TEMPERATURE = (0.0, 1.0)


def tune(
    dataset: Dataset,
    split: Split,
    study_file: Path,
    base: dict,
    trials: int = TRIALS,
    variant: Variant = PAPER_VARIANT,
    seed: int = 42,
    threads: int = 2,
    show_progress: bool = True,
) -> optuna.Study:
    """Runs what is missing of ``trials`` and returns the study; ``base`` is what is not searched."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    fixed = {k: v for k, v in base.items() if k in ("iterations", "border_count")}
    belongs_to = {
        "rows_sha256": dataset.digest,
        "split": split.kind,
        "variant": variant.name,
        "fixed": fixed,
        "seed": seed,
    }
    study_file.parent.mkdir(parents=True, exist_ok=True)
    try:
        study = optuna.create_study(
            study_name="latency",
            storage=f"sqlite:///{study_file}",
            load_if_exists=True,
            direction="minimize",
        )
    except (SQLAlchemyError, optuna.exceptions.OptunaError) as error:
        raise Problem(
            str(study_file), "no study of a search", next_step="name another --out"
        ) from error
    _check_same(study, study_file, belongs_to)
    finished = [t for t in study.trials if t.state == optuna.trial.TrialState.COMPLETE]
    # Seeded by what is done already, so that a resumed search does not draw the same again.
    study.sampler = optuna.samplers.TPESampler(seed=seed + len(study.trials))

    def objective(trial: optuna.Trial) -> float:
        parameters = {
            **fixed,
            "depth": trial.suggest_int("depth", *DEPTH),
            "learning_rate": trial.suggest_float("learning_rate", *LEARNING_RATE, log=True),
            "l2_leaf_reg": trial.suggest_float("l2_leaf_reg", *L2_LEAF_REG, log=True),
            "bagging_temperature": trial.suggest_float("bagging_temperature", *BAGGING_TEMPERATURE),
        }
        fitted = fit(dataset, split, parameters, variant, seed=seed, threads=threads, verbose=0)
        rows = dataset.frame.iloc[split.validation]
        error = fitted.predict(rows) - rows["latency_ms"].to_numpy()
        trial.set_user_attr("kept_trees", fitted.kept_trees)
        trial.set_user_attr("seconds", round(fitted.seconds, 3))
        return float(np.sqrt(np.mean(error**2)))

    missing = max(0, trials - len(finished))
    if missing:
        study.optimize(objective, n_trials=missing, show_progress_bar=show_progress)
    return study


def best_parameters(study: optuna.Study, base: dict) -> dict:
    """What the best trial was fitted with."""
    return {**base, **study.best_params}


def _check_same(study: optuna.Study, path: Path, belongs_to: dict) -> None:
    text = json.dumps(belongs_to, sort_keys=True)
    known = study.user_attrs.get("belongs_to")
    if known is None:
        study.set_user_attr("belongs_to", text)
    elif known != text:
        before = json.loads(known)
        changed = [k for k in belongs_to if belongs_to[k] != before.get(k)]
        raise Problem(
            str(path),
            f"this search was begun with other {', '.join(changed)}",
            next_step="name another --out",
        )
