//! Every fast station beside a slow one that walks all requests, in lockstep.

mod slow;

use super::{Cap, Fcfs, Grid, Job, Model, Ps, Quota, Shape, Station, Ticket, Weighted};
use proptest::prelude::*;
use slow::Slow;

const CLASS_WEIGHTS: [f64; 3] = [1.0, 4.0, 0.5];

#[derive(Debug, Clone)]
enum Op {
    Arrive { work: f64, class: u32 },
    Cancel { nth: usize },
    Speed(f64),
    FailAll,
}

fn ops() -> impl Strategy<Value = Vec<(f64, Op)>> {
    let op = prop_oneof![
        12 => (prop_oneof![Just(1.0), 0.01_f64..3.0], 0_u32..3)
            .prop_map(|(work, class)| Op::Arrive { work, class }),
        3 => (0_usize..50).prop_map(|nth| Op::Cancel { nth }),
        1 => prop_oneof![Just(0.0), Just(1.0), 0.1_f64..3.0].prop_map(Op::Speed),
        1 => Just(Op::FailAll),
    ];
    let gap = prop_oneof![Just(0.0), Just(0.25), 0.0_f64..1.0];
    proptest::collection::vec((gap, op), 1..120)
}

/// Runs both side by side; every departure, count and work left must agree to 1e-9.
fn lockstep<S: Station>(shape: &Shape, script: &[(f64, Op)], mut fast: S) {
    let mut slow = Slow::new(shape);
    let mut held: Vec<(Job, Ticket)> = Vec::new();
    let (mut left_fast, mut left_slow) = (Vec::new(), Vec::new());
    let mut now = 0.0;
    let mut issued = 0.0;
    let mut next_job = 0;
    // A last long stretch at full speed lets everybody out.
    let end = [(0.0, Op::Speed(1.0)), (1e4, Op::Speed(1.0))];
    for (gap, op) in script.iter().cloned().chain(end) {
        now += gap;
        while fast.next() <= now + slow::ROUNDING {
            let at = fast.next();
            if let Some(left) = fast.step(at) {
                left_fast.push((left.job, at));
            }
        }
        slow.advance(now, &mut left_slow);
        let gone = |job| left_fast.iter().any(|(j, _)| *j == job);
        held.retain(|(job, _)| !gone(*job));
        compare(&left_fast, &left_slow);
        match op {
            Op::Arrive { work, class } => {
                issued += work;
                held.push((next_job, fast.arrive(now, next_job, work, class)));
                slow.arrive(next_job, work, class);
                next_job += 1;
            }
            Op::Cancel { nth } if !held.is_empty() => {
                let (job, ticket) = held.remove(nth % held.len());
                fast.cancel(now, ticket);
                slow.cancel(job);
            }
            Op::Cancel { .. } => {}
            Op::Speed(speed) => {
                fast.set_speed(now, speed);
                slow.speed = speed;
            }
            Op::FailAll => {
                let mut failed = Vec::new();
                fast.fail_all(now, &mut failed);
                failed.sort_unstable();
                let all: Vec<Job> = held.drain(..).map(|(job, _)| job).collect();
                assert_eq!(failed, all);
                slow.clear();
            }
        }
        assert_eq!(fast.present() as usize, slow.present());
        assert!(!fast.wastes_a_core());
        let mut left = 0.0;
        fast.left(now, &mut |_, work| left += work);
        assert!((left - slow.left()).abs() < 1e-9 * (1.0 + left), "{left}");
        let used = fast.used(now);
        assert!((used.held - slow.held).abs() < 1e-9 * (1.0 + used.held));
        let given = issued - left - fast.lost();
        if S::EXACT {
            assert!(
                (used.work - given).abs() < 1e-9 * (1.0 + given),
                "{} {given}",
                used.work
            );
        }
    }
    assert_eq!(fast.present(), 0);
}

fn compare(fast: &[(Job, f64)], slow: &[(Job, f64)]) {
    let sorted = |list: &[(Job, f64)]| {
        let mut list = list.to_vec();
        list.sort_by_key(|(job, _)| *job);
        list
    };
    let (fast, slow) = (sorted(fast), sorted(slow));
    assert_eq!(fast.len(), slow.len());
    for ((job, at), (other, slow_at)) in fast.iter().zip(&slow) {
        assert_eq!(job, other);
        assert!(
            (at - slow_at).abs() < 1e-9 * (1.0 + at),
            "job {job}: {at} and {slow_at}"
        );
    }
}

fn shape(cores: f64, model: Model) -> Shape {
    Shape {
        cores,
        speed: 1.0,
        mean_work: 1.0,
        model,
    }
}

fn quota(period: f64, host_cores: f64, phase: f64) -> Model {
    Model::Quota {
        period,
        host_cores,
        phase,
    }
}

