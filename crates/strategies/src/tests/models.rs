//! Small made-up latency models: a request takes longer with more others and fewer cores.

use predictor::header::{R2, SCHEMA, Splits, TrainedOn, UNIT};
use predictor::{ApiName, Axis, Header, LatencyTable, Shape, Statistics};
use std::sync::Arc;
use strategies::Options;
use strategies::registry::{Context, Models};

fn table(statistics: Statistics) -> LatencyTable {
    let features = match statistics {
        Statistics::Docker => ["cpu_percent", "memory_used_mib"],
        _ => ["active", "mean50"],
    };
    let scale = if statistics == Statistics::Docker {
        40.0
    } else {
        1.0
    };
    let first: Vec<f32> = (0..16).map(|n| n as f32 * scale + 0.5).collect();
    let second = vec![100.0, 1000.0];
    let containers: Vec<Shape> = (1..=4)
        .map(|cores| Shape {
            cores: f64::from(cores),
            memory_gb: 1.0,
        })
        .collect();
    let unknown = |method: Option<&str>| ApiName {
        method: method.map(String::from),
        url: None,
    };
    let apis = vec![
        ApiName::new("GET", "/items/1"),
        unknown(Some("GET")),
        unknown(None),
    ];
    let none = R2 {
        validation: None,
        test: None,
    };
    let mut cells = Vec::new();
    for api in 0..apis.len() {
        for shape in &containers {
            for active in 0..=first.len() {
                for mean in 0..=second.len() {
                    let crowd = ((active + 1) as f64 / shape.cores).max(1.0);
                    cells.push((20.0 + api as f64) * crowd + mean as f64);
                }
            }
        }
    }
    let header = Header {
        schema: SCHEMA.into(),
        model_sha256: "0".repeat(64),
        catboost_version: "made up".into(),
        kept_trees: 1,
        cap_trees: 1,
        r2: Splits {
            random: none,
            blocked: none,
        },
        trained_on: TrainedOn {
            strategy: "round-robin".into(),
            load: vec![0.6],
            rows: 1,
            seed: 1,
            statistics,
        },
        unit: UNIT.into(),
        axes: [
            Axis {
                feature: features[0].into(),
                borders: first,
            },
            Axis {
                feature: features[1].into(),
                borders: second,
            },
        ],
        containers,
        apis,
    };
    LatencyTable::new(header, cells).expect("a good table")
}

/// One model of each kind: `polled`, `live`, `docker`.
pub(crate) fn models() -> Models {
    static TABLES: std::sync::OnceLock<Models> = std::sync::OnceLock::new();
    TABLES
        .get_or_init(|| {
            let mut models = Models::default();
            for (name, statistics) in [
                ("polled", Statistics::Polled),
                ("live", Statistics::Live),
                ("docker", Statistics::Docker),
            ] {
                models
                    .add(name, Arc::new(table(statistics)))
                    .expect("a new name");
            }
            models
        })
        .clone()
}

/// The default options, with models for those who need one.
pub(crate) fn options() -> Options {
    Options {
        context: Context {
            models: models(),
            ..Context::default()
        },
        ..Options::default()
    }
}
