//! Our picks against those recorded from nginx and HAProxy; see `recorded/README.md`.

use plumbline_strategies::{
    Answer, BackendId, Dispatch, Dispatcher, NewBackend, Options, Request, Spec, Status, Time,
};

/// The cases of a file: its lines without the comment, split at spaces.
fn cases(text: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.split(' ').collect())
}

fn pool(text: &str, members: &[(String, u32)]) -> Dispatcher {
    let member = |(name, weight): &(String, u32)| NewBackend {
        name: name.clone(),
        url: String::new(),
        weight: *weight,
        cores: 1.0,
        memory_mib: 0.0,
    };
    let members: Vec<NewBackend> = members.iter().map(member).collect();
    let spec: Spec = text.parse().expect("a strategy");
    Dispatcher::new(&spec, &members, Options::default()).expect("a pool")
}

/// A pool of these weights, `4,3,2`.
fn of_weights(text: &str, weights: &str) -> Dispatcher {
    let weights = weights.split(',').map(|w| w.parse().expect("a weight"));
    let members: Vec<(String, u32)> = weights
        .enumerate()
        .map(|(i, weight)| (format!("server-{i}:80"), weight))
        .collect();
    pool(text, &members)
}

/// A pool of these names and weights, `127.0.0.1:8080=4,...`.
fn of_names(text: &str, names: &str) -> Dispatcher {
    let member = |pair: &str| {
        let (name, weight) = pair.split_once('=').expect("name=weight");
        (name.to_string(), weight.parse().expect("a weight"))
    };
    let members: Vec<(String, u32)> = names.split(',').map(member).collect();
    pool(text, &members)
}

fn id_of(letter: char) -> BackendId {
    BackendId(u32::from(letter) - u32::from('A'))
}

fn letter(id: BackendId) -> char {
    char::from(b'A' + id.0 as u8)
}

fn pick(d: &mut Dispatcher, request: &Request<'_>) -> Dispatch {
    let now = d.now().plus_ns(1_000_000);
    d.pick(now, request).expect("somebody is eligible")
}

fn answer(d: &mut Dispatcher, made: &Dispatch, status: Status) {
    d.respond(d.now(), made.id, &Answer::new(status))
        .expect("it is open");
}

/// Takes out whom the recording had down; `-` is nobody.
fn take_down(d: &mut Dispatcher, who: &str) {
    if who != "-" {
        let id = id_of(who.chars().next().expect("a letter"));
        d.drain(Time::ZERO, id).expect("a member");
    }
}

#[test]
fn smooth_weighted_round_robin_is_nginx() {
    let mut compared = 0;
    for case in cases(include_str!("recorded/nginx-smooth.txt")) {
        let [weights, down, expected] = case[..] else {
            panic!("{case:?}")
        };
        let mut d = of_weights("smooth-weighted-round-robin", weights);
        take_down(&mut d, down);
        let picks: String = expected
            .chars()
            .map(|_| {
                let made = pick(&mut d, &Request::default());
                answer(&mut d, &made, Status::Ok);
                letter(made.backend)
            })
            .collect();
        assert_eq!(picks, expected, "{weights} without {down}");
        compared += picks.len();
    }
    assert!(compared > 1000, "{compared} picks");
}

/// Who gets a request that failed at one of them.
fn retry(d: &mut Dispatcher, tried: BackendId) -> char {
    let request = Request {
        attempt: 1,
        tried: &[tried],
        ..Request::default()
    };
    let made = pick(d, &request);
    answer(d, &made, Status::Ok);
    letter(made.backend)
}

#[test]
fn working_weights_fall_and_rise_as_in_nginx() {
    for case in cases(include_str!("recorded/nginx-max-fails.txt")) {
        let [weights, max_fails, expected] = case[..] else {
            panic!("{case:?}")
        };
        let text = format!("smooth-weighted-round-robin:max-fails={max_fails}");
        let mut d = of_weights(&text, weights);
        let mut picks = String::new();
        while picks.len() < expected.len() {
            let made = pick(&mut d, &Request::default());
            picks.push(letter(made.backend));
            if !expected[picks.len()..].starts_with('!') {
                answer(&mut d, &made, Status::Ok);
                continue;
            }
            picks.push('!');
            answer(&mut d, &made, Status::Error);
            picks.push(retry(&mut d, made.backend));
        }
        assert_eq!(picks, expected, "{weights}, max-fails {max_fails}");
    }
}

