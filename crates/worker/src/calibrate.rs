//! How fast this host runs the burn loop, and how much may really be burned on it.
//!
//! Two speeds matter. One thread alone is measured per CPU-second, best of several, so that other
//! programs cost the measurement time but not truth (`native_mips_per_core`). All cores busy at once
//! is what the burn can really be given: cores that share a physical one slow each other down, and
//! what other programs take is gone, so it is the lower of the speed per CPU-second and per second of
//! the wall clock.

use crate::burn::{LOOP_NAME, burn};
use crate::clock::thread_cpu_ns;
use serde::Serialize;
use std::thread;
use std::time::Instant;

/// Runs per thread; the best of them (one alone) or their median (all busy) counts.
const RUNS: usize = 5;
/// Work of one run, MI: about 10 ms.
const RUN_MI: f64 = 100.0;

/// What a calibration found.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Calibration {
    /// Name of the instruction loop.
    #[serde(rename = "loop")]
    pub(crate) loop_name: &'static str,
    /// Best speed of one core, MIPS.
    pub(crate) native_mips_per_core: f64,
    /// Speed of each core with all of them busy, MIPS.
    pub(crate) native_mips_all_busy: f64,
    /// Cores of the host this process may run on.
    pub(crate) host_cores: usize,
}

/// Measures for about 50 ms alone and 50 ms on all cores.
pub(crate) fn calibrate() -> Calibration {
    let host_cores = host_cores();
    let alone = run_speeds();
    let best = alone.into_iter().fold(0.0, f64::max);
    let together: Vec<f64> = thread::scope(|scope| {
        let busy = || {
            let start = Instant::now();
            let per_cpu_second = median(run_speeds());
            let per_second = RUNS as f64 * RUN_MI / start.elapsed().as_secs_f64();
            per_cpu_second.min(per_second)
        };
        let threads: Vec<_> = (0..host_cores).map(|_| scope.spawn(busy)).collect();
        threads
            .into_iter()
            .map(|t| t.join().unwrap_or(best))
            .collect()
    });
    Calibration {
        loop_name: LOOP_NAME,
        native_mips_per_core: best.round(),
        native_mips_all_busy: (together.iter().sum::<f64>() / together.len() as f64).round(),
        host_cores,
    }
}

fn run_speeds() -> [f64; RUNS] {
    std::array::from_fn(|_| {
        let start_ns = thread_cpu_ns();
        burn(RUN_MI);
        RUN_MI / ((thread_cpu_ns() - start_ns).max(1) as f64 * 1e-9)
    })
}

fn median(mut speeds: [f64; RUNS]) -> f64 {
    speeds.sort_by(f64::total_cmp);
    speeds[RUNS / 2]
}

/// Cores of the host this process may run on. A CPU quota does not change it: the other workers of
/// the pool share the host, each under its own quota.
fn host_cores() -> usize {
    #[cfg(target_os = "linux")]
    if let Ok(set) = rustix::thread::sched_getaffinity(None) {
        return (set.count() as usize).max(1);
    }
    thread::available_parallelism().map_or(1, usize::from)
}

/// What the choice of a burn fraction rests on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BurnBudget {
    /// Expected load of the pool, 0..1.
    pub(crate) load: f64,
    /// Cores of all workers on this host together.
    pub(crate) pool_cores: f64,
    /// This worker's cores.
    pub(crate) cores: f64,
    /// Nominal speed of a core, MIPS.
    pub(crate) mips_per_core: f64,
    /// Cores the kernel lets this worker use at once, if it is limited.
    pub(crate) quota_cores: Option<f64>,
}

/// CPU left to balancer and client, cores.
const RESERVED_CORES: f64 = 0.5;
/// Share of the remaining CPU that the burn may use: beyond it, the client sends late, then
/// burns come late (measured: `testbed`'s README, "How a bench runs").
const USABLE_SHARE: f64 = 0.4;
/// A quota should be at least this many times the mean use, or the kernel throttles bursts.
const QUOTA_HEADROOM: f64 = 2.0;

impl BurnBudget {
    /// The largest fraction of the instructions that may really be executed:
    /// load * pool cores * M * f <= 0.4 * (host cores - 0.5) * native MIPS with all cores busy,
    /// and the worker's own mean use at most half its CPU quota. Rounded down to a thousandth.
    pub(crate) fn largest_fraction(&self, host: &Calibration) -> f64 {
        let host_cores = host.host_cores as f64;
        let spare_mips = (host_cores - RESERVED_CORES) * host.native_mips_all_busy * USABLE_SHARE;
        let of_host = spare_mips / (self.load * self.pool_cores * self.mips_per_core);
        let of_quota = self.quota_cores.map_or(f64::INFINITY, |quota| {
            quota / QUOTA_HEADROOM * host.native_mips_all_busy
                / (self.load * self.cores * self.mips_per_core)
        });
        // A lane must also be able to run ahead of its pinned speed.
        let of_lane = host.native_mips_all_busy / self.mips_per_core;
        let fraction = of_host.min(of_quota).min(of_lane).min(1.0);
        (fraction * 1000.0).floor() / 1000.0
    }
}

#[cfg(test)]
mod tests {
    use super::{BurnBudget, Calibration};

    const HOST: Calibration = Calibration {
        loop_name: "x",
        native_mips_per_core: 10_000.0,
        native_mips_all_busy: 7_500.0,
        host_cores: 2,
    };

    const POOL: BurnBudget = BurnBudget {
        load: 0.8,
        pool_cores: 9.0,
        cores: 4.0,
        mips_per_core: 7450.0,
        quota_cores: None,
    };

    #[test]
    fn the_fraction_leaves_room_on_the_host() {
        // 0.4 * 1.5 * 7500 / (0.8 * 9 * 7450)
        assert_eq!(POOL.largest_fraction(&HOST), 0.083);
    }

    #[test]
    fn a_small_quota_lowers_the_fraction() {
        let tight = BurnBudget {
            quota_cores: Some(0.2),
            ..POOL
        };
        // 0.1 * 7500 / (0.8 * 4 * 7450)
        assert_eq!(tight.largest_fraction(&HOST), 0.031);
    }

    #[test]
    fn a_large_host_burns_everything() {
        let large = Calibration {
            host_cores: 64,
            native_mips_all_busy: 9000.0,
            ..HOST
        };
        assert_eq!(POOL.largest_fraction(&large), 1.0);
    }
}
