//! Every strategy by name: the one static list that help, parsing, tests and tables are made from.

mod describe;
mod model;
mod parameter;
mod spec;

pub use describe::{Description, ParameterDescription, describe, table};
pub use model::{MAX_MODELS, Model, Models, Wanted};
pub use parameter::{Kind, Parameter, Value};
pub use spec::{Spec, SpecError, parse_list};

use crate::backends::Backends;
use crate::catalog;
use crate::strategy::Strategy;

/// What a strategy looks at, beyond the list of members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Read {
    /// Own in_flight.
    InFlight,
    /// Latency of own dispatches.
    Latency,
    /// How own dispatches ended.
    Status,
    /// Reports polled on a timer.
    Poll,
    /// Reports in response headers.
    Piggyback,
    /// Reports asked for by the strategy.
    Probe,
    /// CPU and memory from the container engine.
    Docker,
    /// A trained model.
    Model,
    /// The true cost of a request.
    Cost,
}

impl Read {
    /// The letter used in tables.
    pub fn letter(self) -> char {
        match self {
            Self::InFlight => 'F',
            Self::Latency => 'L',
            Self::Status => 'O',
            Self::Poll => 'P',
            Self::Piggyback => 'B',
            Self::Probe => 'X',
            Self::Docker => 'D',
            Self::Model => 'M',
            Self::Cost => 'C',
        }
    }
}

/// Whether shares follow the configured weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum HonorsWeights {
    /// Shares follow the weights.
    Yes,
    /// Only among backends that are otherwise equal.
    Ties,
    /// Weights are ignored.
    No,
}

/// The family a strategy belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Group {
    /// Looks at nothing but the list.
    LoadBlind,
    /// The same key goes to the same backend.
    KeyBased,
    /// Looks at own in_flight.
    InFlight,
    /// Looks at own latencies.
    Latency,
    /// Looks at what workers say.
    ServerReported,
    /// Predicts.
    Predictive,
    /// Reads the true cost of requests: references, not strategies.
    Oracle,
}

/// What a builder may need beyond its parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct Context {
    /// Interval of the polling loops, ns.
    pub poll_interval_ns: u64,
    /// Millions of instructions a core retires per millisecond, for strategies that know true costs.
    pub mi_per_ms: f64,
    /// Latency models, in the order given.
    pub models: Models,
    /// Pools up to this size are looked through at each pick instead of being kept in order; changes
    /// the cost of a pick, not what it may be.
    pub few: usize,
}

impl Default for Context {
    fn default() -> Self {
        Self {
            poll_interval_ns: 100_000_000,
            mi_per_ms: 7.45,
            models: Models::default(),
            few: crate::choose::FEW,
        }
    }
}

/// One strategy of the catalog.
#[derive(Debug)]
pub struct Entry {
    /// Canonical name, kebab-case.
    pub name: &'static str,
    /// Other spellings; printed as the canonical name.
    pub aliases: &'static [&'static str],
    /// What it does, in one sentence.
    pub summary: &'static str,
    /// Its family.
    pub group: Group,
    /// Parameters in declared order.
    pub parameters: &'static [Parameter],
    /// What it looks at.
    pub reads: &'static [Read],
    /// Whether it draws with these parameters.
    pub randomized: fn(&Spec) -> bool,
    /// Whether shares follow the weights.
    pub honors_weights: HonorsWeights,
    /// Picks by a key of the request.
    pub needs_key: bool,
    /// The trained model it needs, if any.
    pub model: Option<Wanted>,
    /// Names backends to be probed.
    pub needs_probes: bool,
    /// May see the true cost of a request: an oracle, marked wherever it is shown.
    pub needs_cost: bool,
    /// Known weaknesses it shows on purpose, by the name of their symptom test.
    pub known_flaws: &'static [&'static str],
    /// Makes a fresh instance.
    pub build: fn(&Spec, &Context) -> Box<dyn Strategy>,
    /// Says why it cannot serve this pool, if it cannot.
    pub check: fn(&Spec, &Backends) -> Result<(), String>,
    /// Says what makes it serve this pool badly, if anything does.
    pub caution: fn(&Spec, &Backends) -> Option<String>,
}

