//! The slow, obvious machine: every event walks all requests. It is the oracle of
//! [`crate::machine`] in the tests and the exact answer the self-test compares a running worker
//! with. O(n) per event; not for use while serving.

use crate::machine::Shape;

/// One request of a trace.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Arrival {
    /// When it arrives, ns.
    pub(crate) at_ns: f64,
    /// Its work, MI.
    pub(crate) mi: f64,
    /// When its client gives up, ns; infinity if it never does.
    pub(crate) gives_up_ns: f64,
}

/// When each request of `trace` (sorted by time) leaves an ideal machine of this shape, ns; infinity
/// for one whose client gave up first.
pub(crate) fn departures(shape: &Shape, trace: &[Arrival]) -> Vec<f64> {
    let mut left_ns = vec![f64::INFINITY; trace.len()];
    let mut held: Vec<(usize, f64)> = Vec::new();
    let mut next = 0;
    let mut now_ns = 0.0_f64;
    while next < trace.len() || !held.is_empty() {
        let serving = held.len().min(shape.servers());
        let rate = if serving > 0 {
            shape.rate(serving)
        } else {
            0.0
        };
        let first_end = held[..serving]
            .iter()
            .map(|(_, work_ns)| now_ns + work_ns / rate)
            .fold(f64::INFINITY, f64::min);
        let first_give_up = held
            .iter()
            .map(|(i, _)| trace[*i].gives_up_ns)
            .fold(f64::INFINITY, f64::min);
        let arrival = trace.get(next).map_or(f64::INFINITY, |a| a.at_ns);
        let event_ns = first_end.min(arrival).min(first_give_up);
        for (_, work_ns) in &mut held[..serving] {
            *work_ns -= (event_ns - now_ns) * rate;
        }
        now_ns = event_ns;
        if event_ns == first_end {
            let (at, _) = held[..serving]
                .iter()
                .enumerate()
                .min_by(|(_, a), (_, b)| a.1.total_cmp(&b.1))
                .expect("somebody ends");
            let (i, _) = held.remove(at);
            left_ns[i] = now_ns;
        } else if event_ns == first_give_up {
            held.retain(|(i, _)| trace[*i].gives_up_ns > now_ns);
        } else {
            held.push((next, shape.work_ns(trace[next].mi)));
            next += 1;
        }
    }
    left_ns
}
