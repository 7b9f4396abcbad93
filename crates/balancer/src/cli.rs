//! The command line.

pub(crate) mod rules;

use crate::settings::Settings;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
use input::models::ModelFlag;
use schema::ask_first::AskFirst;
use schema::headers::is_name;
use schema::problem::{Problem, nearest};
use schema::protection::Preset;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;
use strategies::{NewBackend, Spec};

/// Reverse proxy with every load-balancing strategy of the testbed.
#[derive(Debug, Parser)]
#[command(
    version,
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  balancer --listen 127.0.0.1:8080 --admin 127.0.0.1:8081 --strategy smooth-weighted-round-robin \\
    --backend name=a,url=http://127.0.0.1:9001,weight=4,cores=4,memory-gb=12 \\
    --backend name=b,url=http://127.0.0.1:9002,weight=3,cores=3,memory-gb=9 \\
    --backend name=c,url=http://127.0.0.1:9003,weight=2,cores=2,memory-gb=6
  balancer strategies
  balancer replay results/NAME/events/b01-a1.jsonl
  curl -X PUT -d '{\"strategy\":\"least-request\"}' http://127.0.0.1:8081/api/strategy"
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) serve: Serve,
}

/// What else it can do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the strategies with their parameters, or check how some are spelled.
    Strategies {
        /// Only check this spelling and the model it needs (repeat); exit 2 if it is refused.
        #[arg(long, value_name = "S")]
        check: Vec<String>,
        /// Latency model, as for serving (repeat).
        #[arg(long = "model", value_name = "[NAME=]F")]
        models: Vec<ModelFlag>,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Feed an event log to a fresh dispatcher and compare every pick; exit 1 on a difference.
    Replay {
        /// Event logs.
        #[arg(required = true)]
        events: Vec<PathBuf>,
        /// Latency model the log was recorded with (repeat, as then).
        #[arg(long = "model", value_name = "[NAME=]F")]
        models: Vec<ModelFlag>,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Ask a running balancer whether it is ready; exit 0 or 1.
    Healthcheck {
        /// Its admin address.
        #[arg(long, default_value = "http://127.0.0.1:8081")]
        url: String,
    },
}

/// Serving traffic.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Where traffic comes in.
    #[arg(long, default_value = "127.0.0.1:8080", value_name = "ADDR")]
    pub(crate) listen: SocketAddr,
    /// Where the admin API and the live page listen.
    #[arg(long, default_value = "127.0.0.1:8081", value_name = "ADDR")]
    pub(crate) admin: SocketAddr,
    /// File with the admin token, at least 32 characters (or variable PLUMBLINE_ADMIN_TOKEN).
    #[arg(long, value_name = "F")]
    pub(crate) admin_token_file: Option<PathBuf>,
    /// Allow an admin address beyond loopback without a token.
    #[arg(long)]
    pub(crate) admin_open: bool,
    /// name=a,url=http://HOST:PORT,weight=4,cores=4,memory-gb=12 (repeat; url is required).
    #[arg(long = "backend", value_name = "SPEC", value_parser = parse_backend)]
    pub(crate) backends: Vec<NewBackend>,
    /// Strategy with its parameters, `name:key=value,...`; `balancer strategies` lists them.
    #[arg(long, default_value = "smooth-weighted-round-robin", value_name = "S", value_parser = parse_strategy)]
    pub(crate) strategy: Spec,
    /// How often each worker's /stats is read.
    #[arg(long, default_value = "100ms", value_name = "D", value_parser = parse_interval)]
    pub(crate) stats_interval: Duration,
    /// Before each pick ask every eligible worker for a report and wait this long at most (1ms to 1s);
    /// for strategies that read polls or probes, nothing for the others.
    #[arg(long, allow_hyphen_values = true, default_value_t = AskFirst::OFF, value_name = "D|off")]
    pub(crate) ask_first: AskFirst,
    /// Latency model for predictive strategies, or a folder of them (repeat); named after its file
    /// unless NAME is given.
    #[arg(long = "model", value_name = "[NAME=]F")]
    pub(crate) models: Vec<ModelFlag>,
    /// What a core of a worker retires, MIPS; only strategies marked as oracles use it.
    #[arg(long, default_value_t = 7450.0, value_name = "M", value_parser = parse_mips)]
    pub(crate) mips_per_core: f64,
    /// `plain` compares strategies; `guarded` adds the protections.
    #[arg(long, default_value = Preset::Guarded.name(), value_parser = preset())]
    pub(crate) protection: Preset,
    /// Write every call of the dispatcher to this file (JSON lines); one that holds anything is kept
    /// and refused.
    #[arg(long, value_name = "F")]
    pub(crate) event_log: Option<PathBuf>,
    /// Root seed of every draw.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = schema::rng::parse_seed)]
    pub(crate) seed: u64,
    /// Threads of the proxy; default: one per core.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) threads: Option<u16>,
    /// Peer whose X-Forwarded-* fields are believed (repeat).
    #[arg(long = "trusted-peer", value_name = "IP")]
    pub(crate) trusted_peers: Vec<IpAddr>,
    /// Single limits.
    #[command(flatten)]
    pub(crate) limits: Limits,
    /// Rules that protect the pool.
    #[command(flatten)]
    pub(crate) rules: rules::RuleFlags,
}

