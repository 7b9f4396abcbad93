use schema::event::{Event, Status};
use schema::row::Row;
use schema::stats::{Discipline, Stats};

use super::{Evidence, log_is_settled, mismatches};

const REQUESTS: u64 = 6;

fn rows() -> Vec<Row> {
    (0..REQUESTS)
        .map(|seq| Row {
            run_id: "t-b01-a1".into(),
            seq,
            sent_ns: Some(seq),
            done_ns: Some(seq + 5),
            latency_ms: Some(5e-6),
            status: Some(200),
            container: Some(if seq % 2 == 0 { "a" } else { "b" }.into()),
            ..Row::default()
        })
        .collect()
}

fn pick(seq: u64) -> Event {
    Event::Pick {
        t_ns: seq,
        dispatch: Some(seq),
        request_id: format!("t-b01-a1-{seq}"),
        method: "GET".into(),
        url: "/".into(),
        class: 0,
        client: None,
        key_header: None,
        body_len: 0,
        attempt: 0,
        tried: Vec::new(),
        cost_mi: None,
        backend: Some((seq % 2) as u32),
        mark: None,
        candidates: Vec::new(),
        pick_ns: 1,
    }
}

fn response(seq: u64) -> Event {
    Event::Response {
        t_ns: seq + 5,
        dispatch: seq,
        backend: (seq % 2) as u32,
        status: Status::Ok,
        http_status: Some(200),
        latency_ns: 5,
        ttfb_ns: None,
        retry_after_ns: None,
        service_time_ns: None,
        queue_wait_ns: None,
    }
}

fn events() -> Vec<Event> {
    let member = |id: u32, name: &str| serde_json::json!({"id": id, "name": name, "weight": 1, "cores": 1.0, "memory_mib": 1.0});
    let start = serde_json::json!({
        "event": "start", "schema": schema::event::SCHEMA, "strategy": "round-robin", "seed": 1,
        "started_unix_ns": 0, "poll_interval_ns": 0, "slow_start_ns": 0, "protection": "plain",
        "members": [member(0, "a"), member(1, "b")]
    });
    let start = serde_json::from_value(start).expect("an event");
    std::iter::once(start)
        .chain((0..REQUESTS).flat_map(|seq| [pick(seq), response(seq)]))
        .collect()
}

fn stats(name: &str, completed: u64) -> Stats {
    Stats {
        container: name.into(),
        cores: 1.0,
        memory_bytes: 1,
        active_requests: 0,
        mean_latency_ms_last_50: None,
        completed,
        failed: 0,
        sampled_at_unix_ns: 0,
        sequence: 0,
        cpu_percent: None,
        memory_used_bytes: None,
        nominal_mips_per_core: 1.0,
        native_mips_per_core: 1.0,
        burn_fraction: 1.0,
        discipline: Discipline::Ps,
        loop_name: "l".into(),
        throttled_us: None,
        late_burns: 0,
        boot_id: "x".into(),
        service_time_mean_ms: None,
        utilization: 0.0,
        qps: 0.0,
        eps: 0.0,
        rif_latency_ms: None,
        speed: None,
        work_left: None,
    }
}

fn check(rows: &[Row], events: &[Event], completed: [u64; 2]) -> Vec<String> {
    mismatches(&Evidence {
        scheduled: REQUESTS,
        rows,
        events,
        stats: &[stats("a", completed[0]), stats("b", completed[1])],
        busy: &[],
    })
}

#[test]
fn a_faultless_arm_adds_up() {
    assert_eq!(check(&rows(), &events(), [3, 3]), Vec::<String>::new());
    assert!(log_is_settled(&events()));
}

#[test]
fn a_missing_and_a_repeated_row_are_found() {
    let mut short = rows();
    short.pop();
    let found = check(&short, &events(), [3, 3]);
    assert!(
        found.contains(&"R1: 5 rows, 6 scheduled".to_string()),
        "{found:?}"
    );
    assert!(
        found
            .iter()
            .any(|f| f.starts_with("R3: 1 requests received")),
        "{found:?}"
    );
    let mut repeated = rows();
    repeated[5] = repeated[4].clone();
    let found = check(&repeated, &events(), [3, 3]);
    assert!(
        found[0].starts_with("R1: 1 rows with a repeated"),
        "{found:?}"
    );
}

#[test]
fn a_request_the_balancer_never_saw_is_found_unless_it_failed_on_the_way() {
    let mut events = events();
    events.truncate(events.len() - 2);
    let found = check(&rows(), &events, [3, 2]);
    assert!(
        found[0].starts_with("R3: 1 requests sent and not received"),
        "{found:?}"
    );
    assert!(found[0].ends_with("t-b01-a1-5"), "{found:?}");
    let mut refused = rows();
    refused[5] = Row {
        error: "error:refused".into(),
        status: None,
        latency_ms: None,
        container: None,
        ..refused[5].clone()
    };
    assert_eq!(check(&refused, &events, [3, 2]), Vec::<String>::new());
}

#[test]
fn a_dispatch_without_its_response_is_found() {
    let mut events = events();
    events.pop();
    assert!(!log_is_settled(&events));
    let found = check(&rows(), &events, [3, 3]);
    assert!(
        found[0].starts_with("R6: 1 dispatches that did not end"),
        "{found:?}"
    );
}

#[test]
fn a_worker_that_counted_otherwise_is_found() {
    let found = check(&rows(), &events(), [4, 3]);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with("R7: worker a answered 4"), "{found:?}");
    assert!(
        found[1].starts_with("R10: worker a completed 4"),
        "{found:?}"
    );
}

#[test]
fn what_is_still_in_flight_is_a_miss() {
    let found = mismatches(&Evidence {
        scheduled: REQUESTS,
        rows: &rows(),
        events: &events(),
        stats: &[],
        busy: &["worker a active_requests = 1".to_string()],
    });
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with("R9: worker a"), "{found:?}");
}
