//! How a command line spells an arrival process, such as `gamma:60%:3`.

use std::time::Duration;

use super::arrivals::{Arrivals, Leg, MAX_LEGS};
use super::sizes::name_of;
use crate::duration;
use crate::problem::nearest;

/// Every spelling with what it means; help texts are made from it.
///
/// RATE is a number of requests a second (`80` or `80rps`) or a share of a stated capacity (`60%`).
pub const SPELLINGS: [(&str, &str); 8] = [
    (
        "constant:GAP",
        "one request every GAP, such as constant:10ms",
    ),
    ("constant:RATE", "the same by its rate: constant:60%"),
    (
        "poisson:RATE",
        "independent exponential gaps: poisson:80, poisson:60%",
    ),
    (
        "gamma:RATE:CV",
        "gamma gaps, bursty for a CV above 1: gamma:80:3",
    ),
    ("bursty:RATE:CV", "the same"),
    (
        "sine:RATE:AMPLITUDE:PERIOD",
        "Poisson, the rate swings by AMPLITUDE (0 to 1) of its mean: sine:80:0.5:60s",
    ),
    (
        "ramp:FROM:TO:OVER",
        "Poisson, the rate goes from FROM to TO in OVER and stays: ramp:20:120:60s",
    ),
    (
        "ramp:FROM:TO:OVER:TO:OVER..",
        "more legs, 0s is a jump: ramp:20%:80%:30s:80%:60s:20%:0s",
    ),
];

/// What a caller knows about rates before it reads a spelling.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rates {
    /// Requests a second that use the stated capacity up: what `100%` means; `None` refuses `%`.
    pub full_rps: Option<f64>,
    /// Mean rate of a process spelled without one (`poisson`, `gamma:3`, `sine:0.5:60s`); `None`
    /// requires it.
    pub default_rps: Option<f64>,
}

impl Arrivals {
    /// Reads a spelling of [`SPELLINGS`].
    ///
    /// # Errors
    /// A lower-case reason with the bound: an unknown process, a piece too many or too few, a number
    /// without its unit, a value out of bounds, a percentage without a stated capacity.
    pub fn parse(text: &str, rates: Rates) -> Result<Self, String> {
        let (process, rest) = text.split_once(':').unwrap_or((text, ""));
        let mut pieces: Vec<&str> = rest.split(':').collect();
        if rest.is_empty() {
            pieces.clear();
        }
        let arrivals = match process {
            "constant" => constant(&pieces, rates)?,
            "poisson" => {
                let (rate_rps, []) = rate_and(&pieces, rates, "poisson:RATE")?;
                Self::Poisson { rate_rps }
            }
            "gamma" | "bursty" => {
                let (rate_rps, [cv]) = rate_and(&pieces, rates, "gamma:RATE:CV")?;
                let cv = number(cv, "coefficient of variation")?;
                Self::Gamma { rate_rps, cv }
            }
            "sine" => {
                let form = "sine:RATE:AMPLITUDE:PERIOD";
                let (rate_rps, [amplitude, period]) = rate_and(&pieces, rates, form)?;
                Self::Sine {
                    rate_rps,
                    amplitude: number(amplitude, "amplitude")?,
                    period_ms: milliseconds(period)?,
                }
            }
            "ramp" => ramp(&pieces, rates)?,
            unknown => return Err(unknown_process(unknown)),
        };
        in_bounds(arrivals)
    }
}

fn unknown_process(process: &str) -> String {
    let forms: Vec<&str> = SPELLINGS.iter().map(|(form, _)| *form).collect();
    let names = forms.iter().map(|form| name_of(form));
    let near = match nearest(process, names) {
        Some(near) => format!("; did you mean \"{near}\"?"),
        None => String::new(),
    };
    format!(
        "unknown arrival process \"{process}\"{near} (allowed: {})",
        forms.join(", ")
    )
}

fn in_bounds(arrivals: Arrivals) -> Result<Arrivals, String> {
    for (name, value, bounds) in arrivals.bounded() {
        if !bounds.contains(&value) {
            return Err(format!(
                "{name} {value} is out of range (allowed: {} to {})",
                bounds.start(),
                bounds.end()
            ));
        }
    }
    Ok(arrivals)
}

