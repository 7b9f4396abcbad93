//! The command line.

use crate::{compare, optimum, pivot, regret, sweep, validate};
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  twin run --strategy weighted-least-request --cores 4,3,2 --load 0.8
  twin run --strategy round-robin --workload workloads/paper.json --json
  twin run --strategy polled-least-request --load 0.7 --poll 2S --fetch-delay 0.5S
  twin compare --strategies smooth-weighted-round-robin,p2c,weighted-least-request --load 0.8
  twin optimum --cores 4,3,2 --load 0.8";

/// Load balancing in virtual time, with the balancer's own dispatcher.
#[derive(Debug, Parser)]
#[command(name = "twin", version, after_help = EXAMPLES)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Simulate one scenario under one strategy
    #[command(after_help = "\
Examples:
  twin run --strategy weighted-least-request --load 0.8 --requests 10000000
  twin run --strategy least-request:ties=random --cores '1*1000' --load 0.9 --sizes h2:10
  twin run --strategy round-robin --workload workloads/paper.json --out rows.csv
  twin run --strategy polled-own-sends --load 0.7 --poll 2S --balancers 4
  twin run --strategy least-request:ties=random --cores '1000*5' --slots 20 --calls 3 --faults f.json

Without --workload a request has mean size 100 ms on one core of speed 1; --load is offered work
over the sum of cores * speed (default 0.7). A time may be given in mean sizes, such as 2S. The
first tenth of the requests is left out. An unstable run prints no mean.")]
    Run(Box<Run>),
    /// Which strategy is better under the same requests, by how much, and how sure is it?
    #[command(after_help = "\
Examples:
  twin compare --strategies smooth-weighted-round-robin,weighted-least-request,p2c --load 0.8
  twin compare --strategies weighted-least-request,oracle-own,oracle-marginal --sizes h2:10 --json
  twin compare --strategies round-robin,peak-ewma:decay=5s,random --scenario s.json --replications 20

The first strategy is the baseline; replication r of each has the seed plus r, as `twin run --seed` takes
it. Ratios are paired by seed, p values are of a sign-flip test, adjusted for the number of strategies.
Faster or slower is said only with p < .05 and a difference beyond three standard errors. A strategy with
an unstable run has no mean and no rank. With weighted-least-request and oracle-marginal in the list the
gap that each closes between them is printed. What a scenario file says of the strategy is not used.")]
    Compare(Box<compare::Arguments>),
    /// A grid of scenarios on all cores, into one CSV
    #[command(after_help = "\
Examples:
  twin sweep sweeps/staleness.json
  twin sweep sweeps/matrix.json --out matrix.csv --threads 2
  twin sweep sweeps/matrix.json --dry-run

One row per run, in the order of the file: the same bytes for any number of threads. What is done is kept
in CSV.partial: after Ctrl-C or worse the same command goes on. A file that changed meanwhile is refused.
The format of the file and the columns of the result are in sweeps/README.md.")]
    Sweep(sweep::Arguments),
    /// A sweep's result as a table of means, with the points where lines cross
    #[command(after_help = "\
Examples:
  twin table staleness.csv --rows arrivals_per_poll --where load=0.7 --cross smooth-weighted-round-robin
  twin table matrix.csv --rows pool --where load=0.6 --where sizes=light --value p99_ms

Runs that differ only in the seed are averaged; whatever else varies within one place of the table has to
be fixed with --where. A place with an unstable run has no mean.")]
    Table(pivot::Arguments),
    /// Is the simulator right? Compares it with known means
    #[command(after_help = "\
Examples:
  twin validate
  twin validate --full --json
  twin validate --only A7

Simulates systems whose mean is known from theory and prints case, expected, got, tolerance and verdict.
Exit code 1 if any check missed. --full takes minutes: twenty times the requests, a quarter of the
tolerances.")]
    Validate(validate::Arguments),
    /// What is the best possible mean at a load?
    #[command(after_help = "\
Examples:
  twin optimum --cores 4,3,2 --load 0.8
  twin optimum --load 0.7 --mips-per-core 1500 --mean-mi 201 --json

Computed, not simulated: one pool of all cores, the best strategy on live counts and simple ones, the
best random split. Dynamic rows need at most three workers and take seconds at a load of 0.9.")]
    Optimum(optimum::Arguments),
    /// What did each pick of recorded runs cost beyond the best one?
    #[command(after_help = "\
