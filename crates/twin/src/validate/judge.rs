//! Lines of the table and the rule by which they pass.

/// One comparison.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Line {
    pub(super) id: &'static str,
    pub(super) case: String,
    pub(super) expected: String,
    pub(super) got: String,
    /// What a number may be off, and its standard error; none where nothing is measured.
    pub(super) error: Option<Error>,
    pub(super) verdict: Verdict,
}

/// How far off a number may be, absolute.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Error {
    pub(super) tolerance: f64,
    pub(super) standard_error: f64,
}

/// What became of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Pass,
    Miss,
    /// Three standard errors exceed twice the tolerance: nothing was learned.
    Imprecise,
    /// The run itself failed.
    Broken,
    /// Told, not judged.
    Report,
}

/// A number with its standard error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Measured {
    pub(super) mean: f64,
    pub(super) standard_error: f64,
}

impl Verdict {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Miss => "MISS",
            Self::Imprecise => "IMPRECISE",
            Self::Broken => "BROKEN",
            Self::Report => "-",
        }
    }

    /// The rule. A number that is not finite never passes.
    fn of(expected: f64, got: f64, error: Error) -> Self {
        let three = 3.0 * error.standard_error;
        if three.is_nan() || three > 2.0 * error.tolerance {
            Self::Imprecise
        } else if (got - expected).abs() <= error.tolerance.max(three) {
            Self::Pass
        } else {
            Self::Miss
        }
    }
}

impl Line {
    /// A number against the one expected, with a relative tolerance.
    pub(super) fn number(
        id: &'static str,
        case: impl Into<String>,
        expected: f64,
        got: Measured,
        tolerance: f64,
    ) -> Self {
        Self::number_within(id, case, expected, got, tolerance * expected.abs())
    }

    /// The same with an absolute tolerance.
    pub(super) fn number_within(
        id: &'static str,
        case: impl Into<String>,
        expected: f64,
        got: Measured,
        tolerance: f64,
    ) -> Self {
        let error = Error {
            tolerance,
            standard_error: got.standard_error,
        };
        Self {
            id,
            case: case.into(),
            expected: format!("{expected:.5}"),
            got: format!("{:.5}", got.mean),
            error: Some(error),
            verdict: Verdict::of(expected, got.mean, error),
        }
    }

    /// Something that holds or does not.
    pub(super) fn holds(
        id: &'static str,
        case: impl Into<String>,
        expected: impl Into<String>,
        got: impl Into<String>,
        holds: bool,
    ) -> Self {
        Self {
            id,
            case: case.into(),
            expected: expected.into(),
            got: got.into(),
            error: None,
            verdict: if holds { Verdict::Pass } else { Verdict::Miss },
        }
    }

    /// Something told without a gate.
    pub(super) fn report(
        id: &'static str,
        case: impl Into<String>,
        got: impl Into<String>,
    ) -> Self {
        Self {
            id,
            case: case.into(),
            expected: String::new(),
            got: got.into(),
            error: None,
            verdict: Verdict::Report,
        }
    }

    /// A case that has no result.
    pub(super) fn failed(id: &'static str, case: &str, error: &anyhow::Error) -> Self {
        Self {
            id,
            case: case.into(),
            expected: "a result".into(),
            got: format!("{error:#}"),
            error: None,
            verdict: Verdict::Broken,
        }
    }

    pub(super) fn is_broken(&self) -> bool {
        self.verdict == Verdict::Broken
    }

    pub(super) fn is_miss(&self) -> bool {
        !matches!(self.verdict, Verdict::Pass | Verdict::Report)
    }
}

#[cfg(test)]
mod tests {
    use super::{Line, Measured, Verdict};

    fn verdict(expected: f64, mean: f64, standard_error: f64, tolerance: f64) -> Verdict {
        let got = Measured {
            mean,
            standard_error,
        };
        Line::number("A1", "case", expected, got, tolerance).verdict
    }

    #[test]
    fn a_number_passes_within_tolerance_or_three_errors() {
        assert_eq!(verdict(2.0, 2.019, 0.001, 0.01), Verdict::Pass);
        assert_eq!(verdict(2.0, 2.021, 0.001, 0.01), Verdict::Miss);
        assert_eq!(verdict(2.0, 1.979, 0.001, 0.01), Verdict::Miss);
        assert_eq!(verdict(2.0, 2.029, 0.01, 0.01), Verdict::Pass);
        assert_eq!(verdict(2.0, 2.031, 0.01, 0.01), Verdict::Miss);
    }

    #[test]
    fn a_check_that_says_nothing_is_no_pass() {
        assert_eq!(verdict(2.0, 2.0, 0.014, 0.01), Verdict::Imprecise);
        for nothing in [f64::NAN, f64::INFINITY] {
            assert_eq!(verdict(2.0, 2.0, nothing, 0.01), Verdict::Imprecise);
        }
        assert_eq!(verdict(2.0, f64::NAN, 0.001, 0.01), Verdict::Miss);
        assert!(
            Line::number(
                "A1",
                "",
                2.0,
                Measured {
                    mean: 2.0,
                    standard_error: 1.0
                },
                0.01
            )
            .is_miss()
        );
        assert!(Line::failed("A1", "", &anyhow::anyhow!("broken")).is_miss());
        assert!(!Line::report("A1", "", "").is_miss());
    }
}