/// Single limits in place of the preset's.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Limits")]
pub(crate) struct Limits {
    /// Connecting to a backend [default: 1s].
    #[arg(long, value_name = "D", value_parser = |t: &str| within(t, 10, 60_000))]
    pub(crate) timeout_connect: Option<Duration>,
    /// From the pick to the head of the answer, 0s = only the total [default: 10s guarded, 0s plain].
    #[arg(long, value_name = "D", value_parser = |t: &str| within(t, 0, 600_000))]
    pub(crate) timeout_per_try: Option<Duration>,
    /// From the request's head to the head of the answer [default: 25s].
    #[arg(long, value_name = "D", value_parser = |t: &str| within(t, 100, 600_000))]
    pub(crate) timeout_total: Option<Duration>,
    /// Longest gap between body bytes, both directions [default: 10s].
    #[arg(long, value_name = "D", value_parser = |t: &str| within(t, 100, 600_000))]
    pub(crate) timeout_body_idle: Option<Duration>,
    /// First to last byte of a request's head [default: 5s].
    #[arg(long, value_name = "D", value_parser = |t: &str| within(t, 100, 600_000))]
    pub(crate) timeout_head: Option<Duration>,
    /// Silent client connections are closed after this [default: 60s].
    #[arg(long, value_name = "D", value_parser = |t: &str| within(t, 100, 3_600_000))]
    pub(crate) client_idle: Option<Duration>,
    /// SIGTERM waits this long for running requests [default: 30s].
    #[arg(long, value_name = "D", value_parser = |t: &str| within(t, 0, 600_000))]
    pub(crate) shutdown_grace: Option<Duration>,
    /// Client connections at once; the longest idle one is closed for one more [default: 4096].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) max_connections: Option<u32>,
    /// Largest request body, bytes [default: 10485760].
    #[arg(long, value_name = "N")]
    pub(crate) body_max_bytes: Option<u64>,
    /// Requests held before new ones get 503, 0 = no limit [default: 4096 guarded, 0 plain].
    #[arg(long, value_name = "N")]
    pub(crate) shed_max_in_flight: Option<usize>,
}

impl Serve {
    /// The preset's limits with the single ones in their place.
    pub(crate) fn settings(&self) -> Settings {
        let preset = Settings::of(self.protection);
        let given = &self.limits;
        let per_try = given.timeout_per_try.or(preset.per_try);
        Settings {
            connect: given.timeout_connect.unwrap_or(preset.connect),
            per_try: per_try.filter(|d| !d.is_zero()),
            total: given.timeout_total.unwrap_or(preset.total),
            body_idle: given.timeout_body_idle.unwrap_or(preset.body_idle),
            max_connections: given
                .max_connections
                .map_or(preset.max_connections, |n| n as usize),
            body_max_bytes: given.body_max_bytes.unwrap_or(preset.body_max_bytes),
            shed_max_in_flight: given
                .shed_max_in_flight
                .unwrap_or(preset.shed_max_in_flight),
            head: given.timeout_head.unwrap_or(preset.head),
            client_idle: given.client_idle.unwrap_or(preset.client_idle),
            grace: given.shutdown_grace.unwrap_or(preset.grace),
            retry_stale: preset.retry_stale,
        }
    }
}

