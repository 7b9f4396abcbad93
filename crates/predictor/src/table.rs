//! The table: every prediction a model can make, by API, container and two binned inputs.
//!
//! File layout, little-endian: [`MAGIC`] | u32 header length | header as JSON | zeros up to a multiple
//! of 8 bytes | `f64` cells | SHA-256 of everything before it. The cell of an API, a container and two
//! bins is `((api * containers + container) * bins0 + bin0) * bins1 + bin1`. Cells stay `f64`: `f32`
//! may turn a near-tie between containers around.
//!
//! Cost: a look-up is one bounds-checked load; the bin of a request count is a second load, that of
//! any other value a binary search of at most 16 steps, to be done when a statistic arrives.

mod file;

use crate::header::{ApiName, Features, Header, Statistics};
use crate::index::Index;
use crate::refusal::Refusal;

pub use file::{MAGIC, MAX_FILE_BYTES, MAX_HEADER_BYTES};

/// Most cells of a table: more than a file can hold, and each is counted in 32 bits.
const MAX_CELLS: usize = MAX_FILE_BYTES / size_of::<f64>();

/// Counts whose bin is stored; larger ones are searched for.
const STORED_COUNTS: usize = 1024;

/// Place of an API in the table that gave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Api(u32);

/// Place of a container in the table that gave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Container(u32);

/// Place of a value on one axis of the table that gave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bin(u16);

/// Where the predictions for a container and two bins stand, whatever the API; of the table that gave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place(u32);

/// All places for a container and a second input, one for each bin of the first; of the table that gave
/// it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column(u32);

/// The predictions of one API.
#[derive(Debug, Clone, Copy)]
pub struct Predictions<'a>(&'a [f64]);

impl Predictions<'_> {
    /// The predicted latency, ms.
    ///
    /// # Panics
    /// May, if `place` came from another table.
    #[inline]
    pub fn at(&self, place: Place) -> f64 {
        self.0[place.0 as usize]
    }
}

/// One choice of [`LatencyTable::argmin`].
#[derive(Debug, Clone, Copy)]
pub struct Candidate {
    /// From [`LatencyTable::container`].
    pub container: Container,
    /// Requests it holds.
    pub active: u32,
    /// From [`LatencyTable::second_bin`], when its statistics last changed.
    pub mean50: Bin,
}

/// A latency model, ready to be asked. Total: every method, URL, container and value has an answer.
#[derive(Debug, Clone)]
pub struct LatencyTable {
    header: Header,
    index: Index,
    /// One layer of cells more than the header's APIs: their mean.
    cells: Vec<f64>,
    bins: [usize; 2],
    /// Bins of the first axis for counts 0, 1, 2 ...
    count_bins: Vec<u16>,
}

impl LatencyTable {
    /// A table from its parts; `cells` as in the file.
    ///
    /// # Errors
    /// A header that leaves a request without an answer, a wrong number of cells or too many, or a cell
    /// that is not finite.
    pub fn new(header: Header, mut cells: Vec<f64>) -> Result<Self, Refusal> {
        let expected = header.check()?;
        if cells.len() != expected {
            return Err(
                Refusal::new("cells", "differ in number from what the header makes")
                    .value(cells.len())
                    .allowed(expected.to_string()),
            );
        }
        if expected > MAX_CELLS {
            return Err(Refusal::new("cells", "are too many")
                .value(expected)
                .allowed(format!("at most {MAX_CELLS}"))
                .next("train with a smaller border_count"));
        }
        if let Some(place) = cells.iter().position(|cell| !cell.is_finite()) {
            return Err(not_finite(&header, place, cells[place]));
        }
        let bins = [header.axes[0].bins(), header.axes[1].bins()];
        cells.extend(mean_of_known(&header.apis, &cells));
        let count_bins = (0..STORED_COUNTS).map(|n| header.axes[0].bin(n as f32) as u16);
        Ok(Self {
            index: Index::new(&header.apis),
            count_bins: count_bins.collect(),
            cells,
            bins,
            header,
        })
    }

    /// What the file says about itself.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Which two inputs it takes.
    pub fn features(&self) -> Features {
        self.header.features()
    }

    /// How its inputs were observed in training.
    pub fn statistics(&self) -> Statistics {
        self.header.trained_on.statistics
    }

    /// The cells in file order.
    pub fn cells(&self) -> &[f64] {
        &self.cells[..self.header.apis.len() * self.layer()]
    }

    /// The API of a request; a query in `url` is left out. What training never saw gets the stand-in
    /// of its method, else the stand-in of everything. Look it up once per class, not per pick.
    pub fn api(&self, method: &str, url: &str) -> Api {
        Api(self.index.find(method, url) as u32)
    }

    /// The name of `api`: without a URL, or without both, it is a stand-in. Absent for
    /// [`LatencyTable::mean_api`].
    pub fn api_name(&self, api: Api) -> Option<&ApiName> {
        self.header.apis.get(api.0 as usize)
    }

