//! Reads a workload file; every finding names its place, field and bound.

use serde::de::DeserializeOwned;
use std::ops::RangeInclusive;
use std::str::FromStr;

use super::{
    Api, Drawn, MAX_BYTES, MAX_NAME_BYTES, MAX_REQUESTS, MAX_SPAN_MS, Order, SCHEMA, SIZE_CV,
    Traffic, Workload,
};
use crate::json::{Document, Node, Object};
use crate::laws::sizes::{SizeLaw, noise_fits};
use crate::problem::{Findings, Problem, Problems};

mod apis;
mod arrivals;
mod digest;
mod requests;

const FIELDS: [&str; 11] = [
    "schema",
    "name",
    "seed",
    "generator",
    "apis",
    "size_cv",
    "runs",
    "order",
    "arrivals",
    "requests",
    "sha256",
];
/// The fields of drawn traffic, which a list of requests takes the place of.
const DRAWN: [&str; 4] = ["size_cv", "runs", "order", "arrivals"];

pub(super) fn workload(source: &str, text: &str) -> Result<Workload, Problems> {
    let mut reader = Reader {
        document: Document::within(source, text, MAX_BYTES)?,
        findings: Findings::default(),
    };
    let root = reader.document.root()?;
    match reader.workload(&root) {
        Some(workload) => reader.findings.finish(workload),
        None => Err(reader.refused()),
    }
}

struct Reader<'a> {
    document: Document<'a>,
    findings: Findings,
}

impl<'a> Reader<'a> {
    /// The findings of a file that gave no workload.
    fn refused(self) -> Problems {
        let source = self.document.source;
        match self.findings.finish(()) {
            Err(problems) => problems,
            Ok(()) => Problem::new("", "", "not a workload")
                .in_source(source)
                .into(),
        }
    }

    /// The workload, or `None` after a finding without which there is none.
    fn workload(&mut self, root: &Node<'a>) -> Option<Workload> {
        let object = self.document.object(root, &FIELDS, &mut self.findings)?;
        self.schema(&object);
        let name = self.name(&object, "name");
        let seed = self.required(&object, "seed", "a whole number from 0 to 2^64-1");
        let generator = match object.field("generator") {
            None => Some(serde_json::Map::new()),
            Some(node) => self.document.value(&node, "an object", &mut self.findings),
        };
        let apis = self.apis(&object);
        let traffic = self.traffic(&object, apis.as_deref());
        let sha256 = self.digest(&object);
        Some(Workload {
            name: name?,
            seed: seed?,
            generator: generator?,
            apis: apis?,
            traffic: traffic?,
            sha256,
        })
    }

    fn traffic(&mut self, object: &Object<'a>, apis: Option<&[Api]>) -> Option<Traffic> {
        let Some(listed) = object.field("requests") else {
            return self.drawn(object, apis).map(Traffic::Drawn);
        };
        for name in DRAWN {
            if let Some(stray) = object.field(name) {
                self.note(
                    &stray,
                    "not a field of a workload with requests",
                    "remove one of them",
                );
            }
        }
        // Without the APIs every id would be a finding.
        self.requests(&listed, apis?).map(Traffic::Listed)
    }

    fn drawn(&mut self, object: &Object<'a>, apis: Option<&[Api]>) -> Option<Drawn> {
        let size_cv = match object.field("size_cv") {
            None => Some(0.0),
            Some(node) => self.size_cv(object, &node, apis.unwrap_or_default()),
        };
        let runs = self.runs(object, apis.map_or(1, <[_]>::len));
        let order = self.word::<Order>(object, "order", &Order::ALL.map(Order::as_str));
        let (node, arrivals) = self.arrivals(object)?;
        let drawn = Drawn {
            runs: runs?,
            order: order?,
            arrivals,
            size_cv: size_cv?,
        };
        let requests = apis.map_or(1, <[_]>::len) as u64 * u64::from(drawn.runs);
        let span_ms = drawn.arrivals.span_ms(requests);
        if span_ms > MAX_SPAN_MS {
            let what = format!("{requests} requests would take {span_ms:.0} ms");
            self.wrong(&node, &what, &format!("up to {MAX_SPAN_MS} ms"));
        }
        Some(drawn)
    }