fn within(text: &str, low_ms: u64, high_ms: u64) -> Result<Duration, String> {
    let duration = schema::duration::parse(text)?;
    let (low, high) = (
        Duration::from_millis(low_ms),
        Duration::from_millis(high_ms),
    );
    if (low..=high).contains(&duration) {
        return Ok(duration);
    }
    let text = schema::duration::format;
    Err(format!("must be between {} and {}", text(low), text(high)))
}

fn preset() -> impl TypedValueParser<Value = Preset> {
    PossibleValuesParser::new(Preset::NAMES).try_map(|name| name.parse())
}

fn parse_strategy(text: &str) -> Result<Spec, String> {
    Spec::parse_live(text).map_err(|e| e.to_string())
}

fn parse_mips(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(mips) if (1.0..=1e6).contains(&mips) => Ok(mips),
        _ => Err("must be between 1 and 1000000 MIPS".into()),
    }
}

fn parse_interval(text: &str) -> Result<Duration, String> {
    let interval = schema::duration::parse(text)?;
    let allowed = Duration::from_millis(1)..=Duration::from_secs(600);
    if allowed.contains(&interval) {
        Ok(interval)
    } else {
        Err(format!(
            "the interval must be between 1ms and 10min, got {text}"
        ))
    }
}

const KEYS: [&str; 5] = ["name", "url", "weight", "cores", "memory-gb"];

/// A backend as it is given, before its values are checked.
#[derive(Debug, Default)]
pub(crate) struct Given<'a> {
    pub(crate) name: Option<&'a str>,
    pub(crate) url: &'a str,
    pub(crate) weight: Option<&'a str>,
    pub(crate) cores: Option<&'a str>,
    pub(crate) memory_gb: Option<&'a str>,
}

impl Given<'_> {
    /// The one set of rules for backends, wherever they come from.
    ///
    /// # Errors
    /// The first value that is out of bounds, with its bound.
    pub(crate) fn check(&self) -> Result<NewBackend, String> {
        let positive = |key, value: Option<&str>, most| match value {
            None => Ok(1.0),
            Some(value) => parse_positive(key, value, most),
        };
        let url = parse_url(self.url)?;
        let name = match self.name {
            Some(name) => parse_name(name)?,
            None => parse_name(url.trim_start_matches("http://"))
                .map_err(|e| format!("{e}; give it a name of its own with name="))?,
        };
        Ok(NewBackend {
            name,
            weight: self.weight.map_or(Ok(1), parse_weight)?,
            cores: positive("cores", self.cores, 1024.0)?,
            memory_mib: positive("memory-gb", self.memory_gb, 65_536.0)? * 1024.0,
            url,
        })
    }
}

/// Reads `name=a,url=http://H:P,weight=4,cores=4,memory-gb=12`.
pub(crate) fn parse_backend(text: &str) -> Result<NewBackend, String> {
    let problem = |key: &str, value: &str, what: &str| Problem::new(key, value, what);
    let mut given = Given::default();
    let mut seen: Vec<&str> = Vec::new();
    for pair in text.split(',') {
        let (key, value) = pair.split_once('=').ok_or_else(|| {
            problem("backend", pair, "is not key=value")
                .allowed(KEYS.join(", "))
                .to_string()
        })?;
        if seen.contains(&key) {
            return Err(problem(key, value, "is given twice").to_string());
        }
        seen.push(key);
        match key {
            "name" => given.name = Some(value),
            "url" => given.url = value,
            "weight" => given.weight = Some(value),
            "cores" => given.cores = Some(value),
            "memory-gb" => given.memory_gb = Some(value),
            _ => {
                let hint =
                    nearest(key, KEYS).map_or(String::new(), |k| format!("did you mean {k}?"));
                let unknown = problem(key, value, "unknown key")
                    .allowed(KEYS.join(", "))
                    .next(hint);
                return Err(unknown.to_string());
            }
        }
    }
    if !seen.contains(&"url") {
        return Err(problem("backend", text, "has no url")
            .next("add url=http://HOST:PORT")
            .to_string());
    }
    given.check()
}

