use super::{Arrivals, Discipline, Scenario, Sizes, Span};
use crate::laws::sizes::SizeLaw;

#[test]
fn a_file_says_what_flags_say_in_the_same_words() {
    let text = r#"{"schema":"plumbline.scenario/1","strategy":"p2c","cores":[4,3,2],"speeds":"1*3",
        "load":0.8,"sizes":"h2:10","arrivals":"lognormal:2","discipline":"quota:2S:8","poll":"0.5S","usage":"500ms",
        "seed":18446744073709551615,"apis":[{"mean_mi":20},{"mean_mi":40,"share":3}],
        "faults":{"version":1,"events":[{"at":"1s","on":"a","fault":"freeze","for":"1s"}]}}"#;
    let scenario = Scenario::parse("s.json", text).expect("good");
    assert_eq!(scenario.cores, Some(vec![4.0, 3.0, 2.0]));
    assert_eq!(scenario.speeds, Some(vec![1.0; 3]));
    let sizes = SizeLaw::hyperexponential(10.0);
    assert_eq!(scenario.sizes, Some(Sizes::Law(sizes)));
    let gaps = SizeLaw::log_normal(2.0);
    assert_eq!(scenario.arrivals, Some(Arrivals::Renewal(gaps)));
    let quota = Discipline::Quota {
        period: Span::Means(2.0),
        host_cores: Some(8.0),
    };
    assert_eq!(scenario.discipline, Some(quota));
    assert_eq!(scenario.poll.map(|p| p.seconds(0.1)), Some(0.05));
    assert_eq!(scenario.usage.map(|u| u.seconds(0.1)), Some(0.5));
    assert_eq!(scenario.seed, Some(u64::MAX));
    assert_eq!(scenario.apis[1].share, 3.0);
    assert_eq!(scenario.faults.as_ref().map(|f| f.events.len()), Some(1));

    let mut flags = Scenario::default();
    flags.set("load", "--load", "0.5").expect("good");
    let both = scenario.overridden_by(flags);
    assert_eq!(
        (both.load, both.strategy.as_deref()),
        (Some(0.5), Some("p2c"))
    );
}

