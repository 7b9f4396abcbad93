//! Traces become workloads with the requests, times and sizes they state.

use std::fs;
use std::path::{Path, PathBuf};

use schema::schedule::{Due, expand};
use schema::workload::{Method, Workload};

use crate::{generator, stderr, stdout, workloads};

fn azure() -> String {
    let path = workloads().join("traces/azure-llm-2023-code.csv");
    path.to_str().expect("text").to_string()
}

/// Imports `trace` and returns the workload and what was said.
fn import(arguments: &[&str]) -> (Workload, String) {
    let output = generator(&[&["import"], arguments].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let workload = Workload::parse("stdout", &stdout(&output)).expect("valid");
    (workload, stderr(&output))
}

fn file(folder: &Path, name: &str, text: &str) -> String {
    let path: PathBuf = folder.join(name);
    fs::write(&path, text).expect("written");
    path.to_str().expect("text").to_string()
}

fn total_mi(schedule: &[Due]) -> f64 {
    schedule.iter().map(|due| due.task_size_mi).sum()
}

#[test]
fn the_azure_trace_keeps_every_request_token_and_moment() {
    let (workload, said) = import(&["--format", "azure-llm", &azure()]);
    assert_eq!(said, "");
    let schedule = expand(&workload);
    // awk -F, 'NR>1{n++; c+=$2; g+=$3} END{print n, c, g}': 8819 18059974 245896.
    assert_eq!(schedule.len(), 8819);
    let expected_mi = 0.1 * 18_059_974.0 + 2.0 * 245_896.0;
    assert!((total_mi(&schedule) - expected_mi).abs() < 1e-3);
    // From 18:17:03.979960 to 19:14:19.928016.
    assert_eq!(schedule[0].intended_ns, 0);
    assert_eq!(schedule[8818].intended_ns, 3_435_948_056_000);
    // Its third row: 18:17:04.078149, 110 tokens read and 27 written.
    assert_eq!(schedule[2].intended_ns, 98_189_000);
    assert_eq!(schedule[2].task_size_mi, 65.0);
    assert_eq!(workload.apis.len(), 1);
    assert_eq!(workload.apis[0].method, Method::Post);
    // The trace's own digest, by sha256sum.
    assert_eq!(
        workload.generator["trace_sha256"],
        "54e9a6d2a4bd06ba1e060304b900abbc74cbea53de96506e60fe5bb4f2277fb6"
    );
    let (again, _) = import(&["--format", "azure-llm", &azure()]);
    assert_eq!(again.sha256, workload.sha256);
}

#[test]
fn the_azure_trace_can_be_cut_sped_up_and_weighed_otherwise() {
    let trace = azure();
    let (workload, said) = import(&[
        "--format",
        "azure-llm",
        &trace,
        "--speed",
        "20",
        "--limit",
        "100",
        "--mi-per-context-token",
        "0",
        "--mi-per-generated-token",
        "0.1",
    ]);
    let schedule = expand(&workload);
    // head -101 | awk -F, 'NR>1{g=0.1*$3; s+=g<1?1:g; k+=g<1} END{print s, k}': 241.4 34.
    assert_eq!(schedule.len(), 100);
    assert!((total_mi(&schedule) - 241.4).abs() < 1e-6);
    assert!(said.contains("note: 34 sizes below 1 MI"), "{said}");
    // The third row at twenty times the speed, to the microsecond.
    assert_eq!(schedule[2].intended_ns, 4_909_000);
}

#[test]
fn whole_seconds_are_spread_and_it_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let lines: String = (0..2000)
        .map(|i| {
            let (second, page) = (i / 100, i % 7);
            format!(
                "10.0.0.1 - - [10/Oct/2000:13:55:{:02} -0700] \"GET /p/{page}?id={i} HTTP/1.1\" 200 1\n",
                36 + second
            )
        })
        .collect();
    let log = file(folder.path(), "access.log", &lines);
    let (workload, said) = import(&["--format", "clf", &log]);
    assert!(said.contains("the stamps are whole seconds"), "{said}");
    let schedule = expand(&workload);
    assert_eq!((workload.apis.len(), schedule.len()), (7, 2000));
    let mut fractions: Vec<f64> = Vec::new();
    for second in 0..20_u64 {
        let (from, to) = (second * 1_000_000_000, (second + 1) * 1_000_000_000);
        let due: Vec<u64> = schedule.iter().map(|due| due.intended_ns).collect();
        let within: Vec<u64> = due
            .into_iter()
            .filter(|t| (from..=to).contains(t))
            .collect();
        assert_eq!(within.len(), 100, "second {second}");
        fractions.extend(within.iter().map(|t| (t - from) as f64 / 1e9));
    }
    // Uniform by Massart's bound, false alarm below one in a million.
    fractions.sort_by(f64::total_cmp);
    let n = fractions.len() as f64;
    let distance = fractions.iter().enumerate().fold(0.0_f64, |most, (i, x)| {
        most.max((x - i as f64 / n).abs())
            .max((x - (i + 1) as f64 / n).abs())
    });
    assert!(distance < (2e6_f64.ln() / (2.0 * n)).sqrt(), "{distance}");
    // One size for each API, by the paper's law.
    for due in &schedule {
        assert_eq!(
            due.task_size_mi,
            workload.apis[due.api as usize].task_size_mi
        );
        assert!((250.0..=750.0).contains(&due.task_size_mi));
    }

    let (other, _) = import(&["--format", "clf", &log, "--seed", "2"]);
    assert_ne!(expand(&other), schedule);
    let (kept, said) = import(&["--format", "clf", &log, "--keep-stamps"]);
    assert_eq!(said, "");
    assert!(
        expand(&kept)
            .iter()
            .all(|due| due.intended_ns % 1_000_000_000 == 0)
    );
    let (queries, _) = import(&["--format", "clf", &log, "--keep-query"]);
    assert_eq!(queries.apis.len(), 2000);
    let (noisy, _) = import(&[
        "--format",
        "clf",
        &log,
        "--sizes",
        "constant:400",
        "--size-cv",
        "0.2",
    ]);
    let mean = total_mi(&expand(&noisy)) / 2000.0;
    // Five standard errors.
    assert!(
        (mean - 400.0).abs() < 5.0 * 80.0 / 2000_f64.sqrt(),
        "{mean}"
    );
}

