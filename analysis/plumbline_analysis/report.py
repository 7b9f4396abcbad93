"""The page people see: one HTML file that opens offline and holds everything it shows.

No script, no external font, style or image: the figures are inline SVG. The page says first what
was found and how sure that is, then shows the numbers, then the figures, and last what must be
known to believe or repeat them.
"""

from __future__ import annotations

import os
import tempfile
from importlib import metadata
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from . import figures, paper
from .compare import Comparison, compare
from .intervals import ALPHA, Interval
from .load import Results, load
from .problem import Problem
from .style import strategy_colors, styled, worker_colors
from .svg import inline
from .verdict import bounds, counted, failure_counts, noise_floor, verdict

NUMBERS = "The numbers stand in the table Results and in rows.csv."
SHOWN_VERSIONS = ("numpy", "pandas", "scipy", "matplotlib")


def write_report(folder: Path | str) -> Path:
    """Writes ``report.html`` into a result folder, replacing an older one by rename."""
    folder = Path(folder)
    if not folder.is_dir():
        raise Problem(
            str(folder), "no such folder", next_step="name a result folder of `testbed bench`"
        )
    results = load(folder)
    text = render(results)
    target = folder / "report.html"
    handle, name = tempfile.mkstemp(dir=folder, prefix=".report-", suffix=".html")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        Path(name).chmod(0o644)
        Path(name).replace(target)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
    return target