Examples:
  twin regret results/20260101T120000Z-standard
  twin run --strategy round-robin --load 0.6 --requests 20000 --out rr.csv
  twin regret --rows rr.csv --cores 4,3,2
  twin regret --rows wlc.csv oracle.csv --cores 0.8,0.6,0.4 --mips-per-core 1500 --json

Work left at every pick is rebuilt from the true sizes and from when requests were at their
workers. With weighted-least-request and oracle-marginal on one schedule, the part of the gap
between their mean latencies that each strategy closes is printed too. Rows of workers whose
speed was not that stated are refused.")]
    Regret(regret::Arguments),
}

/// `twin run`.
#[derive(Debug, Args)]
pub struct Run {
    /// The scenario.
    #[command(flatten)]
    pub scenario: ScenarioFlags,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Write one row per request here, as the simulator does
    #[arg(long, value_name = "ROWS_CSV")]
    pub out: Option<PathBuf>,
    /// Write the dispatcher's event log here, for `balancer replay`; more balancers: one file each
    #[arg(long, value_name = "FILE")]
    pub event_log: Option<PathBuf>,
    /// Write here what was known of every worker at each pick after the warm-up, and what the request
    /// would have taken there: what a latency model's order is judged by (ps and fcfs)
    #[arg(long, value_name = "CSV")]
    pub candidates: Option<PathBuf>,
}

/// How the command line calls the flag of a field.
fn flag_of(name: &str) -> String {
    format!("--{}", name.replace('_', "-"))
}

