import numpy as np
import pytest
from conftest import line
from scipy import stats

from plumbline_analysis.rows import read_rows
from plumbline_analysis.stability import judge, slope_t

# 400 MI every 10 ms is 40 MI/ms; a worker of 4 cores at 10,000 MIPS does exactly 40.
FULL = 10_000.0


def judged(write_rows, latencies, mips, **values):
    lines = [line(seq=i, latency_ms=float(x), **values) for i, x in enumerate(latencies)]
    return judge(read_rows(write_rows(lines)), mips)


def test_a_steady_run_with_room_is_stable(write_rows):
    latencies = 50 + 5 * np.sin(np.arange(1000))
    verdict = judged(write_rows, latencies.round(3), FULL * 2)
    assert verdict.word == "stable"
    assert verdict.worker_load == pytest.approx(0.5, rel=2e-3)


def test_too_much_work_and_a_growing_backlog_is_unstable(write_rows):
    # Offered 1.25 of capacity: the fluid backlog delays request i by i * 2.5 ms.
    verdict = judged(write_rows, 40 + 2.5 * np.arange(1000), FULL / 1.25)
    assert verdict.word == "unstable" and verdict.flagged
    assert verdict.worker == "a"
    assert verdict.worker_load == pytest.approx(1.25, rel=2e-3)
    assert any("a was sent 1.25 times" in reason for reason in verdict.reasons)


def test_too_much_work_alone_is_inconclusive(write_rows):
    latencies = 50 + 5 * np.sin(np.arange(1000))
    verdict = judged(write_rows, latencies.round(3), FULL / 1.1)
    assert verdict.word == "inconclusive" and not verdict.flagged


def test_an_inconclusive_run_whose_requests_were_never_answered_is_unstable(write_rows):
    lines = [line(seq=i) for i in range(990)]
    lines += [line(seq=i, error="timeout", status="", latency_ms=500.0) for i in range(990, 1000)]
    verdict = judge(read_rows(write_rows(lines)), FULL / 1.1)
    assert verdict.word == "unstable"
    assert "10 requests were sent and never answered" in verdict.reasons


def test_growth_without_a_known_capacity_is_still_seen(write_rows):
    verdict = judged(write_rows, 40 + 2.5 * np.arange(1000), None)
    assert verdict.flagged


def test_a_few_rows_say_nothing(write_rows):
    verdict = judged(write_rows, [50.0] * 199, FULL)
    assert verdict.word == "unknown" and not verdict.flagged


def test_a_start_from_empty_is_no_growth(write_rows):
    # Latency climbs from 20 to 50 ms in the first 5 % and stays: that is filling up.
    latencies = np.concatenate([np.linspace(20, 50, 50), 50 + 5 * np.sin(np.arange(950))])
    assert judged(write_rows, latencies.round(3), FULL * 2).word == "stable"


def test_the_slope_t_is_the_textbooks():
    rng = np.random.default_rng(3)
    y = 0.3 * np.arange(20) + rng.normal(0, 2, 20)
    x = np.arange(20) - 9.5
    b = (x @ y) / (x @ x)
    residual = y - y.mean() - b * x
    assert slope_t(y) == pytest.approx(b / np.sqrt((residual @ residual) / 18 / (x @ x)))


def test_the_bound_on_t_is_one_in_a_thousand_upward():
    assert stats.t.sf(3.61, 18) == pytest.approx(0.001, rel=0.01)
