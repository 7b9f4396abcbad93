"""The findings of prediction: tables, judgements and a figure from six sweeps.

``docs/findings.md`` quotes what this writes; ``make findings`` runs the sweeps and then this.
A judgement compares a measured number with the one that was set before it was measured; each says
what was wanted, what came out with its interval, and whether it holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .intervals import Interval
from .sweeps import Cell, Sweep, read_sweep

BLIND = "smooth-weighted-round-robin"
LIVE = "weighted-least-request"
ORACLE = "oracle-marginal"

PAPER_RR, PAPER_PLB = 1.079, 1.255
"""The published ratios to weighted round robin."""
TOLERANCE = 0.05
PAPER_K = 10
"""Arrivals per poll in the paper: one each 10 ms, a poll each 100 ms."""
PAPER_LOAD = 0.614
"""Where RR/WRR is the published one, and where the model was trained."""

TOLD, MEASURED = "plb-paper", "plb-docker"
"""The paper's predictors: on what workers tell of themselves, and on their containers' figures."""
OWN_PERIODS = "100ms:1s"
"""Each as it is renewed: workers are polled, an engine has new figures each second."""
MATRIX = "matrix.csv"
"""The scenario matrix, beside the results of the other sweeps."""
CLOSE = "matrix-close.csv"
"""Its cells in which few seeds cannot tell the bounds below, with more of them."""

WORSE_PERCENT = 0.5
"""Never slower than live counts by more."""
HEADROOM_PERCENT = 1.0
"""Where the oracle is faster by this, a win is wanted."""


@dataclass(frozen=True)
class Judgement:
    """A number that was wanted and the one that came out."""

    what: str
    wanted: str
    got: str
    holds: bool

    @property
    def verdict(self) -> str:
        """holds or missed."""
        return "holds" if self.holds else "missed"


@dataclass(frozen=True)
class Place:
    """A cell of the prediction sweep or of the matrix with its name and labels."""

    pool: str
    load: float
    traffic: str
    discipline: str
    change: str
    cell: Cell
    balancers: int = 1
    arrivals_per_poll: float | None = None

    @property
    def name(self) -> str:
        """As tables print it."""
        words = [self.pool, f"{self.load:g}", self.discipline]
        words += [w for w in (self.traffic, self.change) if w not in ("light", "steady")]
        if self.balancers > 1:
            words.append(f"{self.balancers} balancers")
        if self.arrivals_per_poll is not None:
            words.append(f"K {self.arrivals_per_poll:g}")
        return " ".join(words)

    @property
    def oracle(self) -> str:
        """The oracle of this cell: where speeds change it knows them, if that one ran."""
        knowing = f"{ORACLE}:truth=world"
        ran = self.spelled(knowing) in set(self.cell.runs["strategy"])
        return knowing if self.change == "speed" and ran else ORACLE

    def spelled(self, name: str) -> str:
        """The strategy as this cell runs it: in a queue it is told so."""
        if self.discipline == "ps" or name == LIVE:
            return name
        base, _, rest = name.partition(":")
        return ",".join(filter(None, [f"{base}:discipline={self.discipline}", rest]))

    def percent(self, name: str) -> Interval | None:
        """Mean latency against live counts, percent; below 0 is faster."""
        ratio = self.cell.ratio(self.spelled(name), LIVE)
        return None if ratio is None else ratio.percent

    def closed(self, name: str) -> Interval | None:
        """Share of the way from live counts to the oracle."""
        return self.cell.gap_closed(self.spelled(name), LIVE, self.spelled(self.oracle))


def places(prediction: Sweep) -> list[Place]:
    """The cells of the prediction sweep in its order."""
    labels = ["pool", "load", "traffic", "discipline", "change"]
    cells = prediction.runs[labels].drop_duplicates().itertuples(index=False)
    return [Place(*cell, prediction.cell(**dict(zip(labels, cell, strict=True)))) for cell in cells]


def matrix_places(matrix: Sweep) -> list[Place]:
    """The cells of the scenario matrix in its order."""
    labels = ["pool", "load", "traffic", "discipline", "change", "balancers", "arrivals_per_poll"]
    cells = []
    for at, runs in matrix.runs.groupby(labels, sort=False):
        *place, balancers, k = at
        cells.append(Place(*place, Cell(matrix.source, runs), balancers, k))
    return cells


def judge(folder: Path) -> list[Judgement]:
    """Every number that was set beforehand."""
    return [
        *_reproduced(read_sweep(folder / "reproduction.csv")),
        *_features(read_sweep(folder / "features.csv")),
        *_predicted(places(read_sweep(folder / "prediction.csv"))),
        *_balancers(read_sweep(folder / "balancers.csv")),
        *_matrix(folder),
    ]


def _matrix(folder: Path) -> list[Judgement]:
    """Over the scenario matrix, which takes longer than the rest and may not have been run."""
    path = folder / MATRIX
    if not path.is_file():
        return []
    cells = matrix_places(read_sweep(path))
    if (folder / CLOSE).is_file():
        settled = {c.name: c for c in matrix_places(read_sweep(folder / CLOSE))}
        cells = [settled.get(c.name, c) for c in cells]
    return [_never_worse(cells, "the matrix"), _always_better(cells, "the matrix")]


def _reproduced(sweep: Sweep) -> list[Judgement]:
    cells = {
        (load, k): sweep.cell(load=load, arrivals_per_poll=k)
        for load, k in sweep.runs[["load", "arrivals_per_poll"]].drop_duplicates().values
    }
    ratios = {
        at: (cell.ratio("round-robin", BLIND), cell.ratio("plb-paper", BLIND))
        for at, cell in cells.items()
    }
    known = {at: (rr, plb) for at, (rr, plb) in ratios.items() if rr and plb}

    def off(at: tuple[float, float]) -> float:
        rr, plb = known[at]
        return max(abs(rr.point / PAPER_RR - 1), abs(plb.point / PAPER_PLB - 1))

    nearest = min(known, key=off)
    rr, plb = known[nearest]
    where = f"load {nearest[0]:g}, {nearest[1]:g} arrivals per poll"
    return [
        Judgement(
            f"RR/WRR and PLB/WRR of the paper together ({where})",
            f"{PAPER_RR} and {PAPER_PLB}, each ±5 %",
            f"{decimals(rr)} and {decimals(plb)}",
            off(nearest) <= TOLERANCE,
        ),
        Judgement(
            f"the paper's rank ({where})",
            "WRR < RR < PLB",
            "intervals apart" if rr.low > 1 and rr.high < plb.low else "intervals overlap",
            rr.low > 1 and rr.high < plb.low,
        ),
    ]


def _features(sweep: Sweep) -> list[Judgement]:
    """The paper found its second model to explain less; whoever picks by it is to be slower."""
    found = {
        gaps: sweep.cell(gaps=gaps, renewed=OWN_PERIODS).ratio(MEASURED, TOLD)
        for gaps in sweep.runs["gaps"].unique()
    }
    said = [f"{gaps} gaps {decimals(r) if r else 'unstable'}" for gaps, r in found.items()]
    return [
        Judgement(
            "the paper's second predictor (container figures) is slower than the first (worker statistics)",
            "their ratio's interval above 1",
            "; ".join(said),
            all(r is not None and r.low > 1 for r in found.values()),
        )
    ]


def _predicted(cells: list[Place]) -> list[Judgement]:
    steady = [c for c in cells if c.change == "steady" and c.traffic == "light"]
    drift = [c for c in cells if c.change == "speed" and c.traffic == "light"]
    ps = [c for c in steady if c.discipline == "ps"]
    busy = [c for c in cells if c.change == "steady" and c.load >= 0.6]
    wanted = [
        (
            "cores below one, loads .6 to .9, local knowledge",
            "wl-mc",
            0.9,
            [c for c in ps if c.pool == "S" and c.load >= 0.6],
        ),
        (
            "first come first served at .8, local knowledge",
            "wl-mc",
            0.9,
            [c for c in steady if c.discipline == "fcfs" and c.load == 0.8],
        ),
        (
            "whole cores, loads .6 to .9, local knowledge",
            "wl-mc",
            0.55,
            [c for c in ps if c.pool == "W" and c.load >= 0.6],
        ),
        ("every steady cell from .6 on, worker-told work", "wl-mc:reports=work", 0.95, busy),
        (
            "whole cores under speed drift, local knowledge",
            "wl-mc",
            0.85,
            [c for c in drift if c.pool == "W" and c.discipline == "ps"],
        ),
        (
            "whole cores under speed drift, reported speed",
            "wl-mc:speed=reported",
            0.95,
            [c for c in drift if c.pool == "W" and c.discipline == "ps"],
        ),
    ]
    return [
        *(_closed(what, name, least, where) for what, name, least, where in wanted),
        _never_worse(cells),
        _always_better(cells),
    ]


def _closed(what: str, name: str, least: float, cells: list[Place]) -> Judgement:
    """The gap closed is at least this in each of the cells in which there is a gap."""
    shares = [(share.point, c.name, share) for c in cells if (share := c.closed(name))]
    if not shares:
        return Judgement(f"gap closed: {what}", f">= {least}", "no cell has a gap", False)
    worst, where, share = min(shares, key=lambda s: s[0])
    best = max(point for point, _, _ in shares)
    got = f"{worst:.2f} to {best:.2f}; least in {where}: {decimals(share, 2)}"
    return Judgement(f"gap closed: {what}", f">= {least}", got, worst >= least)


def _never_worse(cells: list[Place], where: str = "") -> Judgement:
    found = [(p.point, c.name, p) for c in cells if (p := c.percent("wl-mc"))]
    worst, at, interval = max(found, key=lambda f: f[0])
    of = f" of {where}" if where else ""
    return Judgement(
        f"wl-mc is never slower than live counts ({len(found)} cells{of})",
        f"by {WORSE_PERCENT} % at most",
        f"worst {at}: {signed(interval)}",
        worst <= WORSE_PERCENT,
    )


def _always_better(cells: list[Place], where: str = "") -> Judgement:
    found = [
        (c.name, ours)
        for c in cells
        if (oracle := c.percent(c.oracle)) is not None
        and oracle.point <= -HEADROOM_PERCENT
        and (ours := c.percent("wl-mc")) is not None
    ]
    missed = [f"{name}: {signed(ours)}" for name, ours in found if not ours.high < 0]
    return Judgement(
        f"wl-mc is faster wherever the oracle is by 1 %{f', {where}' if where else ''}",
        f"its interval below 0 in all {len(found)} cells",
        "; ".join(missed) if missed else f"in all {len(found)}",
        bool(found) and not missed,
    )


def _balancers(sweep: Sweep) -> list[Judgement]:
    told, oracle = "wl-mc:reports=work", "oracle-marginal:truth=world"
    asked, near = _worst(sweep, told, oracle, ("first",))
    where, beside = _worst(sweep, "wl-mc", LIVE, ("no", "first"))
    return [
        Judgement(
            "four balancers that ask first, worker-told work, against the all-knowing oracle",
            "within 2 %",
            f"worst {asked}: {signed(near)}",
            near.point <= 2,
        ),
        Judgement(
            "wl-mc is never slower than live counts with four balancers",
            f"by {WORSE_PERCENT} % at most",
            f"worst {where}: {signed(beside)}",
            beside.point <= WORSE_PERCENT,
        ),
    ]


def _worst(sweep: Sweep, name: str, base: str, asked: tuple[str, ...]) -> tuple[str, Interval]:
    """The cell of several balancers in which a strategy is slowest against another, in percent."""
    found = [
        (f"{pool} {load:g}", ratio.percent)
        for pool, load in sweep.runs[["pool", "load"]].drop_duplicates().values
        for asks in asked
        if (ratio := sweep.cell(pool=pool, load=load, asked=asks).ratio(name, base)) is not None
    ]
    return max(found, key=lambda f: f[1].point)


def decimals(interval: Interval, digits: int = 3) -> str:
    """As ``1.255 (1.250..1.260)``."""
    texts = (f"{x:.{digits}f}" for x in (interval.point, interval.low, interval.high))
    point, low, high = texts
    return f"{point} ({low}..{high})" if interval.known else point


def signed(interval: Interval | None, digits: int = 2) -> str:
    """A change in percent, as ``-2.71 % (-2.80..-2.62)``."""
    if interval is None:
        return "-"
    point, low, high = (f"{x:+.{digits}f}" for x in (interval.point, interval.low, interval.high))
    return f"{point} % ({low}..{high})" if interval.known else f"{point} %"


def table(header: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def judgements_table(found: list[Judgement]) -> str:
    """The judgements, one a row."""
    rows = [[j.what, j.wanted, j.got, j.verdict] for j in found]
    return table(["number", "wanted", "measured", "verdict"], rows)


def reproduction_table(sweep: Sweep) -> str:
    """Loads down, arrivals per poll across."""
    ks = sorted(sweep.runs["arrivals_per_poll"].unique())
    rows = []
    for load in sorted(sweep.runs["load"].unique()):
        cells = [sweep.cell(load=load, arrivals_per_poll=k) for k in ks]
        ratios = [cells[0].ratio("round-robin", BLIND)]
        ratios += [cell.ratio("plb-paper", BLIND) for cell in cells]
        rows.append([f"{load:g}", *(_ratio(r) for r in ratios)])
    return table(["load", "RR/WRR", *(f"PLB/WRR, K = {k:g}" for k in ks)], rows)


def features_table(sweep: Sweep) -> str:
    """One pair of intervals a row: both predictors over blind weights, and the second over the first."""
    rows = []
    for gaps, renewed in sweep.runs[["gaps", "renewed"]].drop_duplicates().values:
        cell = sweep.cell(gaps=gaps, renewed=renewed)
        told, measured = (cell.ratio(name, BLIND) for name in (TOLD, MEASURED))
        polled, engine = renewed.split(":")
        rows.append(
            [
                gaps,
                polled,
                engine,
                *(_ratio(r) for r in (told, measured, cell.ratio(MEASURED, TOLD))),
            ]
        )
    header = [
        "gaps",
        "polls each",
        "engine's figures each",
        f"`{TOLD}` / WRR",
        f"`{MEASURED}` / WRR",
    ]
    return table([*header, f"`{MEASURED}` / `{TOLD}`"], rows)


def signals_table(sweep: Sweep, load: float = PAPER_LOAD) -> str:
    """Strategies down, arrivals per poll across: mean latency over blind weights."""
    runs = sweep.runs[(sweep.runs["load"] == load) & (sweep.runs["gaps"] == "even")]
    ks = sorted(runs["arrivals_per_poll"].unique())
    cells = [sweep.cell(load=load, gaps="even", arrivals_per_poll=k) for k in ks]
    rows = [
        [f"`{strategy}`", *(_ratio(cell.ratio(strategy, BLIND)) for cell in cells)]
        for strategy in runs["strategy"].unique()
    ]
    return table(["strategy", *(f"K = {k:g}" for k in ks)], rows)


def loads_table(sweep: Sweep) -> str:
    """Gaps and loads across at the paper's arrivals per poll: mean latency over live counts."""
    at_k = sweep.runs[sweep.runs["arrivals_per_poll"] == PAPER_K]
    at = [
        tuple(x)
        for x in at_k[["gaps", "load"]].drop_duplicates().sort_values(["gaps", "load"]).values
    ]
    cells = [sweep.cell(gaps=g, load=load, arrivals_per_poll=PAPER_K) for g, load in at]
    everywhere = [set(cell.runs["strategy"]) for cell in cells]
    rows = [
        [f"`{strategy}`", *(_ratio(cell.ratio(strategy, LIVE)) for cell in cells)]
        for strategy in at_k["strategy"].unique()
        if all(strategy in names for names in everywhere)
    ]
    return table(["strategy", *(f"{gaps} gaps, {load:g}" for gaps, load in at)], rows)


