//! `twin sweep`: a grid of scenarios on all cores, into one CSV.
//!
//! Every run is a row. Finished rows go to a journal beside the result, whoever finished first; at the
//! end they are written in the order of the file, so the bytes do not depend on threads or on how often
//! the sweep was interrupted. Memory: one run per thread, and the rows.

mod inputs;
mod journal;
mod row;

use crate::build::Plan;
use crate::files;
use crate::parallel;
use crate::settle::settled;
use anyhow::Context as _;
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use inputs::Inputs;
use journal::Journal;
use row::Columns;
pub(crate) use row::{SEED, UNSTABLE, VERDICT, is_dimension};
use schema::problem::{Problem, Problems};
use schema::sweep::Sweep;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// `twin sweep`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The sweep (JSON)
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Where the rows go (default: FILE's name with .csv, in the current folder)
    #[arg(long, value_name = "CSV")]
    out: Option<PathBuf>,
    /// Threads (default: all cores); they change nothing but the time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Only say how many runs and requests there are
    #[arg(long)]
    dry_run: bool,
    /// No progress bar
    #[arg(long)]
    quiet: bool,
}

/// Runs what is not done yet and writes the result.
///
/// # Errors
/// Bad input ([`Problems`], exit 2), a journal of another sweep included; a file that cannot be read or
/// written; a broken invariant. What is done stays in the journal.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let source = arguments.file.display().to_string();
    let text = crate::run::text_of(&arguments.file)?;
    let sweep = Sweep::parse(&source, &text)?;
    let inputs = Inputs::read(&arguments.file, &sweep)?;
    let grid = Grid {
        sweep: &sweep,
        inputs: &inputs,
        source: &source,
    };
    let threads = parallel::threads(arguments.threads);
    let (requests, columns) = grid.check(threads)?;
    let told = format!("{} runs of {requests} requests in all", sweep.runs());
    if arguments.dry_run {
        console::say!("{told}")?;
        return Ok(());
    }
    let out = match &arguments.out {
        Some(out) => out.clone(),
        None => Path::new(arguments.file.file_stem().unwrap_or_default()).with_extension("csv"),
    };
    let outputs = Journal::files(&out).map(|path| (path, "--out"));
    files::refuse_overwriting(inputs.paths(), &outputs)?;
    let digest = inputs.digest(&text);
    let journal = Journal::open(&out, &digest, sweep.runs())?;
    let resumed = journal.done();
    if resumed > 0 {
        console::tell!("{resumed} of {} runs are done already", sweep.runs());
    }
    let journal = grid.finish(
        journal,
        &columns,
        threads,
        progress(&sweep, resumed, arguments),
    )?;
    journal.publish(&columns.header())?;
    console::say!("{told}: {}", out.display())?;
    Ok(())
}

fn progress(sweep: &Sweep, done: u64, arguments: &Arguments) -> ProgressBar {
    let target = match arguments.quiet {
        true => ProgressDrawTarget::hidden(),
        false => ProgressDrawTarget::stderr_with_hz(4),
    };
    let bar = ProgressBar::with_draw_target(Some(sweep.runs()), target);
    let template = "{bar:24} {pos}/{len} runs, {eta} left";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.set_position(done);
    bar.reset_eta();
    bar
}

/// A sweep with everything it names.
struct Grid<'a> {
    sweep: &'a Sweep,
    inputs: &'a Inputs,
    source: &'a str,
}

impl Grid<'_> {
    /// Run number `index`, worked out.
    fn plan(&self, index: u64) -> anyhow::Result<(Vec<(&str, &str)>, Plan)> {
        let run = self.sweep.run(index)?;
        let replication = index % u64::from(self.sweep.seeds);
        let plan = self
            .inputs
            .plan(&run.scenario, replication as u32)
            .with_context(|| {
                let labels = run
                    .labels
                    .iter()
                    .map(|(axis, label)| format!("{axis} = {label}"));
                let labels = labels.collect::<Vec<_>>().join(", ");
                format!("{}: run {index} ({labels})", self.source)
            })?;
        Ok((run.labels, plan))
    }

    /// Works every cell out before the first run; tells all requests, and the columns of the result.
    fn check(&self, threads: usize) -> anyhow::Result<(u64, Columns)> {
        let seeds = u64::from(self.sweep.seeds);
        let cells = self.sweep.runs() / seeds;
        // The last seed of a cell is the one that may be too large.
        let checked = parallel::in_order(threads, &vec![1; cells as usize], |cell| {
            let (_, plan) = self.plan(cell as u64 * seeds + seeds - 1)?;
            anyhow::Ok((plan.setup.requests, plan.setup.workers.len()))
        });
        let (mut requests, mut workers) = (0_u64, 0);
        for cell in checked {
            let (of_run, here) = cell?;
            requests = requests.saturating_add(of_run.saturating_mul(seeds));
            workers = workers.max(here);
        }
        let columns = Columns::new(self.sweep.axes(), workers);
        if let Some(taken) = columns.taken_twice() {
            let what = "the result has a column of this name";
            let problem = Problem::new("name", taken, what).in_source(self.source);
            return Err(Problems::from(problem.next("choose another name for the axis")).into());
        }
        Ok((requests, columns))
    }

    /// Makes the runs that the journal lacks; after an error no further ones.
    fn finish<'j>(
        &self,
        journal: Journal<'j>,
        columns: &Columns,
        threads: usize,
        bar: ProgressBar,
    ) -> anyhow::Result<Journal<'j>> {
        let missing: Vec<u64> = journal.missing().collect();
        let journal = Mutex::new(journal);
        let is_over = AtomicBool::new(false);
        let one = |index: u64| -> anyhow::Result<()> {
            let (labels, plan) = self.plan(index)?;
            let outcome = settled(&plan)?;
            let line = columns.line(index, &labels, &plan, &outcome);
            let mut journal = journal.lock().unwrap_or_else(PoisonError::into_inner);
            journal.add(index, line)
        };
        let results = parallel::in_order(threads, &vec![1; missing.len()], |at| {
            if is_over.load(Ordering::Relaxed) {
                return Ok(());
            }
            let result = one(missing[at]);
            is_over.fetch_or(result.is_err(), Ordering::Relaxed);
            bar.inc(1);
            result
        });
        bar.finish_and_clear();
        results.into_iter().collect::<anyhow::Result<()>>()?;
        Ok(journal.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}
