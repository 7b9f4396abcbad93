//! `twin sweep` and `twin table` from outside: the same bytes whatever the threads and interruptions.

use crate::{stderr, stdout, twin};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const SWEEP: &str = r#"{"schema":"plumbline.sweep/1","name":"t","seeds":3,
    "base":{"requests":REQUESTS,"network_delay":"1ms"},
    "grids":[
      {"axes":[{"name":"pool","cases":{"W":{"cores":[4,3,2]},"S":{"cores":[0.8,0.6]}}},
               {"field":"load","values":[0.5,0.9]},
               {"field":"poll_arrivals","values":[1,13]},
               {"field":"strategy","values":["round-robin","peak-ewma:decay=5s,choices=2","polled-own-sends"]}]},
      {"base":{"strategy":"p2c"},"axes":[{"field":"balancers","values":[1,4]}]}]}"#;

struct Sweep {
    folder: tempfile::TempDir,
}

impl Sweep {
    fn new(requests: u32) -> Self {
        let sweep = Self {
            folder: tempfile::tempdir().expect("a folder"),
        };
        sweep.write(&SWEEP.replace("REQUESTS", &requests.to_string()));
        sweep
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, text: &str) {
        fs::write(self.path("s.json"), text).expect("written");
    }

    fn command(&self, out: &str, threads: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_twin"));
        command.arg("sweep").arg(self.path("s.json"));
        command.arg("--out").arg(self.path(out));
        command.args(["--quiet", "--threads", threads]);
        command
    }

    /// Starts the sweep and kills it as soon as its journal is as wanted; tells the journal.
    fn killed(&self, out: &str, threads: &str, is_enough: impl Fn(&Path) -> bool) -> PathBuf {
        let partial = self.path(&format!("{out}.partial"));
        let mut child = self.command(out, threads).spawn().expect("starts");
        while !is_enough(&partial) {
            assert!(
                child.try_wait().expect("known").is_none(),
                "ended too early"
            );
            std::thread::yield_now();
        }
        child.kill().expect("killed");
        child.wait().expect("ended");
        partial
    }

    fn run(&self, out: &str, threads: &str) -> String {
        let output = self.command(out, threads).output().expect("starts");
        assert!(output.status.success(), "{}", stderr(&output));
        fs::read_to_string(self.path(out)).expect("a result")
    }
}

#[test]
fn one_thread_two_threads_and_a_killed_sweep_give_the_same_bytes() {
    let sweep = Sweep::new(4000);
    let one = sweep.run("one.csv", "1");
    assert_eq!(one.lines().count(), 1 + 26 * 3);
    assert_eq!(one, sweep.run("two.csv", "2"));

    // Killed when a few rows are there; the journal stays, the same command goes on.
    let rows = |path: &Path| fs::read_to_string(path).map_or(0, |text| text.lines().count());
    let partial = sweep.killed("cut.csv", "2", |partial| rows(partial) >= 4);
    let kept = fs::read(&partial).expect("the journal stays");
    assert!(!sweep.path("cut.csv").exists() && kept.len() > 100);
    // Even in the middle of a line, and of a letter.
    fs::write(&partial, [&kept[..kept.len() - 5], &[0xc3]].concat()).expect("written");
    let mut again = sweep.command("cut.csv", "2");
    let output = again.stderr(Stdio::piped()).output().expect("starts");
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("runs are done already"));
    assert_eq!(
        fs::read_to_string(sweep.path("cut.csv")).expect("a result"),
        one
    );
    assert!(!partial.exists());
}

