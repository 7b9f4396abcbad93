//! The golden data: models, rows and the library's predictions, made by `fixtures/make.py`.

use crate::catboost::{Model, Row, category_hash};
use crate::header::{R2, SCHEMA, Shape, Splits, TrainedOn, UNIT};
use crate::{ApiName, Axis, Header, Statistics};

const ROW_BYTES: usize = 12;

pub(super) struct Golden {
    pub(super) name: &'static str,
    pub(super) export: &'static [u8],
    pub(super) predictions: &'static [u8],
}

macro_rules! golden {
    ($name:literal) => {
        Golden {
            name: $name,
            export: include_bytes!(concat!("../../fixtures/", $name, ".json")),
            predictions: include_bytes!(concat!("../../fixtures/", $name, ".f64")),
        }
    };
}

pub(super) const MODELS: [Golden; 4] = [
    golden!("early-stopped"),
    golden!("one-hot"),
    golden!("single"),
    golden!("combinations"),
];
pub(super) const TABLES: [(usize, &[u8]); 2] = [
    (0, include_bytes!("../../fixtures/early-stopped.plbtab")),
    (3, include_bytes!("../../fixtures/combinations.plbtab")),
];
const ROWS: &[u8] = include_bytes!("../../fixtures/rows.bin");
pub(super) const HASHES: &str = include_str!("../../fixtures/hashes.json");

#[derive(serde::Deserialize)]
pub(super) struct Texts {
    pub(super) methods: Vec<String>,
    pub(super) urls: Vec<String>,
}

pub(super) fn texts() -> Texts {
    serde_json::from_str(include_str!("../../fixtures/texts.json")).unwrap()
}

/// One stored row, not yet hashed.
pub(super) struct Asked {
    pub(super) method: String,
    pub(super) url: String,
    pub(super) cores: f32,
    pub(super) memory_gb: f32,
    pub(super) active: f32,
    pub(super) mean50: f32,
}

impl Asked {
    pub(super) fn row(&self) -> Row {
        Row {
            numbers: vec![self.cores, self.memory_gb, self.active, self.mean50],
            categories: vec![category_hash(&self.method), category_hash(&self.url)],
        }
    }
}

pub(super) fn asked() -> Vec<Asked> {
    let texts = texts();
    let f32_at =
        |bytes: &[u8], at: usize| f32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    ROWS.chunks_exact(ROW_BYTES)
        .map(|bytes| Asked {
            method: texts.methods[usize::from(bytes[0])].clone(),
            url: texts.urls[usize::from(bytes[1])].clone(),
            cores: f32::from(bytes[2]),
            memory_gb: f32::from(bytes[3]),
            active: f32_at(bytes, 4),
            mean50: f32_at(bytes, 8),
        })
        .collect()
}

pub(super) fn predictions(golden: &Golden) -> Vec<f64> {
    let chunks = golden.predictions.chunks_exact(8);
    chunks
        .map(|bytes| f64::from_le_bytes(bytes.try_into().unwrap()))
        .collect()
}

pub(super) fn model(golden: &Golden) -> Model {
    Model::from_json(golden.export).unwrap_or_else(|e| panic!("{}: {e}", golden.name))
}

/// A header that knows every text of the fixtures.
pub(super) fn about(texts: &Texts) -> Header {
    let r2 = R2 {
        validation: None,
        test: None,
    };
    let mut apis = Vec::new();
    for method in &texts.methods[..3] {
        apis.extend(texts.urls[..7].iter().map(|url| ApiName::new(method, url)));
        apis.push(ApiName {
            method: Some(method.clone()),
            url: None,
        });
    }
    apis.push(ApiName {
        method: None,
        url: None,
    });
    Header {
        schema: SCHEMA.into(),
        model_sha256: "0".repeat(64),
        catboost_version: "1.2.10".into(),
        kept_trees: 0,
        cap_trees: 60,
        r2: Splits {
            random: r2,
            blocked: r2,
        },
        trained_on: TrainedOn {
            strategy: "none".into(),
            load: vec![],
            rows: 0,
            seed: 0,
            statistics: Statistics::Polled,
        },
        unit: UNIT.into(),
        axes: ["active", "mean50"].map(|name| Axis {
            feature: name.into(),
            borders: vec![],
        }),
        containers: [4.0, 3.0, 2.0]
            .map(|c| Shape {
                cores: c,
                memory_gb: 3.0 * c,
            })
            .to_vec(),
        apis,
    }
}
