//! What `twin optimum` prints.

use super::{BTreeMap, Mean, Question, Row, Sizes};
use crate::build::worker_name;
use serde::Serialize;
use std::fmt::Write as _;

/// Shares of more workers than these are left out of the table.
const SHOWN_SHARES: usize = 10;
const NOTE: &str = "\
means in units of S, the mean time of a request alone on a core; rows marked exp are exact for
exponential sizes, the others for every law of sizes";

/// The JSON; rows by name.
#[derive(Debug, Serialize)]
pub(super) struct Answer<'a> {
    cores: &'a [f64],
    load: f64,
    mean_service_ms: Option<f64>,
    rows: BTreeMap<&'static str, Entry<'a>>,
    note: String,
}

#[derive(Debug, Serialize)]
struct Entry<'a> {
    title: &'static str,
    strategy: Option<&'static str>,
    /// `any` or `exponential`.
    exact_for_sizes: &'static str,
    mean_over_service: Option<f64>,
    mean_ms: Option<f64>,
    unstable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_computed: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shares: Option<BTreeMap<String, f64>>,
}

pub(super) fn json<'a>(question: &'a Question, rows: &'a [Row]) -> Answer<'a> {
    let entry = |row: &'a Row| {
        let mean = match row.mean {
            Mean::Known(mean) => Some(mean),
            Mean::Unstable | Mean::NotComputed(_) => None,
        };
        let ms = mean.zip(question.service_ms);
        let entry = Entry {
            title: row.title,
            strategy: row.strategy,
            exact_for_sizes: match row.sizes {
                Sizes::Any => "any",
                Sizes::Exponential => "exponential",
            },
            mean_over_service: mean,
            mean_ms: ms.map(|(mean, service)| mean * service),
            unstable: row.mean == Mean::Unstable,
            not_computed: match &row.mean {
                Mean::NotComputed(why) => Some(why),
                Mean::Known(_) | Mean::Unstable => None,
            },
            shares: row.shares.as_ref().map(|shares| {
                let n = shares.len();
                let named = shares.iter().enumerate();
                named
                    .map(|(w, share)| (worker_name(w, n), *share))
                    .collect()
            }),
        };
        (row.key, entry)
    };
    Answer {
        cores: &question.cores,
        load: question.load,
        mean_service_ms: question.service_ms,
        rows: rows.iter().map(entry).collect(),
        note: NOTE.replace('\n', " "),
    }
}

/// The table for people.
pub(super) fn table(question: &Question, rows: &[Row]) -> String {
    let mut out = String::new();
    let mut line = |text: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{}", text.trim_end());
    };
    let ms = |title: &str| question.service_ms.map_or(String::new(), |_| title.into());
    line(format!(
        "{:<30} {:>10} {:>10}  {:5} {}",
        "",
        "mean / S",
        ms("mean ms"),
        "sizes",
        "strategy or shares"
    ));
    for row in rows {
        let (mean, in_ms) = match &row.mean {
            Mean::Known(mean) => {
                let in_ms = question.service_ms.map(|service| mean * service);
                (
                    format!("{mean:.5}"),
                    in_ms.map_or(String::new(), |ms| format!("{ms:.3}")),
                )
            }
            Mean::Unstable => ("unstable".into(), String::new()),
            Mean::NotComputed(_) => ("-".into(), String::new()),
        };
        let sizes = match row.sizes {
            Sizes::Any => "any",
            Sizes::Exponential => "exp",
        };
        let mut remark = vec![row.strategy.unwrap_or_default().to_string()];
        if let Mean::NotComputed(why) = &row.mean {
            remark = vec![format!("not computed: {why}")];
        }
        if let Some(shares) = row.shares.as_ref().filter(|s| s.len() <= SHOWN_SHARES) {
            let shares = shares.iter().map(|share| format!("{share:.4}"));
            remark.push(shares.collect::<Vec<_>>().join(" / "));
        }
        remark.retain(|text| !text.is_empty());
        let title = row.title;
        let remark = remark.join(": ");
        line(format!(
            "{title:<30} {mean:>10} {in_ms:>10}  {sizes:5} {remark}"
        ));
    }
    line(String::new());
    if let Some(service) = question.service_ms {
        line(format!("S = {service:.3} ms"));
    }
    line(NOTE.into());
    out
}
