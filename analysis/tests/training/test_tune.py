import numpy as np
import pytest
from queue_world import simulate

from plumbline_analysis.problem import Problem
from plumbline_analysis.training.dataset import read_dataset
from plumbline_analysis.training.fit import fit
from plumbline_analysis.training.parameters import PAPER
from plumbline_analysis.training.splits import split
from plumbline_analysis.training.tune import best_parameters, tune

BASE = PAPER | {"iterations": 15}


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    path = tmp_path_factory.mktemp("tune") / "rows.csv"
    path.write_text(simulate(400, 0.42, seed=2).rows_csv())
    data = read_dataset([path])
    return data, split(data, "random", 42)


def search(small, path, trials, **changes):
    options = {"base": BASE, "seed": 42, "threads": 1, "show_progress": False} | changes
    return tune(*small, path, trials=trials, **options)


def test_an_interrupted_search_goes_on_where_it_was(small, tmp_path):
    path = tmp_path / "study.db"
    first = [t.params for t in search(small, path, 2).trials]
    assert len(first) == 2
    second = search(small, path, 4)
    assert len(second.trials) == 4
    assert [t.params for t in second.trials[:2]] == first
    drawn = [tuple(t.params.values()) for t in second.trials]
    assert len(set(drawn)) == 4, "a resumed search must not draw the same again"
    assert len(search(small, path, 3).trials) == 4, "a finished search is only read"


def test_the_best_trial_has_the_least_validation_error_of_its_parameters(small, tmp_path):
    data, parts = small
    study = search(small, tmp_path / "study.db", 3)
    assert study.best_value == min(t.value for t in study.trials)
    best = best_parameters(study, BASE)
    assert best["iterations"] == 15 and 4 <= best["depth"] <= 10
    assert 0.005 <= best["learning_rate"] <= 0.3
    again = fit(data, parts, best, threads=1, verbose=0)
    rows = data.frame.iloc[parts.validation]
    error = again.predict(rows) - rows["latency_ms"].to_numpy()
    assert study.best_value == pytest.approx(float(np.sqrt(np.mean(error**2))), rel=1e-9)
    assert study.best_trial.user_attrs["kept_trees"] == again.kept_trees


def test_a_search_refuses_rows_or_settings_that_are_not_its_own(small, tmp_path):
    path = tmp_path / "study.db"
    search(small, path, 1)
    with pytest.raises(Problem, match="begun with other fixed; name another --out"):
        search(small, path, 1, base=BASE | {"iterations": 16})
    rows = tmp_path / "rows.csv"
    rows.write_text(simulate(400, 0.42, seed=3).rows_csv())
    other = read_dataset([rows])
    with pytest.raises(Problem, match="begun with other rows_sha256"):
        search((other, split(other, "random", 42)), path, 1)


def test_a_file_that_is_no_study_is_refused(small, tmp_path):
    path = tmp_path / "study.db"
    path.write_text("not a database, but long enough to look at" * 100)
    with pytest.raises(Problem, match="no study of a search; name another --out"):
        search(small, path, 1)
