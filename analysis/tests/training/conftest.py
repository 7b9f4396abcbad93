"""Recordings of the queueing model, made once for all tests of the training."""

import importlib.util

import pytest

if importlib.util.find_spec("catboost") is None:
    # test_installed.py says so.
    collect_ignore_glob = ["test_[!i]*.py"]


@pytest.fixture(scope="session")
def recording(tmp_path_factory):
    """A rows.csv of round robin at a load of 0.42, and its candidates with their true costs."""
    import pandas as pd  # noqa: PLC0415
    from queue_world import simulate  # noqa: PLC0415

    folder = tmp_path_factory.mktemp("recording")
    world = simulate(4000, 0.42, seed=7)
    (folder / "rows.csv").write_text(world.rows_csv(), encoding="utf-8")
    pd.DataFrame(world.candidates).to_csv(folder / "candidates.csv", index=False)
    return folder


@pytest.fixture(scope="session")
def dataset(recording):
    from plumbline_analysis.training import read_dataset  # noqa: PLC0415

    return read_dataset([recording / "rows.csv"], loads=[0.42])


@pytest.fixture(scope="session")
def quick():
    """The paper's hyperparameters with few trees."""
    from plumbline_analysis.training.parameters import PAPER  # noqa: PLC0415

    return PAPER | {"iterations": 40, "depth": 6}
