//! Workers and balancer as containers of a Compose project of their own; the replay client as a
//! container on the same network, one per arm.
//!
//! The balancer's admin listener is published on a free loopback port; the workers' are reached by
//! their bridge addresses. No container holds the engine's socket.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use bollard::models::{ContainerCreateBody, ContainerStatsResponse, HostConfig};
use bollard::query_parameters::{
    CreateContainerOptionsBuilder, KillContainerOptionsBuilder, StatsOptionsBuilder,
    WaitContainerOptionsBuilder,
};
use futures_util::StreamExt as _;
use schema::manifest::WorkerLimits;
use tokio::task::JoinHandle;

use super::engine::{Compose, Container, Engine, labels, network};
use super::select::DockerReady;
use super::{Replay, ReplaySummary, Settings, WORKERS, backend_fields, of_whole_work};
use crate::control::{Addresses, Control, Usage, WorkerAddress};
use crate::folder::Folder;
use crate::images::{Image, USER};
use crate::janitor::Janitor;
use crate::signals::Stop;

/// Beginning of the names of Compose projects of benches; the number of the process follows.
pub(crate) const BENCH_PROJECTS: &str = "plumbline-bench-";
/// How often the engine's stream has a new sample; it cannot be set.
pub(crate) const USAGE_INTERVAL: Duration = Duration::from_secs(1);
/// Memory limit of the replay client.
const CLIENT_MEMORY: i64 = 2 << 30;
const CLIENT_PIDS: i64 = 256;
/// CPU time of a core in the period that `compose.yaml` sets.
const QUOTA_US_PER_CORE: f64 = 100_000.0;
/// Its weight against a worker's 1,024 where cores are short, as the balancer's in `compose.yaml`:
/// who sends and forwards needs few cycles, but at once, or the latencies measured are its own.
const CLIENT_CPU_SHARES: i64 = 8192;
/// The client ends by itself this long after a signal (it waits 5 s for answers).
const CLIENT_GRACE: Duration = Duration::from_secs(8);
/// The client's own limit for one request, and room to write its last rows.
const CLIENT_TAIL: Duration = Duration::from_secs(60);

/// The testbed as containers.
pub(crate) struct DockerBed {
    engine: Engine,
    compose: Compose,
    image: Image,
    files: Vec<PathBuf>,
    variables: Vec<(String, String)>,
    project: String,
    user: String,
    containers: Vec<Container>,
    addresses: Addresses,
    usage: Vec<JoinHandle<()>>,
    burn_fraction: f64,
    janitor: Janitor,
    logs: PathBuf,
    /// The workers, with limits as the engine reports them.
    pub(crate) limits: Vec<WorkerLimits>,
}

impl DockerBed {
    /// Brings the project up.
    pub(crate) async fn start(
        docker: DockerReady,
        settings: &Settings,
        folder: &Folder,
    ) -> anyhow::Result<Self> {
        let DockerReady {
            engine,
            compose,
            checkout,
            image,
        } = docker;
        let project = format!("{BENCH_PROJECTS}{}", std::process::id());
        let root = fs::canonicalize(folder.root())?;
        let user = share_folders(&root, engine.rootless)?;
        let [traffic, admin] = free_ports()?;
        let variables = variables(settings, &root, &user, &image, traffic, admin);
        let files = vec![
            checkout.join("compose.yaml"),
            checkout.join("docker/bench.yaml"),
            write_workers(settings, &root.join("logs/workers.json"))?,
        ];
        let janitor = Janitor::start(&project)?;
        let mut bed = Self {
            engine,
            compose,
            image,
            files,
            variables,
            project,
            user,
            containers: Vec::new(),
            addresses: Addresses {
                balancer: format!("http://127.0.0.1:{traffic}"),
                admin: format!("http://127.0.0.1:{admin}"),
                workers: Vec::new(),
            },
            usage: Vec::new(),
            burn_fraction: settings.burn_fraction,
            janitor,
            logs: root.join("logs"),
            limits: settings.workers.clone(),
        };
        if let Err(error) = bed.bring_up().await {
            bed.keep_logs().await;
            let removed = bed.engine.remove_project(&bed.project).await;
            bed.janitor.dismiss();
            removed?;
            return Err(error);
        }
        Ok(bed)
    }

