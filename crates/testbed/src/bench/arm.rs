//! One arm: drained, reset, replayed, checked, kept.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};
use schema::event::Event;
use schema::json::Fields;
use schema::manifest::{Arm, ArmState, GENERATOR_SATURATED, NEVER_SENT};
use schema::row::Row;
use schema::stats::Stats;

use super::Bench;
use super::reconcile::{Evidence, log_is_settled, mismatches};
use crate::bed::{Bed, Replay, ReplaySummary};
use crate::control::Control;
use crate::figures::run::{Outcome, Run};
use crate::figures::stability::Word;
use crate::folder::read_rows;
use crate::plan::order::stem;
use crate::summary::LATE_BURNS;

/// Before an arm nothing may be in flight; the longest request ends within this.
const DRAIN_LIMIT: Duration = Duration::from_secs(60);
/// After an arm everything must be at zero within this.
const SETTLE_LIMIT: Duration = Duration::from_secs(1);
/// After a reset every strategy starts with reports that are younger than it: two polls.
const FRESH_POLLS: f64 = 2.0;
/// The balancer writes its log behind; complete within this, or something is missing.
const LOG_LIMIT: Duration = Duration::from_secs(3);
/// Late burns above this share of the answers mark an arm.
const LATE_BURN_SHARE: f64 = 0.01;
/// Bytes of a row and of its lines in the event log, generously.
const ROW_BYTES: u64 = 400;
const EVENT_BYTES: u64 = 2000;

impl Bench {
    /// Runs arm `i`; `None` when a signal ended it.
    pub(super) async fn run_arm(
        &mut self,
        i: usize,
        bed: &mut Bed,
        control: &Control,
    ) -> anyhow::Result<Option<Run>> {
        let arm = self.manifest.arms[i].clone();
        self.check_space(&arm)?;
        self.folder.set_aside(&arm)?;
        tokio::select! {
            started = self.start_over(&arm, control) => started?,
            () = self.stop.asked.cancelled() => return Ok(None),
        }
        self.note(i, ArmState::Running)?;
        let seconds = self.manifest.workload.requests as f64 / self.manifest.workload.rate_rps;
        let schedule = self
            .folder
            .path(arm.schedule.as_deref().unwrap_or("workload.json"));
        let replay = Replay {
            run_id: &arm.run_id,
            block: arm.block,
            label: &arm.label,
            schedule: &schedule,
            out: &self.folder.part(&arm),
            warmup: self.manifest.warmup_requests,
            seconds,
            slots: None,
        };
        let replayed = bed.replay(&self.folder, &replay, &self.stop).await;
        let replayed = replayed.with_context(|| format!("{}: {}", arm.run_id, arm.label));
        match replayed {
            Ok(Some(summary)) if summary.interrupted => self.give_up(i),
            Ok(Some(summary)) => self.keep(i, &summary, control).await.map(Some),
            Ok(None) => self.give_up(i),
            Err(error) => {
                self.note(i, ArmState::Failed)?;
                Err(error)
            }
        }
    }

    /// The arm runs again on resume; what it recorded stays beside.
    fn give_up(&mut self, i: usize) -> anyhow::Result<Option<Run>> {
        self.folder.set_aside(&self.manifest.arms[i])?;
        self.note(i, ArmState::Planned)?;
        Ok(None)
    }

    fn note(&mut self, i: usize, state: ArmState) -> anyhow::Result<()> {
        self.manifest.arms[i].state = state;
        self.folder.write_manifest(&self.manifest)
    }

    /// Before a block: room for its rows and logs, twice.
    fn check_space(&mut self, arm: &Arm) -> anyhow::Result<()> {
        let arms = self.manifest.strategies.len() as u64 + 1;
        let rows = self.manifest.workload.requests * arms;
        let needed = 2 * rows * ROW_BYTES + rows * EVENT_BYTES;
        let free = self.folder.free_bytes()?;
        if free < needed {
            self.manifest.aborted = Some("disk_full".into());
            bail!(
                "block {} needs {needed} bytes and {} has {free} left; free some space and go on \
                 with --resume",
                arm.block,
                self.folder.root().display()
            );
        }
        Ok(())
    }

    /// The same beginning for every arm: nothing in flight, no memory of the arm before.
    async fn start_over(&self, arm: &Arm, control: &Control) -> anyhow::Result<()> {
        let busy = control.drained(DRAIN_LIMIT).await?;
        if !busy.is_empty() {
            bail!(
                "still in flight after {} s: {}; cannot start {}",
                DRAIN_LIMIT.as_secs(),
                busy.join(", "),
                arm.run_id
            );
        }
        control.reset_workers().await?;
        let log = format!("{}.jsonl", stem(arm));
        control
            .reset_balancer(&arm.strategy, arm.seed, &log)
            .await?;
        let polls = Duration::from_secs_f64(FRESH_POLLS * self.manifest.stats_interval_ms / 1e3);
        tokio::time::sleep(polls).await;
        Ok(())
    }

