//! The arrival process of a workload file.

use super::Reader;
use crate::json::{Node, Object};
use crate::laws::arrivals::{
    AMPLITUDE, Arrivals, CV, INTERVAL_MS, Leg, MAX_LEGS, OVER_MS, PERIOD_MS, RAMP_RPS, RATE_RPS,
};

/// Every field that some process has.
const FIELDS: [&str; 8] = [
    "process",
    "interval_ms",
    "rate_rps",
    "cv",
    "amplitude",
    "period_ms",
    "from_rps",
    "legs",
];

impl<'a> Reader<'a> {
    /// The process and where it stands.
    pub(super) fn arrivals(&mut self, object: &Object<'a>) -> Option<(Node<'a>, Arrivals)> {
        let Some(node) = object.field("arrivals") else {
            let problem = self.document.missing(object, "arrivals");
            self.findings.push(problem);
            return None;
        };
        let object = self.document.object(&node, &FIELDS, &mut self.findings)?;
        let (process_node, process) =
            self.required_node::<String>(&object, "process", "a string")?;
        let own: &[&str] = match process.as_str() {
            "constant" => &["interval_ms"],
            "poisson" => &["rate_rps"],
            "gamma" => &["rate_rps", "cv"],
            "sine" => &["rate_rps", "amplitude", "period_ms"],
            "ramp" => &["from_rps", "legs"],
            _ => {
                let known = Arrivals::PROCESSES.join(", ");
                self.wrong(&process_node, "unknown arrival process", &known);
                return None;
            }
        };
        for name in &FIELDS[1..] {
            if let Some(stray) = object.field(name)
                && !own.contains(name)
            {
                let what = format!("not a field of {process} arrivals");
                self.wrong(&stray, &what, &own.join(", "));
            }
        }
        let mut number = |field, bounds| self.number(&object, field, &bounds);
        let arrivals = match process.as_str() {
            "constant" => Arrivals::Constant {
                interval_ms: number("interval_ms", INTERVAL_MS)?,
            },
            "poisson" => Arrivals::Poisson {
                rate_rps: number("rate_rps", RATE_RPS)?,
            },
            "gamma" => {
                let (rate_rps, cv) = (number("rate_rps", RATE_RPS), number("cv", CV));
                Arrivals::Gamma {
                    rate_rps: rate_rps?,
                    cv: cv?,
                }
            }
            "sine" => {
                let rate_rps = number("rate_rps", RATE_RPS);
                let amplitude = number("amplitude", AMPLITUDE);
                let period_ms = number("period_ms", PERIOD_MS);
                Arrivals::Sine {
                    rate_rps: rate_rps?,
                    amplitude: amplitude?,
                    period_ms: period_ms?,
                }
            }
            _ => {
                let from_rps = number("from_rps", RAMP_RPS);
                let legs = self.legs(&object);
                Arrivals::Ramp {
                    from_rps: from_rps?,
                    legs: legs?,
                }
            }
        };
        Some((node, arrivals))
    }

    fn legs(&mut self, object: &Object<'a>) -> Option<Vec<Leg>> {
        let Some(node) = object.field("legs") else {
            let problem = self.document.missing(object, "legs");
            self.findings.push(problem);
            return None;
        };
        let items = self.document.array(&node, &mut self.findings)?;
        if !(1..=MAX_LEGS).contains(&items.len()) {
            let count = format!("{} legs", items.len());
            self.wrong(&node, &count, &format!("1 to {MAX_LEGS}"));
            return None;
        }
        let last = items.len() - 1;
        let legs = items.iter().enumerate().map(|(i, item)| {
            let known = ["to_rps", "over_ms"];
            let leg = self.document.object(item, &known, &mut self.findings)?;
            // The rest of the requests come at the last rate, so that one may not be 0.
            let rates = if i == last { RATE_RPS } else { RAMP_RPS };
            let to_rps = self.number(&leg, "to_rps", &rates);
            let over_ms = self.number(&leg, "over_ms", &OVER_MS);
            Some(Leg {
                to_rps: to_rps?,
                over_ms: over_ms?,
            })
        });
        // Every leg is read before the first that is wrong stops it, so that all findings are told.
        let legs: Vec<Option<Leg>> = legs.collect();
        legs.into_iter().collect()
    }
}
