//! Tables of the documents that must hold what the tree holds: the variables of Compose in
//! `docker/README.md`, the reasons of failures in `docs/rows.md`.

use std::collections::BTreeMap;

use crate::documents::root;

/// The cells of one variable: without a default, given by the bench, or as the file has it.
type Defaults = BTreeMap<String, String>;

/// Every `${PLUMBLINE_NAME:-DEFAULT}` and `${PLUMBLINE_NAME:?WHY}` of a Compose file.
fn defaults_of(file: &str) -> Defaults {
    let text = std::fs::read_to_string(root().join(file)).expect("a Compose file");
    let mut found = Defaults::new();
    for part in text.split("${").skip(1) {
        let (inside, _) = part.split_once('}').expect("a closed brace");
        let (name, default) = match (inside.split_once(":-"), inside.split_once(":?")) {
            (Some((name, default)), _) => (name, format!("`{default}`")),
            (None, Some((name, _))) => (name, "set by the bench".to_string()),
            (None, None) => panic!("{file}: {inside} has neither a default nor a reason"),
        };
        assert!(name.starts_with("PLUMBLINE_"), "{file}: {name}");
        let before = found.insert(name.to_string(), default.clone());
        assert!(
            before.is_none_or(|b| b == default),
            "{file}: {name} has two defaults"
        );
    }
    assert!(!found.is_empty(), "{file} has no variables");
    found
}

#[test]
fn every_variable_of_compose_is_in_the_table_and_the_other_way_round() {
    let (by_hand, bench) = (
        defaults_of("compose.yaml"),
        defaults_of("docker/bench.yaml"),
    );
    let text = std::fs::read_to_string(root().join("docker/README.md")).expect("the readme");
    let (_, table) = text.split_once("<!-- variables: begin -->").expect("begin");
    let (table, _) = table.split_once("<!-- variables: end -->").expect("end");
    let told: Vec<[String; 3]> = table
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            assert!(!cells[4].is_empty(), "{line} says nothing");
            [cells[1].trim_matches('`'), cells[2], cells[3]].map(String::from)
        })
        .collect();
    let mut names: Vec<&String> = by_hand.keys().chain(bench.keys()).collect();
    names.sort();
    names.dedup();
    let cell = |of: &Defaults, name: &String| of.get(name).map_or("–".into(), String::clone);
    let wanted: Vec<[String; 3]> = names
        .into_iter()
        .map(|name| [name.clone(), cell(&by_hand, name), cell(&bench, name)])
        .collect();
    assert_eq!(told, wanted);
}

#[test]
fn every_reason_that_the_balancer_gives_by_itself_is_explained() {
    let answers = root().join("crates/balancer/src/proxy/answer.rs");
    let source = std::fs::read_to_string(answers).expect("the balancer's answers");
    let told = std::fs::read_to_string(root().join("docs/rows.md")).expect("docs/rows.md");
    let reasons: Vec<&str> = source
        .lines()
        .filter(|line| line.contains("Refusal = (StatusCode::"))
        .filter_map(|line| line.split('"').nth(1))
        .collect();
    assert!(reasons.len() >= 10, "{reasons:?}");
    for reason in reasons {
        assert!(told.contains(&format!("`error:{reason}`")), "{reason}");
    }
}
