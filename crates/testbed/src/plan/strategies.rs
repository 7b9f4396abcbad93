//! Lists of strategies as the command line gives them.

use schema::problem::{Findings, Problem, Problems, nearest};

use crate::figures::comparison::AA_PREFIX;
use crate::programs::Registered;

const FLAG: &str = "--strategies";

/// Splits a list at its commas; a piece `key=value` belongs to the strategy before it, so
/// `peak-ewma:decay=10s,choices=2,random` is two strategies.
///
/// # Errors
/// An empty piece, a parameter before the first strategy, the same strategy twice, a name that is
/// not `known` (names without parameters).
pub(crate) fn parse_list(text: &str, known: &[Registered]) -> Result<Vec<String>, Problems> {
    let mut findings = Findings::default();
    let mut list: Vec<String> = Vec::new();
    for piece in text.split(',').map(str::trim) {
        if piece.is_empty() {
            findings.push(Problem::new(FLAG, text, "an empty name").next("remove a comma"));
        } else if is_parameter(piece) {
            match list.last_mut() {
                Some(strategy) => {
                    strategy.push(',');
                    strategy.push_str(piece);
                }
                None => findings.push(
                    Problem::new(FLAG, piece, "a parameter without a strategy")
                        .next("write NAME:KEY=VALUE"),
                ),
            }
        } else {
            list.push(piece.to_string());
        }
    }
    for (i, strategy) in list.iter().enumerate() {
        if list[..i].contains(strategy) {
            findings.push(Problem::new(FLAG, strategy, "named twice"));
        }
        if let Some(problem) = unknown(strategy, known) {
            findings.push(problem);
        }
    }
    findings.finish(list)
}

fn is_parameter(piece: &str) -> bool {
    piece
        .split_once('=')
        .is_some_and(|(key, _)| !key.contains(':'))
}

fn unknown(strategy: &str, known: &[Registered]) -> Option<Problem> {
    let name = strategy.split(':').next().unwrap_or_default();
    if find(strategy, known).is_some() {
        return None;
    }
    let names = || known.iter().map(|k| k.name.as_str());
    let all: Vec<&str> = names().collect();
    let problem = Problem::new(FLAG, strategy, "unknown strategy").allowed(all.join(", "));
    Some(match nearest(name, names()) {
        _ if strategy.starts_with(AA_PREFIX) => {
            problem.next("the baseline's second arm is added by itself")
        }
        Some(near) => problem.next(format!("did you mean \"{near}\"?")),
        None => problem.next("`balancer strategies` describes each"),
    })
}

/// The registry's entry of a spelled-out strategy.
pub(crate) fn find<'a>(strategy: &str, known: &'a [Registered]) -> Option<&'a Registered> {
    let name = strategy.split(':').next().unwrap_or_default();
    known
        .iter()
        .find(|k| k.name == name || k.aliases.iter().any(|a| a == name))
}

#[cfg(test)]
mod tests {
    use super::parse_list;
    use crate::programs::Registered;

    fn parse(text: &str) -> Result<Vec<String>, String> {
        let known = ["round-robin", "random", "peak-ewma"].map(|name| Registered {
            name: name.into(),
            aliases: Vec::new(),
            needs_model: false,
            reads: String::new(),
        });
        parse_list(text, &known).map_err(|e| e.to_string())
    }

    #[test]
    fn a_piece_with_an_equals_sign_belongs_to_the_strategy_before_it() {
        assert_eq!(
            parse("peak-ewma:decay=10s,choices=2,random").unwrap(),
            ["peak-ewma:decay=10s,choices=2", "random"]
        );
        assert_eq!(
            parse("round-robin, peak-ewma:decay=5s,peak-ewma:decay=10s").unwrap(),
            ["round-robin", "peak-ewma:decay=5s", "peak-ewma:decay=10s"]
        );
    }

    #[test]
    fn wrong_lists_are_refused_with_what_is_known() {
        let error = parse("rond-robin").unwrap_err();
        assert!(error.contains("round-robin, random, peak-ewma"), "{error}");
        assert!(error.contains("did you mean \"round-robin\"?"), "{error}");
        assert!(parse("random,random").unwrap_err().contains("named twice"));
        assert!(
            parse("decay=5s,random")
                .unwrap_err()
                .contains("without a strategy")
        );
        assert!(parse("random,").unwrap_err().contains("empty name"));
        assert!(parse("aa:random").unwrap_err().contains("added by itself"));
    }
}
