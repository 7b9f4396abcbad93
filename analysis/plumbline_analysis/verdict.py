"""What the data allow to say, in sentences. Nothing is claimed that ``compare`` does not allow."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .compare import Comparison, Difference, leaders
from .intervals import ALPHA, Interval
from .load import Results

UNINFORMATIVE_PERCENT = 999
"""Two noisy blocks give bounds of any size; digits beyond this only push tables apart."""

NAMED_REASONS = 5
"""Reasons of failures that are named; the rest is counted."""


@dataclass(frozen=True)
class Verdict:
    """A headline, how sure it is, and what else must be said beside it."""

    headline: str
    sure: str
    further: list[str]
    claim: bool
    """True when the headline is a claim that passed every test."""


def verdict(results: Results, comparison: Comparison) -> Verdict:
    """The sentence at the top of the report."""
    further = [
        f"{arm.label} was unstable ({_reasons(arm)}): it has no mean and no rank."
        for arm in comparison.arms
        if arm.flagged and not arm.aa
    ]
    further += [
        f"{arm.label} may not have settled ({_reasons(arm)})."
        for arm in comparison.arms
        if not arm.aa
        and not arm.flagged
        and any(r.verdict.word == "inconclusive" for r in arm.runs)
    ]
    failing = [arm for arm in comparison.arms if comparison.failing(arm)]
    if failing:
        shown = "; ".join(f"{arm.label} {failure_counts(arm)}" for arm in failing)
        further.append(f"Failed too often to be compared, which no latency shows: {shown}.")
    if not comparison.claims:
        return _nothing_claimed(comparison, further)
    said = _headline(results, comparison, further)
    unranked = [f"{arm.label} ({failed_percent(arm)})" for arm in failing if not arm.aa]
    if not unranked:
        return said
    shown = _list(unranked)
    headline = f"{said.headline}. Requests failed, so not ranked: {shown}"
    return Verdict(headline, said.sure, said.further, said.claim)


def _nothing_claimed(comparison: Comparison, further: list[str]) -> Verdict:
    """No rank and no difference: each strategy's figures stand by themselves."""
    if comparison.not_valid:
        headline = "Not valid: nothing is ranked, compared or claimed"
        advice = (
            "Each strategy's figures stand by themselves. Run it again when the machine is quiet, or with "
            "a lower --burn-fraction."
        )
        lines = [f"{text}." for text in comparison.reasons]
        return Verdict(headline, lines[0], [*lines[1:], advice, *further], False)
    ran = [arm for arm in comparison.arms if not arm.aa]
    return Verdict(f"Smoke test: {len(ran)} strategies ran, nothing is claimed", "", further, False)


def _headline(results: Results, comparison: Comparison, further: list[str]) -> Verdict:
    ranking = comparison.ranking()
    if not ranking:
        return Verdict("No strategy can be ranked", "", further, False)
    first = ranking[0]
    if len(ranking) == 1:
        mean = first.interval("mean_ms")
        headline = f"{first.label}: mean latency {mean.point:.1f} ms"
        return Verdict(
            headline, f"Nothing to compare it with. {noise_floor(comparison)}", further, False
        )
    base_fit = any(arm.label == comparison.baseline for arm in ranking)
    if not base_fit:
        headline = f"{first.label} had the lowest mean latency, but the baseline {comparison.baseline} has none to compare with"
        why = "No claim: the baseline was unstable or failed too often."
        return Verdict(headline, why, further, False)
    tied, _ = leaders(results, comparison)
    if first.label == comparison.baseline:
        return _baseline_first(comparison, ranking, further)
    difference = comparison.mean(first.label)
    if comparison.claim(first.label) == "faster":
        headline = f"{first.label} is faster than {comparison.baseline}: mean latency {-difference.percent.point:.1f} % lower"
        others = [arm.label for arm in tied[1:] if comparison.claim(arm.label) == "faster"]
        if others:
            further.insert(0, f"{_list(others)} cannot be told apart from it.")
        return Verdict(headline, how_sure(difference, comparison), further, True)
    return Verdict(
        f"No difference was shown: {first.label} had the lowest mean latency, {change(difference.percent)} against {comparison.baseline}",
        why_no_claim(difference, comparison),
        further,
        False,
    )


