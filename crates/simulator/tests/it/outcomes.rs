//! Every fate of a request becomes a row that says so.

use std::fs;
use std::time::Duration;

use crate::Run;
use crate::server::{Act, Server, answer};

const NO_DELAY: Duration = Duration::ZERO;

#[test]
fn what_the_balancer_said_is_in_the_row() {
    let fields = "x-container: b\r\nx-plumbline-attempts: 2\r\nx-plumbline-reason: backend\r\n\
                  x-worker-timing: queue_wait_us=12,service_time_us=55300\r\n\
                  x-plumbline-decision: strategy=least-request:ties=random;x=1,container=b,\
                  attempts=2,pick_ns=310,in_flight=4,active_requests=5,\
                  mean_latency_ms_last_50=61.5,stats_age_ms=43.25,cores=3,memory_gb=9,\
                  cpu_percent=81.5,memory_mib=64,predicted_ms=70.125\r\n";
    let server = Server::start(move |_| Act::Send(answer(200, fields), NO_DELAY));
    let run = Run::new(&server.url, 3, 5.0).flags(&[
        "--run-id",
        "bench-1-2",
        "--block",
        "1",
        "--warmup",
        "1",
    ]);
    let done = run.finish();
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert_eq!(done.rows.len(), 3);
    let mut rows = done.rows;
    rows.sort_by_key(|row| row["seq"].clone());
    let row = &rows[1];
    let expected = [
        ("run_id", "bench-1-2"),
        ("block", "1"),
        ("seq", "1"),
        ("api_id", "read"),
        ("strategy", "least-request:ties=random,x=1"),
        ("method", "GET"),
        ("url", "/users/orders"),
        ("task_size_mi", "400.5"),
        ("warmup", "false"),
        ("intended_ns", "5000000"),
        ("status", "200"),
        ("error", ""),
        ("container", "b"),
        ("attempts", "2"),
        ("pick_ns", "310"),
        ("in_flight", "4"),
        ("active_requests", "5"),
        ("mean_latency_ms_last_50", "61.5"),
        ("stats_age_ms", "43.25"),
        ("cores", "3"),
        ("memory_gb", "9"),
        ("cpu_percent", "81.5"),
        ("memory_mib", "64"),
        ("predicted_ms", "70.125"),
        ("queue_wait_us", "12"),
        ("service_time_us", "55300"),
    ];
    for (column, value) in expected {
        assert_eq!(row[column], value, "{column}");
    }
    assert_eq!(rows[0]["warmup"], "true");
    let stamp = |column: &str| row[column].parse::<u64>().expect("a stamp");
    assert!(stamp("intended_ns") <= stamp("sent_ns"));
    assert!(stamp("sent_ns") <= stamp("first_byte_ns"));
    assert!(stamp("first_byte_ns") <= stamp("done_ns"));
    let latency_ms: f64 = row["latency_ms"].parse().expect("a number");
    assert!((latency_ms * 1e6 - (stamp("done_ns") - 5_000_000) as f64).abs() < 1.0);
}

#[test]
fn what_cannot_be_true_stays_out_of_the_rows_and_is_said_once() {
    let fields = "x-container: =HYPERLINK(1)\r\nx-plumbline-attempts: 99999999999\r\n\
                  x-plumbline-reason: @sum\r\nx-worker-timing: queue_wait_us=NaN,service_time_us=1\r\n\
                  x-plumbline-decision: strategy==1+1,container=+1,pick_ns=18446744073709551615,\
                  in_flight=7,mean_latency_ms_last_50=inf,stats_age_ms=NaN,cores=-4,memory_gb=1e300,\
                  cpu_percent=-inf,memory_mib=1e13,predicted_ms=nan\r\n";
    let server = Server::start(move |_| Act::Send(answer(200, fields), NO_DELAY));
    let done = Run::new(&server.url, 5, 1.0).finish();
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let unknown = "strategy container attempts pick_ns mean_latency_ms_last_50 stats_age_ms cores \
                   memory_gb cpu_percent memory_mib predicted_ms queue_wait_us service_time_us";
    for column in unknown.split_whitespace() {
        assert_eq!(done.column(column), [""; 5], "{column}");
    }
    assert_eq!(done.column("in_flight"), ["7"; 5], "what is true stays");
    assert_eq!(done.count("answers_with_refused_values"), 5);
    let told: Vec<&str> = done.stderr.lines().collect();
    let [warning] = told[..] else {
        panic!("{told:?}")
    };
    assert!(warning.contains("5 answers"), "{warning}");
    assert!(warning.contains("x-container: =HYPERLINK(1)"), "{warning}");
}

