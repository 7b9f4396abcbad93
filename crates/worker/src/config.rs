//! From flags to a machine: every value checked once, before anything starts.

use crate::calibrate::{BurnBudget, Calibration};
use crate::cli::ServeArgs;
use crate::machine::Shape;
use schema::problem::{Findings, Problem, Problems};
use schema::stats::{BYTES_PER_GB, BYTES_PER_MIB, Discipline};
use std::time::Duration;

/// Most burn lanes of one worker.
const MAX_LANES: usize = 1024;
/// Shortest admin token, characters.
const MIN_TOKEN_CHARS: usize = 32;

/// Speed of a core as asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Speed {
    /// Held at this many MIPS.
    Pinned(f64),
    /// As fast as the host runs.
    Native,
}

/// Burn fraction as asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Fraction {
    /// What the host has room for.
    Auto,
    /// This share, 0..=1.
    Fixed(f64),
}

/// Checked settings of a serving worker, before the host's speed is known.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) name: String,
    pub(crate) cores: f64,
    pub(crate) memory_bytes: u64,
    pub(crate) speed: Speed,
    pub(crate) fraction: Fraction,
    pub(crate) pool_cores: f64,
    pub(crate) expected_load: f64,
    pub(crate) discipline: Discipline,
    pub(crate) memory_per_request_bytes: usize,
    pub(crate) max_active: u32,
    pub(crate) max_body_bytes: usize,
    pub(crate) max_connections: usize,
    pub(crate) drain_timeout: Duration,
    pub(crate) tell_work_left: bool,
}

/// The machine that a configuration makes on a host of known speed.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) shape: Shape,
    pub(crate) pinned: bool,
    pub(crate) lanes: usize,
    /// What the user should know, for the log.
    pub(crate) warnings: Vec<String>,
}

impl Config {
    /// Checks the flags.
    ///
    /// # Errors
    /// Every finding, in the order of the flags.
    pub(crate) fn try_new(args: &ServeArgs) -> Result<Self, Problems> {
        let mut findings = Findings::default();
        check_name(&args.name, &mut findings);
        within("--cores", args.cores, 0.05, 100_000.0, &mut findings);
        within("--memory-gb", args.memory_gb, 0.001, 1e6, &mut findings);
        let speed = parse_speed(&args.mips_per_core, &mut findings);
        let fraction = parse_fraction(&args.burn_fraction, &mut findings);
        let pool_cores = args.pool_cores.unwrap_or(args.cores);
        if pool_cores.is_nan() || pool_cores < args.cores {
            findings.push(
                Problem::new("--pool-cores", pool_cores.to_string(), "below --cores")
                    .next("give the cores of all workers on this host together"),
            );
        }
        within(
            "--expected-load",
            args.expected_load,
            0.01,
            1.0,
            &mut findings,
        );
        let mib = args.memory_per_request_mib;
        within(
            "--memory-per-request-mib",
            mib,
            0.0,
            65_536.0,
            &mut findings,
        );
        count("--max-active", args.max_active, 1, 1_000_000, &mut findings);
        count("--max-body-mib", args.max_body_mib, 0, 1024, &mut findings);
        let connections = args.max_connections;
        count(
            "--max-connections",
            connections,
            1,
            1_000_000,
            &mut findings,
        );
        check_together(args, speed, fraction, &mut findings);
        findings.finish(Self {
            name: args.name.clone(),
            cores: args.cores,
            memory_bytes: (args.memory_gb * BYTES_PER_GB as f64) as u64,
            speed,
            fraction,
            pool_cores,
            expected_load: args.expected_load,
            discipline: args.discipline,
            memory_per_request_bytes: (mib * BYTES_PER_MIB as f64) as usize,
            max_active: args.max_active,
            max_body_bytes: args.max_body_mib as usize * BYTES_PER_MIB as usize,
            max_connections: connections as usize,
            drain_timeout: args.drain_timeout,
            tell_work_left: args.tell_work_left,
        })
    }

    /// The machine on this host; `quota_cores` is the kernel's limit on its CPU use, if any.
    pub(crate) fn plan(&self, host: &Calibration, quota_cores: Option<f64>) -> Plan {
        let mut warnings = Vec::new();
        let (mips_per_core, burn_fraction, pinned) = match self.speed {
            Speed::Native => (host.native_mips_per_core, 1.0, false),
            Speed::Pinned(mips) => {
                let budget = BurnBudget {
                    load: self.expected_load,
                    pool_cores: self.pool_cores,
                    cores: self.cores,
                    mips_per_core: mips,
                    quota_cores,
                };
                let largest = budget.largest_fraction(host);
                let fraction = match self.fraction {
                    Fraction::Auto => largest,
                    Fraction::Fixed(fraction) => fraction,
                };
                if fraction > largest {
                    warnings.push(format!(
                        "burn fraction {fraction} is above {largest}, the most this host has room \
                         for ({} cores of {} MIPS, {} cores in the pool, load {}): burns may come \
                         late; see late_burns in /stats",
                        host.host_cores,
                        host.native_mips_all_busy,
                        self.pool_cores,
                        self.expected_load
                    ));
                }
                (mips, fraction, true)
            }
        };
        let shape = Shape {
            cores: self.cores,
            discipline: self.discipline,
            mips_per_core,
            burn_fraction,
        };
        let lanes = self.lanes(&shape, quota_cores, &mut warnings);
        if !pinned && lanes > host.host_cores {
            warnings.push(format!(
                "native speed with {lanes} lanes on {} cores: they slow each other down",
                host.host_cores
            ));
        }
        Plan {
            shape,
            pinned,
            lanes,
            warnings,
        }
    }

