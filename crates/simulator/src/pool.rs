//! Idle connections kept ready, so that no request waits for a handshake at its due time.
//!
//! The most recently used connection is taken first. When fewer than [`SPARE`] are left, new ones
//! are opened in the background; idle ones are closed before a server would close them under us.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;

use crate::clock::Clock;
use crate::link::Link;

/// Idle connections kept ready.
pub(crate) const SPARE: usize = 16;
/// An idle connection is closed after this time; below the five seconds after which servers that
/// limit the wait for a request head close it themselves.
const IDLE_LIMIT: Duration = Duration::from_secs(4);
/// How often idle connections are looked after.
const TIDY_INTERVAL: Duration = Duration::from_millis(500);
/// Idle connections kept at most; a burst leaves no more than this behind.
const MAX_IDLE: usize = 1024;

/// The idle connections to one target.
pub(crate) struct Pool {
    target: SocketAddr,
    clock: Arc<Clock>,
    idle: Mutex<Vec<Link>>,
    opening: AtomicUsize,
    opened: AtomicUsize,
}

impl Pool {
    /// An empty pool for `target`.
    pub(crate) fn new(target: SocketAddr, clock: Arc<Clock>) -> Arc<Self> {
        Arc::new(Self {
            target,
            clock,
            idle: Mutex::new(Vec::new()),
            opening: AtomicUsize::new(0),
            opened: AtomicUsize::new(0),
        })
    }

    /// An idle connection that can be used at once.
    pub(crate) fn take(&self) -> Option<Link> {
        loop {
            let link = self.lock().pop()?;
            if link.is_usable() {
                return Some(link);
            }
        }
    }

    /// A new connection, outside the idle ones.
    ///
    /// # Errors
    /// The target cannot be reached.
    pub(crate) async fn open(&self) -> std::io::Result<Link> {
        let link = Link::open(self.target, &self.clock).await?;
        self.opened.fetch_add(1, Ordering::Relaxed);
        Ok(link)
    }

    /// Takes a connection back after a complete exchange.
    pub(crate) fn put(&self, mut link: Link) {
        link.idle_since_ns = self.clock.raw_ns();
        let mut idle = self.lock();
        if idle.len() < MAX_IDLE {
            idle.push(link);
        }
    }

    /// Opens spare connections in the background if there are too few.
    pub(crate) fn top_up(self: &Arc<Self>, runtime: &Handle) {
        let ready = self.lock().len() + self.opening.load(Ordering::Relaxed);
        for _ in ready..SPARE {
            self.opening.fetch_add(1, Ordering::Relaxed);
            let pool = Arc::clone(self);
            runtime.spawn(async move {
                // A target that refuses is noticed by the requests themselves.
                if let Ok(link) = pool.open().await {
                    pool.put(link);
                }
                pool.opening.fetch_sub(1, Ordering::Relaxed);
            });
        }
    }

    /// Closes what was idle too long and tops up, until the task is dropped.
    pub(crate) async fn look_after(self: Arc<Self>) {
        let mut tick = tokio::time::interval(TIDY_INTERVAL);
        loop {
            tick.tick().await;
            let now_ns = self.clock.raw_ns();
            let stale: Vec<Link> = self
                .lock()
                .extract_if(.., |l| !l.is_usable() || l.idle_for(now_ns) > IDLE_LIMIT)
                .collect();
            drop(stale);
            self.top_up(&Handle::current());
        }
    }

    /// Opens the spare connections before the run.
    ///
    /// # Errors
    /// The target cannot be reached.
    pub(crate) async fn warm(&self) -> std::io::Result<()> {
        for _ in 0..SPARE {
            let link = self.open().await?;
            self.put(link);
        }
        Ok(())
    }

    /// Connections opened since the start.
    pub(crate) fn opened(&self) -> usize {
        self.opened.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Link>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
