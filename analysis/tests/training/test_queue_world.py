"""The source of the training tests is itself right: against Erlang's formula, and by running it."""

import copy

import numpy as np
import pandas as pd
import pytest
from queue_world import CORES, MI_PER_MS, NETWORK_MS, Worker, simulate

from plumbline_analysis.rows import read_rows


def erlang_mean(cores: int, load: float) -> float:
    """Mean time in units of the mean size: PS(c), any size distribution."""
    a = cores * load
    below = sum(a**k / np.prod(np.arange(1, k + 1)) for k in range(cores))
    waiting = a**cores / np.prod(np.arange(1, cores + 1)) * cores / (cores - a)
    return 1 + waiting / (below + waiting) / (cores * (1 - load))


def test_random_shares_give_the_mean_of_theory(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(simulate(20_000, 0.6, "weighted-random", seed=3).rows_csv())
    rows = read_rows(path)
    rows = rows[~rows["warmup"]]
    for name, cores in zip("abc", CORES, strict=True):
        mine = rows[rows["container"] == name]
        time = (mine["latency_ms"] - 2 * NETWORK_MS).sum()
        slowdown = time / (mine["task_size_mi"].sum() / MI_PER_MS)
        assert slowdown == pytest.approx(erlang_mean(cores, 0.6), rel=0.04)


def test_the_true_cost_is_the_time_it_takes_when_nobody_else_comes():
    rng = np.random.default_rng(5)
    for cores in CORES:
        for held in range(12):
            worker = Worker(cores)
            for request in range(held):
                worker.advance(worker.now + rng.exponential(5))
                worker.add(request, rng.lognormal(5, 1))
            for mi in rng.lognormal(5, 1, 3):
                ran = copy.deepcopy(worker)
                ran.add(99, mi)
                begun = ran.now
                ran.advance(float("inf"))
                assert worker.cost_ms(mi) == pytest.approx(ran.done[99] - begun, rel=1e-9)


def test_one_seed_gives_one_recording():
    one, again, other = (simulate(300, 0.5, seed=s) for s in (1, 1, 2))
    assert one.lines == again.lines and one.lines != other.lines
    frame = pd.DataFrame(one.candidates)
    assert len(frame) == 300 * len(CORES) and (frame["cost_ms"] > 0).all()
