//! From a scenario to what the engine simulates; every bound that spans several fields is here.

mod faults;
mod pool;
mod spacing;

pub(crate) use faults::check_begun;
pub(crate) use pool::{name as worker_name, workers};

use crate::engine::WorkLeft;
use crate::engine::{Class, Delay, Listed, ListedSizes, Phase, Polls, Setup, Source};
use crate::station::{Cap, Model};
use schema::laws::arrivals::{self, Rates};
use schema::laws::sizes::SizeLaw;
use schema::problem::{Problem, Problems};
use schema::scenario::{Arrivals, Discipline, Network, PollPhase, Scenario, Sizes, Span};
use schema::schedule::{self, Due};
use schema::workload::Workload;
use spacing::Pace;
use std::sync::Arc;
use strategies::Spec;
use strategies::classes::Classes;
use strategies::registry::Models;

/// Mean size alone on a nominal core if nothing says otherwise, s.
const MEAN_SERVICE_S: f64 = 0.1;
/// Speed of a nominal core if nothing says otherwise, MIPS.
pub(crate) const MIPS_PER_CORE: f64 = 7450.0;
/// Offered load if nothing says otherwise.
const LOAD: f64 = 0.7;
const REQUESTS: u64 = 1_000_000;
const POLL_S: f64 = 0.1;
/// Docker's engine has a new figure of a container each second, however often it is asked.
const USAGE_S: f64 = 1.0;

/// A scenario worked out.
#[derive(Debug, Clone)]
pub struct Plan {
    /// What the engine simulates.
    pub setup: Setup,
    /// Offered work over capacity; none in a closed loop, where answers set the pace.
    pub load: Option<f64>,
    /// Mean arrivals in a poll interval at all balancers together; none in a closed loop.
    pub arrivals_per_poll: Option<f64>,
    /// The strategy.
    pub spec: Spec,
}

impl Plan {
    /// Works a scenario out, with the workload and the models it names already read.
    ///
    /// # Errors
    /// The first thing that cannot be, with its bound.
    pub fn new(
        scenario: &Scenario,
        workload: Option<&Workload>,
        models: Models,
    ) -> Result<Self, Problems> {
        let spec = spec_of(scenario)?;
        let workers = pool::workers(scenario)?;
        check_pool(&spec, workers.len())?;
        let mips = scenario.mips_per_core.unwrap_or(MIPS_PER_CORE);
        let classes = Traffic::new(scenario, workload, mips)?;
        let mean = classes.mean_work;
        let seconds = |span: Span| span.seconds(mean);
        let capacity: f64 = workers.iter().map(|w| w.cores * w.speed).sum();
        let due = workload.map(|workload| Arc::from(schedule::expand(workload)));
        let of_file = workload.map(Workload::requests);
        let requests = scenario.requests.or(of_file).unwrap_or(REQUESTS);
        let (source, load) = source(scenario, due.as_ref(), &classes, capacity, requests)?;
        let listed = due.filter(|_| follows_list(&source, workload));
        let rate_rps = load.map(|load| load * capacity / mean);
        let warmup = scenario.warmup.unwrap_or(requests / 10);
        if warmup >= requests {
            return refuse(
                Problem::new("warmup", warmup.to_string(), "nothing is left to measure")
                    .allowed(format!("0 to {}", requests - 1)),
            );
        }
        if let Some(timeline) = &scenario.faults {
            faults::check_targets(timeline, &workers)?;
            faults::check_times(timeline, &source, requests, rate_rps)?;
        }
        let model = model(scenario, &classes, &workers, mean)?;
        let interval = poll_interval(scenario, rate_rps, mean)?;
        let pace = Pace {
            // Requests of a closed loop come no faster than they can be served, in the long run.
            gap: rate_rps.map_or(mean / capacity, f64::recip),
            workers: workers.len(),
        };
        let usage = scenario.usage.map_or(USAGE_S, |span| span.seconds(mean));
        check_paces(scenario, &model, pace, interval, usage, mean)?;
        // What was given is told as it was given, not as it comes back from the rate.
        let per_interval = rate_rps.map(|rate_rps| rate_rps * interval);
        let arrivals_per_poll = scenario.poll_arrivals.or(per_interval);
        let setup = Setup {
            model,
            mean_work: mean,
            mips_per_core: mips,
            classes: classes.classes,
            sizes: classes.sizes,
            listed: listed.map(|items| Listed {
                items,
                sizes: classes.own_sizes,
            }),
            own_targets: workload.is_some(),
            source,
            requests,
            polls: Polls {
                interval,
                phase: match scenario.poll_phase {
                    Some(PollPhase::Spread) => Phase::Spread,
                    Some(PollPhase::Together) | None => Phase::Together,
                },
                fetch: scenario.fetch_delay.map_or(0.0, seconds),
                usage,
            },
            network: match scenario.network_delay {
                None => Delay::Constant(0.0),
                Some(Network::Constant(span)) => Delay::Constant(seconds(span)),
                Some(Network::Exp(span)) => Delay::Exponential(seconds(span)),
            },
            balancers: scenario.balancers.unwrap_or(1),
            ask_first: scenario.ask_first.map(seconds),
            timeout: scenario.timeout.map(seconds),
            protection: scenario.protection,
            faults: scenario.faults.clone(),
            speed_drift: scenario.speed_drift.map(|d| (seconds(d.mean), d.factor)),
            size_drift: scenario
                .size_drift
                .map(|d| ((d.at * requests as f64) as u64, d.factor)),
            warmup,
            work_left: work_left(&spec),
            models,
            seed: scenario.seed.unwrap_or(1),
            workers,
        };
        Ok(Self {
            setup,
            load,
            arrivals_per_poll,
            spec,
        })
    }
}

