use super::{Due, at_speed, expand, mean_gap_ns};
use crate::laws::arrivals::{Arrivals, Leg};
use crate::workload::{Api, Drawn, Method, Order, Request, Traffic, Workload};
use proptest::prelude::*;

const EVERY_10_MS: Arrivals = Arrivals::Constant { interval_ms: 10.0 };

fn workload(traffic: Traffic) -> Workload {
    let api = |n: u32| Api {
        id: format!("api-{n}"),
        method: Method::Get,
        url: format!("/a/{n}"),
        task_size_mi: f64::from(n),
    };
    Workload {
        name: "t".into(),
        seed: 7,
        generator: serde_json::Map::new(),
        apis: (1..=3).map(api).collect(),
        traffic,
        sha256: String::new(),
    }
}

fn drawn(order: Order, arrivals: Arrivals) -> Workload {
    workload(Traffic::Drawn(Drawn {
        runs: 1000,
        order,
        arrivals,
        size_cv: 0.0,
    }))
}

#[test]
fn orders_differ_and_each_calls_every_api_equally_often() {
    let apis = |order| -> Vec<u32> {
        let schedule = expand(&drawn(order, EVERY_10_MS));
        schedule.iter().map(|d| d.api).collect()
    };
    assert_eq!(apis(Order::Round)[..5], [0, 1, 2, 0, 1]);
    assert_eq!(apis(Order::Sequential)[998..1002], [0, 0, 1, 1]);
    let shuffled = apis(Order::Shuffled);
    assert_ne!(shuffled, apis(Order::Round));
    for api in 0..3 {
        assert_eq!(shuffled.iter().filter(|a| **a == api).count(), 1000);
    }
}

#[test]
fn constant_gaps_start_at_time_zero() {
    let schedule = expand(&drawn(Order::Round, EVERY_10_MS));
    let due: Vec<u64> = schedule.iter().take(3).map(|d| d.intended_ns).collect();
    assert_eq!(due, [0, 10_000_000, 20_000_000]);
    assert_eq!(mean_gap_ns(&schedule), Some(10e6));
    assert_eq!(at_speed(10_000_000, 2.0), 5_000_000);
}

#[test]
fn the_same_seed_gives_the_same_schedule_and_it_is_this_one() {
    let poisson = Arrivals::Poisson { rate_rps: 100.0 };
    let shuffled = drawn(Order::Shuffled, poisson);
    let schedule = expand(&shuffled);
    assert_eq!(schedule, expand(&shuffled));
    let first: Vec<(u64, u32)> = schedule
        .iter()
        .take(4)
        .map(|d| (d.intended_ns, d.api))
        .collect();
    insta::assert_debug_snapshot!(first);
}

#[test]
fn a_list_is_taken_as_it_is() {
    let listed = |at_us, api, task_size_mi| Request {
        at_us,
        api,
        task_size_mi,
    };
    let list = workload(Traffic::Listed(vec![
        listed(5, 2, 10.5),
        listed(5, 0, 1.0),
        listed(2_000_005, 1, 2.0),
    ]));
    let due = |intended_ns, api, task_size_mi| Due {
        intended_ns,
        api,
        task_size_mi,
    };
    assert_eq!(
        expand(&list),
        [
            due(5_000, 2, 10.5),
            due(5_000, 0, 1.0),
            due(2_000_005_000, 1, 2.0)
        ]
    );
    assert!((list.mean_gap_ms() - 1000.0).abs() < 1e-9);
    assert!((list.mean_task_size_mi() - 4.5).abs() < 1e-12);
}

