//! `up` and `down`: the testbed for other tools to point at.

use std::net::TcpListener;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use schema::problem::Problem;
use schema::stats::Discipline;

use crate::bed::docker::BENCH_PROJECTS;
use crate::bed::engine::{Compose, Engine};
use crate::bed::process::{Ports, ProcessBed};
use crate::bed::select::{DockerReady, find_checkout, select};
use crate::bed::{ALL_CORES, CORES, Settings, configured_limits};
use crate::cli::UpArgs;
use crate::control::{Addresses, Control};
use crate::folder::Folder;
use crate::models;
use crate::plan::burn::{self, MIPS_PER_CORE, Situation, UNKNOWN_LOAD};
use crate::plan::strategies::parse_list;
use crate::programs::Programs;
use crate::signals::Stop;

/// Compose project of `up`; `docker compose up` in the checkout's folder uses its own name.
const PROJECT: &str = "plumbline";
/// Health checks run every five seconds; workers, then balancer.
const READY_LIMIT: Duration = Duration::from_secs(60);

/// Starts everything; containers stay, processes run until a signal.
pub(crate) async fn run(arguments: &UpArgs) -> anyhow::Result<u8> {
    if arguments.port == arguments.admin_port {
        let port = arguments.admin_port.to_string();
        let what = "is the port of the traffic, --port, too";
        return Err(Problem::new("--admin-port", port, what)
            .next("give another one")
            .into());
    }
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
        worker_cores: ALL_CORES,
        mips_per_core: MIPS_PER_CORE,
        host_cores: crate::host::cores(),
        native_mips_all_busy: calibration.native_mips_all_busy,
    };
    let burn = burn::choose(&situation, arguments.burn_fraction.0);
    console::say!("{} back end ({})", selected.kind(), selected.reason)?;
    console::say!("burn fraction {} ({})", burn.fraction, burn.reason)?;
    let settings = Settings {
        workers: configured_limits(CORES),
        discipline: Discipline::Ps,
        tell_work_left: false,
        mips_per_core: MIPS_PER_CORE,
        burn_fraction: burn.fraction,
        protection: arguments.protection.clone(),
        stats_interval: "100ms".into(),
        ask_first: "off".into(),
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
    free_ports(&docker.engine, [arguments.port, arguments.admin_port]).await?;
    let variables = [
        ("TAG", docker.image.tag.clone()),
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
    tell(control.addresses())?;
    console::say!("stop it with: make down (or testbed down)")?;
    Ok(())
}

/// Refuses ports that somebody else listens on, and says who where that can be seen.
async fn free_ports(engine: &Engine, ports: [u16; 2]) -> anyhow::Result<()> {
    for (port, flag) in ports.into_iter().zip(["--port", "--admin-port"]) {
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            continue;
        }
        let (what, next) = match engine.publisher(port).await {
            // What `up` left running is brought up to date, not in the way.
            Some((_, project)) if project == PROJECT => continue,
            Some((name, project)) => (
                format!("container {name} of project {project:?} listens on it"),
                "`make down` (or testbed down) stops what this checkout's compose.yaml started; or \
                 name another port",
            ),
            None => (
                "something listens on it already".to_string(),
                "stop it (`ss -ltnp` shows what it is) or name another port",
            ),
        };
        return Err(Problem::new(flag, port.to_string(), what).next(next).into());
    }
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
    tell(bed.addresses())?;
    console::say!("Ctrl-C stops it")?;
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

fn tell(addresses: &Addresses) -> std::io::Result<()> {
    console::say!("balancer {}", addresses.balancer)?;
    console::say!("admin    {}/", addresses.admin)?;
    console::say!(
        "try      curl -i -H 'x-task-size-mi: 400' {}/users/orders",
        addresses.balancer
    )
}

/// Stops and removes the containers of `up`, and those that Compose started by hand from this
/// checkout, under whatever project name; those of a bench are its own.
pub(crate) async fn down() -> anyhow::Result<()> {
    let compose = Compose::find().context("nothing to stop without Compose")?;
    let checkout = find_checkout()?;
    let engine = Engine::connect().await.context("nothing to stop")?;
    let mut projects = engine.projects_of(&checkout).await?;
    projects.retain(|p| p != PROJECT && !p.starts_with(BENCH_PROJECTS));
    if engine.has_project(PROJECT).await? {
        projects.push(PROJECT.to_string());
    }
    if projects.is_empty() {
        console::tell!(
            "nothing runs that `up` or Compose started from {}",
            checkout.display()
        );
    }
    let files = [checkout.join("compose.yaml")];
    for project in projects {
        compose.run(&project, &files, &[], &["down"], None).await?;
    }
    Ok(())
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
