"""The rule by which an arm has failed too often: exact chances, and its two bounds."""

import pytest

from plumbline_analysis.failures import Failures, least


def test_the_chance_is_that_of_coin_throws_between_equal_arms():
    def beside(a, b):
        return Failures(a, 1000).chance_beside(Failures(b, 1000))

    assert beside(4, 0) == pytest.approx(1 / 16)
    assert beside(6, 2) == pytest.approx(37 / 256)
    assert beside(0, 3) == 1.0
    assert Failures(4, 3000).chance_beside(Failures(0, 1000)) == pytest.approx(0.75**4)


def test_one_percent_is_the_bound_whatever_the_other_failed():
    most = Failures(500, 1000)
    assert not Failures(10, 1000).too_many_beside(most)
    assert Failures(11, 1000).too_many_beside(most)


def test_five_against_none_is_beyond_chance_and_four_is_not():
    none = Failures(0, 5600)
    assert not Failures(4, 5600).too_many_beside(none)
    assert Failures(5, 5600).too_many_beside(none)
    assert not none.too_many_beside(none)


def test_the_least_is_by_share_and_not_by_count():
    assert least([Failures(3, 100), Failures(4, 1000)]) == Failures(4, 1000)
    assert least([]).share == 0
