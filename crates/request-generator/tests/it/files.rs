//! What is written, and that it is written whole.

use std::fs;

use sha2::{Digest as _, Sha256};

use crate::{generator, stderr, stdout, workloads};

/// The commands that workloads/README.md gives, without the program's name.
fn commands() -> Vec<Vec<String>> {
    let readme = fs::read_to_string(workloads().join("README.md")).expect("workloads/README.md");
    readme
        .lines()
        .filter_map(|line| line.trim().strip_prefix("request-generator generate "))
        .map(|rest| {
            let words = std::iter::once("generate").chain(rest.split_whitespace());
            words.map(str::to_string).collect()
        })
        .collect()
}

#[test]
fn every_shipped_workload_is_made_again_by_the_command_in_the_readme() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut made = Vec::new();
    for mut command in commands() {
        let out = command.pop().expect("--out FILE comes last");
        let name = out
            .strip_prefix("workloads/")
            .expect("a file of workloads/");
        let path = folder.path().join(name);
        let path_text = path.to_str().expect("text");
        let mut arguments: Vec<&str> = command.iter().map(String::as_str).collect();
        arguments.push(path_text);
        let output = generator(&arguments);
        assert!(output.status.success(), "{}", stderr(&output));
        let shipped = fs::read(workloads().join(name)).expect("shipped");
        assert!(fs::read(&path).expect("made") == shipped, "{name} differs");
        made.push(name.to_string());
    }
    let mut shipped: Vec<String> = fs::read_dir(workloads())
        .expect("workloads")
        .map(|f| f.expect("entry").file_name().into_string().expect("text"))
        .filter(|name| name.ends_with(".json"))
        .collect();
    shipped.sort();
    made.sort();
    assert_eq!(made, shipped);
}

#[test]
fn the_papers_workload_has_its_shape() {
    let text = fs::read_to_string(workloads().join("paper.json")).expect("shipped");
    let paper = schema::workload::Workload::parse("paper.json", &text).expect("valid");
    assert_eq!((paper.apis.len(), paper.requests()), (100, 20_000));
    assert!((paper.mean_task_size_mi() - 412.0).abs() <= 1.0);
    let text = fs::read_to_string(workloads().join("quick.json")).expect("shipped");
    let quick = schema::workload::Workload::parse("quick.json", &text).expect("valid");
    assert_eq!(quick.apis, paper.apis);
    assert_eq!(quick.requests(), 800);
}

#[test]
fn the_scenarios_have_their_shape() {
    for (name, cores, sizes_mi) in [
        ("w", 9.0, "20 40 60 90 120 160 220 300 400 600"),
        ("s", 1.8, "20 40 60 90 120 160 220 300 400 600"),
        ("w-heavy", 9.0, "10 10 10 20 20 20 40 40 40 1800"),
        ("s-heavy", 1.8, "10 10 10 20 20 20 40 40 40 1800"),
    ] {
        let file = format!("scenario-{name}.json");
        let text = fs::read_to_string(workloads().join(&file)).expect("shipped");
        let workload = schema::workload::Workload::parse(&file, &text).expect("valid");
        assert_eq!((workload.apis.len(), workload.requests()), (10, 22_000));
        let sizes = workload.apis.iter().map(|a| a.task_size_mi.to_string());
        assert_eq!(sizes.collect::<Vec<_>>().join(" "), sizes_mi);
        let mut urls: Vec<&str> = workload.apis.iter().map(|a| a.url.as_str()).collect();
        urls.sort_unstable();
        urls.dedup();
        assert_eq!(urls.len(), 7);
        // 1,500 million instructions a second and core, 201 a request, six tenths of the time.
        let load = 201.0 / (1500.0 * cores) / (workload.mean_gap_ms() / 1e3);
        assert!((load - 0.6).abs() < 1e-9, "{load}");

        let schedule = schema::schedule::expand(&workload);
        let factors: Vec<f64> = schedule
            .iter()
            .map(|due| due.task_size_mi / workload.apis[due.api as usize].task_size_mi)
            .collect();
        let n = factors.len() as f64;
        let mean = factors.iter().sum::<f64>() / n;
        let cv = (factors.iter().map(|f| (f - mean) * (f - mean)).sum::<f64>() / n).sqrt();
        // Five standard errors; of the spread sqrt((kurtosis - 1) / 4n), kurtosis about 3.7.
        assert!((mean - 1.0).abs() < 5.0 * 0.2 / n.sqrt(), "{mean}");
        assert!(
            (cv / 0.2 - 1.0).abs() < 5.0 * (2.7 / (4.0 * n)).sqrt(),
            "{cv}"
        );
    }
}

#[test]
fn a_rate_in_percent_is_that_share_of_the_stated_capacity() {
    let made = |arrivals: &str| {
        let flags = [
            "generate",
            "--seed",
            "3",
            "--sizes",
            "constant:500",
            "--cores",
            "1,0.5",
            "--mips-per-core",
            "2000",
            "--arrivals",
            arrivals,
        ];
        let text = stdout(&generator(&flags));
        schema::workload::Workload::parse("stdout", &text).expect("valid")
    };
    // 1.5 cores of 2,000 MIPS finish six requests of 500 MI a second.
    for arrivals in [
        "constant:50%",
        "poisson:50%",
        "gamma:50%:3",
        "sine:50%:0.5:10s",
    ] {
        let gap_ms = made(arrivals).mean_gap_ms();
        assert!(
            (gap_ms / 333.333 - 1.0).abs() < 2e-3,
            "{arrivals}: {gap_ms}"
        );
    }
    let ramp = made("ramp:0%:100%:60s:100%:0s");
    let schedule = schema::schedule::expand(&ramp);
    // 180 expected on the slope, six a second after it.
    let early = schedule
        .iter()
        .filter(|d| d.intended_ns < 60_000_000_000)
        .count() as f64;
    assert!((early - 180.0).abs() < 5.0 * 180_f64.sqrt(), "{early}");
    assert_eq!(ramp.generator["cores"], "1,0.5");
}

