import math

import numpy as np
import pytest
from scipy import stats

from plumbline_analysis import compare, compare_folders, load
from plumbline_analysis.compare import leaders, welch
from plumbline_analysis.intervals import holm
from plumbline_analysis.stability import Verdict
from plumbline_analysis.summarize import Arm, Run
from plumbline_analysis.synthetic import Scenario
from plumbline_analysis.verdict import verdict


class Known:
    """Results whose labels are known; the arms are given beside."""

    def __init__(self, labels):
        self.labels, self.baseline, self.manifest = labels, labels[0], {}


def run(label, block, mean_ms, word="stable", failed=0):
    return Run(
        f"b{block}-{label}", block, label, 1000, 0,
        {"ok": 1000 - failed, "error": failed, "timeout": 0, "cancelled": 0, "never_sent": 0},
        mean_ms, mean_ms, mean_ms, mean_ms, 400 / mean_ms, 100.0, {"a": 1.0}, 0.1, 0.2, 0.3, False, Verdict(word),
    )  # fmt: skip


def compared(means: dict[str, list[float]], words=None, failed=None):
    words, failed = words or {}, failed or {}
    arms = [
        Arm(
            k,
            [run(k, b, x, words.get(k, "stable"), failed.get(k, 0)) for b, x in enumerate(v, 1)],
        )
        for k, v in means.items()
    ]
    known = Known(
        [k for k in means if not k.startswith("aa:")] + [k for k in means if k.startswith("aa:")]
    )
    return known, compare(known, arms=arms)


BASE = [100.0, 130.0, 90.0, 110.0, 105.0, 95.0, 120.0]
AA = [100.5, 129.5, 90.3, 110.2, 104.6, 95.4, 119.8]


def test_a_constant_ratio_is_found_exactly_whatever_the_blocks_do():
    _, c = compared({"rr": BASE, "x": [0.9 * v for v in BASE], "aa:rr": AA})
    d = c.mean("x")
    assert d.ratio.point == pytest.approx(0.9, rel=1e-12)
    assert d.ratio.half_width == pytest.approx(0, abs=1e-12)
    assert d.p == 2.0**-6
    assert c.claim("x") == "faster"


def test_the_interval_is_scipys_paired_t_on_logs():
    x = [95.0, 118.0, 88.0, 104.0, 99.0, 93.0, 110.0]
    _, c = compared({"rr": BASE, "x": x, "aa:rr": AA})
    bounds = stats.ttest_rel(np.log(x), np.log(BASE)).confidence_interval(0.95)
    d = c.mean("x")
    assert (d.ratio.low, d.ratio.high) == pytest.approx(
        (math.exp(bounds.low), math.exp(bounds.high)), rel=1e-12
    )


def test_only_blocks_that_both_have_are_paired():
    arms = [
        Arm("rr", [run("rr", 1, 100), run("rr", 3, 50)]),
        Arm("x", [run("x", 1, 90), run("x", 2, 1), run("x", 3, 45)]),
    ]
    d = compare(Known(["rr", "x"]), arms=arms).mean("x")
    assert d.blocks == [1, 3]
    assert d.ratio.point == pytest.approx(0.9)


def test_holm_counts_strategies_and_not_the_a_a_arm():
    rng = np.random.default_rng(4)
    noisy = {
        k: [v * f for v, f in zip(BASE, rng.normal(0.97, 0.03, 7), strict=True)] for k in "xyz"
    }
    _, c = compared({"rr": BASE, **noisy, "aa:rr": AA})
    p = [c.mean(k).p for k in "xyz"]
    assert [c.mean(k).p_holm for k in "xyz"] == holm(p)
    assert len({label for label, _ in c.differences}) == 3


