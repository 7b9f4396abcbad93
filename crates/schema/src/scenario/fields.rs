//! The fields that are one text: their names, their bounds, how each is set.

use super::{MAX_REQUESTS, MAX_WORKERS, Scenario, Span};
use crate::problem::{Problem, Problems};
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Largest list element, repetition included.
const LIST: RangeInclusive<f64> = 1e-3..=1e6;
/// Weights of backends, whole numbers.
pub const WEIGHT: RangeInclusive<f64> = 1.0..=65_535.0;

impl Scenario {
    /// Names of the fields that [`Scenario::set`] knows, in the order of help texts.
    pub const FIELDS: [&str; 32] = [
        "name",
        "strategy",
        "workload",
        "model",
        "cores",
        "speeds",
        "weights",
        "memory_gb",
        "mips_per_core",
        "mean_service",
        "sizes",
        "arrivals",
        "load",
        "rate_rps",
        "discipline",
        "poll",
        "poll_arrivals",
        "poll_phase",
        "fetch_delay",
        "usage",
        "network_delay",
        "balancers",
        "ask_first",
        "timeout",
        "protection",
        "slots",
        "calls",
        "users",
        "think",
        "requests",
        "warmup",
        "seed",
    ];
    /// More of them: what changes during a run.
    pub const DRIFTS: [&str; 2] = ["speed_drift", "size_drift"];

    /// Sets the field `name` from its text form; `source` is how messages call it.
    ///
    /// # Errors
    /// The text is not of the field's form or out of its bounds.
    ///
    /// # Panics
    /// If there is no such field: a mistake of the caller.
    pub fn set(&mut self, name: &str, source: &str, text: &str) -> Result<(), Problems> {
        let problem = |what: String| Problems::from(Problem::new(source, text, what));
        let bad = |(what, allowed): (String, String)| {
            Problems::from(Problem::new(source, text, what).allowed(allowed))
        };
        let number = |min: f64, max: f64| number(text, min, max).map_err(bad);
        let whole = |min: u64, max: u64| whole(text, min, max).map_err(bad);
        let within = format!("{} to {}", LIST.start(), LIST.end());
        let list = || list(text, &LIST, &within).map_err(bad);
        match name {
            "name" => self.name = Some(text.into()),
            "strategy" => self.strategy = Some(text.into()),
            "workload" => self.workload = Some(text.into()),
            "model" => self.model.push(text.into()),
            "cores" => self.cores = Some(list()?),
            "speeds" => self.speeds = Some(list()?),
            "weights" => self.weights = Some(weights(text).map_err(bad)?),
            "memory_gb" => self.memory_gb = Some(list()?),
            "mips_per_core" => self.mips_per_core = Some(number(1.0, 1e6)?),
            "mean_service" => self.mean_service = Some(above_zero(text).map_err(problem)?),
            "sizes" => self.sizes = Some(word(text).map_err(problem)?),
            "arrivals" => self.arrivals = Some(word(text).map_err(problem)?),
            "load" => self.load = Some(number(1e-4, 100.0)?),
            "rate_rps" => self.rate_rps = Some(number(1e-6, 1e9)?),
            "discipline" => self.discipline = Some(word(text).map_err(problem)?),
            "poll" => self.poll = Some(above_zero(text).map_err(problem)?),
            "poll_arrivals" => self.poll_arrivals = Some(number(1e-3, 1e9)?),
            "poll_phase" => self.poll_phase = Some(word(text).map_err(problem)?),
            "fetch_delay" => self.fetch_delay = Some(word(text).map_err(problem)?),
            "usage" => self.usage = Some(above_zero(text).map_err(problem)?),
            "network_delay" => self.network_delay = Some(word(text).map_err(problem)?),
            "balancers" => self.balancers = Some(whole(1, 1000)? as u32),
            "ask_first" => self.ask_first = Some(above_zero(text).map_err(problem)?),
            "timeout" => self.timeout = Some(above_zero(text).map_err(problem)?),
            "protection" => self.protection = Some(word(text).map_err(problem)?),
            "slots" => self.slots = Some(whole(1, 1_000_000)? as u32),
            "calls" => self.calls = Some(whole(1, 1000)? as u32),
            "users" => self.users = Some(whole(1, 10_000_000)? as u32),
            "think" => self.think = Some(word(text).map_err(problem)?),
            "requests" => self.requests = Some(whole(1, MAX_REQUESTS)?),
            "warmup" => self.warmup = Some(whole(0, MAX_REQUESTS)?),
            "seed" => self.seed = Some(whole(0, u64::MAX)?),
            "speed_drift" => self.speed_drift = Some(word(text).map_err(problem)?),
            "size_drift" => self.size_drift = Some(word(text).map_err(problem)?),
            _ => unreachable!("no scenario field {name}"),
        }
        Ok(())
    }
}

fn word<T: FromStr<Err = String>>(text: &str) -> Result<T, String> {
    text.parse()
}

fn above_zero(text: &str) -> Result<Span, String> {
    match text.parse()? {
        Span::Seconds(s) | Span::Means(s) if s <= 0.0 => {
            Err("must be above 0 (allowed: a time such as 100ms, or 2S)".into())
        }
        span => Ok(span),
    }
}

fn number(text: &str, min: f64, max: f64) -> Result<f64, (String, String)> {
    let allowed = || format!("{min} to {max}");
    let value: f64 = text
        .parse()
        .map_err(|_| ("not a number".to_string(), allowed()))?;
    if (min..=max).contains(&value) {
        Ok(value)
    } else {
        Err(("out of range".into(), allowed()))
    }
}

fn whole(text: &str, min: u64, max: u64) -> Result<u64, (String, String)> {
    let allowed = || format!("{min} to {max}");
    let value: u64 = text
        .parse()
        .map_err(|_| ("not a whole number in range".to_string(), allowed()))?;
    if (min..=max).contains(&value) {
        Ok(value)
    } else {
        Err(("out of range".into(), allowed()))
    }
}

fn weights(text: &str) -> Result<Vec<f64>, (String, String)> {
    let allowed = format!("whole numbers from {} to {}", WEIGHT.start(), WEIGHT.end());
    let weights = list(text, &WEIGHT, &allowed)?;
    match weights.iter().find(|w| w.fract() != 0.0) {
        Some(bad) => Err((format!("{bad} is no weight"), allowed)),
        None => Ok(weights),
    }
}

/// Reads `4,3,2` or `1*1000` or a mixture, each value within `bounds`, which are `allowed` in words.
fn list(
    text: &str,
    bounds: &RangeInclusive<f64>,
    allowed: &str,
) -> Result<Vec<f64>, (String, String)> {
    let mut values = Vec::new();
    for piece in text.split(',') {
        let (value, times) = match piece.split_once('*') {
            Some((value, times)) => (value, times),
            None => (piece, "1"),
        };
        let value: f64 = value.trim().parse().map_err(|_| {
            (
                format!("\"{piece}\" is not a number"),
                "such as 4,3,2 or 1*1000".into(),
            )
        })?;
        if !bounds.contains(&value) {
            return Err((format!("{value} is out of range"), allowed.to_string()));
        }
        let times: usize = times.trim().parse().unwrap_or(0);
        if times == 0 || values.len() + times > MAX_WORKERS {
            let what = format!("\"{piece}\" gives too few or too many workers");
            return Err((what, format!("1 to {MAX_WORKERS}")));
        }
        values.extend(std::iter::repeat_n(value, times));
    }
    Ok(values)
}
