//! Orders kept up for large pools against looking through all backends, which is what they stand for.

use super::models::options;
use super::pools::{cases, members, spec};
use super::world::World;
use crate::registry::Context;
use crate::{Answer, BackendId, Dispatcher, Options, Request, Spec, Status, Time};
use std::collections::VecDeque;

/// Never looks through, or always.
fn context(few: usize) -> Context {
    Context {
        few,
        ..options().context
    }
}

/// Which of several equals a draw falls on depends on the order within a bucket, so picks differ from
/// those of looking through; loads do not.
fn draws_from_a_bucket(case: &Spec) -> bool {
    let name = case.entry().name;
    ["least-request", "weighted-least-request"].contains(&name) && case.is("ties", "random")
}

/// A few distinct weights, and as many as backends.
fn weight_laws(n: u32) -> [Vec<u32>; 2] {
    [
        (0..n).map(|i| 1 + i % 7).collect(),
        (0..n).map(|i| 1 + i * 37 % 1009).collect(),
    ]
}

fn same_picks(case: &Spec, weights: &[u32], seed: u64, events: usize) {
    let run = |few| World::in_context(case, weights, seed, context(few)).run(events);
    let (kept, looked_through) = (run(0), run(usize::MAX));
    let n = weights.len();
    assert_eq!(
        kept.picks, looked_through.picks,
        "{case}, {n} backends, seed {seed}"
    );
    kept.finish();
}

fn least_loads(case: &Spec, weights: &[u32], seed: u64, events: usize) {
    let mut world = World::in_context(case, weights, seed, context(0));
    world.load = Some(match case.to_string().as_str() {
        "least-request:ties=random" => |q, _| f64::from(q),
        "weighted-least-request" => |q, w| f64::from(q + 1) / f64::from(w),
        "weighted-least-request:offset=0" => |q, w| f64::from(q) / f64::from(w),
        other => panic!("what is the load of {other}?"),
    });
    world.run(events).finish();
}

/// A list with every backend as often as it weighs has a bound of a million entries.
fn is_refused(case: &Spec, weights: &[u32]) -> bool {
    let sum: u32 = weights.iter().sum();
    case.to_string() == "weighted-random:method=list" && sum > 1_000_000
}

/// Seeds that are multiples of 3 have slow start, in which the test does not know who takes part.
fn check(case: &Spec, n: u32, events: usize) {
    for weights in weight_laws(n) {
        if is_refused(case, &weights) {
            continue;
        }
        if draws_from_a_bucket(case) {
            least_loads(case, &weights, 1, events);
        } else {
            same_picks(case, &weights, 1, events);
            same_picks(case, &weights, 3, events);
        }
    }
}

/// All cases whose cost could depend on the size of the pool.
fn unkeyed() -> impl Iterator<Item = Spec> {
    let more = [
        "peak-ewma:choices=0,decay=1ms",
        "peak-ewma:decay=1ms",
        "c3:balancers=3",
        "c3:forget=100ms",
        "min-response-time:forget=100ms",
        "weighted-least-request:offset=0,ties=smooth",
        "weighted-least-request:offset=0.5,ties=smooth",
    ];
    let more = more.map(spec);
    let all = cases().into_iter().chain(more);
    all.filter(|case| !case.entry().needs_key)
}

#[test]
fn kept_orders_give_the_picks_of_looking_through() {
    for case in unkeyed() {
        for (n, events) in [
            (1, 150),
            (2, 300),
            (3, 500),
            (10, 500),
            (17, 500),
            (100, 500),
        ] {
            check(&case, n, events);
        }
    }
}

#[test]
fn kept_orders_give_the_picks_of_looking_through_at_a_thousand() {
    for case in unkeyed() {
        let weights = &weight_laws(1000)[0];
        if draws_from_a_bucket(&case) {
            least_loads(&case, weights, 1, 150);
        } else {
            same_picks(&case, weights, 3, 150);
        }
    }
}