#[test]
fn requests_carry_identity_size_and_a_body_where_the_method_has_one() {
    let server = Server::answering(NO_DELAY);
    let run = Run::new(&server.url, 1, 5.0).flags(&["--run-id", "demo"]);
    let file = run.folder.path().join("w.json");
    let text = fs::read_to_string(&file).expect("written");
    let host = server.url.trim_start_matches("http://").to_string();
    assert_eq!(run.finish().code, Some(0));
    fs::write(&file, text.replace("GET", "PATCH")).expect("written");
    assert_eq!(run.finish().code, Some(0));
    let seen = server.seen.lock().expect("lock");
    assert_eq!(
        seen[0],
        format!(
            "GET /users/orders HTTP/1.1\r\nhost: {host}\r\nx-request-id: demo-0\r\n\
             x-task-size-mi: 400.5\r\n\r\n"
        )
    );
    assert_eq!(
        seen[1],
        format!(
            "PATCH /users/orders HTTP/1.1\r\nhost: {host}\r\nx-request-id: demo-0\r\n\
             x-task-size-mi: 400.5\r\ncontent-type: application/json\r\n\
             content-length: 22\r\n\r\n{{\"api\":\"read\",\"seq\":0}}"
        )
    );
}

/// How the server acts, and the columns `error` and `status` after it.
type Case = (fn() -> Act, &'static str, &'static str);

#[test]
fn each_way_to_fail_has_its_reason() {
    let cases: [Case; 8] = [
        (|| Act::Send(answer(204 + 95, ""), NO_DELAY), "", "299"),
        (
            || Act::Send(answer(500, ""), NO_DELAY),
            "error:status",
            "500",
        ),
        (
            || {
                Act::Send(
                    answer(502, "x-plumbline-reason: connect_refused\r\n"),
                    NO_DELAY,
                )
            },
            "error:connect_refused",
            "502",
        ),
        (|| Act::Close, "error:reset", ""),
        (
            || Act::SendAndClose("HTTP/1.1 200 OK\r\nconte".into()),
            "error:reset",
            "",
        ),
        (
            || Act::SendAndClose("BLAH BLAH BLAH\r\n\r\n".into()),
            "error:malformed",
            "",
        ),
        (
            || Act::SendAndClose("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nshort".into()),
            "error:truncated",
            "200",
        ),
        (|| Act::Hang, "timeout", ""),
    ];
    for (act, error, status) in cases {
        let server = Server::start(move |_| act());
        let done = Run::new(&server.url, 3, 1.0)
            .flags(&["--timeout", "300ms"])
            .finish();
        assert_eq!(done.code, Some(0), "{error}: {}", done.stderr);
        assert_eq!(done.column("error"), [error; 3]);
        assert_eq!(done.column("status"), [status; 3], "{error}");
        assert_eq!(server.requests(), 3, "{error}: nothing is sent twice");
        for row in &done.rows {
            assert!(!row["sent_ns"].is_empty() && !row["done_ns"].is_empty());
        }
    }
}

#[test]
fn beyond_the_bound_in_flight_requests_are_rows_and_the_run_is_not_valid() {
    let server = Server::start(|_| Act::Hang);
    let run = Run::new(&server.url, 10, 1.0).flags(&["--timeout", "1s", "--max-in-flight", "4"]);
    let done = run.finish();
    assert_eq!(done.code, Some(3));
    assert!(
        done.stderr.contains("generator_saturated"),
        "{}",
        done.stderr
    );
    let refused = done.column("error");
    let refused = refused.iter().filter(|e| **e == "never_sent:max_in_flight");
    assert_eq!(refused.count(), 6);
    assert_eq!((done.count("timeout"), done.count("never_sent")), (4, 6));
    assert_eq!(done.count("rows"), 10);
    assert_eq!(done.summary["generator_saturated"], true);
}

