//! One JSON line per attempt, written by a thread of its own so that no request waits for a disk.

use anyhow::{Context, bail};
use serde::Serialize;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Lines waiting for the disk; beyond that a line is dropped and the log is marked.
const MAX_WAITING: usize = 65_536;
/// Longest time a line waits in memory.
const FLUSH_EVERY: Duration = Duration::from_millis(200);

/// What became of an attempt at this worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    /// Answered with success.
    Ok,
    /// Answered 400: no or a bad task size.
    BadRequest,
    /// Answered 413 or 408: body too large or too slow.
    BadBody,
    /// Answered 503: as many requests held as allowed.
    MaxActive,
    /// The client went away first.
    Aborted,
}

/// One line.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Line {
    pub(crate) request_id: String,
    /// Number of the attempt as the balancer counts, from 0; null when it did not say.
    pub(crate) attempt: Option<u32>,
    pub(crate) boot_id: String,
    pub(crate) arrival_unix_ns: u64,
    /// Null unless the work began.
    pub(crate) start_unix_ns: Option<u64>,
    /// When the answer was ready to be written, as seen by the worker.
    pub(crate) end_unix_ns: u64,
    pub(crate) mi: Option<f64>,
    pub(crate) outcome: Outcome,
}

/// The open log.
#[derive(Debug)]
pub(crate) struct RequestLog {
    lines: SyncSender<Line>,
    incomplete: Arc<AtomicBool>,
}

/// Ends the log: waits until everything is written.
#[derive(Debug)]
pub(crate) struct Closer {
    writer: JoinHandle<io::Result<()>>,
    incomplete: Arc<AtomicBool>,
}

impl RequestLog {
    /// Opens `path` for appending.
    ///
    /// # Errors
    /// When the file cannot be opened or the system refuses a thread.
    pub(crate) fn open(path: &Path) -> anyhow::Result<(Self, Closer)> {
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            // A pipe that nobody reads is refused; opening it must not wait for a reader.
            .custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32)
            .open(path)
            .with_context(|| format!("--request-log {}: cannot be written", path.display()))?;
        let (lines, waiting) = sync_channel(MAX_WAITING);
        let writer = thread::Builder::new()
            .name("request-log".into())
            .spawn(move || write_lines(file, &waiting))?;
        let incomplete = Arc::new(AtomicBool::new(false));
        let log = Self {
            lines,
            incomplete: Arc::clone(&incomplete),
        };
        Ok((log, Closer { writer, incomplete }))
    }

    /// Hands over a line without waiting.
    pub(crate) fn write(&self, line: Line) {
        if self.lines.try_send(line).is_err() && !self.incomplete.swap(true, Ordering::Relaxed) {
            tracing::error!("request log incomplete: the disk is full or too slow");
        }
    }
}

impl Closer {
    /// Waits for the last line; every handle of the log must be gone.
    ///
    /// # Errors
    /// Lines are missing.
    pub(crate) fn wait(self) -> anyhow::Result<()> {
        let ended = self.writer.join();
        let written = ended.unwrap_or_else(|_| Err(io::Error::other("its writer died")));
        written.context("the request log is not whole")?;
        if self.incomplete.load(Ordering::Relaxed) {
            bail!("the request log is not whole: lines came faster than they could be written");
        }
        Ok(())
    }
}

fn write_lines(file: File, waiting: &Receiver<Line>) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 16, file);
    let mut flushed_at = Instant::now();
    loop {
        let line = match waiting.recv_timeout(FLUSH_EVERY) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => break,
        };
        let due = flushed_at.elapsed() >= FLUSH_EVERY;
        if let Err(error) = write_one(&mut out, line.as_ref(), due) {
            tracing::error!(%error, "request log: writing failed, no further lines");
            // What is left in memory has nowhere to go.
            let _ = out.into_parts();
            return Err(error);
        }
        if due {
            flushed_at = Instant::now();
        }
    }
    out.flush()
}

fn write_one(out: &mut impl Write, line: Option<&Line>, flush: bool) -> io::Result<()> {
    if let Some(line) = line {
        let mut bytes = serde_json::to_vec(line)?;
        bytes.push(b'\n');
        out.write_all(&bytes)?;
    }
    if flush { out.flush() } else { Ok(()) }
}
