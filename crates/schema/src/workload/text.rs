//! The canonical text of a workload and its digest.

use serde::Serialize;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{SCHEMA, Traffic, Workload};

/// What follows the last field when there is no digest.
const END: &str = "\n}\n";

pub(super) fn with_digest(workload: &Workload) -> String {
    let body = body(workload);
    let digest = hex_digest(&[&body, END]);
    format!("{body},\n  \"sha256\": \"{digest}\"{END}")
}

pub(super) fn digest_of(workload: &Workload) -> String {
    hex_digest(&[&body(workload), END])
}

/// SHA-256 of the parts one after the other, in lower-case hexadecimal.
pub(super) fn hex_digest(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.as_bytes());
    }
    hash.finalize().iter().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

/// The canonical text up to the last field before the digest.
fn body(workload: &Workload) -> String {
    let mut text = format!("{{\n  \"schema\": {}", json(&SCHEMA));
    let mut field = |name: &str, value: String| {
        // Writing to a string cannot fail.
        let _ = write!(text, ",\n  \"{name}\": {value}");
    };
    field("name", json(&workload.name));
    field("seed", workload.seed.to_string());
    // Sorted, so that the bytes do not depend on how the map type keeps its keys.
    let generator: BTreeMap<_, _> = workload.generator.iter().collect();
    field("generator", json(&generator));
    field("apis", lines(workload.apis.iter().map(json)));
    match &workload.traffic {
        Traffic::Drawn(drawn) => {
            // Left out when there is none: files of before this field keep their bytes.
            if drawn.size_cv != 0.0 {
                field("size_cv", json(&drawn.size_cv));
            }
            field("runs", drawn.runs.to_string());
            field("order", json(&drawn.order));
            field("arrivals", json(&drawn.arrivals));
        }
        Traffic::Listed(requests) => {
            let listed = requests.iter().map(|request| {
                json(&Line {
                    at_us: request.at_us,
                    api: &workload.apis[request.api as usize].id,
                    task_size_mi: request.task_size_mi,
                })
            });
            field("requests", lines(listed));
        }
    }
    text
}

/// One request as it stands in the file.
#[derive(Serialize)]
struct Line<'a> {
    at_us: u64,
    api: &'a str,
    task_size_mi: f64,
}

/// A list with one item a line.
fn lines(items: impl Iterator<Item = String>) -> String {
    let mut text = String::from("[");
    for (i, item) in items.enumerate() {
        let separator = if i == 0 { "" } else { "," };
        let _ = write!(text, "{separator}\n    {item}");
    }
    text.push_str("\n  ]");
    text
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("plain data always serializes")
}