/// Given as a time, or by the arrivals in it; s.
fn poll_interval(scenario: &Scenario, rate_rps: Option<f64>, mean: f64) -> Result<f64, Problems> {
    let bad = |what: &str, next: &str| refuse(Problem::new("poll_arrivals", "", what).next(next));
    match (scenario.poll, scenario.poll_arrivals, rate_rps) {
        (Some(_), Some(_), _) => bad(
            "both an interval and its arrivals are given",
            "leave one out",
        ),
        (None, Some(_), None) => bad(
            "a closed loop has no rate of its own",
            "give \"poll\", a time",
        ),
        (None, Some(arrivals), Some(rate_rps)) => Ok(arrivals / rate_rps),
        (Some(span), None, _) => Ok(span.seconds(mean)),
        (None, None, _) => Ok(POLL_S),
    }
}

/// What is asked for may not come too often.
fn check_paces(
    scenario: &Scenario,
    model: &Model,
    pace: Pace,
    interval: f64,
    usage: f64,
    mean: f64,
) -> Result<(), Problems> {
    let balancers = scenario.balancers.unwrap_or(1);
    if scenario.poll.is_some() {
        pace.check("poll", interval, balancers)?;
    }
    if scenario.poll_arrivals.is_some() {
        pace.check("poll_arrivals", interval, balancers)?;
    }
    if scenario.usage.is_some() {
        pace.check("usage", usage, balancers)?;
    }
    if let Some(drift) = scenario.speed_drift {
        pace.check("speed_drift", drift.mean.seconds(mean), 1)?;
    }
    match model {
        Model::Quota { period, .. } => pace.check("discipline", *period, 1),
        Model::Grid { step } => pace.check("discipline", *step, 1),
        Model::Ps | Model::Fcfs | Model::Weighted { .. } => Ok(()),
    }
}

/// The error of one finding.
pub(crate) fn refuse<T>(problem: Problem) -> Result<T, Problems> {
    Err(problem.into())
}

fn spec_of(scenario: &Scenario) -> Result<Spec, Problems> {
    let Some(text) = &scenario.strategy else {
        return refuse(
            Problem::new("strategy", "", "missing").next("name one, such as round-robin"),
        );
    };
    let spec: Spec = text
        .parse()
        .map_err(|e| Problems::from(Problem::new("strategy", "", format!("{e}"))))?;
    Ok(spec)
}

