//! Writes the event log: lines queued in order under the dispatcher's lock, written by one thread.
//!
//! Whole lines only, pushed to the operating system at least every [`FLUSH_EVERY`], so that a kill
//! loses less than a second. The queue is bounded; what does not fit is counted and marked with a
//! `gap` line, past which the file does not replay.
//!
//! A log is written once: a file that holds anything, or that another writer holds, is refused, so
//! that no start and no reset destroys a record. The file is locked (`flock`) while it is written.

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use schema::event::Event;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Events waiting for the writer at most.
const QUEUE_MAX: usize = 65_536;
/// Bytes gathered before they are handed to the operating system.
const BATCH_BYTES: usize = 64 << 10;
/// Written lines reach the operating system at least this often.
const FLUSH_EVERY: Duration = Duration::from_millis(100);

/// The writer lets lines gather this long; the queue holds far more than come in it.
const GATHER: Duration = Duration::from_millis(5);

/// Numbers tried for a log that nobody named.
const MAX_NUMBER: u64 = 1_000_000;

/// Why a file cannot become the log; it was not touched.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    /// It holds a record, or another writer has it.
    #[error("{0}: exists already and is kept; name another file, or move this one away")]
    Exists(PathBuf),
    /// A folder, a pipe, a socket, a disk.
    #[error(
        "{0}: is no file to write to (allowed: a file that is new or empty, /dev/null); name another"
    )]
    NoFile(PathBuf),
    /// The system refused.
    #[error("{0}: cannot create: {1}")]
    System(PathBuf, io::Error),
}

/// Opens a file that is new, or empty and nobody else's. A character device such as /dev/null will
/// do: it keeps nothing that could be lost.
fn open_new(path: &Path) -> Result<File, Refusal> {
    let told = |e| Refusal::System(path.to_path_buf(), e);
    let opened = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        // Opening a pipe that nobody reads must not wait.
        .custom_flags(OFlags::NONBLOCK.bits() as i32 | OFlags::NOCTTY.bits() as i32)
        .open(path);
    let file = opened.map_err(|e| match e.kind() {
        io::ErrorKind::IsADirectory => Refusal::NoFile(path.to_path_buf()),
        // What the system says to a pipe without a reader and to a socket.
        _ if e.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => {
            Refusal::NoFile(path.to_path_buf())
        }
        _ => told(e),
    })?;
    let found = file.metadata().map_err(told)?;
    if found.file_type().is_char_device() {
        return Ok(file);
    }
    if !found.is_file() {
        return Err(Refusal::NoFile(path.to_path_buf()));
    }
    // A file system may have no locks: then what the file holds must do.
    if flock(&file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
        return Err(Refusal::Exists(path.to_path_buf()));
    }
    // Only now, since whoever held the lock may have written.
    if file.metadata().map_err(told)?.len() > 0 {
        return Err(Refusal::Exists(path.to_path_buf()));
    }
    Ok(file)
}

enum Message {
    Line(Box<Event>),
    /// What came before goes to the old file; the sender is told when that is complete.
    Rotate(File, SyncSender<()>),
}

/// The open log of one run.
pub(crate) struct EventLog {
    folder: PathBuf,
    first_stem: String,
    name: String,
    rotations: u64,
    queue: Option<SyncSender<Message>>,
    writer: Option<JoinHandle<()>>,
    lost_since_gap: u64,
    lost: Arc<AtomicU64>,
}

impl EventLog {
    /// Creates the file and starts its writer.
    ///
    /// # Errors
    /// The file cannot be had, or holds something.
    pub(crate) fn create(path: &Path) -> Result<Self, Refusal> {
        let file = open_new(path)?;
        let (queue, messages) = sync_channel(QUEUE_MAX);
        let lost = Arc::new(AtomicU64::new(0));
        let lost_by_writer = Arc::clone(&lost);
        let writer = std::thread::Builder::new()
            .name("event-log".into())
            .spawn(move || Lines::new(file, lost_by_writer).write_all(&messages))
            .map_err(|e| Refusal::System(path.to_path_buf(), e))?;
        let folder = path.parent().unwrap_or(Path::new("")).to_path_buf();
        let text = |part: Option<&std::ffi::OsStr>| {
            part.map_or_else(|| "events".into(), |p| p.to_string_lossy().into_owned())
        };
        Ok(Self {
            folder,
            first_stem: text(path.file_stem()),
            name: text(path.file_name()),
            rotations: 0,
            queue: Some(queue),
            writer: Some(writer),
            lost_since_gap: 0,
            lost,
        })
    }

