//! What every registry entry keeps, at its defaults and with each parameter changed.

use super::models::options;
use super::pools::{answered_pick, cases, dispatcher, members, open_loop, shares, spec};
use super::world::World;
use crate::registry::{ENTRIES, HonorsWeights, Read};
use crate::{Answer, BackendId, Dispatcher, Report, Request, Source, Spec, Status, Time};
use proptest::prelude::*;
use schema::event::Event;
use std::collections::BTreeSet;

const POOL: [u32; 3] = [4, 3, 2];

/// Prefers low positions by choice, so equal backends do not get equal shares.
fn prefers_the_first(spec: &Spec) -> bool {
    let by_rule = ["plb-paper", "plb-docker"].contains(&spec.name());
    let by_parameter =
        spec.entry().parameters.iter().any(|p| p.name == "ties") && spec.is("ties", "lowest");
    by_rule || by_parameter
}

/// A ring or table with so few places that shares are far from the weights.
fn is_coarse(spec: &Spec) -> bool {
    let below = |name: &str, bound| {
        spec.entry().parameters.iter().any(|p| p.name == name) && spec.integer(name) < Some(bound)
    };
    below("points", 100) || below("table", 500)
}

fn has_flaw(spec: &Spec, flaws: &[&str]) -> bool {
    spec.entry().known_flaws.iter().any(|f| flaws.contains(f))
}

#[test]
fn names_are_unique_kebab_case_and_every_spelling_reads_back() {
    let mut names = BTreeSet::new();
    for entry in ENTRIES {
        for name in std::iter::once(&entry.name).chain(entry.aliases) {
            assert!(names.insert(*name), "{name} is taken");
            assert!(
                name.bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
            );
            assert_eq!(
                spec(name).to_string(),
                entry.name,
                "aliases print as the name"
            );
        }
        assert!(!entry.summary.ends_with('.') && !entry.summary.is_empty());
    }
    for case in cases() {
        assert_eq!(spec(&case.to_string()), case);
    }
}

#[test]
fn the_only_eligible_backend_is_picked_and_nobody_when_nobody_is() {
    for case in cases() {
        let mut d = dispatcher(&case, &POOL, 5);
        d.drain(Time::ZERO, BackendId(0)).unwrap();
        d.eject(Time::ZERO, BackendId(2), Time::from_millis(9_000_000))
            .unwrap();
        for _ in 0..100 {
            assert_eq!(
                answered_pick(&mut d, &Request::default()),
                BackendId(1),
                "{case}"
            );
        }
        d.drain(d.now(), BackendId(1)).unwrap();
        assert_eq!(d.pick(d.now(), &Request::default()), None, "{case}");
        let empty = Dispatcher::new(&case, &[], options());
        assert_eq!(
            empty.unwrap().pick(Time::ZERO, &Request::default()),
            None,
            "{case}"
        );
    }
}

#[test]
fn same_seed_and_events_give_the_same_picks() {
    for case in cases() {
        let half = World::new(&case, &POOL, 11).run(700);
        let whole = half.clone().run(700).finish();
        assert_eq!(
            whole.picks,
            half.run(700).finish().picks,
            "{case}: a clone goes on alike"
        );
        let elsewhere = std::thread::scope(|scope| {
            let run = || World::new(&case, &POOL, 11).run(1400).finish().picks;
            scope.spawn(run).join().unwrap()
        });
        assert_eq!(whole.picks, elsewhere, "another thread");
    }
}

#[test]
fn entries_that_are_not_randomized_draw_nothing() {
    for case in cases().into_iter().filter(|c| !c.randomized()) {
        let world = World::new(&case, &POOL, 12).run(3000);
        assert!(!world.dispatcher.strategy_drew(), "{case} drew");
    }
}

#[test]
fn hidden_costs_change_no_pick() {
    for case in cases().into_iter().filter(|c| !c.entry().needs_cost) {
        let mut scrambled = World::new(&case, &POOL, 13);
        scrambled.cost_scale = 7.7;
        let picks = World::new(&case, &POOL, 13).run(2000).picks;
        assert_eq!(scrambled.run(2000).picks, picks, "{case}");
    }
}

#[test]
fn a_log_replays_with_every_pick_equal() {
    for case in cases() {
        let world = World::new(&case, &POOL, 14).run(2000);
        let lines: Vec<String> = world
            .log
            .iter()
            .map(|e| serde_json::to_string(e).unwrap())
            .collect();
        let read = lines.iter().map(|l| serde_json::from_str(l).unwrap());
        let verdict = crate::replay::replay(read, &options().context.models).unwrap();
        assert_eq!(verdict.first_mismatch, None, "{case}");
        assert_eq!(verdict.equal, verdict.picks);
        assert_eq!(verdict.picks as usize, world.picks.len());
    }
}