/// What the strategy asks for must be there.
fn check_pool(spec: &Spec, workers: usize) -> Result<(), Problems> {
    let has_d = spec.entry().parameters.iter().any(|p| p.name == "d");
    let d = if has_d { spec.integer("d") } else { None };
    match d {
        Some(d) if d > workers as u64 => refuse(
            Problem::new(
                "strategy",
                spec.to_string(),
                "d is above the number of workers",
            )
            .allowed(format!("1 to {workers}")),
        ),
        _ => Ok(()),
    }
}

/// What the strategy's parameters ask workers to tell of the work left of what they hold.
fn work_left(spec: &Spec) -> WorkLeft {
    let says = |name: &str, word: &str| {
        spec.entry().parameters.iter().any(|p| p.name == name) && spec.is(name, word)
    };
    if spec.needs_world() {
        WorkLeft::World
    } else if says("reports", "work") {
        WorkLeft::Told
    } else {
        WorkLeft::Untold
    }
}

/// The classes of requests, their sizes and the mean.
struct Traffic {
    classes: Vec<Class>,
    sizes: SizeLaw,
    mean_work: f64,
    own_sizes: ListedSizes,
    weights: Vec<f64>,
}

impl Traffic {
    fn new(scenario: &Scenario, workload: Option<&Workload>, mips: f64) -> Result<Self, Problems> {
        let mut numbers = Classes::default();
        let mut weights: Vec<f64> = Vec::new();
        let mut class = |id: &str, method: &str, url: &str, mean_work, share, weight: f64| {
            let known = weights.iter().position(|w| *w == weight);
            let weight_class = known.unwrap_or_else(|| {
                weights.push(weight);
                weights.len() - 1
            });
            Class {
                id: id.into(),
                method: method.into(),
                url: url.into(),
                number: numbers.class_of(method, url),
                mean_work,
                share,
                weight_class: weight_class as u32,
            }
        };
        let mut classes: Vec<Class> = match (workload, &scenario.apis[..]) {
            (Some(_), [_, ..]) => {
                return refuse(
                    Problem::new("apis", "", "both a workload and APIs are given")
                        .next("leave one out"),
                );
            }
            (Some(workload), []) => {
                let apis = workload.apis.iter();
                apis.map(|a| {
                    class(
                        &a.id,
                        a.method.as_str(),
                        &a.url,
                        a.task_size_mi / mips,
                        1.0,
                        1.0,
                    )
                })
                .collect()
            }
            (None, []) => vec![class("api-001", "GET", "/", MEAN_SERVICE_S, 1.0, 1.0)],
            (None, apis) => apis
                .iter()
                .map(|a| {
                    class(
                        &a.id,
                        &a.method,
                        &a.url,
                        a.mean_mi / mips,
                        a.share,
                        a.cpu_weight,
                    )
                })
                .collect(),
        };
        let shares: f64 = classes.iter().map(|c| c.share).sum();
        let mut mean: f64 = classes.iter().map(|c| c.share * c.mean_work).sum::<f64>() / shares;
        if let Some(workload) = workload {
            mean = workload.mean_task_size_mi() / mips;
        }
        match scenario.mean_service {
            Some(Span::Means(_)) => {
                return refuse(
                    Problem::new("mean_service", "", "cannot be given in itself")
                        .allowed("a time such as 100ms"),
                );
            }
            Some(Span::Seconds(s)) if scenario.apis.is_empty() && workload.is_none() => mean = s,
            Some(Span::Seconds(_)) => {
                let what = "the workload or the APIs say it already";
                return refuse(Problem::new("mean_service", "", what).next("leave it out"));
            }
            None => {}
        }
        let listed = workload.is_some() || !scenario.apis.is_empty();
        let (sizes, own_sizes) = match scenario.sizes {
            Some(Sizes::Workload) if !listed => {
                return refuse(
                    Problem::new("sizes", "workload", "no workload is given")
                        .next("name one, or choose exp, det, lognormal, h2 or pareto"),
                );
            }
            Some(Sizes::Workload) => (noise(workload), ListedSizes::Own),
            None if workload.is_some() => (noise(workload), ListedSizes::Own),
            None => (SizeLaw::Exponential, ListedSizes::Law),
            Some(Sizes::Law(law)) => (law, ListedSizes::Law),
        };
        // Under a law of its own every request of a workload has the mean size.
        let same = workload.is_some() && own_sizes == ListedSizes::Law;
        if same || !listed {
            classes.iter_mut().for_each(|c| c.mean_work = mean);
        }
        Ok(Self {
            classes,
            sizes,
            mean_work: mean,
            own_sizes,
            weights,
        })
    }
}