#[test]
fn size_noise_moves_sizes_only_and_keeps_the_mean() {
    let mut noisy = drawn(Order::Shuffled, EVERY_10_MS);
    for api in &mut noisy.apis {
        api.task_size_mi *= 100.0;
    }
    let plain = expand(&noisy);
    let Traffic::Drawn(traffic) = &mut noisy.traffic else {
        panic!("drawn above");
    };
    traffic.size_cv = 0.2;
    let schedule = expand(&noisy);
    let factors: Vec<f64> = schedule
        .iter()
        .zip(&plain)
        .map(|(noisy, plain)| {
            assert_eq!(
                (noisy.intended_ns, noisy.api),
                (plain.intended_ns, plain.api)
            );
            noisy.task_size_mi / plain.task_size_mi
        })
        .collect();
    let mean = factors.iter().sum::<f64>() / factors.len() as f64;
    let variance = factors.iter().map(|f| (f - 1.0) * (f - 1.0)).sum::<f64>();
    let cv = (variance / factors.len() as f64).sqrt();
    // Five standard errors of 3,000 draws: false alarm below 1e-6 for each.
    assert!((mean - 1.0).abs() < 5.0 * 0.2 / 3000_f64.sqrt(), "{mean}");
    assert!((cv / 0.2 - 1.0).abs() < 0.08, "{cv}");
}

/// Any process within friendly bounds.
pub(crate) fn any_arrivals() -> impl Strategy<Value = Arrivals> {
    let rate = 0.1_f64..10_000.0;
    let leg = (0.1_f64..10_000.0, 0.0_f64..5_000.0);
    prop_oneof![
        (0.01_f64..1000.0).prop_map(|interval_ms| Arrivals::Constant { interval_ms }),
        rate.clone()
            .prop_map(|rate_rps| Arrivals::Poisson { rate_rps }),
        (rate.clone(), 0.01_f64..3.0).prop_map(|(rate_rps, cv)| Arrivals::Gamma { rate_rps, cv }),
        (rate.clone(), 0.0_f64..=1.0, 1.0_f64..100_000.0).prop_map(
            |(rate_rps, amplitude, period_ms)| Arrivals::Sine {
                rate_rps,
                amplitude,
                period_ms
            }
        ),
        (rate, prop::collection::vec(leg, 1..5)).prop_map(|(from_rps, legs)| Arrivals::Ramp {
            from_rps,
            legs: legs
                .into_iter()
                .map(|(to_rps, over_ms)| Leg { to_rps, over_ms })
                .collect(),
        }),
    ]
}

proptest! {
    #[test]
    fn a_schedule_is_sorted_counted_and_its_seeds_own(
        arrivals in any_arrivals(),
        seed in any::<u64>(),
        runs in 10_u32..40,
        size_cv in prop_oneof![Just(0.0), 0.01_f64..0.5],
    ) {
        let mut workload = drawn(Order::Shuffled, arrivals);
        for api in &mut workload.apis {
            api.task_size_mi *= 1000.0;
        }
        workload.seed = seed;
        if let Traffic::Drawn(drawn) = &mut workload.traffic {
            drawn.runs = runs;
            drawn.size_cv = size_cv;
        }
        let schedule = expand(&workload);
        prop_assert_eq!(schedule.len() as u64, workload.requests());
        prop_assert!(schedule.is_sorted_by_key(|d| d.intended_ns));
        for api in 0..3 {
            let calls = schedule.iter().filter(|d| d.api == api).count();
            prop_assert_eq!(calls, runs as usize);
        }
        prop_assert_eq!(&schedule, &expand(&workload));
        let constant = matches!(&workload.traffic, Traffic::Drawn(d)
            if matches!(d.arrivals, Arrivals::Constant { .. }));
        workload.seed = seed.wrapping_add(1);
        let other = expand(&workload);
        prop_assert_eq!(other.len(), schedule.len());
        let due = |s: &[Due]| s.iter().map(|d| d.intended_ns).collect::<Vec<_>>();
        prop_assert!(constant || due(&other) != due(&schedule));
        if size_cv > 0.0 {
            let sizes = |s: &[Due]| s.iter().map(|d| d.task_size_mi).collect::<Vec<_>>();
            prop_assert!(sizes(&other) != sizes(&schedule));
        }
    }
}
