"""Which arms failed too often for their latencies to be compared.

Latency is that of good answers only, so an arm that fails its slow requests, or that answers at
once with an error, looks fast. An arm is therefore neither ranked nor claimed about when more than
``MAX_FAILED_SHARE`` of its requests failed, or significantly more than of the arm that failed least:
given the failures of both together, the binomial chance that at least so many fall on this arm is
below .05. Failures come in bursts, which makes that test refuse more often than it says: the safe
side. The testbed applies the same rule.
"""

from __future__ import annotations

from dataclasses import dataclass

from scipy import stats

from .intervals import ALPHA

MAX_FAILED_SHARE = 0.01
"""An arm that failed more than this share of its requests is compared with nothing."""


@dataclass(frozen=True)
class Failures:
    """Requests after the warm-up, and how many of them were not answered well."""

    failed: int
    rows: int

    @property
    def share(self) -> float:
        """0..1; 0 without requests."""
        return self.failed / max(self.rows, 1)

    def too_many_beside(self, other: Failures) -> bool:
        """Too often to be compared with an arm that failed as ``other`` did."""
        return self.share > MAX_FAILED_SHARE or self.chance_beside(other) < ALPHA

    def chance_beside(self, other: Failures) -> float:
        """Chance that of the failures of both at least so many fall on this arm, were both alike."""
        if not self.failed:
            return 1.0
        own_part = self.rows / (self.rows + other.rows)
        both = self.failed + other.failed
        return float(stats.binomtest(self.failed, both, own_part, alternative="greater").pvalue)


def least(arms: list[Failures]) -> Failures:
    """The one of these that failed least."""
    return min(arms, key=lambda failures: failures.share, default=Failures(0, 0))