/// How a workload's sizes lie around those of its APIs, where its own schedule is not followed.
fn noise(workload: Option<&Workload>) -> SizeLaw {
    match workload.map(|workload| &workload.traffic) {
        Some(schema::workload::Traffic::Drawn(drawn)) if drawn.size_cv > 0.0 => {
            SizeLaw::log_normal(drawn.size_cv)
        }
        _ => SizeLaw::Constant,
    }
}

impl Plan {
    /// Works replication `r` of a scenario out: a workload that keeps its own times has another schedule in
    /// each but the first; listed requests are the same in all.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub(crate) fn replica(
        scenario: &Scenario,
        workload: Option<&Workload>,
        models: Models,
        r: u32,
    ) -> Result<Self, Problems> {
        let plan = Self::new(scenario, workload, models.clone())?;
        match workload {
            Some(workload) if r > 0 && plan.replays_draws(workload) => {
                Self::new(scenario, Some(&workload.clone().replica(r)), models)
            }
            _ => Ok(plan),
        }
    }

    /// Whether requests keep the times and the order that this workload draws.
    pub(crate) fn replays_draws(&self, workload: &Workload) -> bool {
        let is_drawn = matches!(workload.traffic, schema::workload::Traffic::Drawn(_));
        is_drawn && matches!(self.setup.source, Source::Trace { .. })
    }

    /// Whether every run has the same requests at the same times, whatever its seed.
    pub(crate) fn replays_list(&self, workload: Option<&Workload>) -> bool {
        matches!(self.setup.source, Source::Trace { .. })
            && workload.is_some_and(|workload| !self.replays_draws(workload))
    }
}

/// Whether requests are those of the workload one by one: at its own times always, under other arrivals
/// where it lists them. Drawn calls are drawn anew there.
fn follows_list(source: &Source, workload: Option<&Workload>) -> bool {
    use schema::workload::Traffic;
    let is_list = |w: &Workload| matches!(w.traffic, Traffic::Listed(_));
    matches!(source, Source::Trace { .. }) || workload.is_some_and(is_list)
}

