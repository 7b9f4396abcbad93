"""The commands: parse, call, print. Exit 0 done, 1 failed, 2 bad usage or input."""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path

from catboost import CatBoostError

from ..problem import Problem
from .dataset import AXES, Dataset, read_dataset
from .export import build_table, load_model, sha256_of, verify
from .fit import SEED, THREADS, Variant
from .measure import read_candidates
from .parameters import PAPER, PAPER_DOCKER, check_iterations, read_parameters
from .pipeline import CARD, MODEL, TABLE, Plan, train
from .splits import KINDS, split
from .tablefile import read_table, write_table

EXAMPLES = """examples:
  python -m plumbline_analysis.training train --rows results/rr --strategy round-robin --out models/paper
  python -m plumbline_analysis.training train --rows rows-30.csv --load 0.3 --rows rows-50.csv --load 0.5 \\
      --strategy weighted-random --statistics live --limit 5000 --out models/live
  python -m plumbline_analysis.training tune --rows results/rr --strategy round-robin --out models/search
  python -m plumbline_analysis.training train --rows results/rr --strategy round-robin \\
      --parameters models/search/best.json --out models/tuned
  python -m plumbline_analysis.training verify models/paper/model.plbtab models/paper/model.cbm
"""


def main(arguments: list[str] | None = None) -> int:
    """Runs one command; prints a problem once, as one line."""
    options = _parser().parse_args(arguments)
    try:
        return options.run(options)
    except Problem as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 2
    except CatBoostError as error:
        # Its messages begin with a place in its own sources.
        text = str(error).partition(": ")[2] or str(error)
        print(f"error: training: {' '.join(text.split())}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"error: {error.filename or 'output'}: {error.strerror}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; a search goes on from its study file", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m plumbline_analysis.training",
        description="Trains latency models on recorded rows and writes the balancer's table files.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _train_parser(commands)
    _tune_parser(commands)
    export = commands.add_parser("export", help="write the table of a model again")
    export.add_argument("model", metavar="MODEL", help=f"a {MODEL}")
    export.add_argument("--out", required=True, type=Path, help="the table file to write")
    export.add_argument(
        "--json", type=Path, help="also the library's JSON export, for other readers"
    )
    export.add_argument(
        "--containers", type=_containers, help="CORES:GB,...; default: those of the training rows"
    )
    export.set_defaults(run=_export)
    check = commands.add_parser("verify", help="compare a table with its model, bit for bit")
    check.add_argument("table", metavar="TABLE", help=f"a {TABLE}")
    check.add_argument("model", metavar="MODEL", help=f"a {MODEL}")
    check.set_defaults(run=_verify)
    return parser


def _train_parser(commands) -> None:
    parser = commands.add_parser("train", help="write a model, its table and its card")
    _rows_options(parser)
    parser.add_argument(
        "--parameters", metavar="F", help="hyperparameters as JSON; default: the paper's"
    )
    parser.add_argument(
        "--all-trees", action="store_true", help="keep every tree instead of stopping early"
    )
    parser.add_argument(
        "--containers",
        type=_containers,
        help="containers of the table, CORES:GB,...; default: those of the rows",
    )
    parser.add_argument(
        "--candidates",
        action="append",
        metavar="F",
        help="true costs of all candidates, to measure their order; may be repeated",
    )
    parser.add_argument("--force", action="store_true", help="replace a model that is there")
    parser.add_argument("--json", action="store_true", help="print the card as JSON")
    parser.set_defaults(run=_train)


def _tune_parser(commands) -> None:
    parser = commands.add_parser(
        "tune", help="search for hyperparameters; an interrupted search goes on"
    )
    _rows_options(parser)
    parser.add_argument(
        "--trials", type=_at_least_one, default=25, help="trials in all (default: 25)"
    )
    parser.set_defaults(run=_tune)


def _rows_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--rows",
        action="append",
        required=True,
        metavar="PATH",
        help="a result folder or a rows.csv; may be repeated",
    )
    parser.add_argument(
        "--load",
        action="append",
        type=_load,
        help="offered work over capacity, one for each --rows; default: from the manifest",
    )
    parser.add_argument("--strategy", help="rows of this strategy; default: the only one there")
    parser.add_argument("--limit", type=_at_least_one, help="first so many rows of each --rows")
    parser.add_argument(
        "--statistics",
        choices=list(AXES),
        default="polled",
        help="which run-time inputs the model sees (default: polled)",
    )
    parser.add_argument(
        "--variant",
        choices=["paper", "robust"],
        default="paper",
        help="robust: only requests held and cores, with directions fixed",
    )
    parser.add_argument(
        "--split", choices=KINDS, default="random", help="which split trains (default: random)"
    )
    parser.add_argument("--iterations", type=_at_least_one, help="trees at most")
    parser.add_argument("--seed", type=_seed, default=SEED, help=f"default: {SEED}, the paper's")
    parser.add_argument(
        "--threads",
        type=_at_least_one,
        default=THREADS,
        help=f"default: {THREADS}; another number gives another model",
    )
    parser.add_argument("--out", required=True, type=Path, help="folder to write")


