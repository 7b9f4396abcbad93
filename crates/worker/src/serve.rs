//! A serving worker, from its flags to its end.

use crate::admin::{self, Gate};
use crate::app::{App, Parts};
use crate::calibrate::calibrate;
use crate::cli::ServeArgs;
use crate::clock::Clock;
use crate::config::{Config, admin_token};
use crate::host::CpuGroup;
use crate::listener::{self as server, Answer, Limits, json, with_type};
use crate::request_log::{Closer, RequestLog};
use crate::{engine, work};
use anyhow::{Context, bail};
use gate::Ending;
use http::{Method, Request, StatusCode};
use hyper::body::Incoming;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// The admin listener; nothing is under way there for long.
const ADMIN_LIMITS: Limits = Limits {
    connections: 64,
    grace: Duration::from_secs(1),
};

/// Serves until SIGTERM or SIGINT, then finishes what is held.
///
/// # Errors
/// Bad flags, a port in use, a log that cannot be written or lacks lines, requests still held at the end of the
/// drain time.
pub(crate) fn run(args: &ServeArgs) -> anyhow::Result<()> {
    let config = Config::try_new(args)?;
    let gate = Arc::new(Gate::new(admin_token(args)?, args.is_admin_for_others()));
    let host = calibrate();
    let cpu_group = CpuGroup::find();
    let plan = config.plan(&host, cpu_group.as_ref().and_then(CpuGroup::quota_cores));
    for warning in &plan.warnings {
        tracing::warn!("{warning}");
    }
    let clock = Clock::start();
    let boot_id = boot_id(&clock);
    let (log, closer) = match &args.request_log {
        Some(path) => {
            let (log, closer) = RequestLog::open(path)?;
            (Some(log), Some(closer))
        }
        None => (None, None),
    };
    let engine = engine::start(plan.shape, plan.pinned, plan.lanes, clock)
        .context("the system refused a thread")?;
    let app = App::new(Parts {
        config,
        plan,
        host,
        clock,
        engine,
        log,
        cpu_group,
        boot_id,
    });
    scheduling::ask_short_slice().ok();
    let ended = gate::block_on_one_thread(listen(args, &app, gate))
        .context("the async runtime did not start")?;
    drop(app);
    let whole = closer.map_or(Ok(()), Closer::wait);
    ended.and(whole)
}

async fn listen(args: &ServeArgs, app: &Arc<App>, gate: Arc<Gate>) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let traffic = bind("--listen", args.listen)?;
    let admin_listener = args.admin.map(|a| bind("--admin", a)).transpose()?;
    announce(app, &traffic, admin_listener.as_ref())?;

    let (stopper, stop) = watch::channel(false);
    let sampling = tokio::spawn(Arc::clone(app).keep_sampling());
    let serving = {
        let limits = Limits {
            connections: app.config.max_connections,
            grace: app.config.drain_timeout,
        };
        let app = Arc::clone(app);
        let answer = move |request| answer(Arc::clone(&app), request);
        tokio::task::spawn_local(server::serve(traffic, limits, stop.clone(), answer))
    };
    let administering = admin_listener.map(|listener| {
        let app = Arc::clone(app);
        let answer = move |request| admin::answer(Arc::clone(&app), Arc::clone(&gate), request);
        tokio::task::spawn_local(server::serve(listener, ADMIN_LIMITS, stop, answer))
    });

    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    let held = app.with_ledger(|ledger| ledger.active());
    tracing::info!(held, "stopping: finishing the requests held");
    let _ = stopper.send(true);
    let drained = tokio::select! {
        ending = serving => ending.is_ok_and(|ending| ending == Ending::Finished),
        _ = terminate.recv() => false,
        _ = interrupt.recv() => false,
    };
    sampling.abort();
    if let Some(administering) = administering {
        administering.abort();
    }
    if !drained {
        let held = app.with_ledger(|ledger| ledger.active());
        bail!("stopped with {held} requests held; raise --drain-timeout to let them finish");
    }
    tracing::info!("stopped");
    Ok(())
}

fn bind(flag: &str, address: SocketAddr) -> anyhow::Result<TcpListener> {
    gate::bind(address)
        .and_then(TcpListener::from_std)
        .with_context(|| format!("{flag}: {address}: cannot listen"))
}

/// The one line on stdout that says the worker is ready, and a log line with its machine.
fn announce(app: &App, traffic: &TcpListener, admin: Option<&TcpListener>) -> anyhow::Result<()> {
    let shape = &app.plan.shape;
    tracing::info!(
        cores = shape.cores,
        discipline = %shape.discipline,
        nominal_mips_per_core = shape.mips_per_core,
        native_mips_per_core = app.host.native_mips_per_core,
        native_mips_all_busy = app.host.native_mips_all_busy,
        burn_fraction = shape.burn_fraction,
        lanes = app.plan.lanes,
        emulated = shape.burn_fraction < 1.0,
        boot_id = app.boot_id,
        "started"
    );
    let mut line = format!(
        "worker {} listening on http://{}",
        app.config.name,
        traffic.local_addr()?
    );
    if let Some(admin) = admin {
        line += &format!(" (admin http://{})", admin.local_addr()?);
    }
    // A closed stdout must not keep the worker from serving.
    let _ = console::say!("{line}");
    Ok(())
}

async fn answer(app: Arc<App>, request: Request<Incoming>) -> Answer {
    match pages(&app, &request) {
        Some(page) => page,
        None => work::run(app, request).await,
    }
}

/// The read-only pages; `None` if the request asks for something else.
pub(crate) fn pages(app: &App, request: &Request<Incoming>) -> Option<Answer> {
    if request.method() != Method::GET && request.method() != Method::HEAD {
        return None;
    }
    match request.uri().path() {
        "/stats" => Some(json(StatusCode::OK, &app.stats())),
        "/healthz" => Some(with_type(StatusCode::OK, "text/plain", "ok\n")),
        "/metrics" => Some(with_type(
            StatusCode::OK,
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
            app.metrics.text(&app.stats()),
        )),
        _ => None,
    }
}

/// Differs with every start: the wall time in ns and the process number.
fn boot_id(clock: &Clock) -> String {
    format!("{:x}.{:x}", clock.unix_ns(0.0), std::process::id())
}
