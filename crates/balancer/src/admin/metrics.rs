//! `/metrics` in the OpenMetrics text form, made from the counters at every call.

mod ejections;

use crate::core::Core;
use crate::counts::{Buckets, Times};
use std::fmt::Write;

/// The page.
pub(super) fn render(core: &Core) -> Result<String, std::fmt::Error> {
    let state = core.lock();
    let mut out = String::with_capacity(8192);
    let counts = &state.counts;
    family(
        &mut out,
        "plumbline_requests_received",
        "counter",
        "Requests whose head was read.",
    )?;
    writeln!(out, "plumbline_requests_received_total {}", counts.received)?;
    family(
        &mut out,
        "plumbline_heads_rejected",
        "counter",
        "Heads refused before they counted as received, by reason.",
    )?;
    for (reason, n) in &counts.head_rejected {
        writeln!(
            out,
            "plumbline_heads_rejected_total{{reason=\"{reason}\"}} {n}"
        )?;
    }
    family(
        &mut out,
        "plumbline_requests_ended",
        "counter",
        "Requests ended, by reason; backend is the backend's own answer.",
    )?;
    for (reason, n) in &counts.by_reason {
        writeln!(
            out,
            "plumbline_requests_ended_total{{reason=\"{reason}\"}} {n}"
        )?;
    }
    family(
        &mut out,
        "plumbline_event_log_lines_lost",
        "counter",
        "Lines that were not written.",
    )?;
    writeln!(
        out,
        "plumbline_event_log_lines_lost_total {}",
        state.log_lines_lost()
    )?;
    gauges(&mut out, counts)?;
    histogram(
        &mut out,
        "plumbline_pick_seconds",
        "How long picks took.",
        &counts.pick_time,
    )?;
    histogram(
        &mut out,
        "plumbline_ask_seconds",
        "How long picks waited for answers of workers.",
        &counts.ask_time,
    )?;
    let backends = state.dispatcher.backends();
    let members: Vec<_> = backends.members().map(|b| (b, counts.peek(b.id))).collect();
    family(
        &mut out,
        "plumbline_in_flight",
        "gauge",
        "Dispatched and not yet answered.",
    )?;
    for (b, _) in &members {
        writeln!(
            out,
            "plumbline_in_flight{{backend=\"{}\"}} {}",
            b.name,
            b.unanswered()
        )?;
    }
    family(
        &mut out,
        "plumbline_eligible",
        "gauge",
        "1 if the backend may be picked.",
    )?;
    for (b, _) in &members {
        let up = u8::from(backends.available_place(b.id).is_some());
        writeln!(out, "plumbline_eligible{{backend=\"{}\"}} {up}", b.name)?;
    }
    family(
        &mut out,
        "plumbline_attempts",
        "counter",
        "Dispatches that ended, by outcome.",
    )?;
    for (b, c) in &members {
        let outcomes = [
            ("ok", c.ok),
            ("client_error", c.client_error),
            ("error", c.error),
            ("timeout", c.timeout),
            ("refused", c.refused),
            ("cancelled", c.cancelled),
        ];
        for (outcome, n) in outcomes {
            let name = &b.name;
            writeln!(
                out,
                "plumbline_attempts_total{{backend=\"{name}\",outcome=\"{outcome}\"}} {n}"
            )?;
        }
    }
    family(&mut out, "plumbline_picks", "counter", "Picks.")?;
    for (b, c) in &members {
        writeln!(
            out,
            "plumbline_picks_total{{backend=\"{}\"}} {}",
            b.name, c.picks
        )?;
    }
    family(
        &mut out,
        "plumbline_latency_seconds",
        "summary",
        "Last byte minus dispatch, ok answers.",
    )?;
    for (b, c) in &members {
        writeln!(
            out,
            "plumbline_latency_seconds_sum{{backend=\"{}\"}} {}",
            b.name,
            c.latency_sum_s()
        )?;
        writeln!(
            out,
            "plumbline_latency_seconds_count{{backend=\"{}\"}} {}",
            b.name, c.ok
        )?;
    }
    family(
        &mut out,
        "plumbline_upstream_connections",
        "counter",
        "Connections used, by kind.",
    )?;
    for (b, c) in &members {
        for (kind, n) in [
            ("opened", c.connections_opened),
            ("reused", c.connections_reused),
        ] {
            let name = &b.name;
            writeln!(
                out,
                "plumbline_upstream_connections_total{{backend=\"{name}\",kind=\"{kind}\"}} {n}"
            )?;
        }
    }
    family(
        &mut out,
        "plumbline_polls",
        "counter",
        "Statistics polls, by result.",
    )?;
    for (b, c) in &members {
        for (result, n) in [("ok", c.polls), ("failed", c.polls_failed)] {
            writeln!(
                out,
                "plumbline_polls_total{{backend=\"{}\",result=\"{result}\"}} {n}",
                b.name
            )?;
        }
    }
    family(
        &mut out,
        "plumbline_probes",
        "counter",
        "Probes that the strategy asked for, by result.",
    )?;
    for (b, c) in &members {
        for (result, n) in [("ok", c.probes), ("failed", c.probes_failed)] {
            writeln!(
                out,
                "plumbline_probes_total{{backend=\"{}\",result=\"{result}\"}} {n}",
                b.name
            )?;
        }
    }
    family(
        &mut out,
        "plumbline_questions",
        "counter",
        "Questions before picks, by how they ended.",
    )?;
    for (b, c) in &members {
        let asked = &c.questions;
        for (result, n) in [
            ("answered", asked.answered),
            ("late", asked.late),
            ("failed", asked.failed),
            ("unsent", asked.unsent),
        ] {
            let name = &b.name;
            writeln!(
                out,
                "plumbline_questions_total{{backend=\"{name}\",result=\"{result}\"}} {n}"
            )?;
        }
    }
    ejections::render(&mut out, &state)?;
    out.push_str("# EOF\n");
    Ok(out)
}

