//! One replay from its flags to its summary.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use schema::lateness;
use schema::problem::{Problem, Problems};
use schema::workload::Workload;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::cli::{Cli, DEFAULT_MAX_IN_FLIGHT};
use crate::clock::Clock;
use crate::dispatch;
use crate::exchange::{Exchanger, Limits};
use crate::outcome::never_sent;
use crate::pool::{Pool, SPARE};
use crate::progress::Progress;
use crate::recorder::{self, Recorded};
use crate::requests::{Labels, Requests};
use crate::signals::{Signals, StopSignal};
use crate::slots::Slots;
use crate::tally::{Actions, ClosedLoop, Facts, Summary, Tally};
use crate::target::Target;

/// Time 0 lies this far ahead when the connections are open.
const LEAD_IN: Duration = Duration::from_millis(200);
/// What is in flight when a run is stopped may take this long to end.
const DRAIN: Duration = Duration::from_secs(5);
/// Bytes of a row that disk space is asked for, twice over.
const ROW_BYTES: u64 = 400;
/// Open files beside the connections of requests.
const OTHER_FILES: usize = 64;
/// Callers of a closed loop for each of its slots: one whose call is in flight, twenty that wait.
const CALLERS_PER_SLOT: u32 = 21;
/// Exit code of a run whose result is not valid.
const NOT_VALID: u8 = 3;

/// Why a run ended before its schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    Signal(StopSignal),
    WriteFailed,
}

/// Replays as the flags say and returns the exit code.
///
/// # Errors
/// Bad input ([`Problem`] or [`Problems`]), an unreachable target, rows that
/// cannot be written.
pub(crate) fn run(cli: &Cli) -> anyhow::Result<u8> {
    let target = Target::parse(&cli.target).map_err(|problem| *problem)?;
    let requests = Arc::new(read_requests(cli, &target)?);
    let limits = Limits {
        timeout: cli.timeout,
        max_in_flight: max_in_flight(cli)?,
    };
    check_slots(cli, limits.max_in_flight)?;
    for refused in scheduling::make_prompt() {
        tracing::info!("the thread that reads answers runs with {refused}");
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (summary, stop, failure) = runtime.block_on(replay(cli, &target, &requests, limits))?;
    report(cli, &summary)?;
    if let Some(failure) = failure {
        let kept = failure.rows_kept;
        let out = cli.out.display();
        return Err(anyhow::Error::new(failure.error).context(format!(
            "cannot write {out} (its first {kept} rows are kept)"
        )));
    }
    Ok(match stop {
        Some(Stop::Signal(signal)) => signal.exit_code(),
        _ if summary.generator_saturated => NOT_VALID,
        _ => 0,
    })
}

fn read_requests(cli: &Cli, target: &Target) -> anyhow::Result<Requests> {
    let source = cli.workload.display().to_string();
    let text = input::read_text(&cli.workload).map_err(|problem| *problem)?;
    let workload = Workload::parse(&source, &text)?;
    input::refuse_same(&cli.workload, &cli.out, "--out").map_err(|problem| *problem)?;
    check_warmup(cli.warmup, workload.requests())?;
    let labels = Labels {
        run_id: cli.run_id.clone().unwrap_or_else(default_run_id),
        strategy: cli.strategy_label.clone(),
        block: cli.block,
        warmup: cli.warmup,
    };
    let authority = target.authority.clone();
    Ok(Requests::new(
        &source, workload, cli.speed, authority, labels,
    )?)
}

/// A run whose every request is warm-up has nothing left to count.
fn check_warmup(warmup: usize, requests: u64) -> Result<(), Problems> {
    if (warmup as u64) < requests {
        return Ok(());
    }
    let what = format!("leaves none of the workload's {requests} requests");
    Err(Problem::new("--warmup", warmup.to_string(), what)
        .allowed(format!("0 to {}", requests.saturating_sub(1)))
        .into())
}

fn default_run_id() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    format!("run-{}", now.map_or(0, |d| d.as_secs()))
}

/// The bound on requests in flight, for which the limit on open files is raised as far as needed.
fn max_in_flight(cli: &Cli) -> anyhow::Result<usize> {
    let wanted = cli
        .max_in_flight
        .map_or(DEFAULT_MAX_IN_FLIGHT, |n| n as usize);
    let files = (wanted + SPARE + OTHER_FILES) as u64;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= files) {
        return Ok(wanted);
    }
    let granted = limit.maximum.map_or(files, |maximum| maximum.min(files));
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: Some(granted),
            maximum: limit.maximum,
        },
    )
    .context("cannot raise the limit on open files")?;
    if granted == files {
        return Ok(wanted);
    }
    let possible = (granted as usize).saturating_sub(SPARE + OTHER_FILES);
    if cli.max_in_flight.is_some() || possible == 0 {
        bail!(
            "--max-in-flight {wanted} needs {files} open files and the limit is {granted}; \
             raise it (ulimit -n) or allow at most {possible} in flight"
        );
    }
    console::tell!(
        "warning: at most {possible} requests in flight, since the limit on open files is {granted}"
    );
    Ok(possible)
}

