//! Reads a timeline; every finding names its place and bound.

use super::{Fault, FaultEvent, Filter, MAX_BYTES, MAX_EVENTS, ResetAt, Timeline};
use crate::duration;
use crate::json::{Document, Node, Object};
use crate::problem::{Findings, Problems, nearest};
use std::ops::RangeInclusive;
use std::time::Duration;

const COMMON: [&str; 4] = ["at", "on", "fault", "for"];
const FILTERS: [&str; 2] = ["attempt", "path_prefix"];
/// Word, its own parameters, whether it looks at single requests.
const FAULTS: [(&str, &[&str], bool); 14] = [
    ("refuse", &[], false),
    ("hang", &["p"], true),
    ("fast_fail", &["p", "status", "after"], true),
    ("error_rate", &["p", "status"], true),
    ("slow", &["factor", "burn"], false),
    ("reset", &["p", "at_byte"], true),
    ("stats_hang", &[], false),
    ("stats_lie", &["active", "latency"], false),
    ("kill", &["restart_after"], false),
    ("freeze", &[], false),
    ("antagonist", &["threads", "duty"], false),
    ("poll_loss", &["p"], false),
    ("poll_delay", &["delay"], false),
    ("connect_delay", &["delay"], false),
];
const CHANCE: RangeInclusive<f64> = 0.0..=1.0;
const STATUS: RangeInclusive<f64> = 400.0..=599.0;

impl Timeline {
    /// Reads a timeline file; `source` is its name in messages.
    ///
    /// # Errors
    /// Every finding with its place, field and bound.
    pub fn parse(source: &str, text: &str) -> Result<Self, Problems> {
        let document = Document::within(source, text, MAX_BYTES)?;
        let root = document.root()?;
        Self::read(document, &root)
    }

    /// Reads a timeline that is a part of another document.
    ///
    /// # Errors
    /// As for [`Timeline::parse`].
    pub fn read<'a>(document: Document<'a>, node: &Node<'a>) -> Result<Self, Problems> {
        let mut reader = Reader {
            document,
            findings: Findings::default(),
        };
        let timeline = reader.timeline(node);
        let nothing = Self {
            seed: 0,
            events: Vec::new(),
        };
        reader.findings.finish(timeline.unwrap_or(nothing))
    }
}

struct Reader<'a> {
    document: Document<'a>,
    findings: Findings,
}

impl<'a> Reader<'a> {
    fn timeline(&mut self, root: &Node<'a>) -> Option<Timeline> {
        let known = ["version", "seed", "events"];
        let object = self.document.object(root, &known, &mut self.findings)?;
        if let Some((node, version)) = self.whole(&object, "version", None)
            && version != 1
        {
            self.wrong(&node, "unknown version", "1");
        }
        let seed = self.whole(&object, "seed", Some(0)).map_or(0, |(_, s)| s);
        let node = object.field("events");
        let Some(node) = node else {
            let problem = self.document.missing(&object, "events");
            self.findings.push(problem);
            return None;
        };
        let items = self.document.array(&node, &mut self.findings)?;
        if items.len() > MAX_EVENTS {
            let what = format!("{} events", items.len());
            self.wrong(&node, &what, &format!("up to {MAX_EVENTS}"));
            return None;
        }
        let mut events: Vec<FaultEvent> = Vec::with_capacity(items.len());
        for item in &items {
            let Some(event) = self.event(item) else {
                continue;
            };
            if let Some(other) = events.iter().position(|e| overlap(e, &event)) {
                let what = format!(
                    "{} on {} while events[{other}] still lasts",
                    event.fault.word(),
                    event.on
                );
                let problem = self.document.problem(item, what);
                self.findings
                    .push(problem.next("let one end before the other begins"));
            }
            events.push(event);
        }
        Some(Timeline { seed, events })
    }

    fn event(&mut self, node: &Node<'a>) -> Option<FaultEvent> {
        // Which fields are known depends on the fault, so its word is read first.
        let every: Vec<&str> = FAULTS
            .iter()
            .flat_map(|(_, own, _)| own.iter().copied())
            .chain(COMMON)
            .chain(FILTERS)
            .collect();
        let mut aside = Findings::default();
        let peek = self.document.object(node, &every, &mut aside);
        let word = peek.as_ref().and_then(|o| {
            self.document
                .required::<String>(o, "fault", "a string", &mut self.findings)
        });
        let (word_node, word) = word?;
        let Some((_, own, on_requests)) = FAULTS.iter().find(|(w, ..)| *w == word) else {
            let words = || FAULTS.iter().map(|(w, ..)| *w);
            let what = nearest(&word, words()).map_or_else(
                || "unknown fault".to_string(),
                |near| format!("unknown fault; did you mean \"{near}\"?"),
            );
            let known: Vec<&str> = words().collect();
            self.wrong(&word_node, &what, &known.join(", "));
            return None;
        };
        let mut known: Vec<&str> = COMMON.iter().chain(own.iter()).copied().collect();
        if *on_requests {
            known.extend(FILTERS);
        }
        let object = self.document.object(node, &known, &mut self.findings)?;
        let at = self.duration(&object, "at", None);
        let on = self
            .document
            .required::<String>(&object, "on", "a string", &mut self.findings);
        let lasts = match object.field("for") {
            None if word == "kill" => Some(None),
            None => {
                let problem = self.document.missing(&object, "for");
                self.findings.push(problem);
                None
            }
            Some(_) => self.duration(&object, "for", None).map(Some),
        };
        let fault = self.fault(&word, &object);
        let only = Filter {
            attempt: self.optional(&object, "attempt", "a whole number"),
            path_prefix: self.optional(&object, "path_prefix", "a string"),
        };
        Some(FaultEvent {
            at: at?,
            on: on?.1,
            lasts: lasts?,
            fault: fault?,
            only,
        })
    }

