//! Reports go through the network too: asked, true one delay later, seen another one later.

use super::super::{Delay, Done, Model, Phase, Picked, Setup, Watch, run};
use super::{setup, spec};
use proptest::prelude::*;
use schema::fault::Timeline;
use schema::report::{Report, Source};
use strategies::{Answer, Outcome};

/// A report as it was taken in.
#[derive(Debug, Clone)]
struct Seen {
    at_ns: u64,
    worker: u32,
    report: Report,
}

/// Everything that a property looks at.
#[derive(Debug, Default)]
struct Log {
    seen: Vec<Seen>,
    /// Time, worker, and what the dispatcher says it sent there since the newest report was asked for.
    picks: Vec<(u64, u32, Option<u64>)>,
    /// What the container engine told.
    usage: Vec<Seen>,
    /// Time and worker of every answer that had a head.
    heads: Vec<(u64, u32)>,
    done: Vec<Done>,
}

impl Watch for Log {
    fn picked(&mut self, picked: &Picked<'_>) {
        let Some(dispatch) = picked.dispatch else {
            return;
        };
        let backend = picked.dispatcher.backends().get(dispatch.backend);
        let known = picked.dispatcher.candidate(backend.expect("a member"));
        let (at, worker) = (dispatch.at.as_nanos(), dispatch.backend.0);
        self.picks.push((at, worker, known.sent_since));
    }

    fn answered(&mut self, _: usize, at_ns: u64, _: &Outcome, answer: &Answer, worker: u32) {
        if answer.http_status.is_some() {
            self.heads.push((at_ns, worker));
        }
    }

    fn reported(&mut self, _: usize, at_ns: u64, worker: u32, report: &Report) {
        let seen = Seen {
            at_ns,
            worker,
            report: report.clone(),
        };
        match report.source {
            Source::Docker => self.usage.push(seen),
            _ => self.seen.push(seen),
        }
    }

    fn finished(&mut self, done: &Done) {
        self.done.push(*done);
    }
}

fn watch(setup: &Setup, strategy: &str) -> Log {
    let mut log = Log::default();
    run(setup, &spec(strategy), &mut log).expect("a run");
    log
}