#[test]
fn what_is_wrong_is_named_with_its_place_and_bound() {
    let cases = [
        (
            "{\n\"cores\":[4,0]}",
            "s.json:2:9: cores: 0 is out of range (allowed: 0.001 to 1000000)",
        ),
        (r#"{"core":[4]}"#, "did you mean \"cores\"?"),
        (
            r#"{"load":0}"#,
            "load: 0: out of range (allowed: 0.0001 to 100)",
        ),
        (r#"{"poll":"0ms"}"#, "must be above 0"),
        (r#"{"sizes":"h2:0.5"}"#, "1 to 1000"),
        (
            r#"{"arrivals":"h2:0.5"}"#,
            "SCV 0.5 is out of range (allowed: 1 to 1000)",
        ),
        (r#"{"arrivals":"pareto:x"}"#, "A \"x\" is not a number"),
        (
            r#"{"arrivals":"lognormal:1:2"}"#,
            "wrong number of values after \"lognormal\"",
        ),
        (
            r#"{"arrivals":"constant:0ms"}"#,
            "interval_ms 0 is out of range",
        ),
        (
            r#"{"weights":[0]}"#,
            "(allowed: whole numbers from 1 to 65535)",
        ),
        (
            r#"{"weights":[1.5]}"#,
            "(allowed: whole numbers from 1 to 65535)",
        ),
        (
            r#"{"weights":[65536]}"#,
            "(allowed: whole numbers from 1 to 65535)",
        ),
        (r#"{"cores":[0]}"#, "(allowed: 0.001 to 1000000)"),
        (r#"{"sizes":"gaussian"}"#, "h2:SCV"),
        (r#"{"arrivals":"gama:3"}"#, "did you mean \"gamma\"?"),
        (
            r#"{"requests":0}"#,
            "requests: 0: out of range (allowed: 1 to 1000000000000)",
        ),
        (r#"{"discipline":"quantum"}"#, "discipline"),
        (
            r#"{"apis":[{"url":"/x"}]}"#,
            "apis[0].mean_mi: missing field",
        ),
        (
            r#"{"cores":true}"#,
            "expected text, a number or a list of numbers",
        ),
        (
            "{\"faults\":{\"version\":1,\"events\":[\n{\"at\":\"1s\",\"on\":\"a\",\"fault\":\"fly\",\"for\":\"1s\"}]}}",
            "s.json:2:29: faults.events[0].fault: \"fly\": unknown fault",
        ),
    ];
    for (text, expected) in cases {
        let problems = Scenario::parse("s.json", text).expect_err(text).to_string();
        assert!(problems.contains(expected), "{text}: {problems}");
    }
}

const LAWS: &str = "det, exp, lognormal[:CV], h2:SCV, pareto:A, bimodal:RATIO:SHARE";

#[test]
fn an_unknown_word_is_answered_with_every_word_that_is_known() {
    let processes = "constant:GAP, constant:RATE, poisson:RATE, gamma:RATE:CV, bursty:RATE:CV, \
        sine:RATE:AMPLITUDE:PERIOD, ramp:FROM:TO:OVER, ramp:FROM:TO:OVER:TO:OVER..";
    let arrivals = format!(
        "(allowed: poisson, constant, workload, {LAWS}, exponential, {processes}); a RATE may be left out"
    );
    let sizes = format!("(allowed: {LAWS}, constant, exponential, workload)");
    let cases = [
        ("arrivals", "nonsense", arrivals.as_str()),
        ("sizes", "nonsense", &sizes),
        ("sizes", "workloads", "did you mean \"workload\"?"),
        ("arrivals", "poison", "did you mean \"poisson\"?"),
        (
            "arrivals",
            "gamma:80:x",
            "coefficient of variation \"x\" is not a number",
        ),
        (
            "discipline",
            "nonsense",
            "(allowed: ps, fcfs, quota[:PERIOD[:HOST_CORES]], quantum:STEP, weighted[:uncapped])",
        ),
        ("poll_phase", "nonsense", "(allowed: together, spread)"),
        ("protection", "nonsense", "(allowed: plain, guarded)"),
        (
            "network_delay",
            "nonsense",
            "100ms, 2.5s or 10min, or one of mean sizes such as 2S, or exp: and their mean",
        ),
        (
            "poll",
            "100",
            "\"100\" has no unit; expected a number with a unit such as 100ms, 2.5s or 10min, or one of mean sizes such as 2S",
        ),
    ];
    for (field, text, expected) in cases {
        let told = Scenario::default().set(field, "--flag", text);
        let told = told.expect_err(text).to_string();
        assert!(told.starts_with("--flag: "), "{told}");
        assert!(told.contains(expected), "{field}: {told}");
    }
}

/// What the lists say may be spelled, values filled in.
#[test]
fn every_word_of_the_lists_is_read() {
    let cases = [
        (
            "arrivals",
            "poisson constant workload det exp exponential lognormal lognormal:2 h2:4 pareto:2 \
            bimodal:5:0.1 constant:10ms constant:60% poisson:80 gamma:80:3 bursty:80:3 gamma:3 \
            sine:80:0.5:60s sine:0.5:60s ramp:20:80:60s ramp:20%:80%:30s:20%:0s",
        ),
        (
            "sizes",
            "det exp lognormal lognormal:2 h2:4 pareto:2 bimodal:5:0.1 constant exponential workload",
        ),
        (
            "discipline",
            "ps fcfs quota quota:50ms quota:50ms:8 quantum:1ms weighted weighted:uncapped",
        ),
        ("poll_phase", "together spread"),
        ("protection", "plain guarded"),
        ("network_delay", "1ms 2S exp:1ms exp:2S"),
    ];
    for (field, words) in cases {
        for word in words.split_whitespace() {
            let set = Scenario::default().set(field, "--flag", word);
            assert_eq!(set, Ok(()), "{field} {word}");
        }
    }
}

#[test]
fn a_list_of_models_is_as_many_models() {
    let text = r#"{"model":["a.plbtab","live=b,c.plbtab"]}"#;
    let scenario = Scenario::parse("s.json", text).expect("good");
    assert_eq!(scenario.model, ["a.plbtab", "live=b,c.plbtab"]);
    let one = Scenario::parse("s.json", r#"{"model":"a.plbtab"}"#).expect("good");
    assert_eq!(one.model, ["a.plbtab"]);
}

#[test]
fn lists_repeat_with_a_star() {
    let mut scenario = Scenario::default();
    scenario.set("cores", "--cores", "1*1000,4").expect("good");
    assert_eq!(scenario.cores.as_ref().map(Vec::len), Some(1001));
    for bad in ["", "4,,2", "1*0", "1*1000000", "x", "4,-1", "NaN"] {
        assert!(scenario.set("cores", "--cores", bad).is_err(), "{bad}");
    }
}