fn parse_weight(value: &str) -> Result<u32, String> {
    let weight = value.parse().ok().filter(|w| (1..=65_535).contains(w));
    weight.ok_or_else(|| {
        Problem::new("weight", value, "is no weight")
            .allowed("1 to 65535")
            .to_string()
    })
}

fn parse_name(value: &str) -> Result<String, String> {
    if is_name(value) {
        return Ok(value.to_string());
    }
    let allowed = "1 to 64 of letters, digits, . _ : -";
    Err(Problem::new("name", value, "is no backend name")
        .allowed(allowed)
        .to_string())
}

fn parse_positive(key: &str, value: &str, most: f64) -> Result<f64, String> {
    let number: Option<f64> = value.parse().ok().filter(|v: &f64| *v > 0.0 && *v <= most);
    number.ok_or_else(|| {
        let problem = Problem::new(key, value, "is out of bounds");
        problem
            .allowed(format!("above 0, up to {most}"))
            .to_string()
    })
}

/// `http://HOST:PORT` without path, query or user.
fn parse_url(value: &str) -> Result<String, String> {
    let refuse = |what: &str| {
        let problem = Problem::new("url", value, what).allowed("http://HOST:PORT");
        Err(problem.to_string())
    };
    let Ok(uri) = value.parse::<http::Uri>() else {
        return refuse("is no URL");
    };
    if uri.scheme_str() != Some("http") {
        return refuse("must begin with http://");
    }
    let Some(authority) = uri.authority() else {
        return refuse("has no host");
    };
    let (Some(port), false) = (authority.port_u16(), authority.host().is_empty()) else {
        return refuse("needs a host and a port between 1 and 65535");
    };
    if port == 0 || authority.as_str().contains('@') {
        return refuse("needs a host and a port between 1 and 65535");
    }
    if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
        return refuse("must not have a path");
    }
    Ok(format!("http://{}", authority.as_str()))
}

#[cfg(test)]
mod tests {
    use super::parse_backend;

    #[test]
    fn a_backend_is_read_with_its_defaults() {
        let full = parse_backend("name=a,url=http://h:1,weight=4,cores=4,memory-gb=12").unwrap();
        assert_eq!(
            (full.name.as_str(), full.weight, full.memory_mib),
            ("a", 4, 12.0 * 1024.0)
        );
        let bare = parse_backend("url=http://127.0.0.1:9001/").unwrap();
        assert_eq!((bare.name.as_str(), bare.weight), ("127.0.0.1:9001", 1));
        assert_eq!(bare.url, "http://127.0.0.1:9001");
    }

    #[test]
    fn what_is_wrong_with_a_backend_is_named() {
        for (text, part) in [
            ("name=a", "has no url"),
            ("name=a,url=ftp://h:1", "http://"),
            ("url=http://h", "port"),
            ("url=http://h:0", "port"),
            ("url=http://h:99999", "port"),
            ("url=http://h:1/path", "path"),
            ("url=http://h:1,weight=0", "1 to 65535"),
            ("url=http://h:1,weight=-1", "1 to 65535"),
            ("url=http://h:1,cores=0", "above 0"),
            ("url=http://h:1,cores=NaN", "above 0"),
            ("url=http://h:1,wieght=2", "did you mean weight"),
            ("url=http://h:1,url=http://h:2", "twice"),
            ("name=,url=http://h:1", "name"),
            ("name=a\"b,url=http://h:1", "letters, digits"),
            ("name=a\nb,url=http://h:1", "letters, digits"),
            ("name=a{b},url=http://h:1", "letters, digits"),
            ("name=ü,url=http://h:1", "letters, digits"),
            ("url=http://[::1]:80", "name="),
            ("url=http://a$b:80", "name="),
            ("", "key=value"),
        ] {
            let error = parse_backend(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
