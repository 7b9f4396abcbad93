//! Stale reports herd: every pick until the next poll goes to the same least of what was told, unless own
//! sends are counted in. Processor sharing, exponential sizes of 100 ms, each worker polled by a loop of
//! its own.

use super::super::{Phase, Picked, Setup, Watch, run};
use super::{outcome, setup, spec};
use crate::models;
use crate::tally::Outcome;
use schema::fault::Timeline;
use strategies::registry::{ENTRIES, Entry, Parameter, Read};

const SERVICE: f64 = 0.1;

/// Workers of 4, 3 and 2 cores polled every `interval` seconds.
fn polled(load: f64, interval: f64, balancers: u32, requests: u64) -> Setup {
    let mut setup = setup(load, requests);
    setup.mean_work = SERVICE;
    setup.classes[0].mean_work = SERVICE;
    setup.source = super::Source::Open {
        gaps: schema::laws::sizes::SizeLaw::Exponential,
        rate_rps: load * 9.0 / SERVICE,
    };
    setup.polls.interval = interval;
    setup.polls.phase = Phase::Spread;
    setup.balancers = balancers;
    setup
}

/// Picks in a row of the same worker, whichever balancer made them.
#[derive(Debug, Default)]
struct Streaks {
    last: Option<u32>,
    picks: u64,
    streaks: u64,
}

impl Watch for Streaks {
    fn picked(&mut self, picked: &Picked<'_>) {
        let worker = picked.dispatch.map(|d| d.backend.0);
        self.picks += 1;
        self.streaks += u64::from(self.last != worker);
        self.last = worker;
    }
}

/// Mean, 99th percentile, mean streak.
fn figures(setup: &Setup, strategy: &str) -> [f64; 3] {
    let mut streaks = Streaks::default();
    let outcome = run(setup, &spec(strategy), &mut streaks).expect("a run");
    let mean = outcome.mean.expect("a mean");
    let [_, _, p99] = outcome.quantiles.expect("quantiles");
    [mean, p99, streaks.picks as f64 / streaks.streaks as f64]
}

fn ratios(setup: &Setup, strategy: &str, reference: &[f64; 3]) -> [f64; 3] {
    let mut ratios = figures(setup, strategy);
    ratios
        .iter_mut()
        .zip(reference)
        .for_each(|(r, of)| *r /= of);
    ratios
}

#[test]
fn counting_own_sends_ends_the_herd_however_old_the_reports() {
    for balancers in [1, 4] {
        // It reads no report, so one run serves every interval.
        let live = figures(
            &polled(0.8, 0.1, balancers, 200_000),
            "weighted-least-request",
        );
        for interval in [0.1, 0.5, 1.0] {
            let setup = polled(0.8, interval, balancers, 200_000);
            let own = ratios(&setup, "polled-own-sends", &live);
            assert!(
                own.iter().all(|ratio| *ratio < 1.2),
                "{balancers} balancers, {interval} s: {own:?} of {live:?}"
            );
        }
    }
}

#[test]
fn reports_taken_as_they_are_herd_the_more_the_older_they_are() {
    let live = figures(&polled(0.8, 0.1, 1, 200_000), "weighted-least-request");
    // 99th percentile against live counts, mean streak: reference runs, given to two digits.
    for (interval, p99, streak) in [(0.1, 1.2, 4.9), (0.5, 2.4, 17.0), (1.0, 3.8, 29.0)] {
        let setup = polled(0.8, interval, 1, 200_000);
        let got = ratios(&setup, "polled-least-request", &live);
        let got_streak = got[2] * live[2];
        assert!(
            (got[1] / p99 - 1.0).abs() < 0.2,
            "{interval} s: {} is not {p99} times the percentile",
            got[1]
        );
        assert!(
            (got_streak / streak - 1.0).abs() < 0.2,
            "{interval} s: a streak of {got_streak}"
        );
    }
}

#[test]
fn the_least_told_mean_sends_nearly_all_to_one_however_often_it_is_polled() {
    for interval in [0.01, 0.1] {
        let setup = polled(0.3, interval, 1, 100_000);
        let Outcome { shares, .. } = outcome(&setup, "min-response-time:source=polled");
        let most = shares.iter().copied().fold(0.0, f64::max);
        assert!(most > 0.95, "{interval} s: {shares:?}");
    }
}

/// Share of the first worker among the picks between two times, s.
#[derive(Debug)]
struct Share {
    from: f64,
    to: f64,
    picks: f64,
    of_first: f64,
}

impl Share {
    fn between(from: f64, to: f64) -> Self {
        Self {
            from,
            to,
            picks: 0.0,
            of_first: 0.0,
        }
    }

    fn see(&mut self, now: f64, is_first: bool) {
        if (self.from..self.to).contains(&now) {
            self.picks += 1.0;
            self.of_first += f64::from(u8::from(is_first));
        }
    }

    fn percent(&self) -> f64 {
        100.0 * self.of_first / self.picks
    }
}

/// Shares in the 15 s before the page of the first worker hangs, and in the 5 s while it does; and how
/// many reports of the others came in those.
#[derive(Debug)]
struct Hanging {
    before: Share,
    meanwhile: Share,
    of_first: u32,
    of_others: u32,
}

impl Watch for Hanging {
    fn picked(&mut self, picked: &Picked<'_>) {
        let now = picked.dispatcher.now().as_nanos() as f64 / 1e9;
        let is_first = picked.dispatch.is_some_and(|d| d.backend.0 == 0);
        self.before.see(now, is_first);
        self.meanwhile.see(now, is_first);
    }

    fn reported(&mut self, _b: usize, now_ns: u64, worker: u32, report: &strategies::Report) {
        let now = now_ns as f64 / 1e9;
        if report.source == strategies::Source::Poll && (20.05..25.0).contains(&now) {
            *(if worker == 0 {
                &mut self.of_first
            } else {
                &mut self.of_others
            }) += 1;
        }
    }
}

/// Within the 5 s of the fault: those who look at nothing but polls believe them for 10 s.
fn falls_back(entry: &Entry) -> bool {
    let is_soon = |p: &Parameter| p.name == "max-age" && p.default == "3 poll intervals";
    entry.parameters.iter().any(is_soon) && entry.reads.contains(&Read::Poll)
}

#[test]
fn a_page_that_hangs_neither_stops_the_other_polls_nor_moves_the_shares_far() {
    let mut setup = polled(0.8, 0.1, 1, 2_000);
    let fault = r#"{"version":1,"seed":3,"events":[
        {"at":"20s","on":"a","fault":"stats_hang","for":"5s"}]}"#;
    setup.faults = Some(Timeline::parse("f", fault).expect("a timeline"));
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models");
    setup.models = models::load(&[format!("{folder}/live.plbtab")]).expect("a model");
    for entry in ENTRIES.iter().filter(|e| falls_back(e)) {
        let mut seen = Hanging {
            before: Share::between(5.0, 20.0),
            meanwhile: Share::between(20.0, 25.0),
            of_first: 0,
            of_others: 0,
        };
        run(&setup, &spec(entry.name), &mut seen).expect("a run");
        let moved = seen.meanwhile.percent() - seen.before.percent();
        assert!(moved.abs() < 15.0, "{}: {moved:.1} points", entry.name);
        assert!(seen.meanwhile.picks > 300.0);
        if !entry.reads.contains(&Read::Piggyback) {
            assert_eq!((seen.of_first, seen.of_others), (0, 99), "{}", entry.name);
        }
    }
}