def prediction_table(cells: list[Place]) -> str:
    """One cell a row."""
    rows = []
    for c in cells:
        mean = c.cell.mean(LIVE)
        ours, oracle = c.percent("wl-mc"), c.percent(c.oracle)
        shares = [c.closed(n) for n in ("wl-mc", "wl-mc:speed=reported", "wl-mc:reports=work")]
        rows.append(
            [
                c.name,
                "unstable" if mean is None else f"{mean.point:.1f}",
                signed(ours),
                signed(oracle),
                *("-" if share is None else decimals(share, 2) for share in shares),
                _verdict(ours, oracle),
            ]
        )
    header = ["cell", "live counts, ms", "wl-mc", "oracle", "gap closed", "reported speed"]
    return table([*header, "worker-told", "verdict"], rows)


def _verdict(ours: Interval | None, oracle: Interval | None) -> str:
    if ours is None or oracle is None:
        return "unstable"
    if ours.point > WORSE_PERCENT:
        return "worse"
    if ours.high < 0:
        return "faster"
    return "missed" if oracle.point <= -HEADROOM_PERCENT else "no gap"


def bound_table(sweep: Sweep) -> str:
    """What drawing worlds and playing them on is worth, one cell a row."""
    names = ["wl-mc", "roll-out:ahead=0", "roll-out", "roll-out:errors=2"]
    names += ["wl-mc:reports=work", "roll-out:reports=work"]

    def closed(place: Place, name: str) -> str:
        ran = place.spelled(name) in set(place.cell.runs["strategy"])
        return _decimals(place.closed(name)) if ran else ""

    rows = [
        [place.name, *(closed(place, n) for n in names), _decimals(place.percent("roll-out"))]
        for place in places(sweep)
    ]
    header = [*(f"`{name}`" for name in names), "`roll-out`, % of live counts"]
    return table(["cell", *header], rows)


