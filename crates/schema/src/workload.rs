//! The workload file: which APIs exist, how large their tasks are, how often and when they are called.
//!
//! JSON, versioned ([`SCHEMA`]), with a digest of its own text, so that a result can name exactly
//! the file it came from. [`Workload::parse`] reports every finding with its place;
//! [`Workload::to_text`] writes the one canonical form. The due times are not in the file: they
//! expand from the seed, see [`crate::schedule`].

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::str::FromStr;

use crate::json::{Document, Node, Object};
use crate::problem::{Findings, Problem, Problems, nearest};

/// Value of the `schema` field.
pub const SCHEMA: &str = "plumbline.workload/1";
/// Longest workload file, bytes.
pub const MAX_BYTES: usize = 64 * 1024 * 1024;
/// Most APIs of a workload.
pub const MAX_APIS: usize = 100_000;
/// Most requests of a workload.
pub const MAX_REQUESTS: u64 = 10_000_000;
/// Smallest and largest task, in millions of instructions.
pub const TASK_SIZE_MI: std::ops::RangeInclusive<f64> = 1.0..=100_000.0;
/// Longest request target, bytes.
pub const MAX_URL_BYTES: usize = 2048;
/// Longest API id and workload name, bytes.
pub const MAX_NAME_BYTES: usize = 128;
/// Longest constant gap: one hour, in milliseconds.
pub const MAX_INTERVAL_MS: f64 = 3_600_000.0;
/// Highest rate, requests a second.
pub const MAX_RATE_RPS: f64 = 1_000_000.0;

const FIELDS: [&str; 9] = [
    "schema",
    "name",
    "seed",
    "generator",
    "apis",
    "runs",
    "order",
    "arrivals",
    "sha256",
];

/// The methods a workload may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    /// Read.
    Get,
    /// Create.
    Post,
    /// Replace.
    Put,
    /// Remove.
    Delete,
    /// Change.
    Patch,
}

impl Method {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Get, Self::Post, Self::Put, Self::Delete, Self::Patch];

    /// As it stands in a request line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Delete => "DELETE",
            Self::Patch => "PATCH",
        }
    }

    /// True for the methods whose requests carry a body here.
    pub fn has_body(self) -> bool {
        matches!(self, Self::Post | Self::Put | Self::Patch)
    }
}

impl FromStr for Method {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|m| m.as_str() == text)
            .ok_or_else(|| {
                let known = Self::ALL.map(Self::as_str);
                match nearest(&text.to_uppercase(), known) {
                    Some(near) => format!("unknown method; did you mean \"{near}\"?"),
                    None => "unknown method".to_string(),
                }
            })
    }
}

/// One API: a method, a target and the work a call of it takes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Api {
    /// Name in rows and logs; unique.
    pub id: String,
    /// HTTP method.
    pub method: Method,
    /// Request target, beginning with a slash; unique together with the method.
    pub url: String,
    /// Work, in millions of instructions.
    pub task_size_mi: f64,
}

/// In which order the calls come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// All runs of all APIs in one seeded shuffle.
    Shuffled,
    /// Each API once, then each again, `runs` times.
    Round,
    /// `runs` calls of the first API, then of the second, and so on.
    Sequential,
}

impl Order {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Shuffled, Self::Round, Self::Sequential];

    /// As it stands in the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Shuffled => "shuffled",
            Self::Round => "round",
            Self::Sequential => "sequential",
        }
    }
}

impl FromStr for Order {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|o| o.as_str() == text)
            .ok_or_else(|| "unknown order".to_string())
    }
}

/// The arrival process: a pure function of the seed, the same for every strategy.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(tag = "process", rename_all = "lowercase")]
pub enum Arrivals {
    /// One request every `interval_ms` milliseconds, the first at time 0.
    Constant {
        /// Gap, in milliseconds.
        interval_ms: f64,
    },
    /// Independent exponential gaps.
    Poisson {
        /// Mean rate, requests a second.
        rate_rps: f64,
    },
}

impl Arrivals {
    const PROCESSES: [&'static str; 2] = ["constant", "poisson"];

    /// Mean gap between requests, in milliseconds.
    pub fn mean_gap_ms(&self) -> f64 {
        match self {
            Self::Constant { interval_ms } => *interval_ms,
            Self::Poisson { rate_rps } => 1000.0 / rate_rps,
        }
    }
}

/// A workload. Made by [`Workload::parse`] or, whole, by a generator that keeps the bounds.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// What it is called.
    pub name: String,
    /// Root of every random stream.
    pub seed: u64,
    /// The arguments that made it; kept as they are.
    pub generator: serde_json::Map<String, serde_json::Value>,
    /// The APIs.
    pub apis: Vec<Api>,
    /// Calls of each API.
    pub runs: u32,
    /// Order of the calls.
    pub order: Order,
    /// When they come.
    pub arrivals: Arrivals,
    /// Digest of the file without its `sha256` field, in lower-case hexadecimal.
    pub sha256: String,
}

