//! What is wrong with an input: where, which field, which value, which bound, what to do next.
//!
//! One form everywhere: `FILE:LINE:COL: FIELD: VALUE: what is wrong (allowed: BOUND); next step`,
//! with the parts that are unknown left out. Readers collect up to [`MAX_FINDINGS`] problems in the
//! order of the input before they give up. Every part is one line of bounded length, whatever stood in
//! the input: see [`escaped`].

use std::fmt;

/// Findings reported at once; the rest is only counted.
pub const MAX_FINDINGS: usize = 20;
/// Longest piece of an offending value that is repeated in a message, in characters.
const MAX_VALUE_CHARS: usize = 80;
/// Longest path of a field in a message, in characters: names within it may be the user's.
const MAX_FIELD_CHARS: usize = 200;
/// Longest of the other parts of a message, in characters: lists of what is known may be long.
const MAX_PART_CHARS: usize = 4096;
/// Longest name that a slip of the finger is looked for in, bytes; no name of ours is as long.
const MAX_SLIP_BYTES: usize = 256;

/// A place in an input: a file (or flag) name with an optional line and column, both from 1.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Place {
    /// File or flag name as the user gave it; empty when unknown.
    pub source: String,
    /// Line and column, counted from 1; columns are characters.
    pub position: Option<(usize, usize)>,
}

/// One finding about an input.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Problem {
    /// Where it was found.
    pub place: Place,
    /// Path of the field, such as `apis[3].task_size_mi`; empty when the whole input is meant.
    pub field: String,
    /// The offending value as it stood in the input; empty when there is none.
    pub value: String,
    /// What is wrong, in lower case.
    pub what: String,
    /// What would be allowed; empty when the message says it already.
    pub allowed: String,
    /// What the user can do next; empty when it is obvious.
    pub next_step: String,
}

impl Problem {
    /// A problem with a field and its value; place, bound and next step are added with the builders.
    pub fn new(
        field: impl Into<String>,
        value: impl Into<String>,
        what: impl Into<String>,
    ) -> Self {
        Self {
            place: Place::default(),
            field: field.into(),
            value: value.into(),
            what: what.into(),
            allowed: String::new(),
            next_step: String::new(),
        }
    }

    /// Adds the file or flag name.
    #[must_use]
    pub fn in_source(mut self, source: impl Into<String>) -> Self {
        self.place.source = source.into();
        self
    }

    /// Adds the line and column, both from 1.
    #[must_use]
    pub fn at(mut self, line: usize, column: usize) -> Self {
        self.place.position = Some((line, column));
        self
    }

    /// Adds the bound.
    #[must_use]
    pub fn allowed(mut self, bound: impl Into<String>) -> Self {
        self.allowed = bound.into();
        self
    }

    /// Adds the next step.
    #[must_use]
    pub fn next(mut self, step: impl Into<String>) -> Self {
        self.next_step = step.into();
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.place.source.is_empty() {
            write!(f, "{}:", escaped(&self.place.source, MAX_PART_CHARS))?;
        }
        if let Some((line, column)) = self.place.position {
            write!(f, "{line}:{column}:")?;
        }
        if !self.place.source.is_empty() || self.place.position.is_some() {
            f.write_str(" ")?;
        }
        if !self.field.is_empty() {
            write!(f, "{}: ", escaped(&self.field, MAX_FIELD_CHARS))?;
        }
        if !self.value.is_empty() {
            write!(f, "{}: ", printable(&self.value))?;
        }
        f.write_str(&escaped(&self.what, MAX_PART_CHARS))?;
        if !self.allowed.is_empty() {
            write!(f, " (allowed: {})", escaped(&self.allowed, MAX_PART_CHARS))?;
        }
        if !self.next_step.is_empty() {
            write!(f, "; {}", escaped(&self.next_step, MAX_PART_CHARS))?;
        }
        Ok(())
    }
}

/// Every finding about one input, in the order of the input; never empty.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Problems(Vec<Problem>);

impl Problems {
    /// Findings in the order of the input.
    pub fn list(&self) -> &[Problem] {
        &self.0
    }
}

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Self {
        Self(vec![problem])
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.0.iter().take(MAX_FINDINGS).enumerate() {
            if i > 0 {
                f.write_str("\nerror: ")?;
            }
            problem.fmt(f)?;
        }
        if self.0.len() > MAX_FINDINGS {
            write!(f, "\nand {} more", self.0.len() - MAX_FINDINGS)?;
        }
        Ok(())
    }
}

/// Collects problems while a reader goes on; [`Findings::finish`] turns them into a result.
#[derive(Debug, Default)]
pub struct Findings(Vec<Problem>);

