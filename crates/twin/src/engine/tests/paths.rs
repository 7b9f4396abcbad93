//! Handling at once what is next anyway gives what the queue gives, bit for bit.

use super::super::{Delay, Path, Phase, Setup, Source};
use super::{class, record, setup};
use crate::station::{Cap, Model};
use proptest::prelude::*;
use schema::fault::Timeline;
use schema::laws::sizes::SizeLaw;

fn both(setup: &Setup, strategy: &str) {
    let inline = record(setup, strategy, Path::Inline);
    let general = record(setup, strategy, Path::General);
    assert_eq!(inline.0.0.len() as u64, setup.requests);
    assert!(inline == general, "{strategy} differs");
}

fn models() -> impl Strategy<Value = Model> {
    prop_oneof![
        Just(Model::Ps),
        Just(Model::Fcfs),
        Just(Model::Grid { step: 0.5 }),
        Just(Model::Quota {
            period: 0.5,
            host_cores: 6.0,
            phase: 0.0
        }),
        Just(Model::Weighted {
            weights: vec![1.0, 3.0],
            cap: Cap::OneCore
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn inline_is_general(
        model in models(),
        strategy in prop_oneof![
            Just("weighted-least-request"), Just("prequal"), Just("c3"), Just("polled-own-sends"),
            Just("jiq"), Just("orca-wrr"), Just("min-response-time:source=polled"), Just("maglev"),
        ],
        // Constant gaps and sizes make many events simultaneous.
        gaps in prop_oneof![Just(SizeLaw::Exponential), Just(SizeLaw::Constant)],
        sizes in prop_oneof![Just(SizeLaw::Constant), Just(SizeLaw::hyperexponential(4.0))],
        balancers in 1_u32..4,
        spread: bool,
        fetch in prop_oneof![Just(0.0), Just(0.25)],
        delay in prop_oneof![Just(0.0), Just(0.25)],
        ask in prop_oneof![Just(None), Just(Some(0.3))],
        timeout in prop_oneof![Just(None), Just(Some(2.0))],
        closed in 0_u8..3,
        broken: bool,
        seed: u64,
    ) {
        let mut setup = setup(0.8, 2_000);
        setup.model = model;
        setup.sizes = sizes;
        setup.balancers = balancers;
        setup.polls.phase = if spread { Phase::Spread } else { Phase::Together };
        setup.polls.fetch = fetch;
        setup.network = Delay::Constant(delay);
        setup.ask_first = ask;
        setup.timeout = timeout;
        setup.seed = seed;
        setup.classes = vec![class(0, 0.5), class(1, 1.5)];
        setup.classes[1].weight_class = u32::from(matches!(setup.model, Model::Weighted { .. }));
        setup.source = match closed {
            0 => Source::Open { gaps, rate_rps: 8.0 },
            1 => Source::Users { users: 20, think: 1.0 },
            _ => Source::Slots { slots: 12, calls: 3 },
        };
        if broken {
            let text = r#"{"version":1,"events":[
                {"at":"20s","on":"a","fault":"freeze","for":"5s"},
                {"at":"30s","on":"b","fault":"kill","restart_after":"5s"},
                {"at":"30s","on":"c","fault":"fast_fail","for":"50s","p":0.5,"after":"250ms"},
                {"at":"60s","on":"a","fault":"hang","for":"10s","p":0.2},
                {"at":"80s","on":"balancer","fault":"freeze","for":"2s"},
                {"at":"90s","on":"a","fault":"slow","for":"20s","factor":3},
                {"at":"90s","on":"b","fault":"refuse","for":"9s"}]}"#;
            setup.faults = Some(Timeline::parse("f", text).expect("a timeline"));
        }
        both(&setup, strategy);
    }
}