fn ns(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

fn broken(setup: &mut Setup, events: &str) {
    let text = format!(r#"{{"version":1,"events":[{events}]}}"#);
    setup.faults = Some(Timeline::parse("f", &text).expect("a timeline"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// The k-th poll leaves at k intervals, its sample is true one way later, and it is seen after the
    /// fetch and the way back; sends count from when it left.
    #[test]
    fn a_poll_is_asked_sampled_and_seen_one_way_apart(
        delay in prop_oneof![Just(0.0), 0.01_f64..3.0],
        interval in 0.3_f64..4.0,
        fetch in prop_oneof![Just(0.0), 0.0_f64..2.0],
        spread: bool,
        strategy in prop_oneof![Just("polled-least-request"), Just("polled-own-sends:subtract-done=off")],
        seed: u64,
    ) {
        let mut setup = setup(0.7, 1_000);
        setup.network = Delay::Constant(delay);
        setup.polls.interval = interval;
        setup.polls.fetch = fetch;
        setup.polls.phase = if spread { Phase::Spread } else { Phase::Together };
        setup.seed = seed;
        let log = watch(&setup, strategy);
        let mut rounds = [0_u32; 3];
        for seen in &log.seen {
            let round = &mut rounds[seen.worker as usize];
            let late = if spread { f64::from(seen.worker) / 3.0 } else { 0.0 };
            let asked = (f64::from(*round) + late) * interval;
            *round += 1;
            let sampled = asked + delay;
            prop_assert_eq!(seen.report.sampled_at_ns, ns(asked));
            prop_assert_eq!(seen.at_ns, ns(sampled + (fetch + delay)));
            let held = log.done.iter().filter(|d| {
                d.worker == Some(seen.worker) && d.reached < sampled && d.left > sampled
            });
            prop_assert_eq!(seen.report.active, Some(held.count() as u32), "at {}", sampled);
        }
        prop_assert!(rounds.iter().all(|n| *n > 3), "{:?}", rounds);
        for (at, worker, sent_since) in &log.picks {
            let newest = log.seen.iter().rfind(|s| s.worker == *worker && s.at_ns <= *at);
            let since = newest.map(|s| s.report.sampled_at_ns);
            let sent = since.map(|since| {
                let counts = |p: &&(u64, u32, _)| p.1 == *worker && (since..=*at).contains(&p.0);
                log.picks.iter().filter(counts).count() as u64
            });
            prop_assert_eq!(*sent_since, sent);
        }
    }

    /// Whoever decides, the engine tells at every multiple of its interval how many cores were busy
    /// since the one before, and what memory the requests take that are held then.
    #[test]
    fn the_engine_tells_busy_cores_and_memory_whoever_decides(
        interval in 0.3_f64..4.0,
        strategy in prop_oneof![Just("round-robin"), Just("polled-least-request"), Just("orca-wrr")],
        fcfs: bool,
        seed: u64,
    ) {
        let mut setup = setup(0.7, 1_000);
        if fcfs {
            setup.model = Model::Fcfs;
        }
        setup.polls.usage = interval;
        setup.seed = seed;
        let log = watch(&setup, strategy);
        prop_assert!(log.usage.len() > 30, "{}", log.usage.len());
        let mut before = 0.0;
        for told in log.usage.chunks(3) {
            let now = before + interval;
            for (worker, seen) in told.iter().enumerate() {
                prop_assert_eq!(seen.worker as usize, worker);
                prop_assert_eq!(seen.at_ns, ns(now));
                let stays: Vec<(f64, f64)> = log
                    .done
                    .iter()
                    .filter(|d| d.worker == Some(seen.worker))
                    .map(|d| (d.reached, d.left))
                    .collect();
                let busy = busy_cores(&stays, setup.workers[worker].cores, before, now);
                let cpu = seen.report.cpu_percent.expect("told");
                prop_assert!((cpu - 100.0 * busy).abs() < 1e-6, "{cpu} at {now}, {busy} cores");
                let held = stays.iter().filter(|s| s.0 < now && s.1 > now).count();
                prop_assert_eq!(seen.report.memory_used_mib, Some(6.0 + 0.25 * held as f64));
                prop_assert_eq!(seen.report.active, None);
            }
            before = now;
        }
    }

    /// Whatever breaks meanwhile, a report on a response comes with that response.
    #[test]
    fn a_report_on_a_response_comes_with_it_or_not_at_all(
        delay in prop_oneof![Just(0.0), 0.1_f64..2.0],
        timeout in 1.0_f64..6.0,
        seed: u64,
    ) {
        let mut setup = setup(0.9, 1_000);
        setup.network = Delay::Constant(delay);
        setup.timeout = Some(timeout);
        setup.seed = seed;
        broken(&mut setup, r#"
            {"at":"20s","on":"a","fault":"refuse","for":"10s"},
            {"at":"30s","on":"b","fault":"reset","for":"20s","p":0.5},
            {"at":"40s","on":"c","fault":"error_rate","for":"20s","p":0.5},
            {"at":"60s","on":"a","fault":"kill","restart_after":"5s"},
            {"at":"70s","on":"balancer","fault":"freeze","for":"3s"}"#);
        let log = watch(&setup, "orca-wrr");
        // With less patience than both ways and some work take, nobody is ever answered.
        let told = log.seen.iter().any(|s| s.report.source == Source::Piggyback);
        prop_assert!(told || timeout < 2.0 * delay + 0.9);
        for seen in log.seen.iter().filter(|s| s.report.source == Source::Piggyback) {
            prop_assert!(log.heads.contains(&(seen.at_ns, seen.worker)), "{seen:?}");
        }
    }
}

/// Mean number of busy cores from `begin` to `end` of a worker that idles none while a request waits.
fn busy_cores(stays: &[(f64, f64)], cores: f64, begin: f64, end: f64) -> f64 {
    let mut times: Vec<f64> = stays.iter().flat_map(|s| [s.0, s.1]).collect();
    times.retain(|t| (begin..end).contains(t));
    times.extend([begin, end]);
    times.sort_by(f64::total_cmp);
    let busy = times.windows(2).map(|w| {
        let middle = (w[0] + w[1]) / 2.0;
        let held = stays
            .iter()
            .filter(|s| (s.0..s.1).contains(&middle))
            .count();
        (held as f64).min(cores) * (w[1] - w[0])
    });
    busy.sum::<f64>() / (end - begin)
}

#[test]
fn of_a_worker_that_has_exited_the_engine_tells_nothing_and_its_stats_page_does_not_matter() {
    let mut setup = setup(0.5, 500);
    broken(
        &mut setup,
        r#"{"at":"10.5s","on":"a","fault":"kill","restart_after":"3s"},
           {"at":"20.5s","on":"b","fault":"stats_hang","for":"3s"},
           {"at":"30.5s","on":"balancer","fault":"freeze","for":"3s"}"#,
    );
    let usage = watch(&setup, "round-robin").usage;
    let told = |worker: u32, from: u32, to: u32| -> Vec<u64> {
        let within =
            |s: &&Seen| s.worker == worker && (ns(from.into())..ns(to.into())).contains(&s.at_ns);
        usage
            .iter()
            .filter(within)
            .map(|s| s.at_ns / 1_000_000_000)
            .collect()
    };
    assert_eq!(told(0, 9, 16), [9, 10, 14, 15]);
    assert_eq!(told(1, 20, 25), [20, 21, 22, 23, 24]);
    assert_eq!(told(2, 29, 36), [29, 30, 34, 35]);
}

/// The poll that leaves at 10 s reaches its worker at 10.4 s and is back at 10.8 s.
#[test]
fn a_fault_takes_the_polls_that_meet_it() {
    for (event, seen_at) in [
        (
            r#"{"at":"10.1s","on":"a","fault":"stats_hang","for":"200ms"}"#,
            Some(10.8),
        ),
        (
            r#"{"at":"10.3s","on":"a","fault":"stats_hang","for":"200ms"}"#,
            None,
        ),
        (
            r#"{"at":"10.5s","on":"a","fault":"stats_hang","for":"200ms"}"#,
            Some(10.8),
        ),
        (
            r#"{"at":"10.3s","on":"a","fault":"kill","restart_after":"200ms"}"#,
            None,
        ),
        (
            r#"{"at":"10.5s","on":"a","fault":"kill","restart_after":"200ms"}"#,
            Some(10.8),
        ),
        (
            r#"{"at":"9.9s","on":"balancer","fault":"freeze","for":"200ms"}"#,
            None,
        ),
        (
            r#"{"at":"10.7s","on":"balancer","fault":"freeze","for":"200ms"}"#,
            Some(10.9),
        ),
        (
            r#"{"at":"10.3s","on":"balancer","fault":"poll_delay","delay":"100ms","for":"200ms"}"#,
            Some(10.9),
        ),
    ] {
        let mut setup = setup(0.5, 200);
        setup.network = Delay::Constant(0.4);
        broken(&mut setup, event);
        let log = watch(&setup, "polled-least-request");
        let asked = |s: &&Seen| s.worker == 0 && s.report.sampled_at_ns == ns(10.0);
        let seen = log.seen.iter().find(asked).map(|s| s.at_ns / 1_000_000);
        assert_eq!(
            seen,
            seen_at.map(|s: f64| (s * 1e3).round() as u64),
            "{event}"
        );
    }
}

#[test]
fn how_often_a_strategy_looks_changes_no_requests_way() {
    let ways = |interval| {
        let mut setup = setup(0.7, 500);
        setup.network = Delay::Exponential(0.2);
        setup.polls.interval = interval;
        let mut done = watch(&setup, "round-robin").done;
        done.sort_by_key(|d| d.seq);
        done.iter().map(|d| d.reached).collect::<Vec<f64>>()
    };
    assert_eq!(ways(0.1), ways(7.0));
}
