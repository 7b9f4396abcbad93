//! Who looks on while a run goes: writers of rows and of event logs.

use schema::report::Report;
use strategies::ejection::Note;
use strategies::{Answer, Dispatch, Dispatcher, Outcome, Request};

/// A pick as it was made.
#[derive(Debug)]
pub struct Picked<'a> {
    /// Which balancer.
    pub balancer: usize,
    /// The request's place until its end; used again afterwards.
    pub slot: u32,
    /// What the strategy saw.
    pub request: &'a Request<'a>,
    /// What came of it.
    pub dispatch: Option<Dispatch>,
    /// The dispatcher just after.
    pub dispatcher: &'a Dispatcher,
    /// What the request would take at each worker if no other came, ms; empty unless wanted.
    pub own_ms: &'a [f64],
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Answered well.
    Ok,
    /// Answered with this HTTP status.
    Status(u16),
    /// The connection broke before an answer.
    Broken,
    /// Connection refused.
    Refused,
    /// Given up by the balancer.
    Timeout,
    /// No backend was eligible.
    Unserved,
    /// Refused by the balancer, which held too many.
    Shed,
}

impl Fate {
    /// True for a good answer.
    pub fn is_ok(self) -> bool {
        self == Self::Ok
    }

    /// True if it was sent to some worker.
    pub fn is_dispatched(self) -> bool {
        !matches!(self, Self::Unserved | Self::Shed)
    }
}

/// A finished request; times in s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Done {
    /// Its place, as in [`Picked::slot`].
    pub slot: u32,
    /// Number of the request.
    pub seq: u64,
    /// Its class.
    pub class: u32,
    /// Its work, core-seconds.
    pub work: f64,
    /// When it arrived at the balancer.
    pub arrived: f64,
    /// When it reached the worker.
    pub reached: f64,
    /// When its service began.
    pub started: f64,
    /// When it left the worker.
    pub left: f64,
    /// When its outcome was known.
    pub finished: f64,
    /// Where; none if unserved.
    pub worker: Option<u32>,
    /// How.
    pub fate: Fate,
    /// Left out of statistics.
    pub warmup: bool,
}

/// Sees everything; the empty default sees nothing and costs nothing.
pub trait Watch {
    /// Whether anybody looks; if not, the engine skips what only a watcher needs.
    const WATCHES: bool = true;

    /// Whether [`Picked::own_ms`] is wanted.
    fn wants_own_ms(&self) -> bool {
        false
    }

    /// A run begins.
    fn began(&mut self, _balancer: usize, _dispatcher: &Dispatcher) {}

    /// A pick was made.
    fn picked(&mut self, _picked: &Picked<'_>) {}

    /// An outcome was told to a dispatcher.
    fn answered(
        &mut self,
        _balancer: usize,
        _now_ns: u64,
        _outcome: &Outcome,
        _answer: &Answer,
        _worker: u32,
    ) {
    }

    /// A report was taken in, as stored.
    fn reported(&mut self, _balancer: usize, _now_ns: u64, _worker: u32, _report: &Report) {}

    /// The rules of ejection did something of their own.
    fn stepped(&mut self, _balancer: usize, _note: &Note) {}

    /// A request is finished.
    fn finished(&mut self, _done: &Done) {}
}

/// Nobody.
impl Watch for () {
    const WATCHES: bool = false;
}
