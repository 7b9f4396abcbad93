use proptest::prelude::*;
use statrs::distribution::{ContinuousCDF, Exp, Gamma};

use super::{assert_law, mean};
use crate::laws::arrivals::{Arrivals, Leg};
use crate::rng::{Purpose, exponential, stream};

const DRAWS: usize = 100_000;

fn times(arrivals: &Arrivals, seed: u64) -> impl Iterator<Item = f64> {
    arrivals.times(stream(seed, Purpose::Arrivals, 0, 0))
}

/// Gaps in units of the mean gap.
fn gaps(arrivals: &Arrivals, rate_rps: f64) -> Vec<f64> {
    let mut last_ns = 0.0;
    let gaps = times(arrivals, 11).take(DRAWS).map(|now_ns| {
        let gap_ns = now_ns - last_ns;
        last_ns = now_ns;
        gap_ns * rate_rps / 1e9
    });
    gaps.collect()
}

#[test]
fn poisson_gaps_are_exponential() {
    let gaps = gaps(&Arrivals::Poisson { rate_rps: 250.0 }, 250.0);
    let law = Exp::new(1.0).expect("a law");
    assert_law("poisson", gaps, |x| law.cdf(x));
}

#[test]
fn gamma_gaps_are_gamma_with_the_mean_and_spread_asked_for() {
    for cv in [0.1, 0.5, 1.0, 1.5, 3.0, 13.0] {
        let rate_rps = 40.0;
        let gaps = gaps(&Arrivals::Gamma { rate_rps, cv }, rate_rps);
        let n = gaps.len() as f64;
        let m = mean(&gaps);
        assert!((m - 1.0).abs() < 5.0 * cv / n.sqrt(), "cv {cv}: mean {m}");
        let variance = gaps.iter().map(|g| (g - m) * (g - m)).sum::<f64>() / n;
        // The excess kurtosis of a gamma law is 6 cv^2.
        let relative_error = ((6.0 * cv * cv + 2.0) / n).sqrt();
        let ratio = variance / (cv * cv);
        assert!(
            (ratio - 1.0).abs() < 5.0 * relative_error,
            "cv {cv}: {ratio}"
        );
        let shape = 1.0 / (cv * cv);
        let law = Gamma::new(shape, shape).expect("a law");
        // Differences of a running sum are exact to a part in 1e11 of a gap, and no more.
        let cdf = |x: f64| if x > 0.0 { law.cdf(x) } else { 0.0 };
        let positive: Vec<f64> = gaps.into_iter().filter(|g| *g > 1e-6).collect();
        let lost = 1.0 - positive.len() as f64 / n;
        assert!((lost - cdf(1e-6)).abs() < 0.01, "cv {cv}: {lost} lost");
        let conditional = |x: f64| (cdf(x) - cdf(1e-6)) / (1.0 - cdf(1e-6));
        assert_law(&format!("gamma {cv}"), positive, conditional);
    }
}

#[test]
fn a_sine_brings_requests_in_the_shares_of_its_integrated_rate() {
    for amplitude in [0.0, 0.5, 1.0] {
        let sine = Arrivals::Sine {
            rate_rps: 100.0,
            amplitude,
            period_ms: 7_000.0,
        };
        // Given their number, the arrivals of whole periods are independent draws of this law.
        let periods = 140.0;
        let phases: Vec<f64> = times(&sine, 3)
            .map(|t| t / 7e9)
            .take_while(|t| *t < periods)
            .map(f64::fract)
            .collect();
        let expected = 100.0 * 7.0 * periods;
        let count = phases.len() as f64;
        assert!((count - expected).abs() < 5.0 * expected.sqrt(), "{count}");
        let tau = std::f64::consts::TAU;
        assert_law(&format!("sine {amplitude}"), phases, |u| {
            u + amplitude / tau * (1.0 - (tau * u).cos())
        });
    }
}