    fn fault(&mut self, word: &str, object: &Object<'a>) -> Option<Fault> {
        let chance = |this: &mut Self, default| this.number(object, "p", &CHANCE, default);
        Some(match word {
            "refuse" => Fault::Refuse,
            "hang" => Fault::Hang {
                p: chance(self, Some(1.0))?,
            },
            "fast_fail" => Fault::FastFail {
                p: chance(self, Some(1.0))?,
                status: self.number(object, "status", &STATUS, Some(500.0))? as u16,
                after: self.duration(object, "after", Some(Duration::from_millis(1)))?,
            },
            "error_rate" => Fault::ErrorRate {
                p: chance(self, None)?,
                status: self.number(object, "status", &STATUS, Some(500.0))? as u16,
            },
            "slow" => Fault::Slow {
                factor: self.number(object, "factor", &(0.1..=1000.0), None)?,
                burn: self
                    .optional(object, "burn", "true or false")
                    .unwrap_or(true),
            },
            "reset" => Fault::Reset {
                p: chance(self, Some(1.0))?,
                at: self.reset_at(object)?,
            },
            "stats_hang" => Fault::StatsHang,
            "stats_lie" => Fault::StatsLie {
                active: self.optional(object, "active", "a whole number"),
                latency: match object.field("latency") {
                    None => None,
                    Some(_) => Some(self.number(object, "latency", &(0.0..=1e6), None)?),
                },
            },
            "kill" => Fault::Kill {
                restart_after: match object.field("restart_after") {
                    None => None,
                    Some(_) => Some(self.duration(object, "restart_after", None)?),
                },
            },
            "freeze" => Fault::Freeze,
            "antagonist" => Fault::Antagonist {
                threads: self.number(object, "threads", &(1.0..=1024.0), None)? as u32,
                duty_percent: self.number(object, "duty", &(0.0..=100.0), Some(100.0))?,
            },
            "poll_loss" => Fault::PollLoss {
                p: chance(self, None)?,
            },
            "poll_delay" => Fault::PollDelay {
                delay: self.duration(object, "delay", None)?,
            },
            "connect_delay" => Fault::ConnectDelay {
                delay: self.duration(object, "delay", None)?,
            },
            _ => unreachable!("every word of the table is read"),
        })
    }

    fn reset_at(&mut self, object: &Object<'a>) -> Option<ResetAt> {
        let Some(node) = object.field("at_byte") else {
            return Some(ResetAt::HalfBody);
        };
        let mut aside = Findings::default();
        if let Some(word) = self.document.value::<String>(&node, "a string", &mut aside) {
            match word.as_str() {
                "before_head" => return Some(ResetAt::BeforeHead),
                "half" => return Some(ResetAt::HalfBody),
                _ => {}
            }
        }
        let mut aside = Findings::default();
        let byte = self.document.value::<u64>(&node, "a number", &mut aside);
        if byte.is_none() {
            self.wrong(
                &node,
                "no place in an answer",
                "before_head, half, or a number of body bytes",
            );
        }
        byte.map(ResetAt::Body)
    }

    fn wrong(&mut self, node: &Node<'a>, what: &str, allowed: &str) {
        let problem = self.document.problem(node, what).allowed(allowed);
        self.findings.push(problem);
    }

    fn whole(
        &mut self,
        object: &Object<'a>,
        name: &str,
        default: Option<u64>,
    ) -> Option<(Node<'a>, u64)> {
        if default.is_some() && object.field(name).is_none() {
            return None;
        }
        self.document
            .required(object, name, "a whole number", &mut self.findings)
    }

    fn optional<T: serde::de::DeserializeOwned>(
        &mut self,
        object: &Object<'a>,
        name: &str,
        expected: &str,
    ) -> Option<T> {
        let node = object.field(name)?;
        self.document.value(&node, expected, &mut self.findings)
    }

    fn number(
        &mut self,
        object: &Object<'a>,
        name: &str,
        bounds: &RangeInclusive<f64>,
        default: Option<f64>,
    ) -> Option<f64> {
        if default.is_some() && object.field(name).is_none() {
            return default;
        }
        let (node, value) =
            self.document
                .required::<f64>(object, name, "a number", &mut self.findings)?;
        if bounds.contains(&value) {
            return Some(value);
        }
        let allowed = format!("{} to {}", bounds.start(), bounds.end());
        self.wrong(&node, "out of range", &allowed);
        None
    }

    fn duration(
        &mut self,
        object: &Object<'a>,
        name: &str,
        default: Option<Duration>,
    ) -> Option<Duration> {
        if default.is_some() && object.field(name).is_none() {
            return default;
        }
        let (node, text) = self.document.required::<String>(
            object,
            name,
            "a duration such as \"20s\"",
            &mut self.findings,
        )?;
        match duration::parse(&text) {
            Ok(duration) => Some(duration),
            Err(what) => {
                let problem = self.document.problem(&node, what);
                self.findings.push(problem);
                None
            }
        }
    }
}

/// Same kind twice at once on one target.
fn overlap(a: &FaultEvent, b: &FaultEvent) -> bool {
    let before = |x: &FaultEvent, y: &FaultEvent| x.end().is_some_and(|end| end <= y.at);
    a.on == b.on && a.fault.word() == b.fault.word() && !before(a, b) && !before(b, a)
}
