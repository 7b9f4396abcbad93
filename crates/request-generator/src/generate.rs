//! `generate`: from arguments to a workload file.

use schema::problem::Problem;
use schema::rng::{Purpose, stream};
use schema::workload::{Api, Arrivals, MAX_NAME_BYTES, MAX_REQUESTS, Workload};
use serde_json::{Map, Value, json};

use crate::apis;
use crate::cli::Generate;
use crate::output;
use crate::sizes::SizeLaw;

/// Makes the workload and writes it.
///
/// # Errors
/// [`Problem`] for arguments out of bounds; else the output cannot be written.
pub(crate) fn run(arguments: &Generate) -> anyhow::Result<()> {
    let workload = workload(arguments).map_err(|problem| *problem)?;
    output::write(arguments.out.as_deref(), workload.to_text().as_bytes())?;
    if let Some(out) = &arguments.out {
        eprintln!(
            "{}: {} requests of {} APIs, mean task size {:.2} MI, one request every {:.3} ms on average",
            out.display(),
            workload.requests(),
            workload.apis.len(),
            workload.mean_task_size_mi(),
            workload.arrivals.mean_gap_ms()
        );
    }
    Ok(())
}

/// The workload that the arguments stand for.
///
/// # Errors
/// Arguments out of bounds.
pub(crate) fn workload(arguments: &Generate) -> Result<Workload, Box<Problem>> {
    let law = SizeLaw {
        median_mi: arguments.size_median_mi,
        sigma: arguments.size_sigma,
        min_mi: arguments.size_min_mi,
        max_mi: arguments.size_max_mi,
    }
    .checked()?;
    let requests = u64::from(arguments.apis) * u64::from(arguments.runs);
    if requests > MAX_REQUESTS {
        return Err(Box::new(
            Problem::new(
                "--apis times --runs",
                requests.to_string(),
                "too many requests",
            )
            .allowed(format!("up to {MAX_REQUESTS}")),
        ));
    }
    let mut sizes = stream(arguments.seed, Purpose::Sizes, 0, 0);
    let pairs = apis::draw(arguments.seed, arguments.apis as usize);
    let digits = arguments.apis.to_string().len().max(3);
    let apis = pairs
        .into_iter()
        .zip(1..)
        .map(|((method, url), n)| Api {
            id: format!("api-{n:0digits$}"),
            method,
            url,
            task_size_mi: law.draw(&mut sizes),
        })
        .collect();
    Ok(Workload {
        name: name(arguments)?,
        seed: arguments.seed,
        generator: recipe(arguments),
        apis,
        runs: arguments.runs,
        order: arguments.order,
        arrivals: arguments.arrivals,
        sha256: String::new(),
    }
    .sealed())
}

fn name(arguments: &Generate) -> Result<String, Box<Problem>> {
    let from_file = || {
        let stem = arguments.out.as_ref()?.file_stem()?.to_str()?;
        Some(stem.to_string())
    };
    let name = arguments.name.clone().or_else(from_file);
    let name = name.unwrap_or_else(|| "workload".to_string());
    if (1..=MAX_NAME_BYTES).contains(&name.len()) && !name.contains(char::is_control) {
        return Ok(name);
    }
    Err(Box::new(
        Problem::new("--name", name, "not a usable name").allowed(format!(
            "1 to {MAX_NAME_BYTES} bytes without control characters"
        )),
    ))
}

/// The arguments that make this workload again, as they would be typed.
fn recipe(arguments: &Generate) -> Map<String, Value> {
    let arrivals = match arguments.arrivals {
        Arrivals::Constant { interval_ms } => {
            let gap = std::time::Duration::from_nanos((interval_ms * 1e6).round() as u64);
            format!("constant:{}", schema::duration::format(gap))
        }
        Arrivals::Poisson { rate_rps } => format!("poisson:{rate_rps}"),
    };
    let fields = [
        ("program", json!("request-generator generate")),
        ("apis", json!(arguments.apis)),
        ("runs", json!(arguments.runs)),
        ("arrivals", json!(arrivals)),
        ("order", json!(arguments.order.as_str())),
        ("size_median_mi", json!(arguments.size_median_mi)),
        ("size_sigma", json!(arguments.size_sigma)),
        ("size_min_mi", json!(arguments.size_min_mi)),
        ("size_max_mi", json!(arguments.size_max_mi)),
    ];
    fields
        .into_iter()
        .map(|(k, v)| (k.to_string(), v))
        .collect()
}