    /// Queues a line; called under the dispatcher's lock, never waits.
    pub(crate) fn push(&mut self, event: Event) {
        if self.lost_since_gap > 0 {
            let gap = Event::Gap {
                t_ns: time_of(&event),
                lost: self.lost_since_gap,
            };
            if self.send(Message::Line(Box::new(gap))).is_ok() {
                self.lost_since_gap = 0;
            }
        }
        if self.lost_since_gap > 0 || self.send(Message::Line(Box::new(event))).is_err() {
            self.lost_since_gap += 1;
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The present file's name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Goes on in another file of the same folder: `name`, else the first one's with the next number
    /// that is free. The receiver hears when the old file is complete on disk.
    ///
    /// # Errors
    /// The file cannot be had, or holds something; the log goes on where it was.
    pub(crate) fn rotate(&mut self, name: Option<&str>) -> Result<Receiver<()>, Refusal> {
        let (name, file) = match name {
            Some(name) => (name.to_string(), open_new(&self.folder.join(name))?),
            None => self.open_numbered()?,
        };
        let gone = |_| {
            Refusal::System(
                self.folder.join(&name),
                io::Error::from(io::ErrorKind::BrokenPipe),
            )
        };
        let (complete, on_complete) = sync_channel(1);
        // The only message that may wait: nothing is in flight while a run is reset.
        if let Some(queue) = &self.queue {
            queue.send(Message::Rotate(file, complete)).map_err(gone)?;
        }
        self.lost_since_gap = 0;
        self.name = name;
        Ok(on_complete)
    }

    fn open_numbered(&mut self) -> Result<(String, File), Refusal> {
        loop {
            self.rotations += 1;
            let name = format!("{}-{}.jsonl", self.first_stem, self.rotations);
            match open_new(&self.folder.join(&name)) {
                Err(Refusal::Exists(_)) if self.rotations < MAX_NUMBER => {}
                other => return other.map(|file| (name, file)),
            }
        }
    }

    /// Lines that could not be written so far.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    fn send(&self, message: Message) -> Result<(), TrySendError<Message>> {
        match &self.queue {
            Some(queue) => queue.try_send(message),
            None => Err(TrySendError::Disconnected(message)),
        }
    }
}

impl Drop for EventLog {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

/// The writing end: gathers whole lines and hands them over.
struct Lines {
    file: File,
    batch: Vec<u8>,
    handed_over: Instant,
    /// Lines in the batch, counted as lost if it cannot be written.
    pending: u64,
    broken: bool,
    lost: Arc<AtomicU64>,
}

impl Lines {
    fn new(file: File, lost: Arc<AtomicU64>) -> Self {
        let batch = Vec::with_capacity(2 * BATCH_BYTES);
        Self {
            file,
            batch,
            handed_over: Instant::now(),
            pending: 0,
            broken: false,
            lost,
        }
    }

    fn write_all(mut self, messages: &Receiver<Message>) {
        loop {
            match messages.recv_timeout(FLUSH_EVERY) {
                Ok(message) => {
                    self.accept(message);
                    while let Ok(message) = messages.try_recv() {
                        self.accept(message);
                    }
                    // Whoever queues need not wake a sleeping thread, which costs more than writing.
                    std::thread::sleep(GATHER);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    self.hand_over();
                    self.sync();
                    return;
                }
            }
            if self.handed_over.elapsed() >= FLUSH_EVERY {
                self.hand_over();
            }
        }
    }

    fn accept(&mut self, message: Message) {
        match message {
            Message::Line(event) => {
                self.take(&event);
                if self.batch.len() >= BATCH_BYTES {
                    self.hand_over();
                }
            }
            Message::Rotate(file, complete) => {
                self.hand_over();
                self.sync();
                self.file = file;
                self.broken = false;
                // Whoever asked may have gone away.
                let _ = complete.send(());
            }
        }
    }

