import math

import numpy as np
import pytest
from conftest import line
from scipy import stats

from plumbline_analysis import load, summarize
from plumbline_analysis.rows import read_rows
from plumbline_analysis.summarize import lateness_bound_ms, summarize_run


def run_of(write_rows, lines):
    return summarize_run("b01-a1", read_rows(write_rows(lines)))


def test_a_request_that_could_not_be_sent_makes_a_run_late_and_a_stopped_run_does_not(write_rows):
    nothing = {"sent_ns": "", "status": "", "done_ns": "", "latency_ms": "", "container": ""}

    def late(why):
        lost = line(seq=1, error=f"never_sent:{why}", warmup="true", **nothing)
        return summarize_run("b01-a1", read_rows(write_rows([line(seq=0), lost]))).late

    assert late("max_in_flight") and not late("interrupted")


def test_mean_and_percentiles_of_a_hundred_known_latencies(write_rows):
    # 1..101 ms in a scrambled order: mean and median 51, quantile q lies exactly at 1 + 100 q.
    order = np.random.default_rng(0).permutation(101)
    run = run_of(write_rows, [line(seq=i, latency_ms=float(1 + x)) for i, x in enumerate(order)])
    assert run.mean_ms == pytest.approx(51)
    assert (run.p50_ms, run.p95_ms, run.p99_ms) == pytest.approx((51, 96, 100))


def test_throughput_is_work_over_latency_and_differs_from_completed_per_second(write_rows):
    # 4 requests of 400 MI, 50 ms each, one every 10 ms: 1600/200 MI/ms; 4 in 80 ms.
    run = run_of(write_rows, [line(seq=i) for i in range(4)])
    assert run.throughput_mi_per_ms == pytest.approx(8.0)
    assert run.completed_rps == pytest.approx(4 / 0.080)


def test_the_warm_up_counts_nowhere(write_rows):
    lines = [line(seq=i, warmup="true", latency_ms=900.0, container="b") for i in range(5)]
    run = run_of(write_rows, lines + [line(seq=i) for i in range(5, 10)])
    assert run.mean_ms == pytest.approx(50)
    assert (run.rows, run.warmup_rows) == (5, 5)
    assert run.shares == {"a": 1.0}


def test_errors_stand_beside_latency_never_in_it(write_rows):
    nothing = {"status": "", "done_ns": "", "latency_ms": "", "container": ""}
    lines = [
        line(seq=0),
        line(seq=1, error="error:backend", status=500, latency_ms=1.0, container="b"),
        line(seq=2, error="timeout", status="", latency_ms=30000.0, container="b"),
        line(seq=3, error="cancelled", **nothing),
        line(seq=4, error="never_sent:in_flight_bound", sent_ns="", **nothing),
    ]
    run = run_of(write_rows, lines)
    assert run.mean_ms == pytest.approx(50)
    assert run.outcomes == {"ok": 1, "error": 1, "timeout": 1, "cancelled": 1, "never_sent": 1}
    assert run.shares == pytest.approx({"a": 1 / 3, "b": 2 / 3})


def test_a_run_without_a_good_answer_has_no_mean(write_rows):
    run = run_of(write_rows, [line(seq=i, error="error:refused", status="") for i in range(3)])
    assert math.isnan(run.mean_ms) and math.isnan(run.throughput_mi_per_ms)
    assert run.completed_rps == 0.0


@pytest.mark.parametrize(("gap_ms", "bound"), [(10, 1.0), (5, 1.0), (40, 4.0)])
def test_the_lateness_bound_is_a_millisecond_or_a_tenth_of_the_gap(write_rows, gap_ms, bound):
    lines = [line(seq=i, intended_ns=i * gap_ms * 1_000_000) for i in range(10)]
    assert lateness_bound_ms(read_rows(write_rows(lines))) == pytest.approx(bound)


@pytest.mark.parametrize(("late_us", "marked"), [(999, False), (1001, True)])
def test_a_late_generator_is_marked_just_above_the_bound(write_rows, late_us, marked):
    lines = [line(seq=i, sent_ns=i * 10_000_000 + late_us * 1000) for i in range(50)]
    run = run_of(write_rows, lines)
    assert run.late is marked
    assert run.lateness_p99_ms == pytest.approx(late_us / 1000)


def test_smooth_weighted_round_robin_shares_are_four_three_two(folder):
    arm = next(a for a in summarize(load(folder)) if a.label == "smooth-weighted-round-robin")
    # Over 320 requests the shares are within one request of 4/9, 3/9, 2/9.
    assert arm.shares() == pytest.approx({"a": 4 / 9, "b": 3 / 9, "c": 2 / 9}, abs=1 / 320)


def test_the_arm_interval_is_over_runs_not_requests(folder):
    arm = summarize(load(folder))[0]
    bounds = stats.ttest_1samp([r.mean_ms for r in arm.runs], 0).confidence_interval(0.95)
    found = arm.interval("mean_ms")
    assert len(arm.runs) == 6
    assert (found.low, found.high) == pytest.approx((bounds.low, bounds.high), rel=1e-12)
