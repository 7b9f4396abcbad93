//! Writes the event log: lines queued in order under the dispatcher's lock, written by one thread.
//!
//! Whole lines only, pushed to the operating system at least every [`FLUSH_EVERY`], so that a kill
//! loses less than a second. The queue is bounded; what does not fit is counted and marked with a
//! `gap` line, past which the file does not replay. When a write fails, the file is cut back to its last
//! whole line and the rest of its run is counted as lost; the next file starts afresh.
//!
//! A log is written once: a file that holds anything, or that another writer holds, is refused, so
//! that no start and no reset destroys a record. The file is locked (`flock`) while it is written.

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use schema::event::Event;
use std::fs::{File, OpenOptions};
use std::io;
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

/// What the system says where there is nothing to sync.
const UNSYNCED: [Errno; 3] = [Errno::INVAL, Errno::NOTSUP, Errno::ROFS];

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
    /// What came before goes to the old file; the sender is told when that is complete, and what of it
    /// is not there.
    Rotate(Box<Rotation>),
}

struct Rotation {
    name: String,
    file: File,
    /// Lines of the old file that found no room in the queue.
    dropped: u64,
    complete: SyncSender<Option<Loss>>,
}

/// What of a run is not in its log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the event log {name} is not whole: {lines} lines are lost ({why})")]
pub(crate) struct Loss {
    name: String,
    lines: u64,
    why: String,
}

