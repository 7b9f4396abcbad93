//! A strategy with its parameters, as written: `name:key=value,key=value`.

use super::parameter::Value;
use super::{Context, Entry, entry};
use crate::backends::Backends;
use crate::strategy::Strategy;
use std::fmt;
use std::str::FromStr;

/// A strategy that was named and whose parameters are in bounds. Printing gives the canonical name
/// and the parameters that are not at their default, in declared order; that text reads back as an
/// equal spec.
#[derive(Debug, Clone)]
pub struct Spec {
    entry: &'static Entry,
    /// By place in the entry's parameters; `None` = at its default.
    values: Vec<Option<Value>>,
}

/// Why a spelling was refused, in lower case, with the bound and the choices.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SpecError(String);

impl SpecError {
    pub(super) fn new(text: String) -> Self {
        Self(text)
    }

    pub(super) fn unknown<'a>(
        what: String,
        nearest: Option<&str>,
        known: impl Iterator<Item = &'a str>,
    ) -> Self {
        let known: Vec<&str> = known.collect();
        let known = if known.is_empty() {
            "none".to_string()
        } else {
            known.join(", ")
        };
        let hint = nearest.map_or(String::new(), |n| format!("; nearest: {n}"));
        Self(format!("{what}; known: {known}{hint}"))
    }
}

impl Spec {
    /// The entry's strategy with every parameter at its default.
    pub fn of(entry: &'static Entry) -> Self {
        Self {
            entry,
            values: vec![None; entry.parameters.len()],
        }
    }

    /// Reads a spec for real servers, where nobody knows the true state of the world.
    ///
    /// # Errors
    /// As for reading any spec; it needs a simulated world.
    pub fn parse_live(text: &str) -> Result<Self, SpecError> {
        let spec: Self = text.parse()?;
        if spec.needs_world() {
            return Err(SpecError::new(format!(
                "{spec}: truth=world is known in the simulation only; use truth=own here"
            )));
        }
        Ok(spec)
    }

    /// Whether the driver must tell the true work left and speed of every backend before each pick,
    /// as a probe report; only a simulation can.
    pub fn needs_world(&self) -> bool {
        self.entry.needs_cost
            && self.entry.parameters.iter().any(|p| p.name == "truth")
            && self.is("truth", "world")
    }

    /// Its registry entry.
    pub fn entry(&self) -> &'static Entry {
        self.entry
    }

    /// Canonical name.
    pub fn name(&self) -> &'static str {
        self.entry.name
    }

    /// Says why it cannot serve this pool here, if it cannot.
    ///
    /// # Errors
    /// The pool is beyond what the entry takes; the model it needs is not loaded.
    pub fn check(&self, backends: &Backends, context: &Context) -> Result<(), String> {
        if let Some(wanted) = &self.entry.model {
            context.models.find(self, wanted)?;
        }
        (self.entry.check)(self, backends)
    }

    /// Makes a fresh instance.
    pub fn build(&self, context: &Context) -> Box<dyn Strategy> {
        (self.entry.build)(self, context)
    }

    /// Whether it draws.
    pub fn randomized(&self) -> bool {
        (self.entry.randomized)(self)
    }

    /// The header whose value [`crate::Request::key_header`] must carry, if any.
    pub fn key_header(&self) -> Option<String> {
        if !self.entry.needs_key {
            return None;
        }
        match self.value("key") {
            Some(Value::Word(word)) => word.strip_prefix("header:").map(str::to_string),
            _ => None,
        }
    }

    fn set(&mut self, key: &str, text: &str) -> Result<(), SpecError> {
        let parameters = self.entry.parameters;
        let Some(at) = parameters.iter().position(|p| p.name == key) else {
            let names = || parameters.iter().map(|p| p.name);
            let key = schema::problem::printable(key);
            return Err(SpecError::unknown(
                format!("{} has no parameter \"{key}\"", self.entry.name),
                schema::problem::nearest(&key, names()),
                names(),
            ));
        };
        let value = parameters[at].read(text)?;
        self.values[at] = (parameters[at].default_value() != Some(value.clone())).then_some(value);
        Ok(())
    }

    /// The value of a parameter, its default if it was not given; `None` if that depends on the
    /// surroundings.
    ///
    /// # Panics
    /// If the entry declares no such parameter: a mistake in the strategy's own file.
    pub fn value(&self, name: &str) -> Option<Value> {
        let at = self
            .entry
            .parameters
            .iter()
            .position(|p| p.name == name)
            .unwrap_or_else(|| panic!("{} declares no parameter {name}", self.entry.name));
        self.values[at]
            .clone()
            .or_else(|| self.entry.parameters[at].default_value())
    }

    /// A whole number; `None` if a word stands there.
    pub fn integer(&self, name: &str) -> Option<u64> {
        match self.value(name) {
            Some(Value::Integer(value)) => Some(value),
            _ => None,
        }
    }

    /// A decimal; `None` if a word stands there.
    pub fn decimal(&self, name: &str) -> Option<f64> {
        match self.value(name) {
            Some(Value::Decimal(value)) => Some(value),
            _ => None,
        }
    }

    /// A duration in ns; `None` if a word stands there or the default depends on the surroundings.
    pub fn duration_ns(&self, name: &str) -> Option<u64> {
        match self.value(name) {
            Some(Value::DurationNs(ns)) => Some(ns),
            _ => None,
        }
    }

    /// Whether the parameter is this word.
    pub fn is(&self, name: &str, word: &str) -> bool {
        matches!(self.value(name), Some(Value::Word(w)) if w == word)
    }
}

impl PartialEq for Spec {
    fn eq(&self, other: &Self) -> bool {
        self.entry.name == other.entry.name && self.values == other.values
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.entry.name)?;
        let mut separator = ':';
        for (parameter, value) in self.entry.parameters.iter().zip(&self.values) {
            if let Some(value) = value {
                write!(f, "{separator}{}={value}", parameter.name)?;
                separator = ',';
            }
        }
        Ok(())
    }
}

impl FromStr for Spec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let (name, rest) = match text.split_once(':') {
            Some((name, rest)) => (name, Some(rest)),
            None => (text, None),
        };
        let mut spec = Self::of(entry(name)?);
        let Some(rest) = rest else {
            return Ok(spec);
        };
        let mut seen: Vec<&str> = Vec::new();
        for pair in rest.split(',') {
            let printable = schema::problem::printable(pair);
            let (key, value) = pair.split_once('=').ok_or_else(|| {
                SpecError::new(format!("{name}: expected key=value, got \"{printable}\""))
            })?;
            if value.is_empty() {
                return Err(SpecError::new(format!("{name}: {key} has an empty value")));
            }
            if seen.contains(&key) {
                return Err(SpecError::new(format!("{name}: {key} is given twice")));
            }
            seen.push(key);
            spec.set(key, value)?;
        }
        Ok(spec)
    }
}

/// Reads `A,B:x=1,y=2,C`: a piece `key=value` belongs to the strategy before it.
///
/// # Errors
/// As for one spec; an empty list or an empty piece.
pub fn parse_list(text: &str) -> Result<Vec<Spec>, SpecError> {
    let mut pieces: Vec<String> = Vec::new();
    for piece in text.split(',') {
        let is_pair =
            piece.contains('=') && !piece.split('=').next().is_some_and(|k| k.contains(':'));
        match pieces.last_mut() {
            Some(last) if is_pair => {
                last.push(if last.contains(':') { ',' } else { ':' });
                last.push_str(piece);
            }
            _ => pieces.push(piece.to_string()),
        }
    }
    pieces.iter().map(|p| p.parse()).collect()
}
