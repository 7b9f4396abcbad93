//! What `twin regret` prints.

use super::judge::{Tail, Verdict};
use super::rebuild::Discipline;
use super::{Judged, Setting, gap};
use crate::table::aligned;
use serde::Serialize;
use std::collections::BTreeMap;

/// Ranks with a column of their own; later ones share one.
const SHOWN_RANKS: usize = 4;
const NOTE: &str = "\
regret: cost of the pick minus the least over all workers, with the true work left everywhere and no
further arrivals; ms. own: the request's own time. mc: plus the delay it adds to the others. hit: mc
within 1 % of the least. 1st, 2nd ..: picks by rank of their mc cost. Means over runs of each run's value.
";

/// The JSON.
#[derive(Debug, Serialize)]
pub(super) struct Answer<'a> {
    discipline: &'static str,
    mips_per_core: f64,
    workers: Vec<WorkerShown<'a>>,
    strategies: Vec<Line<'a>>,
    runs: Vec<RunShown<'a>>,
}

#[derive(Debug, Serialize)]
struct WorkerShown<'a> {
    name: &'a str,
    cores: f64,
    speed: f64,
}

/// One strategy: means over its runs.
#[derive(Debug, Serialize)]
struct Line<'a> {
    strategy: &'a str,
    runs: usize,
    picks: u64,
    failed: u64,
    regret_own_ms: Tail,
    regret_mc_ms: Tail,
    hit_own: f64,
    hit_mc: f64,
    rank_shares: Vec<f64>,
    /// Null if a run has none.
    mean_latency_ms: Option<f64>,
    /// Null unless baseline, oracle and this strategy ran one schedule.
    gap_closed: Option<f64>,
}

#[derive(Debug, Serialize)]
struct RunShown<'a> {
    strategy: &'a str,
    run_id: &'a str,
    block: Option<u32>,
    rows: &'a str,
    failed: u64,
    mean_latency_ms: Option<f64>,
    #[serde(flatten)]
    verdict: &'a Verdict,
}

pub(super) fn json<'a>(setting: &'a Setting, runs: &'a [Judged]) -> Answer<'a> {
    let worker = |w: &'a super::Worker| WorkerShown {
        name: &w.name,
        cores: w.cores,
        speed: w.speed,
    };
    let shown = |run: &'a Judged| RunShown {
        strategy: &run.strategy,
        run_id: &run.run_id,
        block: run.block,
        rows: &run.source,
        failed: run.failed,
        mean_latency_ms: run.mean_ms,
        verdict: &run.verdict,
    };
    Answer {
        discipline: match setting.discipline {
            Discipline::Sharing => "ps",
            Discipline::InOrder => "fcfs",
        },
        mips_per_core: setting.mips_per_core,
        workers: setting.workers.iter().map(worker).collect(),
        strategies: lines(runs),
        runs: runs.iter().map(shown).collect(),
    }
}

/// In the order in which the strategies came.
fn lines(runs: &[Judged]) -> Vec<Line<'_>> {
    let gaps = gap::closed(runs);
    let mut names: Vec<&str> = Vec::new();
    for run in runs {
        if !names.contains(&run.strategy.as_str()) {
            names.push(&run.strategy);
        }
    }
    let line = |strategy| {
        let own: Vec<&Judged> = runs.iter().filter(|r| r.strategy == strategy).collect();
        line(strategy, &own, &gaps)
    };
    names.into_iter().map(line).collect()
}

fn line<'a>(strategy: &'a str, runs: &[&Judged], gaps: &BTreeMap<&str, f64>) -> Line<'a> {
    let mean = |value: &dyn Fn(&Judged) -> f64| {
        runs.iter().map(|r| value(r)).sum::<f64>() / runs.len() as f64
    };
    let tail = |of: fn(&Verdict) -> Tail| Tail {
        mean: mean(&|r| of(&r.verdict).mean),
        p95: mean(&|r| of(&r.verdict).p95),
    };
    let ranks = runs.first().map_or(0, |r| r.verdict.rank_shares.len());
    let has_mean = runs.iter().all(|r| r.mean_ms.is_some());
    Line {
        strategy,
        runs: runs.len(),
        picks: runs.iter().map(|r| r.verdict.picks).sum(),
        failed: runs.iter().map(|r| r.failed).sum(),
        regret_own_ms: tail(|v| v.regret_own_ms),
        regret_mc_ms: tail(|v| v.regret_mc_ms),
        hit_own: mean(&|r| r.verdict.hit_own),
        hit_mc: mean(&|r| r.verdict.hit_mc),
        rank_shares: (0..ranks)
            .map(|i| mean(&|r| r.verdict.rank_shares[i]))
            .collect(),
        mean_latency_ms: has_mean.then(|| mean(&|r| r.mean_ms.unwrap_or_default())),
        gap_closed: gaps.get(strategy).copied(),
    }
}

pub(super) fn table(setting: &Setting, runs: &[Judged]) -> String {
    let ranks = setting.workers.len();
    let shown = ranks.min(SHOWN_RANKS);
    let titles = ["1st", "2nd", "3rd", "4th"];
    let heads = [
        "strategy", "runs", "picks", "failed", "own", "own p95", "mc", "mc p95", "hit",
    ];
    let mut head: Vec<String> = heads.map(String::from).to_vec();
    head.extend(titles.iter().take(shown).map(|t| t.to_string()));
    if ranks > shown {
        head.push("later".into());
    }
    head.extend(["latency", "gap closed"].map(String::from));
    let mut cells = vec![head];
    for line in lines(runs) {
        let mut row = vec![
            line.strategy.to_string(),
            line.runs.to_string(),
            line.picks.to_string(),
            line.failed.to_string(),
        ];
        for tail in [line.regret_own_ms, line.regret_mc_ms] {
            row.extend([tail.mean, tail.p95].map(|ms| format!("{ms:.3}")));
        }
        row.push(percent(line.hit_mc));
        let (own_columns, later) = line.rank_shares.split_at(shown);
        row.extend(own_columns.iter().map(|share| percent(*share)));
        if !later.is_empty() {
            row.push(percent(later.iter().sum()));
        }
        row.push(
            line.mean_latency_ms
                .map_or("-".into(), |ms| format!("{ms:.1}")),
        );
        row.push(
            line.gap_closed
                .map_or("-".into(), |gap| format!("{gap:.2}")),
        );
        cells.push(row);
    }
    aligned(&cells, &[]) + NOTE + &speeds(setting, runs)
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// The range of what the workers' records tell of their speed.
fn speeds(setting: &Setting, runs: &[Judged]) -> String {
    let range = |w: usize| {
        let seen = runs.iter().filter_map(|r| r.verdict.measured_speeds[w]);
        let (low, high) = seen.fold((f64::INFINITY, 0.0_f64), |(low, high), s| {
            (low.min(s), high.max(s))
        });
        let name = &setting.workers[w].name;
        (low <= high).then(|| format!("{name} {low:.4}..{high:.4}"))
    };
    let ranges: Vec<String> = (0..setting.workers.len()).filter_map(range).collect();
    match ranges.len() {
        1..=SHOWN_SPEEDS => format!(
            "speed by their records, 1 = as stated: {}\n",
            ranges.join(", ")
        ),
        _ => String::new(),
    }
}

/// Workers at most whose measured speeds are shown in the table.
const SHOWN_SPEEDS: usize = 10;