    /// Checks the arm's figures against each other and keeps its rows.
    async fn keep(
        &mut self,
        i: usize,
        replayed: &ReplaySummary,
        control: &Control,
    ) -> anyhow::Result<Run> {
        let arm = &self.manifest.arms[i];
        if let Some(why) = &replayed.aborted {
            self.manifest.aborted = Some(why.clone());
            bail!("{}: the simulator gave up: {why}", arm.run_id);
        }
        let busy = control.drained(SETTLE_LIMIT).await?;
        let stats = control.worker_stats().await?;
        let rows = read_rows(&self.folder.part(arm))?;
        let log = self.folder.path(arm.events.as_deref().unwrap_or_default());
        let events = read_log(&log).await?;
        let missed = mismatches(&Evidence {
            scheduled: self.manifest.workload.requests,
            rows: &rows,
            events: &events,
            stats: &stats,
            busy: &busy,
        });
        let all: Vec<&Row> = rows.iter().collect();
        let run = Run::summarize(&all, self.manifest.burn.mips_per_core)
            .with_context(|| format!("{}: no rows", arm.run_id))?;
        let marker = self.folder.mark_done(arm)?;
        let arm = &mut self.manifest.arms[i];
        arm.flags = flags(&run, &rows, &stats, replayed);
        arm.mismatches = missed;
        arm.started_unix_ns = Some(replayed.started_unix_ns);
        arm.rows = Some(marker.rows);
        arm.rows_sha256 = Some(marker.sha256);
        arm.lateness_p50_us = micros(run.lateness_p50_ms);
        arm.lateness_p99_us = micros(run.lateness_p99_ms);
        arm.late_burn_share = late_burn_share(&stats);
        arm.state = ArmState::Done;
        self.folder.assemble_rows(&self.manifest)?;
        self.folder.write_manifest(&self.manifest)?;
        Ok(run)
    }
}

/// Share of the answers that had to wait for their own burn.
fn late_burn_share(stats: &[Stats]) -> Option<f64> {
    let answered: u64 = stats.iter().map(|s| s.completed).sum();
    let late: u64 = stats.iter().map(|s| s.late_burns).sum();
    (answered > 0).then(|| late as f64 / answered as f64)
}

fn micros(ms: f64) -> Option<f64> {
    ms.is_finite().then_some(ms * 1e3)
}

fn flags(run: &Run, rows: &[Row], stats: &[Stats], replayed: &ReplaySummary) -> Vec<String> {
    let mut flags = Vec::new();
    let mut mark = |name: &str, holds: bool| {
        if holds {
            flags.push(name.to_string());
        }
    };
    mark("unstable", run.verdict.word == Word::Unstable);
    mark("inconclusive", run.verdict.word == Word::Inconclusive);
    mark("generator_late", run.late);
    mark(GENERATOR_SATURATED, run.lateness_p99_ms > run.mean_gap_ms);
    mark(NEVER_SENT, replayed.never_sent > 0);
    mark(
        LATE_BURNS,
        late_burn_share(stats).is_some_and(|s| s > LATE_BURN_SHARE),
    );
    let bad = |r: &Row| {
        let outcome = Outcome::of(r);
        outcome != Outcome::Ok && outcome != Outcome::NeverSent
    };
    mark("errors", rows.iter().any(bad));
    flags
}

/// The arm's event log, once every dispatch in it has ended, or what there is of it.
async fn read_log(path: &Path) -> anyhow::Result<Vec<Event>> {
    let deadline = tokio::time::Instant::now() + LOG_LIMIT;
    loop {
        let events = parse_log(path)?;
        if (!events.is_empty() && log_is_settled(&events)) || tokio::time::Instant::now() > deadline
        {
            return Ok(events);
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Reads whole lines; the balancer may be writing the last one.
fn parse_log(path: &Path) -> anyhow::Result<Vec<Event>> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read the event log {}", path.display()))?;
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole
        .lines()
        .enumerate()
        .map(|(i, line)| {
            serde_json::from_str::<Fields<Event>>(line)
                .map(|Fields(event)| event)
                .with_context(|| format!("{}:{}: not an event", path.display(), i + 1))
        })
        .collect()
}