    fn size_cv(&mut self, object: &Object<'a>, node: &Node<'a>, apis: &[Api]) -> Option<f64> {
        let size_cv = self.number(object, "size_cv", &SIZE_CV)?;
        let noise = SizeLaw::log_normal(size_cv);
        let unfit = |api: &&Api| size_cv > 0.0 && !noise_fits(api.task_size_mi, &noise);
        if let Some(api) = apis.iter().find(unfit) {
            let what = format!(
                "too wide for {}: more than one in a thousand of its requests would leave the bounds \
                 of a task size",
                api.id
            );
            self.note(
                node,
                &what,
                "lower it or move that API's size away from its bound",
            );
            return None;
        }
        Some(size_cv)
    }

    fn required<T: DeserializeOwned>(
        &mut self,
        object: &Object<'a>,
        name: &str,
        expected: &str,
    ) -> Option<T> {
        self.required_node(object, name, expected)
            .map(|(_, value)| value)
    }

    fn required_node<T: DeserializeOwned>(
        &mut self,
        object: &Object<'a>,
        name: &str,
        expected: &str,
    ) -> Option<(Node<'a>, T)> {
        self.document
            .required(object, name, expected, &mut self.findings)
    }

    /// A finding with its bound.
    fn wrong(&mut self, node: &Node<'a>, what: &str, allowed: &str) {
        let problem = self.document.problem(node, what).allowed(allowed);
        self.findings.push(problem);
    }

    /// A finding with what to do next.
    fn note(&mut self, node: &Node<'a>, what: &str, next_step: &str) {
        let problem = self.document.problem(node, what).next(next_step);
        self.findings.push(problem);
    }

    fn schema(&mut self, object: &Object<'a>) {
        if let Some((node, schema)) = self.required_node::<String>(object, "schema", "a string")
            && schema != SCHEMA
        {
            self.wrong(&node, "not a workload of a known version", SCHEMA);
        }
    }

    fn name(&mut self, object: &Object<'a>, field: &str) -> Option<String> {
        let (node, name) = self.required_node::<String>(object, field, "a string")?;
        let good = (1..=MAX_NAME_BYTES).contains(&name.len()) && !name.contains(char::is_control);
        if !good {
            let allowed = format!("1 to {MAX_NAME_BYTES} bytes without control characters");
            self.wrong(&node, "not a usable name", &allowed);
        }
        good.then_some(name)
    }

    /// A string that is one of a few words.
    fn word<T: FromStr<Err = String>>(
        &mut self,
        object: &Object<'a>,
        field: &str,
        known: &[&str],
    ) -> Option<T> {
        let (node, word) = self.required_node::<String>(object, field, "a string")?;
        word.parse()
            .map_err(|what: String| self.wrong(&node, &what, &known.join(", ")))
            .ok()
    }

    /// A finite number within bounds.
    fn number(
        &mut self,
        object: &Object<'a>,
        field: &str,
        bounds: &RangeInclusive<f64>,
    ) -> Option<f64> {
        let (node, number) = self.required_node::<f64>(object, field, "a number")?;
        if bounds.contains(&number) {
            return Some(number);
        }
        let what = if number < *bounds.start() {
            "too small"
        } else {
            "too large"
        };
        let allowed = format!("{} to {}", bounds.start(), bounds.end());
        self.wrong(&node, what, &allowed);
        None
    }

    fn runs(&mut self, object: &Object<'a>, apis: usize) -> Option<u32> {
        let (node, runs) = self.required_node::<u32>(object, "runs", "a whole number")?;
        let most = MAX_REQUESTS / apis.max(1) as u64;
        if (1..=most).contains(&u64::from(runs)) {
            return Some(runs);
        }
        let what = if runs == 0 {
            "the schedule would be empty"
        } else {
            "too many requests"
        };
        self.wrong(&node, what, &format!("1 to {most} with {apis} APIs"));
        None
    }
}
