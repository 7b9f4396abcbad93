//! Golden values of the key-based strategies, names `worker-a:8080` and so on.

use super::models::options;
use super::pools::{answered_pick, dispatcher, letter, members, shares, spec};
use crate::catalog::maglev::fill;
use crate::{BackendId, Dispatcher, NewBackend, Request, Time};

const KEYS: [&str; 5] = [
    "/users/1",
    "/users/2",
    "/orders/17",
    "/payments/42",
    "10.0.0.7",
];

fn owners(d: &mut Dispatcher) -> String {
    KEYS.iter()
        .map(|url| {
            let request = Request {
                url,
                ..Request::default()
            };
            letter(answered_pick(d, &request))
        })
        .collect()
}

#[test]
fn owners_of_keys_are_those_of_the_sources() {
    for (text, unequal, equal) in [
        ("consistent-hash", "ABCBA", "CBBBB"),
        ("maglev", "ABCCB", "CCCCB"),
        ("rendezvous", "BAAAC", "BAAAC"),
        ("request-hash", "BABAB", "BCBCC"),
    ] {
        let run = |weights: &[u32]| owners(&mut dispatcher(&spec(text), weights, 1));
        assert_eq!(run(&[4, 3, 2]), unequal, "{text}");
        assert_eq!(run(&[1, 1, 1]), equal, "{text}");
    }
    let mut d = dispatcher(&spec("request-hash"), &[4, 3, 2], 1);
    d.eject(Time::ZERO, BackendId(1), Time::from_millis(60_000))
        .unwrap();
    assert_eq!(owners(&mut d), "CAAAC");
}

#[test]
fn ring_shares_over_items() {
    let run = |weights: &[u32]| {
        shares(
            &mut dispatcher(&spec("consistent-hash"), weights, 1),
            100_000,
        )
    };
    assert_eq!(run(&[4, 3, 2]), [43_402, 33_117, 23_481]);
    assert_eq!(run(&[1, 1, 1]), [35_431, 30_729, 33_840]);
}

#[test]
fn maglev_slots() {
    let counts = |weights: &[u32], length| {
        let d = dispatcher(&spec("maglev"), weights, 1);
        let slots = fill(d.backends(), length);
        [0, 1, 2].map(|i| slots.iter().filter(|s| s.0 == i).count())
    };
    assert_eq!(counts(&[4, 3, 2], 65_537), [29_128, 21_846, 14_563]);
    assert_eq!(counts(&[1, 1, 1], 65_537), [21_846, 21_846, 21_845]);
    let d = dispatcher(&spec("maglev"), &[4, 3, 2], 1);
    let small: String = fill(d.backends(), 13).into_iter().map(letter).collect();
    assert_eq!(small, "ACACABBAACBBA");
}

#[test]
fn an_eleventh_backend_moves_little_more_of_the_table_than_it_must() {
    let slots = |extra| {
        let d = Dispatcher::new(&spec("maglev"), &ten(extra), options()).unwrap();
        fill(d.backends(), 65_537)
    };
    let (before, after) = (slots(0), slots(1));
    let moved = before.iter().zip(&after).filter(|(a, b)| a != b).count();
    let share = moved as f64 / before.len() as f64;
    assert!((share - 0.093).abs() < 0.0015, "{share}");
    assert!(
        share >= 1.0 / 11.0,
        "fewer would leave it less than its share"
    );
}

#[test]
fn a_small_table_is_cautioned_against() {
    let caution = |text: &str, n| dispatcher(&spec(text), &vec![1; n], 1).caution();
    assert_eq!(caution("maglev:table=307", 3), None);
    let text = caution("maglev:table=293", 3).unwrap();
    assert!(text.contains("293") && text.contains("300"), "{text}");
    assert!(caution("maglev", 656).is_some() && caution("maglev", 655).is_none());
    assert_eq!(caution("consistent-hash:points=1", 3), None);
}

#[test]
fn hash64_is_xxh64() {
    assert_eq!(twox_hash::XxHash64::oneshot(0, b""), 0xef46_db37_51d8_e999);
    assert_eq!(
        twox_hash::XxHash64::oneshot(0, b"/users/1"),
        0xffdb_0e45_76f8_c7ad
    );
}

#[test]
fn a_full_owner_is_walked_over() {
    let caps = |q: u64| [4, 3, 2].map(|w| crate::catalog::bounded_load::cap(1.25, q, w, 9));
    assert_eq!(caps(6), [4.0, 3.0, 2.0]);
    let mut d = dispatcher(&spec("bounded-load"), &[1, 1, 1], 1);
    let request = Request {
        url: "/hot",
        ..Request::default()
    };
    for _ in 0..30 {
        let _ = d.pick(Time::ZERO, &request);
    }
    let most = d.backends().members().map(|b| b.in_flight).max();
    assert_eq!(most, Some(13), "ceil(1.25 * 30 / 3)");
}

#[test]
fn other_keys_and_requests_without_one() {
    let mut d = dispatcher(&spec("consistent-hash:key=client-net"), &[1; 3], 1);
    let mut at = |address: &str| {
        let request = Request {
            client: Some(address.parse().unwrap()),
            ..Request::default()
        };
        answered_pick(&mut d, &request)
    };
    assert!((0..200).all(|i| at(&format!("10.0.0.{i}")) == at("10.0.0.0")));
    assert_eq!(
        at("::ffff:10.0.0.9"),
        at("10.0.0.1"),
        "a mapped address is the address"
    );
    let keyless: String = (0..3)
        .map(|_| letter(answered_pick(&mut d, &Request::default())))
        .collect();
    assert_eq!(keyless, "ABC");
    let header = spec("maglev:key=header:x-user");
    assert_eq!(header.key_header().as_deref(), Some("x-user"));
    assert_eq!(spec("maglev").key_header(), None);
}

fn ten(extra: usize) -> Vec<NewBackend> {
    let mut pool = members(&vec![1; 10 + extra]);
    for (i, backend) in pool.iter_mut().enumerate() {
        backend.name = format!("worker-{i}:8080");
    }
    pool
}

#[test]
fn t23_ring_skew_and_unstable_rings() {
    let largest = |text: &str| {
        let mut d = Dispatcher::new(&spec(text), &ten(0), options()).unwrap();
        let counts = shares(&mut d, 100_000);
        let scaled = |c: Option<&u64>| (*c.unwrap() as f64 / 10_000.0 * 1e4).round() / 1e4;
        (scaled(counts.iter().max()), scaled(counts.iter().min()))
    };
    assert_eq!(largest("consistent-hash"), (1.0761, 0.9256));
    assert!((largest("consistent-hash:points=1").0 - 7.66).abs() < 0.005);

    let run = |extra| {
        let mut d = Dispatcher::new(&spec("consistent-hash"), &ten(extra), options()).unwrap();
        (0..100_000)
            .map(|i| {
                let url = format!("/items/{i}");
                let request = Request {
                    url: &url,
                    ..Request::default()
                };
                answered_pick(&mut d, &request)
            })
            .collect::<Vec<_>>()
    };
    let (before, after) = (run(0), run(1));
    let moved: Vec<_> = before.iter().zip(&after).filter(|(a, b)| a != b).collect();
    assert_eq!(moved.len(), 9142);
    assert!(moved.iter().all(|(_, to)| to.0 == 10));
}
