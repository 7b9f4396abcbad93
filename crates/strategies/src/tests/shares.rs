//! Shares by weight over a million picks: exact where turns are taken, within stated bounds where
//! draws or hashes decide.

use super::pools::{cases, dispatcher, shares, spec, to_two_decimals};
use crate::registry::{ENTRIES, HonorsWeights};
use crate::{Answer, Dispatcher, Request, Spec, Status};
use rand_chacha::ChaCha8Rng;
use schema::rng::{Purpose, below, stream};

const MILLION: usize = 1_000_000;

/// Ten weights of 1 to 15, drawn with a seed.
fn ten_weights(seed: u64) -> Vec<u32> {
    let mut rng = stream(seed, Purpose::Sizes, 0, 0);
    (0..10).map(|_| 1 + below(&mut rng, 15) as u32).collect()
}

/// How far a count may be from its share of the picks.
enum Bound {
    /// So many picks, however many were made.
    Picks(f64),
    /// So many standard deviations of a multinomial count.
    Sigmas(f64),
    /// So large a part of its share, besides four standard deviations.
    Part(f64),
}

fn assert_shares(text: &str, weights: &[u32], counts: &[u64], bound: &Bound) {
    let picks = counts.iter().sum::<u64>() as f64;
    let sum = f64::from(weights.iter().sum::<u32>());
    for (count, weight) in counts.iter().zip(weights) {
        let p = f64::from(*weight) / sum;
        let sigma = (picks * p * (1.0 - p)).sqrt();
        let allowed = match bound {
            Bound::Picks(picks) => *picks,
            Bound::Sigmas(sigmas) => sigmas * sigma,
            Bound::Part(part) => part * picks * p + 4.0 * sigma,
        };
        let off = (*count as f64 - picks * p).abs();
        assert!(
            off <= allowed,
            "{text}: {off} > {allowed} at weight {weight}: {counts:?}"
        );
    }
}

/// Entries whose picks depend on weights alone, and how exact they are over a million picks.
fn blind_bound(case: &Spec) -> Option<Bound> {
    let entry = case.entry();
    if !entry.reads.is_empty() || entry.honors_weights != HonorsWeights::Yes {
        return None;
    }
    // What is picked from the middle of a cycle on is the difference of two beginnings.
    let parts = |case: &Spec| if case.is("start", "random") { 2.0 } else { 1.0 };
    Some(match entry.name {
        // Whole blocks: the period under way is off by less than a block.
        "weighted-round-robin" => Bound::Picks(15.0),
        "smooth-weighted-round-robin" => Bound::Picks(parts(case)),
        // Deadlines of equal fractions are told apart by order: two turns at most.
        "edf-wrr" => Bound::Picks(2.0 * parts(case)),
        // Scaled weights are rounded: half a unit in at least 4,369.
        "static-stride" => Bound::Part(1.2e-4),
        // Four standard deviations: one false alarm in 16,000 comparisons.
        "weighted-random" | "request-hash" | "maglev" | "rendezvous" => Bound::Sigmas(4.0),
        // 160 points per unit of weight.
        "consistent-hash" => Bound::Part(0.25),
        other => panic!("{other} honors weights and reads nothing: how exact is it?"),
    })
}

#[test]
fn ten_random_weights_are_met_over_a_million_picks() {
    let weights = ten_weights(20);
    for entry in ENTRIES {
        let default = Spec::of(entry);
        let texts = match entry.name {
            // Summed up by a test of its own below.
            "weighted-random" => ["alias", "cumulative", "list"]
                .map(|m| spec(&format!("weighted-random:method={m}")))
                .to_vec(),
            _ => vec![default],
        };
        for case in texts {
            if let Some(bound) = blind_bound(&case) {
                let counts = shares(&mut dispatcher(&case, &weights, 5), MILLION);
                assert_shares(&case.to_string(), &weights, &counts, &bound);
            }
        }
    }
}

