//! The slow model: every result kept in a list, everything counted anew when it is asked for.

use crate::ejection::{Phase, Standing, Tally};
use crate::{BackendId, Mark, Request, Rules, Status, Time};
use schema::event::PoolChange;
use schema::protection::{Mode, Rule};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Clone, Default)]
struct Member {
    gone: bool,
    draining: bool,
    told_until: Option<Time>,
    phase: Phase,
    /// When the present ejection began; the present service while there is none.
    since: Time,
    ejections_in_a_row: u32,
    /// Results that count, oldest first.
    results: Vec<(Time, bool)>,
    /// Dispatches that were open when its state last changed; their results do not count.
    stale: BTreeSet<u64>,
    tally: Tally,
}

impl Member {
    fn is_up(&self) -> bool {
        !self.gone && !self.draining && self.barred_until().is_none()
    }

    fn barred_until(&self) -> Option<Time> {
        let until = match self.phase {
            Phase::InService => None,
            Phase::Ejected { until } => Some(until),
            Phase::Trial { since, .. } => Some(since),
        };
        until.max(self.told_until)
    }

    fn is_barred(&self) -> bool {
        self.phase != Phase::InService
    }

    /// Results and failures within the running second and the nine before it.
    fn within_ten_seconds(&self, now: Time) -> (f64, f64) {
        let second = |t: Time| t.as_nanos() / 1_000_000_000;
        let recent = self
            .results
            .iter()
            .filter(|(t, _)| second(*t) + 10 > second(now));
        let failed = recent.clone().filter(|(_, failed)| *failed).count();
        (recent.count() as f64, failed as f64)
    }
}

pub(super) struct Model {
    rules: Rules,
    members: Vec<Member>,
    /// Open dispatches: number and backend.
    open: Vec<(u64, BackendId)>,
    all: BTreeMap<u64, BackendId>,
}

impl Model {
    pub(super) fn new(rules: Rules, n: usize) -> Self {
        Self {
            rules,
            members: vec![Member::default(); n],
            open: Vec::new(),
            all: BTreeMap::new(),
        }
    }

    pub(super) fn is_member(&self, id: BackendId) -> bool {
        !self.members[id.index()].gone
    }

    pub(super) fn backend_of(&self, dispatch: u64) -> BackendId {
        *self.all.get(&dispatch).expect("it was made")
    }

    pub(super) fn open_at(&self, id: BackendId) -> u32 {
        self.open.iter().filter(|(_, b)| *b == id).count() as u32
    }

    pub(super) fn barred_until(&self, id: BackendId) -> Option<Time> {
        let member = &self.members[id.index()];
        member.barred_until().filter(|_| !member.gone)
    }

    pub(super) fn standing(&self, now: Time, id: BackendId) -> Standing {
        let member = &self.members[id.index()];
        let mut tally = member.tally;
        if member.is_barred() {
            tally.ejected_ns += now.since_ns(member.since);
        }
        Standing {
            phase: member.phase,
            tally,
        }
    }

    fn len(&self) -> usize {
        self.members.iter().filter(|m| !m.gone).count()
    }

    pub(super) fn cap(&self) -> usize {
        let rules = &self.rules.ejection;
        let share = rules.max_percent as usize * self.len() / 100;
        let wanted = if rules.at_least_one {
            share.max(1)
        } else {
            share
        };
        wanted.min(self.len().max(1) - 1)
    }

    pub(super) fn in_panic(&self) -> bool {
        let Some(percent) = self.rules.panic_percent else {
            return false;
        };
        let least = (f64::from(percent) * self.len() as f64 / 100.0)
            .ceil()
            .max(1.0);
        let up = self.members.iter().filter(|m| m.is_up()).count() as f64;
        let helps = |m: &Member| !m.gone && !m.draining && !m.is_up();
        up < least && self.members.iter().any(helps)
    }

    pub(super) fn eligible(&self, tried: &[BackendId]) -> Vec<BackendId> {
        let may = |m: &Member| !m.gone && !m.draining && (self.in_panic() || m.is_up());
        let ids = (0..self.members.len() as u32).map(BackendId);
        ids.filter(|id| may(&self.members[id.index()]) && !tried.contains(id))
            .collect()
    }

