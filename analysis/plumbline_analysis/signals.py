"""One figure: what becomes of each signal as more requests arrive between two polls."""

from __future__ import annotations

import math

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from .style import GRID, INK, MUTED
from .sweeps import Sweep

BLIND = "smooth-weighted-round-robin"
LINES = {
    "plb-paper": ("the paper's predictor", "#882255", "-"),
    "polled-least-request": ("least polled count", "#bb5566", "--"),
    "plb-softmax": ("predictor, softmax draw", "#6699cc", "-"),
    "plb-p2c": ("predictor, better of two", "#332288", "--"),
    "basic-li": ("polled count, read with its age", "#ee7733", "-"),
    "plb-live": ("predictor on live counts", "#aa4499", "-"),
    "weighted-least-request": ("live counts, no model", "#997700", "--"),
    "wl-mc": ("work left (wl-mc)", "#117733", "-"),
}
"""Strategy to its name in the figure, its color and its line."""
PAPER_K, PAPER_RATIO = 10, 1.255
LOWEST_GAP = 0.045
"""Least distance between two names, as a share of the axis."""


def signals_figure(sweep: Sweep, load: float) -> Figure:
    """Mean latency over blind weights against arrivals per poll, both axes logarithmic."""
    runs = sweep.runs[(sweep.runs["load"] == load) & (sweep.runs["gaps"] == "even")]
    ks = sorted(runs["arrivals_per_poll"].unique())
    figure, ax = plt.subplots(figsize=(9.6, 5.4), layout="constrained")
    ends: dict[str, tuple[float, str]] = {}
    for strategy, (name, color, line) in LINES.items():
        ratios = [
            sweep.cell(load=load, gaps="even", arrivals_per_poll=k).ratio(strategy, BLIND)
            for k in ks
        ]
        known = [(k, r) for k, r in zip(ks, ratios, strict=True) if r is not None]
        if not known:
            continue
        xs, rs = zip(*known, strict=True)
        ax.plot(xs, [r.point for r in rs], line, color=color, linewidth=2.2)
        ax.fill_between(xs, [r.low for r in rs], [r.high for r in rs], color=color, alpha=0.2, lw=0)
        ends[name] = (rs[-1].point, color)
    ends = _together(ends)
    ax.plot(PAPER_K, PAPER_RATIO, "o", color=INK, markerfacecolor="white", markersize=8, zorder=5)
    ax.annotate(
        "published", (PAPER_K, PAPER_RATIO), (9, -1), textcoords="offset points", va="center"
    )
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.axhline(1, color=INK, linewidth=1)
    ax.axvline(PAPER_K, color=GRID, linewidth=6, zorder=0)
    ax.xaxis.set_major_locator(FixedLocator(ks))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda k, _: f"{k:g}"))
    ax.yaxis.set_major_locator(FixedLocator([1, 1.1, 1.25, 1.5, 2, 2.5]))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
    ax.grid(axis="y")
    low, high = ax.get_ylim()
    ax.set_xlim(ks[0], ks[-1])
    for name, (place, color) in _apart(ends, low, high).items():
        ax.annotate(
            name,
            (1, place),
            (8, 0),
            xycoords="axes fraction",
            textcoords="offset points",
            color=color,
            va="center",
        )
    ax.annotate("the paper: ten requests between two polls", (PAPER_K, high), (-8, -4), textcoords="offset points",
                color=MUTED, ha="right", va="top")  # fmt: skip
    ax.annotate(
        "weighted round robin = 1", (ks[0], 1), (4, 3), textcoords="offset points", color=INK
    )
    ax.set_xlabel("requests that arrive between two polls")
    ax.set_ylabel("mean latency / weighted round robin")
    ax.set_title("Old information is most of what the predictor loses by")
    return figure


def _together(ends: dict[str, tuple[float, str]]) -> dict[str, tuple[float, str]]:
    """One name, in ink, for lines that lie on one another."""
    groups: list[tuple[float, list[str]]] = []
    for name, (y, _) in sorted(ends.items(), key=lambda item: item[1][0]):
        if groups and y < groups[-1][0] * 1.005:
            groups[-1][1].append(name)
        else:
            groups.append((y, [name]))
    return {
        "\n".join(names): (y, ends[names[0]][1] if len(names) == 1 else INK) for y, names in groups
    }


def _apart(ends: dict[str, tuple[float, str]], low: float, high: float) -> dict:
    """Places of the names as shares of the axis, moved up where they would overlap."""
    share = {
        name: (math.log(y / low) / math.log(high / low), color) for name, (y, color) in ends.items()
    }
    placed, last = {}, -1.0
    # `last` is the upper edge of the name before.
    for name, (place, color) in sorted(share.items(), key=lambda item: item[1][0]):
        half = LOWEST_GAP * (1 + name.count("\n")) / 2
        last = max(place, last + half)
        placed[name] = (last, color)
        last += half
    return placed
