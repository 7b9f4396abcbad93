//! The progress bar: rate, in flight, errors and the time left.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::tally::Tally;

/// How often the bar is drawn at most; drawing costs time that the run could need.
const DRAW_INTERVAL: Duration = Duration::from_millis(250);

/// A bar on standard error; silent with `--quiet` and where there is no terminal.
pub(crate) struct Progress {
    bar: ProgressBar,
    in_flight: Arc<AtomicUsize>,
    started: OnceLock<Instant>,
    /// Time of the last drawing, ms after the start.
    drawn_ms: AtomicU64,
}

impl Progress {
    /// A bar for `requests` requests; `in_flight` is read when it is drawn.
    pub(crate) fn new(requests: usize, in_flight: Arc<AtomicUsize>, quiet: bool) -> Self {
        let target = if quiet {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr_with_hz(4)
        };
        let bar = ProgressBar::with_draw_target(Some(requests as u64), target);
        let template = "{bar:24} {pos}/{len} {msg}, {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self {
            bar,
            in_flight,
            started: OnceLock::new(),
            drawn_ms: AtomicU64::new(0),
        }
    }

    /// Starts the clock of the rate.
    pub(crate) fn start(&self) {
        let _ = self.started.set(Instant::now());
        self.bar.reset_elapsed();
        self.bar.reset_eta();
    }

    /// Draws the present state, if the last drawing is old enough.
    pub(crate) fn show(&self, tally: &Tally) {
        let Some(started) = self.started.get() else {
            return;
        };
        if self.bar.is_hidden() {
            return;
        }
        let now_ms = started.elapsed().as_millis() as u64;
        if now_ms < self.drawn_ms.load(Ordering::Relaxed) + DRAW_INTERVAL.as_millis() as u64 {
            return;
        }
        self.drawn_ms.store(now_ms, Ordering::Relaxed);
        let rate_rps = tally.rows() as f64 / (now_ms as f64 / 1000.0);
        self.bar.set_position(tally.rows());
        self.bar.set_message(format!(
            "{rate_rps:.0}/s, {} in flight, {} not ok",
            self.in_flight.load(Ordering::Relaxed),
            tally.not_ok()
        ));
    }

    /// Takes the bar off the screen.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