#[test]
#[ignore = "slow tier: every case and five sets of weights"]
fn many_random_weights_are_met_over_a_million_picks() {
    for seed in 0..5 {
        let weights = ten_weights(seed);
        for case in cases() {
            let coarse = ["points=1", "table=7", "table=1009"];
            let is_keyed_alike = case.entry().needs_key && !case.is("key", "url");
            let is_coarse = coarse.iter().any(|c| case.to_string().ends_with(c));
            if let Some(bound) = blind_bound(&case).filter(|_| !is_coarse && !is_keyed_alike) {
                let counts = shares(&mut dispatcher(&case, &weights, 5), MILLION);
                assert_shares(&case.to_string(), &weights, &counts, &bound);
            }
        }
    }
}

#[test]
fn exact_counts_at_a_million() {
    for (text, expected) in [
        (
            "weighted-round-robin",
            [571_432, 142_856, 142_856, 71_428, 71_428],
        ),
        (
            "smooth-weighted-round-robin",
            [571_429, 142_857, 142_857, 71_429, 71_428],
        ),
        ("edf-wrr", [571_430, 142_857, 142_857, 71_428, 71_428]),
        ("static-stride", [571_424, 142_858, 142_859, 71_429, 71_430]),
    ] {
        let mut d = dispatcher(&spec(text), &[8, 2, 2, 1, 1], 1);
        assert_eq!(shares(&mut d, MILLION), expected, "{text}");
    }
}

#[test]
fn draws_and_hashes_meet_the_shares_to_two_decimals_at_a_million() {
    let random = ["alias", "cumulative", "list"].map(|m| format!("weighted-random:method={m}"));
    let hashed = ["request-hash", "maglev", "rendezvous"].map(String::from);
    let weights = [8, 2, 2, 1, 1];
    for text in random.iter().chain(&hashed) {
        let counts = shares(&mut dispatcher(&spec(text), &weights, 9), MILLION);
        assert_eq!(
            to_two_decimals(&counts),
            [0.57, 0.14, 0.14, 0.07, 0.07],
            "{text}: {counts:?}"
        );
        assert_shares(text, &weights, &counts, &Bound::Sigmas(4.0));
    }
}

/// Keeps `open` requests in flight; any of them ends as likely as any other, so a backend answers as
/// much as it holds. Picks per id, once warm.
fn saturated_shares(d: &mut Dispatcher, open: usize, picks: usize) -> Vec<u64> {
    let mut rng: ChaCha8Rng = stream(8, Purpose::Sizes, 1, 0);
    let mut held = Vec::with_capacity(open);
    let mut counts = vec![0; d.backends().ids_len()];
    for i in 0..picks + 10 * open {
        let now = d.now().plus_ns(1_000_000);
        if held.len() == open {
            let ended = held.swap_remove(below(&mut rng, open as u64) as usize);
            let answer = Answer {
                latency_ns: Some(100_000_000),
                ..Answer::new(Status::Ok)
            };
            d.respond(now, ended, &answer).expect("open");
        }
        let url = format!("/items/{i}");
        let request = Request {
            url: &url,
            ..Request::default()
        };
        let made = d.pick(now, &request).expect("eligible");
        held.push(made.id);
        counts[made.backend.index()] += u64::from(i >= 10 * open);
    }
    counts
}

/// Of strategies that look at loads, shares follow the weights where every backend has more to do than
/// it can: each holds requests in proportion to its weight, and answers in proportion to what it holds.
#[test]
fn a_saturated_pool_is_shared_by_weight() {
    let weights = ten_weights(21);
    for (text, bound) in [
        ("weighted-least-request", Bound::Part(0.01)),
        ("weighted-least-request:offset=0", Bound::Part(0.01)),
        ("weighted-least-request:offset=0.6", Bound::Part(0.01)),
        ("least-time", Bound::Part(0.01)),
        ("least-time-ttfb", Bound::Part(0.01)),
        ("polled-least-request", Bound::Part(0.01)),
        ("polled-own-sends", Bound::Part(0.01)),
        ("basic-li", Bound::Sigmas(4.0)),
        ("aggressive-li", Bound::Sigmas(4.0)),
        // Two draws are not enough to hold everyone at its share, and a ring is uneven.
        ("weighted-p2c:draw=weighted", Bound::Part(0.05)),
        ("bounded-load", Bound::Part(0.25)),
    ] {
        let mut d = dispatcher(&spec(text), &weights, 6);
        let counts = saturated_shares(&mut d, 2_000, 200_000);
        assert_shares(text, &weights, &counts, &bound);
    }
}
