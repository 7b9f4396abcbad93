//! Work left of the requests a worker holds, as `/stats` lists it and as the text of a response header:
//! `id=core_ms,...` in the order in which the worker serves them; empty when it holds none.

use crate::load_report::MAX_VALUE;
use serde::{Deserialize, Serialize};

/// Longest header value that is written and read, bytes; a longer list is only in `/stats`.
pub const MAX_BYTES: usize = 16 << 10;

/// Work left of one held job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct WorkLeft {
    /// The request's `x-request-id`.
    pub request_id: String,
    /// Core-milliseconds left at nominal speed.
    pub core_ms: f64,
}

/// The header's value; `None` if it would be longer than [`MAX_BYTES`].
pub fn to_header(jobs: &[WorkLeft]) -> Option<String> {
    let each = jobs
        .iter()
        .map(|job| format!("{}={}", job.request_id, job.core_ms));
    let text = each.collect::<Vec<_>>().join(",");
    (text.len() <= MAX_BYTES).then_some(text)
}

/// Reads the header's value. `None`, since a part of a line says nothing of its length, if anything in it
/// is no id with a number from 0 to [`MAX_VALUE`], or it is longer than [`MAX_BYTES`].
pub fn parse(header: &str) -> Option<Vec<WorkLeft>> {
    if header.len() > MAX_BYTES {
        return None;
    }
    let parts = header.split(',').filter(|_| !header.is_empty());
    let job = |part: &str| {
        let (id, number) = part.split_once('=')?;
        let core_ms = number
            .parse()
            .ok()
            .filter(|v| (0.0..=MAX_VALUE).contains(v))?;
        let request_id = id.to_string();
        (!id.is_empty()).then_some(WorkLeft {
            request_id,
            core_ms,
        })
    };
    parts.map(job).collect()
}

crate::objects!(WorkLeft);

#[cfg(test)]
mod tests {
    use super::{MAX_BYTES, WorkLeft, parse, to_header};
    use proptest::prelude::*;

    #[test]
    fn what_is_no_whole_list_says_nothing() {
        assert_eq!(parse(""), Some(Vec::new()));
        for text in [
            "a", "a=", "=1", "a=-1", "a=NaN", "a=inf", "a=1e13", "a=1,", ",a=1", "a=1,,b=2",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(parse(&format!("{}=1", "a".repeat(MAX_BYTES))), None);
    }

    proptest! {
        #[test]
        fn a_list_is_read_as_it_was_written(
            jobs in prop::collection::vec(("[A-Za-z0-9._-]{1,40}", 0.0..1e12), 0..40),
        ) {
            let jobs: Vec<WorkLeft> = jobs
                .into_iter()
                .map(|(request_id, core_ms)| WorkLeft { request_id, core_ms })
                .collect();
            let text = to_header(&jobs).expect("it is short");
            prop_assert_eq!(parse(&text), Some(jobs));
        }

        #[test]
        fn any_text_is_read_within_bounds_or_not_at_all(text in "[a-z=,.0-9einf+-]{0,60}") {
            for job in parse(&text).unwrap_or_default() {
                prop_assert!((0.0..=1e12).contains(&job.core_ms) && !job.request_id.is_empty());
            }
        }
    }
}
