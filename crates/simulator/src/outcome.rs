//! How one request ended, and what its answer said about it.

use http::HeaderMap;
use schema::decision::Decision;
use schema::headers::{self, WorkerTiming, is_name};
use schema::problem::printable;

/// Exactly one of these is the fate of every scheduled request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fate {
    /// A complete answer of status 200 to 399 and the right length.
    Ok,
    /// A complete answer of another status, or no complete answer; with the reason.
    Error(String),
    /// The client's own limit passed.
    Timeout,
    /// The client cut it itself.
    Cancelled,
    /// No send was begun; with the reason.
    NeverSent(&'static str),
}

impl Fate {
    /// The `error` column of the row; empty when all went well.
    pub(crate) fn column(&self) -> String {
        match self {
            Self::Ok => String::new(),
            Self::Error(reason) => format!("error:{reason}"),
            Self::Timeout => "timeout".into(),
            Self::Cancelled => "cancelled".into(),
            Self::NeverSent(why) => format!("never_sent:{why}"),
        }
    }
}

/// Reasons why a request was never sent.
pub(crate) mod never_sent {
    /// As many requests as allowed were in flight.
    pub(crate) const MAX_IN_FLIGHT: &str = "max_in_flight";
    /// The run was interrupted.
    pub(crate) const INTERRUPTED: &str = "interrupted";
    /// The rows could no longer be written.
    pub(crate) const ABORTED: &str = "aborted";
    /// The operating system had no socket left.
    pub(crate) const NO_SOCKET: &str = "no_socket";
}

/// What the head of the answer told.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Head {
    pub(crate) status: u16,
    pub(crate) container: Option<String>,
    pub(crate) attempts: Option<u32>,
    pub(crate) reason: Option<String>,
    pub(crate) decision: Decision,
    pub(crate) timing: Option<WorkerTiming>,
    /// The first value that was left out because it cannot be true.
    pub(crate) refused: Option<String>,
}

impl Head {
    /// Reads the headers of an answer; what cannot be true counts as unknown.
    pub(crate) fn read(status: u16, headers: &HeaderMap) -> Self {
        let mut values = Values {
            headers,
            refused: None,
        };
        let name = |v: &str| is_name(v).then(|| v.to_string());
        let reason = |v: &str| is_reason(v).then(|| v.to_string());
        let container = values.value(headers::CONTAINER, name);
        let attempts = values.value(headers::ATTEMPTS, |v| v.parse().ok());
        let reason = values.value(headers::REASON, reason);
        let timing = values.value(headers::WORKER_TIMING, WorkerTiming::parse);
        let (decision, refused) = values
            .value(headers::DECISION, |v| Some(Decision::read(v)))
            .unwrap_or_default();
        Self {
            status,
            container: container.or_else(|| decision.container.clone()),
            attempts: attempts.or(decision.attempts),
            reason,
            timing,
            decision,
            refused: values.refused.or(refused),
        }
    }

    /// The fate of a request whose answer arrived completely.
    pub(crate) fn fate(&self) -> Fate {
        if (200..400).contains(&self.status) {
            Fate::Ok
        } else {
            // A server that is not our balancer gives no reason; the status column says the rest.
            Fate::Error(self.reason.clone().unwrap_or_else(|| "status".into()))
        }
    }
}

/// The headers of one answer, and the first value among them that cannot be true.
struct Values<'a> {
    headers: &'a HeaderMap,
    refused: Option<String>,
}

impl Values<'_> {
    fn value<T>(&mut self, name: &str, read: impl Fn(&str) -> Option<T>) -> Option<T> {
        let value = self.headers.get(name)?;
        let read = value.to_str().ok().and_then(read);
        if read.is_none() {
            let text = String::from_utf8_lossy(value.as_bytes());
            self.refused
                .get_or_insert_with(|| format!("{name}: {}", printable(&text)));
        }
        read
    }
}

