"""How figures look: one palette, one type size, no frames.

Strategies have hues of their own that hold from report to report; workers have shades of one
teal, dark for the largest, so that the two never read as the same thing. Both palettes were
chosen to stay apart under the three common color-vision deficiencies: strategies follow Paul
Tol's schemes, and the shades of the workers differ in lightness, which survives all of them.
The balancer's live page has the same two palettes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.colors import LinearSegmentedColormap, to_hex

from .load import AA_PREFIX

INK = "#1d2733"
MUTED = "#667382"
GRID = "#e4e8ec"
BAND = "#eceff3"

STRATEGY_COLORS = {
    "round-robin": "#bb5566",
    "smooth-weighted-round-robin": "#004488",
    "weighted-round-robin": "#6699cc",
    "weighted-least-request": "#997700",
    "least-request": "#ddaa33",
    "plb-paper": "#882255",
    "plb-live": "#aa4499",
    "wl-mc": "#117733",
    "random": "#8c8c8c",
    "weighted-random": "#5a5a5a",
    "peak-ewma": "#ee7733",
    "p2c": "#332288",
}
_SPARE = ("#ee7733", "#332288", "#117733", "#aa4499", "#6699cc", "#ddaa33", "#882255", "#5a5a5a")
WORKER_SHADES = ["#0b4f5c", "#2a8593", "#6cb6be"]
_WORKERS = LinearSegmentedColormap.from_list("workers", WORKER_SHADES)


def strategy_colors(labels: list[str]) -> dict[str, str]:
    """A color for each label; the A/A arm has that of its baseline."""
    colors: dict[str, str] = {}
    spare = [
        c for c in _SPARE if c not in {STRATEGY_COLORS.get(x.partition(":")[0]) for x in labels}
    ]
    used: set[str] = set()
    for label in labels:
        if label.startswith(AA_PREFIX):
            continue
        color = STRATEGY_COLORS.get(label.partition(":")[0])
        if color is None or color in used:
            color = spare.pop(0) if spare else MUTED
        colors[label] = color
        used.add(color)
    for label in labels:
        if label.startswith(AA_PREFIX):
            colors[label] = colors.get(label.removeprefix(AA_PREFIX), MUTED)
    return colors


def worker_colors(names: list[str]) -> dict[str, str]:
    """Shades of teal in the order given (the largest worker first)."""
    last = max(1, len(names) - 1)
    return {name: to_hex(_WORKERS(place / last)) for place, name in enumerate(names)}


SETTINGS = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 10.5,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.labelsize": 10.5,
    "axes.labelcolor": MUTED,
    "axes.edgecolor": "#b8c0c9",
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": False,
    "grid.color": GRID,
    "grid.linewidth": 0.9,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.major.size": 3,
    "ytick.major.size": 0,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "figure.dpi": 96,
    "legend.frameon": False,
    "lines.solid_capstyle": "round",
    "svg.fonttype": "none",
    "svg.hashsalt": "plumbline",
}
"""The figures' settings, as matplotlib takes them."""


@contextmanager
def styled() -> Iterator[None]:
    """The figures' settings, for the time of a with block."""
    with mpl.rc_context(SETTINGS):
        yield
        plt.close("all")
