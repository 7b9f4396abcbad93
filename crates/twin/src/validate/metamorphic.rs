//! What needs no expected number: changes of units, order, representation or threads that must change
//! nothing; and what a simulator with a smallest gap between events would get wrong.

mod walk;

use super::judge::{Line, Measured};
use super::scene::{measure, pool, simulate, spec, watched};
use super::{Case, Tier};
use crate::engine::{self, Done, Path, Setup, Source, Watch};
use crate::parallel;
use crate::station::Model;
use crate::sum::Sum;
use walk::walk;

const LOAD: f64 = 0.8;
const REQUESTS: u64 = 1_000_000;
const QUOTA_REQUESTS: u64 = 100_000;
/// Strategies of every kind: live counts, polled counts, idle places, draws.
const SEVERAL: [&str; 4] = [
    "weighted-least-request",
    "polled-own-sends",
    "jiq",
    "d-choices:d=2",
];

pub(super) fn cases() -> Vec<Case> {
    let case = |title: &'static str, run: fn(&str, Tier) -> anyhow::Result<Vec<Line>>| {
        Case::new("A27", title, REQUESTS, move |tier| run(title, tier))
    };
    vec![
        case("times and sizes x 8 and x 10", units),
        case("workers in another order", order),
        case("a board of no age is the live count", no_age),
        case("what is next anyway, at once or through the queue", paths),
        case("distinct choices among all are the shortest", all_choices),
        case("a core for everyone: responses take their size", roomy),
        case("processor sharing by walking all requests", walked),
        case("1, 2 and 4 threads", threads),
        case("a quota with short periods is processor sharing", quota),
        Case::new("A28", "least event gap", REQUESTS, grid),
    ]
}

fn base(tier: Tier) -> Setup {
    pool(&[4.0, 3.0, 2.0], LOAD, tier.requests(REQUESTS))
}

/// What happened to each request, in order of completion.
#[derive(Default, PartialEq)]
struct Record(Vec<Fate>);

#[derive(Clone, Copy, PartialEq)]
struct Fate {
    seq: u64,
    worker: Option<u32>,
    work: f64,
    arrived: f64,
    finished: f64,
}

impl Watch for Record {
    fn finished(&mut self, done: &Done) {
        self.0.push(Fate {
            seq: done.seq,
            worker: done.worker,
            work: done.work,
            arrived: done.arrived,
            finished: done.finished,
        });
    }
}

fn record(setup: &Setup, strategy: &str) -> anyhow::Result<Record> {
    let mut record = Record::default();
    watched(setup, &spec(strategy)?, &mut record)?;
    Ok(record)
}

/// One line: how many of so many requests differ.
fn differ(case: String, differing: usize, of: usize) -> Line {
    let got = format!("{differing} of {of} differ");
    Line::holds("A27", case, "none differs", got, differing == 0 && of > 0)
}

fn count(a: &Record, b: &Record, is_same: impl Fn(&Fate, &Fate) -> bool) -> usize {
    let missing = a.0.len().abs_diff(b.0.len());
    let pairs = a.0.iter().zip(&b.0);
    missing + pairs.filter(|(a, b)| !is_same(a, b)).count()
}

/// Every time and size multiplied.
fn scaled(setup: &Setup, by: f64) -> Setup {
    let mut scaled = setup.clone();
    scaled.mean_work *= by;
    scaled.classes.iter_mut().for_each(|c| c.mean_work *= by);
    scaled.polls.interval *= by;
    scaled.polls.fetch *= by;
    if let Source::Open { rate_rps, .. } = &mut scaled.source {
        *rate_rps /= by;
    }
    scaled
}

