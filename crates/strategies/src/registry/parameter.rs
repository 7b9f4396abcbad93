//! Parameters of strategies: kinds, bounds, defaults, and reading one value.

use super::spec::SpecError;
use schema::duration;
use std::fmt;
use std::time::Duration;

/// What a parameter's value looks like.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// A whole number between two bounds, both allowed.
    Integer {
        /// Least.
        min: u64,
        /// Largest.
        max: u64,
    },
    /// A prime between two bounds.
    Prime {
        /// Least.
        min: u64,
        /// Largest.
        max: u64,
    },
    /// A decimal between two bounds, both allowed.
    Decimal {
        /// Least.
        min: f64,
        /// Largest.
        max: f64,
    },
    /// A duration with its unit between two bounds, both allowed.
    Duration {
        /// Least, ns.
        min_ns: u64,
        /// Largest, ns.
        max_ns: u64,
    },
    /// One of some words.
    Word(&'static [&'static str]),
    /// The name of a loaded model.
    ModelName,
    /// What a request is keyed by: `url`, `path`, `client-ip`, `client-net` or `header:<name>`.
    Key,
}

/// Words of [`Kind::Key`] beside `header:<name>`.
const KEYS: &[&str] = &["url", "path", "client-ip", "client-net"];

/// One parameter of a strategy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// What values it takes.
    pub kind: Kind,
    /// Words it takes beside its kind, such as `off` or `never`.
    pub or: &'static [&'static str],
    /// The default as a value would be written, or in words (`3 poll intervals`) where it depends on
    /// the surroundings.
    pub default: &'static str,
    /// What it does, in a few words.
    pub summary: &'static str,
}

/// A value as it was read.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Of [`Kind::Integer`] and [`Kind::Prime`].
    Integer(u64),
    /// Of [`Kind::Decimal`].
    Decimal(f64),
    /// Of [`Kind::Duration`], ns.
    DurationNs(u64),
    /// A word.
    Word(String),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(value) => value.fmt(f),
            Self::Decimal(value) => value.fmt(f),
            Self::DurationNs(ns) => f.write_str(&duration::format(Duration::from_nanos(*ns))),
            Self::Word(word) => f.write_str(word),
        }
    }
}

impl Parameter {
    /// Reads a value and checks its bounds.
    pub(super) fn read(&self, text: &str) -> Result<Value, SpecError> {
        if self.or.contains(&text) {
            return Ok(Value::Word(text.into()));
        }
        let refuse = || {
            let got = schema::problem::printable(text);
            let hint = match self.kind {
                Kind::Duration { .. } if duration::lacks_unit(text) => {
                    " without a unit (such as 100ms or 10s)"
                }
                _ => "",
            };
            let (name, allowed) = (self.name, self.allowed());
            SpecError::new(format!("{name} must be {allowed}, got {got}{hint}"))
        };
        let value = match self.kind {
            Kind::Integer { min, max } => {
                let value = text.parse().map_err(|_| refuse())?;
                (min..=max)
                    .contains(&value)
                    .then_some(Value::Integer(value))
            }
            Kind::Prime { min, max } => {
                let value = text.parse().map_err(|_| refuse())?;
                ((min..=max).contains(&value) && is_prime(value)).then_some(Value::Integer(value))
            }
            Kind::Decimal { min, max } => {
                let value: f64 = text.parse().map_err(|_| refuse())?;
                // Adding zero turns -0 into 0, so that it prints as it reads.
                (min..=max)
                    .contains(&value)
                    .then_some(Value::Decimal(value + 0.0))
            }
            Kind::Duration { min_ns, max_ns } => {
                let value = duration::parse(text).map_err(|_| refuse())?.as_nanos() as u64;
                (min_ns..=max_ns)
                    .contains(&value)
                    .then_some(Value::DurationNs(value))
            }
            Kind::Word(words) => words.contains(&text).then(|| Value::Word(text.into())),
            Kind::ModelName => super::model::is_name(text).then(|| Value::Word(text.into())),
            Kind::Key => {
                let header = text.strip_prefix("header:").is_some_and(is_header_name);
                (header || KEYS.contains(&text)).then(|| Value::Word(text.into()))
            }
        };
        value.ok_or_else(refuse)
    }

    /// The default as a value, unless it depends on the surroundings.
    pub(super) fn default_value(&self) -> Option<Value> {
        self.read(self.default).ok()
    }

    /// The words it takes, those beside its kind last.
    pub fn words(&self) -> Vec<&'static str> {
        let own = match self.kind {
            Kind::Word(words) => words,
            Kind::Key => KEYS,
            _ => &[],
        };
        own.iter().chain(self.or).copied().collect()
    }

    /// What is allowed, in words: `between 1 and 64`, `one of on, off`.
    pub fn allowed(&self) -> String {
        let span = |ns| duration::format(Duration::from_nanos(ns));
        let mut text = match self.kind {
            Kind::Integer { min, max } => format!("between {min} and {max}"),
            Kind::Prime { min, max } => format!("a prime between {min} and {max}"),
            Kind::Decimal { min, max } => format!("between {min} and {max}"),
            Kind::Duration { min_ns, max_ns } => {
                format!("between {} and {}", span(min_ns), span(max_ns))
            }
            Kind::Word(words) => format!("one of {}", words.join(", ")),
            Kind::ModelName => "the name of a loaded model".to_string(),
            Kind::Key => format!("one of {}, header:<name>", KEYS.join(", ")),
        };
        for word in self.or {
            text.push_str(" or ");
            text.push_str(word);
        }
        text
    }
}

fn is_header_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 64
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

fn is_prime(n: u64) -> bool {
    n >= 2
        && (2..)
            .take_while(|d| d * d <= n)
            .all(|d| !n.is_multiple_of(d))
}