#[test]
fn connections_are_kept_and_used_again() {
    let server = Server::answering(NO_DELAY);
    let done = Run::new(&server.url, 300, 1.0).finish();
    assert_eq!(done.count("ok"), 300);
    // The probe, the spare ones and a few more when the machine stalls; not one per request.
    let connections = *server.connections.lock().expect("lock");
    assert!(connections < 150, "{connections}");
}

#[test]
fn a_target_that_goes_away_is_refused_in_the_rows() {
    use std::net::TcpListener;
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let run = Run::new(&url, 200, 10.0);
    let child = run.spawn();
    // Takes the probe and the first spare connections, then leaves.
    let accepted: Vec<_> = (0..17).map(|_| listener.accept()).collect();
    std::thread::sleep(Duration::from_millis(100));
    drop((accepted, listener));
    let done = run.wait(child);
    assert_eq!(done.count("error"), 200, "{}", done.summary);
    assert!(done.column("error").contains(&"error:refused"));
}

#[test]
fn the_closed_loop_keeps_its_slots_full_and_counts_actions() {
    // Every third request fails: of three calls in a row by one caller some fail.
    let server = Server::start(|n| {
        let status = if n.is_multiple_of(3) { 500 } else { 200 };
        Act::Send(answer(status, ""), Duration::from_millis(2))
    });
    let run = Run::new(&server.url, 300, 1000.0)
        .without_lag_bound()
        .flags(&["--slots", "4", "--calls", "3", "--callers", "4"]);
    let done = run.finish();
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert_eq!(done.count("rows"), 300);
    let actions = &done.summary["actions"];
    let complete = actions["complete"].as_u64().expect("a count");
    let good = actions["good"].as_u64().expect("a count");
    assert!((97..=100).contains(&complete), "{actions}");
    assert!(good < complete, "{actions}");
    // 300 calls of 2 ms through four slots overlap: the due times of the file play no part.
    let intended: Vec<u64> = done
        .column("intended_ns")
        .iter()
        .map(|ns| ns.parse().expect("a stamp"))
        .collect();
    assert!(intended.iter().max() < Some(&60_000_000_000));
}

/// At most C in flight: call C + k can begin only when k + 1 calls have ended. Latency counts from
/// the moment a slot freed, and the summary says what kind of run it was.
#[test]
fn a_call_of_the_closed_loop_is_due_when_a_slot_frees() {
    let server = Server::start(|n| {
        // The first call of all takes long: three slots go on without it.
        let delay = if n == 0 { 60 } else { 1 };
        Act::Send(answer(200, ""), Duration::from_millis(delay))
    });
    let run = Run::new(&server.url, 100, 1000.0)
        .without_lag_bound()
        .flags(&["--slots", "4"]);
    let done = run.finish();
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let expected = serde_json::json!({"slots": 4, "callers": 84});
    assert_eq!(done.summary["closed_loop"], expected);
    let sorted = |name: &str| -> Vec<u64> {
        let column = done.column(name);
        let mut stamps: Vec<u64> = column.iter().map(|ns| ns.parse().expect("ns")).collect();
        stamps.sort_unstable();
        stamps
    };
    let (intended, ended) = (sorted("intended_ns"), sorted("done_ns"));
    assert_eq!(intended.len(), 100);
    for (k, begun) in intended[4..].iter().enumerate() {
        assert!(
            *begun >= ended[k],
            "call {} began before a slot was free",
            k + 4
        );
    }
    let latencies = done.column("latency_ms");
    let ms = latencies.iter().map(|ms| ms.parse::<f64>().expect("ms"));
    assert!(ms.fold(0.0, f64::max) >= 60.0);
}
