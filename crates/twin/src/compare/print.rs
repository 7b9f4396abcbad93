//! What `twin compare` prints: a table for people, JSON, CSV.

use super::figures::{Arm, Claim, Comparison, Difference, Metric};
use crate::build::Plan;
use crate::output::Interval;
use crate::table::aligned;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Shares of more workers are not printed in the table.
const SHOWN_SHARES: usize = 8;

/// A comparison and what it was made under.
pub(super) struct Told<'a> {
    pub(super) comparison: &'a Comparison,
    pub(super) plan: &'a Plan,
    pub(super) replications: u32,
    /// Whether all replications have the same requests.
    pub(super) is_one_list: bool,
}

/// A figure with its 95 % bounds; without them from a single replication.
#[derive(Debug, Clone, Copy, Serialize)]
struct Bounds {
    point: f64,
    low: Option<f64>,
    high: Option<f64>,
}

impl Bounds {
    fn new(interval: Interval) -> Self {
        let bound = |x: f64| x.is_finite().then_some(x);
        Self {
            point: interval.mean,
            low: bound(interval.mean - interval.half_width),
            high: bound(interval.mean + interval.half_width),
        }
    }

    /// Of the ratio, from one of a log-ratio.
    fn exp(self) -> Self {
        Self {
            point: libm::exp(self.point),
            low: self.low.map(libm::exp),
            high: self.high.map(libm::exp),
        }
    }

    fn range(self, decimals: usize) -> String {
        match (self.low, self.high) {
            (Some(low), Some(high)) => format!("{low:.decimals$}..{high:.decimals$}"),
            _ => "-".into(),
        }
    }
}

/// The JSON of a comparison.
#[derive(Debug, Serialize)]
pub(super) struct Json {
    baseline: String,
    replications: u32,
    seed: u64,
    requests: u64,
    load: Option<f64>,
    mean_service_ms: f64,
    strategies: Vec<JsonArm>,
}

#[derive(Debug, Serialize)]
struct JsonArm {
    strategy: String,
    oracle: bool,
    unstable: bool,
    unstable_runs: usize,
    /// One sign of two said unstable, and no longer run could settle it.
    doubtful_runs: usize,
    failed: u64,
    rank: Option<usize>,
    #[serde(flatten)]
    metrics: BTreeMap<&'static str, Option<Bounds>>,
    mean_over_service: Option<f64>,
    shares: BTreeMap<String, f64>,
    against_baseline: BTreeMap<&'static str, JsonDifference>,
    claim: Option<Claim>,
    gap_closed: Option<f64>,
}

#[derive(Debug, Serialize)]
struct JsonDifference {
    difference_ms: Bounds,
    ratio: Bounds,
    p: f64,
    p_holm: f64,
}

impl JsonDifference {
    fn new(difference: &Difference) -> Self {
        Self {
            difference_ms: Bounds::new(difference.difference_ms),
            ratio: Bounds::new(difference.log_ratio).exp(),
            p: difference.p,
            p_holm: difference.p_holm,
        }
    }
}