fn weighted(cap: Cap) -> Model {
    Model::Weighted {
        weights: CLASS_WEIGHTS.to_vec(),
        cap,
    }
}

proptest! {
    #[test]
    fn ps_is_the_slow_ps(script in ops(), cores in prop_oneof![Just(1.0), Just(4.0), 0.3_f64..5.0]) {
        let shape = shape(cores, Model::Ps);
        lockstep(&shape, &script, Ps::new(&shape));
    }

    #[test]
    fn ps_stays_exact_when_the_clock_is_set_back_all_the_time(script in ops()) {
        let shape = shape(1.5, Model::Ps);
        let mut fast = Ps::new(&shape);
        fast.rebase_above(0.5);
        lockstep(&shape, &script, fast);
    }

    #[test]
    fn fcfs_is_the_slow_fcfs(script in ops(), cores in prop_oneof![Just(1.0), Just(3.0), 0.3_f64..5.0]) {
        let shape = shape(cores, Model::Fcfs);
        lockstep(&shape, &script, Fcfs::new(&shape));
    }

    #[test]
    fn quota_is_the_slow_quota(
        script in ops(),
        cores in 0.3_f64..4.0,
        more in 0.0_f64..4.0,
        period in 0.05_f64..1.0,
        phase in 0.0_f64..1.0,
    ) {
        let shape = shape(cores, quota(period, cores + more, phase * period));
        lockstep(&shape, &script, Quota::new(&shape));
    }

    #[test]
    fn grid_is_the_slow_grid(script in ops(), cores in 0.3_f64..4.0, step in 0.03_f64..0.5) {
        let shape = shape(cores, Model::Grid { step });
        lockstep(&shape, &script, Grid::new(&shape));
    }

    #[test]
    fn weighted_is_the_slow_weighted(script in ops(), cores in 0.3_f64..5.0, capped: bool) {
        let cap = if capped { Cap::OneCore } else { Cap::None };
        let shape = shape(cores, weighted(cap));
        lockstep(&shape, &script, Weighted::new(&shape));
    }
}

#[test]
fn equal_keys_leave_in_the_order_of_arrival() {
    let mut station = Ps::new(&shape(2.0, Model::Ps));
    for job in 0..5 {
        station.arrive(0.0, job, 1.0, 0);
    }
    let order: Vec<Job> = (0..5)
        .map(|_| {
            let at = station.next();
            assert_eq!(at, 2.5);
            station.step(at).expect("someone leaves").job
        })
        .collect();
    assert_eq!(order, [0, 1, 2, 3, 4]);
}

#[test]
fn a_quota_lets_a_lone_request_run_at_full_speed_and_then_stall() {
    // 0.4 cores of 0.1 s periods: 40 ms at full speed, then nothing until the next period.
    let mut station = Quota::new(&shape(0.4, quota(0.1, 2.0, 0.0)));
    station.arrive(0.0, 7, 0.1, 0);
    let mut stops = Vec::new();
    loop {
        let at = station.next();
        stops.push((at * 1e3).round());
        if station.step(at).is_some() {
            break;
        }
    }
    assert_eq!(stops, [40.0, 100.0, 140.0, 200.0, 220.0]);
}

#[test]
fn a_quota_of_all_the_host_has_is_processor_sharing() {
    let mut quota = Quota::new(&shape(4.0, quota(0.002, 4.0, 0.0)));
    let mut ps = Ps::new(&shape(4.0, Model::Ps));
    for job in 0..20 {
        let work = 0.1 + 0.07 * f64::from(job);
        quota.arrive(0.0, job, work, 0);
        ps.arrive(0.0, job, work, 0);
    }
    while ps.present() > 0 {
        let at = ps.next();
        let left = ps.step(at).expect("someone leaves");
        let (mut also, mut when) = (None, 0.0);
        while also.is_none() {
            when = quota.next();
            also = quota.step(when);
        }
        assert_eq!(also.map(|d| d.job), Some(left.job));
        assert!((when - at).abs() < 1e-9 * at, "{when} {at}");
    }
}

#[test]
fn capped_weights_leave_nobody_more_than_a_core() {
    // 3 cores; weight 4 would get 2.4 of them and is held at one; the others share two evenly.
    let mut station = Weighted::new(&shape(3.0, weighted(Cap::OneCore)));
    station.arrive(0.0, 0, 1.0, 1);
    for job in 1..5 {
        station.arrive(0.0, job, 1.0, 0);
    }
    let mut left = Vec::new();
    while station.present() > 0 {
        let at = station.next();
        left.extend(station.step(at).map(|d| (d.job, at)));
    }
    // From t = 1 on four requests share three cores: half a unit left at 3/4 each.
    assert_eq!(left[0], (0, 1.0));
    assert!(
        left[1..]
            .iter()
            .all(|(_, at)| (at - (1.0 + 0.5 / 0.75)).abs() < 1e-12)
    );
}