#[test]
fn a_row_is_the_run_that_twin_run_makes() {
    let sweep = Sweep::new(20_000);
    let text = sweep.run("out.csv", "2");
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let names = reader.headers().expect("names").clone();
    let at = |name: &str| names.iter().position(|n| n == name).expect(name);
    let rows: Vec<_> = reader.records().map(|r| r.expect("a row")).collect();
    assert!(
        rows.iter()
            .enumerate()
            .all(|(i, row)| row[0] == i.to_string())
    );
    // W at load .5, 13 arrivals per poll, the third strategy, the third seed.
    let row = &rows[(3 + 2) * 3 + 2];
    let labels = [
        "pool",
        "poll_arrivals",
        "strategy",
        "balancers",
        "seed",
        "load",
    ]
    .map(|c| &row[at(c)]);
    assert_eq!(labels, ["W", "13", "polled-own-sends", "", "3", "0.5"]);
    // .5 of nine cores with a mean of 100 ms: 45 a second.
    let poll = format!("{}s", 13.0 / 45.0);
    let run = crate::run_json(&[
        "--strategy",
        "polled-own-sends",
        "--load",
        "0.5",
        "--requests",
        "20000",
        "--network-delay",
        "1ms",
        "--seed",
        "3",
        "--poll",
        &poll,
    ]);
    let number = |name: &str| row[at(name)].parse::<f64>().expect(name);
    for name in ["mean_ms", "half_width_ms", "p99_ms"] {
        let expected = run[name].as_f64().expect("a number");
        assert!(
            (number(name) / expected - 1.0).abs() < 1e-3,
            "{name}: {} {expected}",
            number(name)
        );
    }
    assert_eq!(&row[at("arrivals_per_poll")], "13");
    assert!((number("utilization_max") - 0.5).abs() < 0.1 && number("jain") > 0.98);
    assert!(number("slowdown") > 1.0);
    // Equal shares at .9 are unstable: the word, the worker, and no figure of latency.
    let bad = &rows[6 * 3];
    assert_eq!(
        (
            &bad[at("load")],
            &bad[at("verdict")],
            &bad[at("overloaded")]
        ),
        ("0.9", "unstable", "c")
    );
    for name in [
        "mean_ms",
        "half_width_ms",
        "mean_over_service",
        "slowdown",
        "p50_ms",
        "p99_ms",
    ] {
        assert!(bad[at(name)].is_empty(), "{name}");
    }
    // Two workers have two shares.
    let last = rows
        .iter()
        .find(|row| &row[at("pool")] == "S")
        .expect("a row");
    assert!(!last[at("share_b")].is_empty() && last[at("share_c")].is_empty());

    let out = sweep.path("out.csv");
    let table = |more: &[&str]| {
        let base = [
            "table",
            out.to_str().expect("text"),
            "--rows",
            "poll_arrivals",
        ];
        twin(&[&base, more].concat())
    };
    let output = table(&[
        "--where",
        "load=0.5",
        "--where",
        "pool=W",
        "--cross",
        "round-robin",
    ]);
    let text = stdout(&output);
    assert!(
        text.starts_with("poll_arrivals "),
        "{text} {}",
        stderr(&output)
    );
    assert!(
        text.lines()
            .any(|line| line.starts_with("13 ") && line.contains(" +- "))
    );
    let output = table(&["--where", "load=0.5"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("pool: varies"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_workload_that_keeps_its_times_has_another_schedule_for_each_seed() {
    let sweep = Sweep::new(1000);
    sweep.write(
        r#"{"schema":"plumbline.sweep/1","name":"t","seeds":3,"base":{"workload":"w.json"},
            "grids":[{"axes":[{"field":"strategy","values":["round-robin"]}]}]}"#,
    );
    let workload = r#"{"schema":"plumbline.workload/1","name":"w","seed":3,"apis":[
        {"id":"a","method":"GET","url":"/a","task_size_mi":300.0}],
        "runs":1000,"order":"shuffled","arrivals":{"process":"poisson","rate_rps":60.0}}"#;
    fs::write(sweep.path("w.json"), workload).expect("written");
    let text = sweep.run("out.csv", "2");
    let mut means: Vec<String> = text
        .lines()
        .skip(1)
        .map(|line| line.split(",").nth(9).expect("a mean").to_string())
        .collect();
    means.dedup();
    assert_eq!(means.len(), 3, "{text}");
}

#[test]
fn a_changed_file_is_refused_and_nothing_is_lost() {
    let sweep = Sweep::new(300_000);
    let length = |path: &Path| fs::metadata(path).map_or(0, |m| m.len());
    let partial = sweep.killed("out.csv", "1", |partial| length(partial) > 0);
    let before = fs::read(&partial).expect("a journal");
    sweep.write(&SWEEP.replace("REQUESTS", "300001"));
    let output = sweep.command("out.csv", "1").output().expect("starts");
    assert_eq!(output.status.code(), Some(2));
    let text = stderr(&output);
    assert!(
        text.contains("belongs to a sweep of another file") && text.contains("to start anew"),
        "{text}"
    );
    assert_eq!(fs::read(&partial).expect("a journal"), before);
}

#[test]
fn what_cannot_be_swept_is_refused_before_the_first_run() {
    let sweep = Sweep::new(1000);
    let cases = [
        ("{", "s.json:1:"),
        (
            &SWEEP.replace("REQUESTS", "0"),
            "base.requests: 0: out of range (allowed: 1 to 1000000000000)",
        ),
        (
            &SWEEP
                .replace("REQUESTS", "1000")
                .replace("round-robin", "rund-robin"),
            "(pool = W, load = 0.5, poll_arrivals = 1, strategy = rund-robin): strategy: unknown strategy",
        ),
        (
            &SWEEP.replace("REQUESTS", "1000,\"workload\":\"gone.json\""),
            "cannot read",
        ),
        (
            &SWEEP.replace("REQUESTS", "1000,\"poll\":\"1s\""),
            "poll_arrivals: both an interval and its arrivals",
        ),
        (
            &SWEEP
                .replace("REQUESTS", "1000")
                .replace("\"pool\"", "\"jain\""),
            "the result has a column of this name",
        ),
    ];
    for (text, said) in cases {
        sweep.write(text);
        let output = sweep.command("out.csv", "2").output().expect("starts");
        let error = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{said}: {error}");
        assert!(error.contains(said), "{said}\n{error}");
        assert!(!sweep.path("out.csv.partial").exists() && !sweep.path("out.csv").exists());
    }
    let output = twin(&["sweep", "/no/such/file.json"]);
    assert_eq!(output.status.code(), Some(2));
    sweep.write(&SWEEP.replace("REQUESTS", "1000"));
    let output = sweep.command("s.json", "1").output().expect("starts");
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("is the file that is read"));
}

