use super::{Discipline, Stats};
use crate::report::Source;

fn sample() -> Stats {
    Stats {
        container: "a".into(),
        cores: 4.0,
        memory_bytes: 12 << 30,
        active_requests: 3,
        mean_latency_ms_last_50: None,
        completed: 10,
        failed: 0,
        sampled_at_unix_ns: 1,
        sequence: 912,
        cpu_percent: Some(81.5),
        memory_used_bytes: Some(3 << 20),
        nominal_mips_per_core: 7450.0,
        native_mips_per_core: 10_900.0,
        burn_fraction: 0.1,
        discipline: Discipline::Ps,
        loop_name: "x".into(),
        throttled_us: None,
        late_burns: 0,
        boot_id: "b".into(),
        service_time_mean_ms: None,
        utilization: 0.5,
        qps: 30.5,
        eps: 0.0,
        rif_latency_ms: None,
        speed: None,
        work_left: None,
    }
}

#[test]
fn stats_read_what_they_write_and_a_mean_of_nothing_is_null() {
    let text = serde_json::to_string(&sample()).unwrap();
    assert!(text.contains(r#""mean_latency_ms_last_50":null"#));
    assert!(text.contains(r#""loop":"x""#) && !text.contains("work_left"));
    assert_eq!(serde_json::from_str::<Stats>(&text).unwrap(), sample());
}

#[test]
fn a_report_carries_the_balancers_time_and_no_invented_values() {
    let report = sample().to_report(Source::Poll, 77);
    assert_eq!((report.sampled_at_ns, report.active), (77, Some(3)));
    assert_eq!(report.mean_latency_50_ms, None);
    assert_eq!(report.memory_used_mib, Some(3.0));
}
