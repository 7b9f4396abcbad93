//! The workload file: which APIs exist, how large their tasks are, how often and when they are called.
//!
//! JSON, versioned ([`SCHEMA`]), with a digest of its own text, so that a result can name exactly
//! the file it came from. [`Workload::parse`] reports every finding with its place;
//! [`Workload::to_text`] writes the one canonical form. The due times of drawn traffic are not in
//! the file: they expand from the seed, see [`crate::schedule`].

use serde::{Deserialize, Serialize};
use std::str::FromStr;

use crate::laws::arrivals::Arrivals;
use crate::problem::{Findings, Problem, Problems};
use crate::rng::{Purpose, stream};
use rand_core::RngCore as _;

pub use crate::laws::sizes::{SIZE_CV, TASK_SIZE_MI};
pub use method::Method;

mod method;
mod read;
mod target;
mod text;

pub use target::target_fault;

/// Value of the `schema` field.
pub const SCHEMA: &str = "plumbline.workload/1";
/// Longest workload file, bytes.
pub const MAX_BYTES: usize = 64 * 1024 * 1024;
/// Most APIs of a workload.
pub const MAX_APIS: usize = 100_000;
/// Most requests of a workload.
pub const MAX_REQUESTS: u64 = 10_000_000;
/// Longest request target, bytes.
pub const MAX_URL_BYTES: usize = 2048;
/// Longest API id and workload name, bytes.
pub const MAX_NAME_BYTES: usize = 128;
/// Longest schedule, expected or listed: 115 days, in milliseconds.
pub const MAX_SPAN_MS: f64 = 1e10;
/// Latest due time of a listed request: the same, in microseconds.
pub const MAX_AT_US: u64 = 10_000_000_000_000;

/// One API: a method, a target and the work a call of it takes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Api {
    /// Name in rows and logs; unique.
    pub id: String,
    /// HTTP method.
    pub method: Method,
    /// Request target, beginning with a slash; unique together with the method.
    pub url: String,
    /// Work, in millions of instructions; the mean where each request has its own.
    pub task_size_mi: f64,
}

/// In which order drawn calls come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// All runs of all APIs in one seeded shuffle.
    Shuffled,
    /// Each API once, then each again, `runs` times.
    Round,
    /// `runs` calls of the first API, then of the second, and so on.
    Sequential,
}

impl Order {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Shuffled, Self::Round, Self::Sequential];

    /// As it stands in the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Shuffled => "shuffled",
            Self::Round => "round",
            Self::Sequential => "sequential",
        }
    }
}

impl FromStr for Order {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|o| o.as_str() == text)
            .ok_or_else(|| "unknown order".to_string())
    }
}

/// The requests of a workload.
#[derive(Debug, Clone, PartialEq)]
pub enum Traffic {
    /// Drawn from the seed.
    Drawn(Drawn),
    /// Listed one by one, such as a trace; due times do not decrease.
    Listed(Vec<Request>),
}

/// Traffic that expands from the seed.
#[derive(Debug, Clone, PartialEq)]
pub struct Drawn {
    /// Calls of each API.
    pub runs: u32,
    /// Order of the calls.
    pub order: Order,
    /// When they come.
    pub arrivals: Arrivals,
    /// Coefficient of variation of each request's size around its API's: log-normal of mean one
    /// ([`SIZE_CV`]). 0: every call of an API takes the same work.
    pub size_cv: f64,
}

/// One request of a list.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Request {
    /// When it is due, microseconds after time 0.
    pub at_us: u64,
    /// Index into the workload's APIs.
    pub api: u32,
    /// Work, in millions of instructions.
    pub task_size_mi: f64,
}

/// A workload. Made by [`Workload::parse`] or, whole, by a generator that keeps the bounds.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// What it is called.
    pub name: String,
    /// Root of every random stream.
    pub seed: u64,
    /// The arguments that made it; kept as they are.
    pub generator: serde_json::Map<String, serde_json::Value>,
    /// The APIs.
    pub apis: Vec<Api>,
    /// Its requests.
    pub traffic: Traffic,
    /// Digest of the file without its `sha256` field, in lower-case hexadecimal.
    pub sha256: String,
}