    /// A made-up API whose every prediction is the mean over the trained APIs.
    pub fn mean_api(&self) -> Api {
        Api(self.header.apis.len() as u32)
    }

    /// The container nearest in cores, then in memory, then first in the header: trees do not
    /// extrapolate, so this is what the model itself would say beyond the containers it knows.
    pub fn container(&self, cores: f64, memory_gb: f64) -> Container {
        let distance = |place: &usize| {
            let shape = self.header.containers[*place];
            (
                (shape.cores - cores).abs(),
                (shape.memory_gb - memory_gb).abs(),
            )
        };
        let nearest = (0..self.header.containers.len()).min_by(|a, b| {
            let (a, b) = (distance(a), distance(b));
            a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1))
        });
        Container(nearest.unwrap_or(0) as u32)
    }

    /// Whether training saw exactly this container.
    pub fn knows_container(&self, cores: f64, memory_gb: f64) -> bool {
        let shapes = &self.header.containers;
        shapes
            .iter()
            .any(|s| s.cores == cores && s.memory_gb == memory_gb)
    }

    /// The bin of a value of the first input.
    pub fn first_bin(&self, x: f32) -> Bin {
        Bin(self.header.axes[0].bin(x) as u16)
    }

    /// The bin of a count as the first input.
    #[inline]
    pub fn count_bin(&self, count: u32) -> Bin {
        match self.count_bins.get(count as usize) {
            Some(bin) => Bin(*bin),
            None => self.first_bin(count as f32),
        }
    }

    /// The bin of a value of the second input.
    pub fn second_bin(&self, x: f32) -> Bin {
        Bin(self.header.axes[1].bin(x) as u16)
    }

    /// Where the predictions for these inputs stand. For inputs that stay the same over many picks it is
    /// looked up when they change.
    #[inline]
    pub fn place(&self, container: Container, first: Bin, second: Bin) -> Place {
        self.place_in(self.column(container, second), first)
    }

    /// The column of these inputs, where only the first changes between picks.
    #[inline]
    pub fn column(&self, container: Container, second: Bin) -> Column {
        let rows = container.0 as usize * self.bins[0];
        Column((rows * self.bins[1] + usize::from(second.0)) as u32)
    }

    /// Where the predictions for the first input stand in a column.
    #[inline]
    pub fn place_in(&self, column: Column, first: Bin) -> Place {
        Place(column.0 + u32::from(first.0) * self.bins[1] as u32)
    }

    /// The predictions of an API.
    ///
    /// # Panics
    /// May, if `api` came from another table.
    #[inline]
    pub fn predictions(&self, api: Api) -> Predictions<'_> {
        let layer = self.layer();
        Predictions(&self.cells[api.0 as usize * layer..][..layer])
    }

    /// The predicted latency, ms.
    ///
    /// # Panics
    /// May, if an argument came from another table.
    #[inline]
    pub fn predict(&self, api: Api, container: Container, first: Bin, second: Bin) -> f64 {
        self.predictions(api)
            .at(self.place(container, first, second))
    }

    /// The candidate of least predicted latency and that latency, ms; the first of equals.
    ///
    /// # Panics
    /// May, if an argument came from another table.
    #[inline]
    pub fn argmin(&self, api: Api, candidates: &[Candidate]) -> Option<(usize, f64)> {
        let predictions = self.predictions(api);
        let mut best: Option<(usize, f64)> = None;
        for (i, candidate) in candidates.iter().enumerate() {
            let first = self.count_bin(candidate.active);
            let ms = predictions.at(self.place(candidate.container, first, candidate.mean50));
            if best.is_none_or(|(_, least)| ms < least) {
                best = Some((i, ms));
            }
        }
        best
    }

    /// Cells of one API.
    fn layer(&self) -> usize {
        self.header.containers.len() * self.bins[0] * self.bins[1]
    }
}

/// One layer of cells: the mean over trained APIs, summed in their order.
fn mean_of_known(apis: &[ApiName], cells: &[f64]) -> Vec<f64> {
    let layer = cells.len() / apis.len();
    let mut mean = vec![0.0; layer];
    let mut known = 0;
    for (api, layer) in apis.iter().zip(cells.chunks_exact(layer)) {
        if api.url.is_some() {
            known += 1;
            mean.iter_mut()
                .zip(layer)
                .for_each(|(sum, cell)| *sum += cell);
        }
    }
    mean.iter_mut().for_each(|sum| *sum /= f64::from(known));
    mean
}

fn not_finite(header: &Header, place: usize, value: f64) -> Refusal {
    let [bins0, bins1] = [header.axes[0].bins(), header.axes[1].bins()];
    let (row, second) = (place / bins1, place % bins1);
    let (shape, first) = (row / bins0, row % bins0);
    let (api, container) = (
        shape / header.containers.len(),
        shape % header.containers.len(),
    );
    let name = &header.apis[api];
    let cell = format!(
        "cell {place} (api {api} {name}, container {container}, bins {first} and {second})"
    );
    Refusal::new(cell, "must be finite")
        .value(value)
        .next("train again without infinite latencies")
}