def test_a_difference_within_the_noise_is_no_claim():
    noisy_aa = [v * f for v, f in zip(BASE, [1.1, 0.9, 1.05, 0.95, 1.1, 0.92, 1.0], strict=True)]
    known, c = compared({"rr": BASE, "x": [0.97 * v for v in BASE], "aa:rr": noisy_aa})
    assert c.mean("x").p_holm < 0.05
    assert c.claim("x") == ""
    said = verdict(known, c)
    assert not said.claim and "within the noise" in said.sure


def test_without_an_a_a_arm_nothing_is_claimed():
    known, c = compared({"rr": BASE, "x": [0.5 * v for v in BASE]})
    assert c.claim("x") == ""
    assert "A/A" in verdict(known, c).sure


def test_five_blocks_cannot_carry_a_claim():
    known, c = compared({"rr": BASE[:5], "x": [0.5 * v for v in BASE[:5]], "aa:rr": AA[:5]})
    assert c.claim("x") == ""
    assert "5 blocks cannot carry a claim (6 or more can)" in verdict(known, c).sure


def test_one_block_has_no_interval_and_says_so():
    known, c = compared({"rr": [100.0], "x": [50.0], "aa:rr": [101.0]})
    assert not c.mean("x").ratio.known
    said = verdict(known, c)
    assert not said.claim and said.sure.startswith("One block gives no interval")


def test_an_unstable_arm_has_no_mean_no_rank_and_no_difference():
    known, c = compared(
        {"rr": BASE, "x": [0.9 * v for v in BASE], "y": [0.1 * v for v in BASE], "aa:rr": AA},
        {"y": "unstable"},
    )
    assert [arm.label for arm in c.ranking()] == ["x", "rr"]
    assert c.mean("y") is None
    assert math.isnan(c.arms[2].interval("mean_ms").point)
    said = verdict(known, c)
    assert said.headline.startswith("x is faster than rr")
    assert any("y was unstable" in text for text in said.further)


def test_an_unstable_baseline_allows_no_claim():
    known, c = compared(
        {"rr": BASE, "x": BASE, "aa:rr": AA}, {"rr": "unstable", "aa:rr": "unstable"}
    )
    assert not verdict(known, c).claim


def test_strategies_that_cannot_be_told_from_the_fastest_are_named():
    close = [
        0.9 * v * f
        for v, f in zip(BASE, [1.01, 0.99, 1.008, 0.995, 1.0, 1.006, 0.999], strict=True)
    ]
    known, c = compared({"rr": BASE, "x": [0.9 * v for v in BASE], "y": close, "aa:rr": AA})
    tied, _ = leaders(known, c)
    assert {arm.label for arm in tied} == {"x", "y"}
    assert "cannot be told apart" in verdict(known, c).further[0]


def test_the_fastest_baseline_is_called_that():
    known, c = compared({"rr": BASE, "x": [1.2 * v for v in BASE], "aa:rr": AA})
    said = verdict(known, c)
    assert said.claim and said.headline.startswith("rr is the fastest: next is x, +20.0 %")


def test_from_twenty_blocks_on_the_bootstrap_stands_beside_t():
    rng = np.random.default_rng(6)
    base = rng.normal(100, 10, 20).tolist()
    x = [v * f for v, f in zip(base, rng.normal(0.95, 0.02, 20), strict=True)]
    _, c = compared({"rr": base, "x": x})
    d = c.mean("x")
    assert d.bootstrap is not None
    assert d.bootstrap.low < d.ratio.point < d.bootstrap.high
    _, fewer = compared({"rr": base[:19], "x": x[:19]})
    assert fewer.mean("x").bootstrap is None


def test_an_a_a_only_difference_is_claimed_about_as_rarely_as_stated():
    # Two equal strategies over seven blocks: the sign-flip test alone would err in 5 % of 600
    # benches; the A/A condition can only lower that.
    rng = np.random.default_rng(8)
    claims = 0
    for _ in range(600):
        means = {k: np.exp(rng.normal(4, 0.02, 7)).tolist() for k in ("rr", "x", "aa:rr")}
        claims += compared(means)[1].claim("x") != ""
    assert claims / 600 <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 600)