#[test]
fn a_server_that_refuses_and_returns_is_taken_as_in_nginx() {
    for case in cases(include_str!("recorded/nginx-down-and-back.txt")) {
        let [weights, out, expected] = case[..] else {
            panic!("{case:?}")
        };
        let out = id_of(out.chars().next().expect("a letter"));
        let mut d = of_weights("smooth-weighted-round-robin:max-fails=1", weights);
        let mut picks = String::new();
        while picks.len() < expected.len() {
            if expected[picks.len()..].starts_with('+') {
                picks.push('+');
                d.readmit(d.now(), out).expect("a member");
            }
            let made = pick(&mut d, &Request::default());
            picks.push(letter(made.backend));
            if !expected[picks.len()..].starts_with('!') {
                answer(&mut d, &made, Status::Ok);
                continue;
            }
            picks.push('!');
            answer(&mut d, &made, Status::Refused);
            // One refusal leaves it out, and the request goes to the next one.
            let long = d.now().plus_ns(3_600_000_000_000);
            d.eject(d.now(), out, long).expect("a member");
            picks.push(retry(&mut d, out));
        }
        assert_eq!(picks, expected, "{weights}");
    }
}

fn compare_keys(text: &str, recorded: &'static str) {
    let mut compared = 0;
    for case in cases(recorded) {
        let [names, down, expected] = case[..] else {
            panic!("{case:?}")
        };
        let mut d = of_names(text, names);
        take_down(&mut d, down);
        for (i, owner) in expected.chars().enumerate() {
            let url = format!("/items/{i}");
            let request = Request {
                url: &url,
                ..Request::default()
            };
            let made = pick(&mut d, &request);
            answer(&mut d, &made, Status::Ok);
            assert_eq!(
                letter(made.backend),
                owner,
                "{url} of {names} without {down}"
            );
            compared += 1;
        }
    }
    assert_eq!(compared, 8 * 1500);
}

#[test]
fn request_hash_is_nginx() {
    compare_keys("request-hash", include_str!("recorded/nginx-hash.txt"));
}

#[test]
fn consistent_hash_is_nginx() {
    compare_keys("consistent-hash", include_str!("recorded/nginx-ketama.txt"));
}

/// Runs a script of requests that are held: `X` = one goes somewhere, `-X` = one at X is answered.
/// `compare` is told the recorded pick before ours follows it.
fn run_held(
    d: &mut Dispatcher,
    script: &str,
    mut compare: impl FnMut(&mut Dispatcher, char) -> Dispatch,
) {
    let mut open: Vec<Dispatch> = Vec::new();
    let mut steps = script.chars();
    while let Some(step) = steps.next() {
        if step != '-' {
            let made = compare(d, step);
            open.push(made);
            continue;
        }
        let at = id_of(steps.next().expect("a letter"));
        let oldest = open.iter().position(|made| made.backend == at);
        let made = open.remove(oldest.expect("one is open there"));
        answer(d, &made, Status::Ok);
    }
}

#[test]
fn fewest_in_flight_by_weight_is_nginx_least_conn() {
    for case in cases(include_str!("recorded/nginx-least-conn.txt")) {
        let [weights, script] = case[..] else {
            panic!("{case:?}")
        };
        let mut d = of_weights("weighted-least-request:offset=0,ties=smooth", weights);
        let mut picks = String::new();
        run_held(&mut d, script, |d, expected| {
            let made = pick(d, &Request::default());
            picks.push(letter(made.backend));
            assert_eq!(letter(made.backend), expected, "{weights} after {picks}");
            made
        });
    }
}

#[test]
fn haproxy_leastconn_takes_one_of_those_we_tie_where_nobody_is_idle() {
    let mut compared = 0;
    for case in cases(include_str!("recorded/haproxy-leastconn.txt")) {
        let [weights, script] = case[..] else {
            panic!("{case:?}")
        };
        let mut d = of_weights("weighted-least-request", weights);
        run_held(&mut d, script, |d, expected| {
            let load = |b: &plumbline_strategies::Backend| {
                (f64::from(b.in_flight) + 1.0) / f64::from(b.weight)
            };
            let recorded = d.backends().get(id_of(expected)).expect("a member");
            let idle = d.backends().members().any(|b| b.in_flight == 0);
            let (theirs, is_idle) = (load(recorded), recorded.in_flight == 0);
            // Where theirs goes is where ours must go on from: everybody else is left out.
            let others: Vec<BackendId> = d
                .backends()
                .members()
                .map(|b| b.id)
                .filter(|id| *id != id_of(expected))
                .collect();
            if idle {
                assert!(is_idle, "{weights}: an idle one first");
            } else {
                let free = pick(&mut d.clone(), &Request::default());
                let ours = load(d.backends().get(free.backend).expect("a member"));
                assert!(
                    (theirs - ours).abs() < 1e-9,
                    "{weights}: {ours} and {theirs}"
                );
                compared += 1;
            }
            let forced = Request {
                tried: &others,
                ..Request::default()
            };
            pick(d, &forced)
        });
    }
    assert!(compared > 200, "{compared} picks");
}
