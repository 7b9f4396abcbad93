"""When a result is not valid, and how its reasons read.

A run whose requests could not be sent, or left later than the next one was due, and a run whose
counts disagree make the whole result not valid: it has no rank, no difference and no claim, and
each strategy's figures stand by themselves. The testbed applies the same rule and says the same
lines (``crates/testbed/cases/validity.json`` holds both to it).
"""

from __future__ import annotations

NEVER_SENT = "never_sent"
SATURATED = "generator_saturated"
INVALIDATING = (NEVER_SENT, SATURATED)
"""Marks of a run that make the whole result not valid."""
NAMED_RUNS = 3
"""Runs that a line names; the rest is counted."""


def faults(manifest: dict) -> tuple[str, ...]:
    """Why a result is not valid, as ``run: reason``; empty for a valid one."""
    return tuple(
        f"{arm['run_id']}: {why}"
        for arm in manifest.get("arms", [])
        for why in [f for f in arm.get("flags", []) if f in INVALIDATING]
        + list(arm.get("mismatches", []))
    )


def reasons(manifest: dict) -> tuple[str, ...]:
    """The same for people: one line a reason, with its count of runs and the worst of them."""
    arms = manifest.get("arms", [])
    runs = sum(arm.get("state") == "done" for arm in arms)
    lines = []
    saturated = _marked(arms, SATURATED)
    if saturated:
        worst = max(reversed(saturated), key=lambda arm: arm.get("lateness_p99_us") or 0)
        lines.append(
            f"{SATURATED} in {len(saturated)} of {runs} runs: requests left later than the next was due "
            f"(worst p99 {(worst.get('lateness_p99_us') or 0) / 1e3:.2f} ms at a mean gap of "
            f"{1e3 / manifest['workload']['rate_rps']:.2f} ms, in {_name(worst)})"
        )
    unsent = [_name(arm) for arm in _marked(arms, NEVER_SENT)]
    if unsent:
        lines.append(
            f"{NEVER_SENT} in {len(unsent)} of {runs} runs: requests could not be sent ({first_few(unsent)})"
        )
    return (*lines, *_mismatches(arms, runs))


def first_few(names: list[str]) -> str:
    """The first names and how many more there are."""
    more = len(names) - NAMED_RUNS
    return ", ".join(names[:NAMED_RUNS]) + (f" and {more} more" if more > 0 else "")


def _marked(arms: list[dict], mark: str) -> list[dict]:
    return [arm for arm in arms if mark in arm.get("flags", [])]


def _name(arm: dict) -> str:
    """``b01-a2``: the second arm of the first block."""
    return f"b{arm['block']:02}-a{arm['position']}"


def _mismatches(arms: list[dict], runs: int) -> list[str]:
    """Rules in the order of their first appearance, each with the first run that broke it."""
    rules: dict[str, list[tuple[str, str]]] = {}
    for arm in arms:
        for text in arm.get("mismatches", []):
            rule, _, found = text.partition(": ")
            rules.setdefault(rule, []).append((_name(arm), found))
    return [
        f"{rule} in {len(dict(hits))} of {runs} runs: counts that should be equal are not "
        f"({hits[0][0]}: {hits[0][1]})"
        for rule, hits in rules.items()
    ]