fn units(title: &str, tier: Tier) -> anyhow::Result<Vec<Line>> {
    let mut setup = base(tier);
    setup.requests /= SEVERAL.len() as u64;
    setup.polls.fetch = 0.125;
    let mut lines = Vec::new();
    for strategy in SEVERAL {
        let one = record(&setup, strategy)?;
        let eight = record(&scaled(&setup, 8.0), strategy)?;
        let exactly = |a: &Fate, b: &Fate| {
            (a.seq, a.worker) == (b.seq, b.worker) && 8.0 * a.finished == b.finished
        };
        let (case, of) = (format!("{title}: x 8, {strategy}"), one.0.len());
        lines.push(differ(case, count(&one, &eight, exactly), of));
        let ten = record(&scaled(&setup, 10.0), strategy)?;
        let nearly = |a: &Fate, b: &Fate| {
            let off = (10.0 * a.finished - b.finished).abs();
            (a.seq, a.worker) == (b.seq, b.worker) && off <= 1e-9 * b.finished
        };
        let case = format!("{title}: x 10, {strategy}");
        lines.push(differ(case, count(&one, &ten, nearly), of));
    }
    Ok(lines)
}

fn order(title: &str, tier: Tier) -> anyhow::Result<Vec<Line>> {
    let one = base(tier);
    let mut turned = one.clone();
    turned.workers.rotate_left(1);
    let mut lines = Vec::new();
    for strategy in ["weighted-least-request", "weighted-random"] {
        let (a, b) = (
            measure(&one, &spec(strategy)?)?,
            measure(&turned, &spec(strategy)?)?,
        );
        let got = Measured {
            mean: b.mean,
            standard_error: a.standard_error.hypot(b.standard_error),
        };
        let case = format!("{title}: {strategy}");
        lines.push(Line::number("A27", case, a.mean, got, tier.tolerance(0.02)));
    }
    Ok(lines)
}

fn no_age(title: &str, tier: Tier) -> anyhow::Result<Vec<Line>> {
    let mut setup = base(tier);
    setup.polls.interval = 0.0;
    let board = record(&setup, "polled-least-request")?;
    let live = record(&setup, "weighted-least-request")?;
    let differing = count(&board, &live, |a, b| a == b);
    Ok(vec![differ(title.into(), differing, live.0.len())])
}

fn paths(title: &str, tier: Tier) -> anyhow::Result<Vec<Line>> {
    let mut setup = base(tier);
    setup.requests /= SEVERAL.len() as u64;
    let mut lines = Vec::new();
    for strategy in SEVERAL {
        let inline = record(&setup, strategy)?;
        let mut general = Record::default();
        engine::run_by(&setup, &spec(strategy)?, &mut general, Path::General)?;
        let differing = count(&inline, &general, |a, b| a == b);
        lines.push(differ(
            format!("{title}: {strategy}"),
            differing,
            inline.0.len(),
        ));
    }
    Ok(lines)
}

fn all_choices(title: &str, tier: Tier) -> anyhow::Result<Vec<Line>> {
    let setup = base(tier);
    let all = measure(&setup, &spec("d-choices:d=3")?)?;
    let shortest = measure(&setup, &spec("least-request:ties=random")?)?;
    // The errors are common to both; that of one is more than enough.
    Ok(vec![Line::number(
        "A27",
        title,
        shortest.mean,
        all,
        tier.tolerance(0.02),
    )])
}

fn roomy(title: &str, tier: Tier) -> anyhow::Result<Vec<Line>> {
    let mut setup = base(tier);
    setup.workers.iter_mut().for_each(|w| w.cores = 1e4);
    let mut lines = Vec::new();
    for (name, model) in [("PS", Model::Ps), ("FCFS", Model::Fcfs)] {
        setup.model = model;
        let record = record(&setup, "random")?;
        let is_off = |f: &&Fate| {
            let latency = f.finished - f.arrived;
            (latency - f.work).abs() > 1e-12 * (1.0 + f.finished)
        };
        let differing = record.0.iter().filter(is_off).count();
        lines.push(differ(
            format!("{title}: {name}"),
            differing,
            record.0.len(),
        ));
    }
    Ok(lines)
}

