//! The balancer's decision record, one response header: what it picked and what it knew then.
//!
//! `key=value` pairs separated by commas in the order of the fields below; what is unknown is left
//! out, so absent never reads as zero. The replay client copies it into its row.

use std::fmt;

use crate::headers::{MAX_TIMING_US, is_name};
use crate::load_report::MAX_VALUE;
use crate::problem::printable;

/// Longest header value that is read, bytes.
pub const MAX_BYTES: usize = 2048;
/// Longest spelling of a strategy, bytes.
const MAX_STRATEGY_BYTES: usize = 256;
/// No pick takes longer than a request may live.
const MAX_PICK_NS: u64 = 1000 * MAX_TIMING_US;
/// Why a backend that is barred was picked.
const MARKS: [&str; 2] = ["trial", "panic"];

/// What the balancer knew of the chosen backend at the pick.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Decision {
    /// Strategy, in its canonical spelling; commas inside are written as semicolons.
    pub strategy: Option<String>,
    /// Name of the chosen backend.
    pub container: Option<String>,
    /// Attempts made for the request.
    pub attempts: Option<u32>,
    /// How long the pick took, ns.
    pub pick_ns: Option<u64>,
    /// The balancer's own in_flight there, this request not counted.
    pub in_flight: Option<u32>,
    /// Requests the worker said it held.
    pub active_requests: Option<u32>,
    /// Mean latency of its last 50 responses, ms.
    pub mean_latency_ms_last_50: Option<f64>,
    /// Age of that statement, ms.
    pub stats_age_ms: Option<f64>,
    /// Configured cores.
    pub cores: Option<f64>,
    /// Configured memory, GB of 2^30 bytes.
    pub memory_gb: Option<f64>,
    /// CPU use, 100 = one core.
    pub cpu_percent: Option<f64>,
    /// Memory in use, MiB.
    pub memory_mib: Option<f64>,
    /// Predicted latency, ms.
    pub predicted_ms: Option<f64>,
    /// `trial` or `panic`, when the rules of ejection let it go to a backend they bar.
    pub mark: Option<String>,
}

impl Decision {
    /// Reads a header value, and says the first thing in it that cannot be true. Each such value is left
    /// out; unknown keys are ignored, so that an older client reads a newer balancer.
    pub fn read(header: &str) -> (Self, Option<String>) {
        let mut decision = Self::default();
        if header.len() > MAX_BYTES {
            let bytes = header.len();
            let what = format!("decision of {bytes} bytes is above {MAX_BYTES}");
            return (decision, Some(what));
        }
        let mut refused = None;
        for part in header.split(',').map(str::trim).filter(|p| !p.is_empty()) {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            if !decision.set(key, value) {
                refused.get_or_insert_with(|| format!("decision part \"{}\"", printable(part)));
            }
        }
        (decision, refused)
    }

    /// Takes a value, or says that it cannot be true.
    fn set(&mut self, key: &str, value: &str) -> bool {
        fn take<T>(field: &mut Option<T>, value: Option<T>) -> bool {
            let known = value.is_some();
            if known {
                *field = value;
            }
            known
        }
        let count = || value.parse().ok();
        let from = |least: f64| {
            let number = value.parse().ok();
            number.filter(|v| (least..=MAX_VALUE).contains(v))
        };
        let number = || from(0.0);
        match key {
            "strategy" => take(&mut self.strategy, spelling(value)),
            "container" => take(&mut self.container, word(value, is_name)),
            "attempts" => take(&mut self.attempts, count()),
            "pick_ns" => {
                let pick_ns = value.parse().ok().filter(|ns| *ns <= MAX_PICK_NS);
                take(&mut self.pick_ns, pick_ns)
            }
            "in_flight" => take(&mut self.in_flight, count()),
            "active_requests" => take(&mut self.active_requests, count()),
            "mean_latency_ms_last_50" => take(&mut self.mean_latency_ms_last_50, number()),
            "stats_age_ms" => take(&mut self.stats_age_ms, number()),
            "cores" => take(&mut self.cores, number()),
            "memory_gb" => take(&mut self.memory_gb, number()),
            "cpu_percent" => take(&mut self.cpu_percent, number()),
            "memory_mib" => take(&mut self.memory_mib, number()),
            // A model may expect less than nothing.
            "predicted_ms" => take(&mut self.predicted_ms, from(-MAX_VALUE)),
            "mark" => take(&mut self.mark, word(value, |v| MARKS.contains(&v))),
            _ => true,
        }
    }
}

