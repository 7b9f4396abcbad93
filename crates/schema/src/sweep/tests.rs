use super::{MAX_RUNS, Sweep};
use proptest::prelude::*;

fn parse(text: &str) -> Result<Sweep, String> {
    Sweep::parse("s.json", text).map_err(|e| e.to_string())
}

const TWO_GRIDS: &str = r#"{"schema":"plumbline.sweep/1","name":"n","seeds":2,
    "base":{"requests":1000,"load":0.5,"seed":7},
    "grids":[
      {"axes":[{"name":"pool","cases":{"W":{"cores":[4,3,2]},"S":{"cores":[0.8],"load":0.4}}},
               {"field":"strategy","values":["p2c","random","jiq"]}]},
      {"base":{"cores":[1],"strategy":"random"},"axes":[{"field":"load","values":[0.1,0.2]}]}]}"#;

#[test]
fn runs_are_numbered_in_the_order_of_the_file_the_seed_fastest() {
    let sweep = parse(TWO_GRIDS).expect("good");
    assert_eq!(
        (sweep.runs(), sweep.axes()),
        (16, vec!["pool", "strategy", "load"])
    );
    let run = |index: u64| sweep.run(index).expect("a run");
    assert_eq!(run(0).labels, [("pool", "W"), ("strategy", "p2c")]);
    assert_eq!(
        (run(0).scenario.seed, run(1).scenario.seed),
        (Some(7), Some(8))
    );
    assert_eq!(run(1).labels, run(0).labels);
    assert_eq!(run(11).labels, [("pool", "S"), ("strategy", "jiq")]);
    let scenario = run(11).scenario;
    assert_eq!((scenario.load, scenario.requests), (Some(0.4), Some(1000)));
    assert_eq!(scenario.strategy.as_deref(), Some("jiq"));
    assert_eq!(run(14).labels, [("load", "0.2")]);
    assert_eq!(run(14).scenario.cores, Some(vec![1.0]));
}

#[test]
fn what_is_wrong_is_named_with_its_place_and_bound() {
    let axes = |axes: &str| {
        format!(
            "{{\"schema\":\"plumbline.sweep/1\",\"name\":\"n\",\"grids\":[{{\"axes\":[{axes}]}}]}}"
        )
    };
    let cases = [
        ("{}".to_string(), "schema: missing field"),
        (
            TWO_GRIDS.replace("sweep/1", "sweep/9"),
            "(allowed: plumbline.sweep/1)",
        ),
        (
            TWO_GRIDS.replace("\"seeds\":2", "\"seeds\":0"),
            "s.json:1:50: seeds: 0: out of range (allowed: 1 to 10000)",
        ),
        (
            TWO_GRIDS.replace("0.2]", "0.2,0]"),
            "grids[1].axes[0].values[2]: 0: out of range (allowed: 0.0001 to 100)",
        ),
        (
            TWO_GRIDS.replace("0.8]", "-1]"),
            "grids[0].axes[0].cases.S.cores: -1 is out of range",
        ),
        (
            TWO_GRIDS.replace("\"load\":0.5", "\"lod\":0.5"),
            "base.lod: 0.5: unknown field; did you mean \"load\"?",
        ),
        (
            TWO_GRIDS.replace("\"grids\"", "\"grid\""),
            "did you mean \"grids\"?",
        ),
        (axes(""), "0 axes (allowed: 1 to 16)"),
        (
            axes(r#"{"field":"lood","values":[1]}"#),
            "did you mean \"load\"?",
        ),
        (
            axes(r#"{"field":"seed","values":[1]}"#),
            "seeds are said once",
        ),
        (axes(r#"{"field":"apis","values":[1]}"#), "give cases"),
        (
            axes(r#"{"field":"load","cases":{}}"#),
            "either a field with values or a name with cases",
        ),
        (
            axes(r#"{"name":"load","cases":{"a":{}}}"#),
            "the name of a field",
        ),
        (
            axes(r#"{"name":"x","cases":{}}"#),
            "0 cases (allowed: 1 to 1000)",
        ),
        (
            axes(r#"{"name":"x,y","cases":{"a":{}}}"#),
            "\"x,y\" is no plain name",
        ),
        (
            axes(r#"{"name":"x","cases":{"a":{},"a":{}}}"#),
            "duplicate field",
        ),
        (
            axes(r#"{"field":"load","values":[0.1,0.1]}"#),
            "\"0.1\" twice on one axis; keep one",
        ),
        (
            axes(r#"{"field":"load","values":[0.1]},{"field":"load","values":[0.2]}"#),
            "a second axis \"load\"",
        ),
        (
            axes(r#"{"field":"load","values":[true]}"#),
            "expected text, a number or a list",
        ),
    ];
    for (text, said) in cases {
        let error = parse(&text).expect_err(&text);
        assert!(error.contains(said), "{said}\n{error}");
    }
}

#[test]
fn the_number_of_runs_has_a_limit_that_no_product_gets_around() {
    let values: Vec<String> = (1..=1000).map(|i| format!("{i}")).collect();
    let axis = |field: &str| {
        format!(
            "{{\"field\":\"{field}\",\"values\":[{}]}}",
            values.join(",")
        )
    };
    let fields = [
        "rate_rps",
        "mips_per_core",
        "requests",
        "warmup",
        "users",
        "balancers",
        "calls",
    ];
    let axes: Vec<String> = fields.map(axis).to_vec();
    let text = format!(
        "{{\"schema\":\"plumbline.sweep/1\",\"name\":\"n\",\"seeds\":10000,\"grids\":[{{\"axes\":[{}]}}]}}",
        axes.join(",")
    );
    let error = parse(&text).expect_err("too many");
    assert!(error.contains(&format!("up to {MAX_RUNS}")), "{error}");
}

#[test]
fn seeds_beyond_the_largest_are_refused() {
    let text = TWO_GRIDS.replace("\"seed\":7", "\"seed\":18446744073709551615");
    let sweep = parse(&text).expect("good");
    assert!(sweep.run(0).is_ok());
    let error = sweep.run(1).expect_err("no seed").to_string();
    assert!(error.contains("0 to 18446744073709551614"), "{error}");
}

proptest! {
    #[test]
    fn every_cell_comes_once(sizes in prop::collection::vec(1_usize..5, 1..4), seeds in 1_u32..4) {
        let axis = |(at, n): (usize, &usize)| {
            let cases: Vec<String> = (0..*n).map(|i| format!("\"c{i}\":{{\"requests\":{}}}", i + 1)).collect();
            format!("{{\"name\":\"a{at}\",\"cases\":{{{}}}}}", cases.join(","))
        };
        let axes: Vec<String> = sizes.iter().enumerate().map(axis).collect();
        let text = format!(
            "{{\"schema\":\"plumbline.sweep/1\",\"name\":\"n\",\"seeds\":{seeds},\"grids\":[{{\"axes\":[{}]}}]}}",
            axes.join(",")
        );
        let sweep = parse(&text).expect("good");
        prop_assert_eq!(sweep.runs(), sizes.iter().product::<usize>() as u64 * u64::from(seeds));
        let keys = (0..sweep.runs()).map(|i| {
            let run = sweep.run(i).expect("a run");
            let labels: Vec<String> = run.labels.iter().map(|(_, l)| (*l).to_string()).collect();
            (labels, run.scenario.seed)
        });
        let all: Vec<_> = keys.collect();
        // Single-digit labels: the order of the numbers is that of the labels.
        prop_assert!(all.windows(2).all(|w| w[0] < w[1]));
    }
}