/// The open log of one run.
pub(crate) struct EventLog {
    folder: PathBuf,
    first_stem: String,
    name: String,
    rotations: u64,
    queue: Option<SyncSender<Message>>,
    writer: Option<JoinHandle<Option<Loss>>>,
    lost_since_gap: u64,
    /// Lines of the present file that found no room in the queue.
    dropped: u64,
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
        let folder = path.parent().unwrap_or(Path::new("")).to_path_buf();
        let text = |part: Option<&std::ffi::OsStr>| {
            part.map_or_else(|| "events".into(), |p| p.to_string_lossy().into_owned())
        };
        let name = text(path.file_name());
        let lines = Lines::new(name.clone(), file, Arc::clone(&lost));
        let writer = std::thread::Builder::new()
            .name("event-log".into())
            .spawn(move || lines.write_all(&messages))
            .map_err(|e| Refusal::System(path.to_path_buf(), e))?;
        Ok(Self {
            folder,
            first_stem: text(path.file_stem()),
            name,
            rotations: 0,
            queue: Some(queue),
            writer: Some(writer),
            lost_since_gap: 0,
            dropped: 0,
            lost,
        })
    }

    /// Queues a line; called under the dispatcher's lock, never waits.
    pub(crate) fn push(&mut self, event: Event) {
        if self.lost_since_gap > 0 {
            let gap = Event::Gap {
                t_ns: event.t_ns(),
                lost: self.lost_since_gap,
            };
            if self.send(Message::Line(Box::new(gap))).is_ok() {
                self.lost_since_gap = 0;
            }
        }
        if self.lost_since_gap > 0 || self.send(Message::Line(Box::new(event))).is_err() {
            self.lost_since_gap += 1;
            self.dropped += 1;
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The present file's name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Goes on in another file of the same folder: `name`, else the first one's with the next number
    /// that is free. The receiver hears when the old file is complete on disk, or what it lacks.
    ///
    /// # Errors
    /// The file cannot be had, or holds something; the log goes on where it was.
    pub(crate) fn rotate(&mut self, name: Option<&str>) -> Result<Completion, Refusal> {
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
        let rotation = Rotation {
            name: name.clone(),
            file,
            dropped: self.dropped,
            complete,
        };
        // The only message that may wait: nothing is in flight while a run is reset.
        if let Some(queue) = &self.queue {
            let message = Message::Rotate(Box::new(rotation));
            queue.send(message).map_err(gone)?;
        }
        self.lost_since_gap = 0;
        self.dropped = 0;
        self.name = name;
        Ok(on_complete)
    }

    /// Writes what is queued and ends the writer.
    ///
    /// # Errors
    /// What the present file lacks.
    pub(crate) fn close(mut self) -> Result<(), Loss> {
        self.queue = None;
        let died = || Loss {
            name: self.name.clone(),
            lines: 0,
            why: "its writer died".into(),
        };
        let ended = self.writer.take().map(JoinHandle::join);
        let loss = ended.and_then(|ended| ended.unwrap_or_else(|_| Some(died())));
        match with_dropped(loss, &self.name, self.dropped) {
            Some(loss) => Err(loss),
            None => Ok(()),
        }
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

/// Hears when a file is complete, or what it lacks.
pub(crate) type Completion = Receiver<Option<Loss>>;

/// A loss and the lines that found no room in the queue.
fn with_dropped(loss: Option<Loss>, name: &str, dropped: u64) -> Option<Loss> {
    if dropped == 0 {
        return loss;
    }
    let mut loss = loss.unwrap_or_else(|| Loss {
        name: name.to_string(),
        lines: 0,
        why: "they came faster than they could be written".into(),
    });
    loss.lines += dropped;
    Some(loss)
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
    name: String,
    file: File,
    /// Bytes of whole lines in the file.
    whole_bytes: u64,
    batch: Vec<u8>,
    handed_over: Instant,
    /// What this file lacks, once a write failed.
    loss: Option<Loss>,
    lost: Arc<AtomicU64>,
}

impl Lines {
    fn new(name: String, file: File, lost: Arc<AtomicU64>) -> Self {
        let batch = Vec::with_capacity(2 * BATCH_BYTES);
        Self {
            name,
            file,
            whole_bytes: 0,
            batch,
            handed_over: Instant::now(),
            loss: None,
            lost,
        }
    }

    /// Writes until nobody can send any more; what the last file lacks.
    fn write_all(mut self, messages: &Receiver<Message>) -> Option<Loss> {
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
                    return self.loss;
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
            Message::Rotate(rotation) => {
                self.hand_over();
                self.sync();
                let loss = with_dropped(self.loss.take(), &self.name, rotation.dropped);
                self.name = rotation.name;
                self.file = rotation.file;
                self.whole_bytes = 0;
                // Whoever asked may have gone away.
                let _ = rotation.complete.send(loss);
            }
        }
    }

    fn take(&mut self, event: &Event) {
        if self.loss.is_none() {
            match serde_json::to_writer(&mut self.batch, event) {
                Ok(()) => return self.batch.push(b'\n'),
                Err(e) => self.fail(&e),
            }
        }
        self.count_lost(1);
    }

    /// Seen to the disk. A pipe or a device cannot be synced and needs no syncing.
    fn sync(&mut self) {
        match self.file.sync_data().map_err(|e| (e.raw_os_error(), e)) {
            Ok(()) => {}
            Err((Some(code), _)) if UNSYNCED.map(Errno::raw_os_error).contains(&code) => {}
            Err((_, e)) => self.fail(&e),
        }
    }

    fn hand_over(&mut self) {
        let (whole, result) = input::append_lines(&mut self.file, &self.batch);
        self.whole_bytes += whole as u64;
        if let Err(e) = result {
            self.fail(&e);
            self.count_lost(input::count_lines(&self.batch[whole..]));
            // If even this fails, readers still leave out one unfinished last line.
            let _ = self.file.set_len(self.whole_bytes);
        }
        self.batch.clear();
        self.handed_over = Instant::now();
    }

    /// From here on the lines of this file are lost; said once for each file.
    fn fail(&mut self, why: &dyn std::fmt::Display) {
        if self.loss.is_none() {
            let name = &self.name;
            tracing::error!("event log {name}: cannot write: {why}; its lines are lost from here");
            self.loss = Some(Loss {
                name: name.clone(),
                lines: 0,
                why: why.to_string(),
            });
        }
    }

    fn count_lost(&mut self, lines: u64) {
        self.lost.fetch_add(lines, Ordering::Relaxed);
        if let Some(loss) = &mut self.loss {
            loss.lines += lines;
        }
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
    fn lines_dropped_before_the_writer_died_are_lost_once() {
        let mut log = EventLog::create(std::path::Path::new("/dev/null")).unwrap();
        log.dropped = 3;
        log.writer = Some(std::thread::spawn(|| panic!("a writer that dies")));
        let loss = log.close().unwrap_err().to_string();
        assert!(
            loss.contains("3 lines are lost (its writer died)"),
            "{loss}"
        );
    }

    #[test]
    fn a_full_disk_is_told_by_the_file_it_cut_and_not_by_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let strategy = Event::Strategy {
            t_ns: 1,
            strategy: "random".into(),
        };
        let mut log = EventLog::create(std::path::Path::new("/dev/full")).unwrap();
        log.folder = folder.path().to_path_buf();
        for _ in 0..3 {
            log.push(strategy.clone());
        }
        let loss = log.rotate(Some("b.jsonl")).unwrap().recv().unwrap();
        let text = loss.expect("a loss").to_string();
        assert!(
            text.contains("log full is not whole: 3 lines are lost"),
            "{text}"
        );
        assert!(text.contains("No space left"), "{text}");
        assert_eq!(log.lost(), 3);
        log.push(strategy.clone());
        assert_eq!(log.close(), Ok(()));
        let mut log = EventLog::create(std::path::Path::new("/dev/full")).unwrap();
        log.push(strategy);
        assert!(log.close().is_err());
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