/// Reasons are words such as `connect_refused`; anything else stays out of the rows.
fn is_reason(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

/// How one request ended. Stamps are ns after the run's time 0.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Outcome {
    /// Place in the schedule.
    pub(crate) seq: usize,
    pub(crate) intended_ns: u64,
    pub(crate) sent_ns: Option<u64>,
    pub(crate) first_byte_ns: Option<u64>,
    pub(crate) done_ns: Option<u64>,
    pub(crate) head: Option<Box<Head>>,
    pub(crate) fate: Fate,
}

impl Outcome {
    /// A request that was not sent.
    pub(crate) fn never_sent(seq: usize, intended_ns: u64, why: &'static str) -> Self {
        Self {
            seq,
            intended_ns,
            sent_ns: None,
            first_byte_ns: None,
            done_ns: None,
            head: None,
            fate: Fate::NeverSent(why),
        }
    }

    /// Time from the due time to the end, ns; known for whatever was sent.
    pub(crate) fn latency_ns(&self) -> Option<u64> {
        Some(self.done_ns?.saturating_sub(self.intended_ns))
    }

    /// How late the generator was, ns.
    pub(crate) fn lateness_ns(&self) -> Option<u64> {
        Some(self.sent_ns?.saturating_sub(self.intended_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::{Fate, Head};
    use http::{HeaderMap, HeaderName, HeaderValue};

    fn head(status: u16, pairs: &[(&'static str, &'static str)]) -> Head {
        let headers: HeaderMap = pairs
            .iter()
            .map(|(k, v)| (HeaderName::from_static(k), HeaderValue::from_static(v)))
            .collect();
        Head::read(status, &headers)
    }

    #[test]
    fn what_the_balancer_said_is_read_and_damage_counts_as_unknown() {
        let good = head(
            200,
            &[
                ("x-container", "b"),
                ("x-plumbline-attempts", "2"),
                ("x-plumbline-reason", "backend"),
                (
                    "x-plumbline-decision",
                    "container=b,pick_ns=300,in_flight=4,cores=3",
                ),
                ("x-worker-timing", "queue_wait_us=5,service_time_us=70"),
            ],
        );
        assert_eq!(good.container.as_deref(), Some("b"));
        assert_eq!(good.attempts, Some(2));
        assert_eq!(good.decision.pick_ns, Some(300));
        assert_eq!(good.timing.map(|t| t.service_time_us), Some(70));
        assert_eq!(good.fate(), Fate::Ok);
        assert_eq!(good.refused, None);

        let damaged = head(
            200,
            &[
                ("x-plumbline-decision", "pick_ns=many"),
                ("x-worker-timing", "soon"),
                ("x-plumbline-attempts", "-1"),
            ],
        );
        assert_eq!(
            damaged,
            Head {
                status: 200,
                refused: Some("x-plumbline-attempts: -1".into()),
                ..Head::default()
            }
        );
        for name in ["", "=1+1", "@sum", "a,b", "\"", "a b", "\t-1"] {
            let told = HeaderValue::from_static(name);
            let headers = HeaderMap::from_iter([(HeaderName::from_static("x-container"), told)]);
            let read = Head::read(200, &headers);
            assert_eq!(read.container, None, "{name}");
            assert!(read.refused.is_some(), "{name}");
        }
    }

    #[test]
    fn the_error_column_holds_the_balancers_reason_or_says_that_there_was_a_status() {
        let refused = head(502, &[("x-plumbline-reason", "connect_refused")]);
        assert_eq!(refused.fate().column(), "error:connect_refused");
        assert_eq!(head(500, &[]).fate().column(), "error:status");
        let odd = head(500, &[("x-plumbline-reason", "a,b \"c\"")]);
        assert_eq!(odd.fate().column(), "error:status");
        assert_eq!(head(399, &[]).fate().column(), "");
        assert_eq!(head(101, &[]).fate().column(), "error:status");
        assert_eq!(Fate::Timeout.column(), "timeout");
        assert_eq!(
            Fate::NeverSent("interrupted").column(),
            "never_sent:interrupted"
        );
    }
}
