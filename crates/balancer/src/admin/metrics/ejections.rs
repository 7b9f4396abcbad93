//! The samples that say what the rules of ejection did.

use super::family;
use crate::admin::backends::word;
use crate::core::State;
use schema::protection::Rule;
use std::fmt::Write;

/// States of a backend, in the order of their samples.
const STATES: [&str; 4] = ["up", "ejected", "trial", "draining"];

/// Appends them.
pub(super) fn render(out: &mut String, state: &State) -> std::fmt::Result {
    let backends = state.dispatcher.backends();
    let members = || {
        backends
            .members()
            .map(|b| (b, state.dispatcher.standing(b.id)))
    };
    let help = "1 while so few backends are up that ejections are ignored.";
    family(out, "plumbline_panic", "gauge", help)?;
    writeln!(out, "plumbline_panic {}", u8::from(backends.in_panic()))?;
    let help = "Picks of a backend that was not up, or tried already, while another one was; none.";
    family(out, "plumbline_wrong_picks", "counter", help)?;
    writeln!(
        out,
        "plumbline_wrong_picks_total {}",
        state.counts.wrong_picks
    )?;
    family(
        out,
        "plumbline_backend_state",
        "gauge",
        "1 for the state a backend is in.",
    )?;
    for (b, standing) in members() {
        let now = word(b, &standing);
        for state in STATES {
            let one = u8::from(state == now);
            let name = &b.name;
            writeln!(
                out,
                "plumbline_backend_state{{backend=\"{name}\",state=\"{state}\"}} {one}"
            )?;
        }
    }
    let help = "Fast failures that strategies still count as in flight.";
    family(out, "plumbline_held", "gauge", help)?;
    for (b, _) in members() {
        writeln!(out, "plumbline_held{{backend=\"{}\"}} {}", b.name, b.held)?;
    }
    family(out, "plumbline_ejections", "counter", "Ejections, by rule.")?;
    for (b, standing) in members() {
        for (rule, n) in Rule::ALL.iter().zip(standing.tally.ejections) {
            let (name, rule) = (&b.name, rule.word());
            writeln!(
                out,
                "plumbline_ejections_total{{backend=\"{name}\",rule=\"{rule}\"}} {n}"
            )?;
        }
    }
    let help = "Ejections that did not happen: too many already, or only observed.";
    family(out, "plumbline_ejections_spared", "counter", help)?;
    for (b, standing) in members() {
        let tally = standing.tally;
        for (why, n) in [("cap", tally.refused), ("observe", tally.observed)] {
            let name = &b.name;
            writeln!(
                out,
                "plumbline_ejections_spared_total{{backend=\"{name}\",why=\"{why}\"}} {n}"
            )?;
        }
    }
    let help = "Time out of service, trial included.";
    family(out, "plumbline_ejected_seconds", "counter", help)?;
    for (b, standing) in members() {
        let seconds = standing.tally.ejected_ns as f64 / 1e9;
        writeln!(
            out,
            "plumbline_ejected_seconds_total{{backend=\"{}\"}} {seconds}",
            b.name
        )?;
    }
    let help = "End of the ejection under way, seconds since the run began; 0 if there is none.";
    family(out, "plumbline_ejected_until_seconds", "gauge", help)?;
    for (b, _) in members() {
        let until = b.ejected_until.map_or(0.0, |t| t.as_nanos() as f64 / 1e9);
        writeln!(
            out,
            "plumbline_ejected_until_seconds{{backend=\"{}\"}} {until}",
            b.name
        )?;
    }
    family(
        out,
        "plumbline_trials",
        "counter",
        "Picks that tried a backend after an ejection.",
    )?;
    for (b, standing) in members() {
        writeln!(
            out,
            "plumbline_trials_total{{backend=\"{}\"}} {}",
            b.name, standing.tally.trials
        )?;
    }
    Ok(())
}
