"""A strict reader of ``rows.csv``: whole rows or a refusal that names the line.

A run that was killed may leave one line without its newline. That line is dropped with a warning;
any other damage (a wrong header, a short row, a value that is no number, a repeated request) is
refused, because a reader that repairs data quietly is worse than none.

Cost: about 0.6 µs a field; 20,000 rows take about half a second.
"""

from __future__ import annotations

import csv
import io
import itertools
import math
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from .problem import Problem

COLUMNS = [
    "run_id",
    "block",
    "strategy",
    "seq",
    "api_id",
    "method",
    "url",
    "task_size_mi",
    "warmup",
    "intended_ns",
    "sent_ns",
    "first_byte_ns",
    "done_ns",
    "latency_ms",
    "status",
    "error",
    "container",
    "attempts",
    "pick_ns",
    "in_flight",
    "active_requests",
    "mean_latency_ms_last_50",
    "stats_age_ms",
    "cores",
    "memory_gb",
    "cpu_percent",
    "memory_mib",
    "predicted_ms",
    "queue_wait_us",
    "service_time_us",
]

TEXT = {"run_id", "strategy", "api_id", "method", "url", "error", "container"}
REQUIRED_TEXT = {"run_id", "method", "url"}
REQUIRED_NUMBERS = {"seq", "task_size_mi", "intended_ns"}
INTEGERS = {"block", "seq", "intended_ns", "sent_ns", "first_byte_ns", "done_ns", "status"}
NUMBERS = set(COLUMNS) - TEXT - {"warmup"}

UNLABELLED = "unlabelled"
"""Strategy of a run in which no answer said under which one it was."""

OUTCOMES = ("ok", "error", "timeout", "cancelled", "never_sent")
_ERROR = re.compile(r"error:.+|timeout|cancelled|never_sent:.+")
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_INTEGER = re.compile(r"[0-9]+")
_COLUMN_OF_NUMBERS = re.compile(rf"(?:(?:{_NUMBER.pattern})?(?:\n|\Z))*+")
_COLUMN_OF_INTEGERS = re.compile(r"(?:[0-9]*(?:\n|\Z))*+")

CHUNK_ROWS = 50_000
"""Rows turned into typed columns at once, so that a long run never stands in memory as text."""

LATENCY_TOLERANCE_MS = 0.001
"""``latency_ms`` may be rounded to a microsecond; anything more disagrees with its own stamps."""


class TruncatedRows(UserWarning):
    """The file ended in the middle of a line, and that line was dropped."""


def read_rows(path: Path | str) -> pd.DataFrame:
    """All rows of one file, typed, with the column ``outcome`` added.

    Stamps are ns since the run's time 0 and latencies ms, as in the file. Columns that may be
    empty are floats with NaN for empty. Raises ``Problem`` naming the line on any damage but one
    unterminated last line.
    """
    path = Path(path)
    chunks = [_typed(path, lines, rows) for lines, rows in _chunks(path)]
    if not chunks:
        frame = pd.DataFrame({name: pd.Series(dtype="object") for name in COLUMNS})
        return frame.assign(outcome=pd.Series(dtype="object"), line=pd.Series(dtype="int64"))
    frame = pd.concat(chunks, ignore_index=True)
    frame["run_id"] = frame["run_id"].astype("category")
    frame["strategy"] = _labels(path, frame)
    for name in ("strategy", "api_id", "method", "url", "container", "outcome"):
        frame[name] = frame[name].astype("category")
    _refuse_repeats(path, frame)
    return frame


def _chunks(path: Path) -> Iterator[tuple[list[int], list[list[str]]]]:
    """Line numbers and fields, ``CHUNK_ROWS`` at a time, the header checked and left out."""
    text = _whole_lines(path)
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = next(reader, None)
        if header is None:
            raise Problem(f"{path}:1", "the file is empty", next_step="was the bench started?")
        _check_header(path, header)
        while True:
            lines, rows = [], []
            for row in itertools.islice(reader, CHUNK_ROWS):
                if len(row) != len(COLUMNS):
                    raise Problem(
                        f"{path}:{reader.line_num}",
                        f"{len(row)} fields in a row of {len(COLUMNS)}",
                        next_step="the file is damaged; run that arm again",
                    )
                lines.append(reader.line_num)
                rows.append(row)
            if not rows:
                return
            yield lines, rows
    except csv.Error as error:
        raise Problem(f"{path}:{reader.line_num}", f"not CSV: {error}") from error


