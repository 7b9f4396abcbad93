//! Writes rows so that a kill loses less than the last second.
//!
//! One thread owns the file. Whole lines are appended and handed to the operating system at least
//! every 200 ms; the file is synced at the end. When a write fails, the file is cut back to its
//! last whole line, the run is told to stop, and later rows are only counted. What cannot seek, such as
//! a pipe, takes the same lines; of the one under way when it fails a part may have gone out.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context;
use schema::row::{self, Row};
use tokio_util::sync::CancellationToken;

use crate::outcome::Outcome;
use crate::progress::Progress;
use crate::tally::Tally;

/// Longest time a finished row stays in this process.
const PUSH_INTERVAL: Duration = Duration::from_millis(200);
/// A batch of this size is written at once.
const BATCH_BYTES: usize = 64 * 1024;
/// Outcomes waiting for the recorder; a full queue makes the senders wait.
const QUEUE: usize = 65_536;

enum Message {
    Row(Outcome),
    /// Push everything to the operating system and answer.
    Flush(SyncSender<()>),
    /// Nothing follows.
    End,
}

/// The senders' end.
#[derive(Clone)]
pub(crate) struct RowSender(SyncSender<Message>);

impl RowSender {
    /// Hands over one outcome; waits while the queue is full.
    pub(crate) fn send(&self, outcome: Outcome) {
        // The recorder outlives all senders; if it died, its join reports why.
        let _ = self.0.send(Message::Row(outcome));
    }

    /// Pushes what there is to the operating system, waiting at most `limit`.
    pub(crate) fn flush(&self, limit: Duration) {
        let (ack, done) = sync_channel(1);
        if self.0.try_send(Message::Flush(ack)).is_ok() {
            let _ = done.recv_timeout(limit);
        }
    }

    /// Says that nothing follows.
    pub(crate) fn end(&self) {
        let _ = self.0.send(Message::End);
    }
}

/// Turns an outcome into its row.
pub(crate) type MakeRow = Box<dyn Fn(&Outcome) -> Row + Send>;

/// What the recorder saw.
pub(crate) struct Recorded {
    pub(crate) tally: Tally,
    /// Why writing ended early.
    pub(crate) failure: Option<WriteFailure>,
}

/// A failed write.
#[derive(Debug)]
pub(crate) struct WriteFailure {
    pub(crate) error: io::Error,
    /// Rows that are whole in the file.
    pub(crate) rows_kept: u64,
}

impl WriteFailure {
    /// `disk_full` or `write_error`.
    pub(crate) fn kind(&self) -> &'static str {
        let full = [libc::ENOSPC, libc::EDQUOT, libc::EFBIG];
        match self.error.raw_os_error() {
            Some(code) if full.contains(&code) => "disk_full",
            _ => "write_error",
        }
    }
}

/// A file of whole lines.
struct LineFile {
    file: File,
    /// Bytes of whole lines in the file.
    whole_bytes: u64,
    rows_written: u64,
    batch: Vec<u8>,
    oldest: Option<Instant>,
    failure: Option<WriteFailure>,
}

/// Opens `path` and writes the header line.
///
/// # Errors
/// The file cannot be made or written.
pub(crate) fn create(path: &Path) -> anyhow::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    let mut file = input::open_with(path, &options)
        .with_context(|| format!("cannot write {}", path.display()))?;
    let mut header = row::COLUMNS.join(",");
    header.push('\n');
    file.write_all(header.as_bytes())
        .with_context(|| format!("cannot write {}", path.display()))?;
    Ok(file)
}

/// Starts the recorder on a file made by [`create`]. `failed` is set when a write fails.
///
/// # Errors
/// The thread cannot be started.
pub(crate) fn start(
    file: File,
    make_row: MakeRow,
    tally: Tally,
    progress: Arc<Progress>,
    failed: CancellationToken,
) -> anyhow::Result<(RowSender, JoinHandle<io::Result<Recorded>>)> {
    let (sender, receiver) = sync_channel(QUEUE);
    let thread = std::thread::Builder::new()
        .name("recorder".into())
        .spawn(move || record(file, &receiver, &make_row, tally, &progress, &failed))?;
    Ok((RowSender(sender), thread))
}

fn record(
    file: File,
    messages: &Receiver<Message>,
    make_row: &MakeRow,
    mut tally: Tally,
    progress: &Progress,
    failed: &CancellationToken,
) -> io::Result<Recorded> {
    let header = row::COLUMNS.join(",").len() + 1;
    let mut lines = LineFile {
        file,
        whole_bytes: header as u64,
        rows_written: 0,
        batch: Vec::with_capacity(2 * BATCH_BYTES),
        oldest: None,
        failure: None,
    };
    loop {
        match messages.recv_timeout(lines.patience()) {
            Ok(Message::Row(outcome)) => {
                tally.add(&outcome);
                lines.append(&make_row(&outcome))?;
            }
            Ok(Message::Flush(ack)) => {
                lines.push();
                let _ = ack.send(());
            }
            Ok(Message::End) | Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {}
        }
        if lines.is_due() {
            lines.push();
        }
        if lines.failure.is_some() {
            failed.cancel();
        }
        progress.show(&tally);
    }
    lines.push();
    lines.sync();
    progress.finish();
    Ok(Recorded {
        tally,
        failure: lines.failure,
    })
}

impl LineFile {
    /// How long to wait for the next message.
    fn patience(&self) -> Duration {
        self.oldest
            .map_or(PUSH_INTERVAL, |t| PUSH_INTERVAL.saturating_sub(t.elapsed()))
    }

    fn is_due(&self) -> bool {
        self.batch.len() >= BATCH_BYTES || self.oldest.is_some_and(|t| t.elapsed() >= PUSH_INTERVAL)
    }

    fn append(&mut self, row: &Row) -> io::Result<()> {
        if self.failure.is_some() {
            return Ok(());
        }
        row::write_line(row, &mut self.batch)?;
        self.oldest.get_or_insert_with(Instant::now);
        Ok(())
    }

    /// Hands the batch to the operating system.
    fn push(&mut self) {
        self.oldest = None;
        if self.batch.is_empty() || self.failure.is_some() {
            return;
        }
        let (whole, result) = input::append_lines(&mut self.file, &self.batch);
        self.whole_bytes += whole as u64;
        self.rows_written += input::count_lines(&self.batch[..whole]);
        if let Err(error) = result {
            // If even this fails, readers still drop one unterminated last line.
            let _ = self.file.set_len(self.whole_bytes);
            self.failure = Some(WriteFailure {
                error,
                rows_kept: self.rows_written,
            });
        }
        self.batch.clear();
    }

    fn sync(&mut self) {
        if let Err(error) = self.file.sync_all()
            && self.failure.is_none()
            // Pipes and terminals cannot be synced, and need not be.
            && !matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOTSUP))
        {
            self.failure = Some(WriteFailure {
                error,
                rows_kept: self.rows_written,
            });
        }
    }
}
