//! Every bad input: exit 2, one line each, with the place and the bound.

use std::fs;

use crate::{command, generator, output, stderr, workloads};

fn refused(arguments: &[&str]) -> String {
    let output = generator(arguments);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
    assert!(output.stdout.is_empty());
    assert!(text.starts_with("error: "), "{text}");
    text
}

#[test]
fn flags_out_of_bounds_are_refused_with_the_bound() {
    let cases = [
        (vec!["--apis", "0"], "100000"),
        (vec!["--apis", "-1"], "100000"),
        (vec!["--apis", "1e3"], "invalid digit"),
        (vec!["--apis", "100001"], "100000"),
        (vec!["--apis", "99999999999999999999"], "--apis"),
        (vec!["--urls", "0"], "100000"),
        (vec!["--urls", "101"], "20 to 100 for 100 APIs"),
        (vec!["--urls", "19"], "20 to 100 for 100 APIs"),
        (vec!["--runs", "0"], "10000000"),
        (vec!["--runs", "-5"], "10000000"),
        (vec!["--apis", "100000", "--runs", "101"], "up to 10000000"),
        (vec!["--seed", "-1"], "--seed"),
        (vec!["--arrivals", "constant:10"], "no unit"),
        (
            vec!["--arrivals", "constant:-10ms"],
            "not a number with a unit",
        ),
        (vec!["--arrivals", "poisson:-3"], "0.001 to 1000000"),
        (vec!["--arrivals", "poisson:NaN"], "0.001 to 1000000"),
        (vec!["--arrivals", "poisson:-60%"], "0.001 to 1000000"),
        (vec!["--arrivals", "gamma:80:NaN"], "0.01 to 100"),
        (vec!["--arrivals", "sine:80:-0.5:60s"], "amplitude -0.5"),
        (vec!["--arrivals", "ramp:80:NaN:60s"], "legs[0].to_rps NaN"),
        (vec!["--arrivals", "sometimes"], "constant:GAP"),
        (vec!["--arrivals", ""], "constant:GAP"),
        (
            vec!["--arrivals", "poisson:0.001", "--runs", "100000"],
            "10000000 requests would take 10000000000 s (allowed: up to 10000000 s)",
        ),
        (
            vec!["--arrivals", "poisson:60%", "--cores", "4,0,2"],
            "each 0.05 to 1024",
        ),
        (vec!["--cores", "4,x"], "\"x\" is not a number"),
        (vec!["--cores", "-4"], "each 0.05 to 1024"),
        (vec!["--cores", "NaN"], "each 0.05 to 1024"),
        (vec!["--mips-per-core", "0"], "1 to 1000000"),
        (vec!["--mips-per-core", "-1"], "1 to 1000000"),
        (vec!["--mips-per-core", "inf"], "1 to 1000000"),
        (vec!["--order", "random"], "shuffled, round, sequential"),
        (vec!["--sizes", "exponential:NaN"], "1 to 100000"),
        (vec!["--sizes", "list:1,2"], "2 sizes for 100 APIs"),
        (
            vec!["--sizes", "normal:5"],
            "(allowed: lognormal, lognormal:MEAN:CV, constant:MI, det:MI, exponential:MEAN, exp:MEAN, h2:MEAN:SCV, pareto:MEAN:A, bimodal:SMALL:LARGE:SHARE, list:MI,MI,..)",
        ),
        (
            vec!["--order", "random"],
            "unknown order (allowed: shuffled, round, sequential)",
        ),
        (vec!["--size-min-mi", "800"], "above --size-max-mi"),
        (vec!["--size-min-mi", "-1"], "1 to 100000"),
        (vec!["--size-median-mi", "NaN"], "1 to 100000"),
        (vec!["--size-sigma", "11"], "0 to 10"),
        (vec!["--size-median-mi", "90000"], "one draw in a thousand"),
        (vec!["--size-cv", "-0.1"], "0 to 10"),
        (vec!["--size-cv", "NaN"], "0 to 10"),
        (
            vec!["--sizes", "constant:1", "--size-cv", "0.2"],
            "more than one in a thousand requests of api-001 (1 MI)",
        ),
        (vec!["--name", ""], "1 to 128 bytes"),
        (vec!["--name", "a\nb"], "1 to 128 bytes"),
        (vec!["--nmae", "x"], "--name"),
    ];
    for (flags, expected) in cases {
        let arguments = [vec!["generate", "--seed", "1"], flags].concat();
        let text = refused(&arguments);
        assert!(text.contains(expected), "{arguments:?}: {text}");
    }
    assert!(refused(&["generate"]).contains("--seed"));
}

