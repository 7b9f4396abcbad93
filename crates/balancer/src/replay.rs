//! `balancer strategies` and `balancer replay`.

use crate::models::ModelFile;
use anyhow::{Context, bail};
use schema::event::Event;
use schema::json::Fields;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use strategies::registry::Models;
use strategies::replay::{Mismatch, Replay, Verdict};

/// Longest line of an event log, bytes.
const MAX_LINE_BYTES: usize = 16 << 20;

/// Replays each log and compares its picks; exit 1 on a difference, 2 if a file is no log.
pub(crate) fn replay(
    files: &[PathBuf],
    models: &[ModelFile],
    json: bool,
) -> anyhow::Result<ExitCode> {
    let models = match crate::models::load(models) {
        Ok(models) => models,
        Err(problem) => {
            console::tell!("error: {problem}");
            return Ok(ExitCode::from(2));
        }
    };
    let mut all_equal = true;
    for file in files {
        let verdict = match replay_file(file, &models) {
            Ok(verdict) => verdict,
            Err(e) => {
                console::tell!("error: {}: {e:#}", file.display());
                return Ok(ExitCode::from(2));
            }
        };
        all_equal &= verdict.is_equal();
        if json {
            let view = serde_json::json!({
                "file": file, "picks": verdict.picks, "equal": verdict.equal,
                "steps": verdict.steps, "steps_equal": verdict.steps_equal,
                "mismatch": verdict.first_mismatch.as_ref().map(describe),
            });
            console::say!("{view}")?;
        } else {
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
            }
        }
    }
    Ok(if all_equal {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(1)
    })
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
