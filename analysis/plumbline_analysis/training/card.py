"""The model card: what a model was trained on, how good it is, where not to use it."""

from __future__ import annotations

import json
from pathlib import Path


def write_card(card: dict, folder: Path) -> None:
    """Writes ``model-card.json`` and ``model-card.md``."""
    text = json.dumps(card, indent=2, ensure_ascii=False, allow_nan=False)
    (folder / "model-card.json").write_text(text + "\n", encoding="utf-8")
    (folder / "model-card.md").write_text(as_markdown(card), encoding="utf-8")


def as_markdown(card: dict) -> str:
    """The card as a page."""
    on, trees = card["trained_on"], card["trees"]
    lines = [
        f"# Latency model: {card['variant']}, {on['statistics']} statistics",
        "",
        f"Predicts the latency in ms of a request on a container from {', '.join(card['inputs'])}.",
        "",
        "| | |",
        "|---|---|",
        f"| trained on | {on['rows']} rows under {on['strategy']}, load {_loads(on['load'])} |",
        f"| left out | {_pairs(card['left_out']) or 'nothing'} |",
        f"| trees | {trees['kept']} kept of {trees['cap']}{'' if trees['early_stopping'] else ', no early stopping'} |",
        f"| split that trained it | {card['split']}, seed {on['seed']} |",
        f"| training | {card['seconds']['fit']:.1f} s on {card['threads']} threads |",
        f"| table | {' x '.join(map(str, card['table']['cells']))} cells, {card['table']['bytes']} bytes |",
        f"| model | SHA-256 {card['model_sha256']}, CatBoost {card['catboost_version']} |",
        "",
        "## How much of the variance it explains (R²)",
        "",
        "| split | validation | test | trees kept |",
        "|---|---|---|---|",
    ]
    for kind in ("random", "blocked"):
        r2 = card["r2"][kind]
        kept = card["kept_trees"][kind]
        lines.append(f"| {kind} | {_number(r2['validation'])} | {_number(r2['test'])} | {kept} |")
    lines += [
        "",
        "The validation part chose the number of trees, so its R² is optimistic. Neighboring rows share",
        "the window of the last 50 latencies, so the random split leaks; the blocked one (by send time)",
        "does not. Most of the variance is between APIs, which all candidates of a request share: R² says",
        "little about routing.",
        "",
    ]
    ranking = card.get("ranking")
    if ranking:
        lines += [
            "## Order of the candidates within a request",
            "",
            f"{_percent(ranking['accuracy'])} of {ranking['pairs']} pairs with true costs more than 5 % apart are in the right order;",
            f"its pick is within 1 % of the best in {_percent(ranking['hit_rate'])} of {ranking['requests']} requests; mean regret {_number(ranking['regret_ms'])} ms.",
            "",
        ]
    calibration = card["calibration"]
    lines += [
        "## Calibration (test part)",
        "",
        f"Latency = {_number(calibration['slope'])} x prediction + {_number(calibration['intercept_ms'])} ms.",
        "",
        "| rows | predicted ms | latency ms |",
        "|---|---|---|",
    ]
    lines += [
        f"| {p['rows']} | {p['predicted_ms']:.1f} | {p['latency_ms']:.1f} |"
        for p in calibration["parts"]
    ]
    lines += ["", "## What its predictions depend on", "", "| input | % |", "|---|---|"]
    lines += [f"| {name} | {value:.1f} |" for name, value in card["importance"].items()]
    lines += ["", "## Hyperparameters", "", "| name | value |", "|---|---|"]
    lines += [f"| {name} | {value} |" for name, value in card["parameters"].items()]
    lines += [
        "",
        "## When not to use it",
        "",
        "- At loads it was not trained at: trees do not extrapolate.",
        f"- With statistics of another kind than it was trained on ({on['statistics']}).",
        "- With other machines, instruction loops or speeds: a latency in ms belongs to a calibration.",
        "",
    ]
    return "\n".join(lines)


def _loads(loads: list[float]) -> str:
    return ", ".join(f"{x:.3g}" for x in loads) or "unknown"


def _pairs(values: dict) -> str:
    return ", ".join(f"{n} {name}" for name, n in values.items())


def _number(x: float | None) -> str:
    return "-" if x is None else f"{x:.3f}"


def _percent(x: float | None) -> str:
    return "-" if x is None else f"{100 * x:.1f} %"