#[test]
fn a_bad_workload_names_its_place_and_a_missing_one_its_path() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("w.json");
    let path = path.to_str().expect("text");
    fs::write(
        path,
        "{\n  \"schema\": \"plumbline.workload/1\",\n  \"seed\": -1\n}",
    )
    .expect("written");
    let text = refused(&["expand", path]);
    assert!(text.contains(&format!("{path}:3:11: seed: -1: ")), "{text}");
    assert!(
        text.lines().all(|line| line.starts_with("error: ")),
        "{text}"
    );
    fs::write(path, b"{\xff}").expect("written");
    assert!(refused(&["expand", path]).contains("not UTF-8"));

    for (file, what) in [
        ("/no/such/workload.json", "cannot read it: "),
        ("/dev/zero", "is too large (allowed: up to 268435456 bytes)"),
    ] {
        let text = refused(&["expand", file]);
        assert!(
            text.starts_with(&format!("error: {file}: {what}")),
            "{text}"
        );
    }
}

#[test]
fn the_file_that_is_read_is_never_the_one_that_is_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("text").to_string();
    let (quick, link) = (path("quick.json"), path("link.json"));
    fs::copy(workloads().join("quick.json"), &quick).expect("copied");
    std::os::unix::fs::symlink(&quick, &link).expect("linked");
    let trace = path("trace.csv");
    fs::write(&trace, "1,GET,/a\n2,GET,/b\n").expect("written");
    let before = |name: &str| fs::read(name).expect("read");
    let (quick_before, trace_before) = (before(&quick), before(&trace));
    for arguments in [
        vec!["expand", &quick, "--out", &quick],
        vec!["expand", &quick, "--out", &link],
        vec!["expand", &link, "--out", &quick],
        vec!["import", "--format", "csv", &trace, "--out", &trace],
    ] {
        let text = refused(&arguments);
        assert!(text.contains("--out: "), "{text}");
        assert!(text.contains("is the file that is read"), "{text}");
    }
    assert_eq!(
        (before(&quick), before(&trace)),
        (quick_before, trace_before)
    );
}

#[test]
fn a_broken_workload_names_the_line_it_breaks_at() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("w.json");
    let path = path.to_str().expect("text");
    let shipped = fs::read_to_string(workloads().join("quick.json")).expect("shipped");
    let lines: Vec<&str> = shipped.lines().collect();
    let written = |lines: &[&str]| {
        fs::write(path, lines.join("\n")).expect("written");
        refused(&["expand", path])
    };

    // Line 9 loses its comma, so the parser stumbles at line 10.
    let mut broken = lines.clone();
    broken[8] = broken[8].trim_end_matches(',');
    let text = written(&broken);
    assert!(text.contains(&format!("{path}:10:")), "{text}");
    assert!(text.contains("not JSON"), "{text}");

    // Cut in the middle.
    let text = written(&lines[..40]);
    assert!(text.contains(&format!("{path}:40:")), "{text}");

    // Line 12 a second time.
    let mut doubled = lines.clone();
    doubled.insert(12, lines[11]);
    let text = written(&doubled);
    assert!(
        text.contains(&format!(
            "{path}:13:5: apis[6]: duplicate API: the id is that of apis[5]"
        )),
        "{text}"
    );
    assert!(
        text.contains("method and url are those of apis[5]; remove one"),
        "{text}"
    );
    assert!(text.contains("changed after it was written"), "{text}");
}

