//! Starts the workers, sends the planned requests on time, collects what both sides saw.

use crate::cli::{Cli, SelftestArgs, ServeArgs};
use crate::clock::Clock;
use anyhow::{Context, bail};
use bytes::Bytes;
use clap::Parser;
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use schema::headers;
use schema::problem::Problems;
use schema::stats::Stats;
use std::cell::RefCell;
use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::mpsc;

/// Time between the start of the replay and its first request.
const LEAD_NS: f64 = 50e6;

/// One request to send.
#[derive(Debug, Clone, Copy)]
pub(super) struct Planned {
    pub(super) due_ns: f64,
    pub(super) worker: usize,
    pub(super) mi: f64,
}

/// What the worker and the client saw of one request, ns on their own clocks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    pub(super) arrived_ns: f64,
    pub(super) ended_ns: f64,
    pub(super) sent_ns: f64,
    pub(super) done_ns: f64,
}

/// What the workers said of themselves at the end.
#[derive(Debug, Clone)]
pub(super) struct Setup {
    pub(super) stats: Vec<Stats>,
}

/// The running worker processes; dropped, they are killed.
pub(super) struct Workers {
    children: Vec<Child>,
    addresses: Vec<SocketAddr>,
    logs: Vec<PathBuf>,
    folder: PathBuf,
}

