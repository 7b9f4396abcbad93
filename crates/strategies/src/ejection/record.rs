//! What the rules of ejection remember of one backend.

use super::compare::{Counts, Window};
use crate::time::Time;
use schema::event::Status;
use schema::protection::Rule;

/// Where a backend stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Phase {
    /// Picked by the strategy.
    #[default]
    InService,
    /// Barred.
    Ejected {
        /// Until then.
        until: Time,
    },
    /// Its time is over: one request at a time.
    Trial {
        /// When its time was over.
        since: Time,
        /// Good trials in a row so far.
        good: u32,
        /// The dispatch that tries it.
        under_way: Option<u64>,
        /// Without a trial since then.
        idle_since: Time,
    },
}

/// What happened to a backend so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Ejections, by place in [`Rule::ALL`].
    pub ejections: [u64; Rule::ALL.len()],
    /// Ejections that the cap forbade.
    pub refused: u64,
    /// Ejections that were only observed.
    pub observed: u64,
    /// Requests that tried it.
    pub trials: u64,
    /// Time out of service, trial included, ns.
    pub ejected_ns: u64,
}

/// A backend's phase and tally as of now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Standing {
    /// Where it stands.
    pub phase: Phase,
    /// What happened so far.
    pub tally: Tally,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Record {
    /// Grows with every ejection and readmission.
    pub(super) spell: u32,
    /// Ejections in a row.
    pub(super) number: u32,
    pub(super) tally: Tally,
    phase: Phase,
    in_a_row: u32,
    window: Window,
    /// Beginning of the present time in service, or of the present ejection.
    since: Time,
}

impl Record {
    pub(super) fn standing(&self, now: Time) -> Standing {
        let mut tally = self.tally;
        if self.phase != Phase::InService {
            tally.ejected_ns += now.since_ns(self.since);
        }
        Standing {
            phase: self.phase,
            tally,
        }
    }

    pub(super) fn barred_until(&self) -> Option<Time> {
        match self.phase {
            Phase::InService => None,
            Phase::Ejected { until } => Some(until),
            Phase::Trial { since, .. } => Some(since),
        }
    }

    /// Whether a result of this spell counts: the backend was in service then and has been since.
    pub(super) fn counts(&self, spell: u32) -> bool {
        self.spell == spell && self.phase == Phase::InService
    }

    pub(super) fn add(&mut self, now: Time, failed: bool) {
        self.in_a_row = if failed { self.in_a_row + 1 } else { 0 };
        self.window.add(now, failed);
    }

    pub(super) fn failures_in_a_row(&self) -> u32 {
        self.in_a_row
    }

    pub(super) fn counts_now(&self, now: Time) -> Counts {
        self.window.counts(now)
    }

    pub(super) fn clear_counts(&mut self) {
        self.in_a_row = 0;
        self.window = Window::default();
    }

    /// Time in service up to now, ns.
    pub(super) fn was_in_service_for(&self, now: Time) -> u64 {
        now.since_ns(self.since)
    }

    pub(super) fn eject(&mut self, now: Time, until: Time, rule: Rule) {
        self.clear_counts();
        self.number += 1;
        self.tally.ejections[rule as usize] += 1;
        if self.phase == Phase::InService {
            self.spell += 1;
            self.since = now;
        }
        self.phase = Phase::Ejected { until };
    }

    /// Gives back when its time was over.
    pub(super) fn begin_trial(&mut self) -> Option<Time> {
        let Phase::Ejected { until } = self.phase else {
            return None;
        };
        self.phase = Phase::Trial {
            since: until,
            good: 0,
            under_way: None,
            idle_since: until,
        };
        Some(until)
    }

    /// Since when it has waited for a trial; `None` while one is under way.
    pub(super) fn trial_idle_since(&self) -> Option<Time> {
        match self.phase {
            Phase::Trial {
                under_way: None,
                idle_since,
                ..
            } => Some(idle_since),
            _ => None,
        }
    }

    pub(super) fn is_trial(&self, dispatch: u64) -> bool {
        matches!(self.phase, Phase::Trial { under_way: Some(d), .. } if d == dispatch)
    }

    pub(super) fn trial_began(&mut self, dispatch: u64) {
        if let Phase::Trial { under_way, .. } = &mut self.phase {
            *under_way = Some(dispatch);
            self.tally.trials += 1;
        }
    }

    /// Good trials in a row, this one counted.
    pub(super) fn trial_ended(&mut self, now: Time, status: Status) -> u32 {
        let Phase::Trial {
            good,
            under_way,
            idle_since,
            ..
        } = &mut self.phase
        else {
            return 0;
        };
        *under_way = None;
        *idle_since = now;
        *good += u32::from(status == Status::Ok);
        *good
    }

    pub(super) fn readmit(&mut self, now: Time) {
        self.tally = self.standing(now).tally;
        self.clear_counts();
        self.spell += 1;
        self.since = now;
        self.phase = Phase::InService;
    }
}