impl Workload {
    /// Reads a workload file; `source` is its name in messages.
    ///
    /// # Errors
    /// Every finding with its place, field and bound, in the order of reading.
    pub fn parse(source: &str, text: &str) -> Result<Self, Problems> {
        if text.len() > MAX_BYTES {
            let bytes = text.len().to_string();
            return Err(Problem::new("size", bytes, "file too large")
                .in_source(source)
                .allowed(format!("{MAX_BYTES} bytes"))
                .into());
        }
        Reader {
            document: Document { source, text },
            findings: Findings::default(),
        }
        .workload()
    }

    /// Requests of the whole schedule.
    pub fn requests(&self) -> u64 {
        self.apis.len() as u64 * u64::from(self.runs)
    }

    /// Mean task size over the APIs, which is that of the schedule, in millions of instructions.
    pub fn mean_task_size_mi(&self) -> f64 {
        self.apis.iter().map(|a| a.task_size_mi).sum::<f64>() / self.apis.len() as f64
    }

    /// The canonical text with its digest; the same workload gives the same bytes everywhere.
    pub fn to_text(&self) -> String {
        let body = self.body_text();
        let digest = hex_digest(&[&body, "\n}\n"]);
        format!("{body},\n  \"sha256\": \"{digest}\"\n}}\n")
    }

    /// Sets [`Workload::sha256`] to the digest of the canonical text.
    #[must_use]
    pub fn sealed(mut self) -> Self {
        self.sha256 = hex_digest(&[&self.body_text(), "\n}\n"]);
        self
    }

    /// The canonical text up to the last field before the digest.
    fn body_text(&self) -> String {
        fn json(value: &impl Serialize) -> String {
            serde_json::to_string(value).expect("plain data always serializes")
        }
        let mut text = String::from("{\n");
        let mut field = |name: &str, value: String| {
            let separator = if name == "schema" { "" } else { ",\n" };
            // Writing to a string cannot fail.
            let _ = write!(text, "{separator}  \"{name}\": {value}");
        };
        field("schema", json(&SCHEMA));
        field("name", json(&self.name));
        field("seed", self.seed.to_string());
        // Sorted, so that the bytes do not depend on how the map type keeps its keys.
        let generator: BTreeMap<_, _> = self.generator.iter().collect();
        field("generator", json(&generator));
        let apis: Vec<String> = self
            .apis
            .iter()
            .map(|a| format!("    {}", json(a)))
            .collect();
        field("apis", format!("[\n{}\n  ]", apis.join(",\n")));
        field("runs", self.runs.to_string());
        field("order", json(&self.order));
        field("arrivals", json(&self.arrivals));
        text
    }
}

fn hex_digest(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.as_bytes());
    }
    hash.finalize().iter().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

struct Reader<'a> {
    document: Document<'a>,
    findings: Findings,
}

impl<'a> Reader<'a> {
    fn workload(mut self) -> Result<Workload, Problems> {
        let root = self.document.root()?;
        let Some(object) = self.document.object(&root, &FIELDS, &mut self.findings) else {
            return self.findings.finish(()).map(|()| unreachable!("a finding"));
        };
        self.schema(&object);
        let name = self.name(&object, "name");
        let seed = self.required(&object, "seed", "a whole number from 0 to 2^64-1");
        let generator = match object.field("generator") {
            None => Some(serde_json::Map::new()),
            Some(node) => self.document.value(&node, "an object", &mut self.findings),
        };
        let apis = self.apis(&object);
        let runs = self.runs(&object, apis.as_ref().map_or(1, Vec::len));
        let order = self.word::<Order>(&object, "order", &Order::ALL.map(Order::as_str));
        let arrivals = self.arrivals(&object);
        let sha256 = self.digest(&object);
        let (Some(name), Some(seed), Some(generator), Some(apis)) = (name, seed, generator, apis)
        else {
            return self.findings.finish(()).map(|()| unreachable!("a finding"));
        };
        let (Some(runs), Some(order), Some(arrivals)) = (runs, order, arrivals) else {
            return self.findings.finish(()).map(|()| unreachable!("a finding"));
        };
        self.findings.finish(Workload {
            name,
            seed,
            generator,
            apis,
            runs,
            order,
            arrivals,
            sha256,
        })
    }

    fn required<T: serde::de::DeserializeOwned>(
        &mut self,
        object: &Object<'a>,
        name: &str,
        expected: &str,
    ) -> Option<T> {
        self.required_node(object, name, expected)
            .map(|(_, value)| value)
    }

    fn required_node<T: serde::de::DeserializeOwned>(
        &mut self,
        object: &Object<'a>,
        name: &str,
        expected: &str,
    ) -> Option<(Node<'a>, T)> {
        self.document
            .required(object, name, expected, &mut self.findings)
    }