#[test]
fn the_schedule_is_printed_with_every_request_in_order() {
    let quick = workloads().join("quick.json");
    let output = generator(&["expand", quick.to_str().expect("text")]);
    let csv = stdout(&output);
    let mut lines = csv.lines();
    assert_eq!(
        lines.next(),
        Some("seq,intended_ns,api_id,method,url,task_size_mi")
    );
    let lines: Vec<&str> = lines.collect();
    assert_eq!(lines.len(), 800);
    assert!(lines[0].starts_with("0,0,api-"));
    assert!(lines[799].starts_with("799,7990000000,api-"));

    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("schedule.csv");
    let to_file = generator(&[
        "expand",
        quick.to_str().expect("text"),
        "--out",
        out.to_str().expect("text"),
    ]);
    assert!(to_file.status.success());
    assert_eq!(fs::read_to_string(out).expect("written"), csv);
}

#[test]
fn the_same_arguments_give_the_same_bytes_and_another_seed_others() {
    let generate = |seed: &str| {
        let flags = [
            "generate",
            "--apis",
            "7",
            "--runs",
            "3",
            "--seed",
            seed,
            "--arrivals",
            "poisson:80",
            "--order",
            "round",
        ];
        stdout(&generator(&flags))
    };
    assert_eq!(generate("1"), generate("1"));
    assert_ne!(generate("1"), generate("2"));
    let workload = schema::workload::Workload::parse("stdout", &generate("1")).expect("valid");
    assert_eq!(workload.name, "workload");
}

#[test]
fn the_bytes_do_not_depend_on_where_they_are_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("calls.csv");
    fs::write(&trace, "0.5,GET,/a,3\n0.7,PUT,/b,4\n").expect("written");
    let trace = trace.to_str().expect("text");
    for arguments in [
        vec!["generate", "--apis", "5", "--runs", "4", "--seed", "42"],
        vec!["import", "--format", "csv", trace],
    ] {
        let printed = stdout(&generator(&arguments));
        assert!(printed.contains("\"name\": \"workload\""), "{printed}");
        for name in ["first.json", "second.json"] {
            let path = folder.path().join(name);
            let out = path.to_str().expect("text");
            assert!(
                generator(&[&arguments[..], &["--out", out]].concat())
                    .status
                    .success()
            );
            assert!(
                fs::read_to_string(&path).expect("made") == printed,
                "{name} differs"
            );
        }
    }
}

#[test]
fn a_failed_write_says_where_and_leaves_the_old_file_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("no/such/folder/w.json");
    let out = out.to_str().expect("text");
    let output = generator(&["generate", "--seed", "1", "--out", out]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).starts_with(&format!("error: cannot write {out}: ")));
    assert_eq!(stderr(&output).lines().count(), 1);

    let is_folder = folder.path().to_str().expect("text");
    let output = generator(&["generate", "--seed", "1", "--out", is_folder]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert_eq!(fs::read_dir(folder.path()).expect("folder").count(), 0);
}

/// Pinned, since whoever has the same arguments must get the same bytes, on every machine and in
/// every later version: what they should be is tested against theory beside the laws.
#[test]
fn the_bytes_of_every_law_are_these() {
    let cases = [
        (
            "--arrivals constant:60%",
            "0541b4479e66f50fd78d9d9c18b008787511d51a0b46648cbcffd6d752895adb",
        ),
        (
            "--arrivals poisson:80 --order round --size-cv 0.2",
            "28da1c14e0d8c76f05247d834d4e00e3c573bf437ce9a81c7f8b3732eb26f305",
        ),
        (
            "--arrivals gamma:60%:3 --sizes exponential:400",
            "6e092c43d61a849689c0ec0fba5fcf0ebbb6699ea75bd1be97105cd9a2da7d9a",
        ),
        (
            "--arrivals gamma:80:0.3 --sizes bimodal:100:2000:0.1",
            "cf3af82aa8a4a9252eb5c3f353b8899a05b81263b026d64a9aed8a1d4f192b01",
        ),
        (
            "--arrivals sine:80:1:500ms --sizes pareto:400:1.5",
            "863732fb664bef296dfccd01f06557c166735ca53e34d37d8741114762980d29",
        ),
        (
            "--arrivals ramp:0:90:2s:20:0s --urls 50 --sizes h2:400:4",
            "4b153bb49db1d8506216f215d6bfb430df7a9a95071bc3136abacb8be544ad3b",
        ),
    ];
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("w.json");
    let path = path.to_str().expect("text");
    for (flags, expected) in cases {
        let mut arguments = vec!["generate", "--seed", "42", "--runs", "5", "--name", "w"];
        arguments.extend(["--out", path]);
        arguments.extend(flags.split_whitespace());
        assert!(generator(&arguments).status.success(), "{flags}");
        let schedule = generator(&["expand", path]).stdout;
        let bytes = [fs::read(path).expect("made"), schedule].concat();
        assert_eq!(format!("{:x}", Sha256::digest(bytes)), expected, "{flags}");
    }
}