impl Workload {
    /// Reads a workload file; `source` is its name in messages.
    ///
    /// # Errors
    /// Every finding with its place, field and bound, in the order of reading.
    pub fn parse(source: &str, text: &str) -> Result<Self, Problems> {
        read::workload(source, text)
    }

    /// Requests of the whole schedule.
    pub fn requests(&self) -> u64 {
        match &self.traffic {
            Traffic::Drawn(drawn) => self.apis.len() as u64 * u64::from(drawn.runs),
            Traffic::Listed(requests) => requests.len() as u64,
        }
    }

    /// Mean task size of the schedule, in millions of instructions.
    pub fn mean_task_size_mi(&self) -> f64 {
        match &self.traffic {
            Traffic::Drawn(_) => {
                self.apis.iter().map(|a| a.task_size_mi).sum::<f64>() / self.apis.len() as f64
            }
            Traffic::Listed(requests) => {
                requests.iter().map(|r| r.task_size_mi).sum::<f64>() / requests.len() as f64
            }
        }
    }

    /// Mean gap between requests, in milliseconds: expected of drawn traffic, measured of a list
    /// (never 0, so that it has a rate: at least a microsecond over the whole list).
    pub fn mean_gap_ms(&self) -> f64 {
        match &self.traffic {
            Traffic::Drawn(drawn) => match drawn.arrivals {
                // Not over the requests and back, which costs the last bit.
                Arrivals::Constant { interval_ms } => interval_ms,
                Arrivals::Poisson { rate_rps } | Arrivals::Gamma { rate_rps, .. } => {
                    1000.0 / rate_rps
                }
                _ => drawn.arrivals.span_ms(self.requests()) / self.requests() as f64,
            },
            Traffic::Listed(requests) => {
                let first = requests.first().map_or(0, |r| r.at_us);
                let last = requests.last().map_or(0, |r| r.at_us);
                let gaps = (requests.len() as f64 - 1.0).max(1.0);
                ((last - first) as f64 / gaps).max(1.0 / gaps) / 1000.0
            }
        }
    }

    /// The same workload with every time divided by `speed`, sealed: twice as fast at 2. A list is
    /// rounded to whole microseconds.
    ///
    /// # Errors
    /// A speed that is not positive, or one at which a number leaves the format's bounds.
    pub fn at_speed(mut self, speed: f64) -> Result<Self, Problems> {
        let refuse = |what: String| Problem::new("speed", speed.to_string(), what);
        if !(speed > 0.0 && speed.is_finite()) {
            return Err(refuse("not a speed".into()).allowed("above 0").into());
        }
        let mut findings = Findings::default();
        match &mut self.traffic {
            Traffic::Drawn(drawn) => {
                drawn.arrivals = drawn.arrivals.clone().at_speed(speed);
                for (name, value, bounds) in drawn.arrivals.bounded() {
                    if !bounds.contains(&value) {
                        let bounds = format!("{} to {}", bounds.start(), bounds.end());
                        let what = format!("makes {name} {value}");
                        findings.push(refuse(what).allowed(bounds));
                    }
                }
            }
            Traffic::Listed(requests) => {
                for request in requests.iter_mut() {
                    // A cast saturates, so that a time far out is found below.
                    request.at_us = (request.at_us as f64 / speed).round() as u64;
                }
                if requests.last().is_some_and(|last| last.at_us > MAX_AT_US) {
                    let what = "makes the schedule too long".into();
                    findings.push(refuse(what).allowed(format!("{MAX_AT_US} us")));
                }
            }
        }
        findings.finish(self.sealed())
    }

    /// The canonical text with its digest; the same workload gives the same bytes everywhere.
    pub fn to_text(&self) -> String {
        text::with_digest(self)
    }

    /// The workload of replication `r` of an experiment: the same APIs and law of arrivals with another
    /// schedule, drawn from this one's seed; 0 is this one itself. Listed requests are always the same.
    #[must_use]
    pub fn replica(mut self, r: u32) -> Self {
        if r > 0 {
            // Below 2^32, as all seeds that are written into files.
            self.seed = stream(self.seed, Purpose::ApiChoice, 1, r).next_u64() >> 32;
        }
        self
    }

    /// Sets [`Workload::sha256`] to the digest of the canonical text.
    #[must_use]
    pub fn sealed(mut self) -> Self {
        self.sha256 = text::digest_of(&self);
        self
    }
}

#[cfg(test)]
mod tests;