#[test]
fn a_bad_trace_names_file_line_column_bound_and_next_step() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace");
    let path = path.to_str().expect("text");
    let csv = "timestamp,method,url,task_size_mi\n";
    let azure = "TIMESTAMP,ContextTokens,GeneratedTokens\r\n";
    let line = "h - - [10/Oct/2000:13:55:36 -0700] ";
    let cases = [
        (
            "csv",
            format!("{csv}1,GET,/a,5\n2,GET,/b,-5\n"),
            "3:10: task_size_mi: -5: out of range (allowed: 1 to 100000); correct it, or leave such rows out with --skip-bad-rows",
        ),
        (
            "csv",
            format!("{csv}1,GET,/a,NaN\n"),
            "2:10: task_size_mi: NaN: out of range",
        ),
        (
            "csv",
            format!("{csv}1,GET,/a,\n"),
            "task_size_mi: not a number",
        ),
        (
            "csv",
            format!("{csv}1,\"GET\",\"/a b\",5\n"),
            "2:9: url: /a b: has characters that must be percent-encoded",
        ),
        (
            "csv",
            format!("{csv}1,GET,\"/a\n\",5\nnoon,GET,/a,5\n"),
            "4:1: timestamp: noon: not a time (allowed: seconds",
        ),
        (
            "csv",
            format!("{csv}1,FETCH,/a,5\n"),
            "2:3: method: FETCH: unknown method",
        ),
        (
            "csv",
            format!("{csv}1,get,/a,5\n"),
            "did you mean \"GET\"? (allowed: GET, POST, PUT, DELETE, PATCH)",
        ),
        (
            "csv",
            format!("{csv}1,GET,a,5\n"),
            "url: a: does not start with a slash",
        ),
        (
            "csv",
            format!("{csv}1,GET,/a\n"),
            "2:7: row: 3 fields in a row of 4",
        ),
        (
            "csv",
            "timestamp,metod,url\n".into(),
            "1:11: header: metod: unknown column; did you mean \"method\"?",
        ),
        (
            "csv",
            "timestamp,method\n".into(),
            "1:1: header: url: missing column (allowed: timestamp, method, url, task_size_mi)",
        ),
        (
            "csv",
            "url,url\n".into(),
            "1:5: header: url: the column is there twice",
        ),
        (
            "csv",
            "1,GET\n".into(),
            "row: 2 fields (allowed: timestamp, method, url, task_size_mi)",
        ),
        (
            "csv",
            "1,GET,/a\n99999999,GET,/a\n".into(),
            "the trace takes 99999998",
        ),
        ("csv", String::new(), "no request"),
        ("csv", csv.to_string(), "no request"),
        (
            "clf",
            format!("{line}\"GET /a HTTP/1.1\" 200 1\n\n{line}\"HEAD /a HTTP/1.1\" 200 1\n"),
            "3:37: method: HEAD: unknown method",
        ),
        (
            "clf",
            format!("{line}\"GET a HTTP/1.1\" 200 1\n"),
            "1:41: url: a: does not start with a slash",
        ),
        (
            "clf",
            format!("{line}\"-\" 408 0\n"),
            "1:37: request: -: no method and URL (allowed: \"GET /path HTTP/1.1\")",
        ),
        (
            "clf",
            format!("{line}\"GET /a\n"),
            "the request has no closing quote (allowed: host ident user",
        ),
        (
            "clf",
            "h - - 10/Oct/2000 \"GET / HTTP/1.1\"\n".into(),
            "1:1: no [time]",
        ),
        (
            "clf",
            "h - - [2000-10-10] \"GET / HTTP/1.1\"\n".into(),
            "1:8: time: 2000-10-10: not a time",
        ),
        (
            "azure-llm",
            format!("{azure}2023-11-16 18:17:03.9,1,2\r\n2023-11-16 18:17:04.1,1,x\r\n"),
            "3:25: GeneratedTokens: x: not a count of tokens (allowed: 0 to 100000000)",
        ),
        (
            "azure-llm",
            format!("{azure}2023-11-16 18:17:03.9,9999999,2\r\n"),
            "2:23: task_size_mi: 1000003.9: too large (allowed: up to 100000); lower --mi-per-context-token",
        ),
        (
            "azure-llm",
            "TIMESTAMP,ContextTokens\n".into(),
            "GeneratedTokens: missing column",
        ),
        (
            "azure-llm",
            format!("{azure}2023-11-31 18:17:03.9,1,2\n"),
            "2:1: TIMESTAMP: 2023-11-31 18:17:03.9: not a time",
        ),
    ];
    for (format, text, expected) in cases {
        fs::write(path, &text).expect("written");
        let found = refused(&["import", "--format", format, path]);
        assert!(found.contains(expected), "{text}: {found}");
        assert!(found.contains(&format!("error: {path}:")), "{found}");
    }
    fs::write(path, b"1,GET,/a\n1,GET,/\xff\n").expect("written");
    let found = refused(&["import", "--format", "csv", path]);
    assert!(found.contains(":2:1: byte 16 is not UTF-8 text"), "{found}");

    let many = "x,GET,/a\n".repeat(50);
    fs::write(path, format!("1,GET,/a\n{many}")).expect("written");
    let found = refused(&["import", "--format", "csv", path]);
    assert_eq!(
        found.lines().filter(|l| l.starts_with("error: ")).count(),
        20,
        "{found}"
    );
}