fn walked(title: &str, tier: Tier) -> anyhow::Result<Vec<Line>> {
    let mut lines = Vec::new();
    for cores in [4.0, 2.5, 0.4] {
        let mut setup = pool(&[cores], LOAD, tier.requests(REQUESTS) / 3);
        setup.workers[0].weight = 1;
        let fast = record(&setup, "round-robin")?;
        let mut arrivals: Vec<(f64, f64)> = vec![(0.0, 0.0); fast.0.len()];
        for fate in &fast.0 {
            arrivals[fate.seq as usize] = (fate.arrived, fate.work);
        }
        let slow = walk(&arrivals, cores);
        let is_off =
            |(a, b): &(&Fate, &(u64, f64))| a.seq != b.0 || (a.finished - b.1).abs() > 1e-6;
        let differing = fast.0.iter().zip(&slow).filter(is_off).count();
        let differing = differing + fast.0.len().abs_diff(slow.len());
        lines.push(differ(
            format!("{title}: {cores} cores"),
            differing,
            fast.0.len(),
        ));
    }
    Ok(lines)
}

fn threads(title: &str, tier: Tier) -> anyhow::Result<Vec<Line>> {
    const TASKS: u64 = 8;
    let base = base(tier);
    let folded = |threads: usize| -> anyhow::Result<u64> {
        let task = |at: usize| {
            let setup = Setup {
                seed: at as u64,
                requests: base.requests / TASKS,
                warmup: 0,
                ..base.clone()
            };
            Ok(simulate(&setup, &spec("p2c")?)?.mean.unwrap_or(f64::NAN))
        };
        let means: Vec<anyhow::Result<f64>> =
            parallel::in_order(threads, &[1; TASKS as usize], task);
        let mut sum = Sum::default();
        for mean in means {
            sum.add(mean?);
        }
        Ok(sum.value().to_bits())
    };
    let (one, two, four) = (folded(1)?, folded(2)?, folded(4)?);
    let got = format!("{one:016x}, {two:016x}, {four:016x}");
    let holds = one == two && two == four;
    Ok(vec![Line::holds("A27", title, "the same bits", got, holds)])
}

fn quota(title: &str, _tier: Tier) -> anyhow::Result<Vec<Line>> {
    let mut lines = Vec::new();
    for (cores, host_cores) in [(4.0, 8.0), (0.4, 2.0)] {
        let mut shared = pool(&[cores], LOAD, QUOTA_REQUESTS);
        shared.workers[0].weight = 1;
        let mut limited = shared.clone();
        limited.model = Model::Quota {
            period: 1.0 / 50.0,
            host_cores,
            phase: 0.0,
        };
        let mean = |setup| -> anyhow::Result<f64> { Ok(measure(setup, &spec("random")?)?.mean) };
        // Paired: the errors are common to both.
        let got = Measured {
            mean: mean(&limited)?,
            standard_error: 0.0,
        };
        let case = format!("{title}: {cores} on {host_cores}");
        lines.push(Line::number("A27", case, mean(&shared)?, got, 0.02));
    }
    Ok(lines)
}

fn grid(tier: Tier) -> anyhow::Result<Vec<Line>> {
    let setup = scaled(&base(tier), 0.05);
    let mut coarse = setup.clone();
    coarse.model = Model::Grid { step: 0.1 };
    let spec = spec("weighted-least-request")?;
    let (fine, coarse) = (measure(&setup, &spec)?, measure(&coarse, &spec)?);
    let case = "least event gap .1 s at S = .05 s, 4/3/2, load .8, (n+1)/c";
    let inflation = coarse.mean / fine.mean;
    let got = format!(
        "mean x {inflation:.3} ({:.4} s for {:.4} s)",
        coarse.mean, fine.mean
    );
    Ok(vec![Line::report("A28", case, got)])
}
