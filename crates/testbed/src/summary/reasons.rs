//! Why a result is not valid, as people read it: one line a reason, with how many runs it holds for
//! and the worst of them. `analysis` says the same (`cases/validity.json` holds both to it).

use schema::manifest::{Arm, ArmState, GENERATOR_SATURATED, Manifest, NEVER_SENT};

use crate::plan::order::stem;

/// Runs that a line names; the rest is counted.
const NAMED_RUNS: usize = 3;

/// One line a reason: marks first, then the counts that disagree by rule; none for a valid result.
pub(crate) fn lines(manifest: &Manifest) -> Vec<String> {
    let runs = manifest.arms.iter().filter(|a| a.state == ArmState::Done);
    let runs = runs.count();
    let marked = |mark: &str| -> Vec<&Arm> {
        let arms = manifest.arms.iter();
        arms.filter(|a| a.flags.iter().any(|f| f == mark)).collect()
    };
    let mut lines = Vec::new();
    let saturated = marked(GENERATOR_SATURATED);
    if let Some((worst, run_id)) = worst_lateness_ms(&saturated) {
        lines.push(format!(
            "{GENERATOR_SATURATED} in {} of {runs} runs: requests left later than the next was due \
             (worst p99 {worst:.2} ms at a mean gap of {:.2} ms, in {run_id})",
            saturated.len(),
            1e3 / manifest.workload.rate_rps,
        ));
    }
    let unsent = marked(NEVER_SENT);
    if !unsent.is_empty() {
        let ids: Vec<String> = unsent.iter().map(|a| stem(a)).collect();
        lines.push(format!(
            "{NEVER_SENT} in {} of {runs} runs: requests could not be sent ({})",
            ids.len(),
            first_few(&ids),
        ));
    }
    lines.extend(mismatches(&manifest.arms, runs));
    lines
}

/// The first [`NAMED_RUNS`] of these and how many more there are.
pub(super) fn first_few(ids: &[String]) -> String {
    let named = ids[..ids.len().min(NAMED_RUNS)].join(", ");
    match ids.len() - ids.len().min(NAMED_RUNS) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

fn worst_lateness_ms(arms: &[&Arm]) -> Option<(f64, String)> {
    arms.iter()
        .map(|a| (a.lateness_p99_us.unwrap_or_default() / 1e3, stem(a)))
        .max_by(|a, b| a.0.total_cmp(&b.0))
}

/// Rules in the order of their first appearance; a rule's line shows the first run that broke it.
fn mismatches(arms: &[Arm], runs: usize) -> Vec<String> {
    let mut rules: Vec<(&str, Vec<(String, &str)>)> = Vec::new();
    for arm in arms {
        for text in &arm.mismatches {
            let (rule, found) = text.split_once(": ").unwrap_or((text, ""));
            let entry = (stem(arm), found);
            match rules.iter_mut().find(|(known, _)| *known == rule) {
                Some((_, entries)) => entries.push(entry),
                None => rules.push((rule, vec![entry])),
            }
        }
    }
    let line = |(rule, entries): (&str, Vec<(String, &str)>)| {
        let (first, found) = &entries[0];
        let mut hit: Vec<&String> = entries.iter().map(|(run, _)| run).collect();
        hit.dedup();
        format!(
            "{rule} in {} of {runs} runs: counts that should be equal are not ({first}: {found})",
            hit.len()
        )
    };
    rules.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use schema::manifest::{Arm, ArmState};
    use serde_json::Value;

    use crate::bench::testing::manifest;
    use crate::plan::order;
    use crate::summary::Summary;

    const CASES: &str = include_str!("../../cases/validity.json");

    /// Arms b01-a1, b01-a2 ... with what a case says of each.
    fn arms(case: &Value) -> Vec<Arm> {
        let said = case["arms"].as_array().expect("a list of arms");
        let mut arms = order::arms("b01", &["round-robin".into()], said.len() as u32, 1);
        arms.truncate(said.len());
        for (i, (arm, said)) in arms.iter_mut().zip(said).enumerate() {
            (arm.block, arm.position) = (1, i as u32 + 1);
            arm.state = ArmState::Done;
            let list = |name: &str| serde_json::from_value(said[name].clone()).unwrap_or_default();
            arm.flags = list("flags");
            arm.mismatches = list("mismatches");
            arm.lateness_p99_us = said["lateness_p99_us"].as_f64();
            arm.late_burn_share = said["late_burn_share"].as_f64();
        }
        arms
    }

    #[test]
    fn reasons_are_grouped_as_the_cases_say() {
        let cases: Value = serde_json::from_str(CASES).expect("the cases are JSON");
        for case in cases["cases"].as_array().expect("a list of cases") {
            let manifest = manifest(arms(case));
            let wanted: Vec<String> = serde_json::from_value(case["lines"].clone()).expect("lines");
            assert_eq!(super::lines(&manifest), wanted, "{}", case["name"]);
            let summary = Summary::of(&manifest, &[]);
            assert_eq!(summary.claims, case["valid"], "{}", case["name"]);
        }
    }
}
