//! A table in its most obvious form, as an oracle: nested borders, walked one by one.

use proptest::prelude::*;

use crate::header::{R2, SCHEMA, Shape, Splits, TrainedOn, UNIT};
use crate::{ApiName, Axis, Header, LatencyTable, Statistics};

#[derive(Debug, Clone)]
pub(super) struct Plain {
    pub(super) apis: Vec<ApiName>,
    pub(super) containers: Vec<(f64, f64)>,
    pub(super) borders: [Vec<f32>; 2],
    /// By API, container, first and second bin.
    pub(super) values: Vec<Vec<Vec<Vec<f64>>>>,
}

impl Plain {
    pub(super) fn header(&self) -> Header {
        let r2 = R2 {
            validation: Some(0.84),
            test: None,
        };
        Header {
            schema: SCHEMA.into(),
            model_sha256: "0f".repeat(32),
            catboost_version: "1.2.10".into(),
            kept_trees: 17,
            cap_trees: 2250,
            r2: Splits {
                random: r2,
                blocked: r2,
            },
            trained_on: TrainedOn {
                strategy: "round-robin".into(),
                load: vec![0.42],
                rows: 20_000,
                seed: 42,
                statistics: Statistics::Polled,
            },
            unit: UNIT.into(),
            axes: ["active", "mean50"].map(|name| Axis {
                feature: name.into(),
                borders: self.borders[usize::from(name == "mean50")].clone(),
            }),
            containers: self
                .containers
                .iter()
                .map(|(cores, memory_gb)| Shape {
                    cores: *cores,
                    memory_gb: *memory_gb,
                })
                .collect(),
            apis: self.apis.clone(),
        }
    }

    pub(super) fn cells(&self) -> Vec<f64> {
        self.values
            .iter()
            .flatten()
            .flatten()
            .flatten()
            .copied()
            .collect()
    }

    pub(super) fn table(&self) -> LatencyTable {
        LatencyTable::new(self.header(), self.cells()).unwrap()
    }

    /// The prediction, by counting the borders below each value.
    pub(super) fn predict(&self, api: usize, container: usize, first: f32, second: f32) -> f64 {
        let below = |borders: &[f32], x: f32| borders.iter().filter(|b| **b < x).count();
        let cells = &self.values[api][container];
        cells[below(&self.borders[0], first)][below(&self.borders[1], second)]
    }

    pub(super) fn mean_of_trained(&self, container: usize, first: f32, second: f32) -> f64 {
        let trained: Vec<f64> = (0..self.apis.len())
            .filter(|api| self.apis[*api].url.is_some())
            .map(|api| self.predict(api, container, first, second))
            .collect();
        trained.iter().sum::<f64>() / trained.len() as f64
    }
}

/// Two APIs and their stand-ins, two containers, two times three bins, cells 0.5, 1.5, 2.5 ...
pub(super) fn small() -> Plain {
    let mut next = 0.0;
    let mut count = || {
        next += 1.0;
        next - 0.5
    };
    let borders = [vec![1.5], vec![40.0, 80.5]];
    let apis = vec![
        ApiName::new("GET", "/a"),
        ApiName::new("GET", "/b"),
        ApiName {
            method: Some("GET".into()),
            url: None,
        },
        ApiName {
            method: None,
            url: None,
        },
    ];
    let mut nest = |n: usize| -> Vec<Vec<Vec<Vec<f64>>>> {
        (0..n)
            .map(|_| {
                (0..2)
                    .map(|_| (0..2).map(|_| (0..3).map(|_| count()).collect()).collect())
                    .collect()
            })
            .collect()
    };
    Plain {
        values: nest(apis.len()),
        apis,
        containers: vec![(4.0, 12.0), (2.0, 6.0)],
        borders,
    }
}

/// Random tables: up to 4 methods of up to 4 URLs, 4 containers, 12 and 20 borders.
pub(super) fn any() -> impl Strategy<Value = Plain> {
    let borders = |most: usize| {
        prop::collection::vec(
            prop_oneof![0f32..2000.0, (0u8..40).prop_map(|n| f32::from(n) + 0.5)],
            0..most,
        )
        .prop_map(|mut b: Vec<f32>| {
            b.sort_by(f32::total_cmp);
            b.dedup();
            b
        })
    };
    let shape = (
        prop::collection::vec(1usize..5, 1..5),
        1usize..5,
        borders(12),
        borders(20),
    );
    shape.prop_flat_map(|(urls, containers, first, second)| {
        let mut apis = Vec::new();
        for (i, urls) in urls.iter().enumerate() {
            apis.extend((0..*urls).map(|u| ApiName::new(&format!("M{i}"), &format!("/{u}"))));
            apis.push(ApiName {
                method: Some(format!("M{i}")),
                url: None,
            });
        }
        apis.push(ApiName {
            method: None,
            url: None,
        });
        let row = prop::collection::vec(-10f64..1e4, second.len() + 1);
        let rows = prop::collection::vec(row, first.len() + 1);
        let values = prop::collection::vec(prop::collection::vec(rows, containers), apis.len());
        let containers = (1..=containers)
            .map(|c| (c as f64, 3.0 * c as f64))
            .collect::<Vec<_>>();
        values.prop_map(move |values| Plain {
            apis: apis.clone(),
            containers: containers.clone(),
            borders: [first.clone(), second.clone()],
            values,
        })
    })
}
