//! `--fail-if` expressions: `wl-mc.mean_ms > 1.05 * weighted-least-request.mean_ms`.
//!
//! A comparison of two sums of products of numbers and references `STRATEGY.METRIC`. Since strategy
//! names hold dashes, a minus sign needs a space before it.

use schema::problem::{Problem, Problems, nearest};

use crate::figures::comparison::Metric;

const FLAG: &str = "--fail-if";

/// A parsed expression.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Threshold {
    text: String,
    left: Sum,
    comparison: Comparison,
    right: Sum,
}

/// A number of one strategy.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reference {
    pub(crate) label: String,
    pub(crate) metric: Metric,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Comparison {
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
}

/// Signed products.
type Sum = Vec<(f64, Vec<Factor>)>;

#[derive(Debug, Clone, PartialEq)]
enum Factor {
    Number(f64),
    Of(Reference),
    /// One over a number or reference.
    Inverse(Box<Factor>),
}

impl Threshold {
    /// Reads an expression; `labels` are the arms' labels.
    ///
    /// # Errors
    /// Anything that is not such an expression, an unknown strategy or metric.
    pub(crate) fn parse(text: &str, labels: &[String]) -> Result<Self, Problems> {
        let wrong = |what: &str| {
            Problem::new(FLAG, text, what)
                .next("write for example 'round-robin.mean_ms > 1.05 * random.mean_ms'")
        };
        let signs = [
            (">=", Comparison::GreaterOrEqual),
            ("<=", Comparison::LessOrEqual),
            (">", Comparison::Greater),
            ("<", Comparison::Less),
        ];
        let (left, comparison, right) = signs
            .into_iter()
            .find_map(|(sign, c)| text.split_once(sign).map(|(l, r)| (l, c, r)))
            .ok_or_else(|| wrong("no comparison (>, >=, <, <=)"))?;
        if right.contains(['<', '>']) {
            return Err(wrong("more than one comparison").into());
        }
        Ok(Self {
            text: text.to_string(),
            left: sum(left, labels, &wrong)?,
            comparison,
            right: sum(right, labels, &wrong)?,
        })
    }

    /// As it was written.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// True when the expression holds, `None` when a number it needs is not known.
    pub(crate) fn holds(&self, value: &dyn Fn(&Reference) -> Option<f64>) -> Option<bool> {
        let (left, right) = (evaluate(&self.left, value)?, evaluate(&self.right, value)?);
        Some(match self.comparison {
            Comparison::Greater => left > right,
            Comparison::GreaterOrEqual => left >= right,
            Comparison::Less => left < right,
            Comparison::LessOrEqual => left <= right,
        })
    }
}

fn sum(text: &str, labels: &[String], wrong: &dyn Fn(&str) -> Problem) -> Result<Sum, Problems> {
    let mut terms: Sum = Vec::new();
    let (mut sign, mut inverse, mut expect_factor) = (1.0, false, true);
    for token in spaced(text).split_whitespace() {
        match (token, expect_factor) {
            ("+" | "-", false) => {
                sign = if token == "-" { -1.0 } else { 1.0 };
                terms.push((sign, Vec::new()));
                expect_factor = true;
            }
            ("*" | "/", false) => {
                inverse = token == "/";
                expect_factor = true;
            }
            ("+" | "-" | "*" | "/", true) => {
                return Err(wrong("an operator without a value").into());
            }
            (_, false) => return Err(wrong("two values without an operator").into()),
            (value, true) => {
                let factor = factor(value, labels, wrong)?;
                if terms.is_empty() {
                    terms.push((sign, Vec::new()));
                }
                if let Some((_, factors)) = terms.last_mut() {
                    factors.push(if inverse {
                        Factor::Inverse(Box::new(factor))
                    } else {
                        factor
                    });
                }
                (inverse, expect_factor) = (false, false);
            }
        }
    }
    if expect_factor {
        return Err(wrong("a side without a value").into());
    }
    Ok(terms)
}

/// Puts spaces around the operators that no name can hold.
fn spaced(text: &str) -> String {
    text.replace('*', " * ")
        .replace('/', " / ")
        .replace('+', " + ")
}