def _baseline_first(comparison: Comparison, ranking, further: list[str]) -> Verdict:
    nearest = comparison.mean(ranking[1].label)
    slower = [arm.label for arm in ranking[1:] if comparison.claim(arm.label) == "slower"]
    if len(slower) == len(ranking) - 1:
        headline = f"{comparison.baseline} is the fastest: next is {nearest.label}, {change(nearest.percent)} mean latency"
        return Verdict(headline, how_sure(nearest, comparison), further, True)
    headline = f"Nothing was shown to be faster than {comparison.baseline}"
    if slower:
        further.insert(0, f"Slower than it: {_list(slower)}.")
    return Verdict(headline, why_no_claim(nearest, comparison), further, False)


def failed_percent(arm) -> str:
    """Share of an arm's requests that were not answered well."""
    return f"{arm.failures.share * 100:.2f} %"


def failure_counts(arm) -> str:
    """``15 of 960 (12 timeout, 3 error:connect_refused)``."""
    return f"{arm.failures.failed:,} of {arm.failures.rows:,} ({failure_reasons(arm)})"


def failure_reasons(arm) -> str:
    """``12 timeout, 3 error:connect_refused``: how often each reason stands in the rows."""
    counts = sorted(arm.reasons.items(), key=lambda entry: (-entry[1], entry[0]))
    shown = [f"{count} {reason}" for reason, count in counts[:NAMED_REASONS]]
    others = sum(count for _, count in counts[NAMED_REASONS:])
    return ", ".join(shown + ([f"{others} of other reasons"] if others else []))


def how_sure(d: Difference, comparison: Comparison) -> str:
    """Interval, blocks, adjusted p and noise floor of one difference."""
    parts = []
    if d.percent.known:
        parts.append(f"95 % interval {bounds(d.percent)}")
    parts.append(f"{len(d.blocks)} paired blocks")
    if not math.isnan(d.p_holm):
        parts.append(
            f"p = {d.p_holm:.3f}" + (" after Holm" if len(comparison.differences) > 4 else "")
        )
    text = ", ".join(parts)
    return f"{text}. {noise_floor(comparison)}"


def noise_floor(comparison: Comparison) -> str:
    """What the same strategy run twice looked like."""
    floor = comparison.floor
    if floor is None:
        if any(arm.aa for arm in comparison.arms):
            return "The A/A arm or its baseline has no figures, so the noise of this machine is unknown."
        return "There was no A/A arm, so the noise of this machine is unknown."
    if not floor.percent.known:
        return f"The same strategy run twice differed by {change(floor.percent)} (one block: no interval)."
    return (
        f"The same strategy run twice differed by {change(floor.percent)} "
        f"({bounds(floor.percent)}): that is the noise."
    )


def why_no_claim(d: Difference, comparison: Comparison) -> str:
    """The first test that the difference did not pass."""
    if len(d.blocks) < 2:
        return "One block gives no interval and no claim; at least six blocks do."
    if 2.0 ** (1 - len(d.blocks)) * max(1, comparison_count(comparison)) > ALPHA:
        return (
            f"{len(d.blocks)} blocks cannot carry a claim ({comparison.blocks_needed} or more can). "
            f"{noise_floor(comparison)}"
        )
    if math.isnan(comparison.floor_log):
        return f"No claim without a noise floor. {noise_floor(comparison)}"
    text = how_sure(d, comparison)
    if d.p_holm < ALPHA and abs(float(d.log_ratios.mean())) <= comparison.floor_log:
        return f"The difference is within the noise. {text}"
    return text


def comparison_count(comparison: Comparison) -> int:
    """How many strategies are compared with the baseline."""
    return len({label for label, _ in comparison.differences})


def change(percent: Interval) -> str:
    """A signed change."""
    return f"{signed_number(percent.point)} %"


def bounds(percent: Interval) -> str:
    """``−5.5 to −3.7 %``."""
    return f"{signed_number(percent.low)} to {signed_number(percent.high)} %"


def counted(number: int, thing: str) -> str:
    """``1 API``, ``20 APIs``."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def signed_number(percent: float) -> str:
    """``+1.2`` or ``−1.2``; a bound that says nothing any more is cut at 999."""
    if percent > UNINFORMATIVE_PERCENT:
        return f"over +{UNINFORMATIVE_PERCENT}"
    return f"{percent:+.1f}".replace("-", "−")


def _reasons(arm) -> str:
    found = [
        reason
        for run in arm.runs
        for reason in run.verdict.reasons
        if run.verdict.word in ("unstable", "inconclusive")
    ]
    blocks = sum(bool(run.verdict.reasons) for run in arm.runs)
    return f"{blocks} of {len(arm.runs)} runs; {found[0]}" if found else "no reason recorded"


def _list(names: list[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]