def _decimals(value: Interval | None) -> str:
    return "unstable" if value is None else decimals(value, 2)


def balancers_table(sweep: Sweep) -> str:
    """Four balancers: mean latency in ms without and with asking first."""
    rows = []
    for strategy in sweep.runs["strategy"].unique():
        texts = []
        for pool, load in sweep.runs[["pool", "load"]].drop_duplicates().values:
            for asked in ("no", "first"):
                mean = sweep.cell(pool=pool, load=load, asked=asked).mean(strategy)
                texts.append(
                    "unstable" if mean is None else f"{mean.point:.1f} ± {mean.half_width:.1f}"
                )
        rows.append([f"`{strategy}`", *texts])
    header = [
        f"{pool} {load:g}{', ask first' if asked == 'first' else ''}"
        for pool, load in sweep.runs[["pool", "load"]].drop_duplicates().values
        for asked in ("no", "first")
    ]
    return table(["strategy", *header], rows)


def _ratio(ratio: Interval | None) -> str:
    if ratio is None:
        return "unstable"
    return f"{ratio.point:.3f} ± {ratio.half_width:.3f}" if ratio.known else f"{ratio.point:.3f}"


def tables(folder: Path) -> dict[str, str]:
    """Every table of the findings in Markdown, by the name of its file."""
    causes = read_sweep(folder / "causes.csv")
    return {
        "reproduction": reproduction_table(read_sweep(folder / "reproduction.csv")),
        "signals": signals_table(causes),
        "features": features_table(read_sweep(folder / "features.csv")),
        "loads": loads_table(causes),
        "prediction": prediction_table(places(read_sweep(folder / "prediction.csv"))),
        "bound": bound_table(read_sweep(folder / "bound.csv")),
        "balancers": balancers_table(read_sweep(folder / "balancers.csv")),
        "judgements": judgements_table(judge(folder)),
    }


def write(folder: Path) -> list[Judgement]:
    """Writes the tables and the figure into the folder of the sweeps' results."""
    # matplotlib takes a second to load, and reading tables does without.
    from .signals import signals_figure  # noqa: PLC0415
    from .style import styled  # noqa: PLC0415

    for name, text in tables(folder).items():
        (folder / f"{name}.md").write_text(text)
    with styled():
        figure = signals_figure(read_sweep(folder / "causes.csv"), PAPER_LOAD)
        for ending in ("svg", "png"):
            plain = {"Date": None} if ending == "svg" else None
            figure.savefig(folder / f"signals.{ending}", dpi=200, metadata=plain)
    return judge(folder)
