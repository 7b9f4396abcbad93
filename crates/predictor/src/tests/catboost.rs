//! The reader of exports against predictions of the library itself: every difference must be 0.

use super::golden::{Asked, HASHES, MODELS, TABLES, about, asked, model, predictions, texts};
use crate::catboost::{Row, category_hash};
use crate::{ApiName, Axis, Candidate, LatencyTable};

#[test]
fn categories_of_every_length_hash_as_the_library_hashes_them() {
    let expected: Vec<i32> = serde_json::from_str(HASHES).unwrap();
    assert_eq!(expected.len(), 300);
    let letters = b"/abcdefghijklmnopqrstuvwxyz-0123456789";
    for (length, expected) in expected.iter().enumerate() {
        let text: String = (0..length)
            .map(|i| char::from(letters[i % letters.len()]))
            .collect();
        assert_eq!(category_hash(&text), *expected, "{length} bytes");
    }
}

#[test]
fn every_prediction_of_every_model_is_the_librarys_to_the_last_bit() {
    let rows = asked();
    assert_eq!(rows.len(), 3000);
    for golden in &MODELS {
        let model = model(golden);
        assert_eq!(
            model.number_names().collect::<Vec<_>>(),
            ["cores", "memory_gb", "active", "mean50"]
        );
        assert_eq!(
            model.category_names().collect::<Vec<_>>(),
            ["method", "url"]
        );
        let expected = predictions(golden);
        assert_eq!(expected.len(), rows.len());
        for (i, (row, expected)) in rows.iter().zip(&expected).enumerate() {
            let got = model.evaluate(&row.row());
            assert_eq!(
                got.to_bits(),
                expected.to_bits(),
                "{} row {i}: {got} {expected}",
                golden.name
            );
        }
    }
}

#[test]
fn the_stored_rows_hold_what_the_check_needs() {
    let texts = texts();
    let rows = asked();
    let count = |what: &dyn Fn(&Asked) -> bool| rows.iter().filter(|row| what(row)).count();
    assert!(
        count(&|r| texts.methods[3..].contains(&r.method)) > 500,
        "unknown methods"
    );
    assert!(
        count(&|r| texts.urls[7..].contains(&r.url)) > 300,
        "unknown URLs"
    );
    assert!(
        count(&|r| r.active.is_nan() || r.mean50.is_nan()) > 5,
        "NaN"
    );
    assert!(count(&|r| r.mean50.is_infinite()) > 5, "infinite");
    // Every model must be asked on borders and one f32 beyond, on both axes.
    for golden in &MODELS {
        let header = model(golden).table(about(&texts)).unwrap().header().clone();
        for (axis, value) in [(0, (|r| r.active) as fn(&Asked) -> f32), (1, |r| r.mean50)] {
            let borders = &header.axes[axis].borders;
            assert!(!borders.is_empty());
            for border in borders {
                assert!(
                    count(&|r| value(r) == *border) > 0,
                    "{} {border}",
                    golden.name
                );
                assert!(
                    count(&|r| value(r) == border.next_up()) > 0,
                    "{} {border}",
                    golden.name
                );
            }
        }
    }
    // The models between them use every rule of the format.
    let all: String = MODELS
        .iter()
        .map(|g| std::str::from_utf8(g.export).unwrap())
        .collect();
    for rule in [
        "\"Counter\"",
        "\"Borders\"",
        "cat_feature_value",
        "cat_feature_exact_value",
        "float_feature\"",
        "\"OneHotFeature\"",
        "\"18446744073709551615\"",
    ] {
        assert!(all.contains(rule), "{rule}");
    }
}

#[test]
fn the_table_built_here_is_the_trainers_to_the_last_bit() {
    for (place, bytes) in TABLES {
        let theirs = LatencyTable::from_bytes(bytes).unwrap();
        let ours = model(&MODELS[place])
            .table(theirs.header().clone())
            .unwrap();
        assert_eq!(ours.header(), theirs.header());
        let bits = |table: &LatencyTable| {
            table
                .cells()
                .iter()
                .map(|c| c.to_bits())
                .collect::<Vec<_>>()
        };
        assert_eq!(bits(&ours), bits(&theirs));
    }
}

#[test]
fn every_cell_holds_from_the_first_f32_of_its_bin_to_its_border() {
    for (place, bytes) in TABLES {
        let model = model(&MODELS[place]);
        let table = LatencyTable::from_bytes(bytes).unwrap();
        let header = table.header();
        // A text that no fixture has stands for the unknown.
        let hash = |text: &Option<String>| category_hash(text.as_deref().unwrap_or("never seen"));
        let ends = |axis: &Axis| -> Vec<f32> {
            let beyond = axis.borders.iter().map(|b| b.next_up());
            axis.borders
                .iter()
                .copied()
                .chain(beyond)
                .chain([f32::MIN, f32::MAX])
                .collect()
        };
        for api in &header.apis {
            let asked = table.api(
                api.method.as_deref().unwrap_or("?"),
                api.url.as_deref().unwrap_or("?"),
            );
            assert_eq!(table.api_name(asked), Some(api));
            for shape in &header.containers {
                let container = table.container(shape.cores, shape.memory_gb);
                for first in ends(&header.axes[0]) {
                    for second in ends(&header.axes[1]) {
                        let row = Row {
                            numbers: vec![
                                shape.cores as f32,
                                shape.memory_gb as f32,
                                first,
                                second,
                            ],
                            categories: vec![hash(&api.method), hash(&api.url)],
                        };
                        let bins = (table.first_bin(first), table.second_bin(second));
                        let got = table.predict(asked, container, bins.0, bins.1);
                        assert_eq!(
                            got.to_bits(),
                            model.evaluate(&row).to_bits(),
                            "{api} {first} {second}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn the_table_picks_the_container_that_the_library_picks() {
    let rows = asked();
    for (place, bytes) in TABLES {
        let model = model(&MODELS[place]);
        let table = LatencyTable::from_bytes(bytes).unwrap();
        for row in &rows {
            let api = table.api(&row.method, &row.url);
            let ApiName { method, url } = table.api_name(api).unwrap();
            // Of a stand-in, the model is asked with texts that it never saw.
            let text = |text: &Option<String>| text.clone().unwrap_or("never seen".into());
            let active = row.active.clamp(0.0, 1e6) as u32;
            let candidates = [4.0_f32, 3.0, 2.0].map(|cores| Candidate {
                container: table.container(cores.into(), (3.0 * cores).into()),
                active,
                mean50: table.second_bin(row.mean50),
            });
            let costs = [4.0_f32, 3.0, 2.0].map(|cores| {
                let asked = Asked {
                    method: text(method),
                    url: text(url),
                    cores,
                    memory_gb: 3.0 * cores,
                    active: active as f32,
                    mean50: row.mean50,
                };
                model.evaluate(&asked.row())
            });
            let least = costs.iter().copied().fold(f64::INFINITY, f64::min);
            let first = costs.iter().position(|c| *c == least).unwrap();
            assert_eq!(table.argmin(api, &candidates), Some((first, least)));
        }
    }
}
