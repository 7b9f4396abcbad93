"""The cases that the testbed's own tests hold themselves to, too."""

import json
from pathlib import Path

import pytest

from plumbline_analysis import compare, load
from plumbline_analysis.compare import compare_folders
from plumbline_analysis.report import write_report
from plumbline_analysis.synthetic import Scenario
from plumbline_analysis.tables import as_json, as_text
from plumbline_analysis.validity import faults, first_few, reasons
from plumbline_analysis.verdict import verdict

CASES = json.loads((Path(__file__).parents[2] / "crates/testbed/cases/validity.json").read_text())


@pytest.mark.parametrize("case", CASES["cases"], ids=lambda case: case["name"])
def test_reasons_are_grouped_as_the_cases_say(case):
    arms = [
        {"run_id": f"b01-a{place}", "block": 1, "position": place, "state": "done", **arm}
        for place, arm in enumerate(case["arms"], start=1)
    ]
    manifest = {"arms": arms, "workload": {"rate_rps": 100.0}}
    assert list(reasons(manifest)) == case["lines"]
    assert (not faults(manifest)) == case["valid"]


def test_names_beyond_three_are_counted():
    assert first_few(["a", "b", "c"]) == "a, b, c"
    assert first_few(list("abcde")) == "a, b, c and 2 more"


def saturated(manifest):
    for arm in manifest["arms"][2:14]:
        arm["flags"] += ["generator_late", "generator_saturated"]
        arm["lateness_p99_us"] = 12_340.0


def smoke(manifest):
    manifest["preset"] = "smoke"


@pytest.mark.parametrize("edit", [saturated, smoke])
def test_without_claims_there_is_no_rank_and_no_difference_but_every_figure(make_folder, edit):
    results = load(make_folder(Scenario(requests=120), edit=edit))
    comparison = compare(results)
    assert comparison.ranking() == [] and comparison.differences == {}
    assert comparison.floor is None and not verdict(results, comparison).claim
    for arm in as_json(results, comparison)["strategies"]:
        assert arm["rank"] is None and arm["against_baseline"] is None and arm["claim"] is None
        assert arm["mean_ms"]["point"] > 0
    text = as_text(results, comparison)
    page = write_report(results.path).read_text()
    shown = page.partition("</style>")[2]
    for said in (text, shown):
        assert "faster" not in said and "slower" not in said and ">rank<" not in said
        assert "lower" not in said.replace("a lower --burn-fraction", "")
    for arm in comparison.arms:
        assert f"{arm.interval('mean_ms').point:.2f}" in text


def test_a_page_that_is_not_valid_gives_its_reasons_first_and_once(make_folder):
    results = load(make_folder(Scenario(requests=120), edit=saturated))
    page = write_report(results.path).read_text()
    (line,) = reasons(results.manifest)
    assert "in 12 of 18 runs" in line and page.count(line) == 1
    assert page.index("Not valid") < page.index(line) < page.index("<h2>Results")


def test_folders_of_which_one_is_not_valid_have_no_ratio(make_folder):
    a = load(make_folder(Scenario(requests=120, blocks=6), "a"))
    b = load(make_folder(Scenario(requests=120, blocks=6), "b", edit=saturated))
    found, conditions = compare_folders(a, b)
    assert all(not d.ratio.known and d.mean_b.known for d in found)
    assert all(d.ratio.point != d.ratio.point for d in found)
    assert conditions[0].startswith("the second is not valid: generator_saturated in 12 of 18")
