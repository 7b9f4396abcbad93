//! Writes what a real run writes: one row per request, and the event log of each balancer.

use crate::build::refuse;
use crate::engine::{Done, Fate, Patience, Picked, Setup, Watch};
use schema::event::{Event, SCHEMA};
use schema::problem::{Problem, Problems};
use schema::protection::Preset;
use schema::report::{Report, Source};
use schema::row::{self, Row};
use serde::Serialize;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use strategies::ejection::Note as Step;
use strategies::{Answer, Dispatcher, Outcome};

/// What was known of the chosen backend at the pick of the request in a slot.
#[derive(Debug, Clone, Default)]
struct Note {
    in_flight: Option<u32>,
    active: Option<u32>,
    mean_latency_50_ms: Option<f64>,
    age_ms: Option<f64>,
    cpu_percent: Option<f64>,
    memory_mib: Option<f64>,
}

/// The files that are asked for.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wanted<'a> {
    /// One row per request.
    pub rows: Option<&'a Path>,
    /// The event log; of several balancers each has its own, numbered from the second on.
    pub log: Option<&'a Path>,
    /// One line per worker and pick.
    pub candidates: Option<&'a Path>,
}

impl Wanted<'_> {
    /// Whether there is one.
    pub fn any(&self) -> bool {
        self.rows.or(self.log).or(self.candidates).is_some()
    }

    /// Each that would be made, with the flag that asks for it.
    pub fn outputs(&self, balancers: u32) -> Vec<(PathBuf, &'static str)> {
        let logs = (0..balancers).filter_map(|b| Some((numbered(self.log?, b), "--event-log")));
        let named = [(self.rows, "--out"), (self.candidates, "--candidates")];
        let named = named.into_iter();
        named
            .filter_map(|(path, flag)| Some((path?.to_path_buf(), flag)))
            .chain(logs)
            .collect()
    }
}

/// The files of one run.
pub struct Files<'a> {
    setup: &'a Setup,
    run_id: String,
    label: String,
    rows: Option<BufWriter<File>>,
    logs: Vec<BufWriter<File>>,
    candidates: Option<csv::Writer<File>>,
    notes: Vec<Note>,
    failed: Option<io::Error>,
}

impl<'a> Files<'a> {
    /// Creates the files asked for.
    ///
    /// # Errors
    /// A file that cannot be created, with its path.
    pub fn create(setup: &'a Setup, label: String, wanted: Wanted<'_>) -> anyhow::Result<Self> {
        let open = |path: &Path| {
            File::create(path).map_err(|e| anyhow::anyhow!("cannot write {}: {e}", path.display()))
        };
        let create = |path: &Path| -> anyhow::Result<BufWriter<File>> {
            Ok(BufWriter::with_capacity(1 << 20, open(path)?))
        };
        let mut files = Self {
            setup,
            run_id: format!("twin-{}", setup.seed),
            label,
            rows: wanted.rows.map(create).transpose()?,
            logs: Vec::new(),
            candidates: wanted
                .candidates
                .map(open)
                .transpose()?
                .map(csv::Writer::from_writer),
            notes: Vec::new(),
            failed: None,
        };
        if let Some(log) = wanted.log {
            for balancer in 0..setup.balancers {
                files.logs.push(create(&numbered(log, balancer))?);
            }
        }
        if let Some(rows) = &mut files.rows {
            files.failed = row::write_header(rows).err();
        }
        Ok(files)
    }

    /// Hands everything to the operating system.
    ///
    /// # Errors
    /// The first failed write of the run.
    pub fn finish(mut self) -> io::Result<()> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        self.rows
            .iter_mut()
            .chain(&mut self.logs)
            .try_for_each(Write::flush)?;
        self.candidates.iter_mut().try_for_each(csv::Writer::flush)
    }

    fn log(&mut self, balancer: usize, event: &Event) {
        let Some(log) = self.logs.get_mut(balancer) else {
            return;
        };
        let written = serde_json::to_writer(&mut *log, event)
            .map_err(io::Error::from)
            .and_then(|()| log.write_all(b"\n"));
        self.failed = self.failed.take().or(written.err());
    }
}

/// Outputs that are an input or one another, under any name.
pub(crate) fn refuse_overwriting(
    inputs: &[PathBuf],
    outputs: &[(PathBuf, &str)],
) -> Result<(), Problems> {
    for (i, (output, flag)) in outputs.iter().enumerate() {
        for read in inputs {
            input::refuse_same(read, output, flag).map_err(|problem| *problem)?;
        }
        for (earlier, other) in &outputs[..i] {
            let is_one = earlier == output || input::refuse_same(earlier, output, flag).is_err();
            if is_one {
                let what = format!("is what {other} writes");
                return refuse(
                    Problem::new(*flag, output.display().to_string(), what)
                        .next("name another file"),
                );
            }
        }
    }
    Ok(())
}