fn factor(
    text: &str,
    labels: &[String],
    wrong: &dyn Fn(&str) -> Problem,
) -> Result<Factor, Problems> {
    if let Ok(number) = text.parse::<f64>() {
        return if number.is_finite() {
            Ok(Factor::Number(number))
        } else {
            Err(wrong("not a finite number").into())
        };
    }
    let (label, metric) = text
        .rsplit_once('.')
        .ok_or_else(|| wrong(&format!("\"{text}\" is not STRATEGY.METRIC")))?;
    if !labels.iter().any(|l| l == label) {
        let near = nearest(label, labels.iter().map(String::as_str));
        let hint = near.map_or(String::new(), |n| format!("; did you mean \"{n}\"?"));
        return Err(
            wrong(&format!("no strategy \"{label}\" in this bench{hint}"))
                .allowed(labels.join(", "))
                .into(),
        );
    }
    let metric = Metric::ALL
        .into_iter()
        .find(|m| m.as_str() == metric)
        .ok_or_else(|| {
            wrong(&format!("no metric \"{metric}\""))
                .allowed(Metric::ALL.map(Metric::as_str).join(", "))
        })?;
    Ok(Factor::Of(Reference {
        label: label.to_string(),
        metric,
    }))
}

fn evaluate(sum: &Sum, value: &dyn Fn(&Reference) -> Option<f64>) -> Option<f64> {
    let mut total = 0.0;
    for (sign, factors) in sum {
        let mut product = *sign;
        for factor in factors {
            product *= factor_value(factor, value)?;
        }
        total += product;
    }
    total.is_finite().then_some(total)
}

fn factor_value(factor: &Factor, value: &dyn Fn(&Reference) -> Option<f64>) -> Option<f64> {
    match factor {
        Factor::Number(number) => Some(*number),
        Factor::Of(reference) => value(reference),
        Factor::Inverse(inner) => factor_value(inner, value).map(|v| 1.0 / v),
    }
}

#[cfg(test)]
mod tests {
    use super::{Reference, Threshold};

    fn labels() -> Vec<String> {
        [
            "round-robin",
            "peak-ewma:decay=1.5s,choices=2",
            "aa:round-robin",
        ]
        .map(String::from)
        .into()
    }

    fn holds(text: &str) -> Option<bool> {
        let value = |r: &Reference| match r.label.as_str() {
            "round-robin" => Some(100.0),
            "aa:round-robin" => None,
            _ => Some(90.0),
        };
        Threshold::parse(text, &labels()).expect(text).holds(&value)
    }

    #[test]
    fn sums_of_products_are_compared() {
        assert_eq!(holds("round-robin.mean_ms > 99"), Some(true));
        assert_eq!(holds("round-robin.mean_ms>=100"), Some(true));
        assert_eq!(
            holds("round-robin.mean_ms > 1.05 * peak-ewma:decay=1.5s,choices=2.mean_ms"),
            Some(true)
        );
        assert_eq!(
            holds("round-robin.p99_ms - peak-ewma:decay=1.5s,choices=2.p99_ms < 10"),
            Some(false)
        );
        assert_eq!(holds("round-robin.mean_ms / 2 + 3*2 <= 56"), Some(true));
    }

    #[test]
    fn what_is_not_known_does_not_hold_and_does_not_fail_to() {
        assert_eq!(holds("aa:round-robin.mean_ms > 1"), None);
        assert_eq!(holds("round-robin.mean_ms / 0 > 1"), None);
    }

    #[test]
    fn wrong_expressions_say_what_is_known() {
        let error = |text| Threshold::parse(text, &labels()).unwrap_err().to_string();
        assert!(error("round-robin.mean_ms").contains("no comparison"));
        assert!(error("rond-robin.mean_ms > 1").contains("did you mean \"round-robin\""));
        assert!(error("round-robin.median > 1").contains("mean_ms, p50_ms"));
        assert!(error("round-robin > 1").contains("not STRATEGY.METRIC"));
        assert!(error("1 2 > 3").contains("without an operator"));
        assert!(error("1 * > 3").contains("without a value"));
        assert!(error("> 3").contains("without a value"));
        assert!(error("1 > inf").contains("finite"));
    }
}