fn check_slots(cli: &Cli, max_in_flight: usize) -> Result<(), Problems> {
    let Some(slots) = cli.slots else {
        return Ok(());
    };
    if slots as usize > max_in_flight {
        return Err(
            Problem::new("--slots", slots.to_string(), "above --max-in-flight")
                .allowed(format!("1 to {max_in_flight}"))
                .into(),
        );
    }
    match cli.callers {
        Some(callers) if callers < slots => {
            Err(
                Problem::new("--callers", callers.to_string(), "fewer callers than slots")
                    .allowed(format!("{slots} or more"))
                    .into(),
            )
        }
        _ => Ok(()),
    }
}

fn closed_loop(cli: &Cli) -> Option<ClosedLoop> {
    let slots = cli.slots?;
    Some(ClosedLoop {
        slots: slots as usize,
        callers: cli.callers.unwrap_or(CALLERS_PER_SLOT * slots) as usize,
    })
}

type Ended = (Summary, Option<Stop>, Option<recorder::WriteFailure>);

async fn replay(
    cli: &Cli,
    target: &Target,
    requests: &Arc<Requests>,
    limits: Limits,
) -> anyhow::Result<Ended> {
    let mut signals = Signals::new()?;
    let clock = Arc::new(Clock::new());
    let pool = Pool::new(target.reach().await?, Arc::clone(&clock));
    pool.warm()
        .await
        .with_context(|| format!("cannot connect to {}", target.url))?;

    let in_flight = Arc::new(AtomicUsize::new(0));
    let progress = Arc::new(Progress::new(
        requests.len(),
        Arc::clone(&in_flight),
        cli.quiet,
    ));
    let write_failed = CancellationToken::new();
    check_space(&cli.out, requests.len())?;
    let make_row = {
        let requests = Arc::clone(requests);
        Box::new(move |outcome: &_| requests.row(outcome))
    };
    let (rows, recorder) = recorder::start(
        recorder::create(&cli.out)?,
        make_row,
        Tally::new(cli.warmup),
        Arc::clone(&progress),
        write_failed.clone(),
    )?;
    let exchanger = Exchanger::new(
        Arc::clone(&clock),
        Arc::clone(&pool),
        Handle::current(),
        rows.clone(),
        limits,
        in_flight,
    );
    let caretaker = tokio::spawn(Arc::clone(&pool).look_after());

    let started_unix_ns = clock.set_zero_in(LEAD_IN);
    progress.start();
    let sending = Sending::start(cli, &exchanger, requests)?;
    let stop = sending
        .supervise(&mut signals, &write_failed, &exchanger, &rows)
        .await;
    caretaker.abort();
    rows.end();
    let recorded = recorder
        .join()
        .map_err(|_| anyhow::anyhow!("the recorder died"))??;
    let facts = Facts {
        run_id: requests.labels().run_id.clone(),
        strategy: cli.strategy_label.clone(),
        workload_sha256: requests.workload().sha256.clone(),
        scheduled: requests.len() as u64,
        lag_bound_ns: lag_bound_ns(cli, requests),
        interrupted: matches!(stop, Some(Stop::Signal(_))),
        aborted: recorded.failure.as_ref().map(|f| f.kind()),
        started_unix_ns,
        max_in_flight: limits.max_in_flight,
        connections_opened: pool.opened(),
        closed_loop: closed_loop(cli),
        actions: sending.actions(),
    };
    let Recorded { tally, failure } = recorded;
    let rows_kept = failure.as_ref().map(|f| f.rows_kept);
    let summary = tally.summarize(facts, rows_kept);
    if failure.is_none() && summary.rows != summary.scheduled {
        bail!(
            "{} rows were written for {} requests",
            summary.rows,
            summary.scheduled
        );
    }
    Ok((summary, stop, failure))
}

/// The part of a run that sends: the dispatch thread or the closed loop.
struct Sending {
    stop: CancellationToken,
    aborted: Arc<AtomicBool>,
    /// Resolves when every request was sent or refused.
    all_sent: std::sync::Mutex<Option<oneshot::Receiver<()>>>,
    slots: Option<Arc<Slots>>,
}

