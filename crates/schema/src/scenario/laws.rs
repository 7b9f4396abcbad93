//! The words of a scenario that carry numbers: `h2:10`, `quota:100ms:8`, `2S`.

use crate::duration;
use crate::laws::arrivals::{self, Rates};
use crate::laws::sizes::{self, SizeLaw};
use crate::problem::nearest;
use std::fmt;
use std::str::FromStr;

/// A length of time: absolute, or in mean service times (`2S`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Span {
    /// Seconds.
    Seconds(f64),
    /// Mean service times.
    Means(f64),
}

impl Span {
    /// In seconds, given the mean service time in seconds.
    pub fn seconds(self, mean_service_s: f64) -> f64 {
        match self {
            Self::Seconds(s) => s,
            Self::Means(m) => m * mean_service_s,
        }
    }
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(number) = text.strip_suffix('S') {
            let means = number
                .parse()
                .ok()
                .filter(|m: &f64| (0.0..=1e9).contains(m));
            return means.map(Self::Means).ok_or_else(|| {
                format!("\"{text}\" is no number of mean service times such as 2S")
            });
        }
        let long = duration::parse(text)
            .map_err(|why| format!("{why}, or one of mean sizes such as 2S"))?;
        Ok(Self::Seconds(long.as_secs_f64()))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Seconds(s) => {
                f.write_str(&duration::format(std::time::Duration::from_secs_f64(*s)))
            }
            Self::Means(m) => write!(f, "{m}S"),
        }
    }
}

/// Law of the sizes; every law has the scenario's mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Sizes {
    /// This one.
    Law(SizeLaw),
    /// Those of the workload, or of each class.
    Workload,
}

impl FromStr for Sizes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == WORKLOAD {
            return Ok(Self::Workload);
        }
        match SizeLaw::parse(text) {
            Ok(law) => Ok(Self::Law(law)),
            Err(why) if SizeLaw::is_named(text) => Err(why),
            Err(_) => Err(unknown(text, sizes::forms().into_iter().chain([WORKLOAD]))),
        }
    }
}

/// Word for what the workload says itself, of sizes and of arrivals.
const WORKLOAD: &str = "workload";

/// When requests come.
#[derive(Debug, Clone, PartialEq)]
pub enum Arrivals {
    /// Exponential gaps.
    Poisson,
    /// Equal gaps.
    Constant,
    /// Independent gaps of this law.
    Renewal(SizeLaw),
    /// A process as the request generator spells it.
    Process(String),
    /// Those of the workload.
    Workload,
}

impl Arrivals {
    /// Those that are one word.
    const WORDS: [(&str, Self); 3] = [
        ("poisson", Self::Poisson),
        ("constant", Self::Constant),
        (WORKLOAD, Self::Workload),
    ];

    /// Every spelling, for messages: the words, the laws of gaps, the processes with and without a rate.
    fn forms() -> impl Iterator<Item = &'static str> {
        let words = Self::WORDS.into_iter().map(|(word, _)| word);
        let gaps = sizes::forms()
            .into_iter()
            .filter(|form| *form != "constant");
        let processes = arrivals::SPELLINGS.into_iter().map(|(form, _)| form);
        words.chain(gaps).chain(processes)
    }
}

impl FromStr for Arrivals {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some((_, word)) = Self::WORDS.into_iter().find(|(word, _)| *word == text) {
            return Ok(word);
        }
        match SizeLaw::parse(text) {
            Ok(law) => return Ok(Self::Renewal(law)),
            // A law with a value that is wrong is no unknown process; `constant:GAP` is one of those.
            Err(why) if SizeLaw::is_named(text) && !text.starts_with("constant") => {
                return Err(why);
            }
            Err(_) => {}
        }
        // Rates in percent and rates left out are known only when the workers are.
        let some = Rates {
            full_rps: Some(100.0),
            default_rps: Some(100.0),
        };
        let is_named = Self::forms().any(|form| sizes::name_of(form) == sizes::name_of(text));
        match arrivals::Arrivals::parse(text, some) {
            Ok(_) => Ok(Self::Process(text.into())),
            Err(why) if is_named => Err(why),
            Err(_) => {
                let what = unknown(text, Self::forms());
                Err(format!(
                    "{what}; a RATE may be left out where a load or a rate is given"
                ))
            }
        }
    }
}

/// How workers share their cores.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Discipline {
    /// Processor sharing.
    Ps,
    /// First come, first served.
    Fcfs,
    /// A kernel quota.
    Quota {
        /// Its period.
        period: Span,
        /// Cores of the host; `None` = the worker's, rounded up, and one more.
        host_cores: Option<f64>,
    },
    /// Processor sharing on a grid of times.
    Quantum {
        /// Width of the grid.
        step: Span,
    },
    /// Processor sharing by the classes' CPU weights.
    Weighted {
        /// Whether one request can use at most one core.
        one_core: bool,
    },
}