fn word(value: &str, good: impl Fn(&str) -> bool) -> Option<String> {
    good(value).then(|| value.to_string())
}

/// A strategy as the registry spells it: a name, then keys and values.
fn spelling(value: &str) -> Option<String> {
    let fine = |b: u8| b.is_ascii_alphanumeric() || b"._:=;-".contains(&b);
    let good = (1..=MAX_STRATEGY_BYTES).contains(&value.len())
        && value.starts_with(|c: char| c.is_ascii_lowercase())
        && value.bytes().all(fine);
    good.then(|| value.replace(';', ","))
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        let mut put = |f: &mut fmt::Formatter<'_>, key: &str, value: &dyn fmt::Display| {
            write!(f, "{separator}{key}={value}")?;
            separator = ",";
            Ok(())
        };
        macro_rules! fields {
            ($($field:ident),*) => {$(
                if let Some(value) = &self.$field {
                    put(f, stringify!($field), value)?;
                }
            )*};
        }
        if let Some(strategy) = &self.strategy {
            put(f, "strategy", &strategy.replace(',', ";"))?;
        }
        fields!(
            container,
            attempts,
            pick_ns,
            in_flight,
            active_requests,
            mean_latency_ms_last_50,
            stats_age_ms,
            cores,
            memory_gb,
            cpu_percent,
            memory_mib,
            predicted_ms,
            mark
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Decision;

    #[test]
    fn a_decision_reads_what_it_prints() {
        let decision = Decision {
            strategy: Some("weighted-least-request:offset=0,ties=smooth".into()),
            container: Some("a".into()),
            attempts: Some(1),
            pick_ns: Some(210),
            in_flight: Some(3),
            stats_age_ms: Some(43.125),
            cores: Some(4.0),
            memory_gb: Some(12.0),
            ..Decision::default()
        };
        let text = "strategy=weighted-least-request:offset=0;ties=smooth,container=a,attempts=1,\
                    pick_ns=210,in_flight=3,stats_age_ms=43.125,cores=4,memory_gb=12";
        assert_eq!(decision.to_string(), text);
        assert_eq!(Decision::read(text), (decision, None));
    }

    #[test]
    fn a_value_that_cannot_be_true_is_left_out_and_said_and_the_others_stay() {
        for bad in [
            "attempts=-1",
            "attempts",
            "attempts=4294967296",
            "pick_ns=86400000000001",
            "in_flight=1.5",
            "cores=NaN",
            "cores=inf",
            "cores=-inf",
            "memory_gb=-1",
            "memory_mib=1e300",
            "predicted_ms=1e13",
            "predicted_ms=-inf",
            "cpu_percent=",
            "container==1+1",
            "container=@sum",
            "container=\u{1b}[31m",
            "container=a b",
            "strategy==HYPERLINK(\"x\")",
            "strategy=+1",
            "strategy=a\tb",
            "mark=maybe",
        ] {
            let (decision, refused) = Decision::read(&format!("in_flight=3,{bad},cores=2"));
            let expected = Decision {
                in_flight: Some(3),
                cores: Some(2.0),
                ..Decision::default()
            };
            assert_eq!(decision, expected, "{bad}");
            let refused = refused.expect(bad);
            let key = bad.split('=').next().unwrap_or_default();
            assert!(refused.contains(key), "{bad}: {refused}");
            assert!(!refused.contains(char::is_control), "{refused}");
        }
        let long = format!("container={}", "x".repeat(65));
        assert!(Decision::read(&long).1.is_some());
        let (decision, refused) = Decision::read(&"x=1,".repeat(1000));
        assert!(decision == Decision::default() && refused.is_some());
    }

    #[test]
    fn keys_of_a_later_balancer_are_ignored() {
        assert_eq!(Decision::read("later=1"), (Decision::default(), None));
        assert_eq!(Decision::read(""), (Decision::default(), None));
    }
}
