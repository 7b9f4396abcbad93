import numpy as np
import pandas as pd
import pytest

from plumbline_analysis.problem import Problem
from plumbline_analysis.training import measure
from plumbline_analysis.training.fit import fit
from plumbline_analysis.training.splits import split


class Says:
    """Predicts what a column says."""

    def predict(self, frame):
        return frame["said"].to_numpy()


def test_r2_is_one_for_the_truth_zero_for_the_mean_and_undefined_without_variance():
    actual = np.array([1.0, 2.0, 3.0, 6.0])
    assert measure.r2(actual, actual) == 1
    assert measure.r2(actual, np.full(4, 3.0)) == 0
    # Squares of the errors 1, of the deviations 14.
    assert measure.r2(actual, np.array([1.0, 2.0, 3.0, 5.0])) == pytest.approx(1 - 1 / 14)
    assert measure.r2(np.ones(4), actual) is None
    assert measure.r2(np.ones(1), np.ones(1)) is None


def test_calibration_of_a_prediction_half_as_large():
    actual = np.arange(1.0, 101)
    found = measure.calibration(actual, actual / 2 + 3)
    assert found["slope"] == pytest.approx(2) and found["intercept_ms"] == pytest.approx(-6)
    assert [p["rows"] for p in found["parts"]] == [10] * 10
    assert found["parts"][0]["latency_ms"] == 5.5 and found["parts"][0]["predicted_ms"] == 5.75


def test_calibration_of_one_value_has_no_line():
    found = measure.calibration(np.arange(1.0, 11), np.full(10, 4.0))
    assert found["slope"] is None and found["intercept_ms"] is None


def candidates(*requests):
    rows = [
        {"run_id": "r", "seq": seq, "cost_ms": cost, "said": said}
        for seq, pairs in enumerate(requests)
        for cost, said in pairs
    ]
    return pd.DataFrame(rows)


def test_order_counts_pairs_of_clearly_different_costs():
    found = measure.ranking(
        Says(),
        candidates(
            [(10, 1), (20, 2), (30, 3)],  # all three right
            [(10, 3), (10.4, 1), (20, 2)],  # 10 and 10.4 are too close; one right, one wrong
            [(10, 7), (20, 7)],  # equal predictions: half
        ),
    )
    assert found["pairs"] == 3 + 2 + 1
    assert found["accuracy"] == pytest.approx((3 + 1 + 0.5) / 6)
    # Picks: 10, 10.4 and, of equals the first, 10.
    assert found["hit_rate"] == pytest.approx(2 / 3)
    assert found["regret_ms"] == pytest.approx(0.4 / 3)


def test_rows_of_one_request_need_not_stand_together():
    together = candidates([(10, 1), (20, 2)], [(5, 2), (9, 1)])
    assert measure.ranking(Says(), together) == measure.ranking(Says(), together.iloc[[0, 2, 1, 3]])


def test_a_model_orders_candidates_better_than_chance_and_importance_adds_up(
    dataset, recording, quick
):
    fitted = fit(dataset, split(dataset, "random", 42), quick, verbose=0)
    found = measure.ranking(
        fitted, measure.read_candidates([recording / "candidates.csv"], "polled")
    )
    assert found["requests"] == 4000 and found["pairs"] > 500
    assert found["accuracy"] > 0.8
    shares = measure.importance(fitted)
    assert set(shares) == set(fitted.inputs)
    assert sum(shares.values()) == pytest.approx(100)
    # The API decides the size of the work, by far the most of the variance.
    assert shares["url"] + shares["method"] > 50


def test_candidates_that_cannot_be_read_are_refused_with_the_line(tmp_path, recording):
    def read(path):
        return measure.read_candidates([path], "polled")

    with pytest.raises(Problem, match="no such file"):
        read(tmp_path / "none.csv")
    text = (recording / "candidates.csv").read_text()
    path = tmp_path / "candidates.csv"
    path.write_text(text.replace("cost_ms", "cost"))
    with pytest.raises(Problem, match="cost_ms: column is missing"):
        read(path)
    lines = text.splitlines()
    lines[3] = lines[3].rsplit(",", 1)[0] + ",inf"
    path.write_text("\n".join(lines))
    with pytest.raises(Problem, match=r"candidates.csv:4: cost_ms: .*not a finite number"):
        read(path)
    path.write_text("")
    with pytest.raises(Problem, match="not CSV"):
        read(path)


def test_candidates_of_several_files_stay_apart_and_what_was_not_known_is_0(tmp_path, recording):
    lines = (recording / "candidates.csv").read_text().splitlines()
    place = lines[0].split(",").index("in_flight")
    cells = lines[1].split(",")
    cells[place] = ""
    path = tmp_path / "candidates.csv"
    path.write_text("\n".join([lines[0], ",".join(cells), *lines[2:]]))
    found = measure.read_candidates([recording / "candidates.csv", path], "live")
    assert len(found) == 2 * (len(lines) - 1)
    assert found.groupby(["run_id", "seq"]).size().unique().tolist() == [3]
    assert found["active"].iloc[len(lines) - 1] == 0
    assert list(found.columns) == [
        "run_id", "seq", "method", "url", "cores", "memory_gb", "active", "mean50", "cost_ms",
    ]  # fmt: skip
    with pytest.raises(Problem, match="cpu_percent: column is missing"):
        measure.read_candidates([path], "docker")
