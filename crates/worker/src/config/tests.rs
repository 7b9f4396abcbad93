use super::{Config, Plan};
use crate::calibrate::Calibration;
use crate::cli::Cli;

const HOST: Calibration = Calibration {
    loop_name: "x",
    native_mips_per_core: 10_000.0,
    native_mips_all_busy: 7_500.0,
    host_cores: 2,
};

fn config(flags: &str) -> Result<Config, String> {
    let words = std::iter::once("worker").chain(flags.split_whitespace());
    let cli = console::arguments_from::<Cli>(words).map_err(|e| e.to_string())?;
    Config::try_new(&cli.serve).map_err(|problems| problems.to_string())
}

fn plan(flags: &str, quota_cores: Option<f64>) -> Plan {
    config(flags).expect("good flags").plan(&HOST, quota_cores)
}

#[test]
fn bad_values_name_the_flag_the_value_and_the_bound() {
    for (flags, expected) in [
        (
            "--cores 0",
            "--cores: 0: out of bounds (allowed: 0.05 to 100000)",
        ),
        ("--cores NaN", "--cores: NaN: out of bounds"),
        ("--cores -1", "--cores: -1: out of bounds"),
        ("--cores 2000", "--cores: 2000: too many burn lanes"),
        ("--name a/b", "--name: a/b: not a plain name"),
        ("--mips-per-core fast", "--mips-per-core: fast: not a speed"),
        ("--mips-per-core -1", "--mips-per-core: -1: not a speed"),
        (
            "--burn-fraction 1.1",
            "--burn-fraction: 1.1: not a fraction",
        ),
        (
            "--burn-fraction -0.1",
            "--burn-fraction: -0.1: not a fraction",
        ),
        ("--cores 4 --pool-cores 3", "--pool-cores: 3: below --cores"),
        ("--max-active 0", "--max-active: 0: out of bounds"),
        (
            "--mips-per-core native --burn-fraction 0.5",
            "--burn-fraction: 0.5: native speed runs everything",
        ),
        (
            "--mips-per-core native --discipline fcfs --cores 2.4",
            "--cores: 2.4: 2 native fcfs servers would each be faster than a core",
        ),
    ] {
        let error = config(flags).expect_err(flags);
        assert!(error.contains(expected), "{flags}: {error}");
    }
}

#[test]
fn a_pinned_worker_burns_what_the_host_has_room_for() {
    let plan = plan("--cores 4 --pool-cores 9", None);
    assert_eq!((plan.shape.burn_fraction, plan.lanes), (0.083, 4));
    assert!(plan.pinned && plan.warnings.is_empty());
}

#[test]
fn a_fraction_above_the_rule_is_kept_and_warned_about() {
    let plan = plan("--cores 4 --pool-cores 9 --burn-fraction 0.5", None);
    assert_eq!(plan.shape.burn_fraction, 0.5);
    assert_eq!(plan.warnings.len(), 1);
}

#[test]
fn lanes_follow_cores_servers_quota_and_fraction() {
    assert_eq!(plan("--cores 2.4", None).lanes, 3);
    assert_eq!(plan("--cores 2.4 --discipline fcfs", None).lanes, 2);
    assert_eq!(plan("--cores 4", Some(2.5)).lanes, 2);
    assert_eq!(plan("--cores 0.5", Some(0.2)).lanes, 1);
    assert_eq!(plan("--cores 5000 --burn-fraction 0", None).lanes, 0);
}

#[test]
fn native_speed_runs_everything_at_the_speed_measured() {
    let plan = plan("--cores 2 --mips-per-core native", None);
    assert_eq!(plan.shape.mips_per_core, 10_000.0);
    assert_eq!((plan.shape.burn_fraction, plan.pinned), (1.0, false));
}
