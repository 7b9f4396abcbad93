//! `twin validate`: the acceptance table. Is the simulator right?
//!
//! Every case simulates a system whose mean is known and compares; the known means are computed by the
//! analytic crate, except where no formula exists (then the constant says where it comes from). Rules that
//! no proxy has and that only serve a comparison are in [`references`]; they go through the same trait
//! and the same dispatcher as all others.
//!
//! A number passes if it is within its tolerance or three standard errors, whichever is more; but a check
//! whose three standard errors exceed twice its tolerance says nothing and counts as a miss. The default
//! tier has a twentieth of the requests and four times the tolerances of the full one. Every run besides
//! checks its own invariants; a broken one is a miss.

mod boards;
mod chains;
mod judge;
mod many;
mod metamorphic;
mod print;
mod references;
mod scene;
mod single;
mod splits;
mod unstable;

use crate::parallel;
use clap::Args;
use judge::Line;

/// How much longer the full tier is, and how much tighter.
const SHORTER: u64 = 20;
const LOOSER: f64 = 4.0;

/// `twin validate`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// All requests and the tight tolerances: minutes instead of seconds
    #[arg(long)]
    full: bool,
    /// Only the cases of this id, such as A7
    #[arg(long, value_name = "ID")]
    only: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// How thorough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tier {
    Default,
    Full,
}

impl Tier {
    /// Requests of a case that has so many in the full tier.
    fn requests(self, full: u64) -> u64 {
        match self {
            Self::Full => full,
            Self::Default => full / SHORTER,
        }
    }

    /// Tolerance of a case that has this one in the full tier.
    fn tolerance(self, full: f64) -> f64 {
        match self {
            Self::Full => full,
            Self::Default => full * LOOSER,
        }
    }
}

/// One independent piece of the table.
struct Case {
    id: &'static str,
    title: String,
    /// Requests simulated in the full tier, to start with the longest.
    requests: u64,
    run: Box<dyn Fn(Tier) -> anyhow::Result<Vec<Line>> + Send + Sync>,
}

impl Case {
    fn new(
        id: &'static str,
        title: impl Into<String>,
        requests: u64,
        run: impl Fn(Tier) -> anyhow::Result<Vec<Line>> + Send + Sync + 'static,
    ) -> Self {
        Self {
            id,
            title: title.into(),
            requests,
            run: Box::new(run),
        }
    }
}

/// Every case of a tier, in the order of the table.
fn cases(tier: Tier) -> Vec<Case> {
    let mut cases = single::cases();
    cases.extend(splits::cases());
    cases.extend(chains::cases());
    cases.extend(many::cases());
    cases.extend(boards::cases(tier));
    cases.extend(unstable::cases());
    cases.extend(metamorphic::cases());
    cases.sort_by_key(|case| order(case.id));
    cases
}

/// `A7 order` comes after `A6` and before `A11`.
fn order(id: &str) -> u32 {
    let digits = id.trim_start_matches('A');
    let end = digits.find(|c: char| !c.is_ascii_digit());
    digits[..end.unwrap_or(digits.len())]
        .parse()
        .unwrap_or(u32::MAX)
}

/// `A7 order` belongs to `A7`.
fn is_of(case: &str, id: &str) -> bool {
    case.split(' ').next() == Some(id) || case == id
}

/// What `--only` takes, in order; the last line of the table is no case of its own.
fn ids(tier: Tier) -> Vec<&'static str> {
    let cases = cases(tier).into_iter().map(|case| case.id);
    let ids = cases.chain([INVARIANTS]);
    let mut ids: Vec<&str> = ids.map(|id| id.split(' ').next().unwrap_or(id)).collect();
    ids.sort_by_key(|id| order(id));
    ids.dedup();
    ids
}

/// The line that counts broken laws.
const INVARIANTS: &str = "A26";

/// The table of a tier: each case's lines, on all cores; the last line counts the runs.
fn table(tier: Tier, only: Option<&str>) -> Vec<Line> {
    let mut cases = cases(tier);
    cases.retain(|case| only.is_none_or(|id| is_of(case.id, id)));
    let weights: Vec<u64> = cases.iter().map(|case| case.requests).collect();
    let threads = parallel::threads(None);
    let runs_before = scene::runs();
    let results = parallel::in_order(threads, &weights, |at| {
        let case = &cases[at];
        (case.run)(tier).unwrap_or_else(|error| vec![Line::failed(case.id, &case.title, &error)])
    });
    let mut lines: Vec<Line> = results.into_iter().flatten().collect();
    if only.is_none_or(|id| id == INVARIANTS) {
        let runs = scene::runs() - runs_before;
        let broken = lines.iter().filter(|line| line.is_broken()).count();
        lines.push(Line::holds(
            INVARIANTS,
            "invariants of every run of this table",
            "hold to 1e-9",
            format!("{broken} broken in {runs} runs"),
            broken == 0 && (runs > 0 || only.is_some()),
        ));
        lines.sort_by_key(|line| order(line.id));
    }
    lines
}

/// Simulates, compares and prints.
///
/// # Errors
/// Some check missed (exit 1); an id that no case has.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let tier = if arguments.full {
        Tier::Full
    } else {
        Tier::Default
    };
    let lines = table(tier, arguments.only.as_deref());
    if lines.is_empty() {
        let id = arguments.only.clone().unwrap_or_default();
        let problem = schema::problem::Problem::new("--only", id, "no case has such an id");
        return Err(problem.allowed(ids(tier).join(", ")).into());
    }
    if arguments.json {
        console::say!("{}", serde_json::to_string(&print::json(tier, &lines))?)?;
    } else {
        console::print(format_args!("{}", print::table(tier, &lines)))?;
    }
    let missed = lines.iter().filter(|line| line.is_miss()).count();
    anyhow::ensure!(missed == 0, "{missed} of {} checks missed", lines.len());
    Ok(())
}

#[cfg(test)]
mod tests;