def _dataset(options: argparse.Namespace) -> tuple[Dataset, dict, Variant]:
    dataset = read_dataset(
        options.rows, options.statistics, options.strategy, options.limit, options.load
    )
    variant = Variant(options.variant)
    if variant.robust and options.statistics == "docker":
        raise Problem(
            "--variant", "needs a count of requests", value="robust", next_step="drop --statistics"
        )
    parameters = dict(PAPER_DOCKER if options.statistics == "docker" else PAPER)
    if getattr(options, "parameters", None):
        parameters |= read_parameters(options.parameters)
    if options.iterations:
        parameters["iterations"] = options.iterations
    check_iterations(parameters, "--iterations")
    return dataset, parameters, variant


def _train(options: argparse.Namespace) -> int:
    if (options.out / MODEL).exists() and not options.force:
        raise Problem(
            str(options.out / MODEL), "is there already", next_step="add --force to replace it"
        )
    dataset, parameters, variant = _dataset(options)
    candidates = (
        read_candidates(options.candidates, options.statistics) if options.candidates else None
    )
    plan = Plan(
        parameters,
        variant,
        options.split,
        options.all_trees,
        options.seed,
        options.threads,
        options.containers,
    )
    card = train(dataset, plan, options.out, candidates)
    if options.json:
        print(json.dumps(card, indent=2, ensure_ascii=False, allow_nan=False))
        return 0
    trees, r2 = card["trees"], card["r2"]
    print(
        f"{options.out / TABLE}: {card['table']['bytes']} bytes, exact in {card['table']['checked']} predictions"
    )
    print(f"{trees['kept']} trees of {trees['cap']}, fitted in {card['seconds']['fit']:.1f} s")
    for kind in KINDS:
        print(
            f"R² {kind}: validation {_number(r2[kind]['validation'])}, test {_number(r2[kind]['test'])}"
        )
    print(f"more in {options.out / CARD} and .md")
    return 0


def _tune(options: argparse.Namespace) -> int:
    # Optuna takes a second to load, and the other commands do without.
    from .tune import best_parameters, tune  # noqa: PLC0415

    dataset, parameters, variant = _dataset(options)
    parts = split(dataset, options.split, options.seed)
    study = tune(
        dataset,
        parts,
        options.out / "study.db",
        parameters,
        options.trials,
        variant,
        options.seed,
        options.threads,
    )
    best = best_parameters(study, parameters)
    path = options.out / "best.json"
    path.write_text(json.dumps(best, indent=2) + "\n", encoding="utf-8")
    study.trials_dataframe().to_csv(options.out / "trials.csv", index=False)
    print(
        f"{path}: trial {study.best_trial.number} of {len(study.trials)}, validation RMSE {study.best_value:.3f} ms, {study.best_trial.user_attrs['kept_trees']} trees"
    )
    return 0


def _export(options: argparse.Namespace) -> int:
    fitted, about = load_model(options.model)
    if options.containers:
        about["containers"] = [{"cores": c, "memory_gb": m} for c, m in options.containers]
    table = build_table(fitted, about, sha256_of(Path(options.model)))
    write_table(table, options.out)
    if options.json:
        fitted.model.save_model(str(options.json), format="json")
    print(f"{options.out}: {table.cells.size} cells")
    return 0


def _verify(options: argparse.Namespace) -> int:
    fitted, _ = load_model(options.model)
    asked, differing = verify(read_table(options.table), fitted)
    print(f"{asked - differing}/{asked} predictions equal")
    return 1 if differing else 0


def _containers(text: str) -> list[tuple[float, float]]:
    try:
        pairs = [tuple(float(x) for x in piece.split(":")) for piece in text.split(",")]
    except ValueError:
        pairs = []
    if not pairs or any(len(p) != 2 or p[0] <= 0 or p[1] < 0 for p in pairs):
        raise argparse.ArgumentTypeError(f"{text!r} is not CORES:GB,... such as 4:12,3:9,2:6")
    return pairs


def _at_least_one(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def _seed(text: str) -> int:
    if not text.isdigit() or int(text) >= 2**31:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 0 to {2**31 - 1}")
    return int(text)


def _load(text: str) -> float:
    try:
        load = float(text)
    except ValueError:
        load = math.nan
    if not 0 < load < 100:
        raise argparse.ArgumentTypeError(f"{text!r} is not a load, such as 0.42")
    return load


def _number(x: float | None) -> str:
    return "-" if x is None else f"{x:.3f}"