def _whole_lines(path: Path) -> str:
    """The text up to the last newline; a rest is dropped with a warning."""
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise Problem(
            str(path), "no such file", next_step="name a result folder of `testbed bench`"
        ) from error
    except OSError as error:
        raise Problem(str(path), error.strerror or "cannot be read") from error
    end = data.rfind(b"\n") + 1
    if end < len(data):
        line = data.count(b"\n") + 1
        message = f"{path}:{line}: dropped one unterminated last line ({len(data) - end} bytes)"
        warnings.warn(message, TruncatedRows, stacklevel=4)
    try:
        return data[:end].decode("utf-8")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise Problem(f"{path}:{line}", f"not UTF-8: {error.reason}") from error


def _check_header(path: Path, header: list[str]) -> None:
    if header == COLUMNS:
        return
    for place, (got, want) in enumerate(itertools.zip_longest(header, COLUMNS), start=1):
        if got != want:
            raise Problem(
                f"{path}:1",
                f"column {place} is {got or 'missing'}, expected {want or 'nothing'}",
                next_step="this is not a rows.csv of this version",
            )


def _typed(path: Path, lines: list[int], rows: list[list[str]]) -> pd.DataFrame:
    columns = dict(zip(COLUMNS, zip(*rows, strict=True), strict=True))
    typed: dict[str, object] = {}
    for name in COLUMNS:
        values = columns[name]
        if name in NUMBERS:
            typed[name] = _numbers(path, lines, name, values)
        elif name == "warmup":
            typed[name] = _booleans(path, lines, values)
        else:
            _check_text(path, lines, name, values)
            typed[name] = values
    frame = pd.DataFrame(typed)
    frame["line"] = lines
    frame["outcome"] = [
        _outcome(path, line, text) for line, text in zip(lines, columns["error"], strict=True)
    ]
    _check_consistency(path, frame)
    return frame


def _numbers(path: Path, lines: list[int], name: str, values: tuple[str, ...]) -> np.ndarray:
    """One column as floats, NaN for empty; ``seq``, ``block`` and ``intended_ns`` as integers."""
    column = _COLUMN_OF_INTEGERS if name in INTEGERS else _COLUMN_OF_NUMBERS
    # One match over the whole column; only a column that fails is walked to find its line.
    text = "\n".join(values)
    if text.count("\n") >= len(values) or not column.fullmatch(text):
        _refuse_first_bad_number(path, lines, name, values)
    out = np.array([float(text) if text else math.nan for text in values])
    missing = np.isnan(out)
    if name in REQUIRED_NUMBERS and missing.any():
        _refuse_number(path, lines, name, values, int(np.argmax(missing)))
    outside = (out < 0) | np.isinf(out)
    if outside.any():
        place = int(np.argmax(outside))
        what = "out of range (allowed: finite, at least 0)"
        raise Problem(f"{path}:{lines[place]}", what, field=name, value=values[place])
    if name == "block":
        # A bare replay, outside a bench, has no block: it is a block of its own.
        out = np.nan_to_num(out, nan=0.0)
    return out.astype("int64") if name in {"block", "seq", "intended_ns"} else out


def _refuse_first_bad_number(
    path: Path, lines: list[int], name: str, values: tuple[str, ...]
) -> None:
    one = _INTEGER if name in INTEGERS else _NUMBER
    for place, text in enumerate(values):
        if text and not one.fullmatch(text):
            _refuse_number(path, lines, name, values, place)