    async fn bring_up(&mut self) -> anyhow::Result<()> {
        let log = self.logs.join("compose.log");
        self.compose
            .run(
                &self.project,
                &self.files,
                &self.variables,
                &["up", "-d", "--no-build"],
                Some(&log),
            )
            .await?;
        self.containers = self.engine.containers(&self.project).await?;
        for worker in &mut self.limits {
            let service = format!("worker-{}", worker.name);
            let id = container(&self.containers, &service)?;
            let address = look_at_worker(&self.engine, &self.project, worker, id).await?;
            self.addresses.workers.push(address);
        }
        let control = Control::new(self.addresses.clone())?;
        for (name, _) in WORKERS {
            let worker = Watched {
                name,
                id: container(&self.containers, &format!("worker-{name}"))?.to_string(),
                burn_fraction: self.burn_fraction,
            };
            let task = report_usage(self.engine.clone(), control.clone(), worker);
            self.usage.push(tokio::spawn(task));
        }
        Ok(())
    }

    pub(crate) fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    pub(crate) async fn replay(
        &mut self,
        folder: &Folder,
        replay: &Replay<'_>,
        stop: &Stop,
    ) -> anyhow::Result<Option<ReplaySummary>> {
        let id = self.create_client(folder, replay).await?;
        let ended = self.run_client(&id, replay, stop).await;
        let logs = self.engine.logs(&id).await;
        let removed = self.engine.remove(&id).await;
        let Some(code) = ended? else {
            return removed.map(|()| None);
        };
        let (output, complaints) = logs?;
        append(&self.logs.join("simulator.log"), &complaints)?;
        removed?;
        let words = complaints
            .lines()
            .last()
            .map_or(String::new(), |l| format!("; {l}"));
        super::client_result(Some(code), &output, &words).map(Some)
    }

    async fn create_client(&self, folder: &Folder, replay: &Replay<'_>) -> anyhow::Result<String> {
        let root = fs::canonicalize(folder.root())?;
        let inside = |path: &Path, mount: &str| -> anyhow::Result<PathBuf> {
            let name = path.file_name().context("a file without a name")?;
            Ok(Path::new(mount).join(name))
        };
        let arguments = super::process::client_arguments(
            replay,
            &inside(replay.schedule, "/schedules")?,
            &inside(replay.out, "/parts")?,
            "http://balancer:8080",
        );
        let bind = |name: &str, mode: &str| format!("{}:/{name}:{mode}", root.join(name).display());
        let body = ContainerCreateBody {
            image: Some(self.image.id.clone()),
            user: Some(self.user.clone()),
            entrypoint: Some(vec!["/simulator".to_string()]),
            cmd: Some(arguments),
            labels: Some(labels(&self.project, "bench")),
            host_config: Some(HostConfig {
                binds: Some(vec![bind("schedules", "ro"), bind("parts", "rw")]),
                network_mode: Some(network(&self.project)),
                readonly_rootfs: Some(true),
                cap_drop: Some(vec!["ALL".to_string()]),
                security_opt: Some(vec!["no-new-privileges:true".to_string()]),
                pids_limit: Some(CLIENT_PIDS),
                memory: Some(CLIENT_MEMORY),
                cpu_shares: Some(CLIENT_CPU_SHARES),
                ..HostConfig::default()
            }),
            ..ContainerCreateBody::default()
        };
        let name = format!("{}-client", self.project);
        let options = CreateContainerOptionsBuilder::default().name(&name).build();
        let created = self
            .engine
            .docker
            .create_container(Some(options), body)
            .await;
        Ok(created.context("cannot create the client's container")?.id)
    }