/// The rate, stated or the caller's, and the `N` pieces after it.
fn rate_and<'a, const N: usize>(
    pieces: &[&'a str],
    rates: Rates,
    form: &str,
) -> Result<(f64, [&'a str; N]), String> {
    let (rate_rps, rest) = match (pieces, rates.default_rps) {
        (rest, Some(rate_rps)) if rest.len() == N => (rate_rps, rest),
        ([first, rest @ ..], _) if rest.len() == N => (rate(first, rates)?, rest),
        _ => return Err(format!("{} (allowed: {form})", count(pieces.len(), N + 1))),
    };
    // The length was compared above.
    rest.try_into()
        .map(|rest| (rate_rps, rest))
        .map_err(|_| format!("expected {form}"))
}

fn count(found: usize, expected: usize) -> String {
    let values = if expected == 1 { "value" } else { "values" };
    format!("expected {expected} {values} after the process and found {found}")
}

fn constant(pieces: &[&str], rates: Rates) -> Result<Arrivals, String> {
    let form = "constant:GAP such as constant:10ms, or constant:RATE such as constant:60%";
    let interval_ms = match (pieces, rates.default_rps) {
        ([], Some(rate_rps)) => gap_ms(rate_rps),
        // A bare number could be meant as either, so it is neither.
        ([piece], _) if piece.ends_with('%') || piece.ends_with("rps") => {
            gap_ms(rate(piece, rates)?)
        }
        ([piece], _) => milliseconds(piece)?,
        _ => return Err(format!("{} (allowed: {form})", count(pieces.len(), 1))),
    };
    Ok(Arrivals::Constant { interval_ms })
}

/// The gap of a constant rate in whole microseconds, which read well and keep the rate within half a
/// microsecond a gap.
fn gap_ms(rate_rps: f64) -> f64 {
    (1e6 / rate_rps).round().max(1.0) / 1e3
}

fn ramp(pieces: &[&str], rates: Rates) -> Result<Arrivals, String> {
    let form = "ramp:FROM:TO:OVER, then more :TO:OVER";
    let [from, legs @ ..] = pieces else {
        return Err(format!("no rates (allowed: {form})"));
    };
    if legs.is_empty() || legs.len() % 2 != 0 {
        return Err(format!(
            "a leg needs a rate and a duration (allowed: {form})"
        ));
    }
    if legs.len() / 2 > MAX_LEGS {
        return Err(format!(
            "{} legs (allowed: up to {MAX_LEGS})",
            legs.len() / 2
        ));
    }
    let legs = legs.chunks_exact(2).map(|leg| {
        Ok::<_, String>(Leg {
            to_rps: rate(leg[0], rates)?,
            over_ms: milliseconds(leg[1])?,
        })
    });
    Ok(Arrivals::Ramp {
        from_rps: rate(from, rates)?,
        legs: legs.collect::<Result<_, _>>()?,
    })
}

/// Requests a second: `80`, `80rps` or, of the stated capacity, `60%`.
fn rate(text: &str, rates: Rates) -> Result<f64, String> {
    let Some(percent) = text.strip_suffix('%') else {
        let digits = text.strip_suffix("rps").unwrap_or(text);
        return match digits.parse() {
            Ok(rate_rps) => Ok(rate_rps),
            Err(_) => Err(format!(
                "rate \"{text}\" is not a number of requests a second or a percentage such as 60%"
            )),
        };
    };
    let percent = number(percent, "percentage")?;
    let full_rps = rates.full_rps.ok_or_else(|| {
        format!(
            "rate \"{text}\" is a share of a capacity that is not stated; give requests a second"
        )
    })?;
    Ok(percent / 100.0 * full_rps)
}

fn number(text: &str, what: &str) -> Result<f64, String> {
    text.parse()
        .map_err(|_| format!("{what} \"{text}\" is not a number"))
}

fn milliseconds(text: &str) -> Result<f64, String> {
    let span: Duration = duration::parse(text)?;
    Ok(span.as_nanos() as f64 / 1e6)
}