    pub(super) fn let_time_pass(&mut self, now: Time) {
        for member in &mut self.members {
            member.told_until = member.told_until.filter(|end| *end > now);
            if let Phase::Ejected { until } = member.phase
                && until <= now
            {
                member.phase = Phase::Trial {
                    since: until,
                    good: 0,
                    under_way: None,
                    idle_since: until,
                };
            }
        }
    }

    pub(super) fn trial_for(&mut self, now: Time, request: &Request<'_>) -> Option<BackendId> {
        self.let_time_pass(now);
        let first_to_repeat =
            request.attempt == 0 && matches!(request.method, "GET" | "DELETE" | "HEAD" | "PUT");
        let mut due: Vec<(Time, BackendId)> = Vec::new();
        for (i, member) in self.members.iter().enumerate() {
            let id = BackendId(i as u32);
            let Phase::Trial {
                since,
                under_way: None,
                idle_since,
                ..
            } = member.phase
            else {
                continue;
            };
            let waited_ns = now.as_nanos() - idle_since.as_nanos();
            if !member.gone
                && !member.draining
                && member.told_until.is_none()
                && !request.tried.contains(&id)
                && (first_to_repeat || waited_ns >= 2_000_000_000)
            {
                due.push((since, id));
            }
        }
        due.into_iter().min().map(|(_, id)| id)
    }

    pub(super) fn dispatched(&mut self, id: BackendId, dispatch: u64, mark: Option<Mark>) {
        self.open.push((dispatch, id));
        self.all.insert(dispatch, id);
        let member = &mut self.members[id.index()];
        if mark == Some(Mark::Trial) {
            let Phase::Trial { under_way, .. } = &mut member.phase else {
                panic!("a trial of {id}, which is not on trial");
            };
            assert_eq!(*under_way, None, "one trial at a time");
            *under_way = Some(dispatch);
            member.tally.trials += 1;
        } else if member.is_barred() {
            member.stale.insert(dispatch);
        }
    }

    pub(super) fn answered(&mut self, now: Time, dispatch: u64, status: Status) {
        self.let_time_pass(now);
        let id = self.backend_of(dispatch);
        self.open.retain(|(d, _)| *d != dispatch);
        let rules = self.rules.ejection;
        if rules.mode == Mode::Off {
            return;
        }
        let member = &mut self.members[id.index()];
        if let Phase::Trial {
            under_way,
            good,
            idle_since,
            ..
        } = &mut member.phase
            && *under_way == Some(dispatch)
        {
            *under_way = None;
            *idle_since = now;
            *good += u32::from(status == Status::Ok);
            if status.is_failure() {
                self.eject(now, id, Rule::Trial);
            } else if *good >= rules.trial {
                self.readmit(now, id);
            }
            return;
        }
        if member.gone
            || member.is_barred()
            || status == Status::Cancelled
            || member.stale.contains(&dispatch)
        {
            return;
        }
        member.results.push((now, status.is_failure()));
        if let Some(rule) = self.verdict(now, id) {
            self.bar(now, id, rule);
        }
    }

    fn verdict(&self, now: Time, id: BackendId) -> Option<Rule> {
        let rules = self.rules.ejection;
        let own = &self.members[id.index()];
        let in_a_row = own.results.iter().rev().take_while(|(_, failed)| *failed);
        if rules.after > 0 && in_a_row.count() as u32 >= rules.after {
            return Some(Rule::Consecutive);
        }
        if !rules.compare {
            return None;
        }
        let (a, x) = own.within_ten_seconds(now);
        let mut others = (0.0, 0.0);
        for (i, other) in self.members.iter().enumerate() {
            if i != id.index() && other.is_up() {
                let (n, failed) = other.within_ten_seconds(now);
                others = (others.0 + n, others.1 + failed);
            }
        }
        let (b, y) = others;
        if a < 20.0 || b < 20.0 {
            return None;
        }
        let pooled = (x + y) / (a + b);
        let sigma = (pooled * (1.0 - pooled) * (1.0 / a + 1.0 / b)).sqrt();
        let difference = x / a - y / b;
        let far = difference >= 0.30 - 1e-12 && difference >= 4.0 * sigma - 1e-12;
        far.then_some(Rule::Compare)
    }

