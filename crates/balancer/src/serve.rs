//! Starting, running and stopping the balancer.

use crate::admin::{self, Guard};
use crate::ask_first::Asking;
use crate::cli::Serve;
use crate::core::Core;
use crate::event_log::{EventLog, Refusal};
use crate::polls::{self, Polling};
use crate::proxy::forward::RequestIds;
use crate::proxy::server::{self, Shared};
use crate::questions;
use crate::settings::NOT_YET;
use anyhow::Context as _;
use gate::{Ending, bind, block_on_one_thread};
use rustix::process::Signal;
use schema::problem::Problem;
use schema::protection::Preset;
use std::net::TcpListener;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use strategies::registry::Context;
use strategies::{Dispatcher, Options, PoolError};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// A start waits this long for its workers before it names the missing ones.
const NAME_UNSEEN_AFTER: Duration = Duration::from_secs(5);

/// Longest answer of a health page that is shown, bytes.
const MAX_HEALTH_BYTES: usize = 64 << 10;

/// Serves until SIGTERM or SIGINT; exit 0 if every request was finished and logged.
pub(crate) fn serve(args: &Serve) -> anyhow::Result<ExitCode> {
    if let Err(text) = check(args) {
        console::tell!("error: {text}");
        return Ok(ExitCode::from(2));
    }
    let guard = match Guard::from_flags(args) {
        Ok(guard) => guard,
        Err(problem) => {
            console::tell!("error: {problem}");
            return Ok(ExitCode::from(2));
        }
    };
    let models = match crate::models::load(&args.models) {
        Ok(models) => models,
        Err(problem) => {
            console::tell!("error: {problem}");
            return Ok(ExitCode::from(2));
        }
    };
    let rules = match args.rules.rules(args.protection) {
        Ok(rules) => rules,
        Err(text) => {
            console::tell!("error: {text}");
            return Ok(ExitCode::from(2));
        }
    };
    console::start_log("info");
    let slow_start = args.rules.slow_start.filter(|d| !d.is_zero());
    let options = Options {
        seed: args.seed,
        slow_start_ns: slow_start.map(|d| d.as_nanos() as u64),
        rules,
        context: Context {
            poll_interval_ns: args.stats_interval.as_nanos() as u64,
            mi_per_ms: args.mips_per_core / 1e3,
            models,
            ..Context::default()
        },
    };
    let dispatcher = match Dispatcher::new(&args.strategy, &args.backends, options) {
        Ok(dispatcher) => dispatcher,
        Err(e) => {
            let flag = match e {
                PoolError::Refused(_) => "--strategy",
                _ => "--backend",
            };
            console::tell!("error: {flag}: {e}");
            return Ok(ExitCode::from(2));
        }
    };
    let traffic = bind(args.listen).with_context(|| format!("--listen {}", args.listen))?;
    let admin = bind(args.admin).with_context(|| format!("--admin {}", args.admin))?;
    // After the ports: a second start by mistake ends before it comes near a file.
    let log = match args.event_log.as_deref().map(EventLog::create) {
        None => None,
        Some(Ok(log)) => Some(log),
        Some(Err(Refusal::System(path, e))) => {
            return Err(e)
                .with_context(|| format!("--event-log {}: cannot create", path.display()));
        }
        Some(Err(refusal)) => {
            console::tell!("error: --event-log: {refusal}");
            return Ok(ExitCode::from(2));
        }
    };
    let asking = Asking::new(args.ask_first.wait());
    let core = Core::new(dispatcher, log, args.protection.name(), asking);
    block_on_one_thread(run(args, core, traffic, admin, guard))?
}

/// Refuses what clap cannot see.
fn check(args: &Serve) -> Result<(), String> {
    if args.backends.is_empty() {
        return Err("--backend: none is given; add --backend name=a,url=http://HOST:PORT".into());
    }
    if args.listen == args.admin && args.admin.port() != 0 {
        let problem = Problem::new("--admin", args.admin.to_string(), "is --listen too");
        return Err(problem.next("give it another port").to_string());
    }
    Ok(())
}

async fn run(
    args: &Serve,
    core: Arc<Core>,
    traffic: TcpListener,
    admin: TcpListener,
    guard: Guard,
) -> anyhow::Result<ExitCode> {
    let (stop, stopped) = watch::channel(false);
    let threads = args.threads.map_or_else(cores, usize::from);
    let boot = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_micros();
    let shared = Shared {
        core: Arc::clone(&core),
        settings: args.settings(),
        ask_first: args.ask_first.wait(),
        ids: Arc::new(RequestIds::new(format!("{boot:x}"))),
        trusted_peers: args.trusted_peers.clone().into(),
        stop: stopped,
    };
    let workers = server::start(&traffic, threads, &shared)?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    // Caught so that a log at its size limit is a write error and not the end of the process.
    let _file_size = signal(SignalKind::from_raw(Signal::XFSZ.as_raw()))?;
    // Nobody need hear it for the balancer to serve.
    let _ = console::say!(
        "balancer listening on http://{} (admin http://{})",
        traffic.local_addr()?,
        admin.local_addr()?
    );
    drop(traffic);
    if args.protection == Preset::Guarded {
        tracing::warn!("not in this version of guarded: {NOT_YET}");
    }
    tracing::info!(strategy = %args.strategy, backends = args.backends.len(), threads, "started");
    // It answers until the very end, so nothing stops it but that.
    let (_never, not_stopped) = watch::channel(false);
    let serving = tokio::task::spawn_local(admin::serve(
        admin,
        Arc::clone(&core),
        guard,
        args.settings(),
        not_stopped,
    ));
    let polling = tokio::spawn(polls::run(
        Arc::clone(&core),
        Polling::every(args.stats_interval),
    ));
    let probing = tokio::spawn(polls::probe(Arc::clone(&core)));
    let naming = tokio::spawn(name_unseen(Arc::clone(&core)));
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    tracing::info!("stopping: running requests are finished, new ones are not taken");
    stop.send_replace(true);
    let joined = tokio::task::spawn_blocking(move || {
        workers
            .into_iter()
            .map(|w| w.join().unwrap_or(Ending::Cut))
            .collect::<Vec<_>>()
    });
    let endings = joined.await?;
    for task in [naming, polling, probing] {
        task.abort();
    }
    serving.abort();
    let cut = endings.contains(&Ending::Cut);
    let (lost, closed) = {
        let mut state = core.lock();
        (state.log_lines_lost(), state.close_log())
    };
    tracing::info!(cut, "stopped");
    closed?;
    if lost > 0 {
        console::tell!("error: {lost} lines of the event logs of this process are lost");
    }
    Ok(if cut || lost > 0 {
        ExitCode::from(1)
    } else {
        ExitCode::SUCCESS
    })
}

/// Names the backends that did not answer since start.
async fn name_unseen(core: Arc<Core>) {
    tokio::time::sleep(NAME_UNSEEN_AFTER).await;
    for backend in admin::unseen(&core) {
        tracing::warn!("backend {backend} has not answered yet; the balancer is not ready");
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Asks a running balancer whether it is ready.
pub(crate) fn healthcheck(url: &str) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let client = reqwest::Client::builder()
            .no_proxy()
            .timeout(Duration::from_secs(2))
            .build()?;
        let answer = client.get(format!("{url}/readyz")).send().await?;
        let ok = answer.status().is_success();
        let text = questions::read_at_most(answer, MAX_HEALTH_BYTES).await?;
        console::print(format_args!("{}", String::from_utf8_lossy(&text)))?;
        Ok(if ok {
            ExitCode::SUCCESS
        } else {
            ExitCode::from(1)
        })
    })
}
