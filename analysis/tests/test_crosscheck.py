"""The testbed's summary.json and this package agree to 1e-9 wherever both are at hand."""

import json
import math
import os
from pathlib import Path

import pytest

from plumbline_analysis import compare, load
from plumbline_analysis.crosscheck import disagreements, read_summary

HERE = Path(__file__).parent.parent


def folders_with_a_summary():
    """The sample, and the folder that PLUMBLINE_RESULTS names."""
    named = [Path(os.environ["PLUMBLINE_RESULTS"])] if "PLUMBLINE_RESULTS" in os.environ else []
    return [path for path in [HERE / "sample", *named] if (path / "summary.json").exists()]


@pytest.mark.parametrize("path", folders_with_a_summary(), ids=lambda path: path.name)
def test_two_programs_get_the_same_numbers(path):
    assert disagreements(read_summary(path / "summary.json"), compare(load(path))) == []


def interval(value):
    return {k: None if math.isnan(x) else x for k, x in vars(value).items()}


@pytest.fixture
def written(folder):
    """A summary of the shape the testbed writes, with the numbers of this package."""
    comparison = compare(load(folder))
    runs = [
        {
            **{k: v for k, v in vars(run).items() if k != "verdict"},
            "verdict": {"word": run.verdict.word},
        }
        for arm in comparison.arms
        for run in arm.runs
    ]
    strategies = [
        {
            "label": arm.label,
            "failed_share": arm.failures.share,
            "failing": comparison.failing(arm),
            **{m: interval(arm.interval(m)) for m in ("mean_ms", "p50_ms", "p95_ms", "p99_ms")},
            **{m: interval(arm.interval(m)) for m in ("throughput_mi_per_ms", "completed_rps")},
            "against_baseline": {
                metric: {"ratio": interval(d.ratio), "p_holm": d.p_holm}
                for (label, metric), d in comparison.differences.items()
                if label == arm.label
            },
        }
        for arm in comparison.arms
    ]
    return comparison, json.loads(json.dumps({"runs": runs, "strategies": strategies}))


def test_equal_numbers_are_no_disagreement(written):
    comparison, summary = written
    assert disagreements(summary, comparison) == []


@pytest.mark.parametrize(
    ("spoil", "where"),
    [
        (lambda s: s["runs"][0].update(mean_ms=s["runs"][0]["mean_ms"] * (1 + 1e-8)), "b01-a2 mean_ms"),
        (lambda s: s["runs"][0].pop("p99_ms"), "p99_ms"),
        (lambda s: s["runs"].pop(), "runs:"),
        (lambda s: s["runs"][0]["outcomes"].update(ok=1), "ok"),
        (lambda s: s["runs"][0]["verdict"].update(word="unstable"), "stability"),
        (lambda s: s["strategies"].pop(1), "missing from summary.json"),
        (lambda s: s["strategies"][0]["mean_ms"].update(low=0), "mean_ms low"),
        (lambda s: s["strategies"][1]["against_baseline"]["p95_ms"].update(p_holm=0.5), "p_holm"),
    ],
)  # fmt: skip
def test_each_difference_is_found(written, spoil, where):
    comparison, summary = written
    spoil(summary)
    found = disagreements(summary, comparison)
    assert found
    assert where.removeprefix("b01-a2 ") in " ".join(found)
