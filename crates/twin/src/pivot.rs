//! `twin table`: a sweep's result as a table of means, with the points where lines cross.
//!
//! Rows of the result that share both labels are replications: their mean stands in the table with
//! Student's interval. Anything else that varies within a place of the table is refused, so that no
//! mean is taken over things that differ.

mod cross;

use crate::output::{Interval, student};
use crate::run::text_of;
use crate::sweep::{SEED, UNSTABLE, VERDICT, is_dimension};
use crate::table::aligned;
use clap::Args;
use cross::{Crossing, crossings};
use schema::problem::{Problem, Problems, nearest};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;

/// Most lines of a result that are read.
const MAX_ROWS: usize = schema::sweep::MAX_RUNS as usize;
/// Most places of a table.
const MAX_PLACES: usize = 10_000;

/// `twin table`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// A result of `twin sweep`
    #[arg(value_name = "CSV")]
    file: PathBuf,
    /// Column whose values are the table's rows
    #[arg(long, value_name = "COLUMN")]
    rows: String,
    /// Column whose values are the table's columns
    #[arg(long, value_name = "COLUMN", default_value = "strategy")]
    columns: String,
    /// What is averaged
    #[arg(long, value_name = "COLUMN", default_value = "mean_over_service")]
    value: String,
    /// Only lines with this value
    #[arg(long = "where", value_name = "COLUMN=VALUE")]
    only: Vec<String>,
    /// Where the others cross this column of the table, along rows that are numbers
    #[arg(long, value_name = "VALUE")]
    cross: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Reads, averages and prints.
///
/// # Errors
/// Bad input ([`Problems`], exit 2).
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let source = arguments.file.display().to_string();
    let table = Table::of(&source, &text_of(&arguments.file)?, arguments)?;
    let crossings = match &arguments.cross {
        Some(base) => table.crossings(base)?,
        None => Vec::new(),
    };
    if arguments.json {
        let json = Json {
            table: &table,
            crossings: &crossings,
        };
        console::say!("{}", serde_json::to_string(&json)?)?;
    } else {
        console::print(format_args!("{}", table.text(&crossings)))?;
    }
    Ok(())
}

/// What stands at one place of the table.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Place {
    /// No such run.
    Nothing,
    /// Some run was unstable: there is no mean.
    Unstable,
    /// Some run has no value for another reason: no good answer, say.
    Empty,
    /// Mean and half its 95 % interval, if there is one.
    Mean {
        mean: f64,
        half_width: Option<f64>,
        runs: usize,
    },
}

impl Place {
    fn of(values: &[Value]) -> Self {
        let known: Vec<f64> = values.iter().filter_map(|v| v.number()).collect();
        match student(&known) {
            _ if values.contains(&Value::Unstable) => Self::Unstable,
            _ if known.len() < values.len() => Self::Empty,
            None => Self::Nothing,
            Some(Interval {
                mean, half_width, ..
            }) => Self::Mean {
                mean,
                half_width: half_width.is_finite().then_some(half_width),
                runs: known.len(),
            },
        }
    }

    /// An unstable place is beyond every number.
    fn height(self) -> Option<f64> {
        match self {
            Self::Nothing | Self::Empty => None,
            Self::Unstable => Some(f64::INFINITY),
            Self::Mean { mean, .. } => Some(mean),
        }
    }

    fn text(self) -> String {
        match self {
            Self::Nothing => "-".into(),
            Self::Unstable => "unstable".into(),
            Self::Empty => "no value".into(),
            Self::Mean {
                mean, half_width, ..
            } => match half_width {
                Some(half_width) => format!("{mean:.4} +- {half_width:.4}"),
                None => format!("{mean:.4}"),
            },
        }
    }
}

/// What a line says in the column of values.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Value {
    Number(f64),
    /// Nothing, since the run was unstable.
    Unstable,
    /// Nothing.
    None,
}

impl Value {
    fn number(self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(number),
            Self::Unstable | Self::None => None,
        }
    }
}

#[derive(Debug, Serialize)]
struct Json<'a> {
    #[serde(flatten)]
    table: &'a Table,
    crossings: &'a [Crossing],
}