macro_rules! scenario_flags {
    ($($(#[$meta:meta])* $name:ident: $field:literal),* $(,)?) => {
        /// The flags of a scenario; each is the text form of a field.
        #[derive(Debug, Args, Default)]
        pub struct ScenarioFlags {
            /// Scenario file (JSON); flags go before what it says
            #[arg(long, value_name = "FILE")]
            pub scenario: Option<PathBuf>,
            /// Fault timeline (JSON), its times within the run; the testbed reads none yet
            #[arg(long, value_name = "FILE")]
            pub faults: Option<PathBuf>,
            /// Latency model, or a folder of them (repeat); named after its file unless NAME is given
            #[arg(long = "model", value_name = "[NAME=]F")]
            pub models: Vec<String>,
            $($(#[$meta])* pub $name: Option<String>,)*
        }

        impl ScenarioFlags {
            /// Those given: field, flag, text.
            pub fn texts(&self) -> Vec<(&'static str, String, &str)> {
                let mut given = Vec::new();
                $(if let Some(text) = &self.$name {
                    given.push(($field, flag_of(stringify!($name)), text.as_str()));
                })*
                given.extend(self.models.iter().map(|text| ("model", flag_of("model"), text.as_str())));
                given
            }
        }
    };
}

scenario_flags! {
    /// Strategy with parameters, such as p2c or peak-ewma:decay=5s (`balancer strategies` lists them); a d
    /// above the number of workers is refused here, where the pool is fixed
    #[arg(long, value_name = "S")]
    strategy: "strategy",
    /// Workload file: its requests at its times, or under other laws
    #[arg(long, value_name = "FILE")]
    workload: "workload",
    /// Cores of each worker, such as 4,3,2 (default) or 1*1000; fractions allowed
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    cores: "cores",
    /// Speed of each worker's cores, 1 = nominal
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    speeds: "speeds",
    /// Configured weights; default: cores * speed as the smallest integers
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    weights: "weights",
    /// Memory of each worker, GB; default: 3 per core
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    memory_gb: "memory_gb",
    /// Speed of a nominal core, MIPS (default 7450)
    #[arg(long, value_name = "M", allow_hyphen_values = true)]
    mips_per_core: "mips_per_core",
    /// Mean size alone on a nominal core (default 100ms)
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    mean_service: "mean_service",
    /// Offered work over capacity
    #[arg(long, value_name = "RHO", allow_hyphen_values = true)]
    load: "load",
    /// Arrivals per second, instead of a load
    #[arg(long = "rate", value_name = "RPS", allow_hyphen_values = true)]
    rate: "rate_rps",
    /// Arrivals: poisson (default), constant, workload, a law of the gaps such as h2:SCV, or what the
    /// request generator spells: gamma:CV, sine:AMPLITUDE:PERIOD, ramp:FROM:TO:OVER, poisson:60%
    #[arg(long, value_name = "LAW")]
    arrivals: "arrivals",
    /// Law of the sizes: exp (default), det, lognormal[:CV], h2:SCV, pareto:A, bimodal:RATIO:SHARE,
    /// workload
    #[arg(long, value_name = "LAW")]
    sizes: "sizes",
    /// How workers share their cores: ps (default), fcfs, quota[:PERIOD[:HOST_CORES]], quantum:STEP,
    /// weighted[:uncapped]
    #[arg(long, value_name = "D")]
    discipline: "discipline",
    /// Poll interval (default 100ms)
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    poll: "poll",
    /// Poll interval as the mean number of arrivals in it, at all balancers together
    #[arg(long, value_name = "K", allow_hyphen_values = true)]
    poll_arrivals: "poll_arrivals",
    /// Poll loops: together (all workers at one instant, default) or spread (each i/n later)
    #[arg(long, value_name = "P")]
    poll_phase: "poll_phase",
    /// What the answer to a poll takes besides its way through the network (default 0)
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    fetch_delay: "fetch_delay",
    /// Interval of the container engine's CPU and memory figures (default 1s)
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    usage: "usage",
    /// One way between balancer and worker: D or exp:D (default 0)
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    network_delay: "network_delay",
    /// Balancers in front of the same workers
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    balancers: "balancers",
    /// Ask every backend before each pick and wait this long at most
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    ask_first: "ask_first",
    /// A balancer gives a request up after this time (default never)
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    timeout: "timeout",
    /// What protects the balancer, as its own flag: plain (25s for a request) or guarded (besides:
    /// ejection, 10s for an attempt, shedding); default: no limit at all
    #[arg(long, value_name = "P")]
    protection: "protection",
    /// Closed loop: calls in flight; twenty times as many callers wait their turn
    #[arg(long, value_name = "C", allow_hyphen_values = true)]
    slots: "slots",
    /// Closed loop: calls of one action (default 1)
    #[arg(long, value_name = "K", allow_hyphen_values = true)]
    calls: "calls",
    /// Closed loop: users who think, call and wait
    #[arg(long, value_name = "U", allow_hyphen_values = true)]
    users: "users",
    /// Their mean think time, exponential (default 0)
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    think: "think",
    /// Requests (default: the workload's, else 1000000)
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    requests: "requests",
    /// Requests left out at the beginning (default: a tenth)
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    warmup: "warmup",
    /// Root of every random draw (default 1)
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    seed: "seed",
    /// Workers toggle between full speed and FACTOR of it after exponential times of this mean:
    /// MEAN[:FACTOR], factor 0.5 if not given
    #[arg(long, value_name = "D[:F]")]
    speed_drift: "speed_drift",
    /// From this share of the run on the sizes of the first, third, .. class are multiplied and the
    /// others divided: AT[:FACTOR], factor 3 if not given
    #[arg(long, value_name = "AT[:F]")]
    size_drift: "size_drift",
}

#[cfg(test)]
mod tests {
    use super::{Cli, Command, ScenarioFlags};
    use clap::{CommandFactory as _, Parser as _};
    use schema::scenario::Scenario;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_field_of_a_scenario_has_a_flag() {
        let command = Cli::command();
        let run = command.find_subcommand("run").expect("there");
        for field in Scenario::FIELDS.into_iter().chain(Scenario::DRIFTS) {
            let flag = match field {
                "name" => continue,
                "rate_rps" => "rate".to_string(),
                other => other.replace('_', "-"),
            };
            assert!(
                run.get_arguments()
                    .any(|a| a.get_long() == Some(flag.as_str())),
                "{field}"
            );
        }
        assert!(ScenarioFlags::default().texts().is_empty());
    }

    /// Every flag of a scenario given, so that what messages call each can be compared with what it is.
    #[test]
    fn messages_call_a_flag_as_the_command_line_does() {
        let command = Cli::command();
        let run = command.find_subcommand("run").expect("there");
        let single = run
            .get_arguments()
            .filter(|a| a.get_action().takes_values());
        let longs: Vec<String> = single
            .filter_map(|a| Some(format!("--{}", a.get_long()?)))
            .collect();
        let line = ["twin", "run"].into_iter().map(String::from);
        let flags = longs.iter().map(|long| format!("{long}=1"));
        let cli = Cli::try_parse_from(line.chain(flags)).expect("all flags");
        let Command::Run(given) = cli.command else {
            panic!("run was asked for")
        };
        let texts = given.scenario.texts();
        assert!(texts.len() > 25, "{}", texts.len());
        for (field, flag, _) in texts {
            assert!(longs.contains(&flag), "{field}: {flag} of {longs:?}");
        }
    }
}
