"""From a model to its table, and the check that both say the same to the last bit."""

from __future__ import annotations

import hashlib
import json
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from catboost import CatBoostError, CatBoostRegressor
from catboost import __version__ as catboost_version

from ..problem import Problem
from .fit import Fitted, Scales, Variant
from .tablefile import MAX_FILE_BYTES, SCHEMA, Table, representatives, shape_of

METADATA = "plumbline"
"""Key in the model file under which everything is kept that the trees do not say."""

UNSEEN = "(unseen)"


def describe(
    fitted: Fitted,
    containers: list[tuple[float, float]],
    apis: list[tuple[str, str]],
    trained_on: dict,
    r2: dict,
    split: str,
) -> dict:
    """What goes into the model file beside the trees, and from there into the table's header."""
    about = {
        "schema": SCHEMA,
        "catboost_version": catboost_version,
        "kept_trees": fitted.kept_trees,
        "cap_trees": fitted.cap_trees,
        "r2": r2,
        "trained_on": trained_on,
        "unit": "ms",
        "axes": [{"feature": name} for name in fitted.axes],
        "containers": [{"cores": c, "memory_gb": m} for c, m in containers],
        "apis": with_stand_ins(apis),
        "variant": fitted.variant.name,
        "split": split,
    }
    if fitted.scales is not None:
        about["scales_ms"] = [fitted.scales.scale(a["method"], a["url"]) for a in about["apis"]]
    return about


def with_stand_ins(apis: list[tuple[str, str]]) -> list[dict]:
    """The APIs, one stand-in for unknown URLs of each method, one for unknown methods."""
    methods = sorted({method for method, _ in apis})
    names = [*apis, *((method, None) for method in methods), (None, None)]
    return [{"method": method, "url": url} for method, url in names]


def save_model(fitted: Fitted, about: dict, path: Path) -> None:
    """Writes the model in the library's own form, with what it is about inside.

    What the library adds by chance and by the clock is left out, so the same rows, seed and
    versions give the same bytes.
    """
    metadata = fitted.model.get_metadata()
    metadata[METADATA] = json.dumps(about, ensure_ascii=False)
    for key in ("model_guid", "train_finish_time"):
        metadata[key] = ""
    part = path.with_name(path.name + ".part")
    fitted.model.save_model(str(part), format="cbm")
    part.replace(path)


def load_model(path: Path | str) -> tuple[Fitted, dict]:
    """Reads what ``save_model`` wrote."""
    if not Path(path).is_file():
        raise Problem(str(path), "no such file", next_step="name the model.cbm of a training")
    model = CatBoostRegressor()
    try:
        model.load_model(str(path), format="cbm")
    except CatBoostError as error:
        raise Problem(str(path), "no model of CatBoost's binary form") from error
    metadata = dict(model.get_metadata())
    if METADATA not in metadata:
        raise Problem(
            str(path), "says nothing of its rows", next_step="name a model that `train` wrote"
        )
    about = json.loads(metadata[METADATA])
    scales = None
    if "scales_ms" in about:
        named = {
            (a["method"], a["url"]): x
            for a, x in zip(about["apis"], about["scales_ms"], strict=True)
        }
        by_method = {m: x for (m, u), x in named.items() if m is not None and u is None}
        by_api = {key: x for key, x in named.items() if key[1] is not None}
        scales = Scales(by_api, by_method, named[None, None])
    fitted = Fitted(
        model,
        Variant(about["variant"]),
        tuple(axis["feature"] for axis in about["axes"]),
        model.tree_count_,
        about["cap_trees"],
        0.0,
        scales,
    )
    return fitted, about