    /// Exit code of the client, `None` when it was stopped by a signal.
    async fn run_client(
        &self,
        id: &str,
        replay: &Replay<'_>,
        stop: &Stop,
    ) -> anyhow::Result<Option<i32>> {
        let docker = &self.engine.docker;
        docker
            .start_container(id, None)
            .await
            .context("cannot start the client's container")?;
        let limit = Duration::from_secs_f64(replay.seconds) + CLIENT_TAIL;
        tokio::select! {
            () = self.client_ended(id) => {}
            () = stop.asked.cancelled() => {
                let options = KillContainerOptionsBuilder::default().signal("SIGINT").build();
                // It may have ended this very moment.
                let _ = docker.kill_container(id, Some(options)).await;
                tokio::select! {
                    () = self.client_ended(id) => {}
                    () = stop.at_once.cancelled() => {}
                    () = tokio::time::sleep(CLIENT_GRACE) => {}
                }
                return Ok(None);
            }
            () = tokio::time::sleep(limit) => {
                bail!("the simulator did not end within {} s", limit.as_secs());
            }
        }
        let state = self.engine.inspect(id).await?.state.unwrap_or_default();
        if state.oom_killed == Some(true) {
            bail!("the simulator ran out of its memory limit");
        }
        let code = state.exit_code.context("the engine tells no exit code")?;
        Ok(Some(i32::try_from(code)?))
    }

    /// Waits for the end; a non-zero code is an error of the stream and read by inspection instead.
    async fn client_ended(&self, id: &str) {
        let options = WaitContainerOptionsBuilder::default()
            .condition("not-running")
            .build();
        let _ = self
            .engine
            .docker
            .wait_container(id, Some(options))
            .next()
            .await;
    }

    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        self.usage.iter().for_each(JoinHandle::abort);
        self.keep_logs().await;
        let log = self.logs.join("compose.log");
        let down = self
            .compose
            .run(
                &self.project,
                &self.files,
                &self.variables,
                &["down", "-t", "5"],
                Some(&log),
            )
            .await;
        let swept = match down {
            Ok(()) => Ok(()),
            Err(error) => {
                tracing::warn!(error = %format!("{error:#}"), "compose down failed, removing by hand");
                self.engine.remove_project(&self.project).await
            }
        };
        self.janitor.dismiss();
        take_back(&self.logs.join(".."), &["events", "parts"]);
        swept
    }

    async fn keep_logs(&self) {
        let containers = match self.engine.containers(&self.project).await {
            Ok(containers) => containers,
            Err(_) => return,
        };
        for container in containers {
            if let Ok((out, err)) = self.engine.logs(&container.id).await {
                let log = self.logs.join(format!("{}.log", container.service));
                if let Err(error) = append(&log, &(out + &err)) {
                    tracing::warn!(error = %format!("{error:#}"), "log not kept");
                }
            }
        }
    }
}

/// Writes what Compose is to start the workers with; JSON is YAML.
fn write_workers(settings: &Settings, path: &Path) -> anyhow::Result<PathBuf> {
    let service = |worker: &WorkerLimits| {
        let listen = [
            "--listen",
            "0.0.0.0:8080",
            "--admin",
            "0.0.0.0:8081",
            "--admin-open",
        ];
        let mut command: Vec<String> = listen.map(String::from).into();
        command.extend(settings.worker_flags(worker));
        let quota_us = (worker.cores * QUOTA_US_PER_CORE).round() as u64;
        let service = serde_json::json!({"command": command, "cpu_quota": quota_us});
        (format!("worker-{}", worker.name), service)
    };
    let services: serde_json::Map<_, _> = settings.workers.iter().map(service).collect();
    let text = serde_json::to_string_pretty(&serde_json::json!({"services": services}))?;
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path.to_path_buf())
}

fn container<'a>(containers: &'a [Container], service: &str) -> anyhow::Result<&'a str> {
    containers
        .iter()
        .find(|c| c.service == service)
        .map(|c| c.id.as_str())
        .with_context(|| format!("no container of service {service}"))
}

