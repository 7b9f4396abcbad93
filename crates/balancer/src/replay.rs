//! `balancer strategies` and `balancer replay`.

use anyhow::{Context, bail};
use input::models::ModelFlag;
use schema::event::{Candidate, Event};
use schema::json::Fields;
use schema::problem::printable;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use strategies::registry::Models;
use strategies::replay::{Mismatch, Replay, ReplayError, Shown, Verdict};

/// Longest line of an event log, bytes.
const MAX_LINE_BYTES: usize = 16 << 20;

/// Replays each log and compares its picks. Exit code of the worst: 2 for a file that is no log, 1 for
/// a difference, 0.
pub(crate) fn replay(
    files: &[PathBuf],
    models: &[ModelFlag],
    json: bool,
) -> anyhow::Result<ExitCode> {
    let named = !models.is_empty();
    let models = match crate::models::load(models) {
        Ok(models) => models,
        Err(problem) => {
            console::tell!("error: {problem}");
            return Ok(ExitCode::from(2));
        }
    };
    let mut worst = 0;
    for file in files {
        let code = match replay_file(file, &models) {
            Ok(verdict) => {
                tell(file, &verdict, json)?;
                u8::from(!verdict.is_equal())
            }
            Err(e) => {
                let next = if named {
                    None
                } else {
                    recorded_models(file, &e)
                };
                let next = next.map_or(String::new(), |folder| {
                    format!(
                        "; the models it was recorded with are kept beside it: --model {}",
                        folder.display()
                    )
                });
                console::tell!("error: {}: {e:#}{next}", file.display());
                2
            }
        };
        worst = worst.max(code);
    }
    Ok(ExitCode::from(worst))
}

fn tell(file: &Path, verdict: &Verdict, json: bool) -> std::io::Result<()> {
    if json {
        let view = serde_json::json!({
            "file": file, "picks": verdict.picks, "equal": verdict.equal,
            "steps": verdict.steps, "steps_equal": verdict.steps_equal,
            "mismatch": verdict.first_mismatch.as_ref().map(describe),
            "members": verdict.first_mismatch.as_ref().map(members),
        });
        return console::say!("{view}");
    }
    console::say!(
        "{}: {} of {} picks equal",
        file.display(),
        verdict.equal,
        verdict.picks
    )?;
    if verdict.steps > 0 {
        console::say!(
            "  {} of {} ejections, trials and the like equal",
            verdict.steps_equal,
            verdict.steps
        )?;
    }
    if let Some(mismatch) = &verdict.first_mismatch {
        console::say!("  first difference: {}", describe(mismatch))?;
        for member in &mismatch.members {
            console::say!("    {}", known(member))?;
        }
    }
    Ok(())
}

/// The folder of models in the result folder that a log lies in (`RESULT/events/LOG`), when the log
/// could not be begun for want of one.
fn recorded_models(log: &Path, error: &anyhow::Error) -> Option<PathBuf> {
    // A strategy that cannot be built, at the start or where it was changed.
    let Some(ReplayError::Strategy(..) | ReplayError::Pool(..)) = error.downcast_ref() else {
        return None;
    };
    let folder = log.parent()?.parent()?.join("models");
    let found = input::models::in_folder(&folder).ok()?;
    (!found.is_empty()).then_some(folder)
}

fn describe(mismatch: &Mismatch) -> String {
    let name = |id: Option<u32>| id.map_or("nobody".to_string(), |id| format!("backend {id}"));
    format!(
        "line {}, request {}: logged {}, replayed {}",
        mismatch.line,
        mismatch.request_id,
        name(mismatch.logged),
        name(mismatch.replayed)
    )
}

fn members(mismatch: &Mismatch) -> Vec<serde_json::Value> {
    let view = |m: &Shown| {
        serde_json::json!({
            "name": m.name, "weight": m.weight, "state": m.state,
            "logged": m.logged, "replayed": m.replayed,
        })
    };
    mismatch.members.iter().map(view).collect()
}

/// What a pick could go by of one member: in the replay and, where that differs, in the log.
fn known(member: &Shown) -> String {
    let fields = |c: &Candidate| {
        let text = |value: Option<String>| value.unwrap_or_else(|| "unknown".into());
        [
            ("in_flight", c.in_flight.to_string()),
            ("active", text(c.active.map(|v| v.to_string()))),
            (
                "mean_latency_50_ms",
                text(c.mean_latency_50_ms.map(|v| v.to_string())),
            ),
            ("age_ns", text(c.age_ns.map(|v| v.to_string()))),
            ("sent_since", text(c.sent_since.map(|v| v.to_string()))),
            ("predicted_ms", text(c.predicted_ms.map(|v| v.to_string()))),
        ]
    };
    let here = fields(&member.replayed);
    let there = member.logged.as_ref().map(fields);
    let words = here.iter().enumerate().filter_map(|(i, (name, value))| {
        let logged = there.as_ref().map(|there| there[i].1.as_str());
        match logged {
            Some(logged) if logged != value => Some(format!("{name} {value} (logged {logged})")),
            _ if value == "unknown" => None,
            _ => Some(format!("{name} {value}")),
        }
    });
    let words: Vec<String> = words.collect();
    let (id, name) = (member.replayed.id, printable(&member.name));
    let unlogged = if there.is_none() {
        "; not in the log"
    } else {
        ""
    };
    format!(
        "backend {id} \"{name}\", weight {}, {}: {}{unlogged}",
        member.weight,
        member.state,
        words.join(", ")
    )
}

fn replay_file(path: &Path, models: &Models) -> anyhow::Result<Verdict> {
    let mut lines = BufReader::new(input::open(path).context("cannot open")?);
    let mut line = Vec::new();
    let mut replay: Option<Replay> = None;
    let mut number = 0;
    loop {
        line.clear();
        let read = std::io::Read::take(&mut lines, MAX_LINE_BYTES as u64)
            .read_until(b'\n', &mut line)
            .with_context(|| format!("cannot read line {}", number + 1))?;
        if read == 0 {
            break;
        }
        number += 1;
        if !line.ends_with(b"\n") {
            if read == MAX_LINE_BYTES {
                bail!("line {number}: longer than {MAX_LINE_BYTES} bytes");
            }
            console::tell!(
                "warning: {}: line {number} is unfinished and left out",
                path.display()
            );
            break;
        }
        let event: Event = std::str::from_utf8(&line)
            .map_err(anyhow::Error::from)
            .and_then(|line| Ok(serde_json::from_str::<Fields<Event>>(line)?.0))
            .with_context(|| format!("line {number}: no event"))?;
        match &mut replay {
            None => replay = Some(Replay::start(event, models)?),
            Some(replay) => replay.take(event)?,
        }
    }
    match replay {
        Some(replay) => Ok(replay.verdict().clone()),
        None => bail!("the file is empty; an event log begins with a start line"),
    }
}
