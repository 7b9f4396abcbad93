//! `bench`: preflight, blocks, rows, summary, report.
//!
//! Every step ends with the manifest replaced on disk, so that whatever happens the folder says
//! how far it came. A signal stops the present arm; finished arms keep their rows and the bench
//! goes on with `--resume`.

mod arm;
mod prepare;
mod reconcile;
pub(crate) mod resume;

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use schema::manifest::{ArmState, Manifest};

use crate::bed::select::{Selected, select};
use crate::bed::{Bed, Settings};
use crate::cli::BenchArgs;
use crate::control::Control;
use crate::figures::run::Run;
use crate::folder::Folder;
use crate::plan::threshold::Threshold;
use crate::programs::Programs;
use crate::report;
use crate::signals::Stop;
use crate::summary::{Summary, mean_ms};

/// The balancer waits for its first health checks and polls.
const READY_LIMIT: Duration = Duration::from_secs(60);
/// Exit code for thresholds not met and results that are not valid.
const NOT_VALID: u8 = 3;

/// One result folder being filled.
struct Bench {
    folder: Folder,
    manifest: Manifest,
    programs: Programs,
    selected: Selected,
    thresholds: Vec<Threshold>,
    stop: Stop,
}

/// How the arms ended.
enum Ended {
    Complete,
    Interrupted(u8),
}

/// Runs one bench per load of the preset, each into a folder of its own.
pub(crate) async fn run(arguments: &BenchArgs) -> anyhow::Result<u8> {
    let stop = Stop::listen()?;
    let programs = Programs::find()?;
    let plans = match &arguments.resume {
        Some(root) => vec![resume::plan(root, arguments, &programs)?],
        None => prepare::plans(arguments, &programs)?,
    };
    let selected = select(prepare::asked_kind(arguments, &plans), &programs).await?;
    // All folders first: whatever is interrupted can be resumed, also what had not begun.
    let benches = plans
        .into_iter()
        .map(|plan| prepare::bench(plan, &programs, &selected, &stop))
        .collect::<anyhow::Result<Vec<Bench>>>()?;
    let mut worst = 0;
    for bench in benches {
        if stop.asked.is_cancelled() {
            bench.say_how_to_go_on();
            continue;
        }
        let code = bench.run(arguments).await?;
        worst = worst.max(code);
    }
    Ok(worst)
}

impl Bench {
    async fn run(mut self, arguments: &BenchArgs) -> anyhow::Result<u8> {
        console::tell!("{}", self.preface());
        self.manifest.interrupted = false;
        self.manifest.aborted = None;
        self.folder.write_manifest(&self.manifest)?;
        let ended = self.run_arms().await;
        match &ended {
            Ok(Ended::Complete) => self.manifest.complete = true,
            Ok(Ended::Interrupted(_)) => {
                self.manifest.interrupted = true;
                self.manifest.aborted = Some("interrupted".into());
            }
            Err(error) => {
                let kind = self.manifest.aborted.take();
                self.manifest.aborted = Some(kind.unwrap_or_else(|| format!("{error:#}")));
            }
        }
        self.folder.write_manifest(&self.manifest)?;
        let summary = self.summarize()?;
        let code = match ended? {
            Ended::Interrupted(code) => {
                self.say_how_to_go_on();
                return Ok(code);
            }
            Ended::Complete => self.judge(&summary, arguments),
        };
        self.folder.drop_parts()?;
        if arguments.json {
            console::say!("{}", serde_json::to_string_pretty(&summary)?)?;
        } else {
            console::print(format_args!("\n{}", summary.text()))?;
        }
        self.make_report(arguments);
        Ok(code)
    }

    /// What will run, on what, and why.
    fn preface(&self) -> String {
        let m = &self.manifest;
        let to_do = m.arms.iter().filter(|a| a.state != ArmState::Done).count();
        let burned = if m.burn.emulated { "emulated, " } else { "" };
        format!(
            "{}: {} of {} arms to run, {} requests each ({:.0} a second, load {:.3}), first {} of each \
             are warm-up\n{} back end ({})\n{burned}burn fraction {} ({})",
            self.folder.root().display(),
            to_do,
            m.arms.len(),
            m.workload.requests,
            m.workload.rate_rps,
            m.burn.load,
            m.warmup_requests,
            m.backend.kind,
            m.backend.reason,
            m.burn.fraction,
            m.burn.reason,
        )
    }

    async fn run_arms(&mut self) -> anyhow::Result<Ended> {
        if self.manifest.arms.iter().all(|a| a.state == ArmState::Done) {
            return Ok(Ended::Complete);
        }
        let stop = self.stop.clone();
        let mut bed = tokio::select! {
            bed = self.start_bed() => bed?,
            () = stop.asked.cancelled() => return Ok(self.interrupted()),
        };
        let ran = self.run_arms_on(&mut bed).await;
        let stopped = bed.stop().await;
        let ended = ran?;
        stopped?;
        Ok(ended)
    }

    async fn start_bed(&mut self) -> anyhow::Result<Bed> {
        let settings = Settings::of(&self.manifest, &self.folder);
        let bed = Bed::start(&self.selected, &self.programs, &settings, &self.folder).await?;
        if let Bed::Docker(bed) = &bed {
            self.manifest.backend.workers.clone_from(&bed.limits);
            self.folder.write_manifest(&self.manifest)?;
        }
        Ok(bed)
    }

