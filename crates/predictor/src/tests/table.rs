//! The table file: round trips against a linear scan, refusals of damage, look-up rules.

use proptest::prelude::*;
use sha2::{Digest, Sha256};

use super::plain;
use crate::header::MAX_CONTAINERS;
use crate::table::{MAGIC, MAX_FILE_BYTES, MAX_HEADER_BYTES};
use crate::{ApiName, Candidate, LatencyTable, Refusal};

/// The file of `header` and `cells`, put together here as the layout says, digest included.
fn file(header: &[u8], cells: &[f64]) -> Vec<u8> {
    let mut bytes = b"PLBTAB01".to_vec();
    bytes.extend((header.len() as u32).to_le_bytes());
    bytes.extend(header);
    while !bytes.len().is_multiple_of(8) {
        bytes.push(0);
    }
    for cell in cells {
        bytes.extend(cell.to_bits().to_le_bytes());
    }
    signed(bytes)
}

fn signed(mut bytes: Vec<u8>) -> Vec<u8> {
    let digest = Sha256::digest(&bytes);
    bytes.extend(digest);
    bytes
}

fn refusal(bytes: &[u8]) -> Refusal {
    LatencyTable::from_bytes(bytes).expect_err("must be refused")
}

/// The refusal of the small table's file after `edit` changed its header.
fn refused_header(edit: impl FnOnce(&mut serde_json::Value)) -> String {
    let plain = plain::small();
    let mut header = serde_json::to_value(plain.header()).unwrap();
    edit(&mut header);
    refusal(&file(header.to_string().as_bytes(), &plain.cells())).to_string()
}

#[test]
fn a_file_by_the_layout_is_read_and_written_back_to_the_same_bytes() {
    let plain = plain::small();
    let header = serde_json::to_vec(&plain.header()).unwrap();
    let bytes = file(&header, &plain.cells());
    let table = LatencyTable::from_bytes(&bytes).unwrap();
    assert_eq!(table.header(), &plain.header());
    assert_eq!(table.to_bytes().unwrap(), bytes);
}

#[test]
fn a_header_with_more_fields_and_spaces_is_read() {
    let plain = plain::small();
    let mut header = serde_json::to_value(plain.header()).unwrap();
    header["note"] = "of a later writer".into();
    let text = format!("{}\n \n", serde_json::to_string_pretty(&header).unwrap());
    let table = LatencyTable::from_bytes(&file(text.as_bytes(), &plain.cells())).unwrap();
    assert_eq!(table.cells(), plain.cells());
}

#[test]
fn every_single_flipped_bit_is_refused() {
    let mut bytes = plain::small().table().to_bytes().unwrap();
    for place in 0..bytes.len() {
        let bit = 1 << (place % 8);
        bytes[place] ^= bit;
        assert!(LatencyTable::from_bytes(&bytes).is_err(), "byte {place}");
        bytes[place] ^= bit;
    }
    assert!(LatencyTable::from_bytes(&bytes).is_ok());
}

#[test]
fn every_truncation_and_any_extra_byte_is_refused() {
    let mut bytes = plain::small().table().to_bytes().unwrap();
    for length in 0..bytes.len() {
        assert!(
            LatencyTable::from_bytes(&bytes[..length]).is_err(),
            "{length} bytes"
        );
    }
    bytes.push(0);
    assert!(LatencyTable::from_bytes(&bytes).is_err());
}

#[test]
fn signed_nonsense_is_refused_without_a_panic() {
    for length in 0..64 {
        let mut bytes = MAGIC.to_vec();
        bytes.resize(8 + length, 0xff);
        assert!(LatencyTable::from_bytes(&signed(bytes)).is_err());
    }
    for claimed in [0, 1, 2, 200, MAX_HEADER_BYTES as u32, u32::MAX] {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(claimed.to_le_bytes());
        bytes.extend(b"{}");
        assert!(LatencyTable::from_bytes(&signed(bytes)).is_err());
    }
}

