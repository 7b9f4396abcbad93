//! A system that cannot keep up has no mean in any output.

use super::Case;
use super::judge::Line;
use super::scene::{pool, simulate, spec};
use crate::build::Plan;
use crate::run;
use crate::tally::Verdict;

const LOAD: f64 = 0.7;

pub(super) fn cases() -> Vec<Case> {
    let title = "equal round robin on 4/3/2, load .7";
    vec![Case::new("A21", title, 1_000_000, move |tier| {
        let plan = Plan {
            setup: pool(&[4.0, 3.0, 2.0], LOAD, tier.requests(1_000_000)),
            arrivals_per_poll: None,
            load: Some(LOAD),
            spec: spec("round-robin")?,
        };
        let outcome = simulate(&plan.setup, &plan.spec)?;
        let cores = match outcome.verdict {
            Verdict::Unstable { worker, .. } => Some(plan.setup.workers[worker].cores),
            Verdict::Stable | Verdict::TooShort | Verdict::Inconclusive { .. } => None,
        };
        let (json, table) = run::shown(&plan, &outcome)?;
        let says = table.contains("unstable");
        let tells_mean = tells_a_mean(&json, &table);
        Ok(vec![
            Line::holds(
                "A21",
                format!("{title}: verdict"),
                "unstable, worker of 2 cores",
                format!("{:?}", outcome.verdict),
                cores == Some(2.0),
            ),
            Line::holds(
                "A21",
                format!("{title}: output"),
                "the word, no mean, no percentile",
                if tells_mean {
                    "a mean is told"
                } else {
                    "none told"
                },
                says && !tells_mean,
            ),
        ])
    })]
}

/// Whether either output has a mean latency or a percentile.
fn tells_a_mean(json: &str, table: &str) -> bool {
    let Ok(json) = serde_json::from_str::<serde_json::Value>(json) else {
        return true;
    };
    let fields = [
        "mean_ms",
        "half_width_ms",
        "mean_over_service",
        "p50_ms",
        "p95_ms",
        "p99_ms",
    ];
    let in_json = fields.iter().any(|field| json[*field].is_number());
    let words = ["mean", "p50", "p95", "p99"];
    in_json
        || table
            .lines()
            .any(|line| words.iter().any(|word| line.starts_with(word)))
}

#[cfg(test)]
mod tests {
    use super::tells_a_mean;

    #[test]
    fn a_mean_in_either_output_is_found() {
        assert!(!tells_a_mean(
            r#"{"mean_ms":null,"mean_service_ms":100.0}"#,
            "unstable  yes\n"
        ));
        assert!(tells_a_mean(r#"{"mean_ms":1.5}"#, ""));
        assert!(tells_a_mean("{}", "p95   3 ms\n"));
    }
}
