//! What a fault timeline may ask of a run: targets that exist, faults that can be simulated, times
//! within the run.
//!
//! A list of requests has a known end, and a fault that outlasts it is a mistake in one of the two. Of
//! random arrivals only the expected end is known beforehand: no fault may begin after it, and one may
//! outlast it. A closed loop has no end that is known. Whatever was known, a run that was over before a
//! fault began has not shown what was asked of it, and is refused.

use super::refuse;
use crate::engine::{Setup, Source, WorkerSetup};
use schema::fault::{BALANCER, Fault, Timeline};
use schema::problem::{Problem, Problems};
use schema::schedule::{Due, mean_gap_ns};

/// Faults need a target that exists and a twin of their kind.
pub(super) fn check_targets(timeline: &Timeline, workers: &[WorkerSetup]) -> Result<(), Problems> {
    for (i, event) in timeline.events.iter().enumerate() {
        let of_balancer = matches!(
            event.fault,
            Fault::PollLoss { .. } | Fault::PollDelay { .. } | Fault::ConnectDelay { .. }
        );
        let word = event.fault.word();
        if event.on == BALANCER {
            if !of_balancer && event.fault != Fault::Freeze {
                let what = format!("{word} on the balancer cannot be simulated");
                return refuse(
                    Problem::new(field(i, "fault"), "", what)
                        .allowed("freeze, poll_loss, poll_delay, connect_delay"),
                );
            }
        } else if !workers.iter().any(|w| w.name == event.on) {
            let names: Vec<&str> = workers.iter().take(30).map(|w| w.name.as_str()).collect();
            return refuse(
                Problem::new(field(i, "on"), event.on.clone(), "no such target")
                    .allowed(format!("{BALANCER}, {}", names.join(", "))),
            );
        } else if of_balancer {
            let what = format!("{word} is a fault of the balancer");
            return refuse(Problem::new(field(i, "on"), event.on.clone(), what).allowed(BALANCER));
        }
    }
    Ok(())
}

/// Faults lie within the run, as far as its end is known; `rate_rps` is that of an open loop.
pub(super) fn check_times(
    timeline: &Timeline,
    source: &Source,
    requests: u64,
    rate_rps: Option<f64>,
) -> Result<(), Problems> {
    let known_s = match source {
        Source::Trace { due, stretch } => Some(last_due_s(due, *stretch, requests)),
        _ => None,
    };
    let expected_s = rate_rps.map(|rate_rps| requests as f64 / rate_rps);
    for (i, event) in timeline.events.iter().enumerate() {
        let begin_s = event.at.as_secs_f64();
        let end_s = event.end().map_or(begin_s, |end| end.as_secs_f64());
        match (known_s, expected_s) {
            (Some(last_s), _) if end_s > last_s => {
                let what = "ends after the last request is due";
                let problem = Problem::new(event_field(i), format!("{end_s} s"), what);
                return refuse(problem.allowed(format!("up to {last_s:.3} s")));
            }
            (None, Some(mean_s)) if begin_s > mean_s => {
                let what = format!("{requests} requests are expected to have come by then");
                return late(i, begin_s, mean_s, what);
            }
            _ => {}
        }
    }
    Ok(())
}

/// Every fault began before a run of so many seconds was over.
///
/// # Errors
/// The first that did not.
pub(crate) fn check_begun(setup: &Setup, duration_s: f64) -> Result<(), Problems> {
    let events = setup.faults.iter().flat_map(|timeline| &timeline.events);
    for (i, event) in events.enumerate() {
        let begin_s = event.at.as_secs_f64();
        if begin_s > duration_s {
            let what = format!("the run of seed {} was over by then", setup.seed);
            return late(i, begin_s, duration_s, what);
        }
    }
    Ok(())
}

fn late(event: usize, begin_s: f64, last_s: f64, what: String) -> Result<(), Problems> {
    refuse(
        Problem::new(field(event, "at"), format!("{begin_s} s"), what)
            .allowed(format!("up to {last_s:.3} s"))
            .next("begin it earlier, or ask for more requests"),
    )
}

fn event_field(event: usize) -> String {
    format!("faults.events[{event}]")
}

fn field(event: usize, part: &str) -> String {
    format!("{}.{part}", event_field(event))
}

/// When the last of so many requests is due that follow a list, over and over, s.
fn last_due_s(due: &[Due], stretch: f64, requests: u64) -> f64 {
    let (last, length) = (requests.saturating_sub(1), due.len().max(1) as u64);
    let at = |i: usize| due.get(i).map_or(0, |d| d.intended_ns) as f64;
    let round_ns = at(due.len().saturating_sub(1)) + mean_gap_ns(due).unwrap_or(1e9);
    let rounds = (last / length) as f64;
    (rounds * round_ns + at((last % length) as usize)) * 1e-9 * stretch
}

#[cfg(test)]
mod tests {
    use super::last_due_s;
    use schema::schedule::Due;

    #[test]
    fn a_list_that_is_followed_again_begins_a_mean_gap_after_its_last() {
        let due: Vec<Due> = [1, 2, 5]
            .map(|s| Due {
                api: 0,
                intended_ns: s * 1_000_000_000,
                task_size_mi: 1.0,
            })
            .into();
        // A round takes 5 s and a gap of 2 s.
        for (requests, last_s) in [(1, 1.0), (2, 2.0), (3, 5.0), (4, 8.0), (9, 19.0)] {
            assert_eq!(last_due_s(&due, 1.0, requests), last_s);
            assert_eq!(last_due_s(&due, 0.5, requests), last_s / 2.0);
        }
    }
}