fn source(
    scenario: &Scenario,
    due: Option<&Arc<[Due]>>,
    traffic: &Traffic,
    capacity: f64,
    requests: u64,
) -> Result<(Source, Option<f64>), Problems> {
    let mean = traffic.mean_work;
    let open =
        scenario.load.is_some() || scenario.rate_rps.is_some() || scenario.arrivals.is_some();
    if scenario.load.is_some() && scenario.rate_rps.is_some() {
        return refuse(
            Problem::new("rate_rps", "", "both a load and a rate are given").next("leave one out"),
        );
    }
    let closed = match (scenario.slots, scenario.users) {
        (Some(_), Some(_)) => {
            return refuse(
                Problem::new("users", "", "both slots and users are given").next("leave one out"),
            );
        }
        (Some(slots), None) => Some(Source::Slots {
            slots,
            calls: scenario.calls.unwrap_or(1),
        }),
        (None, Some(users)) => Some(Source::Users {
            users,
            think: scenario.think.map_or(0.0, |t| t.seconds(mean)),
        }),
        (None, None) => None,
    };
    let stray = [
        (
            scenario.calls.is_some() && scenario.slots.is_none(),
            "calls",
            "slots",
        ),
        (
            scenario.think.is_some() && scenario.users.is_none(),
            "think",
            "users",
        ),
    ];
    if let Some((_, field, needs)) = stray.into_iter().find(|(stray, ..)| *stray) {
        return refuse(Problem::new(
            field,
            "",
            format!("means nothing without {needs}"),
        ));
    }
    if let Some(source) = closed {
        if open {
            let what = "a closed loop sets its own pace: load, rate and arrivals mean nothing";
            return refuse(Problem::new("load", "", what).next("leave it out"));
        }
        return Ok((source, None));
    }
    // A load that was given is told as it was given, not as it comes back from the rate.
    let of_rate = |rate_rps: f64| scenario.load.unwrap_or(rate_rps * mean / capacity);
    let natural = due.map(|due| natural_rate(due));
    let rate_rps = match (scenario.load, scenario.rate_rps) {
        (Some(load), _) => load * capacity / mean,
        (None, Some(rate)) => rate,
        (None, None) => natural.unwrap_or(LOAD * capacity / mean),
    };
    let gaps = match (&scenario.arrivals, due) {
        (None | Some(Arrivals::Workload), Some(due)) => {
            let stretch = natural.unwrap_or(rate_rps) / rate_rps;
            let source = Source::Trace {
                due: Arc::clone(due),
                stretch,
            };
            return Ok((source, Some(of_rate(rate_rps))));
        }
        (Some(Arrivals::Workload), None) => {
            return refuse(
                Problem::new("arrivals", "workload", "no workload is given")
                    .next("name one, or choose poisson or constant"),
            );
        }
        (None | Some(Arrivals::Poisson), _) => SizeLaw::Exponential,
        (Some(Arrivals::Constant), _) => SizeLaw::Constant,
        (Some(Arrivals::Renewal(law)), _) => *law,
        (Some(Arrivals::Process(text)), _) => {
            let process = process(scenario, text, capacity / mean, rate_rps)?;
            let rate_rps = 1e3 * requests as f64 / process.span_ms(requests);
            return Ok((Source::Process(process), Some(of_rate(rate_rps))));
        }
    };
    Ok((Source::Open { gaps, rate_rps }, Some(of_rate(rate_rps))))
}

/// A process spelled with its rate, or with that of the load.
fn process(
    scenario: &Scenario,
    text: &str,
    full_rps: f64,
    rate_rps: f64,
) -> Result<arrivals::Arrivals, Problems> {
    let parse = |default_rps| {
        let rates = Rates {
            full_rps: Some(full_rps),
            default_rps,
        };
        arrivals::Arrivals::parse(text, rates)
    };
    let stated = scenario.load.is_some() || scenario.rate_rps.is_some();
    match parse(None) {
        Ok(_) if stated => {
            let what = "the arrivals say their rate themselves";
            refuse(Problem::new("load", "", what).next("leave out one of the two"))
        }
        Ok(process) => Ok(process),
        Err(_) => parse(Some(rate_rps)).map_err(|what| Problem::new("arrivals", text, what).into()),
    }
}

/// The rate at which a workload's own schedule comes, requests per second.
fn natural_rate(due: &[Due]) -> f64 {
    match schedule::mean_gap_ns(due) {
        Some(gap_ns) if gap_ns > 0.0 => 1e9 / gap_ns,
        _ => 1.0,
    }
}

fn model(
    scenario: &Scenario,
    traffic: &Traffic,
    workers: &[crate::engine::WorkerSetup],
    mean: f64,
) -> Result<Model, Problems> {
    let most = workers.iter().map(|w| w.cores).fold(0.0, f64::max);
    Ok(match scenario.discipline.unwrap_or(Discipline::Ps) {
        Discipline::Ps => Model::Ps,
        Discipline::Fcfs => Model::Fcfs,
        Discipline::Quantum { step } => Model::Grid {
            step: step.seconds(mean),
        },
        Discipline::Quota { period, host_cores } => {
            let host_cores = host_cores.unwrap_or(most.ceil() + 1.0);
            if host_cores < most {
                let what = "a host has at least the cores of its largest worker";
                return refuse(
                    Problem::new("discipline", host_cores.to_string(), what)
                        .allowed(format!("{most} or more")),
                );
            }
            Model::Quota {
                period: period.seconds(mean),
                host_cores,
                phase: 0.0,
            }
        }
        Discipline::Weighted { one_core } => Model::Weighted {
            weights: traffic.weights.clone(),
            cap: if one_core { Cap::OneCore } else { Cap::None },
        },
    })
}