#[test]
fn messages_name_the_place_the_value_the_bound_and_the_next_step() {
    let text = refusal(b"\x7fELF and so on").to_string();
    assert!(
        text.contains("bytes 0..8") && text.contains("PLBTAB01"),
        "{text}"
    );

    let text = refusal(&vec![0; MAX_FILE_BYTES + 1]).to_string();
    assert!(
        text.contains("67108865 bytes") && text.contains("border_count"),
        "{text}"
    );

    let mut bytes = plain::small().table().to_bytes().unwrap();
    bytes[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
    let text = refusal(&bytes).to_string();
    assert!(
        text.contains("4294967295") && text.contains("2 to 16777216"),
        "{text}"
    );

    let mut bytes = plain::small().table().to_bytes().unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    let text = refusal(&bytes).to_string();
    assert!(
        text.contains("SHA-256") && text.contains("export the model again"),
        "{text}"
    );
}

#[test]
fn padding_must_be_zeros() {
    let plain = plain::small();
    let mut header = serde_json::to_vec(&plain.header()).unwrap();
    while (12 + header.len()) % 8 != 5 {
        header.push(b' ');
    }
    let mut bytes = file(&header, &plain.cells());
    assert!(LatencyTable::from_bytes(&bytes).is_ok());
    bytes.truncate(bytes.len() - 32);
    bytes[12 + header.len() + 2] = 1;
    let text = refusal(&signed(bytes)).to_string();
    assert!(text.contains("padding"), "{text}");
}

#[test]
fn a_wrong_number_of_cells_is_refused_and_so_is_a_cell_that_is_not_finite() {
    let plain = plain::small();
    let header = serde_json::to_vec(&plain.header()).unwrap();
    let mut cells = plain.cells();
    let last = cells.pop().unwrap();
    let text = refusal(&file(&header, &cells)).to_string();
    assert!(text.contains("cells of 8 bytes"), "{text}");
    cells.push(last);
    cells.push(last);
    assert!(LatencyTable::from_bytes(&file(&header, &cells)).is_err());
    cells.pop();
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        // Two containers, two bins and three bins: cell 13 is API 1, container 0, bins 0 and 1.
        cells[13] = bad;
        let text = refusal(&file(&header, &cells)).to_string();
        assert!(text.contains("cell 13 (api 1 "), "{text}");
        assert!(text.contains("container 0, bins 0 and 1)"), "{text}");
    }
}

/// A change to a header's JSON.
type Edit = fn(&mut serde_json::Value);

#[test]
fn headers_that_the_look_up_cannot_serve_are_refused() {
    let cases: [(&str, Edit); 22] = [
        ("schema", |h| {
            h["schema"] = "plumbline.latency-table/2".into()
        }),
        ("unit", |h| h["unit"] = "s".into()),
        ("model_sha256", |h| h["model_sha256"] = "abc".into()),
        ("kept_trees", |h| h["kept_trees"] = 2251.into()),
        ("missing field `cap_trees`", |h| {
            drop(h.as_object_mut().unwrap().remove("cap_trees"))
        }),
        ("missing field `blocked`", |h| {
            drop(h["r2"].as_object_mut().unwrap().remove("blocked"))
        }),
        ("unknown variant", |h| {
            h["trained_on"]["statistics"] = "guessed".into()
        }),
        ("axes: active, latency", |h| {
            h["axes"][1]["feature"] = "latency".into()
        }),
        ("axes: mean50, active", |h| {
            h["axes"].as_array_mut().unwrap().swap(0, 1)
        }),
        ("invalid length", |h| {
            drop(h["axes"].as_array_mut().unwrap().pop())
        }),
        ("axes[1].borders[1]: 40: must be ascending", |h| {
            h["axes"][1]["borders"][1] = 40.0.into()
        }),
        ("axes[1].borders[1]: 39: must be ascending", |h| {
            h["axes"][1]["borders"][1] = 39.0.into()
        }),
        ("axes[0].borders", |h| {
            h["axes"][0]["borders"][0] = 1e39.into()
        }),
        ("containers: 0", |h| h["containers"] = serde_json::json!([])),
        ("containers[1].cores: 0", |h| {
            h["containers"][1]["cores"] = 0.into()
        }),
        ("containers[1].memory_gb: -1", |h| {
            h["containers"][1]["memory_gb"] = (-1).into()
        }),
        ("containers[1]: 4 cores, 12 GB: is listed twice", |h| {
            h["containers"][1] = h["containers"][0].clone();
        }),
        ("apis[1]: GET /a: is listed twice", |h| {
            h["apis"][1] = h["apis"][0].clone()
        }),
        ("apis[1]: (any method) /b: has a URL but no method", |h| {
            h["apis"][1]["method"] = serde_json::Value::Null;
        }),
        ("lacks the stand-in for unknown requests", |h| {
            drop(h["apis"].as_array_mut().unwrap().pop())
        }),
        ("lacks the stand-in for unknown requests", |h| {
            h["apis"][2]["method"] = "PUT".into()
        }),
        ("apis: names no trained API", |h| {
            h["apis"] = serde_json::json!([{"method": null, "url": null}]);
        }),
    ];
    for (expected, edit) in cases {
        let text = refused_header(edit);
        // A border beyond f32 is refused by the JSON reader or the check, whichever meets it first.
        let found =
            text.contains(expected) || (expected == "axes[0].borders" && text.contains("range"));
        assert!(found, "{expected}: {text}");
    }
}