impl Discipline {
    /// Every spelling.
    const FORMS: [&str; 5] = [
        "ps",
        "fcfs",
        "quota[:PERIOD[:HOST_CORES]]",
        "quantum:STEP",
        "weighted[:uncapped]",
    ];
}

impl FromStr for Discipline {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (word, rest) = split(text);
        Ok(match word {
            "ps" => bare(rest, Self::Ps)?,
            "fcfs" => bare(rest, Self::Fcfs)?,
            "weighted" => match rest {
                None => Self::Weighted { one_core: true },
                Some("uncapped") => Self::Weighted { one_core: false },
                Some(_) => return Err("after weighted only :uncapped may follow".into()),
            },
            "quota" => {
                let (period, host) = split(rest.unwrap_or("100ms"));
                let host_cores = match host {
                    None => None,
                    Some(_) => Some(value(host, None, "number of host cores", 0.01, 1e5)?),
                };
                Self::Quota {
                    period: positive(period)?,
                    host_cores,
                }
            }
            "quantum" => Self::Quantum {
                step: positive(rest.unwrap_or(""))?,
            },
            _ => return Err(unknown(text, Self::FORMS)),
        })
    }
}

/// One way between balancer and worker.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Network {
    /// Always this long.
    Constant(Span),
    /// Exponential with this mean.
    Exp(Span),
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix("exp:") {
            Some(mean) => mean.parse().map(Self::Exp),
            None => {
                let span: Result<Span, String> = text.parse();
                span.map(Self::Constant)
                    .map_err(|why| format!("{why}, or exp: and their mean"))
            }
        }
    }
}

/// When the poll loops of one balancer run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PollPhase {
    /// All workers at one instant.
    Together,
    /// Worker i of n is i/n of an interval later.
    Spread,
}

impl PollPhase {
    const WORDS: [(&str, Self); 2] = [("together", Self::Together), ("spread", Self::Spread)];
}

impl FromStr for PollPhase {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = Self::WORDS.into_iter().find(|(word, _)| *word == text);
        named
            .map(|(_, phase)| phase)
            .ok_or_else(|| unknown(text, Self::WORDS.map(|(word, _)| word)))
    }
}

/// Each worker toggles between full and reduced speed after exponential times.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SpeedDrift {
    /// Mean time between two toggles.
    pub mean: Span,
    /// Reduced speed over full speed.
    pub factor: f64,
}

impl FromStr for SpeedDrift {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (mean, factor) = split(text);
        Ok(Self {
            mean: positive(mean)?,
            factor: value(factor, Some(0.5), "speed factor", 0.001, 1000.0)?,
        })
    }
}

/// From a point of the run on the sizes of every other class (from the first) are multiplied, those
/// of the rest divided.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SizeDrift {
    /// Share of the requests before the change, 0..1.
    pub at: f64,
    /// The factor.
    pub factor: f64,
}

impl FromStr for SizeDrift {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (at, factor) = split(text);
        Ok(Self {
            at: value(Some(at), None, "share of the run", 0.0, 1.0)?,
            factor: value(factor, Some(3.0), "size factor", 0.001, 1000.0)?,
        })
    }
}

fn split(text: &str) -> (&str, Option<&str>) {
    match text.split_once(':') {
        Some((word, rest)) => (word, Some(rest)),
        None => (text, None),
    }
}

/// Nobody knows the word that a text begins with; `forms` are all that are known.
fn unknown(text: &str, forms: impl IntoIterator<Item = &'static str>) -> String {
    let forms: Vec<&str> = forms.into_iter().collect();
    let near = match nearest(
        sizes::name_of(text),
        forms.iter().map(|form| sizes::name_of(form)),
    ) {
        Some(near) => format!("; did you mean \"{near}\"?"),
        None => String::new(),
    };
    format!("unknown word{near} (allowed: {})", forms.join(", "))
}

fn bare<T>(rest: Option<&str>, value: T) -> Result<T, String> {
    match rest {
        None => Ok(value),
        Some(_) => Err("takes no parameter".into()),
    }
}

fn value(
    text: Option<&str>,
    default: Option<f64>,
    what: &str,
    min: f64,
    max: f64,
) -> Result<f64, String> {
    let Some(text) = text else {
        return default.ok_or_else(|| format!("{what} is missing (allowed: {min} to {max})"));
    };
    let value = text.parse().ok().filter(|v: &f64| (min..=max).contains(v));
    value.ok_or_else(|| format!("{what} is out of range (allowed: {min} to {max})"))
}

/// A length of time above zero.
fn positive(text: &str) -> Result<Span, String> {
    let span: Span = text.parse()?;
    match span {
        Span::Seconds(s) | Span::Means(s) if s > 0.0 => Ok(span),
        _ => Err("must be above 0".into()),
    }
}