    fn take(&mut self, event: &Event) {
        let written = !self.broken && serde_json::to_writer(&mut self.batch, event).is_ok();
        if written {
            self.batch.push(b'\n');
            self.pending += 1;
        } else {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A pipe cannot be synced and needs no syncing, so this is only tried.
    fn sync(&self) {
        if let Err(e) = self.file.sync_data() {
            tracing::debug!("event log: cannot sync: {e}");
        }
    }

    fn hand_over(&mut self) {
        if let Err(e) = self.file.write_all(&self.batch) {
            self.broken = true;
            self.lost.fetch_add(self.pending, Ordering::Relaxed);
            tracing::error!("event log: cannot write: {e}; lines are counted as lost from here");
        }
        self.batch.clear();
        self.pending = 0;
        self.handed_over = Instant::now();
    }
}

fn time_of(event: &Event) -> u64 {
    match event {
        Event::Start { .. } => 0,
        Event::Pick { t_ns, .. }
        | Event::Response { t_ns, .. }
        | Event::Stats { t_ns, .. }
        | Event::Backends { t_ns, .. }
        | Event::Ejection { t_ns, .. }
        | Event::Strategy { t_ns, .. }
        | Event::Unserved { t_ns, .. }
        | Event::Gap { t_ns, .. } => *t_ns,
    }
}

#[cfg(test)]
mod tests {
    use super::{EventLog, Refusal};
    use schema::event::Event;

    #[test]
    fn lines_reach_the_file_they_were_pushed_for() {
        let folder = tempfile::tempdir().unwrap();
        let strategy = |t_ns| Event::Strategy {
            t_ns,
            strategy: "random".into(),
        };
        let mut log = EventLog::create(&folder.path().join("a.jsonl")).unwrap();
        log.push(strategy(1));
        log.rotate(Some("b.jsonl")).unwrap().recv().unwrap();
        log.push(strategy(2));
        assert_eq!(log.name(), "b.jsonl");
        log.rotate(None).unwrap().recv().unwrap();
        assert_eq!(log.name(), "a-1.jsonl");
        assert_eq!(log.lost(), 0);
        drop(log);
        let text = |name| std::fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!(
            text("a.jsonl"),
            "{\"event\":\"strategy\",\"t_ns\":1,\"strategy\":\"random\"}\n"
        );
        assert_eq!(
            text("b.jsonl"),
            "{\"event\":\"strategy\",\"t_ns\":2,\"strategy\":\"random\"}\n"
        );
    }

    #[test]
    fn a_file_that_holds_something_or_is_in_use_or_is_no_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("full"), "a record\n").unwrap();
        std::fs::write(path("empty"), "").unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, path("pipe"), 0o600.into()).unwrap();
        std::fs::create_dir(path("folder")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(path("socket")).unwrap();
        std::os::unix::fs::symlink("full", path("link")).unwrap();

        let mut log = EventLog::create(&path("first.jsonl")).unwrap();
        let _other = EventLog::create(&path("empty")).unwrap();
        for name in ["full", "link", "first.jsonl", "empty"] {
            assert!(
                matches!(log.rotate(Some(name)), Err(Refusal::Exists(_))),
                "{name}"
            );
            assert!(
                matches!(EventLog::create(&path(name)), Err(Refusal::Exists(_))),
                "{name}"
            );
        }
        for name in ["pipe", "folder", "socket"] {
            assert!(
                matches!(log.rotate(Some(name)), Err(Refusal::NoFile(_))),
                "{name}"
            );
        }
        assert!(matches!(
            EventLog::create(&path("nowhere/log")),
            Err(Refusal::System(..))
        ));
        assert_eq!(log.name(), "first.jsonl");
        assert_eq!(std::fs::read_to_string(path("full")).unwrap(), "a record\n");
        EventLog::create(std::path::Path::new("/dev/null")).unwrap();
    }

    #[test]
    fn an_unnamed_file_takes_the_next_free_number() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a-1.jsonl"), "a record\n").unwrap();
        let mut log = EventLog::create(&folder.path().join("a.jsonl")).unwrap();
        log.rotate(None).unwrap();
        assert_eq!(log.name(), "a-2.jsonl");
    }
}
