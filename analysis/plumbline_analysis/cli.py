"""The commands: parse, call, print. Exit 0 done, 1 failed, 2 bad usage or input."""

from __future__ import annotations

import argparse
import json
import math
import sys
import warnings
from pathlib import Path

from .compare import compare, compare_folders
from .findings import judgements_table, write
from .intervals import Interval
from .load import load
from .problem import Problem
from .tables import as_json, as_text, interval_json

EXAMPLES = """examples:
  python -m plumbline_analysis report results/20260101T000000Z-quick
  python -m plumbline_analysis summarize results/20260101T000000Z-quick --json
  python -m plumbline_analysis summarize rows.csv
  python -m plumbline_analysis compare results/before results/after
"""


def main(arguments: list[str] | None = None) -> int:
    """Runs one command; prints a problem once, as one line."""
    parser = _parser()
    options = parser.parse_args(arguments)
    warnings.showwarning = _print_warning
    try:
        return options.run(options)
    except Problem as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        return 1
    except OSError as error:
        print(f"error: {error.filename or 'output'}: {error.strerror}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m plumbline_analysis",
        description="Reads result folders: which strategy is better, by how much, how sure are we.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    report = commands.add_parser("report", help="write report.html into a result folder")
    report.add_argument("dir", metavar="DIR", help="a result folder")
    report.set_defaults(run=_report)
    summary = commands.add_parser(
        "summarize", help="print the table of a result folder or a rows.csv"
    )
    summary.add_argument("dir", metavar="DIR", help="a result folder, or a rows.csv")
    summary.add_argument(
        "--json", action="store_true", help="every number, per run and per strategy"
    )
    summary.set_defaults(run=_summarize)
    both = commands.add_parser(
        "compare", help="compare the strategies that two result folders share"
    )
    both.add_argument("a", metavar="DIR", help="the first result folder")
    both.add_argument("b", metavar="DIR", help="the second result folder")
    both.add_argument("--json", action="store_true", help="print JSON")
    both.set_defaults(run=_compare)
    findings = commands.add_parser(
        "findings", help="judge the sweeps of prediction; exit code 1 when a number is missed"
    )
    findings.add_argument("dir", metavar="DIR", help="where make findings put the sweeps' results")
    findings.set_defaults(run=_findings)
    return parser


def _report(options: argparse.Namespace) -> int:
    # matplotlib takes a second to load, and the other commands do without.
    from .report import write_report  # noqa: PLC0415

    print(write_report(options.dir))
    return 0


def _summarize(options: argparse.Namespace) -> int:
    results = load(options.dir)
    comparison = compare(results)
    if options.json:
        print(json.dumps(as_json(results, comparison), indent=2, allow_nan=False))
    else:
        print(as_text(results, comparison))
    return 0


def _compare(options: argparse.Namespace) -> int:
    a, b = load(options.a), load(options.b)
    found, conditions = compare_folders(a, b)
    if not found:
        raise Problem(
            options.b, f"shares no strategy with {options.a}", next_step="name two folders that do"
        )
    if options.json:
        print(
            json.dumps(
                {"differences": [_folder_json(d) for d in found], "conditions": conditions},
                indent=2,
            )
        )
        return 0
    width = max(len(d.label) for d in found)
    print(
        f"{'strategy':{width}}  {Path(options.a).name} ms  {Path(options.b).name} ms  change  change relative to {a.baseline}"
    )
    for d in found:
        relative = _percent(d.ratio_to_baseline) if d.ratio_to_baseline else "baseline"
        shares = f"{d.failed_a.share:.2%} and {d.failed_b.share:.2%} failed"
        failed = f"  {shares}" if d.failed_a.failed or d.failed_b.failed else ""
        failed += ": not compared" if d.failing else ""
        print(
            f"{d.label:{width}}  {_value(d.mean_a)}  {_value(d.mean_b)}  {_percent(d.ratio)}  {relative}{failed}"
        )
    print(
        "Not paired: recorded at different times, so a machine that drifted looks like a difference."
    )
    print(
        "The last column is relative to each folder's own baseline and does not feel such a drift."
    )
    for text in conditions:
        print(text if "not valid" in text else f"differs: {text}")
    return 0


def _findings(options: argparse.Namespace) -> int:
    found = write(Path(options.dir))
    print(judgements_table(found), end="")
    return 0 if all(judgement.holds for judgement in found) else 1


def _value(interval: Interval) -> str:
    if math.isnan(interval.point):
        return "-"
    return f"{interval.point:.2f}" + (f" ± {interval.half_width:.2f}" if interval.known else "")


def _percent(ratio: Interval) -> str:
    if math.isnan(ratio.point):
        return "-"
    percent = ratio.percent
    text = f"{percent.point:+.1f} %"
    return text + (f" ({percent.low:+.1f} to {percent.high:+.1f})" if percent.known else "")


def _folder_json(d) -> dict:
    return {
        "label": d.label,
        "mean_ms_a": interval_json(d.mean_a),
        "mean_ms_b": interval_json(d.mean_b),
        "failed_share_a": d.failed_a.share,
        "failed_share_b": d.failed_b.share,
        "failing": d.failing,
        "ratio": interval_json(d.ratio),
        "ratio_to_baseline": interval_json(d.ratio_to_baseline) if d.ratio_to_baseline else None,
    }


def _print_warning(message, *_unused, **_also_unused) -> None:
    print(f"warning: {message}", file=sys.stderr)