#[test]
#[ignore = "slow tier: 10,000 events at every size up to 10,000"]
fn kept_orders_give_the_picks_of_looking_through_for_long() {
    for case in unkeyed() {
        for n in [1, 2, 3, 10, 17, 1000] {
            check(&case, n, 10_000);
        }
        check(&case, 10_000, 1000);
    }
}

/// Most of a large pool is left out of most picks while it warms up, and then nobody is any more: the
/// order is put away and taken up again.
#[test]
fn smooth_ties_outlast_the_slow_start_of_a_large_pool() {
    let run = |few| {
        let options = Options {
            slow_start_ns: Some(1_000_000_000),
            context: context(few),
            ..options()
        };
        let all = members(&(0..150).map(|i| 1 + i % 3).collect::<Vec<_>>());
        let case = spec("least-request");
        let mut d = Dispatcher::new(&case, &all[..3], options).expect("a pool");
        for new in &all[3..] {
            d.add(Time::ZERO, new).expect("a member");
        }
        let mut open = VecDeque::new();
        let mut picks = Vec::new();
        for i in 0..4_000 {
            let now = Time::from_nanos(i * 500_000);
            let made = d.pick(now, &Request::default()).expect("eligible");
            picks.push(made.backend);
            open.push_back(made.id);
            // Queues of one and two.
            if open.len() > 220 {
                let first = open.pop_front().expect("open");
                d.respond(now, first, &Answer::new(Status::Ok))
                    .expect("open");
            }
        }
        picks
    };
    assert_eq!(run(0), run(usize::MAX));
}

/// Pearson's statistic of counts that should be equal.
fn chi_square(counts: &[u64]) -> f64 {
    let mean = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
    let square = |count: &u64| (*count as f64 - mean).powi(2) / mean;
    counts.iter().map(square).sum()
}

/// Mean plus six standard deviations of the statistic with `cells - 1` degrees of freedom: exceeded by
/// chance once in some 10^7 tests.
fn bound(cells: usize) -> f64 {
    let freedom = (cells - 1) as f64;
    freedom + 6.0 * (2.0 * freedom).sqrt()
}

#[test]
fn ties_are_broken_uniformly() {
    let n = 100;
    for text in [
        "least-request:ties=random",
        "weighted-least-request",
        "weighted-least-request:offset=0",
        "polled-least-request",
        "polled-own-sends",
        "min-response-time",
        "min-response-time:source=polled",
        "peak-ewma:choices=0",
        "c3",
    ] {
        // Without the request itself, an idle pool is a tie across weights.
        let ignores_weights = text.contains("offset=0") || text.starts_with("least-request");
        let weights: Vec<u32> = (0..n)
            .map(|i| if ignores_weights { 1 + i % 3 } else { 2 })
            .collect();
        let pool = members(&weights);
        let mut d = Dispatcher::new(&spec(text), &pool, options()).expect("a pool");
        // Requests come and go, so that nobody stands where it began.
        for i in 0..1000 {
            let now = Time::from_millis(i);
            let made = d.pick(now, &Request::default()).expect("eligible");
            let cancelled = crate::Answer::cancelled();
            d.respond(now, made.id, &cancelled).expect("open");
        }
        let tried = [BackendId(7), BackendId(64)];
        for tried in [&[][..], &tried] {
            let request = Request {
                tried,
                ..Request::default()
            };
            let mut counts = vec![0; n as usize];
            for _ in 0..50_000 {
                let id = d.pick_only(Time::from_millis(1000), &request);
                counts[id.expect("eligible").index()] += 1;
            }
            assert!(tried.iter().all(|id| counts[id.index()] == 0), "{text}");
            let mut index = 0;
            counts.retain(|_| {
                index += 1;
                !tried.contains(&BackendId(index - 1))
            });
            let statistic = chi_square(&counts);
            assert!(statistic < bound(counts.len()), "{text}: {statistic}");
            // A draw that were not random at all would be far more even than chance.
            assert!(statistic > counts.len() as f64 / 4.0, "{text}: {statistic}");
        }
    }
}
