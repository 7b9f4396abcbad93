//! The dispatch thread: every request leaves at its due time, whatever happened to earlier ones.
//!
//! The thread prepares a request, sleeps until shortly before its due time, spins the rest and
//! sends. An asynchronous timer would be late by more than a millisecond beside busy workers. Cost:
//! at most [`SPIN`] of one core per request.

use std::hint::spin_loop;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::exchange::{Exchanger, Prepared};

/// The last stretch before a due time, spun instead of slept: longer than a timer is usually late.
const SPIN: Duration = Duration::from_micros(300);
/// Longest sleep, so that a stop is heard soon.
const LONGEST_SLEEP: Duration = Duration::from_millis(50);

/// Sends every request of `schedule` when it is due. Once `stop` is set, the rest is recorded as
/// never sent for the reason that `why` gives.
pub(crate) fn run(
    exchanger: &Arc<Exchanger>,
    schedule: impl Iterator<Item = Prepared>,
    stop: &CancellationToken,
    why: impl Fn() -> &'static str,
) {
    for refused in scheduling::make_prompt() {
        tracing::info!("the dispatch thread runs with {refused}");
    }
    for prepared in schedule {
        if wait_until(exchanger, prepared.intended_ns, stop) {
            exchanger.launch(prepared, |_good| {});
        } else {
            exchanger.refuse(prepared.seq, prepared.intended_ns, why());
        }
    }
}

/// Returns at `due_ns`, or false as soon as `stop` is set.
fn wait_until(exchanger: &Exchanger, due_ns: u64, stop: &CancellationToken) -> bool {
    loop {
        if stop.is_cancelled() {
            return false;
        }
        let left = exchanger.clock.until(due_ns);
        if left.is_zero() {
            return true;
        }
        if left > SPIN {
            std::thread::sleep((left - SPIN).min(LONGEST_SLEEP));
        } else {
            spin_loop();
        }
    }
}
