//! Rules that protect a pool from backends that fail: ejection, fail-open, the hold of fast failures;
//! and the presets of a balancer, with what each of them means.
//!
//! The dispatcher keeps them, the balancer's flags and a simulation set them, and the event log's
//! first line records them, so that a replay keeps the same ones.

use serde::{Deserialize, Serialize};
use std::str::FromStr;
use std::time::Duration;

/// Which set of protections a balancer runs with, real or simulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preset {
    /// One attempt, no limit per try: for comparing strategies.
    Plain,
    /// Every protection there is.
    Guarded,
}

impl Preset {
    /// Their names in flags, logs and manifests.
    pub const NAMES: [&str; 2] = ["plain", "guarded"];

    /// The name in flags, logs and manifests.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => Self::NAMES[0],
            Self::Guarded => Self::NAMES[1],
        }
    }

    /// The rules of the pool.
    pub const fn rules(self) -> Rules {
        match self {
            Self::Plain => Rules::plain(),
            Self::Guarded => Rules::guarded(),
        }
    }

    /// How long a request may take and how many may be under way.
    pub const fn limits(self) -> Limits {
        Limits {
            per_try: match self {
                Self::Plain => None,
                Self::Guarded => Some(Duration::from_secs(10)),
            },
            total: Duration::from_secs(25),
            max_in_flight: match self {
                Self::Plain => None,
                Self::Guarded => Some(4096),
            },
        }
    }
}

impl FromStr for Preset {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [Self::Plain, Self::Guarded]
            .into_iter()
            .find(|preset| preset.name() == text)
            .ok_or_else(|| format!("unknown word (allowed: {})", Self::NAMES.join(", ")))
    }
}

/// What a balancer bears with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// From the pick to the head of the answer; `None` = only the total counts.
    pub per_try: Option<Duration>,
    /// From the request's head to that of the answer.
    pub total: Duration,
    /// Requests in flight over all backends, above which new ones are refused.
    pub max_in_flight: Option<usize>,
}

/// All of them. The default is `plain`: none.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(remote = "Self")]
pub struct Rules {
    /// Who is barred after failing, and for how long.
    pub ejection: Ejection,
    /// The marks of ejected backends are ignored while fewer than this share of the members, percent
    /// (at least one), is up; absent: never, and then nobody may be eligible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub panic_percent: Option<u32>,
    /// A failed attempt that was faster than good ones are counts as in flight until a good one would
    /// have ended, and its latency as this many times that of a good one (1..=50); absent: off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fail_hold: Option<f64>,
}

impl Rules {
    /// Nothing is protected: for comparing strategies.
    pub const fn plain() -> Self {
        Self {
            ejection: Ejection {
                mode: Mode::Off,
                ..Ejection::DEFAULT
            },
            panic_percent: None,
            fail_hold: None,
        }
    }

    /// What a balancer in service runs with.
    pub const fn guarded() -> Self {
        Self {
            ejection: Ejection::DEFAULT,
            panic_percent: Some(20),
            fail_hold: Some(5.0),
        }
    }

    /// Whether this is [`Self::plain`].
    pub fn is_plain(&self) -> bool {
        *self == Self::plain()
    }
}

impl Default for Rules {
    fn default() -> Self {
        Self::plain()
    }
}

/// Whether failures bar a backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// They do.
    On,
    /// They are counted, and the count is reset, as if; nobody is barred.
    Observe,
    /// Nothing is counted.
    Off,
}

/// Rules of ejection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(remote = "Self")]
pub struct Ejection {
    /// Whether they hold.
    pub mode: Mode,
    /// Failures in a row, 1..=100; 0: this rule is off.
    pub after: u32,
    /// Whether a backend much worse than the others is barred too.
    pub compare: bool,
    /// Length of a backend's first ejection, ns; each later one is twice as long.
    pub base_ns: u64,
    /// Longest length, ns.
    pub cap_ns: u64,
    /// A length is drawn this far around its value, percent, 0..=50.
    pub jitter_percent: u32,
    /// Good trials in a row that end an ejection, 1..=10.
    pub trial: u32,
    /// Share of the members that may be ejected at once, percent, rounded down.
    pub max_percent: u32,
    /// Whether one may be ejected however small that share is.
    pub at_least_one: bool,
}

impl Ejection {
    /// The rules in service. Runs of a few minutes want short ejections; five in a row as Envoy and
    /// gRPC; two thirds so that a pool of three can lose two.
    pub const DEFAULT: Self = Self {
        mode: Mode::On,
        after: 5,
        compare: true,
        base_ns: 5_000_000_000,
        cap_ns: 30_000_000_000,
        jitter_percent: 10,
        trial: 1,
        max_percent: 67,
        at_least_one: true,
    };
}

/// Why a pick went to a backend that the rules bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mark {
    /// Its ejection is over and this request tries it.
    Trial,
    /// Too few were up, so marks of ejection were ignored.
    Panic,
}

impl Mark {
    /// The word in logs and decision records.
    pub fn word(self) -> &'static str {
        match self {
            Self::Trial => "trial",
            Self::Panic => "panic",
        }
    }
}

/// Which rule spoke.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rule {
    /// Failures in a row.
    Consecutive,
    /// Much worse than the others.
    Compare,
    /// A failed trial.
    Trial,
}

impl Rule {
    /// All of them, in the order of their counters.
    pub const ALL: [Self; 3] = [Self::Consecutive, Self::Compare, Self::Trial];

    /// The word in logs and metrics.
    pub fn word(self) -> &'static str {
        match self {
            Self::Consecutive => "consecutive",
            Self::Compare => "compare",
            Self::Trial => "trial",
        }
    }
}

/// What the rules of ejection did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "lowercase")]
pub enum Step {
    /// A backend was barred.
    Ejected {
        /// By which rule.
        rule: Rule,
        /// Until when, ns since run start; then it is on trial.
        until_ns: u64,
        /// How many ejections in a row this was for it; lengths double with it.
        number: u32,
    },
    /// It would have been, but too many are, or nobody else is up.
    Refused {
        /// By which rule.
        rule: Rule,
    },
    /// It would have been, but the mode is observe.
    Observed {
        /// By which rule.
        rule: Rule,
    },
    /// Its time is over: it gets one request at a time.
    Trial,
    /// It is back in service.
    Readmitted,
}

crate::objects!(Rules, Ejection);

#[cfg(test)]
mod tests {
    use super::{Preset, Rules, Step};

    #[test]
    fn a_preset_reads_its_name() {
        for (preset, name) in [Preset::Plain, Preset::Guarded]
            .into_iter()
            .zip(Preset::NAMES)
        {
            assert_eq!((preset.name(), name.parse()), (name, Ok(preset)));
        }
        let said = "none".parse::<Preset>().unwrap_err();
        assert!(said.contains("allowed: plain, guarded"), "{said}");
    }

    #[test]
    fn rules_read_what_they_write() {
        assert!(Rules::default().is_plain() && !Rules::guarded().is_plain());
        for rules in [Rules::plain(), Rules::guarded()] {
            let text = serde_json::to_string(&rules).unwrap();
            assert_eq!(serde_json::from_str::<Rules>(&text).unwrap(), rules);
        }
        let text = serde_json::to_string(&Step::Readmitted).unwrap();
        assert_eq!(text, r#"{"step":"readmitted"}"#);
    }
}
