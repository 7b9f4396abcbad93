//! The tables for people.

use std::fmt::{self, Write as _};

use super::{Agreement, OfArm, OfStrategy};
use crate::agreement::gates::{Line, Scope, Verdict};
use crate::agreement::residuals::Residuals;
use crate::agreement::speed::Calibration;

/// Calibration, one table per strategy, one line per arm, what was missed.
pub(super) fn table(agreement: &Agreement) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write(agreement, &mut out);
    out
}

fn write(agreement: &Agreement, out: &mut String) -> fmt::Result {
    writeln!(out, "{} against the twin", agreement.result)?;
    write_calibration(&agreement.calibration, out)?;
    for strategy in &agreement.strategies {
        write_strategy(strategy, out)?;
    }
    writeln!(
        out,
        "\n{:<8} {:<32} {:>7} {:>7} {:>7} {:>7} {:>6} {:>8} {:>6}  {:<13} marks of the real run",
        "arm",
        "strategy",
        "mean %",
        "p50 %",
        "p95 %",
        "p99 %",
        "share",
        "spearman",
        "ks",
        "picks equal"
    )?;
    agreement
        .arms
        .iter()
        .try_for_each(|arm| write_arm(arm, out))?;
    writeln!(out, "\nnot modelled:")?;
    for what in &agreement.not_modelled {
        writeln!(out, "  {what}")?;
    }
    if agreement.missed.is_empty() {
        return writeln!(out, "every gate that counts is met");
    }
    writeln!(out, "missed:")?;
    agreement
        .missed
        .iter()
        .try_for_each(|what| writeln!(out, "  {what}"))
}

fn write_calibration(calibration: &Calibration, out: &mut String) -> fmt::Result {
    let from = match calibration.from.as_str() {
        "rows" => "the recorded rows",
        _ => "a closed loop",
    };
    writeln!(
        out,
        "calibrated on {from}: a core alone {:.0} MIPS, overhead {:.3} ms ({} requests, {} back end, \
         burn fraction {})",
        calibration.lone_mips,
        calibration.overhead_ms,
        calibration.points,
        calibration.backend,
        calibration.burn_fraction
    )?;
    for worker in &calibration.workers {
        let off = 100.0 * (worker.busy_mips / calibration.lone_mips - 1.0);
        writeln!(
            out,
            "  {} busy: {:.0} MIPS a core, {off:+.1} %",
            worker.name, worker.busy_mips
        )?;
    }
    if calibration.workers.is_empty() {
        writeln!(
            out,
            "  no worker was busy enough to tell the speed of busy cores"
        )?;
    }
    for (name, off) in calibration.disagreeing() {
        let off = 100.0 * off;
        writeln!(
            out,
            "  the speeds of {name} disagree by {off:+.1} % (bound 5 %): the host cannot hold its pace \
             under load, or was disturbed"
        )?;
    }
    Ok(())
}

fn write_strategy(of: &OfStrategy, out: &mut String) -> fmt::Result {
    let scope = match of.scope {
        Scope::Requests => "",
        Scope::Distributions => "; distributions only, nothing here decides the exit code",
    };
    writeln!(
        out,
        "\n{}: {} runs, {} requests after the warm-up{scope}",
        of.strategy, of.runs, of.requests
    )?;
    writeln!(
        out,
        "  {:<14} {:>9} {:>9} {:>11} {:>10}  verdict",
        "quantity", "real", "twin", "difference", "gate"
    )?;
    for line in &of.lines {
        let side = |value: Option<f64>| value.map_or(String::new(), |v| format!("{v:.3}"));
        let (value, gate) = value_and_gate(line);
        writeln!(
            out,
            "  {:<14} {:>9} {:>9} {value:>11} {gate:>10}  {}",
            line.quantity,
            side(line.real),
            side(line.twin),
            line.verdict.word()
        )?;
    }
    of.residuals
        .iter()
        .try_for_each(|r| write_residuals(r, out))
}

fn write_residuals(r: &Residuals, out: &mut String) -> fmt::Result {
    write!(
        out,
        "  real - twin: mean {:.3} ms, p50 {:.3}, p99 {:.3}; same worker {:.2} %",
        r.mean_ms,
        r.p50_ms,
        r.p99_ms,
        100.0 * r.same_worker
    )?;
    if let (Some(worker), Some(way)) = (r.at_worker_mean_ms, r.on_the_way_mean_ms) {
        write!(
            out,
            "; of the mean {worker:.3} at the worker, {way:.3} on the way"
        )?;
    }
    writeln!(out)
}

fn write_arm(arm: &OfArm, out: &mut String) -> fmt::Result {
    let value = |quantity: &str| arm.lines.iter().find(|l| l.quantity == quantity);
    let mark = |l: &Line| {
        if l.verdict == Verdict::Missed {
            "!"
        } else {
            ""
        }
    };
    let percent = |quantity| {
        value(quantity).map_or("-".into(), |l| {
            format!("{:+.1}{}", 100.0 * l.value, mark(l))
        })
    };
    let plain =
        |quantity| value(quantity).map_or("-".into(), |l| format!("{:.3}{}", l.value, mark(l)));
    let shares = arm
        .lines
        .iter()
        .filter(|l| l.quantity.starts_with("share_"));
    let worst = shares.max_by(|a, b| a.value.abs().total_cmp(&b.value.abs()));
    let share = worst.map_or("-".into(), |l| {
        format!("{:.1}{}", 100.0 * l.value.abs(), mark(l))
    });
    let parity = arm
        .parity
        .as_ref()
        .map_or("no log".into(), |p| format!("{}/{}", p.equal, p.picks));
    let mut marks = arm.flags.join(" ");
    if let Some(late) = arm.late_burn_share.filter(|share| *share > 0.0) {
        let _ = write!(marks, " late burns {:.2} %", 100.0 * late);
    }
    writeln!(
        out,
        "{:<8} {:<32} {:>7} {:>7} {:>7} {:>7} {share:>6} {:>8} {:>6}  {parity:<13} {}",
        arm.run_id
            .rsplit_once("-b")
            .map_or(arm.run_id.clone(), |(_, arm)| format!("b{arm}")),
        arm.label,
        percent("mean_ms"),
        percent("p50_ms"),
        percent("p95_ms"),
        percent("p99_ms"),
        plain("spearman"),
        plain("ks_distance"),
        marks.trim()
    )
}

/// One line of a list of what was missed.
pub(super) fn in_words(line: &Line) -> String {
    let (value, gate) = value_and_gate(line);
    format!("{} {value} (gate {gate})", line.quantity)
}

fn value_and_gate(line: &Line) -> (String, String) {
    let (value, gate) = (line.value, line.gate);
    match line.quantity.as_str() {
        "spearman" => (format!("{value:.4}"), format!(">= {gate}")),
        "ks_distance" => (format!("{value:.4}"), format!("<= {gate}")),
        "sd_of_mean_ms" => (format!("x {value:.2}"), format!("x 1/{gate}..{gate}")),
        share if share.starts_with("share_") => (
            format!("{:+.2} pt", 100.0 * value),
            format!("{:.0} pt", 100.0 * gate),
        ),
        _ => (
            format!("{:+.2} %", 100.0 * value),
            format!("{:.0} %", 100.0 * gate),
        ),
    }
}