/// Address of one worker; its limits as the engine reports them are written down.
async fn look_at_worker(
    engine: &Engine,
    project: &str,
    worker: &mut WorkerLimits,
    id: &str,
) -> anyhow::Result<WorkerAddress> {
    let container = engine.inspect(id).await?;
    let name = &worker.name;
    let address = container
        .network_settings
        .and_then(|n| n.networks)
        .and_then(|mut n| n.remove(&network(project)))
        .and_then(|n| n.ip_address)
        .filter(|ip| !ip.is_empty())
        .with_context(|| format!("worker {name} has no address"))?;
    let host = container.host_config.unwrap_or_default();
    worker.engine_cpus = cpu_limit(&host);
    worker.engine_memory_bytes = host.memory.and_then(|m| u64::try_from(m).ok());
    Ok(WorkerAddress {
        name: name.clone(),
        url: format!("http://{address}:8080"),
        admin: format!("http://{address}:8081"),
    })
}

fn append(log: &Path, text: &str) -> anyhow::Result<()> {
    use std::io::Write as _;
    let file = fs::File::options().create(true).append(true).open(log);
    file.and_then(|mut f| f.write_all(text.as_bytes()))
        .with_context(|| format!("cannot write {}", log.display()))
}

/// CPU limit in cores, whichever way it was given.
fn cpu_limit(host: &HostConfig) -> Option<f64> {
    match (host.nano_cpus, host.cpu_quota, host.cpu_period) {
        (Some(nano), _, _) if nano > 0 => Some(nano as f64 / 1e9),
        (_, Some(quota), Some(period)) if quota > 0 && period > 0 => {
            Some(quota as f64 / period as f64)
        }
        _ => None,
    }
}

/// Lets the containers' user write where it must, and says who that is.
fn share_folders(root: &Path, rootless: bool) -> anyhow::Result<String> {
    let own = rustix::process::getuid();
    if !own.is_root() && !rootless {
        let group = rustix::process::getgid();
        return Ok(format!("{}:{}", own.as_raw(), group.as_raw()));
    }
    for name in ["events", "parts"] {
        let path = root.join(name);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777))
            .with_context(|| format!("cannot share {}", path.display()))?;
    }
    Ok(USER.to_string())
}

/// Undoes [`share_folders`]; a folder that is gone needs nothing.
fn take_back(root: &Path, names: &[&str]) {
    for name in names {
        let _ = fs::set_permissions(root.join(name), fs::Permissions::from_mode(0o755));
    }
}

/// Two ports that were free a moment ago.
fn free_ports() -> anyhow::Result<[u16; 2]> {
    // Both are held until both are known, or they could be the same.
    let listeners = [
        TcpListener::bind("127.0.0.1:0")?,
        TcpListener::bind("127.0.0.1:0")?,
    ];
    Ok([
        listeners[0].local_addr()?.port(),
        listeners[1].local_addr()?.port(),
    ])
}

fn variables(
    settings: &Settings,
    root: &Path,
    user: &str,
    image: &Image,
    traffic: u16,
    admin: u16,
) -> Vec<(String, String)> {
    let of_workers = settings.workers.iter().map(|worker| {
        let name = worker.name.to_uppercase();
        (format!("BACKEND_{name}"), backend_fields(worker))
    });
    let of_all = [
        ("TAG", image.tag.clone()),
        ("TARGET", "prebuilt".to_string()),
        ("USER", user.to_string()),
        ("PORT", traffic.to_string()),
        ("ADMIN_PORT", admin.to_string()),
        ("MIPS_PER_CORE", settings.mips_per_core.to_string()),
        ("STRATEGY", settings.strategy.clone()),
        ("SEED", settings.seed.to_string()),
        ("STATS_INTERVAL", settings.stats_interval.clone()),
        ("ASK_FIRST", settings.ask_first.clone()),
        ("PROTECTION", settings.protection.clone()),
        ("MODELS", root.join("models").display().to_string()),
        ("EVENTS", root.join("events").display().to_string()),
    ];
    of_all
        .map(|(name, value)| (name.to_string(), value))
        .into_iter()
        .chain(of_workers)
        .map(|(name, value)| (format!("PLUMBLINE_{name}"), value))
        .collect()
}