    fn wrong(&mut self, node: &Node<'a>, what: &str, allowed: &str) {
        let problem = self.document.problem(node, what).allowed(allowed);
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
        bounds: &std::ops::RangeInclusive<f64>,
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

    fn apis(&mut self, object: &Object<'a>) -> Option<Vec<Api>> {
        let Some(node) = object.field("apis") else {
            let problem = self.document.missing(object, "apis");
            self.findings.push(problem);
            return None;
        };
        let items = self.document.array(&node, &mut self.findings)?;
        if !(1..=MAX_APIS).contains(&items.len()) {
            let count = format!("{} APIs", items.len());
            self.wrong(&node, &count, &format!("1 to {MAX_APIS}"));
            return None;
        }
        let mut ids = BTreeMap::new();
        let mut targets = BTreeMap::new();
        let mut apis = Vec::with_capacity(items.len());
        for (i, item) in items.iter().enumerate() {
            let Some(api) = self.api(item) else { continue };
            if let Some(first) = ids.insert(api.id.clone(), i) {
                let what = format!("duplicate API: the id is that of apis[{first}]");
                let problem = self.document.problem(item, what).next("rename one");
                self.findings.push(problem);
            }
            if let Some(first) = targets.insert((api.method, api.url.clone()), i) {
                let what = format!("duplicate API: method and url are those of apis[{first}]");
                let problem = self.document.problem(item, what).next("remove one");
                self.findings.push(problem);
            }
            apis.push(api);
        }
        Some(apis)
    }

    fn api(&mut self, node: &Node<'a>) -> Option<Api> {
        let known = ["id", "method", "url", "task_size_mi"];
        let object = self.document.object(node, &known, &mut self.findings)?;
        let id = self.name(&object, "id");
        let method = self.word::<Method>(&object, "method", &Method::ALL.map(Method::as_str));
        let url = self.url(&object);
        let task_size_mi = self.number(&object, "task_size_mi", &TASK_SIZE_MI);
        Some(Api {
            id: id?,
            method: method?,
            url: url?,
            task_size_mi: task_size_mi?,
        })
    }

    fn url(&mut self, object: &Object<'a>) -> Option<String> {
        let (node, url) = self.required_node::<String>(object, "url", "a string")?;
        match url_fault(&url) {
            None => Some(url),
            Some(what) => {
                let allowed = format!("/path of printable ASCII, up to {MAX_URL_BYTES} bytes");
                self.wrong(&node, what, &allowed);
                None
            }
        }
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

    fn arrivals(&mut self, object: &Object<'a>) -> Option<Arrivals> {
        let Some(node) = object.field("arrivals") else {
            let problem = self.document.missing(object, "arrivals");
            self.findings.push(problem);
            return None;
        };
        let known = ["process", "interval_ms", "rate_rps"];
        let arrivals = self.document.object(&node, &known, &mut self.findings)?;
        let (process_node, process) =
            self.required_node::<String>(&arrivals, "process", "a string")?;
        let (field, other, value) = match process.as_str() {
            "constant" => ("interval_ms", "rate_rps", 1e-3..=MAX_INTERVAL_MS),
            "poisson" => ("rate_rps", "interval_ms", 1e-3..=MAX_RATE_RPS),
            _ => {
                let known = Arrivals::PROCESSES.join(", ");
                self.wrong(&process_node, "unknown arrival process", &known);
                return None;
            }
        };
        if let Some(stray) = arrivals.field(other) {
            let what = format!("not a field of {process} arrivals");
            self.wrong(&stray, &what, field);
        }
        let value = self.number(&arrivals, field, &value)?;
        Some(if field == "interval_ms" {
            Arrivals::Constant { interval_ms: value }
        } else {
            Arrivals::Poisson { rate_rps: value }
        })
    }

    /// The digest of the text without its `sha256` field; a field that disagrees is a finding.
    fn digest(&mut self, object: &Object<'a>) -> String {
        let text = self.document.text;
        let Some(node) = object.field("sha256") else {
            return hex_digest(&[text]);
        };
        let value = self.document.span(&node);
        let before = text[..value.start].trim_end().trim_end_matches(':');
        let before = before.trim_end();
        let before = before.strip_suffix("\"sha256\"").unwrap_or(before);
        let after = &text[value.end..];
        let digest = match (before.trim_end().strip_suffix(','), after.trim_start()) {
            (Some(before), _) => hex_digest(&[before, after]),
            (None, rest) => hex_digest(&[before, rest.strip_prefix(',').unwrap_or(rest)]),
        };
        let stated: Option<String> = self.document.value(&node, "a string", &mut self.findings);
        if stated.is_some_and(|s| s != digest) {
            let what = "the file was changed after it was written";
            let problem = self
                .document
                .problem(&node, what)
                .allowed(digest.clone())
                .next("generate it again or delete the sha256 field");
            self.findings.push(problem);
        }
        digest
    }
}

/// What is wrong with a request target, if anything.
fn url_fault(url: &str) -> Option<&'static str> {
    if !url.starts_with('/') {
        Some("does not start with a slash")
    } else if url.len() > MAX_URL_BYTES {
        Some("too long")
    } else if url.bytes().any(|b| b.is_ascii_control()) {
        Some("has control characters")
    } else if !url.bytes().all(|b| b.is_ascii_graphic()) || url.contains(['#', '"', '<', '>', '\\'])
    {
        Some("has characters that must be percent-encoded")
    } else {
        None
    }
}

#[cfg(test)]
mod tests;
