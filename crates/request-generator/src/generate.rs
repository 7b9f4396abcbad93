//! `generate`: from arguments to a workload file.

use schema::laws::arrivals::{Arrivals, Rates};
use schema::laws::sizes::{SIZE_CV, SizeLaw, noise_fits};
use schema::problem::Problem;
use schema::rng::{Purpose, stream};
use schema::workload::{
    Api, Drawn, MAX_NAME_BYTES, MAX_REQUESTS, MAX_SPAN_MS, Method, Traffic, Workload,
};
use serde_json::{Map, Value, json};

use crate::apis;
use crate::capacity::Capacity;
use crate::cli::{Generate, SizeArguments};
use crate::output;
use crate::sizes::{ApiSizes, PAPER_BOUNDS_MI, PAPER_MEDIAN_MI, PAPER_SIGMA, in_range};

/// Makes the workload and writes it.
///
/// # Errors
/// [`Problem`] for arguments out of bounds; else the output cannot be written.
pub(crate) fn run(arguments: &Generate) -> anyhow::Result<()> {
    let capacity = Capacity::new(&arguments.capacity).map_err(|problem| *problem)?;
    let workload = workload(arguments, capacity).map_err(|problem| *problem)?;
    let text = workload.to_text();
    output::write(arguments.out.as_deref(), |out| {
        out.write_all(text.as_bytes())
    })?;
    if let Some(out) = &arguments.out {
        let (mean_mi, gap_ms) = (workload.mean_task_size_mi(), workload.mean_gap_ms());
        console::tell!(
            "{}: {} requests of {} APIs, mean task size {mean_mi:.2} MI, one request every \
             {gap_ms:.3} ms on average: {}",
            out.display(),
            workload.requests(),
            workload.apis.len(),
            capacity.load(mean_mi, gap_ms)
        );
    }
    Ok(())
}

/// The workload that the arguments stand for.
fn workload(arguments: &Generate, capacity: Capacity) -> Result<Workload, Box<Problem>> {
    let law = ApiSizes::new(&arguments.sizes)?;
    let requests = u64::from(arguments.apis) * u64::from(arguments.runs);
    if requests > MAX_REQUESTS {
        let value = requests.to_string();
        let problem = Problem::new("--apis times --runs", value, "too many requests");
        return Err(problem.allowed(format!("up to {MAX_REQUESTS}")).into());
    }
    let count = arguments.apis as usize;
    let mut sizes = stream(arguments.seed, Purpose::Sizes, 0, 0);
    let sizes = law.draw(&mut sizes, count)?;
    let pairs = match arguments.urls {
        None => apis::draw(arguments.seed, count),
        Some(urls) => apis::draw_over(arguments.seed, count, urls as usize)?,
    };
    let apis = numbered(pairs, sizes);
    check_noise(arguments.sizes.size_cv, &apis)?;
    let mean_mi = apis.iter().map(|a| a.task_size_mi).sum::<f64>() / apis.len() as f64;
    let arrivals = arrivals(arguments, capacity.full_rps(mean_mi), requests)?;
    Ok(Workload {
        name: name(arguments.name.as_deref())?,
        seed: arguments.seed,
        generator: recipe(arguments),
        apis,
        traffic: Traffic::Drawn(Drawn {
            runs: arguments.runs,
            order: arguments.order,
            arrivals,
            size_cv: arguments.sizes.size_cv,
        }),
        sha256: String::new(),
    }
    .sealed())
}

/// APIs with ids in order.
pub(crate) fn numbered(pairs: Vec<(Method, String)>, sizes: Vec<f64>) -> Vec<Api> {
    let digits = pairs.len().to_string().len().max(3);
    let of = |((n, (method, url)), task_size_mi)| Api {
        id: format!("api-{n:0digits$}"),
        method,
        url,
        task_size_mi,
    };
    (1..).zip(pairs).zip(sizes).map(of).collect()
}

