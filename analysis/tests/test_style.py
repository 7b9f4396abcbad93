import itertools
import json
import re
from pathlib import Path

import pytest

from plumbline_analysis.style import (
    STRATEGY_COLORS,
    WORKER_SHADES,
    strategy_colors,
    worker_colors,
)

LIVE_PAGE = Path(__file__).parents[2] / "crates" / "balancer" / "src" / "admin" / "page.html"

# Machado et al. (2009), severity 1.0, on linear RGB.
DEFICIENCIES = {
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}  # fmt: skip
DEFAULT = ("round-robin", "smooth-weighted-round-robin", "weighted-least-request", "plb-live")
PAPER = ("round-robin", "smooth-weighted-round-robin", "plb-paper")


def linear(color):
    channels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]


def lab(rgb):
    x = 0.4124 * rgb[0] + 0.3576 * rgb[1] + 0.1805 * rgb[2]
    y = 0.2126 * rgb[0] + 0.7152 * rgb[1] + 0.0722 * rgb[2]
    z = 0.0193 * rgb[0] + 0.1192 * rgb[1] + 0.9505 * rgb[2]
    f = [
        t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116
        for t in (x / 0.95047, y, z / 1.08883)
    ]
    return 116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])


def seen(color, matrix):
    rgb = linear(color)
    return lab(
        [min(1, max(0, sum(m * c for m, c in zip(row, rgb, strict=True)))) for row in matrix]
    )


@pytest.mark.parametrize("deficiency", DEFICIENCIES)
@pytest.mark.parametrize("labels", [DEFAULT, PAPER])
def test_strategies_of_a_preset_stay_apart_for_every_eye(deficiency, labels):
    colors = [seen(STRATEGY_COLORS[x], DEFICIENCIES[deficiency]) for x in labels]
    for one, two in itertools.combinations(colors, 2):
        # 10 in CIELAB is seen at a glance; 2.3 is the just noticeable difference.
        assert sum((a - b) ** 2 for a, b in zip(one, two, strict=True)) ** 0.5 > 10


@pytest.mark.parametrize("deficiency", DEFICIENCIES)
def test_workers_differ_in_lightness(deficiency):
    shades = [seen(c, DEFICIENCIES[deficiency])[0] for c in worker_colors(["a", "b", "c"]).values()]
    assert shades[1] - shades[0] > 20 and shades[2] - shades[1] > 15


def test_the_live_page_has_the_same_colors():
    page = LIVE_PAGE.read_text()
    shades = re.search(r"const WORKER_SHADES = (\[.*?\]);", page)
    strategies = re.search(r"const STRATEGY_COLORS = (\{.*?\});", page, re.DOTALL)
    assert json.loads(shades[1]) == WORKER_SHADES
    assert json.loads(strategies[1]) == STRATEGY_COLORS


def test_a_strategy_keeps_its_color_and_the_a_a_arm_that_of_its_baseline():
    colors = strategy_colors(["round-robin", "unheard-of", "peak-ewma:decay=10s", "aa:round-robin"])
    assert colors["round-robin"] == colors["aa:round-robin"] == STRATEGY_COLORS["round-robin"]
    assert colors["peak-ewma:decay=10s"] == STRATEGY_COLORS["peak-ewma"]
    assert len(set(colors.values())) == 3


def test_two_variants_of_one_strategy_have_two_colors():
    colors = strategy_colors(["peak-ewma:decay=1s", "peak-ewma:decay=10s"])
    assert len(set(colors.values())) == 2