/// The table, by row and column in the order of the file.
#[derive(Debug, Serialize)]
struct Table {
    value: String,
    rows: String,
    columns: String,
    row_labels: Vec<String>,
    column_labels: Vec<String>,
    places: Vec<Vec<Place>>,
}

/// A result of a sweep as it was read.
struct Lines {
    names: Vec<String>,
    lines: Vec<Vec<String>>,
}

impl Lines {
    fn read(source: &str, text: &str) -> Result<Self, Problems> {
        let bad = |what: String| Problems::from(Problem::new("", "", what).in_source(source));
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let names = reader.headers().map_err(|e| bad(e.to_string()))?;
        let names: Vec<String> = names.iter().map(String::from).collect();
        let mut lines = Vec::new();
        for record in reader.records() {
            let record = record.map_err(|e| bad(e.to_string()))?;
            if lines.len() == MAX_ROWS {
                return Err(bad(format!("more than {MAX_ROWS} lines")));
            }
            lines.push(record.iter().map(String::from).collect());
        }
        Ok(Self { names, lines })
    }

    fn column(&self, flag: &str, name: &str) -> Result<usize, Problems> {
        let names = || self.names.iter().map(String::as_str);
        names().position(|known| known == name).ok_or_else(|| {
            let what = match nearest(name, names()) {
                Some(near) => format!("no such column; did you mean \"{near}\"?"),
                None => "no such column".into(),
            };
            let all: Vec<&str> = names().collect();
            Problem::new(flag, name, what)
                .allowed(all.join(", "))
                .into()
        })
    }

    /// Leaves the lines of which `COLUMN=VALUE` is true.
    fn retain(&mut self, only: &str) -> Result<(), Problems> {
        let Some((name, value)) = only.split_once('=') else {
            let problem = Problem::new("--where", only, "no condition");
            return Err(problem.allowed("COLUMN=VALUE").into());
        };
        let at = self.column("--where", name)?;
        self.lines.retain(|line| line[at] == value);
        if self.lines.is_empty() {
            let problem = Problem::new("--where", only, "no line is left");
            return Err(problem.next("look at the values of the column").into());
        }
        Ok(())
    }
}

impl Table {
    fn of(source: &str, text: &str, arguments: &Arguments) -> Result<Self, Problems> {
        let mut lines = Lines::read(source, text)?;
        for only in &arguments.only {
            lines.retain(only)?;
        }
        let row = lines.column("--rows", &arguments.rows)?;
        let column = lines.column("--columns", &arguments.columns)?;
        let value = lines.column("--value", &arguments.value)?;
        let (rows, columns) = (Labels::of(&lines, row), Labels::of(&lines, column));
        let (row_labels, column_labels) = (rows.names, columns.names);
        if row_labels.len() * column_labels.len() > MAX_PLACES {
            let what = format!("{} x {} places", row_labels.len(), column_labels.len());
            let problem = Problem::new("--rows", &arguments.rows, what);
            return Err(problem.allowed(format!("up to {MAX_PLACES}")).into());
        }
        let mut found = vec![vec![Vec::new(); column_labels.len()]; row_labels.len()];
        for line in &lines.lines {
            let (r, c) = (rows.places[&line[row]], columns.places[&line[column]]);
            found[r][c].push(line);
        }
        let mut places = Vec::new();
        for of_row in &found {
            let mut of_place = Vec::new();
            for here in of_row {
                check_alike(&lines.names, here, [row, column])?;
                check_once(&lines.names, here)?;
                of_place.push(Place::of(&values(&lines.names, here, value)?));
            }
            places.push(of_place);
        }
        Ok(Self {
            value: arguments.value.clone(),
            rows: arguments.rows.clone(),
            columns: arguments.columns.clone(),
            row_labels,
            column_labels,
            places,
        })
    }