#[test]
fn the_sweeps_shipped_are_good_and_say_their_cells() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sweeps");
    let dry = |name: &str| {
        let file = folder.join(name);
        let output = twin(&["sweep", file.to_str().expect("text"), "--dry-run"]);
        assert!(output.status.success(), "{name}: {}", stderr(&output));
        stdout(&output)
    };
    // Three loads, ten intervals, five strategies, eight seeds of 200,000.
    assert_eq!(
        dry("staleness.json"),
        "1200 runs of 240000000 requests in all\n"
    );
    // {W, S} PS and W FIFO at 3 loads steady, 2 with speeds and 1 with sizes that drift; W at .42 both with all
    // three; x 2 traffics x {1, 4} x 3 intervals x 10 strategies x 8 seeds.
    assert_eq!(
        dry("matrix.json"),
        format!(
            "{} runs of {} requests in all\n",
            288 * 80,
            288_u64 * 80 * 22_000
        )
    );
    // Even gaps: 8 intervals x 20 strategies and 2 loads x 10; random ones: 3 loads x 2 intervals x 20.
    let causes = (8 * 20 + 2 * 10 + 3 * 2 * 20) * 8;
    // {even, random} gaps x 4 pairs of intervals x 3 strategies.
    let features = 2 * 4 * 3 * 24;
    // 6 loads x 7 intervals x 3 strategies.
    let reproduction = 6 * 7 * 3 * 8;
    // {W, S} PS and W FIFO, x 2 traffics x (4 steady loads x 4 strategies + 2 loads x 4 where sizes drift and
    // x 5 where speeds do), and {W, S} x 2 loads x 4 variants.
    let prediction = (3 * 2 * (4 * 4 + 2 * 4 + 2 * 5) + 2 * 2 * 4) * 24;
    // {W, S} x 2 loads x {unasked, asked first} x 6 strategies.
    let balancers = 2 * 2 * 2 * 6 * 8;
    for (name, runs) in [
        ("causes.json", causes),
        ("features.json", features),
        ("reproduction.json", reproduction),
        ("prediction.json", prediction),
        ("balancers.json", balancers),
    ] {
        let said = format!("{runs} runs of {} requests in all\n", runs * 22_000);
        assert_eq!(dry(name), said, "{name}");
    }
}

#[test]
fn no_result_takes_the_place_of_a_file_that_is_read() {
    let sweep = Sweep::new(1000);
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let copy = |from: &str, to: &str| fs::copy(shipped.join(from), sweep.path(to)).expect("copied");
    copy("workloads/quick.json", "w.json");
    copy("workloads/quick.json", "b.csv.partial");
    copy("workloads/quick.json", "c.csv.whole");
    copy("models/live.plbtab", "live.plbtab");
    let axis = r#"{"name":"what","cases":{
        "a":{"workload":"w.json"},"b":{"workload":"b.csv.partial"},"c":{"workload":"c.csv.whole"},
        "d":{"model":["live.plbtab"]}}}"#;
    sweep.write(&format!(
        r#"{{"schema":"plumbline.sweep/1","name":"t","seeds":1,"base":{{"strategy":"random"}},
            "grids":[{{"axes":[{axis}]}}]}}"#
    ));
    let names = ["w.json", "b.csv.partial", "c.csv.whole", "live.plbtab"];
    let read = || names.map(|name| fs::read(sweep.path(name)).expect("there"));
    let before = read();
    for out in ["w.json", "b.csv", "c.csv", "live.plbtab"] {
        let output = sweep.command(out, "1").output().expect("starts");
        assert_eq!(output.status.code(), Some(2), "{out}: {}", stderr(&output));
        assert!(
            stderr(&output).contains("is the file that is read"),
            "{out}"
        );
    }
    assert!(before == read());
}

#[test]
fn two_sweeps_do_not_make_one_result() {
    let sweep = Sweep::new(100_000);
    let rows = |path: &Path| fs::read_to_string(path).map_or(0, |text| text.lines().count());
    let mut first = sweep.command("out.csv", "1").spawn().expect("starts");
    while rows(&sweep.path("out.csv.partial")) == 0 {
        assert!(
            first.try_wait().expect("known").is_none(),
            "ended too early"
        );
        std::thread::yield_now();
    }
    let second = sweep.command("out.csv", "1").output().expect("starts");
    first.kill().expect("killed");
    first.wait().expect("ended");
    assert_eq!(second.status.code(), Some(2), "{}", stderr(&second));
    assert!(stderr(&second).contains("is being made by another sweep"));
}
