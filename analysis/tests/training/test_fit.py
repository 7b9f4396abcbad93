import numpy as np
import pandas as pd
import pytest

from plumbline_analysis.training import measure
from plumbline_analysis.training.fit import Scales, Variant, fit
from plumbline_analysis.training.parameters import PAPER, PAPER_DOCKER
from plumbline_analysis.training.splits import split

ROBUST = Variant("robust")


@pytest.fixture(scope="module")
def parts(dataset):
    return split(dataset, "random", 42)


@pytest.fixture(scope="module")
def robust(dataset, parts, quick):
    return fit(dataset, parts, quick, ROBUST, verbose=0)


def test_the_papers_tables_are_as_printed():
    assert PAPER == {
        "iterations": 2250, "learning_rate": 0.23265, "depth": 9, "l2_leaf_reg": 5.9364,
        "bagging_temperature": 0.2211,
    }  # fmt: skip
    assert PAPER_DOCKER == {
        "iterations": 2450, "learning_rate": 0.18231, "depth": 10, "l2_leaf_reg": 4.88559,
        "bagging_temperature": 0.24547, "border_count": 128,
    }  # fmt: skip


def test_the_library_trains_with_what_it_was_told(dataset, parts):
    fitted = fit(dataset, parts, PAPER | {"iterations": 30}, verbose=0)
    used = fitted.model.get_all_params()
    assert used["bootstrap_type"] == "Bayesian" and used["loss_function"] == "RMSE"
    assert used["random_seed"] == 42 and used["depth"] == 9 and used["use_best_model"] is True
    for name in ("learning_rate", "l2_leaf_reg", "bagging_temperature"):
        assert used[name] == pytest.approx(PAPER[name], rel=1e-6)
    assert used["od_wait"] == 100
    assert fitted.inputs == ["method", "url", "cores", "memory_gb", "active", "mean50"]
    assert fitted.kept_trees <= fitted.cap_trees == 30


def test_early_stopping_keeps_few_trees_and_all_trees_keeps_all(dataset, parts, quick):
    stopped = fit(dataset, parts, quick | {"iterations": 300}, verbose=0)
    assert 5 <= stopped.kept_trees < 200
    every = fit(dataset, parts, quick, all_trees=True, verbose=0)
    assert every.kept_trees == every.cap_trees == 40
    assert 0.7 < measure.r2_of(stopped, dataset, parts)["test"] < 0.95


def test_the_same_rows_and_seed_give_the_same_model(dataset, parts, quick):
    one, same, other = (
        fit(dataset, parts, quick, seed=s, verbose=0).predict(dataset.frame) for s in (1, 1, 2)
    )
    assert (one == same).all() and (one != other).any()


def test_the_robust_one_never_falls_with_requests_nor_rises_with_cores(dataset, robust):
    assert robust.inputs == ["cores", "active"]
    counts = np.arange(200.0)
    predicted = {
        cores: robust.predict(
            pd.DataFrame(
                {"method": "GET", "url": "/users", "cores": float(cores), "active": counts}
            )
        )
        for cores in (2, 3, 4)
    }
    for values in predicted.values():
        assert (np.diff(values) >= 0).all() and values[-1] > values[0] > 0
    assert (predicted[2] >= predicted[3]).all() and (predicted[3] >= predicted[4]).all()


def test_the_robust_one_multiplies_the_lower_quartile_of_the_api(dataset, parts, robust):
    train = dataset.frame.iloc[parts.train]
    mine = train[(train["method"] == "GET") & (train["url"] == "/items")]["latency_ms"]
    assert robust.scales.scale("GET", "/items") == pytest.approx(np.quantile(mine, 0.25))
    get = train[train["method"] == "GET"]["latency_ms"]
    assert robust.scales.scale("GET", "/new") == pytest.approx(np.quantile(get, 0.25))
    everything = np.quantile(train["latency_ms"], 0.25)
    assert robust.scales.scale("BREW", "/items") == pytest.approx(everything)
    frame = pd.DataFrame(
        {"method": ["GET", "GET"], "url": ["/items", "/new"], "cores": 4.0, "active": 3.0}
    )
    items, new = robust.predict(frame)
    ratio = robust.scales.scale("GET", "/items") / robust.scales.scale("GET", "/new")
    assert items / new == pytest.approx(ratio)


def test_scales_are_quantiles_of_each_api():
    frame = pd.DataFrame(
        {
            "method": ["GET"] * 5 + ["PUT"],
            "url": ["/a"] * 5 + ["/b"],
            "latency_ms": [1.0, 2, 3, 4, 5, 9],
        }
    )
    scales = Scales.of(frame)
    assert scales.scale("GET", "/a") == 2.0 and scales.scale("PUT", "/b") == 9.0
    assert scales.scale("PUT", "/c") == 9.0 and scales.scale("X", "/a") == 2.25
