import hashlib
import json

import pytest

from plumbline_analysis import Problem, load
from plumbline_analysis.synthetic import Scenario

SMALL = Scenario(blocks=2, requests=20)


def test_a_folder_is_read_whole(make_folder):
    results = load(make_folder(SMALL))
    assert len(results.rows) == 2 * 3 * 20
    assert results.labels == ["round-robin", "smooth-weighted-round-robin", "aa:round-robin"]
    assert results.baseline == "round-robin"
    assert results.workers == ["a", "b", "c"]
    assert results.left_out == []


def test_rows_of_an_arm_that_is_not_done_are_left_out_and_named(make_folder):
    def fail_the_last(manifest):
        manifest["arms"][-1]["state"] = "failed"
        manifest["complete"] = False

    results = load(make_folder(SMALL, edit=fail_the_last))
    assert results.left_out == ["b02-a3"]
    assert "b02-a3" not in set(results.rows["run_id"])


def test_a_done_arm_must_have_all_of_its_rows(make_folder):
    path = make_folder(SMALL)
    text = (path / "rows.csv").read_text().splitlines(keepends=True)
    (path / "rows.csv").write_text("".join(text[:-1]))
    with pytest.raises(Problem, match="b02-a3: 19 rows, the manifest says 20"):
        load(path)


def digests(path):
    """The manifest as the testbed writes it: each arm's digest is of the header and its own lines."""
    header, *lines = (path / "rows.csv").read_text().splitlines(keepends=True)
    manifest = json.loads((path / "manifest.json").read_text())
    for arm in manifest["arms"]:
        own = header + "".join(x for x in lines if x.startswith(arm["run_id"] + ","))
        arm["rows_sha256"] = hashlib.sha256(own.encode()).hexdigest()
    (path / "manifest.json").write_text(json.dumps(manifest))
    return path


def test_recorded_rows_are_read_and_changed_ones_refused(make_folder):
    path = digests(make_folder(SMALL))
    assert len(load(path).rows) == 2 * 3 * 20
    text = (path / "rows.csv").read_text()
    (path / "rows.csv").write_text(text.replace(",GET,", ",PUT,", 1))
    with pytest.raises(Problem, match=r"b\d\d-a\d: rows have changed since they were recorded"):
        load(path)
    (path / "rows.csv").write_text(text[:-30])
    with pytest.raises(Problem, match="b02-a3: 19 rows of 20"):
        load(path)


def test_rows_under_another_label_are_refused(make_folder):
    def relabel(manifest):
        manifest["arms"][0]["label"] = "random"

    with pytest.raises(Problem, match=r"strategy of b01-a1: .*: the manifest says random"):
        load(make_folder(SMALL, edit=relabel))


def test_fields_of_later_versions_are_kept(make_folder):
    results = load(make_folder(SMALL, edit=lambda m: m.update(later="kept")))
    assert results.manifest["later"] == "kept"


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (
            lambda m: m.update(schema="plumbline.manifest/9"),
            "schema: 'plumbline.manifest/9': allowed",
        ),
        (lambda m: m.pop("burn"), "burn: is missing"),
        (lambda m: m["arms"][1].pop("state"), r"arms\[1\].state: is missing"),
    ],
)
def test_a_bad_manifest_is_refused_by_field(make_folder, edit, message):
    with pytest.raises(Problem, match=message):
        load(make_folder(SMALL, edit=edit))


def test_a_manifest_that_is_not_json_names_the_place(make_folder):
    path = make_folder(SMALL)
    (path / "manifest.json").write_text('{"schema":\n nonsense}')
    with pytest.raises(Problem, match=r"manifest\.json:2:2: not JSON"):
        load(path)


def test_a_lone_rows_file_is_read_without_a_manifest(make_folder):
    results = load(make_folder(SMALL) / "rows.csv")
    assert results.manifest == {}
    assert results.baseline in results.labels
    assert results.mips_per_core is None


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(Problem, match="no such file or folder"):
        load(tmp_path / "nowhere")
