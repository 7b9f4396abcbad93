//! Flags of ejection, fail-open, the hold of fast failures and slow start.

use super::within;
use clap::Args;
use schema::problem::Problem;
use schema::protection::{Ejection, Mode, Preset, Rules};
use std::time::Duration;

/// On or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Switch {
    On,
    Off,
}

impl Switch {
    fn is_on(self) -> bool {
        self == Self::On
    }
}

/// What becomes of backends at a limit of failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum EjectMode {
    On,
    /// Count and reset, bar nobody.
    Observe,
    Off,
}

/// Single rules in place of the preset's.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Ejection")]
pub(crate) struct RuleFlags {
    /// Failures in a row that eject a backend, 0 = never for that reason; naming it turns ejection on
    /// [default: 5].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=100))]
    pub(crate) eject_after: Option<u32>,
    /// Whether failures eject [default: on guarded, off plain].
    #[arg(long, value_enum, value_name = "MODE")]
    pub(crate) eject_mode: Option<EjectMode>,
    /// Whether a backend much worse than the others is ejected too [default: on].
    #[arg(long, value_enum, value_name = "ON|OFF")]
    pub(crate) eject_compare: Option<Switch>,
    /// Length of a backend's first ejection; each later one is twice as long [default: 5s].
    #[arg(long, value_name = "D", value_parser = |t: &str| within(t, 100, 3_600_000))]
    pub(crate) eject_base: Option<Duration>,
    /// Longest ejection [default: 30s].
    #[arg(long, value_name = "D", value_parser = |t: &str| within(t, 100, 3_600_000))]
    pub(crate) eject_cap: Option<Duration>,
    /// A length is drawn this far around its value, percent [default: 10].
    #[arg(long, value_name = "P", value_parser = clap::value_parser!(u32).range(0..=50))]
    pub(crate) eject_jitter: Option<u32>,
    /// Good trials in a row that end an ejection [default: 1].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10))]
    pub(crate) eject_trial: Option<u32>,
    /// Share of the backends that may be ejected at once, percent [default: 67].
    #[arg(long, value_name = "P", value_parser = clap::value_parser!(u32).range(0..=100))]
    pub(crate) eject_max_percent: Option<u32>,
    /// Whether one may be ejected however small that share is [default: on].
    #[arg(long, value_enum, value_name = "ON|OFF")]
    pub(crate) eject_at_least_one: Option<Switch>,
    /// Ejections are ignored while a smaller share of the backends is up, percent, or off
    /// [default: 20 guarded, off plain].
    #[arg(long, value_name = "P|off", value_parser = panic_percent)]
    pub(crate) panic_percent: Option<PanicPercent>,
    /// Whether fast failures count as in flight as long as a good answer takes
    /// [default: on guarded, off plain].
    #[arg(long, value_enum, value_name = "ON|OFF")]
    pub(crate) fail_hold: Option<Switch>,
    /// A failure's latency counts as this many times a good one's [default: 5].
    #[arg(long, value_name = "F", value_parser = factor)]
    pub(crate) fail_hold_factor: Option<f64>,
    /// A backend that joins or comes back gets its full share after this time, 0s = at once
    /// [default: 0s].
    #[arg(long, value_name = "D", value_parser = |t: &str| within(t, 0, 600_000))]
    pub(crate) slow_start: Option<Duration>,
}

/// A share, or never.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PanicPercent(Option<u32>);

fn panic_percent(text: &str) -> Result<PanicPercent, String> {
    if text == "off" {
        return Ok(PanicPercent(None));
    }
    let percent = text.parse().ok().filter(|p| *p <= 100);
    percent
        .map(|p| PanicPercent(Some(p)))
        .ok_or_else(|| "must be between 0 and 100, or off".to_string())
}

fn factor(text: &str) -> Result<f64, String> {
    let factor = text.parse().ok().filter(|f| (1.0..=50.0).contains(f));
    factor.ok_or_else(|| "must be between 1 and 50".to_string())
}

impl RuleFlags {
    /// The preset's rules with the single ones in their place.
    pub(crate) fn rules(&self, preset: Preset) -> Result<Rules, String> {
        let rules = preset.rules();
        let fail_hold = match self.fail_hold {
            Some(Switch::On) => rules.fail_hold.or(Rules::guarded().fail_hold),
            Some(Switch::Off) => None,
            None => rules.fail_hold,
        };
        Ok(Rules {
            ejection: self.ejection(rules.ejection)?,
            panic_percent: self.panic_percent.map_or(rules.panic_percent, |p| p.0),
            fail_hold: fail_hold.map(|f| self.fail_hold_factor.unwrap_or(f)),
        })
    }

