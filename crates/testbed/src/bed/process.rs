//! Workers, balancer and replay client as local processes.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};
use rustix::process::Signal;
use schema::manifest::WorkerLimits;
use sysinfo::{Pid, ProcessRefreshKind, ProcessesToUpdate, System};
use tokio::task::JoinHandle;

use super::child::Running;
use super::{Replay, ReplaySummary, Settings, of_whole_work};
use crate::control::{Addresses, Control, Usage, WorkerAddress};
use crate::folder::{Folder, START_LOG};
use crate::leash;
use crate::programs::Programs;
use crate::signals::Stop;

/// How often CPU and memory of the workers are read.
pub(crate) const USAGE_INTERVAL: Duration = Duration::from_millis(500);
/// A program that was asked to end gets this long.
const STOP_GRACE: Duration = Duration::from_secs(3);
/// The client ends by itself this long after a signal (it waits 5 s for answers).
const CLIENT_GRACE: Duration = Duration::from_secs(8);
/// The client's own limit for one request, and room to write its last rows.
const CLIENT_TAIL: Duration = Duration::from_secs(60);

/// The testbed as processes of this host.
pub(crate) struct ProcessBed {
    programs: Programs,
    workers: Vec<Running>,
    balancer: Running,
    addresses: Addresses,
    usage: JoinHandle<()>,
}

/// Where the programs listen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ports {
    pub(crate) traffic: u16,
    pub(crate) admin: u16,
}

impl ProcessBed {
    /// Starts the workers, then the balancer on `ports` (0 = any).
    pub(crate) async fn start(
        programs: Programs,
        settings: &Settings,
        folder: &Folder,
        ports: Ports,
    ) -> anyhow::Result<Self> {
        let mut workers = Vec::new();
        let mut worker_addresses = Vec::new();
        for limits in &settings.workers {
            let name = &limits.name;
            let mut command = leash::command(&programs.path("worker"))?;
            command
                .args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"])
                .args(settings.worker_flags(limits));
            let log = folder.path(&format!("logs/worker-{name}.log"));
            let mut worker = Running::start(&format!("worker {name}"), command, &log)?;
            let listening = worker.listening().await?;
            worker_addresses.push(WorkerAddress {
                name: name.clone(),
                admin: listening
                    .admin
                    .context("the worker tells no admin address")?,
                url: listening.url,
            });
            workers.push(worker);
        }
        let (balancer, url, admin) =
            start_balancer(&programs, settings, folder, ports, &worker_addresses).await?;
        let addresses = Addresses {
            balancer: url,
            admin,
            workers: worker_addresses,
        };
        let usage = tokio::spawn(report_usage(
            Control::new(addresses.clone())?,
            ids(&settings.workers, &workers),
            settings.burn_fraction,
        ));
        Ok(Self {
            programs,
            workers,
            balancer,
            addresses,
            usage,
        })
    }

    pub(crate) fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    /// An error when a program has ended.
    pub(crate) fn check(&mut self) -> anyhow::Result<()> {
        self.balancer.check()?;
        self.workers.iter_mut().try_for_each(Running::check)
    }

    pub(crate) async fn replay(
        &mut self,
        folder: &Folder,
        replay: &Replay<'_>,
        stop: &Stop,
    ) -> anyhow::Result<Option<ReplaySummary>> {
        let mut command = leash::command(&self.programs.path("simulator"))?;
        command.args(client_arguments(
            replay,
            replay.schedule,
            replay.out,
            &self.addresses.balancer,
        ));
        let log = folder.path("logs/simulator.log");
        let mut client = Running::start("simulator", command, &log)?;
        let limit = Duration::from_secs_f64(replay.seconds) + CLIENT_TAIL;
        let (status, text) = tokio::select! {
            ended = client.output() => ended?,
            () = stop.asked.cancelled() => {
                end_client(&mut client, stop).await?;
                return Ok(None);
            }
            () = tokio::time::sleep(limit) => {
                client.stop(STOP_GRACE).await?;
                bail!("the simulator did not end within {} s", limit.as_secs());
            }
        };
        self.check()?;
        super::client_result(status.code(), &text, &client.last_words()).map(Some)
    }

    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        self.usage.abort();
        let mut result = self.balancer.stop(STOP_GRACE).await;
        for worker in &mut self.workers {
            result = result.and(worker.stop(STOP_GRACE).await);
        }
        result
    }
}