def _refuse_number(
    path: Path, lines: list[int], name: str, values: tuple[str, ...], place: int
) -> None:
    kind = "a whole number of at least 0" if name in INTEGERS else "a finite number"
    raise Problem(f"{path}:{lines[place]}", f"not {kind}", field=name, value=repr(values[place]))


def _booleans(path: Path, lines: list[int], values: tuple[str, ...]) -> np.ndarray:
    for place, text in enumerate(values):
        if text not in ("true", "false"):
            raise Problem(
                f"{path}:{lines[place]}", "allowed: true, false", field="warmup", value=repr(text)
            )
    return np.array([text == "true" for text in values])


def _check_text(path: Path, lines: list[int], name: str, values: tuple[str, ...]) -> None:
    if name in REQUIRED_TEXT and not all(values):
        raise Problem(f"{path}:{lines[values.index('')]}", "must not be empty", field=name)


def _outcome(path: Path, line: int, error: str) -> str:
    if not error:
        return "ok"
    if not _ERROR.fullmatch(error):
        raise Problem(
            f"{path}:{line}",
            "not an outcome (allowed: empty, error:REASON, timeout, cancelled, never_sent:WHY)",
            field="error",
            value=repr(error),
        )
    return error.partition(":")[0]


def _check_consistency(path: Path, frame: pd.DataFrame) -> None:
    """Refuses rows that contradict themselves: these are damage, not data."""
    ok = (frame["outcome"] == "ok").to_numpy()
    checks = [
        (
            ok & ~frame["status"].between(200, 399).to_numpy(),
            "status",
            "an ok row needs a status of 200 to 399",
        ),
        (ok & frame["latency_ms"].isna().to_numpy(), "latency_ms", "an ok row needs a latency"),
        (
            ok & frame["done_ns"].isna().to_numpy(),
            "done_ns",
            "an ok row needs the time it was done",
        ),
        (
            ((frame["done_ns"] - frame["intended_ns"]).clip(lower=0) / 1e6 - frame["latency_ms"])
            .abs()
            .to_numpy()
            > LATENCY_TOLERANCE_MS,
            "latency_ms",
            "differs from done_ns - intended_ns",
        ),
        ((frame["task_size_mi"] <= 0).to_numpy(), "task_size_mi", "must be above 0"),
        (
            (frame["outcome"] == "never_sent").to_numpy() & frame["sent_ns"].notna().to_numpy(),
            "sent_ns",
            "a row that was never sent has a send time",
        ),
    ]
    for bad, field, what in checks:
        if bad.any():
            row = frame.iloc[int(np.argmax(bad))]
            raise Problem(f"{path}:{row['line']}", what, field=field, value=f"{row[field]:.15g}")


def _labels(path: Path, frame: pd.DataFrame) -> pd.Series:
    """The strategy of each row: a run has one, and rows that were never answered do not say which.

    A replay without ``--strategy-label`` learns the strategy from the answers.
    """
    named = frame[frame["strategy"] != ""]
    labels = named.groupby("run_id", sort=False, observed=True)["strategy"].agg(
        ["first", "nunique"]
    )
    for run_id in labels.index[labels["nunique"] > 1]:
        own = named[named["run_id"] == run_id]
        row = own[own["strategy"] != labels.loc[run_id, "first"]].iloc[0]
        raise Problem(
            f"{path}:{row['line']}",
            f"the run {run_id} began under {labels.loc[run_id, 'first']}",
            field="strategy",
            value=row["strategy"],
            next_step="a run has one strategy; record them apart",
        )
    names = labels["first"].to_dict()
    return frame["run_id"].map(lambda run_id: names.get(run_id, UNLABELLED)).astype("category")


def _refuse_repeats(path: Path, frame: pd.DataFrame) -> None:
    repeated = frame.duplicated(["run_id", "seq"]).to_numpy()
    if repeated.any():
        row = frame.iloc[int(np.argmax(repeated))]
        raise Problem(
            f"{path}:{row['line']}",
            "this request was recorded before",
            field="seq",
            value=f"{row['run_id']} {row['seq']}",
        )
