"""The figures of the report and the notebooks, each a function from data to a matplotlib figure.

The first four redraw the paper's Figures 1 to 4 from our own rows. Every figure shows what its
numbers rest on: points for blocks, whiskers for 95 % intervals, a band for the A/A noise floor.
"""

from __future__ import annotations

import math

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from .compare import Comparison, Difference
from .intervals import Interval
from .load import Results
from .style import BAND, GRID, INK, MUTED, strategy_colors, worker_colors
from .summarize import Arm, lateness_bound_ms
from .verdict import bounds, counted, signed_number

WIDTH_IN = 9.6
ROW_IN = 0.44
LEGEND_ROWS = 12
OUTLIERS_FROM = 5
"""Quartiles of fewer points say nothing about an outlier."""
SEEN_APART = 0.02
"""Share of the axis below which an outlier is not seen as one."""


def task_sizes(results: Results) -> Figure:
    """Figure 1: how large the tasks are, over requests, with the APIs as ticks below."""
    first = results.rows[results.rows["run_id"] == results.rows["run_id"].iloc[0]]
    sizes = first["task_size_mi"].to_numpy()
    apis = first.drop_duplicates("api_id")["task_size_mi"].to_numpy()
    figure, ax = plt.subplots(figsize=(WIDTH_IN, 3.1), layout="constrained")
    step = _round_step((sizes.max() - sizes.min()) / 24)
    first_bin, last_bin = math.floor(sizes.min() / step), math.floor(sizes.max() / step)
    bins = np.arange(first_bin, last_bin + 2) * step
    share, _, _ = ax.hist(
        sizes, bins, weights=np.full(len(sizes), 100 / len(sizes)), color="#8fa3b5", rwidth=0.94
    )
    top = share.max()
    ax.plot(
        apis,
        np.full(len(apis), -0.05 * top),
        "|",
        color=INK,
        markersize=8,
        alpha=0.6,
        clip_on=False,
    )
    ax.set_ylim(-0.1 * top, 1.18 * top)
    mean = sizes.mean()
    ax.axvline(mean, color=INK, linewidth=1.2, ymax=0.93)
    ax.annotate(
        f"mean {mean:.0f} MI",
        (mean, 1.1 * top),
        xytext=(6, 0),
        textcoords="offset points",
        va="center",
    )
    ax.set_xlabel(f"task size, million instructions (ticks: {counted(len(apis), 'API')})")
    ax.set_ylabel("% of requests")
    ax.yaxis.set_major_locator(plt.MaxNLocator(4, steps=[1, 2, 5, 10]))
    ax.set_yticks([tick for tick in ax.get_yticks() if tick >= 0 and tick <= top * 1.1])
    ax.grid(axis="y")
    return figure


def metric_bars(comparison: Comparison, metric: str, unit: str, digits: int) -> Figure:
    """Figures 2 and 3: one bar a strategy, its 95 % interval, and a point for each block."""
    arms = [arm for arm in comparison.arms if arm.runs]
    colors = strategy_colors([arm.label for arm in arms])
    figure, ax = plt.subplots(
        figsize=(WIDTH_IN, 0.75 + ROW_IN * 1.25 * len(arms)), layout="constrained"
    )
    reach, dots = 0.0, []
    for place, arm in enumerate(arms):
        points = arm.values(metric)
        blocks = [run.block for run, x in zip(arm.runs, points, strict=True) if np.isfinite(x)]
        points = points[np.isfinite(points)]
        if arm.flagged or not len(points):
            _row_note(ax, place, "unstable: no mean" if arm.flagged else "no good answer: no mean")
            continue
        value = comparison.interval(arm, metric)
        hollow = {"color": "none", "edgecolor": colors[arm.label], "linewidth": 1.2, "hatch": None}
        solid = {"color": colors[arm.label], "alpha": 0.85}
        ax.barh(place, value.point, height=0.62, **(hollow if arm.aa else solid))
        spread = np.linspace(-0.2, 0.2, len(points)) if len(points) > 1 else [0]
        dots.append((points, place + np.array(spread), blocks))
        ax.plot(
            points,
            place + np.array(spread),
            "o",
            markersize=3.6,
            color="white",
            markeredgecolor=INK,
            markeredgewidth=0.7,
        )
        right = max(points.max(), value.high if value.known else value.point)
        reach = max(reach, right)
        if value.known:
            ax.plot([value.low, value.high], [place, place], color=INK, linewidth=2)
        ax.annotate(
            _with_bounds(value.point, value.half_width if value.known else math.nan, digits),
            (right, place), xytext=(8, 0), textcoords="offset points", va="center", fontweight="bold",
        )  # fmt: skip
    _strategy_rows(ax, arms)
    ax.set_xlim(0, reach * 1.22 or 1)
    _name_outliers(ax, dots)
    ax.set_xlabel(unit)
    ax.grid(axis="x")
    return figure


