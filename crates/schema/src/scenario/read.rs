//! Reads a scenario file; every finding names its place and bound.

use super::{Api, MAX_APIS, MAX_BYTES, MAX_CPU_WEIGHTS, SCHEMA, Scenario};
use crate::fault::Timeline;
use crate::json::{Document, Node, Object};
use crate::problem::{Findings, Problems};
use serde_json::Value;
use std::ops::RangeInclusive;

/// The text form of a JSON value: a string itself, a number as written, a list joined by commas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text(pub String);

impl Text {
    /// `None` for anything but text, numbers and lists of them.
    pub fn of(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) => Some(Self(text.clone())),
            Value::Number(number) => Some(Self(number.to_string())),
            Value::Array(items) => {
                let items: Option<Vec<String>> =
                    items.iter().map(|i| Self::of(i).map(|t| t.0)).collect();
                items.map(|i| Self(i.join(",")))
            }
            Value::Null | Value::Bool(_) | Value::Object(_) => None,
        }
    }
}

impl Scenario {
    /// Reads a scenario file; `source` is its name in messages.
    ///
    /// # Errors
    /// Every finding with its place, field and bound, in the order of reading.
    pub fn parse(source: &str, text: &str) -> Result<Self, Problems> {
        let document = Document::within(source, text, MAX_BYTES)?;
        let root = document.root()?;
        Self::read(document, &root)
    }

    /// Reads a scenario that is a part of another document.
    ///
    /// # Errors
    /// As for [`Scenario::parse`].
    pub fn read<'a>(document: Document<'a>, node: &Node<'a>) -> Result<Self, Problems> {
        let mut reader = Reader {
            document,
            findings: Findings::default(),
        };
        let scenario = reader.scenario(node);
        reader.findings.finish(scenario.unwrap_or_default())
    }
}

struct Reader<'a> {
    document: Document<'a>,
    findings: Findings,
}

impl<'a> Reader<'a> {
    fn scenario(&mut self, root: &Node<'a>) -> Option<Scenario> {
        let texts = || Scenario::FIELDS.into_iter().chain(Scenario::DRIFTS);
        let known: Vec<&str> = ["schema"]
            .into_iter()
            .chain(texts())
            .chain(["apis", "faults"])
            .collect();
        let object = self.document.object(root, &known, &mut self.findings)?;
        if let Some(node) = object.field("schema") {
            let schema: Option<String> = self.document.value(&node, "a string", &mut self.findings);
            if schema.is_some_and(|s| s != SCHEMA) {
                let problem = self
                    .document
                    .problem(&node, "not a scenario of a known version");
                self.findings.push(problem.allowed(SCHEMA));
            }
        }
        let mut scenario = Scenario::default();
        for name in texts() {
            let Some(node) = object.field(name) else {
                continue;
            };
            let expected = "text, a number or a list of numbers";
            let value: Option<Value> = self.document.value(&node, expected, &mut self.findings);
            // Models are several texts, not one text with commas.
            let texts: Option<Vec<Text>> = match &value {
                Some(Value::Array(items)) if name == "model" => {
                    items.iter().map(Text::of).collect()
                }
                other => other.as_ref().and_then(Text::of).map(|text| vec![text]),
            };
            let Some(texts) = texts else {
                let problem = self.document.problem(&node, format!("expected {expected}"));
                self.findings.push(problem);
                continue;
            };
            for Text(text) in texts {
                let found = scenario.set(name, name, &text).err();
                for found in found.iter().flat_map(Problems::list) {
                    let problem = self.document.problem(&node, found.what.clone());
                    self.findings.push(problem.allowed(found.allowed.clone()));
                }
            }
        }
        if let Some(node) = object.field("apis") {
            scenario.apis = self.apis(&node).unwrap_or_default();
        }
        if let Some(node) = object.field("faults") {
            // Read in place, so that findings name their line of this file.
            match Timeline::read(self.document, &node) {
                Ok(timeline) => scenario.faults = Some(timeline),
                Err(problems) => problems
                    .list()
                    .iter()
                    .for_each(|p| self.findings.push(p.clone())),
            }
        }
        Some(scenario)
    }

    fn apis(&mut self, node: &Node<'a>) -> Option<Vec<Api>> {
        let items = self.document.array(node, &mut self.findings)?;
        if !(1..=MAX_APIS).contains(&items.len()) {
            let problem = self.document.problem(node, format!("{} APIs", items.len()));
            self.findings
                .push(problem.allowed(format!("1 to {MAX_APIS}")));
            return None;
        }
        let read = items.iter().enumerate();
        let apis: Vec<Api> = read.filter_map(|(i, item)| self.api(i, item)).collect();
        let mut weights: Vec<u64> = apis.iter().map(|a| a.cpu_weight.to_bits()).collect();
        weights.sort_unstable();
        weights.dedup();
        if weights.len() > MAX_CPU_WEIGHTS {
            let what = format!("{} different values of cpu_weight", weights.len());
            let problem = self.document.problem(node, what);
            self.findings
                .push(problem.allowed(format!("up to {MAX_CPU_WEIGHTS}")));
        }
        Some(apis)
    }

    fn api(&mut self, index: usize, node: &Node<'a>) -> Option<Api> {
        let known = ["id", "method", "url", "mean_mi", "share", "cpu_weight"];
        let object = self.document.object(node, &known, &mut self.findings)?;
        let text = |this: &mut Self, name: &str, default: String| match object.field(name) {
            None => Some(default),
            Some(node) => this.document.value(&node, "a string", &mut this.findings),
        };
        let id = text(self, "id", format!("api-{:03}", index + 1));
        let method = text(self, "method", "GET".into());
        let url = text(self, "url", format!("/api/{}", index + 1));
        let mean_mi = self.number(&object, "mean_mi", &(1e-3..=1e9), None);
        let share = self.number(&object, "share", &(1e-9..=1e9), Some(1.0));
        let cpu_weight = self.number(&object, "cpu_weight", &(1e-3..=1e6), Some(1.0));
        Some(Api {
            id: id?,
            method: method?,
            url: url?,
            mean_mi: mean_mi?,
            share: share?,
            cpu_weight: cpu_weight?,
        })
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
        let problem = self.document.problem(&node, "out of range");
        let allowed = format!("{} to {}", bounds.start(), bounds.end());
        self.findings.push(problem.allowed(allowed));
        None
    }
}