    /// One lane per core begun; never more burning threads than the quota has whole cores, so that
    /// the kernel never throttles them.
    fn lanes(&self, shape: &Shape, quota_cores: Option<f64>, warnings: &mut Vec<String>) -> usize {
        if shape.burn_fraction == 0.0 {
            return 0;
        }
        let wanted = match self.discipline {
            Discipline::Ps => self.cores.ceil() as usize,
            Discipline::Fcfs => shape.servers(),
        };
        let Some(quota) = quota_cores else {
            return wanted;
        };
        let allowed = (quota.floor() as usize).max(1);
        if allowed < wanted {
            warnings.push(format!(
                "the CPU quota of {quota} cores allows {allowed} of {wanted} burn lanes"
            ));
        }
        wanted.min(allowed)
    }
}

/// The admin token from a file or the environment, if one is set.
///
/// # Errors
/// When the file cannot be read or the token is too short.
pub(crate) fn admin_token(args: &ServeArgs) -> anyhow::Result<Option<String>> {
    let token = match &args.admin_token_file {
        Some(path) => Some(input::read_text(path).map_err(|problem| *problem)?),
        None => std::env::var("PLUMBLINE_ADMIN_TOKEN").ok(),
    };
    let Some(token) = token.map(|t| t.trim().to_string()) else {
        return check_admin_address(args);
    };
    if token.chars().count() < MIN_TOKEN_CHARS {
        let problem = Problem::new("admin token", "", "is too short")
            .allowed(format!("at least {MIN_TOKEN_CHARS} characters"));
        return Err(Problems::from(problem).into());
    }
    Ok(Some(token))
}

fn check_admin_address(args: &ServeArgs) -> anyhow::Result<Option<String>> {
    match args.admin {
        Some(address) if !address.ip().is_loopback() && !args.admin_open => {
            let what = "not a loopback address, and there is no token";
            let problem = Problem::new("--admin", address.to_string(), what)
                .next("use 127.0.0.1, set a token, or pass --admin-open");
            Err(Problems::from(problem).into())
        }
        _ => Ok(None),
    }
}

fn check_name(name: &str, findings: &mut Findings) {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
        findings.push(
            Problem::new("--name", name, "not a plain name")
                .allowed("1 to 64 letters, digits, dots, underscores or dashes"),
        );
    }
}

fn check_together(args: &ServeArgs, speed: Speed, fraction: Fraction, findings: &mut Findings) {
    match (speed, fraction) {
        (Speed::Native, Fraction::Fixed(f)) if f < 1.0 => findings.push(
            Problem::new(
                "--burn-fraction",
                f.to_string(),
                "native speed runs everything",
            )
            .next("pin the speed with --mips-per-core to burn a part"),
        ),
        (Speed::Pinned(_), Fraction::Fixed(0.0)) => {}
        _ if args.cores > MAX_LANES as f64 => findings.push(
            Problem::new("--cores", args.cores.to_string(), "too many burn lanes")
                .allowed(format!("at most {MAX_LANES}"))
                .next("or pass --burn-fraction 0"),
        ),
        _ => {}
    }
    let servers = args.cores.round().max(1.0);
    if speed == Speed::Native && args.discipline == Discipline::Fcfs && args.cores > servers {
        findings.push(
            Problem::new(
                "--cores",
                args.cores.to_string(),
                format!("{servers} native fcfs servers would each be faster than a core"),
            )
            .next("use whole cores, ps, or a pinned speed"),
        );
    }
}

fn parse_speed(text: &str, findings: &mut Findings) -> Speed {
    match text.parse::<f64>() {
        Ok(mips) if (1.0..=1e6).contains(&mips) => Speed::Pinned(mips),
        _ => {
            if text != "native" {
                findings.push(
                    Problem::new("--mips-per-core", text, "not a speed")
                        .allowed("1 to 1000000 MIPS, or native"),
                );
            }
            Speed::Native
        }
    }
}

fn parse_fraction(text: &str, findings: &mut Findings) -> Fraction {
    match text.parse::<f64>() {
        Ok(fraction) if (0.0..=1.0).contains(&fraction) => Fraction::Fixed(fraction),
        _ => {
            if text != "auto" {
                findings.push(
                    Problem::new("--burn-fraction", text, "not a fraction")
                        .allowed("0 to 1, or auto"),
                );
            }
            Fraction::Auto
        }
    }
}

fn within(flag: &str, value: f64, low: f64, high: f64, findings: &mut Findings) {
    if !(low..=high).contains(&value) {
        findings.push(
            Problem::new(flag, value.to_string(), "out of bounds")
                .allowed(format!("{low} to {high}")),
        );
    }
}

fn count(flag: &str, value: u32, low: u32, high: u32, findings: &mut Findings) {
    within(
        flag,
        f64::from(value),
        f64::from(low),
        f64::from(high),
        findings,
    );
}

#[cfg(test)]
mod tests;
