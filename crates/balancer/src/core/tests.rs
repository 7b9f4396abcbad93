use super::{Attempt, Core, Picked, Ticket, Told};
use crate::ask_first::Asking;
use crate::event_log::EventLog;
use schema::decision::Decision;
use schema::event::Event;
use schema::report::{Report, Source};
use schema::rng::{Purpose, below, stream};
use std::path::Path;
use std::sync::Arc;
use strategies::{Answer, BackendId, Dispatcher, NewBackend, Options, Status};

fn core(strategy: &str, log: Option<&Path>) -> Arc<Core> {
    let member = |(name, weight): (&str, u32)| NewBackend {
        name: name.to_string(),
        url: "http://127.0.0.1:9".to_string(),
        weight,
        cores: f64::from(weight),
        memory_mib: 1024.0,
    };
    let members = [("a", 4), ("b", 3), ("c", 2)].map(member);
    let spec = strategy.parse().unwrap();
    let dispatcher = Dispatcher::new(&spec, &members, Options::default()).unwrap();
    let log = log.map(|path| EventLog::create(path).unwrap());
    Core::new(dispatcher, log, "plain", Asking::new(None))
}

fn pick(core: &Arc<Core>, tried: &[BackendId]) -> Option<Picked> {
    core.pick(&Attempt {
        request_id: "r",
        method: "GET",
        url: "/a?secret=1",
        client: [127, 0, 0, 1].into(),
        headers: &http::HeaderMap::new(),
        body_len: 0,
        number: 0,
        tried,
        cost_mi: None,
    })
}

/// The record that goes to the client says nothing that its reader takes for impossible.
#[test]
fn the_spelling_of_every_strategy_passes_the_reader_of_decisions() {
    for known in strategies::registry::describe() {
        let spec = known.name.parse::<strategies::Spec>().unwrap();
        for strategy in [spec.to_string(), known.name.to_string()] {
            let decision = Decision {
                strategy: Some(strategy),
                ..Decision::default()
            };
            let read = Decision::read(&decision.to_string());
            assert_eq!(read, (decision, None));
        }
    }
}

#[test]
fn in_flight_equals_the_open_tickets_after_every_step() {
    let core = core("least-request", None);
    let mut rng = stream(3, Purpose::Faults, 0, 0);
    let mut open: Vec<Ticket> = Vec::new();
    for step in 0..10_000 {
        let ends = below(&mut rng, 2) == 0 && !open.is_empty();
        if ends {
            let ticket = open.swap_remove(below(&mut rng, open.len() as u64) as usize);
            match below(&mut rng, 5) {
                0 => ticket.finish(&Answer::new(Status::Ok), Told::default()),
                1 => ticket.fail(Status::Error),
                2 => ticket.fail(Status::Timeout),
                3 => ticket.fail(Status::Refused),
                // The client is gone or the task aborted: the ticket is just dropped.
                _ => drop(ticket),
            }
        } else {
            open.extend(pick(&core, &[]).map(|picked| picked.ticket));
        }
        let state = core.lock();
        assert_eq!(state.dispatcher.open_len(), open.len(), "step {step}");
        for backend in state.dispatcher.backends().members() {
            let own = open.iter().filter(|t| t.backend() == backend.id).count();
            assert_eq!(backend.in_flight as usize, own, "step {step}");
            let counts = state.counts.peek(backend.id);
            let ended = counts.ok + counts.errors() + counts.cancelled;
            assert_eq!(counts.picks, ended + own as u64, "step {step}");
        }
    }
    drop(open);
    assert_eq!(core.lock().dispatcher.open_len(), 0);
}

#[test]
fn a_reset_is_refused_in_flight_and_forgets_everything_but_the_members() {
    let folder = tempfile::tempdir().unwrap();
    let core = core("random", Some(&folder.path().join("x.jsonl")));
    core.lock().set_weight(BackendId(1), 9).unwrap();
    let picked = pick(&core, &[]);
    let refused = core.lock().reset(None, None, Some("y.jsonl"));
    assert!(refused.is_err(), "in flight");
    assert!(
        !folder.path().join("y.jsonl").exists(),
        "a refused reset leaves no file"
    );
    drop(picked);
    let old_log = core.lock().reset(None, Some(9), Some("y.jsonl"));
    old_log.unwrap().unwrap().recv().unwrap();
    {
        let mut state = core.lock();
        assert_eq!(state.dispatcher.options().seed, 9);
        assert_eq!(state.dispatcher.members()[1].weight, 9);
        assert_eq!(state.counts.peek(BackendId(0)).picks, 0);
        assert!(state.counts.last_picks.is_empty());
        state.report(BackendId(0), None, Report::empty(Source::Docker, 0));
    }
    drop(core);
    for name in ["x.jsonl", "y.jsonl"] {
        let text = std::fs::read_to_string(folder.path().join(name)).unwrap();
        let first: Event = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        assert!(matches!(first, Event::Start { .. }), "{name}");
        assert!(!text.contains("secret"), "query values stay out of logs");
    }
}

#[test]
fn the_decision_tells_what_was_known_before_the_pick() {
    let core = core("round-robin", None);
    let first = pick(&core, &[]).unwrap();
    let text = first.decision.to_string();
    assert!(text.contains("container=a,attempts=1,pick_ns="), "{text}");
    assert!(text.contains(",in_flight=0,cores=4,memory_gb=1"), "{text}");
    assert!(
        !text.contains("stats_age") && !text.contains("active"),
        "{text}"
    );
    assert!(pick(&core, &[BackendId(0), BackendId(1), BackendId(2)]).is_none());
}