    fn ejection(&self, preset: Ejection) -> Result<Ejection, String> {
        let mode = match (self.eject_mode, self.eject_after) {
            (Some(EjectMode::On), _) | (None, Some(_)) => Mode::On,
            (Some(EjectMode::Observe), _) => Mode::Observe,
            (Some(EjectMode::Off), _) => Mode::Off,
            (None, None) => preset.mode,
        };
        let ns = |given: Option<Duration>, preset| given.map_or(preset, |d| d.as_nanos() as u64);
        let on = |given: Option<Switch>, preset| given.map_or(preset, Switch::is_on);
        let rules = Ejection {
            mode,
            after: self.eject_after.unwrap_or(preset.after),
            compare: on(self.eject_compare, preset.compare),
            base_ns: ns(self.eject_base, preset.base_ns),
            cap_ns: ns(self.eject_cap, preset.cap_ns),
            jitter_percent: self.eject_jitter.unwrap_or(preset.jitter_percent),
            trial: self.eject_trial.unwrap_or(preset.trial),
            max_percent: self.eject_max_percent.unwrap_or(preset.max_percent),
            at_least_one: on(self.eject_at_least_one, preset.at_least_one),
        };
        if rules.base_ns > rules.cap_ns {
            let text = |ns| schema::duration::format(Duration::from_nanos(ns));
            let problem = Problem::new(
                "--eject-base",
                text(rules.base_ns),
                "is longer than --eject-cap",
            );
            let allowed = format!("100ms to {}", text(rules.cap_ns));
            return Err(problem
                .allowed(allowed)
                .next("shorten it, or give a longer --eject-cap")
                .to_string());
        }
        Ok(rules)
    }
}

#[cfg(test)]
mod tests {
    use crate::cli::Cli;
    use schema::protection::{Mode, Rules};

    fn rules(flags: &[&str]) -> Result<Rules, String> {
        let cli = console::arguments_from::<Cli>([&["balancer"], flags].concat())
            .map_err(|e| e.to_string())?;
        cli.serve.rules.rules(cli.serve.protection)
    }

    #[test]
    fn presets_and_single_rules_combine() {
        assert_eq!(rules(&[]).unwrap(), Rules::guarded());
        let plain = ["--protection", "plain"];
        assert_eq!(rules(&plain).unwrap(), Rules::plain());
        let given = rules(
            &[
                &plain[..],
                &["--eject-after", "9", "--eject-compare", "off"],
            ]
            .concat(),
        );
        let given = given.unwrap();
        assert_eq!(given.ejection.mode, Mode::On);
        assert_eq!((given.ejection.after, given.ejection.compare), (9, false));
        assert_eq!((given.panic_percent, given.fail_hold), (None, None));
        let given = rules(&[&plain[..], &["--fail-hold", "on"]].concat()).unwrap();
        assert_eq!(given.fail_hold, Some(5.0));
        assert_eq!(given.ejection.mode, Mode::Off);
        let off = rules(&["--eject-mode", "off", "--panic-percent", "off"]).unwrap();
        assert_eq!((off.ejection.mode, off.panic_percent), (Mode::Off, None));
    }

    #[test]
    fn what_is_out_of_bounds_is_refused_with_the_bound() {
        for (flags, part) in [
            (["--eject-after", "101"], "0..=100"),
            (["--eject-after", "-1"], "0..=100"),
            (["--panic-percent", "-1"], "between 0 and 100, or off"),
            (["--eject-trial", "0"], "1..=10"),
            (["--eject-max-percent", "101"], "0..=100"),
            (["--eject-jitter", "51"], "0..=50"),
            (["--eject-base", "10"], "unit"),
            (["--eject-base", "50ms"], "100ms"),
            (["--eject-base", "31s"], "--eject-cap"),
            (["--panic-percent", "101"], "between 0 and 100, or off"),
            (["--fail-hold-factor", "NaN"], "between 1 and 50"),
            (["--eject-mode", "maybe"], "observe"),
            (["--slow-start", "11min"], "10min"),
        ] {
            let error = rules(&flags).unwrap_err();
            assert!(error.contains(part), "{flags:?}: {error}");
        }
    }
}
