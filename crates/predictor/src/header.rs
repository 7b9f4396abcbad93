//! The header of a table file: what the model was trained on, how good it is, what its cells mean.

use serde::{Deserialize, Serialize};

use crate::objects::{objects, written};
use crate::refusal::Refusal;

/// Value of the `schema` field.
pub const SCHEMA: &str = "plumbline.latency-table/1";
/// The only unit of cells.
pub const UNIT: &str = "ms";
/// Most borders of an axis: the most that the training library can make.
pub const MAX_BORDERS: usize = 65_535;
/// Most containers of a table.
pub const MAX_CONTAINERS: usize = 10_000;
/// Most pairs of method and URL, stand-ins included.
pub const MAX_APIS: usize = 200_000;

/// What a table file says about itself. Fields that this version does not know are ignored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct Header {
    /// [`SCHEMA`].
    pub schema: String,
    /// SHA-256 of the model file the cells were predicted with, in hex.
    pub model_sha256: String,
    /// Version of the library that trained it.
    pub catboost_version: String,
    /// Trees the model kept after early stopping.
    pub kept_trees: u32,
    /// Trees it was allowed.
    pub cap_trees: u32,
    /// How much of the variance it explains, for two ways of splitting the rows.
    pub r2: Splits,
    /// What it was trained on.
    pub trained_on: TrainedOn,
    /// [`UNIT`].
    pub unit: String,
    /// The two inputs that vary at run time, the slowest-moving cell index first.
    pub axes: [Axis; 2],
    /// The containers it can tell apart.
    pub containers: Vec<Shape>,
    /// The APIs it can tell apart, with the stand-ins for unknown ones.
    pub apis: Vec<ApiName>,
}

/// R² of two ways of splitting the rows: neighboring rows share the window of the last fifty
/// latencies, so a random split flatters.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct Splits {
    /// A seeded permutation.
    pub random: R2,
    /// By send time: first, middle and last part.
    pub blocked: R2,
}

/// Share of the variance explained; absent where it is undefined (too few rows).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct R2 {
    /// On the rows that chose the number of trees, so optimistic.
    pub validation: Option<f64>,
    /// On rows the training never saw.
    pub test: Option<f64>,
}

/// Where the training rows came from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct TrainedOn {
    /// The strategy that was routing, such as `round-robin`.
    pub strategy: String,
    /// Offered work over capacity of each recording; empty when unknown.
    pub load: Vec<f64>,
    /// Rows, before splitting.
    pub rows: u64,
    /// Root seed of the split and the training.
    pub seed: u64,
    /// How its run-time inputs were observed.
    pub statistics: Statistics,
}

/// How the run-time inputs were observed while the training rows were recorded; a model serves best
/// with inputs of the same kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Statistics {
    /// As of the newest poll.
    Polled,
    /// Own requests in flight at the pick.
    Live,
    /// As of the newest response header.
    Piggyback,
    /// CPU and memory as the container engine counts them.
    Docker,
}

/// One run-time input and the values at which predictions change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct Axis {
    /// Name of the input.
    pub feature: String,
    /// Ascending; a value is beyond a border when it is greater, never when equal.
    pub borders: Vec<f32>,
}

impl Axis {
    /// Number of borders below `x`, compared as `f32`; 0 for NaN.
    pub fn bin(&self, x: f32) -> usize {
        self.borders.partition_point(|border| *border < x)
    }

    /// Cells along this axis.
    pub fn bins(&self) -> usize {
        self.borders.len() + 1
    }

    /// A value of every bin: its upper border, and one `f32` above the last border for the last.
    pub fn representatives(&self) -> Vec<f32> {
        let mut values = self.borders.clone();
        values.push(self.borders.last().map_or(0.0, |last| last.next_up()));
        values
    }
}

/// Which pair of inputs a table has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Features {
    /// `active` (requests at the worker) and `mean50` (mean latency of its last 50, ms).
    ActiveMean50,
    /// `cpu_percent` (100 = one core) and `memory_used_mib`.
    CpuMemory,
}

impl Features {
    /// The names of the two axes, in order.
    pub fn names(self) -> [&'static str; 2] {
        match self {
            Self::ActiveMean50 => ["active", "mean50"],
            Self::CpuMemory => ["cpu_percent", "memory_used_mib"],
        }
    }
}

/// What a container is to the model.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct Shape {
    /// CPU cores.
    pub cores: f64,
    /// Memory limit, GB of 2^30 bytes.
    pub memory_gb: f64,
}

/// What an API is to the model: both set for a trained one; without `url` the stand-in for unknown
/// URLs of that method; without both the stand-in for unknown methods.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct ApiName {
    /// HTTP method, in capitals.
    pub method: Option<String>,
    /// Path as trained, without a query.
    pub url: Option<String>,
}