    fn bar(&mut self, now: Time, id: BackendId, rule: Rule) {
        let barred = self.members.iter().filter(|m| m.is_barred()).count();
        let others_up = self
            .members
            .iter()
            .enumerate()
            .any(|(i, m)| i != id.index() && m.is_up());
        let allowed = barred < self.cap() && others_up;
        let member = &mut self.members[id.index()];
        member.results.clear();
        if self.rules.ejection.mode == Mode::Observe {
            member.tally.observed += 1;
        } else if !allowed {
            member.tally.refused += 1;
        } else {
            if now.as_nanos() - member.since.as_nanos() >= 60_000_000_000 {
                member.ejections_in_a_row = 0;
            }
            self.eject(now, id, rule);
        }
    }

    fn eject(&mut self, now: Time, id: BackendId, rule: Rule) {
        let rules = self.rules.ejection;
        self.let_go_of_open_ones(id);
        let member = &mut self.members[id.index()];
        if !member.is_barred() {
            member.since = now;
        }
        member.ejections_in_a_row += 1;
        member.tally.ejections[rule as usize] += 1;
        member.results.clear();
        let mut length_ns = rules.base_ns;
        for _ in 1..member.ejections_in_a_row {
            length_ns = (2 * length_ns).min(rules.cap_ns);
        }
        member.phase = Phase::Ejected {
            until: now.plus_ns(length_ns.min(rules.cap_ns)),
        };
    }

    fn readmit(&mut self, now: Time, id: BackendId) {
        self.let_go_of_open_ones(id);
        let member = &mut self.members[id.index()];
        member.tally.ejected_ns += now.since_ns(member.since);
        member.since = now;
        member.results.clear();
        member.phase = Phase::InService;
    }

    fn let_go_of_open_ones(&mut self, id: BackendId) {
        let open = self.open.iter().filter(|(_, b)| *b == id).map(|(d, _)| *d);
        self.members[id.index()].stale.extend(open);
    }

    pub(super) fn changed(&mut self, now: Time, change: &PoolChange) {
        self.let_time_pass(now);
        match *change {
            PoolChange::Remove { id } => {
                let id = BackendId(id);
                if self.members[id.index()].is_barred() {
                    let member = &mut self.members[id.index()];
                    member.tally.ejected_ns += now.since_ns(member.since);
                }
                let member = &mut self.members[id.index()];
                member.gone = true;
                member.told_until = None;
                member.phase = Phase::InService;
                self.keep_the_cap(now);
            }
            PoolChange::Drain { id } => self.members[id as usize].draining = true,
            PoolChange::Undrain { id } => self.members[id as usize].draining = false,
            PoolChange::Eject { id, until_ns } => {
                self.members[id as usize].told_until = Some(Time::from_nanos(until_ns));
            }
            PoolChange::Readmit { id } => {
                self.members[id as usize].told_until = None;
                if self.members[id as usize].is_barred() {
                    self.readmit(now, BackendId(id));
                }
            }
            PoolChange::Add(_) | PoolChange::Weight { .. } => unreachable!("not made here"),
        }
    }

    fn keep_the_cap(&mut self, now: Time) {
        loop {
            let barred = |m: &Member| m.is_barred();
            if self.members.iter().filter(|m| barred(m)).count() <= self.cap() {
                return;
            }
            let ends = self.members.iter().enumerate().filter(|(_, m)| barred(m));
            let first = ends
                .map(|(i, m)| {
                    let rules_only = Member {
                        told_until: None,
                        ..m.clone()
                    };
                    (rules_only.barred_until(), i)
                })
                .min();
            let (_, i) = first.expect("somebody is barred");
            self.readmit(now, BackendId(i as u32));
        }
    }
}