impl Sending {
    fn start(
        cli: &Cli,
        exchanger: &Arc<Exchanger>,
        requests: &Arc<Requests>,
    ) -> anyhow::Result<Self> {
        let stop = CancellationToken::new();
        let aborted = Arc::new(AtomicBool::new(false));
        let (tell_all_sent, all_sent) = oneshot::channel();
        let why = {
            let aborted = Arc::clone(&aborted);
            move || {
                if aborted.load(Ordering::Acquire) {
                    never_sent::ABORTED
                } else {
                    never_sent::INTERRUPTED
                }
            }
        };
        let slots = closed_loop(cli).map(|ClosedLoop { slots, callers }| {
            let run = Slots::new(
                Arc::clone(exchanger),
                Arc::clone(requests),
                stop.clone(),
                callers,
                cli.calls as usize,
                cli.warmup,
            );
            (slots, run)
        });
        match &slots {
            Some((count, run)) => {
                let (count, run) = (*count, Arc::clone(run));
                let clock = Arc::clone(&exchanger.clock);
                tokio::spawn(async move {
                    tokio::time::sleep(clock.until(0)).await;
                    run.run(count, why).await;
                    let _ = tell_all_sent.send(());
                });
            }
            None => {
                let (exchanger, requests) = (Arc::clone(exchanger), Arc::clone(requests));
                let stop = stop.clone();
                std::thread::Builder::new()
                    .name("dispatch".into())
                    .spawn(move || {
                        let schedule = (0..requests.len())
                            .map(|seq| requests.prepare(seq, requests.intended_ns(seq)));
                        dispatch::run(&exchanger, schedule, &stop, why);
                        let _ = tell_all_sent.send(());
                    })?;
            }
        }
        Ok(Self {
            stop,
            aborted,
            all_sent: std::sync::Mutex::new(Some(all_sent)),
            slots: slots.map(|(_, run)| run),
        })
    }

    fn actions(&self) -> Option<Actions> {
        self.slots.as_ref().map(|s| s.actions())
    }

    /// Waits for the end of the run, early or not, until nothing is in flight.
    async fn supervise(
        &self,
        signals: &mut Signals,
        write_failed: &CancellationToken,
        exchanger: &Arc<Exchanger>,
        rows: &recorder::RowSender,
    ) -> Option<Stop> {
        let all_sent = self.all_sent.lock().ok().and_then(|mut a| a.take())?;
        let mut ended = std::pin::pin!(async {
            let _ = all_sent.await;
            exchanger.drained().await;
        });
        let stop = tokio::select! {
            () = &mut ended => return None,
            signal = signals.next() => Stop::Signal(signal),
            () = write_failed.cancelled() => Stop::WriteFailed,
        };
        self.aborted
            .store(stop == Stop::WriteFailed, Ordering::Release);
        self.stop.cancel();
        let second = tokio::select! {
            () = &mut ended => return Some(stop),
            () = tokio::time::sleep(DRAIN) => None,
            signal = signals.next() => Some(signal),
        };
        if let Some(signal) = second {
            // Asked twice: keep what there is and leave.
            rows.flush(Duration::from_secs(1));
            std::process::exit(i32::from(signal.exit_code()));
        }
        exchanger.cut();
        ended.await;
        Some(stop)
    }
}

fn lag_bound_ns(cli: &Cli, requests: &Requests) -> u64 {
    match cli.lag_bound {
        Some(bound) => bound.as_nanos() as u64,
        None => lateness::bound_ns(requests.mean_gap_ns()) as u64,
    }
}

/// Whether a path means what standard output is.
fn is_standard_output(path: &Path) -> bool {
    let same = |stdout: rustix::fs::Stat| {
        let meant = rustix::fs::stat(path)?;
        rustix::io::Result::Ok((meant.st_dev, meant.st_ino) == (stdout.st_dev, stdout.st_ino))
    };
    rustix::fs::fstat(std::io::stdout())
        .and_then(same)
        .unwrap_or(false)
}

/// Refuses to start when the disk can hardly hold the rows.
fn check_space(out: &Path, rows: usize) -> anyhow::Result<()> {
    if std::fs::metadata(out).is_ok_and(|found| !found.is_file()) {
        // A pipe or a device takes no room in its folder.
        return Ok(());
    }
    let folder = match out.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    // If the folder cannot be asked, creating the file will say why.
    if let Ok(stat) = rustix::fs::statvfs(folder) {
        let free = stat.f_bavail.saturating_mul(stat.f_frsize);
        let needed = 2 * ROW_BYTES * rows as u64;
        if free < needed {
            bail!(
                "{rows} rows need up to {needed} bytes and {} has {free} left; free some space",
                folder.display()
            );
        }
    }
    Ok(())
}

fn report(cli: &Cli, summary: &Summary) -> anyhow::Result<()> {
    if let Some(first) = &summary.first_refused {
        console::tell!(
            "warning: {} answers carried header values that cannot be true, first {first}; they are \
             left out of the rows",
            summary.answers_with_refused_values
        );
    }
    if summary.generator_saturated {
        console::tell!(
            "warning: generator_saturated: the client could not keep the schedule (lateness p99 \
             {:.3} ms, bound {:.3} ms, {} never sent); lower the rate or free the machine",
            summary.lateness_p99_us.unwrap_or(0.0) / 1e3,
            summary.lag_bound_us / 1e3,
            summary.never_sent
        );
    }
    let text = if cli.json {
        serde_json::to_string(summary)? + "\n"
    } else if cli.quiet {
        return Ok(());
    } else {
        summary.preview()
    };
    if is_standard_output(&cli.out) {
        // Readers of the rows take all that comes there for rows.
        console::print_aside(format_args!("{text}"));
        return Ok(());
    }
    Ok(console::print(format_args!("{text}"))?)
}