impl ApiName {
    /// A trained API.
    pub fn new(method: &str, url: &str) -> Self {
        Self {
            method: Some(method.to_string()),
            url: Some(url.to_string()),
        }
    }
}

impl std::fmt::Display for ApiName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let method = self.method.as_deref().unwrap_or("(any method)");
        let url = self.url.as_deref().unwrap_or("(any URL)");
        write!(f, "{method} {url}")
    }
}

impl Header {
    /// The pair of inputs of the two axes.
    ///
    /// # Panics
    /// Never after [`Header::check`], which refuses other pairs.
    pub fn features(&self) -> Features {
        features_of(&self.axes).expect("a checked header has a known pair of axes")
    }

    /// Refuses what the look-up cannot serve; the number of cells otherwise.
    pub(crate) fn check(&self) -> Result<usize, Refusal> {
        same("schema", &self.schema, SCHEMA)?;
        same("unit", &self.unit, UNIT)?;
        let digest = &self.model_sha256;
        if digest.len() != 64 || !digest.bytes().all(|b| b.is_ascii_hexdigit()) {
            let what = "is no SHA-256 in hex";
            return Err(Refusal::new("model_sha256", what)
                .value(digest)
                .allowed("64 hex digits"));
        }
        if self.kept_trees > self.cap_trees {
            return Err(Refusal::new("kept_trees", "is above cap_trees")
                .value(self.kept_trees)
                .allowed(format!("at most {}", self.cap_trees)));
        }
        self.check_axes()?;
        self.check_containers()?;
        crate::index::check(&self.apis)?;
        let cells = [
            self.containers.len(),
            self.axes[0].bins(),
            self.axes[1].bins(),
        ];
        cells
            .iter()
            .try_fold(self.apis.len(), |product, n| product.checked_mul(*n))
            .ok_or_else(|| {
                Refusal::new("axes", "make more cells than can be counted")
                    .next("train with a smaller border_count")
            })
    }

    fn check_axes(&self) -> Result<(), Refusal> {
        if features_of(&self.axes).is_none() {
            let got = format!("{}, {}", self.axes[0].feature, self.axes[1].feature);
            return Err(Refusal::new("axes", "are no known pair of inputs")
                .value(got)
                .allowed("active, mean50 or cpu_percent, memory_used_mib"));
        }
        for (place, axis) in self.axes.iter().enumerate() {
            let name = format!("axes[{place}].borders");
            if axis.borders.len() > MAX_BORDERS {
                return Err(Refusal::new(name, "has too many borders")
                    .value(axis.borders.len())
                    .allowed(format!("at most {MAX_BORDERS}")));
            }
            if let Some(i) = axis.borders.iter().position(|b| !b.is_finite()) {
                return Err(
                    Refusal::new(format!("{name}[{i}]"), "must be finite").value(axis.borders[i])
                );
            }
            if let Some(i) = axis.borders.windows(2).position(|two| two[0] >= two[1]) {
                return Err(
                    Refusal::new(format!("{name}[{}]", i + 1), "must be ascending")
                        .value(axis.borders[i + 1])
                        .allowed(format!("above {}", axis.borders[i])),
                );
            }
        }
        Ok(())
    }

    fn check_containers(&self) -> Result<(), Refusal> {
        let count = self.containers.len();
        if count == 0 || count > MAX_CONTAINERS {
            return Err(Refusal::new("containers", "is out of range")
                .value(count)
                .allowed(format!("1 to {MAX_CONTAINERS}")));
        }
        for (i, shape) in self.containers.iter().enumerate() {
            for (field, value) in [("cores", shape.cores), ("memory_gb", shape.memory_gb)] {
                let bad = !value.is_finite() || value < 0.0 || (field == "cores" && value == 0.0);
                if bad {
                    return Err(Refusal::new(
                        format!("containers[{i}].{field}"),
                        "is out of range",
                    )
                    .value(value)
                    .allowed("finite and positive (memory_gb: at least 0)"));
                }
            }
            if self.containers[..i].contains(shape) {
                return Err(Refusal::new(format!("containers[{i}]"), "is listed twice")
                    .value(format!("{} cores, {} GB", shape.cores, shape.memory_gb)));
            }
        }
        Ok(())
    }
}

fn features_of(axes: &[Axis; 2]) -> Option<Features> {
    [Features::ActiveMean50, Features::CpuMemory]
        .into_iter()
        .find(|features| features.names() == [&axes[0].feature, &axes[1].feature])
}

fn same(field: &str, got: &str, want: &str) -> Result<(), Refusal> {
    if got == want {
        return Ok(());
    }
    Err(Refusal::new(field, "is not understood by this version")
        .value(got)
        .allowed(want))
}

objects!(Header, Splits, R2, TrainedOn, Axis, Shape, ApiName);
written!(Header, Splits, R2, TrainedOn, Axis, Shape, ApiName);