impl Told<'_> {
    fn service_ms(&self) -> f64 {
        self.plan.setup.mean_work * 1e3
    }

    fn baseline(&self) -> String {
        self.plan.spec.to_string()
    }

    pub(super) fn json(&self) -> Json {
        Json {
            baseline: self.baseline(),
            replications: self.replications,
            seed: self.plan.setup.seed,
            requests: self.plan.setup.requests,
            load: self.plan.load,
            mean_service_ms: self.service_ms(),
            strategies: self.comparison.arms.iter().map(|a| self.arm(a)).collect(),
        }
    }

    fn arm(&self, arm: &Arm) -> JsonArm {
        let named = Metric::ALL.iter().enumerate();
        let metrics = named.map(|(m, metric)| {
            let bounds = arm.metrics.map(|all| Bounds::new(all[m]));
            (metric.name(), bounds)
        });
        let differences = arm.against.iter().flatten().zip(Metric::ALL);
        let workers = self.plan.setup.workers.iter();
        let shares = workers.zip(&arm.measured.shares);
        JsonArm {
            strategy: arm.measured.spec.to_string(),
            oracle: arm.measured.spec.entry().needs_cost,
            unstable: arm.metrics.is_none(),
            unstable_runs: arm.unstable_runs(),
            doubtful_runs: arm.measured.doubtful,
            failed: arm.measured.failed,
            rank: arm.rank,
            metrics: metrics.collect(),
            mean_over_service: arm.metrics.map(|m| m[0].mean / self.service_ms()),
            shares: shares.map(|(w, share)| (w.name.clone(), *share)).collect(),
            against_baseline: differences
                .map(|(d, metric)| (metric.name(), JsonDifference::new(d)))
                .collect(),
            claim: arm.claim,
            gap_closed: arm.gap_closed,
        }
    }

    /// One line per strategy; what is not known is empty.
    pub(super) fn csv(&self) -> String {
        let mut head = String::from("strategy,unstable,rank");
        for metric in Metric::ALL {
            let name = metric.name();
            let _ = write!(head, ",{name},{name}_low,{name}_high");
        }
        head.push_str(",mean_over_service");
        for metric in Metric::ALL {
            let name = metric.name().trim_end_matches("_ms");
            let _ = write!(head, ",{name}_ratio,{name}_ratio_low,{name}_ratio_high");
            let _ = write!(head, ",{name}_p,{name}_p_holm");
        }
        head.push_str(",claim,gap_closed\n");
        let lines = self.comparison.arms.iter().map(|arm| self.csv_line(arm));
        head + &lines.collect::<String>()
    }

    fn csv_line(&self, arm: &Arm) -> String {
        let number = |x: Option<f64>| x.map_or(String::new(), |x| x.to_string());
        let bounds = |b: Option<Bounds>| {
            let all = [
                b.map(|b| b.point),
                b.and_then(|b| b.low),
                b.and_then(|b| b.high),
            ];
            all.map(number)
        };
        let json = self.arm(arm);
        let rank = arm.rank.map_or(String::new(), |rank| rank.to_string());
        // A strategy with parameters has commas.
        let mut fields = vec![
            format!("\"{}\"", json.strategy),
            json.unstable.to_string(),
            rank,
        ];
        for metric in Metric::ALL {
            fields.extend(bounds(json.metrics[metric.name()]));
        }
        fields.push(number(json.mean_over_service));
        for metric in Metric::ALL {
            let difference = json.against_baseline.get(metric.name());
            fields.extend(bounds(difference.map(|d| d.ratio)));
            fields.push(number(difference.map(|d| d.p)));
            fields.push(number(difference.map(|d| d.p_holm)));
        }
        fields.push(json.claim.map_or(String::new(), |c| word(c).into()));
        fields.push(number(json.gap_closed));
        fields.join(",") + "\n"
    }

    /// The table for people.
    pub(super) fn text(&self) -> String {
        let has_gap = self.comparison.arms.iter().any(|a| a.gap_closed.is_some());
        let has_shares = self.plan.setup.workers.len() <= SHOWN_SHARES;
        let title = [
            "strategy",
            "mean ms",
            "95 %",
            "/ S",
            "p50",
            "p95",
            "p99",
            "difference ms",
            "ratio",
            "95 %",
            "Holm p",
        ];
        let mut head: Vec<String> = title.map(String::from).to_vec();
        if has_gap {
            head.push("gap closed".into());
        }
        if has_shares {
            let names = self.plan.setup.workers.iter().map(|w| w.name.as_str());
            head.push(format!("share {}", names.collect::<Vec<_>>().join("/")));
        }
        let mut rows = vec![head];
        for arm in &self.comparison.arms {
            rows.push(self.text_row(arm, has_gap, has_shares));
        }
        let mut out = aligned(&rows, &[]);
        let _ = writeln!(
            out,
            "\n{} replications of {} requests, seeds from {}{}; S = {:.3} ms; ratios are to {}, paired by seed",
            self.replications,
            self.plan.setup.requests,
            self.plan.setup.seed,
            self.plan
                .load
                .map_or(String::new(), |l| format!(", load {l:.4}")),
            self.service_ms(),
            self.baseline(),
        );
        self.notes(&mut out);
        out
    }

    fn text_row(&self, arm: &Arm, has_gap: bool, has_shares: bool) -> Vec<String> {
        let spec = &arm.measured.spec;
        let oracle = if spec.entry().needs_cost {
            " (oracle)"
        } else {
            ""
        };
        let mut row = vec![format!("{spec}{oracle}")];
        match arm.metrics {
            None => row.extend(
                ["unstable".to_string()]
                    .into_iter()
                    .chain(vec![String::new(); 5]),
            ),
            Some(all) => {
                row.push(format!("{:.3}", all[0].mean));
                row.push(Bounds::new(all[0]).range(3));
                row.push(format!("{:.4}", all[0].mean / self.service_ms()));
                row.extend(all[1..].iter().map(|m| format!("{:.2}", m.mean)));
            }
        }
        match &arm.against {
            None => row.extend(vec![String::new(); 4]),
            Some(all) => {
                let ratio = Bounds::new(all[0].log_ratio).exp();
                let claim = arm.claim.map_or(String::new(), |c| format!(" {}", word(c)));
                row.push(format!("{:+.3}", all[0].difference_ms.mean));
                row.push(format!("{:.4}", ratio.point));
                row.push(ratio.range(4));
                row.push(format!("{:.3}{claim}", all[0].p_holm));
            }
        }
        if has_gap {
            row.push(
                arm.gap_closed
                    .map_or(String::new(), |gap| format!("{gap:.3}")),
            );
        }
        if has_shares {
            let shares = arm
                .measured
                .shares
                .iter()
                .map(|s| format!("{:.1}", 100.0 * s));
            row.push(shares.collect::<Vec<_>>().join("/"));
        }
        row
    }

    fn notes(&self, out: &mut String) {
        let arms = &self.comparison.arms;
        let needed = evidence::blocks_needed(arms.len() - 1);
        if arms.len() > 1 && self.replications < needed {
            let _ = writeln!(out, "too few replications for a claim: {needed} are needed");
        }
        if self.is_one_list && self.replications > 1 {
            let _ = writeln!(
                out,
                "the requests are a list, the same in every replication: intervals tell what the strategies' \
                 own draws change, not what other requests would"
            );
        }
        for arm in arms.iter().filter(|arm| arm.metrics.is_none()) {
            let (spec, runs) = (&arm.measured.spec, arm.unstable_runs());
            let _ = writeln!(out, "{spec}: {runs} of {} runs unstable", self.replications);
        }
        for arm in arms.iter().filter(|arm| arm.measured.doubtful > 0) {
            let (spec, runs) = (&arm.measured.spec, arm.measured.doubtful);
            let _ = writeln!(
                out,
                "{spec}: one of two signs says unstable in {runs} runs: run longer to tell"
            );
        }
        for arm in arms.iter().filter(|arm| arm.measured.failed > 0) {
            let (spec, failed) = (&arm.measured.spec, arm.measured.failed);
            let all = u64::from(self.replications) * self.plan.setup.requests;
            let _ = writeln!(out, "{spec}: {failed} of {all} requests failed");
        }
    }
}

fn word(claim: Claim) -> &'static str {
    match claim {
        Claim::Faster => "faster",
        Claim::Slower => "slower",
    }
}
