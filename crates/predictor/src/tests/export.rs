//! What the reader of exports refuses.

use super::golden::{MODELS, about, asked, texts};
use crate::catboost::{Model, Row};

/// The refusal of an export after one piece of its text was replaced.
fn refused(place: usize, from: &str, to: &str) -> String {
    let text = std::str::from_utf8(MODELS[place].export).unwrap();
    assert!(text.contains(from), "{from}");
    let text = text.replacen(from, to, 1);
    Model::from_json(text.as_bytes()).expect_err(to).to_string()
}

#[test]
fn what_this_reader_does_not_know_is_refused_with_the_place_and_the_value() {
    let cases = [
        (
            "\"Counter\",\"elements\"",
            "\"FeatureFreq\",\"elements\"",
            "FeatureFreq with hash_stride 2",
        ),
        ("\"hash_stride\":3", "\"hash_stride\":2", "hash_stride 2"),
        ("\"hash_stride\":3", "\"hash_stride\":4", "hash_stride 4"),
        (
            "\"oblivious_trees\":",
            "\"trees\":",
            "oblivious_trees: is missing",
        ),
        (
            "\"split_index\":",
            "\"split_index\":9",
            "splits at a border that is not there",
        ),
        (
            "\"leaf_values\":[",
            "\"leaf_values\":[0,",
            "wrong number of leaf values",
        ),
        (
            "\"combination_element\":\"cat_feature_value\"",
            "\"combination_element\":\"hash\"",
            "unknown variant `hash`",
        ),
        (
            "\"feature_index\":1",
            "\"feature_index\":3",
            "feature_index: 3: is out of order",
        ),
        ("\"AsIs\"", "\"AsBefore\"", "AsBefore"),
        (
            "\"target_border_idx\":0",
            "\"target_border_idx\":1",
            "target_border_idx: 1",
        ),
        (
            "\"float_feature_index\":",
            "\"float_feature_index\":7",
            "below 4",
        ),
        (
            "\"scale_and_bias\":[1,[",
            "\"scale_and_bias\":[1,[0,",
            "one output",
        ),
        (
            "\"features_info\":{",
            "\"features_info\":{\"text_features\":[{}],",
            "text or embedding",
        ),
        (
            "\"prior_denomerator\":",
            "\"prior_denomerator\":1e39,\"x\":",
            "out of range",
        ),
        ("\"18446744073709551615\"", "\"x\"", "hash \"x\""),
        (
            "\"18446744073709551615\"",
            "7",
            "not hashes, each with its counts",
        ),
        (
            "\"counter_denominator\":34",
            "\"counter_denominator\":9999999999",
            "a count is out of range",
        ),
    ];
    for (from, to, expected) in cases {
        // Some are about trees' own text: combinations come with a float test and a Counter.
        let text = refused(3, from, to);
        assert!(text.contains(expected), "{to}: {text}");
    }
}

#[test]
fn no_truncation_and_no_lost_piece_of_an_export_panics() {
    let export = MODELS[3].export;
    for length in (0..export.len()).step_by(509) {
        assert!(Model::from_json(&export[..length]).is_err());
    }
    for begin in (0..export.len() - 40).step_by(811) {
        let cut: Vec<u8> = [&export[..begin], &export[begin + 40..]].concat();
        // Some cuts leave a whole export of fewer digits; those must still be evaluable.
        if let Ok(model) = Model::from_json(&cut) {
            model.evaluate(&asked()[0].row());
        }
    }
}

#[test]
fn a_tree_without_splits_is_its_only_leaf() {
    let text = br#"{"features_info":{},"oblivious_trees":[{"splits":null,"leaf_values":[2.5]},
        {"leaf_values":[0.25]}],"scale_and_bias":[2,[-1]]}"#;
    let row = Row {
        numbers: vec![],
        categories: vec![],
    };
    assert_eq!(
        Model::from_json(text).unwrap().evaluate(&row),
        2.0 * 2.75 - 1.0
    );
}

#[test]
fn an_input_that_a_table_does_not_know_is_refused() {
    let text = std::str::from_utf8(MODELS[2].export).unwrap();
    for (from, to) in [("\"cores\"", "\"disks\""), ("\"method\"", "\"client\"")] {
        let model = Model::from_json(text.replacen(from, to, 1).as_bytes()).unwrap();
        let refusal = model.table(about(&texts())).unwrap_err().to_string();
        assert!(refusal.contains(to.trim_matches('"')), "{refusal}");
    }
}