#[test]
fn a_csv_trace_needs_no_header_no_order_and_no_sizes() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "url,timestamp,method,task_size_mi\r\n\
                /b,2024-01-01T00:00:01.5Z,POST,20\r\n\
                \r\n\
                \"/a,b\",2024-01-01 00:00:00.25,GET,10.5\r\n\
                http://example.org/b?x=1,2024-01-01T01:00:01.750+01:00,POST,30\r\n";
    let sized = file(folder.path(), "sized.csv", text);
    let (workload, said) = import(&["--format", "csv", &sized]);
    assert!(said.contains("note: 1 rows were earlier"), "{said}");
    let found: Vec<(u64, &str, f64)> = expand(&workload)
        .iter()
        .map(|due| {
            let url = workload.apis[due.api as usize].url.as_str();
            (due.intended_ns, url, due.task_size_mi)
        })
        .collect();
    assert_eq!(
        found,
        [
            (0, "/a,b", 10.5),
            (1_250_000_000, "/b", 20.0),
            (1_500_000_000, "/b", 30.0)
        ]
    );
    // The API's size is the mean of its calls.
    assert_eq!(workload.apis[0].task_size_mi, 25.0);

    let bare = file(
        folder.path(),
        "bare.csv",
        "7,GET,/a\n17,GET,/b\n12,GET,/a\n",
    );
    let (workload, _) = import(&[
        "--format",
        "csv",
        &bare,
        "--timestamp-unit",
        "ms",
        "--speed",
        "2",
    ]);
    let due: Vec<u64> = expand(&workload)
        .iter()
        .map(|due| due.intended_ns)
        .collect();
    assert_eq!(due, [0, 2_500_000, 5_000_000]);
}

#[test]
fn bad_rows_can_be_left_out_and_are_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut bytes =
        b"1.5,GET,/a\n2.5,HEAD,/a\nx,GET,/a\n3.5,GET,/\xff\n4.5,GET,/b\n5.5,GET\n".to_vec();
    let path = folder.path().join("t.csv");
    fs::write(&path, &bytes).expect("written");
    let trace = path.to_str().expect("text");
    let (workload, said) = import(&["--format", "csv", trace, "--skip-bad-rows"]);
    assert_eq!(workload.requests(), 2);
    assert!(said.contains("note: 4 bad rows were left out"), "{said}");
    bytes.truncate(0);
    bytes.extend(b"timestamp,method,url\n1,HEAD,/a\n");
    fs::write(&path, &bytes).expect("written");
    let output = generator(&["import", "--format", "csv", trace, "--skip-bad-rows"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("no request: all 1 rows are bad"));
}

#[test]
fn a_trace_beyond_the_limits_is_refused_and_a_part_of_it_is_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = file(folder.path(), "long.csv", &"1,GET,/a\n".repeat(1_000_001));
    let output = generator(&["import", "--format", "csv", &trace]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        stderr(&output),
        format!("error: {trace}: more than 1000000 requests; import a part with --limit 1000000\n")
    );
    let (part, _) = import(&["--format", "csv", &trace, "--limit", "5"]);
    assert_eq!(part.requests(), 5);

    let huge = fs::File::create(folder.path().join("huge.csv")).expect("made");
    huge.set_len(128 * 1024 * 1024 + 1).expect("sparse");
    let trace = folder.path().join("huge.csv");
    let output = generator(&["import", "--format", "csv", trace.to_str().expect("text")]);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(
        said.contains("huge.csv: is too large (allowed: up to 134217728 bytes)"),
        "{said}"
    );
}
