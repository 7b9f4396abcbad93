//! T7 two choices that are not, T8 the floor of two choices.

use crate::choose::Draws;
use crate::tests::models::options;
use crate::tests::pools::{dispatcher, shares, spec};
use crate::tests::rig::{Fate, Rig};
use crate::{BackendId, Request, Time};
use rand_chacha::ChaCha8Rng;
use rand_core::RngCore;
use schema::rng::{Purpose, stream};

#[test]
fn t7_two_choices_that_are_not() {
    let busy_share = |text: &str| {
        let mut d = dispatcher(&spec(text), &[1, 1], 5);
        d.drain(Time::ZERO, BackendId(1)).unwrap();
        for _ in 0..100 {
            let _ = d.pick(Time::ZERO, &Request::default());
        }
        d.undrain(Time::ZERO, BackendId(1)).unwrap();
        shares(&mut d, 10_000)[0]
    };
    assert_eq!(busy_share("p2c"), 0);
    assert_eq!(busy_share("d-choices:d=2"), 0);
    // Both draws hit the busy one a quarter of the time: 25 +-1.3 %.
    let repeated = busy_share("d-choices:d=2,replacement=on");
    assert!((2370..=2630).contains(&repeated), "{repeated}");
}

#[test]
fn t7_each_pair_is_drawn_equally_often_and_read_once_each() {
    let d = dispatcher(&spec("p2c"), &[1; 3], 1);
    let mut rng = stream(8, Purpose::Strategy, 0, 0);
    let mut draws = Draws::default();
    let (mut of_pair, mut of_distinct) = ([0_u32; 3], [0_u32; 3]);
    for _ in 0..10_000 {
        let mut read = Vec::new();
        let pair = Draws::pair(d.backends(), &mut rng).unwrap();
        Draws::lower(pair, |b| {
            read.push(b.id.0);
            b.in_flight
        });
        assert_eq!(read.len(), 2, "two loads are read");
        assert_ne!(read[0], read[1], "of two backends");
        of_pair[3 - (read[0] + read[1]) as usize] += 1;
        let drawn = draws.distinct(3, 2, &mut rng);
        of_distinct[3 - (drawn[0] + drawn[1]) as usize] += 1;
    }
    for counts in [of_pair, of_distinct] {
        assert!(counts.iter().all(|c| c.abs_diff(3333) <= 142), "{counts:?}");
    }
}

/// Counts what is drawn.
struct Counting(ChaCha8Rng, u32);

impl RngCore for Counting {
    fn next_u32(&mut self) -> u32 {
        self.1 += 1;
        self.0.next_u32()
    }

    fn next_u64(&mut self) -> u64 {
        self.1 += 1;
        self.0.next_u64()
    }

    fn fill_bytes(&mut self, bytes: &mut [u8]) {
        self.1 += 1;
        self.0.fill_bytes(bytes);
    }
}

#[test]
fn t7_a_pick_draws_exactly_as_many_as_it_says() {
    let d = dispatcher(&spec("p2c"), &[1; 20], 1);
    for (text, expected) in [
        ("p2c", 2),
        ("d-choices:d=1", 1),
        ("d-choices:d=2", 2),
        ("d-choices:d=7", 7),
        ("d-choices:d=7,replacement=on", 7),
        ("d-choices:d=64,replacement=on", 64),
        ("weighted-p2c", 2),
        ("polled-p2c", 2),
    ] {
        let mut strategy = spec(text).build(&options().context);
        strategy.on_backends_changed(Time::ZERO, d.backends());
        let mut rng = Counting(stream(3, Purpose::Strategy, 0, 0), 0);
        for _ in 0..100 {
            let request = Request::default();
            strategy.pick(Time::ZERO, &request, d.backends(), &mut rng);
        }
        // A draw is repeated with probability below n / 2^64.
        assert_eq!(rng.1, 100 * expected, "{text}");
    }
}

#[test]
fn t8_the_floor_of_two_choices() {
    let run = |text: &str| {
        let mut rig = Rig::new(text, &[1; 4], 2);
        let mut latencies = Vec::new();
        for _ in 0..40_000 {
            let gap_ms = rig.exponential(0.25);
            let _ = rig.ask((gap_ms * 1e6) as u64, 0.25, |id, _| {
                let latency_ms = if id.0 < 2 { 5.25 } else { 0.25 };
                latencies.push(latency_ms);
                Fate::Serve(latency_ms)
            });
        }
        latencies.sort_by(f64::total_cmp);
        let slow = (rig.sent()[0] + rig.sent()[1]) as f64 / 400.0;
        (slow, latencies[latencies.len() * 99 / 100])
    };
    // Both slow ones are drawn with probability C(2,2) / C(4,2) = 1/6, and then one must be taken.
    let (slow, p99_ms) = run("peak-ewma:choices=2");
    assert!((slow - 16.7).abs() <= 1.0, "{slow} %");
    assert_eq!(p99_ms, 5.25);
    let (slow, p99_ms) = run("peak-ewma:choices=4");
    assert!(slow <= 1.0, "{slow} %");
    assert!(p99_ms < 1.0, "{p99_ms} ms");
}