/// `log.jsonl`, `log-1.jsonl` ..
fn numbered(path: &Path, balancer: u32) -> PathBuf {
    if balancer == 0 {
        return path.to_path_buf();
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let name = match path.extension() {
        Some(extension) => format!("{stem}-{balancer}.{}", extension.to_string_lossy()),
        None => format!("{stem}-{balancer}"),
    };
    path.with_file_name(name)
}

/// What was known of a worker at a pick and what the request would have taken there, as the training of
/// latency models reads it.
#[derive(Debug, Serialize)]
struct Candidate<'a> {
    run_id: &'a str,
    seq: &'a str,
    method: &'a str,
    url: &'a str,
    cores: f64,
    memory_gb: f64,
    in_flight: u32,
    active_requests: Option<u32>,
    mean_latency_ms_last_50: Option<f64>,
    cpu_percent: Option<f64>,
    memory_mib: Option<f64>,
    cost_ms: f64,
}

/// Whole nanoseconds of a time in s.
fn ns(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

impl Files<'_> {
    fn write_candidates(&mut self, picked: &Picked<'_>) {
        let Some(file) = &mut self.candidates else {
            return;
        };
        let seq = picked.request.id;
        if seq.parse().is_ok_and(|seq: u64| seq < self.setup.warmup) {
            return;
        }
        let dispatcher = picked.dispatcher;
        for (backend, cost_ms) in dispatcher.backends().members().zip(picked.own_ms) {
            let known = dispatcher.candidate(backend);
            let usage = backend.report(Source::Docker);
            let chosen = picked.dispatch.filter(|d| d.backend == backend.id);
            let line = Candidate {
                run_id: &self.run_id,
                seq,
                method: picked.request.method,
                url: picked.request.url,
                cores: backend.cores,
                memory_gb: backend.memory_mib / 1024.0,
                in_flight: chosen.map_or(known.in_flight, |d| d.in_flight_before),
                active_requests: known.active,
                mean_latency_ms_last_50: known.mean_latency_50_ms,
                cpu_percent: usage.and_then(|r| r.cpu_percent),
                memory_mib: usage.and_then(|r| r.memory_used_mib),
                cost_ms: *cost_ms,
            };
            let written = file.serialize(line).map_err(io::Error::from);
            self.failed = self.failed.take().or(written.err());
        }
    }
}

