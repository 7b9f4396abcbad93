//! A recorded run as a list of requests that the twin can be given.

use std::collections::BTreeMap;

use schema::problem::{Problem, Problems};
use schema::row::Row;
use schema::workload::{Request, Traffic, Workload};

use super::timing::Timing;

/// The sends of a run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sends {
    /// The run's APIs with its requests as they were sent.
    pub(crate) workload: Workload,
    /// Recorded place of each request of the list.
    pub(crate) seqs: Vec<u64>,
}

/// The list of what was sent in `rows`, at the times it was sent, in the order in which the
/// balancer picked; what it never picked comes in order of sending. Requests that were never sent
/// are left out. Times are whole microseconds.
///
/// # Errors
/// A row of an API that the workload does not have.
pub(crate) fn sends(
    base: &Workload,
    rows: &[&Row],
    timing: Option<&Timing>,
) -> Result<Sends, Problems> {
    let apis: BTreeMap<&str, u32> = base.apis.iter().map(|a| a.id.as_str()).zip(0..).collect();
    let order: &[u64] = timing.map_or(&[], |t| &t.order);
    let place: BTreeMap<u64, usize> = order.iter().copied().zip(0..).collect();
    let mut sent: Vec<(u64, &Row)> = rows.iter().filter_map(|r| Some((r.sent_ns?, *r))).collect();
    sent.sort_by_key(|(at, row)| (*at, row.seq));
    // Only requests that were picked change places, among themselves.
    let picked = |row: &Row| place.get(&row.seq).copied();
    let mut in_order: Vec<(u64, &Row)> = sent
        .iter()
        .filter(|(_, r)| picked(r).is_some())
        .copied()
        .collect();
    in_order.sort_by_key(|(_, row)| picked(row));
    let mut in_order = in_order.into_iter();
    for one in &mut sent {
        if picked(one.1).is_some()
            && let Some(next) = in_order.next()
        {
            *one = next;
        }
    }
    let shift_ns = timing.map_or(0, |t| t.shift_ns);
    let mut last_us = 0;
    let mut list = Vec::with_capacity(sent.len());
    for (at_ns, row) in &sent {
        let api = *apis.get(row.api_id.as_str()).ok_or_else(|| {
            let field = format!("api_id of request {}", row.seq);
            Problems::from(Problem::new(
                field,
                row.api_id.clone(),
                "the workload has no such API",
            ))
        })?;
        let at_ns = (*at_ns as i64 + shift_ns).max(0);
        last_us = last_us.max(((at_ns as u64) + 500) / 1000);
        list.push(Request {
            at_us: last_us,
            api,
            task_size_mi: row.task_size_mi,
        });
    }
    let mut workload = base.clone();
    workload.name = format!("{} as sent", base.name).chars().take(100).collect();
    workload.traffic = Traffic::Listed(list);
    Ok(Sends {
        workload: workload.sealed(),
        seqs: sent.iter().map(|(_, row)| row.seq).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::sends;
    use crate::agreement::timing::Timing;
    use schema::row::Row;
    use schema::workload::{Api, Method, Traffic, Workload};

    fn base() -> Workload {
        let api = |id: &str, url: &str| Api {
            id: id.into(),
            method: Method::Get,
            url: url.into(),
            task_size_mi: 400.0,
        };
        Workload {
            name: "w".into(),
            seed: 1,
            generator: serde_json::Map::new(),
            apis: vec![api("api-001", "/a"), api("api-002", "/b")],
            traffic: Traffic::Listed(Vec::new()),
            sha256: String::new(),
        }
    }

    fn row(seq: u64, api: &str, sent_us: Option<u64>) -> Row {
        Row {
            seq,
            api_id: api.into(),
            task_size_mi: 300.0 + seq as f64,
            sent_ns: sent_us.map(|us| us * 1000 + 400),
            ..Row::default()
        }
    }

    /// (time in us, api, size) and the recorded places.
    fn listed(rows: &[Row], timing: Option<&Timing>) -> (Vec<(u64, u32, f64)>, Vec<u64>) {
        let rows: Vec<&Row> = rows.iter().collect();
        let sends = sends(&base(), &rows, timing).expect("known APIs");
        // What is written is a workload file.
        Workload::parse("list", &sends.workload.to_text()).expect("a workload");
        let Traffic::Listed(list) = &sends.workload.traffic else {
            panic!("no list");
        };
        let list = list.iter().map(|r| (r.at_us, r.api, r.task_size_mi));
        (list.collect(), sends.seqs)
    }

    #[test]
    fn what_was_sent_is_listed_at_the_time_it_was_sent() {
        let rows = [
            row(2, "api-002", Some(900)),
            row(0, "api-002", Some(10)),
            row(1, "api-001", None),
            row(3, "api-001", Some(950)),
        ];
        let (list, seqs) = listed(&rows, None);
        assert_eq!(seqs, [0, 2, 3]);
        assert_eq!(list, [(10, 1, 300.0), (900, 1, 302.0), (950, 0, 303.0)]);
    }

    #[test]
    fn the_balancer_s_order_goes_before_the_sender_s() {
        let rows: Vec<Row> = (0..5)
            .map(|i| row(i, "api-001", Some(100 + 10 * i)))
            .collect();
        // Request 1 overtook 0; request 3 was never picked.
        let timing = Timing {
            shift_ns: -50_000,
            interval_ns: 1,
            fetch_ns: 0,
            order: vec![1, 0, 2, 4],
        };
        let (list, seqs) = listed(&rows, Some(&timing));
        assert_eq!(seqs, [1, 0, 2, 3, 4]);
        let times: Vec<u64> = list.iter().map(|r| r.0).collect();
        assert_eq!(times, [60, 60, 70, 80, 90]);
    }

    #[test]
    fn an_unknown_api_is_named() {
        let stranger = row(7, "api-009", Some(1));
        let problem = sends(&base(), &[&stranger], None).expect_err("unknown");
        assert!(problem.to_string().contains("api-009"), "{problem}");
    }
}
