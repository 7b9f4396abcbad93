//! `import`: from a trace to a workload with one entry for each of its requests.
//!
//! A trace is read whole, row by row; every finding names its line and column. What is decided for
//! the user, such as where in its second a request goes, is said on standard error and written into
//! the file's `generator` field.

mod azure;
mod clf;
mod csv;
mod place;
mod stamp;
mod table;
mod trace;

use schema::laws::sizes::{SizeLaw, TASK_SIZE_MI, noisy_mi, rounded_mi};
use schema::problem::{Problem, Problems};
use schema::rng::{Purpose, stream};
use schema::workload::{Api, MAX_BYTES, Request, Traffic, Workload};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use self::place::Placed;
use self::trace::{Rows, Trace};
use crate::capacity::Capacity;
use crate::cli::{Format, Import};
use crate::generate::{check_noise, name, numbered, size_recipe};
use crate::output;
use crate::sizes::{ApiSizes, in_range};

/// Largest trace, bytes.
const MAX_TRACE_BYTES: u64 = 128 * 1024 * 1024;
/// Most requests of a trace: about what fits into the largest workload file.
pub(crate) const MAX_ROWS: u32 = 1_000_000;

/// Reads the trace and writes the workload.
///
/// # Errors
/// [`Problem`] or [`Problems`] for arguments or a trace out of bounds; else a file that cannot be
/// read or written.
pub(crate) fn run(arguments: &Import) -> anyhow::Result<()> {
    check(arguments).map_err(|problem| *problem)?;
    let capacity = Capacity::new(&arguments.capacity).map_err(|problem| *problem)?;
    let source = arguments.trace.display().to_string();
    let bytes = input::read_up_to(&arguments.trace, MAX_TRACE_BYTES).map_err(|problem| *problem)?;
    if let Some(out) = &arguments.out {
        input::refuse_same(&arguments.trace, out, "--out").map_err(|problem| *problem)?;
    }
    let text = if arguments.skip_bad_rows {
        String::from_utf8_lossy(&bytes)
    } else {
        schema::json::utf8(&source, &bytes)?.into()
    };
    let rows = rows(arguments, &source, &text)?;
    let (skipped, raised) = (rows.skipped, rows.raised);
    let digest = format!("{:x}", Sha256::digest(&bytes));
    let (workload, placed) = workload(arguments, &source, rows, &digest)?;
    let file = workload.to_text();
    if file.len() > MAX_BYTES {
        return Err(Problem::new(
            "",
            "",
            format!("the workload would have {} bytes", file.len()),
        )
        .in_source(source)
        .allowed(format!("{MAX_BYTES} bytes"))
        .next("import a part of it with --limit")
        .into());
    }
    output::write(arguments.out.as_deref(), |out| {
        out.write_all(file.as_bytes())
    })?;
    report(arguments, &workload, &placed, capacity, skipped, raised);
    Ok(())
}

/// Every row of a trace.
fn rows(arguments: &Import, source: &str, text: &str) -> Result<Rows, Problems> {
    let mut trace = Trace::new(source, text, arguments);
    match arguments.format {
        Format::Csv => csv::read(&mut trace, arguments.timestamp_unit),
        Format::Clf => clf::read(&mut trace),
        Format::AzureLlm => azure::read(&mut trace, arguments),
    }
    trace.finish()
}

/// Refuses flags out of bounds or without a meaning for this format.
fn check(arguments: &Import) -> Result<(), Box<Problem>> {
    in_range("--speed", arguments.speed, &(1e-3..=1e6))?;
    let tokens = 0.0..=1000.0;
    in_range(
        "--mi-per-context-token",
        arguments.mi_per_context_token,
        &tokens,
    )?;
    in_range(
        "--mi-per-generated-token",
        arguments.mi_per_generated_token,
        &tokens,
    )?;
    if matches!(arguments.format, Format::AzureLlm) {
        own_sizes(arguments, "tokens are what gives a size")?;
    }
    Ok(())
}

/// Refuses flags about sizes where the trace has sizes itself.
fn own_sizes(arguments: &Import, what: &str) -> Result<(), Box<Problem>> {
    if arguments.sizes.is_default() {
        return Ok(());
    }
    let next = "leave --sizes and --size-* out";
    Err(Problem::new("--sizes", "", what).next(next).into())
}

fn workload(
    arguments: &Import,
    source: &str,
    rows: Rows,
    digest: &str,
) -> Result<(Workload, Placed), Problems> {
    let Rows { rows, targets, .. } = rows;
    let sized = rows.iter().all(|row| row.task_size_mi.is_some());
    if sized {
        own_sizes(arguments, "the trace has a size for each request").map_err(|p| *p)?;
    }
    let placed = place::place(source, rows, arguments)?;
    let sizes = if sized {
        mean_sizes(&placed, targets.len())
    } else {
        let law = ApiSizes::new(&arguments.sizes).map_err(|p| *p)?;
        let mut sizes = stream(arguments.seed, Purpose::Sizes, 0, 0);
        law.draw(&mut sizes, targets.len()).map_err(|p| *p)?
    };
    let apis = numbered(targets, sizes);
    check_noise(arguments.sizes.size_cv, &apis).map_err(|p| *p)?;
    let requests = requests(arguments, &placed, &apis);
    let workload = Workload {
        name: name(arguments.name.as_deref()).map_err(|p| *p)?,
        seed: arguments.seed,
        generator: recipe(arguments, sized, &placed, digest),
        apis,
        traffic: Traffic::Listed(requests),
        sha256: String::new(),
    };
    Ok((workload.sealed(), placed))
}