impl Watch for Files<'_> {
    fn wants_own_ms(&self) -> bool {
        self.candidates.is_some()
    }

    fn began(&mut self, balancer: usize, dispatcher: &Dispatcher) {
        let options = dispatcher.options();
        let start = Event::Start {
            schema: SCHEMA.into(),
            strategy: dispatcher.spec().to_string(),
            seed: options.seed,
            started_unix_ns: 0,
            poll_interval_ns: options.context.poll_interval_ns,
            mi_per_ms: Some(options.context.mi_per_ms),
            protection: self.setup.protection.unwrap_or(Preset::Plain).name().into(),
            slow_start_ns: options.slow_start_ns,
            rules: options.rules,
            members: dispatcher.members(),
        };
        self.log(balancer, &start);
    }

    fn picked(&mut self, picked: &Picked<'_>) {
        self.write_candidates(picked);
        let (request, dispatcher) = (picked.request, picked.dispatcher);
        let chosen = picked
            .dispatch
            .and_then(|d| dispatcher.backends().get(d.backend));
        if let (Some(dispatch), Some(backend)) = (picked.dispatch, chosen) {
            let known = dispatcher.candidate(backend);
            let usage = backend.report(Source::Docker);
            let usage = usage.or(backend.newest_stats());
            let slot = picked.slot as usize;
            if self.notes.len() <= slot {
                self.notes.resize(slot + 1, Note::default());
            }
            self.notes[slot] = Note {
                in_flight: Some(dispatch.in_flight_before),
                active: known.active,
                mean_latency_50_ms: known.mean_latency_50_ms,
                age_ms: known.age_ns.map(|ns| ns as f64 / 1e6),
                cpu_percent: usage.and_then(|r| r.cpu_percent),
                memory_mib: usage.and_then(|r| r.memory_used_mib),
            };
        }
        if self.logs.is_empty() {
            return;
        }
        let mut candidates: Vec<_> = dispatcher.candidates().collect();
        if let Some(dispatch) = picked.dispatch {
            // The record is of the moment before the dispatch raised the count.
            for candidate in candidates.iter_mut().filter(|c| c.id == dispatch.backend.0) {
                candidate.in_flight = dispatch.in_flight_before;
                candidate.sent_since = candidate.sent_since.map(|n| n.saturating_sub(1));
            }
        }
        let event = Event::Pick {
            t_ns: dispatcher.now().as_nanos(),
            dispatch: picked.dispatch.map(|d| d.id),
            request_id: request.id.into(),
            method: request.method.into(),
            url: request.url.into(),
            class: request.class,
            client: request.client.map(|c| c.to_string()),
            key_header: request.key_header.map(str::to_string),
            body_len: request.body_len,
            attempt: request.attempt,
            tried: Vec::new(),
            cost_mi: request.cost_mi,
            backend: picked.dispatch.map(|d| d.backend.0),
            mark: picked.dispatch.and_then(|d| d.mark),
            candidates,
            pick_ns: 0,
        };
        self.log(picked.balancer, &event);
    }

    fn answered(
        &mut self,
        balancer: usize,
        now_ns: u64,
        outcome: &Outcome,
        answer: &Answer,
        worker: u32,
    ) {
        let event = Event::Response {
            t_ns: now_ns,
            dispatch: outcome.dispatch,
            backend: worker,
            status: outcome.status,
            http_status: outcome.http_status,
            latency_ns: outcome.latency_ns,
            ttfb_ns: answer.ttfb_ns,
            retry_after_ns: outcome.retry_after_ns,
            service_time_ns: outcome.service_time_ns,
            queue_wait_ns: None,
        };
        self.log(balancer, &event);
    }

    fn reported(&mut self, balancer: usize, now_ns: u64, worker: u32, report: &Report) {
        if self.logs.is_empty() {
            return;
        }
        let event = Event::Stats {
            t_ns: now_ns,
            backend: worker,
            report: report.clone(),
        };
        self.log(balancer, &event);
    }

    fn stepped(&mut self, balancer: usize, step: &Step) {
        let event = Event::Ejection {
            t_ns: step.at.as_nanos(),
            backend: step.backend.0,
            step: step.step,
        };
        self.log(balancer, &event);
    }

    fn finished(&mut self, done: &Done) {
        let Some(rows) = &mut self.rows else { return };
        let class = &self.setup.classes[done.class as usize];
        let worker = done.worker.map(|w| &self.setup.workers[w as usize]);
        let note = self.notes.get(done.slot as usize).cloned();
        let note = note.filter(|_| worker.is_some()).unwrap_or_default();
        let (status, error) = match done.fate {
            Fate::Ok => (200, ""),
            Fate::Status(status) => (status, "error:backend"),
            Fate::Broken => (502, "error:backend_reset"),
            Fate::Refused => (502, "error:connect_refused"),
            Fate::Timeout => match self.setup.patience() {
                Some((_, Patience::PerTry)) => (504, "error:per_try_timeout"),
                _ => (504, "error:total_timeout"),
            },
            Fate::Unserved => (503, "error:no_backend"),
            Fate::Shed => (503, "error:shed"),
        };
        let (intended_ns, done_ns) = (ns(done.arrived), ns(done.finished));
        let at_worker = done.fate == Fate::Ok;
        let row = Row {
            run_id: self.run_id.clone(),
            strategy: self.label.clone(),
            seq: done.seq,
            api_id: class.id.clone(),
            method: class.method.clone(),
            url: class.url.clone(),
            task_size_mi: done.work * self.setup.mips_per_core,
            warmup: done.warmup,
            intended_ns,
            sent_ns: Some(intended_ns),
            first_byte_ns: at_worker.then_some(done_ns),
            done_ns: Some(done_ns),
            latency_ms: Some(Row::latency_ms(intended_ns, done_ns)),
            status: Some(status),
            error: error.into(),
            container: worker.map(|w| w.name.clone()),
            attempts: worker.map(|_| 1),
            in_flight: note.in_flight,
            active_requests: note.active,
            mean_latency_ms_last_50: note.mean_latency_50_ms,
            stats_age_ms: note.age_ms,
            cores: worker.map(|w| w.cores),
            memory_gb: worker.map(|w| w.memory_gb),
            cpu_percent: note.cpu_percent,
            memory_mib: note.memory_mib,
            queue_wait_us: at_worker.then(|| ((done.started - done.reached) * 1e6).round() as u64),
            service_time_us: at_worker.then(|| ((done.left - done.started) * 1e6).round() as u64),
            ..Row::default()
        };
        let written = row::write_line(&row, rows);
        self.failed = self.failed.take().or(written.err());
    }
}