def test_a_smoke_test_claims_nothing(make_folder):
    results = load(make_folder(Scenario(requests=120), edit=lambda m: m.update(preset="smoke")))
    comparison = compare(results)
    said = verdict(results, comparison)
    assert comparison.claim("smooth-weighted-round-robin") == ""
    assert not said.claim and said.headline.endswith("nothing is claimed")


def test_welch_is_scipys():
    a, b = np.log(BASE), np.log([90.0, 99.0, 130.0])
    bounds = stats.ttest_ind(b, a, equal_var=False).confidence_interval(0.95)
    found = welch(a, b)
    assert (found.low, found.high) == pytest.approx((bounds.low, bounds.high))


def test_folders_are_compared_by_strategy_and_their_conditions_named(make_folder):
    a = make_folder(Scenario(requests=120, blocks=3), "a")
    b = make_folder(Scenario(requests=120, blocks=3, mips_per_core=3725.0 * 1.5), "b")
    found, conditions = compare_folders(load(a), load(b))
    assert [d.label for d in found] == ["round-robin", "smooth-weighted-round-robin"]
    assert found[0].ratio.low > 1
    assert found[0].ratio_to_baseline is None
    assert any(text.startswith("pinned speed: 7450") for text in conditions)


def test_a_folder_compared_with_itself_shows_nothing(folder):
    found, conditions = compare_folders(load(folder), load(folder))
    assert conditions == []
    assert all(d.ratio.point == pytest.approx(1) for d in found)


def test_a_result_that_is_not_valid_claims_nothing_and_says_so_first(make_folder):
    def spoil(manifest):
        manifest["arms"][3]["flags"].append("generator_saturated")
        manifest["arms"][5]["mismatches"] = ["R1: 10 rows, 9 sent"]

    results = load(make_folder(Scenario(requests=120), edit=spoil))
    comparison = compare(results)
    arms = results.manifest["arms"]
    assert comparison.not_valid == (
        f"{arms[3]['run_id']}: generator_saturated",
        f"{arms[5]['run_id']}: R1: 10 rows, 9 sent",
    )
    assert all(comparison.claim(arm.label) == "" for arm in comparison.arms)
    said = verdict(results, comparison)
    assert said.headline.startswith("Not valid") and not said.claim


FAST = [0.1 * v for v in BASE]


@pytest.mark.parametrize("failed", [400, 11, 1])
def test_an_arm_that_fails_fast_is_not_called_fast(failed):
    known, c = compared({"rr": BASE, "x": FAST, "aa:rr": AA}, failed={"x": failed})
    assert c.claim("x") == "" and c.mean("x") is None
    assert [arm.label for arm in c.ranking()] == ["rr"]
    said = verdict(known, c)
    assert not said.claim
    assert f"Requests failed, so not ranked: x ({failed / 10:.2f} %)" in said.headline


def test_arms_that_fail_alike_and_rarely_are_compared():
    _, c = compared({"rr": BASE, "x": FAST, "aa:rr": AA}, failed={"rr": 2, "x": 2, "aa:rr": 2})
    assert c.claim("x") == "faster"


def test_nothing_is_compared_with_a_baseline_that_fails():
    known, c = compared({"rr": BASE, "x": FAST, "aa:rr": AA}, failed={"rr": 400, "aa:rr": 400})
    assert c.claim("x") == "" and c.floor is None
    assert [arm.label for arm in c.ranking()] == ["x"]
    assert "rr (40.00 %)" in verdict(known, c).headline


def test_folders_whose_failures_differ_are_not_compared(make_folder):
    a = load(make_folder(Scenario(blocks=2), "a"))
    b = load(make_folder(Scenario(blocks=2, error_share=0.2), "b"))
    found, _ = compare_folders(a, b)
    assert all(d.failing and not d.ratio.known and math.isnan(d.ratio.point) for d in found)
    assert found[0].failed_b.share == pytest.approx(0.2, abs=0.05)