/// A worker whose figures are read.
struct Watched {
    name: &'static str,
    /// Of its container.
    id: String,
    burn_fraction: f64,
}

/// Reads the engine's stream of one worker and hands every sample to the balancer, until aborted.
async fn report_usage(engine: Engine, control: Control, worker: Watched) {
    let options = StatsOptionsBuilder::default().stream(true).build();
    let mut samples = engine.docker.stats(&worker.id, Some(options));
    let mut before: Option<(u64, u64)> = None;
    while let Some(Ok(sample)) = samples.next().await {
        let Some(now) = cpu_clock(&sample) else {
            continue;
        };
        if let Some(usage) = before.and_then(|b| usage(&worker, &sample, b, now))
            && let Err(error) = control.report(&[usage]).await
        {
            tracing::debug!(error = %format!("{error:#}"), "usage report not taken");
        }
        before = Some(now);
    }
}

/// CPU time of the container and of the whole system, ns.
fn cpu_clock(sample: &ContainerStatsResponse) -> Option<(u64, u64)> {
    let cpu = sample.cpu_stats.as_ref()?;
    Some((cpu.cpu_usage.as_ref()?.total_usage?, cpu.system_cpu_usage?))
}

/// As `docker stats` shows it: 100 = one core, but of the whole work; memory without the inactive page
/// cache.
fn usage(
    worker: &Watched,
    sample: &ContainerStatsResponse,
    before: (u64, u64),
    now: (u64, u64),
) -> Option<Usage> {
    let system = now.1.checked_sub(before.1).filter(|&ns| ns > 0)?;
    let own = now.0.saturating_sub(before.0);
    let cores = f64::from(sample.cpu_stats.as_ref()?.online_cpus?);
    let cpu_percent = own as f64 / system as f64 * cores * 100.0;
    let memory = sample.memory_stats.as_ref()?;
    let details = memory.stats.as_ref();
    let inactive = ["total_inactive_file", "inactive_file"]
        .iter()
        .find_map(|key| details?.get(*key).copied())
        .unwrap_or(0);
    Some(Usage {
        backend: worker.name.to_string(),
        cpu_percent: of_whole_work(cpu_percent, worker.burn_fraction),
        memory_used_bytes: memory.usage?.saturating_sub(inactive),
    })
}

#[cfg(test)]
mod tests {
    use super::{Watched, cpu_limit, usage};
    use bollard::models::{ContainerStatsResponse, HostConfig};

    #[test]
    fn limits_are_read_in_both_forms() {
        let quota = HostConfig {
            nano_cpus: Some(0),
            cpu_quota: Some(300_000),
            cpu_period: Some(100_000),
            ..HostConfig::default()
        };
        assert_eq!(cpu_limit(&quota), Some(3.0));
        let nano = HostConfig {
            nano_cpus: Some(2_500_000_000),
            ..HostConfig::default()
        };
        assert_eq!(cpu_limit(&nano), Some(2.5));
        assert_eq!(cpu_limit(&HostConfig::default()), None);
    }

    #[test]
    fn usage_is_what_docker_stats_shows() {
        let sample: ContainerStatsResponse = serde_json::from_value(serde_json::json!({
            "cpu_stats": {"cpu_usage": {"total_usage": 1_500}, "system_cpu_usage": 20_000,
                "online_cpus": 2},
            "memory_stats": {"usage": 2_211_840, "stats": {"total_inactive_file": 1_359_872}},
        }))
        .expect("sample");
        // A worker that burns a quarter of its instructions used a quarter of the CPU it stands for.
        for (burn_fraction, cpu_percent) in [(1.0, 20.0), (0.25, 80.0), (0.0, 20.0)] {
            let worker = Watched {
                name: "a",
                id: String::new(),
                burn_fraction,
            };
            let usage = usage(&worker, &sample, (500, 10_000), (1_500, 20_000)).expect("usage");
            assert!((usage.cpu_percent - cpu_percent).abs() < 1e-9);
            assert_eq!(usage.memory_used_bytes, 832 * 1024);
        }
    }
}
