"""Table and library say the same to the last bit: every difference must be 0."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from catboost import CatBoostRegressor, Pool

from plumbline_analysis.training.export import build_table, describe, load_model, save_model, verify
from plumbline_analysis.training.fit import PAPER_VARIANT, Fitted, Variant, fit
from plumbline_analysis.training.splits import split
from plumbline_analysis.training.tablefile import read_table

FIXTURES = Path(__file__).parents[3] / "crates" / "predictor" / "fixtures"
NAMES = ["early-stopped", "one-hot", "single", "combinations"]
KINDS = {
    "default": {},
    "one-hot": {"one_hot_max_size": 255},
    "single": {"max_ctr_complexity": 1},
    "combinations": {"max_ctr_complexity": 4, "model_size_reg": 0.0},
    "robust": {},
}


@pytest.fixture(scope="module")
def built(dataset, quick):
    """Fits and tables of every kind, as (fitted, about, table)."""
    parts = split(dataset, "random", 42)
    out = {}
    for kind, extra in KINDS.items():
        variant = Variant("robust") if kind == "robust" else PAPER_VARIANT
        fitted = fit(dataset, parts, quick | extra, variant, all_trees=True, verbose=0)
        r2 = {k: {"validation": None, "test": None} for k in ("random", "blocked")}
        about = describe(fitted, dataset.containers, dataset.apis, {}, r2, "random")
        out[kind] = (fitted, about, build_table(fitted, about, "0" * 64))
    return out


def random_rows(table, count: int) -> pd.DataFrame:
    """Any API, unknown ones too, any container; values at random, on borders and one f32 beyond."""
    rng = np.random.default_rng(11)
    apis = rng.choice(len(table.header["apis"]), count)
    shapes = [(c["cores"], c["memory_gb"]) for c in table.header["containers"]]
    places = rng.choice(len(shapes), count)
    columns = {
        "method": [table.header["apis"][a]["method"] or "BREW" for a in apis],
        "url": [table.header["apis"][a]["url"] or "/not/known" for a in apis],
        "cores": [shapes[p][0] for p in places],
        "memory_gb": [shapes[p][1] for p in places],
    }
    for axis, low, high in zip(table.header["axes"], (0, 0), (20, 600), strict=True):
        values = rng.uniform(low, high, count).astype(np.float32)
        borders = np.array(axis["borders"], np.float32)
        if len(borders):
            on = rng.choice(borders, count)
            values = np.where(rng.random(count) < 0.3, on, values)
            values = np.where(rng.random(count) < 0.3, np.nextafter(on, np.float32(np.inf)), values)
        columns[axis["feature"]] = values
    frame = pd.DataFrame(columns)
    for name in ("method", "url"):
        frame[name] = pd.Series(columns[name], dtype=object)
    return frame


@pytest.mark.parametrize("kind", KINDS)
def test_three_thousand_random_rows_are_equal(built, kind):
    fitted, _, table = built[kind]
    rows = random_rows(table, 3000)
    expected = fitted.predict(rows)
    first, second = (axis["feature"] for axis in table.header["axes"])
    got = [
        table.predict(
            table.api(row["method"], row["url"]),
            table.container(row["cores"], row["memory_gb"]),
            row[first],
            row[second],
        )
        for row in rows.to_dict("records")
    ]
    assert np.array_equal(np.array(got).view(np.int64), expected.view(np.int64))
    assert len(np.unique(expected)) > 100


@pytest.mark.parametrize("kind", KINDS)
def test_every_cell_is_equal_at_both_ends_of_its_bin(built, kind):
    fitted, _, table = built[kind]
    assert verify(table, fitted) == (2 * table.cells.size, 0)


def test_the_check_finds_one_last_bit_and_one_lost_border(built):
    fitted, _, table = built["default"]
    cells = table.cells.copy()
    cells[3, 1, 2, 3] = np.nextafter(cells[3, 1, 2, 3], np.inf)
    assert verify(dataclasses.replace(table, cells=cells), fitted)[1] == 2
    header = json.loads(json.dumps(table.header))
    del header["axes"][0]["borders"][2]
    shorter = dataclasses.replace(table, header=header, cells=np.delete(table.cells, 2, axis=2))
    assert verify(shorter, fitted)[1] > 0


@pytest.mark.parametrize("kind", ["combinations", "robust"])
def test_a_stored_model_gives_the_same_table(built, kind, tmp_path):
    fitted, about, table = built[kind]
    save_model(fitted, about, tmp_path / "model.cbm")
    again, said = load_model(tmp_path / "model.cbm")
    assert said == about
    rebuilt = build_table(again, said, "0" * 64)
    assert rebuilt.header == table.header
    assert np.array_equal(rebuilt.cells.view(np.int64), table.cells.view(np.int64))


def test_combinations_put_tests_of_numbers_into_counters(built, tmp_path):
    """Without this, the borders inside counters would go untested."""
    built["combinations"][0].model.save_model(str(tmp_path / "m.json"), format="json")
    ctrs = json.loads((tmp_path / "m.json").read_text())["features_info"]["ctrs"]
    kinds = {e["combination_element"] for c in ctrs for e in c["elements"]}
    assert "float_feature" in kinds


def stored_model(name: str) -> CatBoostRegressor:
    """The library's own reader of exports loses the last bit of some leaves; the crate's does not."""
    model = CatBoostRegressor()
    model.load_model(str(FIXTURES / f"{name}.json"), format="json")
    return model


def stored_rows() -> pd.DataFrame:
    layout = np.dtype(
        [*((n, "u1") for n in ("m", "u", "c", "g")), ("active", "<f4"), ("mean50", "<f4")]
    )
    rows = np.frombuffer((FIXTURES / "rows.bin").read_bytes(), layout)
    texts = json.loads((FIXTURES / "texts.json").read_text(encoding="utf-8"))
    return pd.DataFrame(
        {
            "method": pd.Series([texts["methods"][i] for i in rows["m"]], dtype=object),
            "url": pd.Series([texts["urls"][i] for i in rows["u"]], dtype=object),
            "cores": rows["c"].astype(np.float32),
            "memory_gb": rows["g"].astype(np.float32),
            "active": rows["active"].astype(np.float32),
            "mean50": rows["mean50"].astype(np.float32),
        }
    )


@pytest.mark.parametrize("name", NAMES)
def test_the_stored_predictions_are_the_librarys(name):
    expected = np.frombuffer((FIXTURES / f"{name}.f64").read_bytes(), "<f8")
    got = stored_model(name).predict(Pool(stored_rows(), cat_features=["method", "url"]))
    assert len(expected) == 3000
    np.testing.assert_allclose(got, expected, rtol=1e-14)


@pytest.mark.parametrize("name", ["early-stopped", "combinations"])
def test_the_stored_tables_are_those_of_the_stored_models(name):
    table = read_table(FIXTURES / f"{name}.plbtab")
    model = stored_model(name)
    fitted = Fitted(model, PAPER_VARIANT, ("active", "mean50"), model.tree_count_, 60, 0.0)
    about = table.header | {"axes": [{"feature": name} for name in fitted.axes]}
    rebuilt = build_table(fitted, about, "0" * 64)
    assert rebuilt.header == table.header
    np.testing.assert_allclose(rebuilt.cells, table.cells, rtol=1e-14)
