//! `up` and `down`: the testbed for other tools to point at.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use schema::problem::Problem;

use crate::bed::engine::Compose;
use crate::bed::process::{Ports, ProcessBed};
use crate::bed::select::{DockerReady, find_checkout, select};
use crate::bed::{Settings, WORKER_CORES};
use crate::cli::UpArgs;
use crate::control::{Addresses, Control};
use crate::folder::Folder;
use crate::models;
use crate::plan::burn::{self, Situation, UNKNOWN_LOAD};
use crate::plan::strategies::parse_list;
use crate::programs::Programs;
use crate::signals::Stop;

/// Compose project of `up`; `docker compose up` in the checkout's folder uses its own name.
const PROJECT: &str = "plumbline";
/// Health checks run every five seconds; workers, then balancer.
const READY_LIMIT: Duration = Duration::from_secs(60);
const MIPS_PER_CORE: f64 = 7450.0;

/// Starts everything; containers stay, processes run until a signal.
pub(crate) async fn run(arguments: &UpArgs) -> anyhow::Result<u8> {
    let programs = Programs::find()?;
    let strategies = parse_list(&arguments.strategy, &programs.strategies()?)?;
    let [strategy] = &strategies[..] else {
        return Err(Problem::new("--strategy", &arguments.strategy, "more than one").into());
    };
    let found = models::find(&[])?;
    programs.check_strategies(&strategies, &found)?;
    let selected = select(arguments.backend, &programs).await?;
    let calibration = programs.calibrate()?;
    let situation = Situation {
        load: UNKNOWN_LOAD,
        worker_cores: WORKER_CORES,
        mips_per_core: MIPS_PER_CORE,
        host_cores: crate::host::cores(),
        native_mips_all_busy: calibration.native_mips_all_busy,
    };
    let burn = burn::choose(&situation, arguments.burn_fraction.0);
    println!("{} back end ({})", selected.kind(), selected.reason);
    println!("burn fraction {} ({})", burn.fraction, burn.reason);
    let settings = Settings {
        mips_per_core: MIPS_PER_CORE,
        burn_fraction: burn.fraction,
        protection: arguments.protection.clone(),
        stats_interval: "100ms".into(),
        strategy: strategy.clone(),
        seed: 0,
        models: (!found.is_empty()).then(models::shipped),
    };
    match selected.docker {
        Some(docker) => containers(arguments, &docker, &settings).await.map(|()| 0),
        None => processes(arguments, programs, &settings).await,
    }
}

async fn containers(
    arguments: &UpArgs,
    docker: &DockerReady,
    settings: &Settings,
) -> anyhow::Result<()> {
    let variables = [
        ("PORT", arguments.port.to_string()),
        ("ADMIN_PORT", arguments.admin_port.to_string()),
        ("BURN_FRACTION", settings.burn_fraction.to_string()),
        ("STRATEGY", settings.strategy.clone()),
        ("PROTECTION", settings.protection.clone()),
    ]
    .map(|(name, value)| (format!("PLUMBLINE_{name}"), value));
    let files = [docker.checkout.join("compose.yaml")];
    let arguments_up = ["up", "-d", "--no-build"];
    docker
        .compose
        .run(PROJECT, &files, &variables, &arguments_up, None)
        .await?;
    let control = Control::new(Addresses {
        balancer: format!("http://127.0.0.1:{}", arguments.port),
        admin: format!("http://127.0.0.1:{}", arguments.admin_port),
        workers: Vec::new(),
    })?;
    control.ready(READY_LIMIT).await?;
    tell(control.addresses());
    println!("stop it with: testbed down");
    Ok(())
}

async fn processes(
    arguments: &UpArgs,
    programs: Programs,
    settings: &Settings,
) -> anyhow::Result<u8> {
    let stop = Stop::listen()?;
    let scratch = Scratch::make()?;
    let folder = Folder::create(&scratch.0)?;
    let ports = Ports {
        traffic: arguments.port,
        admin: arguments.admin_port,
    };
    let mut bed = ProcessBed::start(programs, settings, &folder, ports).await?;
    Control::new(bed.addresses().clone())?
        .ready(READY_LIMIT)
        .await?;
    tell(bed.addresses());
    println!("Ctrl-C stops it");
    let mut look = tokio::time::interval(Duration::from_secs(1));
    let ended = loop {
        tokio::select! {
            () = stop.asked.cancelled() => break Ok(()),
            _ = look.tick() => if let Err(error) = bed.check() { break Err(error) },
        }
    };
    let stopped = bed.stop().await;
    ended?;
    stopped?;
    Ok(stop.exit_code().unwrap_or(0))
}

fn tell(addresses: &Addresses) {
    println!("balancer {}", addresses.balancer);
    println!("admin    {}/", addresses.admin);
    println!(
        "try      curl -i -H 'x-task-size-mi: 400' {}/users/orders",
        addresses.balancer
    );
}

/// Stops and removes the containers of `up`.
pub(crate) async fn down() -> anyhow::Result<()> {
    let compose = Compose::find().context("nothing to stop without Compose")?;
    let files = [find_checkout()?.join("compose.yaml")];
    compose.run(PROJECT, &files, &[], &["down"], None).await
}

/// A folder for logs that goes with the process.
struct Scratch(PathBuf);

impl Scratch {
    fn make() -> anyhow::Result<Self> {
        let path = std::env::temp_dir().join(format!("plumbline-up-{}", std::process::id()));
        std::fs::create_dir_all(&path)
            .with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Logs only; what cannot be removed is the system's to clean.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
