//! Comma-separated records, each field with its line and column.

use csv::{ReaderBuilder, StringRecord};
use schema::problem::{Problem, nearest};

use super::trace::{Found, Trace};

/// One record and where it stands.
#[derive(Debug)]
pub(super) struct Record<'a> {
    fields: StringRecord,
    /// The text from its first field on.
    rest: &'a str,
    line: usize,
}

/// Which field of a record is which column.
#[derive(Debug)]
pub(super) struct Columns {
    names: &'static [&'static str],
    places: Vec<Option<usize>>,
    count: usize,
}

impl Record<'_> {
    /// Field `at`, without blanks around it.
    fn field(&self, at: usize) -> &str {
        self.fields.get(at).unwrap_or_default().trim()
    }

    /// Puts the place of field `at` into `problem`.
    fn place(&self, mut problem: Box<Problem>, at: usize) -> Box<Problem> {
        let (mut line, mut column, mut field, mut quoted) = (self.line, 1, 0, false);
        for c in self.rest.chars() {
            if field == at && !c.is_whitespace() {
                break;
            }
            match c {
                '"' => quoted = !quoted,
                ',' if !quoted => field += 1,
                _ => {}
            }
            (line, column) = match c {
                '\n' => (line + 1, 1),
                _ => (line, column + 1),
            };
        }
        problem.place.position = Some((line, column));
        problem
    }
}

impl Columns {
    /// The text of column `name` of `record`.
    pub(super) fn text<'r>(&self, record: &'r Record<'_>, name: &str) -> Option<&'r str> {
        Some(record.field(self.at(name)?))
    }

    /// Puts the place of column `name` into `problem`.
    pub(super) fn place(
        &self,
        record: &Record<'_>,
        name: &str,
        problem: Box<Problem>,
    ) -> Box<Problem> {
        record.place(problem, self.at(name).unwrap_or(0))
    }

    fn at(&self, name: &str) -> Option<usize> {
        let column = self.names.iter().position(|known| *known == name)?;
        self.places[column]
    }

    /// Reads the header; a first record that is none stands for the columns in their order.
    fn new(
        names: &'static [&'static str],
        required: usize,
        first: &Record<'_>,
        is_data: bool,
    ) -> Found<Self> {
        let count = first.fields.len();
        if is_data {
            if !(required..=names.len()).contains(&count) {
                let problem = Problem::new("row", "", format!("{count} fields"));
                return Err(first.place(problem.allowed(names.join(", ")).into(), 0));
            }
            let places = (0..names.len()).map(|at| (at < count).then_some(at));
            return Ok(Self {
                names,
                places: places.collect(),
                count,
            });
        }
        let mut places = vec![None; names.len()];
        for at in 0..count {
            let name = first.field(at);
            let column = names
                .iter()
                .position(|known| known.eq_ignore_ascii_case(name));
            let what = match column {
                Some(column) if places[column].is_none() => {
                    places[column] = Some(at);
                    continue;
                }
                Some(_) => "the column is there twice".to_string(),
                None => match nearest(&name.to_lowercase(), names.iter().copied()) {
                    Some(near) => format!("unknown column; did you mean \"{near}\"?"),
                    None => "unknown column".to_string(),
                },
            };
            let problem = Problem::new("header", name, what).allowed(names.join(", "));
            return Err(first.place(problem.next("cut the other columns out").into(), at));
        }
        for (name, place) in names.iter().zip(&places).take(required) {
            if place.is_none() {
                let problem = Problem::new("header", *name, "missing column");
                return Err(first.place(problem.allowed(names.join(", ")).into(), 0));
            }
        }
        Ok(Self {
            names,
            places,
            count,
        })
    }

    fn wrong_count(&self, record: &Record<'_>) -> Box<Problem> {
        let what = format!("{} fields in a row of {}", record.fields.len(), self.count);
        let at = record.fields.len().saturating_sub(1).min(self.count);
        record.place(Problem::new("row", "", what).into(), at)
    }
}

/// Hands every record of the trace to `each` until the trace is full. The first record names the
/// columns, unless `is_data` says that its first field is already a value.
pub(super) fn read<'a>(
    trace: &mut Trace<'a>,
    names: &'static [&'static str],
    required: usize,
    is_data: impl Fn(&str) -> bool,
    mut each: impl FnMut(&mut Trace<'a>, &Columns, &Record<'a>),
) {
    let text = trace.text;
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .from_reader(text.as_bytes());
    let (mut counted_to, mut line) = (0, 1);
    let mut columns: Option<Columns> = None;
    while !trace.is_full() {
        let mut fields = StringRecord::new();
        // The text is UTF-8 and rows may have any length, so there is nothing else to fail.
        if !reader.read_record(&mut fields).unwrap_or(false) {
            return;
        }
        let start = fields.position().map_or(0, |p| p.byte() as usize);
        let blank = text[start..].len() - text[start..].trim_start_matches(['\r', '\n']).len();
        let start = start + blank;
        line += text[counted_to..start].matches('\n').count();
        counted_to = start;
        let rest = &text[start..];
        let record = Record { fields, rest, line };
        let Some(columns) = &columns else {
            let is_data = is_data(record.field(0));
            match Columns::new(names, required, &record, is_data) {
                Ok(known) => {
                    if is_data {
                        each(trace, &known, &record);
                    }
                    columns = Some(known);
                }
                Err(problem) => return trace.refuse(*problem),
            }
            continue;
        };
        if record.fields.len() == columns.count {
            each(trace, columns, &record);
        } else {
            trace.keep(Err(columns.wrong_count(&record)));
        }
    }
}