#[test]
fn a_ramp_brings_requests_in_the_shares_of_its_integrated_rate() {
    let ramp = Arrivals::Ramp {
        from_rps: 0.0,
        legs: vec![
            Leg {
                to_rps: 200.0,
                over_ms: 500_000.0,
            },
            Leg {
                to_rps: 50.0,
                over_ms: 0.0,
            },
            Leg {
                to_rps: 50.0,
                over_ms: 200_000.0,
            },
        ],
    };
    // 50,000 requests on the slope, 10,000 after the jump, 50 a second from then on.
    let seconds: Vec<f64> = times(&ramp, 5)
        .map(|t| t / 1e9)
        .take_while(|t| *t < 900.0)
        .collect();
    let expected = 70_000_f64;
    assert!((seconds.len() as f64 - expected).abs() < 5.0 * expected.sqrt());
    assert_law("ramp", seconds, |t| {
        let work = if t < 500.0 {
            0.2 * t * t
        } else {
            50_000.0 + 50.0 * (t - 500.0)
        };
        work / expected
    });
}

#[test]
fn the_expected_span_is_where_the_integrated_rate_reaches_the_count() {
    let ramp = Arrivals::Ramp {
        from_rps: 10.0,
        legs: vec![Leg {
            to_rps: 30.0,
            over_ms: 10_000.0,
        }],
    };
    // 200 requests on the slope, then 30 a second; 10 t + t^2 = 75 at t = 5.
    assert!((ramp.span_ms(75) - 5_000.0).abs() < 1e-6);
    assert!((ramp.span_ms(200) - 10_000.0).abs() < 1e-6);
    assert!((ramp.span_ms(500) - 20_000.0).abs() < 1e-6);
    let sine = Arrivals::Sine {
        rate_rps: 8.0,
        amplitude: 0.9,
        period_ms: 1e3,
    };
    assert!((sine.span_ms(80) - 10_000.0).abs() < 1e-6);
    let gamma = Arrivals::Gamma {
        rate_rps: 8.0,
        cv: 4.0,
    };
    assert!((gamma.span_ms(80) - 10_000.0).abs() < 1e-6);
}

/// The integral of the rate between two instants, by Gauss's rule of two points in small steps: it
/// is exact for straight lines and never asks for the rate at an end, where it may jump.
fn integrated(arrivals: &Arrivals, from_ms: f64, to_ms: f64) -> f64 {
    let steps = 4000;
    let step = (to_ms - from_ms) / f64::from(steps);
    let rate = |part: f64| arrivals.rate_rps_at(from_ms + step * part) / 1e3;
    let near = (1.0 - 1.0 / 3.0_f64.sqrt()) / 2.0;
    let sum: f64 = (0..steps)
        .map(f64::from)
        .map(|i| rate(i + near) + rate(i + 1.0 - near))
        .sum();
    sum * step / 2.0
}

/// Before 10 ms the rate is 100 a second, from there 0; at 10 ms and a little less the oracle must
/// not take one for the other.
#[test]
fn the_integral_that_due_times_are_checked_with_stops_short_of_a_jump() {
    let leg = |to_rps, over_ms| Leg { to_rps, over_ms };
    let ramp = Arrivals::Ramp {
        from_rps: 100.0,
        legs: vec![leg(100.0, 10.0), leg(0.0, 0.0), leg(50.0, 100.0)],
    };
    for short_ms in [1.0, 0.02, 1e-3, 1e-6, 1e-9] {
        let from_ms = 10.0 - short_ms;
        let work = integrated(&ramp, from_ms, 10.0);
        let wanted = (10.0 - from_ms) * 0.1;
        assert!((work / wanted - 1.0).abs() < 1e-9, "{short_ms}: {work}");
    }
}

/// Instants at which a ramp's rate turns or jumps.
fn corners_ms(arrivals: &Arrivals) -> Vec<f64> {
    let Arrivals::Ramp { legs, .. } = arrivals else {
        return Vec::new();
    };
    let ends = legs.iter().scan(0.0, |end_ms, leg| {
        *end_ms += leg.over_ms;
        Some(*end_ms)
    });
    ends.collect()
}