/// Refuses noise that would leave the bounds of a task size too often.
pub(crate) fn check_noise(size_cv: f64, apis: &[Api]) -> Result<(), Box<Problem>> {
    in_range("--size-cv", size_cv, &SIZE_CV)?;
    let noise = SizeLaw::log_normal(size_cv);
    let unfit = |api: &&Api| size_cv > 0.0 && !noise_fits(api.task_size_mi, &noise);
    let Some(api) = apis.iter().find(unfit) else {
        return Ok(());
    };
    let what = format!(
        "more than one in a thousand requests of {} ({} MI) would leave 1 to 100000 MI",
        api.id, api.task_size_mi
    );
    let problem = Problem::new("--size-cv", size_cv.to_string(), what);
    Err(problem
        .next("lower it, or move the sizes away from the bounds")
        .into())
}

fn arrivals(arguments: &Generate, full_rps: f64, requests: u64) -> Result<Arrivals, Box<Problem>> {
    let refuse = |what: String| Problem::new("--arrivals", &arguments.arrivals, what);
    let rates = Rates {
        full_rps: Some(full_rps),
        default_rps: None,
    };
    let arrivals = Arrivals::parse(&arguments.arrivals, rates).map_err(refuse)?;
    let span_ms = arrivals.span_ms(requests);
    if span_ms > MAX_SPAN_MS {
        let what = format!("{requests} requests would take {:.0} s", span_ms / 1e3);
        return Err(refuse(what)
            .allowed(format!("up to {} s", MAX_SPAN_MS / 1e3))
            .into());
    }
    Ok(arrivals)
}

/// The name given, else "workload". It says nothing of the output file, so that the bytes depend on
/// the arguments that describe the workload alone.
pub(crate) fn name(given: Option<&str>) -> Result<String, Box<Problem>> {
    let name = given.unwrap_or("workload");
    if (1..=MAX_NAME_BYTES).contains(&name.len()) && !name.contains(char::is_control) {
        return Ok(name.to_string());
    }
    let allowed = format!("1 to {MAX_NAME_BYTES} bytes without control characters");
    Err(Problem::new("--name", name, "not a usable name")
        .allowed(allowed)
        .into())
}

/// The arguments that make this workload again, as they would be typed.
fn recipe(arguments: &Generate) -> Map<String, Value> {
    let mut fields = Map::new();
    let mut field = |name: &str, value: Value| {
        fields.insert(name.to_string(), value);
    };
    field("program", json!("request-generator generate"));
    field("apis", json!(arguments.apis));
    field("runs", json!(arguments.runs));
    field("arrivals", json!(arguments.arrivals));
    field("order", json!(arguments.order.as_str()));
    if let Some(urls) = arguments.urls {
        field("urls", json!(urls));
    }
    if arguments.arrivals.contains('%') {
        field("cores", json!(arguments.capacity.cores));
        field("mips_per_core", json!(arguments.capacity.mips_per_core));
    }
    fields.extend(size_recipe(&arguments.sizes));
    fields
}

/// The part of a recipe about sizes.
pub(crate) fn size_recipe(arguments: &SizeArguments) -> Map<String, Value> {
    let mut fields = Map::new();
    let mut field = |name: &str, value: Value| {
        fields.insert(name.to_string(), value);
    };
    // The default law is written out in its four numbers.
    let paper = arguments.sizes == "lognormal";
    let numbers = [
        ("size_median_mi", arguments.size_median_mi, PAPER_MEDIAN_MI),
        ("size_sigma", arguments.size_sigma, PAPER_SIGMA),
        (
            "size_min_mi",
            arguments.size_min_mi,
            *PAPER_BOUNDS_MI.start(),
        ),
        ("size_max_mi", arguments.size_max_mi, *PAPER_BOUNDS_MI.end()),
    ];
    for (name, given, default) in numbers {
        if let Some(value) = given.or(paper.then_some(default)) {
            field(name, json!(value));
        }
    }
    if !paper {
        field("sizes", json!(arguments.sizes));
    }
    if arguments.size_cv != 0.0 {
        field("size_cv", json!(arguments.size_cv));
    }
    fields
}
