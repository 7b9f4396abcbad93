//! Why a model or table file is refused.

use std::fmt;

/// Longest piece of an offending value that is repeated in a message, in characters.
const MAX_VALUE_CHARS: usize = 80;

/// One finding: `PLACE: VALUE: what is wrong (allowed: BOUND); next step`, unknown parts left out.
/// The driver puts the file's name in front.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Refusal {
    /// Where in the file: a field's path, a range of bytes or a cell.
    pub place: String,
    /// What stands there; empty when it would say nothing.
    pub value: String,
    /// What is wrong, in lower case.
    pub what: String,
    /// What would be allowed; empty when the message says it already.
    pub allowed: String,
    /// What the user can do next.
    pub next_step: String,
}

impl Refusal {
    /// A refusal of what stands at `place`; the bound and the next step are added with the builders.
    pub(crate) fn new(place: impl Into<String>, what: impl Into<String>) -> Self {
        Self {
            place: place.into(),
            value: String::new(),
            what: what.into(),
            allowed: String::new(),
            next_step: String::new(),
        }
    }

    /// Adds the offending value.
    pub(crate) fn value(mut self, value: impl fmt::Display) -> Self {
        self.value = value.to_string();
        self
    }

    /// Adds the bound.
    pub(crate) fn allowed(mut self, bound: impl Into<String>) -> Self {
        self.allowed = bound.into();
        self
    }

    /// Adds what to do next.
    pub(crate) fn next(mut self, step: impl Into<String>) -> Self {
        self.next_step = step.into();
        self
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.place.is_empty() {
            write!(f, "{}: ", printable(&self.place))?;
        }
        if !self.value.is_empty() {
            write!(f, "{}: ", printable(&self.value))?;
        }
        f.write_str(&self.what)?;
        if !self.allowed.is_empty() {
            write!(f, " (allowed: {})", self.allowed)?;
        }
        if !self.next_step.is_empty() {
            write!(f, "; {}", self.next_step)?;
        }
        Ok(())
    }
}

/// `text` with control characters escaped and its length bounded, so that a message stays one line.
fn printable(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars().take(MAX_VALUE_CHARS) {
        if c.is_control() {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    if text.chars().nth(MAX_VALUE_CHARS).is_some() {
        out.push_str("...");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::Refusal;

    #[test]
    fn a_refusal_prints_place_value_reason_bound_and_next_step_on_one_line() {
        let refusal = Refusal::new("axes[0].borders[3]", "must be ascending")
            .value("7.5\n")
            .allowed("above 8")
            .next("export the model again");
        assert_eq!(
            refusal.to_string(),
            "axes[0].borders[3]: 7.5\\n: must be ascending (allowed: above 8); export the model again"
        );
        assert_eq!(Refusal::new("", "is empty").to_string(), "is empty");
    }
}
