//! Rows read one run at a time: a file of any size costs the memory of its largest run.

use super::refuse;
use input::BoundedLines;
use schema::problem::{Problem, Problems};
use schema::row::{COLUMNS, Row};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

/// Longest line of a rows file, bytes.
pub(super) const MAX_LINE_BYTES: usize = 1 << 16;
/// Requests of one run at most: some 2 GB while it is judged.
const MAX_RUN_REQUESTS: usize = 10_000_000;

/// Missing columns that are named.
const SHOWN_COLUMNS: usize = 5;
/// How a request ended for which the balancer had no worker.
const UNSERVED: &str = "error:no_backend";

/// One strategy replayed once.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Run {
    pub(super) run_id: String,
    pub(super) block: Option<u32>,
    pub(super) strategy: String,
    /// By place in the schedule, every place there once.
    pub(super) requests: Vec<Request>,
}

/// What a row tells of its request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Request {
    pub(super) seq: u64,
    pub(super) size_mi: f64,
    pub(super) warmup: bool,
    pub(super) intended_ns: u64,
    /// Begin and end as the client saw them; none if it was never sent.
    pub(super) sent_done_ns: Option<(u64, u64)>,
    /// The worker that it came to at last.
    pub(super) worker: Option<usize>,
    pub(super) attempts: Option<u32>,
    pub(super) ok: bool,
    /// The balancer had nobody to send it to.
    pub(super) unserved: bool,
    /// Waiting and running part of its time at the worker, ns, if it told.
    pub(super) at_worker_ns: Option<(u64, u64)>,
}

/// The runs of a file, one after the other.
pub(super) struct Runs<'a> {
    source: String,
    /// Name and cores by position.
    workers: Vec<(&'a str, f64)>,
    rows: csv::DeserializeRecordsIntoIter<BoundedLines<File>, Row>,
    /// Line and row read already that begin the next run.
    next: Option<(u64, Row)>,
    seen: BTreeSet<(String, String)>,
}