    fn crossings(&self, base: &str) -> Result<Vec<Crossing>, Problems> {
        let Some(base) = self.column_labels.iter().position(|label| label == base) else {
            let problem = Problem::new("--cross", base, format!("no value of {}", self.columns));
            return Err(problem.allowed(self.column_labels.join(", ")).into());
        };
        let at: Option<Vec<f64>> = self.row_labels.iter().map(|l| l.parse().ok()).collect();
        let Some(at) = at else {
            let problem = Problem::new("--cross", "", format!("{} are no numbers", self.rows));
            return Err(problem.next("choose other rows").into());
        };
        let line = |c: usize| -> Vec<(f64, f64)> {
            let heights = self
                .places
                .iter()
                .map(|row| row[c].height().zip(row[base].height()));
            at.iter()
                .zip(heights)
                .filter_map(|(x, both)| both.map(|(own, base)| (*x, own - base)))
                .filter(|(_, difference)| !difference.is_nan())
                .collect()
        };
        let others = self
            .column_labels
            .iter()
            .enumerate()
            .filter(|(c, _)| *c != base);
        Ok(others
            .flat_map(|(c, label)| crossings(label, line(c)))
            .collect())
    }

    fn text(&self, crossings: &[Crossing]) -> String {
        let mut rows = vec![vec![self.rows.clone()]];
        rows[0].extend(self.column_labels.iter().cloned());
        for (label, places) in self.row_labels.iter().zip(&self.places) {
            let places = places.iter().map(|place| place.text());
            rows.push(std::iter::once(label.clone()).chain(places).collect());
        }
        let mut out = aligned(&rows, &[]);
        let _ = writeln!(out, "\n{}, mean and half its 95 % interval", self.value);
        for crossing in crossings {
            let _ = writeln!(out, "{}", crossing.text(&self.rows));
        }
        out
    }
}

/// Different values of a column, in the order of the file.
struct Labels {
    names: Vec<String>,
    places: BTreeMap<String, usize>,
}

impl Labels {
    fn of(lines: &Lines, at: usize) -> Self {
        let (mut names, mut places) = (Vec::new(), BTreeMap::new());
        for line in &lines.lines {
            if !places.contains_key(&line[at]) {
                places.insert(line[at].clone(), names.len());
                names.push(line[at].clone());
            }
        }
        Self { names, places }
    }
}

/// Only replications are averaged: all that tells runs apart, but the seed, is the same.
fn check_alike(names: &[String], here: &[&Vec<String>], but: [usize; 2]) -> Result<(), Problems> {
    let Some(first) = here.first() else {
        return Ok(());
    };
    for (at, name) in names.iter().enumerate() {
        let tells = is_dimension(name) && !but.contains(&at);
        if let Some(other) = here.iter().find(|line| tells && line[at] != first[at]) {
            let what = format!("varies within the table ({} and {})", first[at], other[at]);
            let problem = Problem::new(name, "", what);
            return Err(problem
                .next(format!("add --where {name}={}", first[at]))
                .into());
        }
    }
    Ok(())
}

/// A run counts once: two lines of one seed are no two replications.
fn check_once(names: &[String], here: &[&Vec<String>]) -> Result<(), Problems> {
    let Some(at) = names.iter().position(|name| name == SEED) else {
        return Ok(());
    };
    let mut seen = BTreeSet::new();
    if let Some(twice) = here.iter().find(|line| !seen.insert(&line[at])) {
        let what = "a run of this seed is in the table twice";
        let problem = Problem::new(SEED, &twice[at], what);
        return Err(problem.next("leave one of the lines out").into());
    }
    Ok(())
}

/// An empty field has no number; why, the verdict says.
fn values(names: &[String], here: &[&Vec<String>], at: usize) -> Result<Vec<Value>, Problems> {
    let verdict = names.iter().position(|name| name == VERDICT);
    let value = |line: &&Vec<String>| match line[at].as_str() {
        "" if verdict.is_some_and(|v| line[v] == UNSTABLE) => Ok(Value::Unstable),
        "" => Ok(Value::None),
        text => text.parse().map(Value::Number).map_err(|_| {
            let problem = Problem::new("--value", text, "not a number");
            problem.next("choose a column of numbers").into()
        }),
    };
    here.iter().map(value).collect()
}

#[cfg(test)]
mod tests;
