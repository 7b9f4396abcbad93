"""The whole line: rows, two splits, two fits, measures, model file, table, card."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from ..problem import Problem
from . import measure
from .card import write_card
from .dataset import Dataset
from .export import build_table, describe, save_model, sha256_of, verify
from .fit import PAPER_VARIANT, SEED, THREADS, Fitted, Variant, fit
from .splits import KINDS, Split, split
from .tablefile import write_table

MODEL, TABLE, CARD = "model.cbm", "model.plbtab", "model-card.json"


@dataclass(frozen=True)
class Plan:
    """How to train."""

    parameters: dict
    variant: Variant = PAPER_VARIANT
    split: str = "random"
    """The split that trains the model that is shipped; the other one only measures."""
    all_trees: bool = False
    seed: int = SEED
    threads: int = THREADS
    containers: list[tuple[float, float]] | None = None
    """Those of the table; by default those of the rows."""
    verbose: int = 200


def train(dataset: Dataset, plan: Plan, folder: Path, candidates: pd.DataFrame | None) -> dict:
    """Writes model, table and card into ``folder`` and returns the card."""
    splits = {kind: split(dataset, kind, plan.seed) for kind in KINDS}
    fits = {kind: _fit(dataset, splits[kind], plan) for kind in KINDS}
    r2 = {kind: measure.r2_of(fits[kind], dataset, splits[kind]) for kind in KINDS}
    shipped = fits[plan.split]
    trained_on = {
        "strategy": dataset.strategy,
        "load": dataset.loads,
        "rows": len(dataset.frame),
        "seed": plan.seed,
        "statistics": dataset.statistics,
    }
    containers = plan.containers or dataset.containers
    about = describe(shipped, containers, dataset.apis, trained_on, r2, plan.split)
    folder.mkdir(parents=True, exist_ok=True)
    save_model(shipped, about, folder / MODEL)
    digest = sha256_of(folder / MODEL)
    table = build_table(shipped, about, digest)
    asked, differing = verify(table, shipped)
    if differing:
        raise Problem(
            "table",
            f"{differing} of {asked} predictions differ from the model's",
            next_step="report this: the table must be exact",
        )
    write_table(table, folder / TABLE)
    test = dataset.frame.iloc[splits[plan.split].test]
    card = {
        "variant": plan.variant.name,
        "inputs": shipped.inputs,
        "trained_on": trained_on,
        "sources": dataset.sources,
        "rows_sha256": dataset.digest,
        "left_out": dataset.left_out,
        "split": plan.split,
        "trees": {
            "kept": shipped.kept_trees,
            "cap": shipped.cap_trees,
            "early_stopping": not plan.all_trees,
        },
        "kept_trees": {kind: fits[kind].kept_trees for kind in KINDS},
        "r2": r2,
        "calibration": measure.calibration(test["latency_ms"].to_numpy(), shipped.predict(test)),
        "importance": measure.importance(shipped),
        "ranking": None if candidates is None else measure.ranking(shipped, candidates),
        "parameters": shipped.parameters,
        "threads": plan.threads,
        "seconds": {"fit": shipped.seconds, **{kind: fits[kind].seconds for kind in KINDS}},
        "catboost_version": about["catboost_version"],
        "model_sha256": digest,
        "table": {
            "cells": list(table.cells.shape),
            "bytes": (folder / TABLE).stat().st_size,
            "checked": asked,
        },
    }
    write_card(card, folder)
    return card


def _fit(dataset: Dataset, parts: Split, plan: Plan) -> Fitted:
    return fit(
        dataset,
        parts,
        plan.parameters,
        plan.variant,
        all_trees=plan.all_trees,
        seed=plan.seed,
        threads=plan.threads,
        verbose=plan.verbose,
    )
