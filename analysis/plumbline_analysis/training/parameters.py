"""Hyperparameters: the paper's two tables, and others from a file."""

from __future__ import annotations

import json
import math
from pathlib import Path

from ..problem import Problem

PAPER = {
    "iterations": 2250,
    "learning_rate": 0.23265,
    "depth": 9,
    "l2_leaf_reg": 5.9364,
    "bagging_temperature": 0.2211,
}
"""Table 1 of the paper: requests held and mean of the last 50 latencies."""

PAPER_DOCKER = {
    "iterations": 2450,
    "learning_rate": 0.18231,
    "depth": 10,
    "l2_leaf_reg": 4.88559,
    "bagging_temperature": 0.24547,
    "border_count": 128,
}
"""Table 2: CPU and memory. 128 borders are the GPU's default, which the paper's task type implies;
the CPU's 254 on two fine axes make a table of 100 APIs larger than a file may be."""

KNOWN = (
    *PAPER_DOCKER,
    "one_hot_max_size",
    "max_ctr_complexity",
    "model_size_reg",
    "random_strength",
    "min_data_in_leaf",
    "rsm",
)
"""Those a file may set; with any of them the model still fits a table."""

MAX_TREES = 100_000


def read_parameters(path: Path | str) -> dict:
    """Hyperparameters from a JSON object, such as the ``best.json`` of a search."""
    try:
        parameters = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise Problem(str(path), "no such file", next_step="run `tune` first") from error
    except ValueError as error:
        raise Problem(str(path), f"not JSON: {error}") from error
    if not isinstance(parameters, dict):
        raise Problem(str(path), "not a JSON object of hyperparameters")
    for name, value in parameters.items():
        if name not in KNOWN:
            raise Problem(str(path), f"known: {', '.join(KNOWN)}", field=name)
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not math.isfinite(value):
            raise Problem(str(path), "not a finite number", field=name, value=repr(value))
    check_iterations(parameters, str(path))
    return parameters


def check_iterations(parameters: dict, where: str) -> None:
    """Refuses a number of trees out of range."""
    trees = parameters.get("iterations", 1)
    if not 1 <= trees <= MAX_TREES:
        raise Problem(where, f"allowed: 1 to {MAX_TREES}", field="iterations", value=str(trees))