fn family(out: &mut String, name: &str, kind: &str, help: &str) -> std::fmt::Result {
    writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}")
}

fn gauges(out: &mut String, counts: &crate::counts::Counts) -> std::fmt::Result {
    family(
        out,
        "plumbline_requests_held",
        "gauge",
        "Requests under way.",
    )?;
    writeln!(out, "plumbline_requests_held {}", counts.held)?;
    let help = "Requests that ended without a dispatch.";
    family(out, "plumbline_unserved", "counter", help)?;
    writeln!(out, "plumbline_unserved_total {}", counts.unserved)?;
    let help = "Picks by own counts where the strategy lacked reports it compares by.";
    family(out, "plumbline_stand_ins", "counter", help)?;
    writeln!(out, "plumbline_stand_ins_total {}", counts.stand_ins)?;
    let help = "Second attempts after a kept connection turned out closed.";
    family(out, "plumbline_stale_retries", "counter", help)?;
    writeln!(
        out,
        "plumbline_stale_retries_total {}",
        counts.stale_retries
    )
}

fn histogram<B: Buckets>(
    out: &mut String,
    name: &str,
    help: &str,
    times: &Times<B>,
) -> std::fmt::Result {
    family(out, name, "histogram", help)?;
    let mut below = 0;
    for (bound, n) in B::BOUNDS_NS.iter().zip(times.buckets) {
        below += n;
        let seconds = *bound as f64 / 1e9;
        writeln!(out, "{name}_bucket{{le=\"{seconds}\"}} {below}")?;
    }
    let (count, sum_s) = (times.count, times.sum_ns as f64 / 1e9);
    writeln!(out, "{name}_bucket{{le=\"+Inf\"}} {count}")?;
    writeln!(out, "{name}_sum {sum_s}")?;
    writeln!(out, "{name}_count {count}")
}