def picks_over_time(results: Results, block: int | None = None, zoom_s: float = 1.0) -> Figure:
    """Figure 4: which worker each request went to, over the run and through one close-up second."""
    labels = [label for label in results.labels if not label.startswith("aa:")]
    rows = results.rows
    block = int(rows["block"].min()) if block is None else block
    workers = results.workers
    colors = worker_colors(workers)
    height = 0.9 + 1.15 * len(labels)
    figure, axes = plt.subplots(
        len(labels), 2, figsize=(WIDTH_IN, height), layout="constrained", squeeze=False,
        gridspec_kw={"width_ratios": [1.25, 1]}, sharex="col",
    )  # fmt: skip
    for row, label in enumerate(labels):
        chosen = rows[
            (rows["block"] == block) & (rows["strategy"] == label) & rows["sent_ns"].notna()
        ]
        at_s, container = (
            chosen["intended_ns"].to_numpy() / 1e9,
            chosen["container"].astype(str).to_numpy(),
        )
        _share_bands(axes[row, 0], at_s, container, workers, colors)
        axes[row, 0].set_title(label)
        middle = _close_up_start(at_s, zoom_s)
        _lanes(axes[row, 1], at_s, container, workers, colors, middle, zoom_s)
    axes[0, 1].set_title("one second, request by request", fontweight="normal", color=MUTED)
    axes[-1, 0].set_xlabel("time since the run began, s")
    axes[-1, 1].set_xlabel("time, s")
    return figure