/// The unit-rate arrivals that the due times must stand for, from the rate alone.
fn assert_inverts(arrivals: &Arrivals, seed: u64) {
    let mut rng = stream(seed, Purpose::Arrivals, 0, 0);
    let corners = corners_ms(arrivals);
    let (mut wanted, mut work, mut last_ms) = (0.0, 0.0, 0.0);
    for due_ns in times(arrivals, seed).take(25) {
        wanted += exponential(&mut rng);
        let due_ms = due_ns / 1e6;
        let mut stops: Vec<f64> = corners
            .iter()
            .copied()
            .filter(|c| (last_ms..due_ms).contains(c))
            .collect();
        stops.push(due_ms);
        for stop in stops {
            work += integrated(arrivals, last_ms, stop);
            last_ms = stop;
        }
        let error = (work - wanted).abs() / wanted;
        assert!(error < 1e-7, "{arrivals:?}: work {work}, wanted {wanted}");
    }
}

proptest! {
    #[test]
    fn due_times_of_a_sine_invert_its_integrated_rate(
        seed in any::<u64>(),
        rate_rps in 0.5_f64..1000.0,
        amplitude in prop_oneof![0.0_f64..=1.0, Just(1.0)],
        per_period in 0.5_f64..10_000.0,
    ) {
        let period_ms = (1e3 * per_period / rate_rps).max(1.0);
        assert_inverts(&Arrivals::Sine { rate_rps, amplitude, period_ms }, seed);
    }

    #[test]
    fn due_times_of_a_ramp_invert_its_integrated_rate(
        seed in any::<u64>(),
        from_rps in prop_oneof![Just(0.0), 0.0_f64..200.0],
        legs in prop::collection::vec(
            (prop_oneof![Just(0.0), 0.0_f64..200.0], prop_oneof![Just(0.0), 0.0_f64..300.0]), 0..5
        ),
        last_rps in 0.5_f64..200.0,
    ) {
        let legs = legs.into_iter().chain([(last_rps, 100.0)]);
        let legs = legs.map(|(to_rps, over_ms)| Leg { to_rps, over_ms }).collect();
        assert_inverts(&Arrivals::Ramp { from_rps, legs }, seed);
    }

    #[test]
    fn a_process_at_another_speed_has_the_same_times_divided(
        arrivals in crate::schedule::tests::any_arrivals(),
        speed in 0.01_f64..100.0,
        seed in any::<u64>(),
    ) {
        let fast = arrivals.clone().at_speed(speed);
        for (a, b) in times(&arrivals, seed).zip(times(&fast, seed)).take(50) {
            prop_assert!((a / speed - b).abs() <= 1e-6 + 1e-9 * b, "{} {}", a / speed, b);
        }
    }
}

#[test]
fn the_bits_of_every_process_are_these_on_every_machine() {
    let all = [
        Arrivals::Constant { interval_ms: 0.3 },
        Arrivals::Poisson { rate_rps: 70.0 },
        Arrivals::Gamma {
            rate_rps: 70.0,
            cv: 0.4,
        },
        Arrivals::Gamma {
            rate_rps: 70.0,
            cv: 4.0,
        },
        Arrivals::Sine {
            rate_rps: 70.0,
            amplitude: 1.0,
            period_ms: 100.0,
        },
        Arrivals::Ramp {
            from_rps: 0.0,
            legs: vec![Leg {
                to_rps: 70.0,
                over_ms: 200.0,
            }],
        },
    ];
    let bits = all.map(|arrivals| {
        let first: Vec<String> = times(&arrivals, 42)
            .take(1000)
            .step_by(333)
            .map(|t| format!("{t:e}"))
            .collect();
        format!("{arrivals:?}: {}", first.join(" "))
    });
    insta::assert_snapshot!(bits.join("\n"));
}