#[test]
fn import_flags_out_of_bounds_or_without_a_meaning_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("trace");
    let trace = trace.to_str().expect("text");
    fs::write(trace, "1.5,GET,/a,5\n").expect("written");
    let cases = [
        (vec!["--format", "cvs"], "csv"),
        (vec!["--format", "csv", "--speed", "0"], "0.001 to 1000000"),
        (vec!["--format", "csv", "--speed", "-2"], "0.001 to 1000000"),
        (
            vec!["--format", "csv", "--speed", "NaN"],
            "0.001 to 1000000",
        ),
        (vec!["--format", "csv", "--limit", "0"], "1000000"),
        (vec!["--format", "csv", "--limit", "1000001"], "1000000"),
        (vec!["--format", "csv", "--timestamp-unit", "h"], "ms"),
        (
            vec!["--format", "csv", "--size-cv", "0.2"],
            "the trace has a size for each request",
        ),
        (
            vec!["--format", "azure-llm", "--sizes", "constant:5"],
            "tokens are what gives a size",
        ),
        (
            vec!["--format", "azure-llm", "--mi-per-context-token", "-1"],
            "0 to 1000",
        ),
        (
            vec!["--format", "azure-llm", "--mi-per-generated-token", "NaN"],
            "0 to 1000",
        ),
    ];
    for (flags, expected) in cases {
        let text = refused(&[vec!["import", trace], flags].concat());
        assert!(text.contains(expected), "{text}");
    }
    assert!(refused(&["import", trace]).contains("--format"));
}

#[test]
fn what_cannot_be_read_or_written_says_so_with_its_path() {
    let folder = tempfile::tempdir().expect("a folder");
    let is_folder = folder.path().to_str().expect("text");
    let quick = workloads().join("quick.json");
    let quick = quick.to_str().expect("text");
    let paper = workloads().join("paper.json");
    let paper = paper.to_str().expect("text");
    let azure = workloads().join("traces/azure-llm-2023-code.csv");
    let azure = azure.to_str().expect("text");
    for arguments in [
        &["expand", is_folder][..],
        &["import", "--format", "csv", is_folder],
        &["import", "--format", "csv", "/no/such/trace"],
    ] {
        let file = arguments.last().expect("a file");
        let text = refused(arguments);
        assert!(
            text.starts_with(&format!("error: {file}: cannot read it: ")),
            "{text}"
        );
    }
    let failures = [
        (
            vec!["expand", quick, "--out", "/dev/full"],
            "cannot write /dev/full: No space left",
        ),
        (
            vec!["generate", "--seed", "1", "--out", "/dev/full"],
            "cannot write /dev/full: No space left",
        ),
        (
            vec![
                "import",
                "--format",
                "azure-llm",
                azure,
                "--out",
                "/dev/full",
            ],
            "cannot write /dev/full: No space left",
        ),
        (vec!["expand", quick, "--out", is_folder], "cannot write"),
        (
            vec!["expand", quick, "--out", "/proc/schedule.csv"],
            "cannot write /proc/schedule.csv: ",
        ),
        (
            vec![
                "import",
                "--format",
                "azure-llm",
                azure,
                "--out",
                "/no/such/folder/w.json",
            ],
            "cannot write /no/such/folder/w.json: ",
        ),
    ];
    for (arguments, expected) in failures {
        let output = generator(&arguments);
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {text}");
        assert!(text.contains(&format!("error: {expected}")), "{text}");
        assert_eq!(text.lines().count(), 1, "{text}");
    }
    assert_eq!(fs::read_dir(is_folder).expect("folder").count(), 0);

    for arguments in [
        vec!["expand", quick],
        // More than a pipe and every buffer hold.
        vec!["expand", paper],
        vec!["generate", "--seed", "1", "--apis", "1"],
        vec!["import", "--format", "azure-llm", azure],
    ] {
        output::a_full_or_closed_output_is_no_panic(command(&arguments));
    }
}