async fn start_balancer(
    programs: &Programs,
    settings: &Settings,
    folder: &Folder,
    ports: Ports,
    workers: &[WorkerAddress],
) -> anyhow::Result<(Running, String, String)> {
    let mut command = leash::command(&programs.path("balancer"))?;
    command
        .args(["--listen", &format!("127.0.0.1:{}", ports.traffic)])
        .args(["--admin", &format!("127.0.0.1:{}", ports.admin)])
        .args(["--mips-per-core", &settings.mips_per_core.to_string()])
        .args(["--strategy", &settings.strategy])
        .args(["--seed", &settings.seed.to_string()])
        .args(["--stats-interval", &settings.stats_interval])
        .args(["--ask-first", &settings.ask_first])
        .args(["--protection", &settings.protection])
        .args(
            settings
                .models
                .iter()
                .flat_map(|folder| ["--model".into(), folder.clone()]),
        )
        .arg("--event-log")
        .arg(folder.path(START_LOG));
    for (limits, address) in settings.workers.iter().zip(workers) {
        let fields = super::backend_fields(limits);
        let backend = format!("{fields},url={}", address.url);
        command.arg("--backend").arg(backend);
    }
    let log = folder.path("logs/balancer.log");
    let mut balancer = Running::start("balancer", command, &log)?;
    let listening = balancer.listening().await?;
    let admin = listening
        .admin
        .context("the balancer tells no admin address")?;
    Ok((balancer, listening.url, admin))
}

/// The replay client's command line; paths are as the client sees them.
pub(super) fn client_arguments(
    replay: &Replay<'_>,
    schedule: &Path,
    out: &Path,
    target: &str,
) -> Vec<String> {
    let flags = [
        ("--workload", schedule.display().to_string()),
        ("--target", target.to_string()),
        ("--out", out.display().to_string()),
        ("--warmup", replay.warmup.to_string()),
        ("--strategy-label", replay.label.to_string()),
        ("--run-id", replay.run_id.to_string()),
        ("--block", replay.block.to_string()),
    ];
    let mut arguments: Vec<String> = flags
        .into_iter()
        .flat_map(|(flag, value)| [flag.to_string(), value])
        .collect();
    arguments.extend(["--json".to_string(), "--quiet".to_string()]);
    if let Some(slots) = replay.slots {
        arguments.extend(["--slots".to_string(), slots.to_string()]);
    }
    arguments
}

/// Passes the stop on; the client keeps what it recorded.
async fn end_client(client: &mut Running, stop: &Stop) -> anyhow::Result<()> {
    client.signal(Signal::INT);
    tokio::select! {
        ended = client.output() => ended.map(drop),
        () = stop.at_once.cancelled() => client.stop(Duration::ZERO).await,
        () = tokio::time::sleep(CLIENT_GRACE) => client.stop(Duration::ZERO).await,
    }
}

fn ids(limits: &[WorkerLimits], workers: &[Running]) -> Vec<(String, Pid)> {
    limits
        .iter()
        .zip(workers)
        .filter_map(|(limits, worker)| Some((limits.name.clone(), Pid::from_u32(worker.id()?))))
        .collect()
}

/// Reads CPU and memory of the worker processes and hands them to the balancer, for ever.
async fn report_usage(control: Control, workers: Vec<(String, Pid)>, burn_fraction: f64) {
    let mut system = System::new();
    let pids: Vec<Pid> = workers.iter().map(|(_, pid)| *pid).collect();
    let what = ProcessRefreshKind::nothing().with_cpu().with_memory();
    let mut ticks = tokio::time::interval(USAGE_INTERVAL);
    let mut first = true;
    loop {
        ticks.tick().await;
        system.refresh_processes_specifics(ProcessesToUpdate::Some(&pids), true, what);
        // CPU use is a difference between two looks; the first has none.
        if std::mem::take(&mut first) {
            continue;
        }
        let usage: Vec<Usage> = workers
            .iter()
            .filter_map(|(name, pid)| {
                let process = system.process(*pid)?;
                Some(Usage {
                    backend: name.clone(),
                    cpu_percent: of_whole_work(process.cpu_usage().into(), burn_fraction),
                    memory_used_bytes: process.memory(),
                })
            })
            .collect();
        if let Err(error) = control.report(&usage).await {
            tracing::debug!(error = %format!("{error:#}"), "usage report not taken");
        }
    }
}
