//! `doctor`: what this machine has, what it lacks, and what to do about it.

use std::net::TcpListener;

use serde::Serialize;

use crate::bed::engine::{Compose, Engine};
use crate::bed::select::find_checkout;
use crate::bed::{ALL_CORES, WORKERS};
use crate::host;
use crate::images::IMAGE;
use crate::plan::burn::{self, MIPS_PER_CORE, Situation};
use crate::plan::preset::{Preset, load};
use crate::programs::{Calibration, Programs};
use crate::report;

/// How one check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Good,
    /// Works without it, with less.
    Lacking,
    /// A bench cannot run.
    Bad,
}

/// One check.
#[derive(Debug, Serialize)]
struct Check {
    what: &'static str,
    verdict: Verdict,
    found: String,
}

impl Check {
    fn new(what: &'static str, verdict: Verdict, found: impl Into<String>) -> Self {
        Self {
            what,
            verdict,
            found: found.into(),
        }
    }

    fn of(what: &'static str, otherwise: Verdict, result: anyhow::Result<String>) -> Self {
        match result {
            Ok(found) => Self::new(what, Verdict::Good, found),
            Err(error) => Self::new(what, otherwise, format!("{error:#}")),
        }
    }
}

/// Prints the checks; 0 when a bench can run here, else 1.
pub(crate) async fn run(json: bool) -> anyhow::Result<u8> {
    let mut checks = Vec::new();
    let programs = Programs::find();
    checks.push(Check::of(
        "programs",
        Verdict::Bad,
        programs.as_ref().map_or_else(
            |e| Err(anyhow::anyhow!("{e:#}")),
            |p| Ok(p.path("").display().to_string()),
        ),
    ));
    if let Ok(programs) = &programs {
        checks.extend(machine(programs.calibrate())?);
        checks.push(Check::of(
            "strategies",
            Verdict::Bad,
            programs
                .strategies()
                .map(|s| s.into_iter().map(|s| s.name).collect::<Vec<_>>().join(", ")),
        ));
    }
    checks.extend(engine(programs.as_ref().ok()).await);
    checks.push(Check::of(
        "python",
        Verdict::Lacking,
        report::python().map(|p| p.program.display().to_string()),
    ));
    checks.push(ports());
    let bad = checks.iter().any(|c| c.verdict == Verdict::Bad);
    if json {
        let value = serde_json::json!({"can_bench": !bad, "checks": checks});
        console::say!("{}", serde_json::to_string_pretty(&value)?)?;
    } else {
        for check in &checks {
            let mark = match check.verdict {
                Verdict::Good => "ok  ",
                Verdict::Lacking => "lack",
                Verdict::Bad => "BAD ",
            };
            console::say!("{mark}  {:<12}{}", check.what, check.found)?;
        }
    }
    Ok(u8::from(bad))
}

fn machine(calibration: anyhow::Result<Calibration>) -> anyhow::Result<Vec<Check>> {
    let calibration = match calibration {
        Ok(calibration) => calibration,
        Err(error) => {
            return Ok(vec![Check::new(
                "machine",
                Verdict::Bad,
                format!("{error:#}"),
            )]);
        }
    };
    let facts = host::facts(&calibration);
    let situation = Situation {
        // What `testbed bench` without arguments would find.
        load: load(&Preset::Quick.workload()?, ALL_CORES * MIPS_PER_CORE),
        worker_cores: ALL_CORES,
        mips_per_core: MIPS_PER_CORE,
        host_cores: facts.cores,
        native_mips_all_busy: calibration.native_mips_all_busy,
    };
    let burn = burn::choose(&situation, None);
    let memory_gb = facts.memory_bytes as f64 / schema::stats::BYTES_PER_GB as f64;
    let limits: u64 = WORKERS.iter().map(|(_, gb)| gb).sum();
    let burned = if burn.emulated {
        format!(
            "emulated: a bench burns the fraction {} to make up for the missing cores ({})",
            burn.fraction, burn.reason
        )
    } else {
        "every instruction can really be executed".to_string()
    };
    Ok(vec![
        Check::new(
            "machine",
            Verdict::Good,
            format!(
                "{}, {} cores, {memory_gb:.1} GiB, {}",
                facts.cpu_model, facts.cores, facts.system
            ),
        ),
        Check::new(
            "speed",
            Verdict::Good,
            format!(
                "loop {}: {:.0} MIPS a core alone, {:.0} with all cores busy",
                facts.loop_name, facts.native_mips_per_core, facts.native_mips_per_core_all_busy
            ),
        ),
        Check::new("burning", Verdict::Good, burned),
        Check::new(
            "memory",
            Verdict::Good,
            format!(
                "the workers' limits add up to {limits} GiB; they are limits, not reservations"
            ),
        ),
    ])
}

async fn engine(programs: Option<&Programs>) -> Vec<Check> {
    let mut checks = Vec::new();
    let engine = Engine::connect().await;
    let found = match &engine {
        Ok(e) => Ok(format!("engine {}, {} cores", e.version, e.cores)),
        Err(e) => Err(anyhow::anyhow!("{e:#}; the process back end needs none")),
    };
    checks.push(Check::of("docker", Verdict::Lacking, found));
    let compose = Compose::find().map(|c| c.version);
    checks.push(Check::of("compose", Verdict::Lacking, compose));
    let checkout = find_checkout().map(|c| c.display().to_string());
    checks.push(Check::of("checkout", Verdict::Lacking, checkout));
    if let Ok(engine) = &engine {
        let image = if engine.has_image(IMAGE).await {
            Ok(IMAGE.to_string())
        } else {
            Err(anyhow::anyhow!(
                "no {IMAGE} yet; a bench or `make images` builds it"
            ))
        };
        checks.push(Check::of("image", Verdict::Lacking, image));
    }
    if let Some(programs) = programs {
        let linked = match programs.are_static() {
            Ok(true) => Ok("the programs run in an empty image".to_string()),
            Ok(false) => Err(anyhow::anyhow!(
                "the programs need shared libraries; `make build` makes static ones for images"
            )),
            Err(error) => Err(error),
        };
        checks.push(Check::of("static", Verdict::Lacking, linked));
    }
    checks
}

fn ports() -> Check {
    let taken: Vec<String> = [8080_u16, 8081]
        .into_iter()
        .filter(|port| TcpListener::bind(("127.0.0.1", *port)).is_err())
        .map(|port| port.to_string())
        .collect();
    if taken.is_empty() {
        Check::new("ports", Verdict::Good, "8080 and 8081 are free for `up`")
    } else {
        Check::new(
            "ports",
            Verdict::Lacking,
            format!("in use: {}; give `up` others with --port", taken.join(", ")),
        )
    }
}