#[test]
fn a_class_beyond_what_any_recorder_gives_is_refused_before_a_table_grows_to_it() {
    let case = cases().into_iter().next().expect("a case");
    let mut log = World::new(&case, &POOL, 14).run(20).log;
    let pick = log
        .iter_mut()
        .enumerate()
        .find_map(|(i, event)| match event {
            Event::Pick { class, .. } => Some((i, class)),
            _ => None,
        });
    let (at, class) = pick.expect("a pick");
    *class = u32::MAX;
    let line = at as u64 + 1;
    let error = crate::replay::replay(log, &options().context.models).unwrap_err();
    assert_eq!(error, crate::replay::ReplayError::Class(line, u32::MAX));
}

#[test]
fn every_pool_size_works() {
    for case in cases() {
        for n in [1, 2, 3, 10, 1000] {
            let weights: Vec<u32> = (0..n).map(|i| 1 + i % 7).collect();
            // Rings and tables of a thousand members take long to make anew at every change.
            let events = if n == 1000 && case.entry().needs_key {
                40
            } else {
                500
            };
            World::new(&case, &weights, 16).run(events).finish();
        }
    }
}

#[test]
#[ignore = "slow tier: 200 event lists of 2,000 events for every case, and a pool of 10,000"]
fn nothing_breaks_over_many_random_event_lists() {
    for case in cases() {
        for seed in 0..200 {
            World::new(&case, &POOL, seed).run(2000).finish();
        }
        World::new(&case, &vec![1; 10_000], 1).run(10_000).finish();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn counts_match_the_slow_model_over_random_events(
        seed in any::<u64>(),
        weights in prop::collection::vec(1_u32..20, 1..6),
    ) {
        for case in cases() {
            World::new(&case, &weights, seed).run(300).finish();
        }
    }
}

#[test]
fn equal_backends_get_equal_shares() {
    for case in cases()
        .into_iter()
        .filter(|c| !c.entry().needs_key && !prefers_the_first(c) && !has_flaw(c, &["T14", "T18"]))
    {
        let mut d = dispatcher(&case, &[2; 4], 21);
        let counts = open_loop(&mut d, 8000, 1_000_000, |_| 10_000_000);
        let spread = if case.randomized() {
            4.0 * (8000.0_f64 * 0.25 * 0.75).sqrt()
        } else {
            // Beyond one pick only where what is fed in differs by its place in the cycle.
            if case.entry().reads.is_empty() {
                1.0
            } else {
                80.0
            }
        };
        for count in &counts {
            assert!(
                (*count as f64 - 2000.0).abs() <= spread,
                "{case}: {counts:?}"
            );
        }
    }
}

#[test]
fn weights_are_honored_or_ignored_as_flagged() {
    for case in cases() {
        let blind = case.entry().reads.is_empty();
        match case.entry().honors_weights {
            HonorsWeights::Yes if blind && !is_coarse(&case) => {
                let mut d = dispatcher(&case, &[8, 2, 2, 1, 1], 22);
                let picks = 150_000_u64;
                let counts = shares(&mut d, picks as usize);
                for (count, weight) in counts.iter().zip([8, 2, 2, 1, 1]) {
                    let p = f64::from(weight) / 14.0;
                    let sigma = (picks as f64 * p * (1.0 - p)).sqrt();
                    let off = (*count as f64 - picks as f64 * p).abs();
                    let ring_error = if case.entry().needs_key {
                        0.25 * picks as f64 * p
                    } else {
                        0.0
                    };
                    assert!(off < 4.0 * sigma + ring_error, "{case}: {counts:?}");
                }
            }
            HonorsWeights::No => {
                let run = |weights: &[u32]| {
                    let mut pool = members(weights);
                    pool.iter_mut().for_each(|m| m.cores = 1.0);
                    let mut d = Dispatcher::new(&case, &pool, options()).unwrap();
                    open_loop(&mut d, 2000, 1_000_000, |id| {
                        5_000_000 * (1 + u64::from(id.0))
                    })
                };
                if !case.entry().needs_key {
                    assert_eq!(run(&[4, 3, 2]), run(&[1, 9, 5]), "{case}");
                }
            }
            _ => {}
        }
    }
}

#[test]
fn adding_and_removing_a_backend_at_once_changes_no_later_pick() {
    for case in cases() {
        let plain = World::new(&case, &POOL, 23).run(400);
        let mut touched = plain.clone();
        let now = touched.dispatcher.now();
        let id = touched.dispatcher.add(now, &members(&[4; 9])[8]).unwrap();
        touched.dispatcher.remove(now, id).unwrap();
        let picks = |mut d: Dispatcher| shares(&mut d, 500)[..3].to_vec();
        assert_eq!(picks(plain.dispatcher), picks(touched.dispatcher), "{case}");
    }
}

#[test]
fn a_weight_change_leaves_the_counts_alone() {
    for case in cases() {
        let mut d = World::new(&case, &POOL, 24).run(400).dispatcher;
        let counts =
            |d: &Dispatcher| -> Vec<u32> { d.backends().members().map(|b| b.in_flight).collect() };
        let before = counts(&d);
        let first = d.backends().members().next().map(|b| b.id);
        if let Some(id) = first {
            d.set_weight(d.now(), id, 9).unwrap();
            assert_eq!(before, counts(&d), "{case}");
        }
    }
}

#[test]
fn nothing_goes_to_a_drained_or_ejected_backend_and_it_comes_back() {
    for case in cases() {
        for ejected in [false, true] {
            let mut d = dispatcher(&case, &[1; 3], 25);
            open_loop(&mut d, 300, 1_000_000, |_| 5_000_000);
            let b = BackendId(1);
            if ejected {
                d.eject(d.now(), b, d.now().plus_ns(300_000_000)).unwrap();
            } else {
                d.drain(d.now(), b).unwrap();
            }
            assert_eq!(
                open_loop(&mut d, 290, 1_000_000, |_| 5_000_000)[1],
                0,
                "{case}"
            );
            if !ejected {
                d.undrain(d.now(), b).unwrap();
            }
            let back = open_loop(&mut d, 100, 1_000_000, |_| 5_000_000)[1];
            let keyed_alike =
                case.entry().needs_key && !case.is("key", "url") && !case.is("key", "path");
            if !has_flaw(&case, &["T14", "T18"]) && !keyed_alike {
                assert!(back > 0, "{case} ejected={ejected}: not used again");
            }
        }
    }
}

#[test]
fn an_older_report_changes_no_later_pick() {
    for case in cases() {
        let mut d = dispatcher(&case, &POOL, 26);
        let early = d.mark_poll(Time::from_millis(1), BackendId(0)).unwrap();
        let late = d.mark_poll(Time::from_millis(5), BackendId(0)).unwrap();
        let report = |active| Report {
            active: Some(active),
            mean_latency_50_ms: Some(f64::from(active)),
            ..Report::empty(Source::Poll, 0)
        };
        let now = Time::from_millis(6);
        assert!(
            d.report(now, BackendId(0), Some(late), report(3))
                .unwrap()
                .is_some()
        );
        let mut other = d.clone();
        assert!(
            other
                .report(now, BackendId(0), Some(early), report(900))
                .unwrap()
                .is_none()
        );
        assert_eq!(shares(&mut d, 200), shares(&mut other, 200), "{case}");
    }
}

#[test]
fn a_report_that_is_too_old_counts_as_none_at_all() {
    let reads_reports = |c: &Spec| c.entry().parameters.iter().any(|p| p.name == "max-age");
    for case in cases().into_iter().filter(reads_reports) {
        let untold = dispatcher(&case, &POOL, 29);
        let mut told = untold.clone();
        for (id, active) in [(0, 9), (1, 0), (2, 0)] {
            for source in [
                Source::Poll,
                Source::Piggyback,
                Source::Probe,
                Source::Docker,
            ] {
                let report = Report {
                    active: Some(active),
                    cpu_percent: Some(f64::from(active)),
                    memory_used_mib: Some(f64::from(active)),
                    ..Report::empty(source, 0)
                };
                let taken = told.report(Time::ZERO, BackendId(id), None, report);
                assert!(taken.unwrap().is_some());
            }
        }
        // Above the largest age that may be asked for.
        let later = Time::from_millis(601_000);
        let picks = |mut d: Dispatcher| -> Vec<_> {
            let pick = |_| d.pick(later, &Request::default()).map(|made| made.backend);
            (0..60).map(pick).collect()
        };
        assert_eq!(picks(told), picks(untold), "{case}");
    }
}

#[test]
fn every_backend_is_used_without_any_report() {
    for case in cases() {
        let keyed_alike = case.entry().needs_key;
        if keyed_alike || prefers_the_first(&case) || has_flaw(&case, &["T14", "T18"]) {
            continue;
        }
        let mut d = dispatcher(&case, &[1; 20], 27);
        let counts = open_loop(&mut d, 10_000, 1_000_000, |_| 10_000_000);
        assert!(counts.iter().all(|c| *c > 0), "{case}: {counts:?}");
    }
}

#[test]
fn a_removed_backends_late_answer_is_accounted_to_it_alone() {
    for case in cases() {
        let mut d = dispatcher(&case, &POOL, 28);
        let made = d.pick(Time::ZERO, &Request::default()).unwrap();
        d.remove(Time::ZERO, made.backend).unwrap();
        assert_eq!(d.backends().get(made.backend).unwrap().in_flight, 1);
        d.respond(Time::from_millis(9), made.id, &Answer::new(Status::Timeout))
            .unwrap();
        assert!(d.backends().members().all(|b| b.in_flight == 0));
        assert_eq!(d.backends().get(made.backend).unwrap().in_flight, 0);
    }
}

#[test]
fn entries_that_need_something_say_so_in_their_reads() {
    for entry in ENTRIES {
        assert_eq!(entry.needs_cost, entry.reads(Read::Cost), "{}", entry.name);
        assert_eq!(
            entry.model.is_some(),
            entry.reads(Read::Model),
            "{}",
            entry.name
        );
        // A strategy may read the probes that others ask for, but whoever asks must read them.
        assert!(
            !entry.needs_probes || entry.reads(Read::Probe),
            "{}",
            entry.name
        );
        assert_eq!(
            entry.needs_key,
            entry.parameters.iter().any(|p| p.name == "key")
        );
    }
}
