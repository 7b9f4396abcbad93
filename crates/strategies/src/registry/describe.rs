//! The registry as data (for `--json`) and as a table (for the README).

use super::{ENTRIES, Entry, Group, HonorsWeights, Kind, Spec};
use serde::Serialize;
use std::fmt::Write as _;

/// One entry as plain data.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Description {
    /// Canonical name.
    pub name: &'static str,
    /// Other spellings.
    pub aliases: &'static [&'static str],
    /// What it does.
    pub summary: &'static str,
    /// Its family.
    pub group: Group,
    /// Parameters in declared order.
    pub parameters: Vec<ParameterDescription>,
    /// Letters of what it looks at: F own in_flight, L latency, O outcome, P polls, B piggyback,
    /// X probes, D docker, M model, C true cost.
    pub reads: String,
    /// Whether it draws with default parameters.
    pub randomized: bool,
    /// Whether shares follow the weights.
    pub honors_weights: HonorsWeights,
    /// Picks by a key of the request.
    pub needs_key: bool,
    /// Needs a trained model.
    pub needs_model: bool,
    /// Names backends to be probed.
    pub needs_probes: bool,
    /// An oracle.
    pub needs_cost: bool,
    /// Known weaknesses by the name of their symptom test.
    pub known_flaws: &'static [&'static str],
}

/// One parameter as plain data.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ParameterDescription {
    /// Its name.
    pub name: &'static str,
    /// Its default.
    pub default: &'static str,
    /// What is allowed, in words.
    pub allowed: String,
    /// Words it takes.
    pub words: Vec<&'static str>,
    /// Whether it takes nothing else.
    pub only_words: bool,
    /// What it does.
    pub summary: &'static str,
}

impl From<&'static Entry> for Description {
    fn from(entry: &'static Entry) -> Self {
        Self {
            name: entry.name,
            aliases: entry.aliases,
            summary: entry.summary,
            group: entry.group,
            parameters: entry
                .parameters
                .iter()
                .map(|p| ParameterDescription {
                    name: p.name,
                    default: p.default,
                    allowed: p.allowed(),
                    words: p.words(),
                    only_words: matches!(p.kind, Kind::Word(_)),
                    summary: p.summary,
                })
                .collect(),
            reads: entry.reads.iter().map(|r| r.letter()).collect(),
            randomized: Spec::of(entry).randomized(),
            honors_weights: entry.honors_weights,
            needs_key: entry.needs_key,
            needs_model: entry.model.is_some(),
            needs_probes: entry.needs_probes,
            needs_cost: entry.needs_cost,
            known_flaws: entry.known_flaws,
        }
    }
}

/// Every entry as plain data, in list order.
pub fn describe() -> Vec<Description> {
    ENTRIES.iter().map(Description::from).collect()
}

/// The registry as a Markdown table.
pub fn table() -> String {
    let mut text = String::from(
        "| strategy | what it does | parameters (default) | reads | weights |\n|---|---|---|---|---|\n",
    );
    for entry in describe() {
        let mut parameters = String::new();
        for (i, p) in entry.parameters.iter().enumerate() {
            let separator = if i == 0 { "" } else { ", " };
            let _ = write!(parameters, "{separator}`{}` ({})", p.name, p.default);
        }
        let oracle = if entry.needs_cost { " (oracle)" } else { "" };
        let weights = match entry.honors_weights {
            HonorsWeights::Yes => "yes",
            HonorsWeights::Ties => "ties",
            HonorsWeights::No => "no",
        };
        let _ = writeln!(
            text,
            "| `{}`{oracle} | {} | {parameters} | {} | {weights} |",
            entry.name, entry.summary, entry.reads
        );
    }
    text
}