impl Drop for Workers {
    fn drop(&mut self) {
        for child in &mut self.children {
            // It may have ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// The flags of worker `i`, as it reads them.
pub(super) fn serve_args(args: &SelftestArgs, i: usize) -> Result<ServeArgs, Problems> {
    let words = std::iter::once("worker".to_string()).chain(flags(args, i));
    Ok(Cli::parse_from(words).serve)
}

fn flags(args: &SelftestArgs, i: usize) -> Vec<String> {
    let pool_cores: f64 = args.cores.iter().sum();
    let pairs = [
        ("--listen", "127.0.0.1:0".to_string()),
        ("--name", char::from(b'a' + i as u8).to_string()),
        ("--cores", args.cores[i].to_string()),
        ("--pool-cores", pool_cores.to_string()),
        ("--mips-per-core", args.mips_per_core.to_string()),
        ("--burn-fraction", args.burn_fraction.clone()),
        ("--discipline", args.discipline.to_string()),
    ];
    pairs
        .into_iter()
        .flat_map(|(flag, value)| [flag.to_string(), value])
        .collect()
}

impl Workers {
    /// Starts one process per entry of `--cores`, one after the other so that each calibrates alone.
    pub(super) fn start(args: &SelftestArgs) -> anyhow::Result<Self> {
        let clock = Clock::start();
        let name = format!(
            "plumbline-selftest-{}-{}",
            std::process::id(),
            clock.unix_ns(0.0)
        );
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir(&folder).with_context(|| format!("{}", folder.display()))?;
        let mut workers = Self {
            children: Vec::new(),
            addresses: Vec::new(),
            logs: Vec::new(),
            folder,
        };
        let program = std::env::current_exe()?;
        for i in 0..args.cores.len() {
            let log = workers.folder.join(format!("{i}.jsonl"));
            let child = Command::new(&program)
                .args(flags(args, i))
                .arg("--request-log")
                .arg(&log)
                .env("RUST_LOG", "warn")
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .spawn()?;
            workers.children.push(child);
            workers.logs.push(log);
            let address = workers.wait_until_ready(i)?;
            workers.addresses.push(address);
        }
        Ok(workers)
    }

    fn wait_until_ready(&mut self, i: usize) -> anyhow::Result<SocketAddr> {
        let out = self.children[i].stdout.take().context("no stdout")?;
        let mut line = String::new();
        BufReader::new(out).read_line(&mut line)?;
        let (_, address) = line
            .trim_end()
            .rsplit_once("http://")
            .with_context(|| format!("worker {i} did not become ready"))?;
        Ok(address.parse()?)
    }

    /// Sends `planned` and stops the workers.
    pub(super) fn replay(mut self, planned: &[Planned]) -> anyhow::Result<(Vec<Seen>, Setup)> {
        scheduling::ask_short_slice().ok();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let local = tokio::task::LocalSet::new();
        let (client, setup) =
            runtime.block_on(local.run_until(send_all(&self.addresses, planned)))?;
        self.stop()?;
        let mut seen = client;
        for log in &self.logs {
            read_log(log, &mut seen)?;
        }
        Ok((seen, setup))
    }

    fn stop(&mut self) -> anyhow::Result<()> {
        for child in &mut self.children {
            let pid = rustix::process::Pid::from_child(child);
            rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
            let status = child.wait()?;
            if !status.success() {
                bail!("a worker ended with {status}");
            }
        }
        Ok(())
    }
}

type Sender = SendRequest<Empty<Bytes>>;

/// Idle connections per worker.
type Pool = Rc<RefCell<Vec<Sender>>>;

async fn send_all(
    addresses: &[SocketAddr],
    planned: &[Planned],
) -> anyhow::Result<(Vec<Seen>, Setup)> {
    let clock = Clock::start();
    let (due_sender, mut due) = mpsc::unbounded_channel();
    let schedule: Vec<f64> = planned.iter().map(|p| p.due_ns + LEAD_NS).collect();
    // A thread of its own wakes on time; the async timer rounds to a millisecond.
    let dispatcher = std::thread::spawn(move || {
        scheduling::ask_short_slice().ok();
        for (i, due_ns) in schedule.into_iter().enumerate() {
            let wait_ns = due_ns - clock.now_ns();
            if wait_ns > 0.0 {
                std::thread::sleep(Duration::from_nanos(wait_ns as u64));
            }
            if due_sender.send(i).is_err() {
                return;
            }
        }
    });
    let pools: Vec<Pool> = addresses.iter().map(|_| Pool::default()).collect();
    let mut tasks = Vec::with_capacity(planned.len());
    while let Some(i) = due.recv().await {
        let request = planned[i];
        let pool = Rc::clone(&pools[request.worker]);
        let address = addresses[request.worker];
        tasks.push(tokio::task::spawn_local(async move {
            let sent_ns = clock.now_ns();
            let uri = "/selftest/requests";
            let mi = Some(request.mi);
            call(&pool, address, uri, mi, &i.to_string()).await?;
            anyhow::Ok((sent_ns, clock.now_ns()))
        }));
    }
    let mut seen = Vec::with_capacity(planned.len());
    for task in tasks {
        let (sent_ns, done_ns) = task.await??;
        seen.push(Seen {
            arrived_ns: f64::NAN,
            ended_ns: f64::NAN,
            sent_ns,
            done_ns,
        });
    }
    if dispatcher.join().is_err() {
        bail!("the dispatch thread failed");
    }
    let mut stats = Vec::new();
    for (pool, address) in pools.iter().zip(addresses) {
        let body = call(pool, *address, "/stats", None, "stats").await?;
        stats.push(serde_json::from_slice(&body)?);
    }
    Ok((seen, Setup { stats }))
}

async fn call(
    pool: &Pool,
    address: SocketAddr,
    uri: &str,
    mi: Option<f64>,
    id: &str,
) -> anyhow::Result<Bytes> {
    let idle = pool.borrow_mut().pop();
    let mut sender = match idle {
        Some(sender) => sender,
        None => connect(address).await?,
    };
    let mut request = http::Request::get(uri)
        .header(http::header::HOST, "selftest")
        .header(headers::REQUEST_ID, id);
    if let Some(mi) = mi {
        request = request.header(headers::TASK_SIZE_MI, mi.to_string());
    }
    sender.ready().await?;
    let response = sender.send_request(request.body(Empty::new())?).await?;
    let status = response.status();
    let body = response.into_body().collect().await?.to_bytes();
    if !status.is_success() {
        bail!("a worker answered {status}");
    }
    pool.borrow_mut().push(sender);
    Ok(body)
}

async fn connect(address: SocketAddr) -> anyhow::Result<Sender> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::task::spawn_local(async move {
        // Its end shows at the next request on it.
        let _ = connection.await;
    });
    Ok(sender)
}

/// Adds the worker's stamps. They are relative to the log's first arrival, so that ns stay exact.
fn read_log(path: &PathBuf, seen: &mut [Seen]) -> anyhow::Result<()> {
    #[derive(serde::Deserialize)]
    struct Line {
        request_id: String,
        arrival_unix_ns: u64,
        end_unix_ns: u64,
    }
    let text = std::fs::read_to_string(path)?;
    let lines: Result<Vec<Line>, _> = text.lines().map(serde_json::from_str).collect();
    let lines = lines.with_context(|| format!("{}", path.display()))?;
    let first = lines.iter().map(|l| l.arrival_unix_ns).min().unwrap_or(0);
    let by_id: HashMap<&str, &Line> = lines.iter().map(|l| (l.request_id.as_str(), l)).collect();
    for (i, seen) in seen.iter_mut().enumerate() {
        if let Some(line) = by_id.get(i.to_string().as_str()) {
            seen.arrived_ns = (line.arrival_unix_ns - first) as f64;
            seen.ended_ns = (line.end_unix_ns - first) as f64;
        }
    }
    Ok(())
}