impl Entry {
    /// An entry whose optional parts are all off; the strategies' files fill in the rest.
    pub const fn new(
        name: &'static str,
        group: Group,
        summary: &'static str,
        build: fn(&Spec, &Context) -> Box<dyn Strategy>,
    ) -> Self {
        Self {
            name,
            aliases: &[],
            summary,
            group,
            parameters: &[],
            reads: &[],
            randomized: |_| false,
            honors_weights: HonorsWeights::No,
            needs_key: false,
            model: None,
            needs_probes: false,
            needs_cost: false,
            known_flaws: &[],
            build,
            check: |_, _| Ok(()),
            caution: |_, _| None,
        }
    }

    /// Whether it looks at this.
    pub fn reads(&self, what: Read) -> bool {
        self.reads.contains(&what)
    }
}

/// Every strategy, in the order of help texts and tables.
pub static ENTRIES: &[Entry] = &[
    catalog::random::ENTRY,
    catalog::weighted_random::ENTRY,
    catalog::round_robin::ENTRY,
    catalog::weighted_round_robin::ENTRY,
    catalog::smooth_weighted_round_robin::ENTRY,
    catalog::edf_wrr::ENTRY,
    catalog::static_stride::ENTRY,
    catalog::request_hash::ENTRY,
    catalog::consistent_hash::ENTRY,
    catalog::maglev::ENTRY,
    catalog::rendezvous::ENTRY,
    catalog::bounded_load::ENTRY,
    catalog::least_request::ENTRY,
    catalog::weighted_least_request::ENTRY,
    catalog::p2c::ENTRY,
    catalog::weighted_p2c::ENTRY,
    catalog::d_choices::ENTRY,
    catalog::one_plus_beta::ENTRY,
    catalog::least_loaded_wrr::ENTRY,
    catalog::jiq::ENTRY,
    catalog::min_response_time::ENTRY,
    catalog::peak_ewma::ENTRY,
    catalog::penalty_peak_ewma::ENTRY,
    catalog::least_time::ENTRY,
    catalog::least_time_ttfb::ENTRY,
    catalog::shortest_response::ENTRY,
    catalog::c3::ENTRY,
    catalog::polled_least_request::ENTRY,
    catalog::polled_p2c::ENTRY,
    catalog::polled_own_sends::ENTRY,
    catalog::basic_li::ENTRY,
    catalog::aggressive_li::ENTRY,
    catalog::orca_wrr::ENTRY,
    catalog::prequal::ENTRY,
    catalog::plb_paper::ENTRY,
    catalog::plb_docker::ENTRY,
    catalog::plb_live::ENTRY,
    catalog::plb_piggyback::ENTRY,
    catalog::plb_softmax::ENTRY,
    catalog::plb_p2c::ENTRY,
    catalog::wl_mc::ENTRY,
    catalog::roll_out::ENTRY,
    catalog::oracle_own::ENTRY,
    catalog::oracle_marginal::ENTRY,
];

/// The entry with this name or alias.
///
/// # Errors
/// Lists the known names and the nearest one.
pub fn entry(name: &str) -> Result<&'static Entry, SpecError> {
    ENTRIES
        .iter()
        .find(|e| e.name == name || e.aliases.contains(&name))
        .ok_or_else(|| {
            let spellings = ENTRIES
                .iter()
                .flat_map(|e| std::iter::once(e.name).chain(e.aliases.iter().copied()));
            SpecError::unknown(
                format!("unknown strategy \"{}\"", schema::problem::printable(name)),
                schema::problem::nearest(name, spellings),
                ENTRIES.iter().map(|e| e.name),
            )
        })
}