    async fn run_arms_on(&mut self, bed: &mut Bed) -> anyhow::Result<Ended> {
        let control = Control::new(bed.addresses().clone())?;
        tokio::select! {
            ready = control.ready(READY_LIMIT) => ready?,
            () = self.stop.asked.cancelled() => return Ok(self.interrupted()),
        }
        let bar = progress_bar(self.manifest.arms.len() as u64);
        for i in 0..self.manifest.arms.len() {
            bar.set_position(i as u64);
            if self.manifest.arms[i].state == ArmState::Done {
                continue;
            }
            bar.set_message(self.manifest.arms[i].label.clone());
            match self.run_arm(i, bed, &control).await? {
                Some(run) => bar.suspend(|| console::tell!("{}", self.arm_line(i, &run))),
                None => return Ok(self.interrupted()),
            }
        }
        bar.finish_and_clear();
        Ok(Ended::Complete)
    }

    fn interrupted(&self) -> Ended {
        Ended::Interrupted(self.stop.exit_code().unwrap_or(130))
    }

    /// One line about a finished arm.
    fn arm_line(&self, i: usize, run: &Run) -> String {
        let arm = &self.manifest.arms[i];
        let per_block = self.manifest.strategies.len() + 1;
        let marks: String = arm.flags.iter().map(|f| format!("  {f}")).collect();
        format!(
            "block {}/{}  arm {}/{per_block}  {:<36} mean {:8.2} ms  p99 {:8.2} ms{marks}",
            arm.block,
            self.manifest.blocks,
            arm.position,
            arm.label,
            mean_ms(run),
            run.p99_ms
        )
    }

    /// `rows.csv` and `summary.json` of what is finished.
    fn summarize(&self) -> anyhow::Result<Summary> {
        if self.folder.path("parts").is_dir() {
            self.folder.assemble_rows(&self.manifest)?;
        }
        let rows = self.folder.read_rows(&self.manifest)?;
        // A report of the arms there were before would stand beside the new summary.
        self.folder.drop_report()?;
        let summary = Summary::of(&self.manifest, &rows);
        self.folder.write_json("summary.json", &summary)?;
        Ok(summary)
    }

    /// 0, or 3 when the result is not valid or a threshold is not met; says why what the table
    /// will not.
    fn judge(&self, summary: &Summary, arguments: &BenchArgs) -> u8 {
        if arguments.json {
            for reason in &summary.not_valid_reasons {
                console::tell!("not valid: {reason}");
            }
        }
        let mut reasons = Vec::new();
        for threshold in &self.thresholds {
            match threshold.holds(&|reference| summary.value(reference)) {
                Some(true) => reasons.push(format!("--fail-if holds: {}", threshold.text())),
                Some(false) => {}
                None => reasons.push(format!(
                    "--fail-if cannot be judged, a number is missing: {}",
                    threshold.text()
                )),
            }
        }
        for reason in &reasons {
            console::tell!("{reason}");
        }
        if reasons.is_empty() && summary.not_valid.is_empty() {
            0
        } else {
            NOT_VALID
        }
    }

    fn make_report(&self, arguments: &BenchArgs) {
        let root = self.folder.root().display();
        if arguments.no_report {
            console::tell!("results in {root}; `testbed report {root}` makes a report");
            return;
        }
        match report::make(self.folder.root()) {
            Ok(report) => console::tell!("report: {}", report.display()),
            Err(error) => console::tell!(
                "no report ({error:#}); rows and summary are in {root}, `testbed report {root}` \
                 makes it later"
            ),
        }
    }

    fn say_how_to_go_on(&self) {
        let done = self
            .manifest
            .arms
            .iter()
            .filter(|a| a.state == ArmState::Done)
            .count();
        console::tell!(
            "interrupted after {done} of {} arms; go on with: testbed bench --resume {}",
            self.manifest.arms.len(),
            self.folder.root().display()
        );
    }
}

fn progress_bar(arms: u64) -> ProgressBar {
    let bar = ProgressBar::new(arms);
    let style = ProgressStyle::with_template("{bar:24} arm {pos}/{len}  {elapsed}  {msg}");
    if let Ok(style) = style {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_secs(1));
    bar
}

/// Reads a file that the user named.
fn read_input(path: &std::path::Path) -> anyhow::Result<String> {
    Ok(input::read_text(path).map_err(|problem| *problem)?)
}

#[cfg(test)]
pub(crate) mod testing {
    use schema::manifest::{Arm, Manifest};

    /// A manifest of two blocks of one strategy.
    pub(crate) fn manifest(arms: Vec<Arm>) -> Manifest {
        let value = serde_json::json!({
            "schema": schema::manifest::SCHEMA, "name": "t-quick", "command": ["testbed", "bench"],
            "created_utc": "2026-01-01T00:00:00Z", "complete": false, "interrupted": false,
            "versions": {"plumbline": "0.1.0", "git_commit": null, "binaries_sha256": {}},
            "host": {"system": "s", "cpu_model": "c", "cores": 2, "memory_bytes": 1, "loop": "l",
                "native_mips_per_core": 1.0, "native_mips_per_core_all_busy": 1.0},
            "backend": {"kind": "process", "reason": "asked for", "workers": []},
            "preset": "quick", "protection": "plain",
            "burn": {"mips_per_core": 7450.0, "fraction": 0.1, "emulated": true, "reason": "r",
                "load": 0.6},
            "workload": {"name": "w", "sha256": "x", "apis": 1, "requests": 2, "mean_mi": 412.0,
                "rate_rps": 100.0},
            "seed": 1, "stats_interval_ms": 100.0, "blocks": 2, "warmup_requests": 0,
            "strategies": ["round-robin"], "arms": arms, "flags": []
        });
        serde_json::from_value(value).expect("a manifest")
    }
}