def latency_tails(results: Results, comparison: Comparison) -> Figure:
    """Latency at every percentile up to 99.9, all blocks pooled, on scales that open the tail."""
    arms = [arm for arm in comparison.arms if not arm.aa and not arm.flagged and arm.runs]
    colors = strategy_colors([arm.label for arm in comparison.arms])
    figure, ax = plt.subplots(figsize=(WIDTH_IN, 4.6), layout="constrained")
    drawn = []
    for arm in arms:
        rows = results.rows
        use = (rows["strategy"] == arm.label) & ~rows["warmup"] & (rows["outcome"] == "ok")
        latency = np.sort(rows.loc[use, "latency_ms"].to_numpy())
        if not len(latency):
            continue
        # A percentile is drawn only where at least ten requests lie above it.
        deepest = min(0.999, 1 - 10 / len(latency)) if len(latency) > 20 else 0.5
        share = 1 - np.geomspace(1, 1 - deepest, 240)
        values = np.quantile(latency, share)
        line = ax.plot(1 / (1 - share), values, color=colors[arm.label], linewidth=2)[0]
        drawn.append((values[-1], 1 / (1 - share[-1]), line, arm.label))
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.yaxis.set_major_formatter(lambda y, _: f"{y:g}")
    ticks = [(2, "50"), (4, "75"), (10, "90"), (20, "95"), (100, "99"), (1000, "99.9")]
    ax.set_xticks([x for x, _ in ticks], [text for _, text in ticks])
    ax.minorticks_off()
    ax.set_xlim(1, max((right for _, right, _, _ in drawn), default=100))
    ax.set_xlabel("percentile of latency")
    ax.set_ylabel("latency, ms")
    ax.grid()
    # Percentiles only rise, so the upper left is free: names there leave the width to the lines.
    drawn.sort(key=lambda entry: -entry[0])
    if drawn:
        ax.legend(
            [line for _, _, line, _ in drawn],
            [label for _, _, _, label in drawn],
            loc="upper left",
            labelcolor="linecolor",
            ncols=-(-len(drawn) // LEGEND_ROWS),
        )
    return figure


def worker_shares(results: Results, comparison: Comparison) -> Figure:
    """Share of the requests each worker got, one bar a strategy."""
    arms = [arm for arm in comparison.arms if arm.runs]
    workers = results.workers
    colors = worker_colors(workers)
    figure, ax = plt.subplots(figsize=(WIDTH_IN, 0.6 + ROW_IN * len(arms)), layout="constrained")
    cores = {w["name"]: w["cores"] for w in results.manifest.get("backend", {}).get("workers", [])}
    for place, arm in enumerate(arms):
        left = 0.0
        shares = arm.shares()
        for name in workers:
            share = shares.get(name, 0.0) * 100
            ax.barh(
                place,
                share,
                left=left,
                height=0.68,
                color=colors[name],
                edgecolor="white",
                linewidth=1.5,
            )
            if share >= 4:
                text = f"{share:.0f} %"
                if place == 0:
                    text = f"{name}: {text}"
                ax.text(
                    left + share / 2,
                    place,
                    text,
                    ha="center",
                    va="center",
                    color=_on(colors[name]),
                    fontsize=10,
                )
            left += share
    if cores and sum(cores.values()):
        total = sum(cores.values())
        at = np.cumsum([cores.get(name, 0) for name in workers])[:-1] / total * 100
        for x in at:
            ax.axvline(x, color=INK, linewidth=1, linestyle=(0, (2, 2)))
        note = " : ".join(f"{cores.get(name, 0):g}" for name in workers)
        ax.set_xlabel(f"% of requests (dashed: in proportion to cores, {note})")
    else:
        ax.set_xlabel("% of requests")
    _strategy_rows(ax, arms)
    ax.set_xlim(0, 100)
    return figure


def paired_differences(comparison: Comparison) -> Figure:
    """Each strategy against the baseline, block by block, over the band of the A/A arm."""
    shown = [comparison.mean(arm.label) for arm in comparison.arms if not arm.aa]
    shown = [d for d in shown if d is not None]
    rows = shown + ([comparison.floor] if comparison.floor is not None else [])
    colors = strategy_colors([arm.label for arm in comparison.arms])
    figure, ax = plt.subplots(
        figsize=(WIDTH_IN, 0.8 + ROW_IN * 1.1 * max(1, len(rows))), layout="constrained"
    )
    ax.spines["left"].set_visible(False)
    if not math.isnan(comparison.floor_log):
        reach = [(math.exp(s * comparison.floor_log) - 1) * 100 for s in (-1, 1)]
        ax.axvspan(*reach, color=BAND, linewidth=0)
    if not rows:
        ax.set_axis_off()
        ax.text(0, 0.5, "Nothing is compared here; the verdict says why.", color=MUTED, va="center")
        return figure
    ax.axvline(0, color=INK, linewidth=1)
    dots = []
    for place, difference in enumerate(rows):
        aa = difference is comparison.floor
        points = (np.exp(difference.log_ratios) - 1) * 100
        color = colors[difference.label]
        fill = "white" if aa else color
        ax.plot(
            points,
            [place] * len(points),
            "o",
            color=fill,
            markeredgecolor=color,
            markersize=5.5,
            alpha=0.5,
        )
        dots.append((points, np.full(len(points), place), difference.blocks))
        percent = difference.percent
        if percent.known:
            ax.plot([percent.low, percent.high], [place, place], color=color, linewidth=3.2)
        ax.plot([percent.point], [place], "D", color=color, markersize=7, markeredgecolor="white")
        _margin_note(ax, place, signed(percent.point), _bounds_text(percent))
    names = [f"{comparison.baseline} (A/A)" if d is comparison.floor else d.label for d in rows]
    ax.set_yticks(range(len(rows)), names)
    ax.set_ylim(len(rows) - 0.4, -0.6)
    _limit_to_points(ax, rows)
    _name_outliers(ax, dots)
    ax.set_xlabel(
        f"mean latency against {comparison.baseline}, % (left: faster; gray band: noise, by A/A)"
    )
    ax.grid(axis="x")
    return figure


def lateness(results: Results, comparison: Comparison) -> Figure:
    """How late the generator sent, against what is tolerated: the measurer measured."""
    rows = results.rows[~results.rows["warmup"] & results.rows["sent_ns"].notna()]
    late = np.sort(((rows["sent_ns"] - rows["intended_ns"]) / 1e6).to_numpy())
    figure, ax = plt.subplots(figsize=(WIDTH_IN, 2.6), layout="constrained")
    if len(late):
        late = np.clip(late, 1e-3, None)
        share = np.arange(1, len(late) + 1) / len(late) * 100
        step = max(1, len(late) // 4000)
        ax.plot(late[::step], share[::step], color="#40566b", linewidth=2)
        for q in (50, 99):
            x = float(np.quantile(late, q / 100))
            ax.plot([x], [q], "o", color="#40566b", markersize=5)
            ax.annotate(
                f"p{q} {x:.2g} ms", (x, q), xytext=(9, -5), textcoords="offset points", va="top"
            )
    first = results.rows[results.rows["run_id"] == results.rows["run_id"].iloc[0]]
    bound = lateness_bound_ms(first)
    ax.axvline(bound, color=INK, linewidth=1, linestyle=(0, (2, 2)))
    ax.annotate(
        f"bound for p99: {bound:.3g} ms",
        (bound, 4),
        xytext=(6, 0),
        textcoords="offset points",
        color=MUTED,
    )
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
    ax.set_ylim(0, 104)
    ax.set_xlabel("sent after it was due, ms")
    ax.set_ylabel("% of requests")
    ax.grid()
    return figure


def _strategy_rows(ax: Axes, arms: list[Arm]) -> None:
    ax.set_yticks(range(len(arms)), [arm_name(arm) for arm in arms])
    ax.set_ylim(len(arms) - 0.45, -0.55)
    ax.spines["left"].set_visible(False)


def arm_name(arm: Arm) -> str:
    """The label as shown: the A/A arm says whose second appearance it is."""
    return f"{arm.label.removeprefix('aa:')} (A/A)" if arm.aa else arm.label


def signed(percent: float) -> str:
    """A change with its sign and a true minus."""
    return f"{signed_number(percent)} %"


def _bounds_text(percent: Interval) -> str:
    return bounds(percent).removesuffix(" %") if percent.known else ""


def _row_note(ax: Axes, place: float, text: str) -> None:
    """What stands in a row instead of a bar."""
    where = {"xytext": (4, 0), "textcoords": "offset points", "va": "center"}
    ax.annotate(text, (0, place), color=MUTED, **where)


def _limit_to_points(ax: Axes, rows: list[Difference]) -> None:
    """Room for all points and for intervals up to three times their spread; longer ones are cut
    at the frame, since their bounds stand in the margin and the points should stay readable.
    """
    points = np.concatenate([np.expm1(d.log_ratios) * 100 for d in rows] or [np.zeros(1)])
    ends = [x for d in rows if d.percent.known for x in (d.percent.low, d.percent.high)]
    low, high = min(points.min(), 0.0), max(points.max(), 0.0)
    room = 3 * max(high - low, 1.0)
    low, high = (max(low - room, min([low, *ends])), min(high + room, max([high, *ends])))
    pad = 0.05 * (high - low) or 1.0
    ax.set_xlim(low - pad, high + pad)


def _margin_note(ax: Axes, place: float, strong: str, weak: str) -> None:
    """A number in the right margin of a row, its bounds in gray beside it."""
    where = ax.get_yaxis_transform()
    ax.text(1.02, place, strong, transform=where, va="center", fontweight="bold")
    if weak:
        # The figure is wide enough for this offset at the fixed type size.
        ax.annotate(weak, (1.02, place), xycoords=where, xytext=(62, 0), textcoords="offset points",
                    va="center", color=MUTED)  # fmt: skip


def _with_bounds(point: float, half_width: float, digits: int) -> str:
    if math.isnan(half_width):
        return f"{point:.{digits}f}"
    return f"{point:.{digits}f} ± {half_width:.{digits}f}"


def _share_bands(
    ax: Axes, at_s: np.ndarray, container: np.ndarray, workers: list[str], colors: dict
) -> None:
    if not len(at_s):
        return
    # About 25 requests a slice keep the bands readable and still show slow swings.
    slices = int(np.clip(len(at_s) / 25, 8, 160))
    edges = np.linspace(at_s.min(), at_s.max() + 1e-9, slices + 1)
    place = np.clip(np.digitize(at_s, edges) - 1, 0, slices - 1)
    counts = pd.crosstab(place, container).reindex(range(slices), fill_value=0)
    shares = counts.div(counts.sum(axis=1).replace(0, np.nan), axis=0).fillna(0) * 100
    base = np.zeros(slices)
    for name in workers:
        share = shares[name].to_numpy() if name in shares else np.zeros(slices)
        top = base + share
        ax.fill_between(
            edges,
            np.append(base, base[-1]),
            np.append(top, top[-1]),
            step="post",
            color=colors[name],
            linewidth=0,
        )
        if share.mean() > 6:
            ax.annotate(name, (edges[-1], (base[-3:].mean() + top[-3:].mean()) / 2), xytext=(-6, 0), textcoords="offset points",
                        va="center", ha="right", color=_on(colors[name]), fontweight="bold")  # fmt: skip
        base = top
    ax.set_xlim(edges[0], edges[-1])
    ax.set_ylim(0, 100)
    ax.set_yticks([0, 50, 100], ["0", "50", "100 %"])
    ax.spines["left"].set_visible(False)


def _lanes(
    ax: Axes, at_s, container, workers: list[str], colors: dict, start_s: float, zoom_s: float
) -> None:
    near = (at_s >= start_s) & (at_s < start_s + zoom_s)
    ax.hlines(range(len(workers)), start_s, start_s + zoom_s, color=GRID, linewidth=1)
    for lane, name in enumerate(workers):
        hit = at_s[near & (container == name)]
        ax.plot(
            hit,
            np.full(len(hit), lane),
            "|",
            color=colors[name],
            markersize=15,
            markeredgewidth=2,
        )
    ax.set_yticks(range(len(workers)), workers)
    ax.set_ylim(len(workers) - 0.4, -0.6)
    ax.set_xlim(start_s, start_s + zoom_s)
    ax.spines["left"].set_visible(False)


def _close_up_start(at_s: np.ndarray, zoom_s: float) -> float:
    """Whole second in the middle of the run."""
    if not len(at_s):
        return 0.0
    return float(math.floor(max(at_s.min(), (at_s.min() + at_s.max()) / 2 - zoom_s / 2)))


def _name_outliers(ax: Axes, dots: list[tuple[np.ndarray, np.ndarray, list[int]]]) -> None:
    """The block beside every dot more than 1.5 quartile ranges outside its row's quartiles
    (Tukey), where the axis shows it apart. Each row: x, y, blocks; the limits must be set.
    """
    least = SEEN_APART * float(np.diff(ax.get_xlim())[0])
    for x, y, blocks in dots:
        if len(x) < OUTLIERS_FROM:
            continue
        low, high = np.percentile(x, [25, 75])
        reach = max(1.5 * (high - low), least)
        for at, row, block in zip(x, y, blocks, strict=True):
            if not low - reach <= at <= high + reach:
                ax.annotate(f"block {block}", (at, row), xytext=(0, 6), textcoords="offset points",
                            ha="right", fontsize=8.5, color=MUTED)  # fmt: skip


def _round_step(least: float) -> float:
    """The smallest of 1, 2, 2.5, 5 times a power of ten that is at least ``least``; 25 for none."""
    if least <= 0:
        return 25.0
    power = 10.0 ** math.floor(math.log10(least))
    return next(x * power for x in (1, 2, 2.5, 5, 10) if x * power >= least * (1 - 1e-9))


def _on(color: str) -> str:
    """White or ink, whichever reads better on ``color``."""
    red, green, blue = (int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return INK if 0.299 * red + 0.587 * green + 0.114 * blue > 0.58 else "white"