impl<'a> Runs<'a> {
    /// Opens a rows file of these workers.
    ///
    /// # Errors
    /// A file that cannot be read, is cut off, or lacks columns.
    pub(super) fn open(path: &Path, workers: Vec<(&'a str, f64)>) -> Result<Self, Problems> {
        let source = path.display().to_string();
        let lines = input::open_lines(path, MAX_LINE_BYTES).map_err(|problem| *problem)?;
        check_end(path, &source)?;
        let mut reader = csv::Reader::from_reader(lines);
        let header = reader.headers().map_err(|e| damaged(&source, &e))?;
        let missing: Vec<&str> = COLUMNS
            .into_iter()
            .filter(|c| !header.iter().any(|h| h == *c))
            .collect();
        if !missing.is_empty() {
            let shown = missing[..missing.len().min(SHOWN_COLUMNS)].join(", ");
            let more = match missing.len().saturating_sub(SHOWN_COLUMNS) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let what = format!("not a rows file: no column {shown}{more}");
            return refuse(
                Problem::new("", "", what)
                    .in_source(source)
                    .at(1, 1)
                    .next("name a rows.csv of `testbed bench` or of `twin run --out`"),
            );
        }
        let mut runs = Self {
            source,
            workers,
            rows: reader.into_deserialize(),
            next: None,
            seen: BTreeSet::new(),
        };
        runs.next = runs.read()?;
        if runs.next.is_none() {
            let problem = Problem::new("", "", "no rows").in_source(&runs.source);
            return refuse(problem.next("name a rows.csv of a run that was carried out"));
        }
        Ok(runs)
    }

    /// The next run; `None` after the last.
    ///
    /// # Errors
    /// A damaged row, one of another worker, a request that is missing.
    pub(super) fn next_run(&mut self) -> Result<Option<Run>, Problems> {
        let Some((line, first)) = self.next.take() else {
            return Ok(None);
        };
        let mut run = Run {
            requests: vec![self.request(line, &first)?],
            run_id: first.run_id,
            block: first.block,
            strategy: first.strategy,
        };
        if !self.seen.insert((run.run_id.clone(), run.strategy.clone())) {
            let what = "rows of this run stand apart";
            let problem = Problem::new("run_id", run.run_id, what).in_source(&self.source);
            return refuse(
                problem
                    .at(line as usize, 1)
                    .next("sort the file by run, or name files of one run each"),
            );
        }
        while let Some((line, row)) = self.read()? {
            if row.run_id != run.run_id || row.strategy != run.strategy {
                self.next = Some((line, row));
                break;
            }
            if run.requests.len() == MAX_RUN_REQUESTS {
                let problem = Problem::new("run_id", run.run_id, "too many requests in one run");
                let problem = problem.in_source(&self.source).at(line as usize, 1);
                return refuse(problem.allowed(format!("up to {MAX_RUN_REQUESTS}")));
            }
            run.requests.push(self.request(line, &row)?);
        }
        run.requests.sort_by_key(|r| r.seq);
        self.check_whole(&run)?;
        Ok(Some(run))
    }

    fn read(&mut self) -> Result<Option<(u64, Row)>, Problems> {
        let line = self.rows.reader().position().line();
        match self.rows.next() {
            None => Ok(None),
            Some(Ok(row)) => Ok(Some((line, row))),
            Some(Err(error)) => Err(damaged(&self.source, &error).into()),
        }
    }

    fn request(&self, line: u64, row: &Row) -> Result<Request, Problems> {
        let wrong = |field: &str, value: String, what: &str| {
            let problem = Problem::new(field, value, what).in_source(&self.source);
            problem.at(line as usize, 1)
        };
        if !(row.task_size_mi > 0.0 && row.task_size_mi.is_finite()) {
            let problem = wrong("task_size_mi", row.task_size_mi.to_string(), "no size");
            return refuse(problem.allowed("above 0"));
        }
        let worker = match row.container.as_deref() {
            None => None,
            Some(name) => match self.workers.iter().position(|(n, _)| *n == name) {
                Some(at) => Some(at),
                None => {
                    let known: Vec<&str> = self.workers.iter().map(|w| w.0).collect();
                    let problem = wrong("container", name.into(), "no such worker");
                    return refuse(problem.allowed(known.join(", ")).next(
                        "give the --cores that the rows were made with, one for each worker",
                    ));
                }
            },
        };
        if let (Some(at), Some(cores)) = (worker, row.cores)
            && (cores - self.workers[at].1).abs() > 1e-9 * cores
        {
            let (name, stated) = self.workers[at];
            let what = format!("worker {name} had other cores than stated");
            let problem = wrong("cores", cores.to_string(), &what).allowed(stated.to_string());
            return refuse(problem.next("give the --cores that the rows were made with"));
        }
        let ok = row.error.is_empty();
        let at_worker_ns = row.queue_wait_us.zip(row.service_time_us);
        if ok && (worker.is_none() || at_worker_ns.is_none()) {
            let field = match worker {
                None => "container",
                Some(_) => "queue_wait_us, service_time_us",
            };
            let problem = wrong(field, String::new(), "empty for an answered request");
            return refuse(
                problem.next(
                    "regret needs rows of this project's balancer and workers, or of the twin",
                ),
            );
        }
        Ok(Request {
            seq: row.seq,
            size_mi: row.task_size_mi,
            warmup: row.warmup,
            intended_ns: row.intended_ns,
            sent_done_ns: row.sent_ns.zip(row.done_ns),
            worker,
            attempts: row.attempts,
            ok,
            unserved: row.error == UNSERVED,
            at_worker_ns: at_worker_ns.map(|(wait, service)| (wait * 1000, service * 1000)),
        })
    }

    /// A request without a row was at some worker too, and nobody knows at which.
    fn check_whole(&self, run: &Run) -> Result<(), Problems> {
        let places = run.requests.iter().zip(0..);
        let Some((request, place)) = places.into_iter().find(|(r, place)| r.seq != *place) else {
            return Ok(());
        };
        let (seq, what) = match request.seq > place {
            true => (place, "this request has no row"),
            false => (request.seq, "two rows of this request"),
        };
        let field = format!("seq of run {}", run.run_id);
        let problem = Problem::new(field, seq.to_string(), what).in_source(&self.source);
        refuse(
            problem.next("bring the whole file back: work left is rebuilt from all rows of a run"),
        )
    }
}

fn damaged(source: &str, error: &csv::Error) -> Problem {
    let problem = Problem::new("", "", format!("not a rows file: {error}")).in_source(source);
    let line = error.position().map_or(1, csv::Position::line);
    problem
        .at(line as usize, 1)
        .next("name a rows.csv of `testbed bench` or of `twin run --out`")
}

/// The last line of a whole file ends with a newline.
fn check_end(path: &Path, source: &str) -> Result<(), Problems> {
    // What has no end to look at, such as a pipe or a device, is refused or not by its content.
    if !path.is_file() {
        return Ok(());
    }
    let mut last = [b'\n'];
    let read = File::open(path).and_then(|mut file| {
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)
    });
    // An empty file has no end either.
    if read.is_ok() && last != [b'\n'] {
        let problem = Problem::new("", "", "the last line is cut off").in_source(source);
        return refuse(problem.next("bring the whole file back"));
    }
    Ok(())
}
