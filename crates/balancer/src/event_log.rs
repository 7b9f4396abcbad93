//! Writes the event log: lines queued in order under the dispatcher's lock, written by one thread.
//!
//! Whole lines only, pushed to the operating system at least every [`FLUSH_EVERY`], so that a kill
//! loses less than a second. The queue is bounded; what does not fit is counted and marked with a
//! `gap` line, past which the file does not replay.

use schema::event::Event;
use std::fs::File;
use std::io::{self, Write};
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
    /// Creates the file (replacing an older one) and starts its writer.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let file = File::create(path)?;
        let (queue, messages) = sync_channel(QUEUE_MAX);
        let lost = Arc::new(AtomicU64::new(0));
        let lost_by_writer = Arc::clone(&lost);
        let writer = std::thread::Builder::new()
            .name("event-log".into())
            .spawn(move || Lines::new(file, lost_by_writer).write_all(&messages))?;
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

    /// Goes on in another file of the same folder: `name`, else the first one's with a number. The
    /// receiver hears when the old file is complete on disk.
    pub(crate) fn rotate(&mut self, name: Option<&str>) -> io::Result<Receiver<()>> {
        let name = name.map_or_else(
            || format!("{}-{}.jsonl", self.first_stem, self.rotations + 1),
            str::to_string,
        );
        let file = File::create(self.folder.join(&name))?;
        let queue = self.queue.as_ref().ok_or(io::ErrorKind::BrokenPipe)?;
        let (complete, on_complete) = sync_channel(1);
        // The only message that may wait: nothing is in flight while a run is reset.
        queue
            .send(Message::Rotate(file, complete))
            .map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        self.lost_since_gap = 0;
        self.rotations += 1;
        self.name = name;
        Ok(on_complete)
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
    use super::EventLog;
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
        assert_eq!(log.name(), "a-2.jsonl");
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
}