#[test]
fn numbers_of_cells_that_overflow_are_refused() {
    let text = refused_header(|h| {
        let many = |n: usize| serde_json::Value::from_iter((0..n).map(|i| i as f64));
        h["axes"][0]["borders"] = many(65_535);
        h["axes"][1]["borders"] = many(65_535);
        h["containers"] = serde_json::Value::from_iter(
            (1..=MAX_CONTAINERS).map(|i| serde_json::json!({"cores": i, "memory_gb": 1})),
        );
    });
    // Four APIs, ten thousand containers and 2^32 bins need 2^57 bytes: counted, never allocated.
    assert!(text.contains("171798691840000 cells"), "{text}");
    assert!(
        refused_header(|h| h["axes"][0]["borders"] = vec![1.0; 65_536].into())
            .contains("at most 65535")
    );
}

#[test]
fn unknown_requests_fall_back_to_their_method_and_then_to_everything() {
    let table = plain::small().table();
    let name = |method, url| table.api_name(table.api(method, url)).unwrap().to_string();
    assert_eq!(name("GET", "/a"), "GET /a");
    assert_eq!(name("GET", "/a?id=7"), "GET /a");
    assert_eq!(name("GET", "/a/"), "GET (any URL)");
    assert_eq!(name("GET", ""), "GET (any URL)");
    assert_eq!(name("get", "/a"), "(any method) (any URL)");
    assert_eq!(name("POST", "/a"), "(any method) (any URL)");
    assert!(table.api_name(table.mean_api()).is_none());
}

#[test]
fn an_unknown_container_gets_the_nearest_in_cores_then_memory_then_the_first() {
    let mut plain = plain::small();
    plain.containers = vec![(4.0, 12.0), (2.0, 6.0), (2.0, 8.0)];
    for api in &mut plain.values {
        api.push(api[0].clone());
    }
    let table = plain.table();
    let found = |cores, memory| {
        let container = table.container(cores, memory);
        (0..3)
            .find(|i| table.container(plain.containers[*i].0, plain.containers[*i].1) == container)
    };
    assert_eq!(found(4.0, 12.0), Some(0));
    assert_eq!(found(64.0, 6.0), Some(0));
    assert_eq!(found(0.5, 7.5), Some(2));
    assert_eq!(found(3.0, 7.0), Some(1), "cores tie, memory nearer");
    assert_eq!(found(2.0, 7.0), Some(1), "all equal: the first");
    assert_eq!(found(f64::NAN, f64::NAN), Some(0));
    assert!(table.knows_container(2.0, 8.0) && !table.knows_container(2.0, 7.0));
}