impl Findings {
    /// Notes one problem.
    pub fn push(&mut self, problem: Problem) {
        // The count beyond the reported ones matters to nobody after a thousand.
        if !self.is_full() {
            self.0.push(problem);
        }
    }

    /// True when more findings would change nothing: readers stop looking, and placing, then.
    pub fn is_full(&self) -> bool {
        self.0.len() >= 50 * MAX_FINDINGS
    }

    /// True while nothing was found.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// `value` when nothing was found, else every problem.
    pub fn finish<T>(self, value: T) -> Result<T, Problems> {
        if self.0.is_empty() {
            Ok(value)
        } else {
            Err(Problems(self.0))
        }
    }
}

/// The known name closest to `name`, if one is close enough to be meant.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > MAX_SLIP_BYTES {
        return None;
    }
    known
        .into_iter()
        .map(|k| (strsim::damerau_levenshtein(name, k), k))
        .filter(|(distance, k)| *distance <= 1 + name.len().max(k.len()) / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, k)| k)
}

/// `value` with control characters escaped and its length bounded, so that a message stays one line.
pub fn printable(value: &str) -> String {
    escaped(value, MAX_VALUE_CHARS)
}

/// The first `most` characters of `text`, those escaped that would move a terminal's cursor, color it or
/// turn the direction of writing; three dots stand for the rest.
pub fn escaped(text: &str, most: usize) -> String {
    let mut out = String::with_capacity(text.len().min(most));
    let mut characters = text.chars();
    for c in characters.by_ref().take(most) {
        if c.is_control() || is_invisible_format(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    if characters.next().is_some() {
        out.push_str("...");
    }
    out
}

/// Marks that break a line or turn the direction of the text after them.
fn is_invisible_format(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::{Findings, Problem, nearest, printable};
    use proptest::prelude::*;

    #[test]
    fn a_problem_prints_place_field_value_reason_bound_and_next_step() {
        let problem = Problem::new("apis[3].task_size_mi", "9000000", "above 100000")
            .in_source("load.json")
            .at(41, 12)
            .next("lower it");
        assert_eq!(
            problem.to_string(),
            "load.json:41:12: apis[3].task_size_mi: 9000000: above 100000; lower it"
        );
        let bare = Problem::new("--cores", "0", "must be positive").allowed("0.05 to 1024");
        assert_eq!(
            bare.to_string(),
            "--cores: 0: must be positive (allowed: 0.05 to 1024)"
        );
    }

    #[test]
    fn findings_without_a_problem_yield_the_value() {
        assert_eq!(Findings::default().finish(7), Ok(7));
        let mut findings = Findings::default();
        for i in 0..25 {
            findings.push(Problem::new(format!("f{i}"), "", "wrong"));
        }
        let text = findings.finish(()).unwrap_err().to_string();
        assert_eq!(text.lines().count(), 21);
        assert!(text.ends_with("and 5 more"));
    }

    #[test]
    fn nearest_finds_a_slip_of_the_finger_and_nothing_far_away() {
        let known = ["round-robin", "random", "least-request"];
        assert_eq!(nearest("rond-robin", known), Some("round-robin"));
        assert_eq!(nearest("zzz", known), None);
    }

    #[test]
    fn control_characters_are_escaped_and_long_values_cut() {
        assert_eq!(printable("a\nb"), "a\\nb");
        assert_eq!(printable(&"x".repeat(100)).len(), 83);
        assert_eq!(printable(&"x".repeat(80)).len(), 80);
        assert_eq!(printable("a\u{202e}b"), "a\\u{202e}b");
    }

    #[test]
    fn a_name_far_longer_than_any_is_no_slip_of_the_finger() {
        let long = "x".repeat(1 << 20);
        assert_eq!(nearest(&long, [long.as_str()]), None);
    }

    proptest! {
        /// Whatever the user wrote, a problem is one line without control characters, and short.
        #[test]
        fn every_part_of_a_problem_is_escaped_and_cut(
            parts in prop::collection::vec("(\\PC|\\pC|\u{1b}\\[31m){0,20}", 6),
            times in 1_usize..5000,
        ) {
            let [source, field, value, what, allowed, next] = &parts[..] else { unreachable!() };
            let problem = Problem::new(field.repeat(times), value.repeat(times), what.repeat(times))
                .in_source(source.repeat(times))
                .at(1, 1)
                .allowed(allowed.repeat(times))
                .next(next.repeat(times));
            let text = problem.to_string();
            prop_assert!(!text.contains(char::is_control));
            // Ten characters stand for one at most.
            prop_assert!(text.chars().count() <= 10 * (4 * 4096 + 200 + 80) + 100);
        }
    }
}