def build_table(fitted: Fitted, about: dict, model_sha256: str) -> Table:
    """The table of every prediction: each bin is asked at its upper border.

    A split is "greater than the border", so every value of a bin gets the same answers; the last
    bin is asked one f32 above the last border.
    """
    borders = borders_of(fitted.model, fitted.axes)
    header = {key: value for key, value in about.items() if key != "scales_ms"}
    header["model_sha256"] = model_sha256
    header["axes"] = [
        {"feature": name, "borders": [float(b) for b in borders[name]]} for name in fitted.axes
    ]
    shape = shape_of(header)
    if np.prod(shape, dtype=float) * 8 > MAX_FILE_BYTES:
        raise Problem(
            "table",
            f"{' x '.join(map(str, shape))} cells of 8 bytes (allowed: {MAX_FILE_BYTES} bytes)",
            next_step="train with a smaller border_count, such as 128",
        )
    values = [representatives(borders[name]) for name in fitted.axes]
    cells = np.empty(shape)
    for place in range(shape[0]):
        cells[place] = fitted.predict(grid(header, place, values)).reshape(shape[1:])
    if not np.isfinite(cells).all():
        raise Problem("table", "the model predicts values that are not finite")
    return Table(header, cells)


def grid(header: dict, api: int, values: list[np.ndarray]) -> pd.DataFrame:
    """Every container with every pair of values, for one API, in the order of the cells."""
    shapes = [(c["cores"], c["memory_gb"]) for c in header["containers"]]
    places, first, second = (
        axis.ravel() for axis in np.meshgrid(np.arange(len(shapes)), *values, indexing="ij")
    )
    method, url = _texts(header, api)
    count = len(places)
    names = [axis["feature"] for axis in header["axes"]]
    return pd.DataFrame(
        {
            "method": pd.Series([method] * count, dtype=object),
            "url": pd.Series([url] * count, dtype=object),
            "cores": np.array([cores for cores, _ in shapes])[places],
            "memory_gb": np.array([memory for _, memory in shapes])[places],
            names[0]: first,
            names[1]: second,
        }
    )


def _texts(header: dict, api: int) -> tuple[str, str]:
    """What the model is told of an API; of a stand-in, a text that training never saw."""
    out = []
    for key in ("method", "url"):
        text = header["apis"][api][key]
        if text is None:
            known = {a[key] for a in header["apis"]}
            text = UNSEEN
            while text in known:
                text += "."
        out.append(text)
    return out[0], out[1]


def borders_of(model: CatBoostRegressor, names: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Every value at which an answer about these inputs changes, f32, ascending.

    The library's own list of borders, and the tests inside combinations of categories.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json")
        features = json.loads(path.read_text(encoding="utf-8"))["features_info"]
    floats = features.get("float_features", [])
    found = {name: set() for name in names}
    for feature in floats:
        if feature["feature_id"] in found:
            found[feature["feature_id"]] |= set(feature.get("borders") or [])
    for ctr in features.get("ctrs", []):
        for element in ctr["elements"]:
            if element["combination_element"] == "float_feature":
                name = floats[element["float_feature_index"]]["feature_id"]
                if name in found:
                    found[name].add(element["border"])
    return {name: np.unique(np.array(sorted(b), np.float32)) for name, b in found.items()}


def verify(table: Table, fitted: Fitted) -> tuple[int, int]:
    """Asks the model at every bin's upper border and at its first f32, and counts (asked, differing).

    Exact: a difference in the last bit counts.
    """
    borders = [np.array(axis["borders"], np.float32) for axis in table.header["axes"]]
    upper = [representatives(b) for b in borders]
    # The first f32 of a bin is the one after the border below it; the first bin has none.
    lowest = [
        np.concatenate([u[:1], np.nextafter(b, np.float32(np.inf))]).astype(np.float32)
        for u, b in zip(upper, borders, strict=True)
    ]
    asked = differing = 0
    for place in range(len(table.header["apis"])):
        want = table.cells[place]
        for values in (upper, lowest):
            got = fitted.predict(grid(table.header, place, values)).reshape(want.shape)
            asked += got.size
            differing += int((got != want).sum())
    return asked, differing


def sha256_of(path: Path) -> str:
    """SHA-256 of a file, in hex."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