#[test]
fn a_value_on_a_border_is_below_it_and_the_next_f32_is_beyond() {
    let table = plain::small().table();
    for border in [40.0_f32, 80.5] {
        assert_ne!(table.second_bin(border), table.second_bin(border.next_up()));
        assert_eq!(
            table.second_bin(border),
            table.second_bin(border.next_down())
        );
    }
    assert_eq!(
        table.first_bin(f32::NAN),
        table.first_bin(f32::NEG_INFINITY)
    );
    assert_eq!(table.first_bin(f32::INFINITY), table.first_bin(1e30));
}

#[test]
fn the_first_of_equal_candidates_wins_and_no_candidate_is_no_answer() {
    let table = plain::small().table();
    let api = table.api("GET", "/a");
    assert_eq!(table.argmin(api, &[]), None);
    let one = Candidate {
        container: table.container(4.0, 12.0),
        active: 1,
        mean50: table.second_bin(0.0),
    };
    assert_eq!(table.argmin(api, &[one, one, one]).unwrap().0, 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn look_ups_of_a_reread_table_equal_a_linear_scan(
        plain in plain::any(),
        asks in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0u32..3000, -10f32..3000.0), 1..40),
    ) {
        let table = LatencyTable::from_bytes(&plain.table().to_bytes().unwrap()).unwrap();
        prop_assert_eq!(table.cells(), plain.cells());
        for (api, container, active, mean50) in asks {
            let api = api.index(plain.apis.len());
            let container = container.index(plain.containers.len());
            let (cores, memory) = plain.containers[container];
            let place = table.container(cores, memory);
            let (first, second) = (table.count_bin(active), table.second_bin(mean50));
            prop_assert_eq!(first, table.first_bin(active as f32));
            let ApiName { method, url } = &plain.apis[api];
            let asked = table.api(method.as_deref().unwrap_or("?"), url.as_deref().unwrap_or("?"));
            let got = table.predict(asked, place, first, second);
            let want = plain.predict(api, container, active as f32, mean50);
            prop_assert_eq!(got.to_bits(), want.to_bits());

            let mean = table.predict(table.mean_api(), place, first, second);
            let want = plain.mean_of_trained(container, active as f32, mean50);
            prop_assert!((mean - want).abs() <= 1e-12 * want.abs().max(1.0), "{} {}", mean, want);
        }
    }

    #[test]
    fn argmin_equals_a_search_by_hand(plain in plain::any(), actives in prop::collection::vec(0u32..40, 1..9), mean50 in 0f32..500.0) {
        let table = plain.table();
        let candidates: Vec<_> = actives.iter().enumerate().map(|(i, active)| {
            let (cores, memory) = plain.containers[i % plain.containers.len()];
            Candidate { container: table.container(cores, memory), active: *active, mean50: table.second_bin(mean50) }
        }).collect();
        let asked = table.api(plain.apis[0].method.as_deref().unwrap(), plain.apis[0].url.as_deref().unwrap());
        let costs: Vec<f64> = actives.iter().enumerate()
            .map(|(i, active)| plain.predict(0, i % plain.containers.len(), *active as f32, mean50)).collect();
        let least = costs.iter().copied().fold(f64::INFINITY, f64::min);
        let first = costs.iter().position(|c| *c == least).unwrap();
        prop_assert_eq!(table.argmin(asked, &candidates), Some((first, least)));
    }

    #[test]
    fn damage_anywhere_is_refused(plain in plain::any(), place in any::<prop::sample::Index>(), xor in 1u8..=255) {
        let mut bytes = plain.table().to_bytes().unwrap();
        let place = place.index(bytes.len());
        bytes[place] ^= xor;
        prop_assert!(LatencyTable::from_bytes(&bytes).is_err());
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..400), magic in any::<bool>()) {
        if magic {
            bytes.splice(0..0, *MAGIC);
        }
        prop_assert!(LatencyTable::from_bytes(&signed(bytes)).is_err());
    }
}
