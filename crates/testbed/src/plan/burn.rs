//! How much of the work may really be burned on this host.
//!
//! The workers keep the nominal times of 4 + 3 + 2 cores whatever the host; the burn fraction is
//! the share of the instructions that is really executed beside it. The rule leaves half a core to
//! the balancer and the client and six tenths of the rest free:
//! `load * cores * M * f <= 0.4 * (host cores - 0.5) * native MIPS with all cores busy`.

use schema::manifest::Burn;

/// Speed at which a worker's core is pinned unless another is asked for, MIPS.
pub(crate) const MIPS_PER_CORE: f64 = 7450.0;
/// Load that is assumed when the workload's own is not known or not a steady one.
pub(crate) const UNKNOWN_LOAD: f64 = 0.8;
/// Share of what the host can do that the workers may take: beyond it the client sends late (measured:
/// the crate's README, "How a bench runs").
const HOST_SHARE: f64 = 0.4;
/// Cores left to the balancer and the client.
const RESERVED_CORES: f64 = 0.5;
/// Fractions are rounded down to a multiple of this, so that they read and compare well.
const STEP: f64 = 0.005;

/// What the rule needs to know.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Situation {
    /// Offered load of the workload on all workers' cores.
    pub(crate) load: f64,
    /// Cores of all workers together.
    pub(crate) worker_cores: f64,
    /// Pinned speed of a core, MIPS.
    pub(crate) mips_per_core: f64,
    /// Cores the host gives.
    pub(crate) host_cores: u32,
    /// Speed of a host core with all of them busy, MIPS.
    pub(crate) native_mips_all_busy: f64,
}

impl Situation {
    /// The largest fraction the rule allows, at most 1.
    fn allowed(&self) -> f64 {
        let budget =
            HOST_SHARE * (f64::from(self.host_cores) - RESERVED_CORES) * self.native_mips_all_busy;
        (budget / (self.load * self.worker_cores * self.mips_per_core)).min(1.0)
    }

    fn arithmetic(&self) -> String {
        format!(
            "load {:.3} x {} cores x {:.0} MIPS x f <= {HOST_SHARE} x ({} - {RESERVED_CORES}) host cores x {:.0} MIPS",
            self.load,
            self.worker_cores,
            self.mips_per_core,
            self.host_cores,
            self.native_mips_all_busy
        )
    }
}

/// The fraction for this situation, or the one asked for, with the reason in a sentence.
pub(crate) fn choose(situation: &Situation, asked: Option<f64>) -> Burn {
    let allowed = situation.allowed();
    let (fraction, reason) = match asked {
        Some(f) if f > allowed => (
            f,
            format!(
                "asked for; more than the {allowed:.3} this host can keep up with ({})",
                situation.arithmetic()
            ),
        ),
        Some(f) => (f, "asked for".to_string()),
        None => (rounded_down(allowed), situation.arithmetic()),
    };
    Burn {
        mips_per_core: situation.mips_per_core,
        fraction,
        emulated: fraction < 1.0,
        reason,
        load: situation.load,
    }
}

fn rounded_down(fraction: f64) -> f64 {
    // The small addition keeps a value that is a multiple already from falling to the next one.
    let steps = (fraction / STEP + 1e-9).floor();
    if steps >= 1.0 {
        (steps * STEP * 1000.0).round() / 1000.0
    } else {
        fraction
    }
}

#[cfg(test)]
mod tests {
    use super::{Situation, choose};

    const SMALL_HOST: Situation = Situation {
        load: 0.8,
        worker_cores: 9.0,
        mips_per_core: 7450.0,
        host_cores: 2,
        native_mips_all_busy: 6850.0,
    };

    #[test]
    fn a_two_core_host_burns_less_than_a_tenth_at_a_load_of_point_eight() {
        // 0.4 * 1.5 * 6850 / (0.8 * 9 * 7450) = 0.0766.
        let burn = choose(&SMALL_HOST, None);
        assert!((burn.fraction - 0.075).abs() < 1e-12, "{burn:?}");
        assert!(burn.emulated);
    }

    #[test]
    fn a_large_host_burns_everything() {
        let host = Situation {
            host_cores: 32,
            ..SMALL_HOST
        };
        let burn = choose(&host, None);
        assert!((burn.fraction - 1.0).abs() < f64::EPSILON && !burn.emulated);
    }

    #[test]
    fn a_fraction_asked_for_is_kept_and_an_unwise_one_is_said_to_be_so() {
        let burn = choose(&SMALL_HOST, Some(0.05));
        assert!((burn.fraction - 0.05).abs() < f64::EPSILON && burn.reason == "asked for");
        let burn = choose(&SMALL_HOST, Some(0.5));
        assert!((burn.fraction - 0.5).abs() < f64::EPSILON);
        assert!(
            burn.reason.contains("more than the 0.077"),
            "{}",
            burn.reason
        );
    }

    #[test]
    fn a_very_slow_host_still_burns_something() {
        let host = Situation {
            native_mips_all_busy: 100.0,
            ..SMALL_HOST
        };
        assert!(choose(&host, None).fraction > 0.0);
    }
}