/// Mean size of each API's requests, where requests have their own.
fn mean_sizes(placed: &Placed, apis: usize) -> Vec<f64> {
    let mut sums = vec![(0.0, 0.0); apis];
    for (_, row) in &placed.rows {
        let (sum_mi, count) = &mut sums[row.api as usize];
        *sum_mi += row.task_size_mi.unwrap_or_default();
        *count += 1.0;
    }
    let (min_mi, max_mi) = (*TASK_SIZE_MI.start(), *TASK_SIZE_MI.end());
    sums.into_iter()
        .map(|(sum_mi, count)| rounded_mi(sum_mi / count).clamp(min_mi, max_mi))
        .collect()
}

fn requests(arguments: &Import, placed: &Placed, apis: &[Api]) -> Vec<Request> {
    let size_cv = arguments.sizes.size_cv;
    let noise = SizeLaw::log_normal(size_cv);
    // The stream that a schedule draws sizes of requests from.
    let mut rng = stream(arguments.seed, Purpose::Sizes, 1, 0);
    let of_row = |(at_us, row): &(u64, trace::Row)| Request {
        at_us: *at_us,
        api: row.api,
        task_size_mi: match (row.task_size_mi, apis[row.api as usize].task_size_mi) {
            (Some(own_mi), _) => own_mi,
            (None, mean_mi) if size_cv == 0.0 => mean_mi,
            (None, mean_mi) => noisy_mi(mean_mi, &noise, &mut rng),
        },
    };
    placed.rows.iter().map(of_row).collect()
}

/// The arguments that make this workload again, and what was decided on the way.
fn recipe(arguments: &Import, sized: bool, placed: &Placed, digest: &str) -> Map<String, Value> {
    let mut fields = Map::new();
    let mut field = |name: &str, value: Value| {
        fields.insert(name.to_string(), value);
    };
    let file = arguments.trace.file_name().unwrap_or_default();
    field("program", json!("request-generator import"));
    field("format", json!(arguments.format.as_str()));
    field("trace", json!(file.to_string_lossy()));
    field("trace_sha256", json!(digest));
    field("speed", json!(arguments.speed));
    field("spread_within_seconds", json!(placed.spread));
    if let Some(limit) = arguments.limit {
        field("limit", json!(limit));
    }
    for (name, set) in [
        ("skip_bad_rows", arguments.skip_bad_rows),
        ("keep_stamps", arguments.keep_stamps),
        ("keep_query", arguments.keep_query),
    ] {
        if set {
            field(name, json!(true));
        }
    }
    match arguments.format {
        Format::Csv => field("timestamp_unit", json!(arguments.timestamp_unit.as_str())),
        Format::Clf => {}
        Format::AzureLlm => {
            field(
                "mi_per_context_token",
                json!(arguments.mi_per_context_token),
            );
            field(
                "mi_per_generated_token",
                json!(arguments.mi_per_generated_token),
            );
        }
    }
    if !sized {
        fields.extend(size_recipe(&arguments.sizes));
    }
    fields
}

fn report(
    arguments: &Import,
    workload: &Workload,
    placed: &Placed,
    capacity: Capacity,
    skipped: u64,
    raised: u64,
) {
    if placed.spread {
        console::tell!(
            "note: the stamps are whole seconds: each request was put at a uniformly drawn moment \
             of its second (seed {}; --keep-stamps leaves them together)",
            arguments.seed
        );
    }
    if placed.sorted > 0 {
        console::tell!(
            "note: {} rows were earlier than a row before them; requests are sorted by time",
            placed.sorted
        );
    }
    if skipped > 0 {
        console::tell!("note: {skipped} bad rows were left out");
    }
    if raised > 0 {
        console::tell!(
            "note: {raised} sizes below 1 MI were raised to it, the least a request may take"
        );
    }
    if let Some(out) = &arguments.out {
        let (mean_mi, gap_ms) = (workload.mean_task_size_mi(), workload.mean_gap_ms());
        console::tell!(
            "{}: {} requests of {} APIs over {:.3} s, mean task size {mean_mi:.2} MI, one request \
             every {gap_ms:.3} ms on average: {}",
            out.display(),
            workload.requests(),
            workload.apis.len(),
            placed.span_us() as f64 / 1e6,
            capacity.load(mean_mi, gap_ms)
        );
    }
}

#[cfg(test)]
mod tests;
