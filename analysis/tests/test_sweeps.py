import math

import numpy as np
import pytest
from scipy import stats

from plumbline_analysis.problem import Problem
from plumbline_analysis.sweeps import read_sweep

HEADER = "run,pool,strategy,seed,load,verdict,mean_ms\n"


def written(tmp_path, means, pool="W"):
    """A result with these means by strategy, in the order of seeds from 1."""
    rows = [
        f"0,{pool},{strategy},{seed},0.6,{'unstable' if ms == '' else 'stable'},{ms}\n"
        for strategy, values in means.items()
        for seed, ms in enumerate(values, 1)
    ]
    path = tmp_path / "sweep.csv"
    path.write_text(HEADER + "".join(rows))
    return path


def test_a_ratio_is_students_t_on_paired_log_ratios(tmp_path):
    rng = np.random.default_rng(3)
    base = rng.uniform(100, 300, 8)
    ours = base * np.exp(rng.normal(-0.02, 0.003, 8))
    cell = read_sweep(written(tmp_path, {"wlc": base, "x": ours})).cell(pool="W", load=0.6)
    ratio = cell.ratio("x", "wlc")
    # Independent: scipy's paired test gives the same interval.
    wanted = stats.ttest_rel(np.log(ours), np.log(base)).confidence_interval(0.95)
    assert math.log(ratio.low) == pytest.approx(wanted.low)
    assert math.log(ratio.high) == pytest.approx(wanted.high)
    assert cell.ratio("wlc", "wlc").point == 1


def test_gap_closed_is_a_share_of_means(tmp_path):
    base, oracle = np.array([200.0, 210, 190, 205]), np.array([180.0, 188, 173, 184])
    same_share = base - 0.6 * (base - oracle)
    cell = read_sweep(written(tmp_path, {"wlc": base, "o": oracle, "x": same_share})).cell(pool="W")
    closed = cell.gap_closed("x", "wlc", "o")
    assert (closed.point, closed.low, closed.high) == pytest.approx((0.6, 0.6, 0.6))
    assert cell.gap_closed("o", "wlc", "o").point == 1
    assert cell.gap_closed("wlc", "wlc", "o").point == 0
    # An oracle that loses leaves no gap.
    assert cell.gap_closed("x", "o", "wlc") is None


def test_the_interval_of_the_gap_closed_covers_the_truth(tmp_path):
    rng = np.random.default_rng(11)
    covered = 0
    for _ in range(200):
        base = rng.normal(200, 10, 8)
        gap = rng.normal(6, 1, 8)
        gain = 0.6 * gap + rng.normal(0, 0.5, 8)
        means = {"wlc": base, "o": base - gap, "x": base - gain}
        closed = read_sweep(written(tmp_path, means)).cell(pool="W").gap_closed("x", "wlc", "o")
        covered += closed.low <= 0.6 <= closed.high
    assert 180 <= covered <= 199


def test_an_unstable_run_leaves_no_comparison(tmp_path):
    cell = read_sweep(written(tmp_path, {"wlc": [200.0, 210], "rr": [900.0, ""]})).cell(pool="W")
    assert cell.mean("rr") is None
    assert cell.ratio("rr", "wlc") is None
    assert cell.mean("wlc").point == 205


def test_what_is_not_paired_is_refused(tmp_path):
    sweep = read_sweep(written(tmp_path, {"wlc": [200.0, 210], "x": [190.0]}))
    with pytest.raises(Problem, match="different seeds"):
        sweep.cell(pool="W").ratio("x", "wlc")
    with pytest.raises(Problem, match="no run has pool = S"):
        sweep.cell(pool="S")
    with pytest.raises(Problem, match="no such column"):
        sweep.cell(place="S")
    twice = read_sweep(written(tmp_path, {"x": [200.0, 210]}))
    twice.runs["seed"] = 1
    with pytest.raises(Problem, match="several runs of one seed"):
        twice.cell(pool="W").mean("x")


def test_a_case_called_none_is_a_label(tmp_path):
    sweep = read_sweep(written(tmp_path, {"x": [200.0]}, pool="none"))
    assert sweep.cell(pool="none").mean("x").point == 200


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not a CSV"),
        ("a,b\n1,2\n", "no column strategy, seed"),
        (HEADER + "0,W,x,1,0.6,stable,nan\n", ":2: mean_ms: nan: not a latency"),
        (HEADER + "0,W,x,1,0.6,stable,-3\n", ":2: mean_ms: -3"),
        (HEADER + "0,W,x,1,0.6,stable,inf\n", "not a latency"),
    ],
)
def test_what_is_no_result_of_a_sweep_is_refused(tmp_path, text, said):
    path = tmp_path / "x.csv"
    path.write_text(text)
    with pytest.raises(Problem, match=said):
        read_sweep(path)