def render(results: Results) -> str:
    """The page as text."""
    comparison = compare(results)
    environment = Environment(
        loader=PackageLoader("plumbline_analysis", "."),
        autoescape=select_autoescape(default=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    template = environment.get_template("report.html.j2")
    papers = paper.is_workload(results)
    beside = _paper(results, comparison) if papers else []
    return template.render(
        manifest=results.manifest,
        results=results,
        title=_title(results),
        stamps=_stamps(results, comparison),
        notices=_notices(results, comparison),
        verdict=verdict(results, comparison) if len(results.rows) else None,
        lines=_lines(comparison),
        workers=results.workers,
        worker_colors=worker_colors(results.workers),
        strategies=[x for x in results.labels if not x.startswith("aa:")],
        figures=_figures(results, comparison) if len(results.rows) else [],
        papers=papers,
        floor=noise_floor(comparison),
        comparison=comparison,
        claims=comparison.claims,
        not_valid=bool(comparison.not_valid),
        disagreements=_disagreements(comparison),
        cores=_cores(results),
        paper=beside,
        rr_over_wrr=_rr_over_wrr(beside),
        paper_rr_over_wrr=paper.RR_OVER_WRR,
        misfits=paper.MISFITS,
        facts=_facts(results),
        css=environment.get_template("report.css").render(),
        blocks=comparison.blocks,
        fmt=_fmt,
        signed=figures.signed,
        bounds=bounds,
    )


def _title(results: Results) -> str:
    names = [label for label in results.labels if not label.startswith("aa:")]
    return " vs ".join(names) if 0 < len(names) <= 3 else f"{len(names)} strategies compared"


def _stamps(results: Results, comparison: Comparison) -> list[tuple[str, str]]:
    """Marks shown beside the title wherever the page is quoted: (kind, text)."""
    burn = results.manifest["burn"]
    stamps = [("bad", "not valid")] if comparison.not_valid else []
    if burn["emulated"]:
        stamps.append(
            ("warn", f"emulated: {burn['fraction'] * 100:.3g} % of the instructions really burned")
        )
    if "synthetic" in results.manifest.get("flags", []):
        stamps.append(("warn", "synthetic: computed rows, nothing was measured"))
    if not results.manifest["complete"]:
        stamps.append(("warn", "incomplete"))
    if results.manifest.get("protection") not in (None, "plain"):
        stamps.append(("info", results.manifest["protection"]))
    return stamps


def _notices(results: Results, comparison: Comparison) -> list[str]:
    manifest = results.manifest
    notices = []
    planned = manifest["arms"]
    done = sum(arm["state"] == "done" for arm in planned)
    if not manifest["complete"]:
        why = manifest.get("aborted") or (
            "interrupted" if manifest.get("interrupted") else "not finished"
        )
        notices.append(
            f"The bench is incomplete ({why}): {done} of {len(planned)} runs are here. "
            "Go on with: testbed bench --resume and this folder."
        )
    if results.left_out:
        notices.append(f"Left out, because they did not finish: {', '.join(results.left_out)}.")
    if comparison.blocks == 1:
        notices.append(
            "One block only: the unit is the run, so there is no interval and nothing is claimed."
        )
    late = {arm.label: sum(run.late for run in arm.runs) for arm in comparison.arms if arm.late}
    if late:
        shown = ", ".join(f"{label} {count}" for label, count in late.items())
        runs = sum(len(arm.runs) for arm in comparison.arms)
        notices.append(
            f"The generator was late in {sum(late.values())} of {runs} runs ({shown}): p99 after "
            "the warm-up above max(1 ms, a tenth of the mean gap), or a request that could not be sent. Read small differences with care."
        )
    # Arms that failed too often stand in the verdict.
    bad = [arm for arm in comparison.arms if arm.failures.failed and not comparison.failing(arm)]
    if bad:
        shown = "; ".join(f"{arm.label} {failure_counts(arm)}" for arm in bad)
        notices.append(
            f"Requests without a good answer: {shown}. They count beside latency, never in it."
        )
    burned_late = [arm for arm in planned if "late_burns" in arm.get("flags", [])]
    if burned_late:
        worst = max(arm.get("late_burn_share") or 0 for arm in burned_late)
        notices.append(
            f"Workers burned late in {len(burned_late)} of {done} runs: more than 1 % of the answers (at "
            f"worst {worst * 100:.1f} %) waited for their instructions beyond the nominal time, so the host "
            "was short of cores and these latencies hold some of its own."
        )
    return notices


def _fmt(value: Interval, digits: int = 1) -> str:
    """``12.3 ± 0.4``, the point alone without an interval, a dash without a value."""
    if value.point != value.point:
        return "–"
    if not value.known:
        return f"{value.point:.{digits}f}"
    return f"{value.point:.{digits}f} ± {value.half_width:.{digits}f}"


def _lines(comparison: Comparison) -> list[dict]:
    """The table: ranked strategies by mean, then flagged ones, then the A/A arm."""
    ranked = comparison.ranking()
    rest = [arm for arm in comparison.arms if arm not in ranked and not arm.aa]
    aa = [arm for arm in comparison.arms if arm.aa]
    colors = strategy_colors([arm.label for arm in comparison.arms])
    lines = []
    for arm in ranked + rest + aa:
        difference = comparison.floor if arm.aa else comparison.mean(arm.label)
        lines.append(
            {
                "arm": arm,
                "name": figures.arm_name(arm),
                "color": colors[arm.label],
                "rank": ranked.index(arm) + 1 if arm in ranked and len(ranked) > 1 else "",
                "baseline": arm.label == comparison.baseline,
                "difference": difference,
                "bootstrap": difference.bootstrap.percent
                if difference and difference.bootstrap
                else None,
                "claim": "" if arm.aa else comparison.claim(arm.label),
                "runs": len(arm.runs),
                "shares": arm.shares(),
                "bad": {
                    name: arm.outcome_total(name)
                    for name in ("error", "timeout", "cancelled", "never_sent")
                },
                "late_p99_ms": max((run.lateness_p99_ms for run in arm.runs), default=float("nan")),
            }
        )
    return lines


def _disagreements(comparison: Comparison) -> list[str]:
    """A sentence wherever interval and p seem to say different things."""
    said = []
    for arm in comparison.arms:
        d = comparison.mean(arm.label)
        if d is None or not d.percent.known or d.p_holm != d.p_holm:
            continue
        if len(d.blocks) < comparison.blocks_needed:
            continue
        excludes = not d.percent.low <= 0 <= d.percent.high
        if excludes == (d.p_holm < ALPHA):
            continue
        said.append(
            f"The interval of {arm.label} {'leaves zero out' if excludes else 'holds zero'} although its "
            f"p is {d.p_holm:.3f}: the interval takes the blocks' log-ratios as normal and looks at this "
            "strategy alone, p flips their signs and is adjusted for all strategies compared; a claim "
            "goes by p."
        )
    return said


def _cores(results: Results) -> str:
    """``4, 3 and 2``."""
    cores = [f"{w['cores']:g}" for w in results.manifest.get("backend", {}).get("workers", [])]
    return " and ".join([", ".join(cores[:-1]), cores[-1]] if len(cores) > 1 else cores)


def _figures(results: Results, comparison: Comparison) -> list[dict]:
    first_block = int(results.rows["block"].min())
    has_bounds = comparison.claims and comparison.blocks > 1
    whisker = "Dark line: 95 % interval of the mean over blocks. " if has_bounds else ""
    plan = [
        ("differences", "Difference to the baseline, block by block", "",
         lambda: figures.paired_differences(comparison),
         "One dot a block: the run's mean latency against the baseline's run of the same block. Diamond: geometric mean; "
         "bar: its 95 % interval (Student's t on log-ratios). A block far outside the others is named."),
        ("sizes", "Task sizes", "Figure 1",
         lambda: figures.task_sizes(results), f"The requests of a run of block {first_block}, the same for every strategy; ticks are the APIs."),
        ("latency", "Mean latency", "Figure 2",
         lambda: figures.metric_bars(comparison, "mean_ms", "mean latency, ms", 1),
         f"Circles: blocks; one far outside the others is named. {whisker}"
         "Latency counts from the time a request was due."),
        ("throughput", "Throughput as work over latency", "Figure 3",
         lambda: figures.metric_bars(comparison, "throughput_mi_per_ms", "sum(MI) / sum(latency), MI/ms", 2),
         "The paper's measure: in one run, mean size over mean latency of the answered requests. It is no rate at which work was done; "
         "completed requests per second, in the table, are."),
        ("picks", "Which worker was chosen, over time", "Figure 4",
         lambda: figures.picks_over_time(results, first_block),
         f"Block {first_block}, warm-up included. Left: share of each worker per slice of time. Right: every request of one second; "
         "a lane that empties while another crowds is herding between polls."),
        ("tails", "Latency by percentile", "",
         lambda: figures.latency_tails(results, comparison),
         "All blocks together, warm-up left out; drawn as far as ten requests lie above. Both scales are logarithmic."),
        ("shares", "Shares", "",
         lambda: figures.worker_shares(results, comparison), "Requests by worker, mean over blocks."),
        ("lateness", "Was the generator on time?", "",
         lambda: figures.lateness(results, comparison), "All runs, warm-up left out; below 1 µs drawn at 1 µs."),
    ]  # fmt: skip
    if not comparison.differences:
        plan = [entry for entry in plan if entry[0] != "differences"]
    drawn = []
    for name, title, number, draw, note in plan:
        with styled():
            svg = inline(draw(), f"fig-{name}", f"{title}. {note} {NUMBERS}")
        drawn.append({"name": name, "title": title, "number": number, "svg": svg, "note": note})
    return drawn


def _paper(results: Results, comparison: Comparison) -> list[dict]:
    """Our arms beside the paper's lines, both also as ratios to round robin."""
    matched = [(arm, paper.match(arm.label)) for arm in comparison.arms if not arm.aa]
    matched = [(arm, line) for arm, line in matched if line is not None]
    rr = next((arm for arm, line in matched if line.name == "RR"), None)
    to_rr = compare(results, rr.label, comparison.arms) if rr else None
    rr_ms = next(line.mean_ms for line in paper.TABLE_3 if line.name == "RR")
    lines = []
    for arm, line in matched:
        difference = to_rr.mean(arm.label) if to_rr else None
        lines.append(
            {
                "name": line.name,
                "label": arm.label,
                "paper_ms": line.mean_ms,
                "paper_mi": line.throughput_mi_per_ms,
                "paper_ratio": line.mean_ms / rr_ms,
                "mean": comparison.interval(arm, "mean_ms"),
                "throughput": comparison.interval(arm, "throughput_mi_per_ms"),
                "ratio": difference.ratio if difference else None,
                "is_rr": line.name == "RR",
            }
        )
    return lines


def _rr_over_wrr(lines: list[dict]) -> Interval | None:
    """Round robin over weighted round robin, the paper's 1.079, with its bounds."""
    found = next((line["ratio"] for line in lines if line["name"] == "WRR" and line["ratio"]), None)
    return Interval(1 / found.point, 1 / found.high, 1 / found.low) if found else None


def _asked(manifest: dict) -> str:
    wait_ms = manifest.get("ask_first_ms")
    return "" if wait_ms is None else f", and asked for before picks, {wait_ms:g} ms at most"


def _facts(results: Results) -> list[tuple[str, str]]:
    m = results.manifest
    host, burn, work, versions = m["host"], m["burn"], m["workload"], m["versions"]
    backend = m.get("backend", {})
    workers = ", ".join(
        f"{w['name']} {w['cores']:g} cores / {w['memory_bytes'] / 2**30:g} GB, weight {w['weight']}"
        + _read_back(w)
        for w in backend.get("workers", [])
    )
    packages = ", ".join(f"{name} {metadata.version(name)}" for name in SHOWN_VERSIONS)
    return [
        ("Command", " ".join(m["command"])),
        (
            "Recorded",
            f"{m.get('created_utc', '')}, preset {m.get('preset', '')}, folder {m.get('name', '')}",
        ),
        (
            "Commit",
            f"{versions.get('git_commit') or 'unknown'} (plumbline {versions.get('plumbline', '')})",
        ),
        ("Seed", str(m["seed"])),
        (
            "Workload",
            f"{work['name']}: {counted(work['requests'], 'request')} a run over {counted(work['apis'], 'API')}, mean {work['mean_mi']:.1f} MI, "
            f"{work['rate_rps']:.4g} requests/s, SHA-256 {work['sha256'][:16] or '–'}",
        ),
        ("Offered load", f"{burn['load']:.3f} of all cores"),
        ("Workers", f"{workers}; pinned at {burn['mips_per_core']:,.0f} MIPS a core"),
        ("Emulation", f"burn fraction {burn['fraction']:g} ({burn['reason']})"),
        (
            "Machine",
            f"{host['cpu_model']}, {host['cores']} cores, {host['memory_bytes'] / 2**30:.1f} GB, {host['system']}; "
            f"loop {host['loop']}, {host['native_mips_per_core']:,.0f} MIPS a core alone, "
            f"{host['native_mips_per_core_all_busy']:,.0f} with all busy",
        ),
        ("Back end", f"{backend.get('kind', '')} ({backend.get('reason', '')})"),
        (
            "Protection",
            f"{m.get('protection', '')}; stats polled every {m.get('stats_interval_ms', 0):g} ms{_asked(m)}",
        ),
        (
            "Blocks",
            f"{m.get('blocks', '?')} planned; the first {m.get('warmup_requests', '?')} requests of each run are warm-up and left out",
        ),
        (
            "Analysis",
            f"plumbline_analysis {metadata.version('plumbline-analysis')}, {packages}"
            if _installed()
            else packages,
        ),
    ]


def _read_back(worker: dict) -> str:
    if worker.get("engine_cpus") is None:
        return ""
    memory = (worker.get("engine_memory_bytes") or 0) / 2**30
    return f" (engine: {worker['engine_cpus']:g} / {memory:g} GB)"


def _installed() -> bool:
    try:
        metadata.version("plumbline-analysis")
    except metadata.PackageNotFoundError:
        return False
    return True
