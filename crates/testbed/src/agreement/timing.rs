//! What a recorded event log says of time: the order of the picks and when statistics came.

use std::collections::BTreeMap;

use schema::json::Fields;
use schema::report::Source;
use serde::Deserialize;

/// The parts of a log that the twin is given.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Log {
    /// First picks in order: place in the schedule, time in ns of the balancer's clock.
    picks: Vec<(u64, u64)>,
    /// Polls in order: backend, sample, arrival, ns.
    polls: Vec<(u32, u64, u64)>,
}

/// The clock of a recorded run as the twin can keep it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Timing {
    /// What is added to a client's stamp so that polls are sampled at multiples of the interval, ns.
    pub(crate) shift_ns: i64,
    /// Mean interval of the recorded polls, ns.
    pub(crate) interval_ns: u64,
    /// Median time from a poll's sample to its arrival, ns.
    pub(crate) fetch_ns: u64,
    /// Places in the schedule in the order of their picks.
    pub(crate) order: Vec<u64>,
}

/// The fields of a line that are looked at; reading all candidates of every pick takes far longer.
#[derive(Deserialize)]
struct Line {
    event: String,
    t_ns: Option<u64>,
    request_id: Option<String>,
    #[serde(default)]
    attempt: u32,
    backend: Option<u32>,
    report: Option<Fields<Sample>>,
}

#[derive(Deserialize)]
struct Sample {
    source: Source,
    sampled_at_ns: u64,
}

impl Log {
    /// Takes the lines of the log of `run_id`.
    ///
    /// # Errors
    /// The first line that is no event, by its number.
    pub(crate) fn read(run_id: &str, text: &str) -> Result<Self, String> {
        let mut log = Self::default();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        for (i, line) in whole.lines().enumerate() {
            let Fields(line): Fields<Line> =
                serde_json::from_str(line).map_err(|e| format!("line {}: {e}", i + 1))?;
            log.take(run_id, &line);
        }
        Ok(log)
    }

    fn take(&mut self, run_id: &str, line: &Line) {
        let Some(t_ns) = line.t_ns else { return };
        match (line.event.as_str(), &line.request_id, &line.report) {
            ("pick", Some(id), _) if line.attempt == 0 => {
                let seq = id
                    .strip_prefix(run_id)
                    .and_then(|rest| rest.strip_prefix('-'));
                let seq = seq.and_then(|seq| seq.parse().ok());
                self.picks.extend(seq.map(|seq: u64| (seq, t_ns)));
            }
            ("stats", _, Some(Fields(sample))) if sample.source == Source::Poll => {
                let backend = line.backend.unwrap_or_default();
                self.polls.push((backend, sample.sampled_at_ns, t_ns));
            }
            _ => {}
        }
    }

    /// The timing of a run whose requests were sent at `sent_ns` (by place, on the client's clock),
    /// with polls every `nominal_ns`. The offset between the two clocks is the median pick minus
    /// send. `None` when the log has no picks or polls.
    pub(crate) fn timing(&self, sent_ns: &BTreeMap<u64, u64>, nominal_ns: u64) -> Option<Timing> {
        let mut offsets: Vec<i64> = self
            .picks
            .iter()
            .filter_map(|(seq, at)| Some(*at as i64 - *sent_ns.get(seq)? as i64))
            .collect();
        offsets.sort_unstable();
        let offset_ns = *offsets.get(offsets.len() / 2)?;
        let (backend, first_ns, _) = *self.polls.first()?;
        let last_ns = self.polls.iter().rfind(|p| p.0 == backend)?.1;
        let mut fetches: Vec<u64> = self.polls.iter().map(|p| p.2.saturating_sub(p.1)).collect();
        fetches.sort_unstable();
        let span_ns = last_ns - first_ns;
        let intervals = (span_ns as f64 / nominal_ns as f64).round();
        Some(Timing {
            shift_ns: offset_ns - first_ns as i64,
            interval_ns: match intervals {
                0.0 => nominal_ns,
                _ => (span_ns as f64 / intervals).round() as u64,
            },
            fetch_ns: fetches[fetches.len() / 2],
            order: self.picks.iter().map(|(seq, _)| *seq).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Log, Timing};
    use std::collections::BTreeMap;

    const LOG: &str = r#"{"event":"start","schema":"plumbline.events/1","strategy":"round-robin","seed":1,"started_unix_ns":5,"poll_interval_ns":100,"protection":"plain","members":[]}
{"event":"stats","t_ns":1012,"backend":0,"report":{"source":"poll","sampled_at_ns":1002}}
{"event":"stats","t_ns":1020,"backend":1,"report":{"source":"poll","sampled_at_ns":1003}}
{"event":"pick","t_ns":1050,"dispatch":1,"request_id":"r-0","method":"GET","url":"/","class":0,"attempt":0,"backend":0,"candidates":[],"pick_ns":1}
{"event":"stats","t_ns":1099,"backend":0,"report":{"source":"piggyback","sampled_at_ns":1099}}
{"event":"stats","t_ns":1111,"backend":0,"report":{"source":"poll","sampled_at_ns":1103}}
{"event":"pick","t_ns":1160,"dispatch":2,"request_id":"r-2","method":"GET","url":"/","class":0,"attempt":0,"backend":1,"candidates":[],"pick_ns":1}
{"event":"pick","t_ns":1161,"dispatch":3,"request_id":"r-1","method":"GET","url":"/","class":0,"attempt":0,"backend":1,"candidates":[],"pick_ns":1}
{"event":"pick","t_ns":1162,"dispatch":4,"request_id":"r-1","method":"GET","url":"/","class":0,"attempt":1,"backend":1,"candidates":[],"pick_ns":1}
{"event":"stats","t_ns":1421,"backend":0,"report":{"source":"poll","sampled_at_ns":1406}}
{"event":"pick","t_ns":"cut off"#;

    #[test]
    fn order_clock_and_polls_are_those_of_the_log() {
        let log = Log::read("r", LOG).expect("a log");
        // Sent 45, 50 and 56 before the picks of 0, 2 and 1.
        let sent = BTreeMap::from([(0, 1005), (2, 1110), (1, 1105)]);
        let timing = log.timing(&sent, 100).expect("picks and polls");
        let expected = Timing {
            shift_ns: 50 - 1002,
            // One poll in between was lost: 404 over four intervals.
            interval_ns: 101,
            fetch_ns: 15,
            order: vec![0, 2, 1],
        };
        // Fetches 10, 17, 8, 15 in order 8, 10, 15, 17.
        assert_eq!(timing, expected);
    }

    #[test]
    fn a_log_of_another_run_tells_nothing() {
        let log = Log::read("other", LOG).expect("a log");
        assert_eq!(log.timing(&BTreeMap::from([(0, 1005)]), 100), None);
        let wrong = Log::read("r", "{}\n").expect_err("no event");
        assert!(wrong.starts_with("line 1"), "{wrong}");
    }
}
