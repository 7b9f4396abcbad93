//! Reads a sweep file; every finding names its place and bound.

use super::{
    Axis, Grid, MAX_AXES, MAX_BYTES, MAX_GRIDS, MAX_NAME_BYTES, MAX_RUNS, MAX_SEEDS, MAX_VALUES,
    SCHEMA, Sweep, Value,
};
use crate::json::{Document, Node};
use crate::problem::{Findings, Problems, nearest};
use crate::scenario::{Scenario, Text};

impl Sweep {
    /// Reads a sweep file; `source` is its name in messages.
    ///
    /// # Errors
    /// Every finding with its place, field and bound, in the order of reading.
    pub fn parse(source: &str, text: &str) -> Result<Self, Problems> {
        let document = Document::within(source, text, MAX_BYTES)?;
        let root = document.root()?;
        let mut reader = Reader {
            document,
            findings: Findings::default(),
        };
        let sweep = reader.sweep(&root);
        let none = Self {
            name: String::new(),
            seeds: 1,
            grids: Vec::new(),
        };
        reader.findings.finish(sweep.unwrap_or(none))
    }
}

struct Reader<'a> {
    document: Document<'a>,
    findings: Findings,
}

impl<'a> Reader<'a> {
    fn sweep(&mut self, root: &Node<'a>) -> Option<Sweep> {
        let known = ["schema", "name", "seeds", "base", "grids"];
        let object = self.document.object(root, &known, &mut self.findings)?;
        let (document, findings) = (self.document, &mut self.findings);
        let schema = document.required::<String>(&object, "schema", "a string", findings);
        if let Some((node, _)) = schema.filter(|(_, s)| s != SCHEMA) {
            let problem = document.problem(&node, "not a sweep of a known version");
            findings.push(problem.allowed(SCHEMA));
        }
        let name = document.required::<String>(&object, "name", "a string", findings);
        let seeds = match object.field("seeds") {
            None => Some(1),
            Some(node) => {
                let seeds: Option<u32> = document.value(&node, "a whole number", findings);
                if seeds.is_some_and(|n| !(1..=MAX_SEEDS).contains(&n)) {
                    let problem = document.problem(&node, "out of range");
                    findings.push(problem.allowed(format!("1 to {MAX_SEEDS}")));
                }
                seeds
            }
        };
        let base = match object.field("base") {
            None => Scenario::default(),
            Some(node) => self.scenario(&node),
        };
        let Some(node) = object.field("grids") else {
            self.findings.push(self.document.missing(&object, "grids"));
            return None;
        };
        let grids: Vec<Grid> = self
            .list(&node, "grids", MAX_GRIDS)?
            .iter()
            .filter_map(|grid| self.grid(grid, &base))
            .collect();
        let sweep = Sweep {
            name: name?.1,
            seeds: seeds?.max(1),
            grids,
        };
        if sweep.runs() > MAX_RUNS {
            let what = format!("{} runs", sweep.runs());
            let problem = self.document.problem(&node, what);
            self.findings.push(
                problem
                    .allowed(format!("up to {MAX_RUNS}"))
                    .next("split the file"),
            );
        }
        Some(sweep)
    }

    /// A scenario that is a part of this file.
    fn scenario(&mut self, node: &Node<'a>) -> Scenario {
        Scenario::read(self.document, node).unwrap_or_else(|problems| {
            let list = problems.list().iter().cloned();
            list.for_each(|problem| self.findings.push(problem));
            Scenario::default()
        })
    }

    fn list(&mut self, node: &Node<'a>, what: &str, most: usize) -> Option<Vec<Node<'a>>> {
        let items = self.document.array(node, &mut self.findings)?;
        if (1..=most).contains(&items.len()) {
            return Some(items);
        }
        let problem = self
            .document
            .problem(node, format!("{} {what}", items.len()));
        self.findings.push(problem.allowed(format!("1 to {most}")));
        None
    }

    fn grid(&mut self, node: &Node<'a>, base: &Scenario) -> Option<Grid> {
        let known = ["base", "axes"];
        let object = self.document.object(node, &known, &mut self.findings)?;
        let over = match object.field("base") {
            None => Scenario::default(),
            Some(node) => self.scenario(&node),
        };
        let mut axes: Vec<Axis> = Vec::new();
        if let Some(node) = object.field("axes") {
            for item in self.list(&node, "axes", MAX_AXES)? {
                let Some(axis) = self.axis(&item) else {
                    continue;
                };
                if axes.iter().any(|known| known.name == axis.name) {
                    let what = format!("a second axis \"{}\"", axis.name);
                    let problem = self.document.problem(&item, what);
                    self.findings.push(problem.next("join the two"));
                }
                axes.push(axis);
            }
        }
        Some(Grid {
            base: base.clone().overridden_by(over),
            axes,
        })
    }

    fn axis(&mut self, node: &Node<'a>) -> Option<Axis> {
        let known = ["field", "values", "name", "cases"];
        let object = self.document.object(node, &known, &mut self.findings)?;
        let has = |name: &str| object.field(name).is_some();
        let (document, findings) = (self.document, &mut self.findings);
        if has("field") != has("values")
            || has("name") != has("cases")
            || has("field") == has("name")
        {
            let what = "an axis is either a field with values or a name with cases";
            findings.push(document.problem(node, what));
            return None;
        }
        if has("field") {
            let (at, name) = document.required::<String>(&object, "field", "a string", findings)?;
            if !axis_fields().any(|field| field == name) {
                let problem = document.problem(&at, unknown_field(&name));
                let fields: Vec<&str> = axis_fields().collect();
                findings.push(problem.allowed(fields.join(", ")));
                return None;
            }
            let values = self.list(&object.field("values")?, "values", MAX_VALUES)?;
            let values = values.iter().filter_map(|at| self.value(&name, at));
            let values: Vec<Value> = values.collect();
            return self.distinct(node, Axis { name, values });
        }
        let (at, name) = document.required::<String>(&object, "name", "a string", findings)?;
        let is_field = Scenario::FIELDS.into_iter().chain(Scenario::DRIFTS);
        if is_field
            .chain(["apis", "faults"])
            .any(|field| field == name)
        {
            let problem = document.problem(&at, "the name of a field");
            findings.push(problem.next("give it as \"field\", or choose another name"));
        }
        self.check_name(&at, &name);
        let cases = self
            .document
            .members(&object.field("cases")?, &mut self.findings)?;
        if !(1..=MAX_VALUES).contains(&cases.len()) {
            let what = format!("{} cases", cases.len());
            let problem = self.document.problem(&object.field("cases")?, what);
            self.findings
                .push(problem.allowed(format!("1 to {MAX_VALUES}")));
        }
        let mut values = Vec::with_capacity(cases.len());
        for (label, at) in cases {
            self.check_name(&at, &label);
            let over = self.scenario(&at);
            values.push(Value { label, over });
        }
        Some(Axis { name, values })
    }

    /// One value of a field, checked as the field's are.
    fn value(&mut self, name: &str, node: &Node<'a>) -> Option<Value> {
        let expected = "text, a number or a list of numbers";
        let value = self
            .document
            .value::<serde_json::Value>(node, expected, &mut self.findings)?;
        let Some(Text(label)) = Text::of(&value) else {
            let problem = self.document.problem(node, format!("expected {expected}"));
            self.findings.push(problem);
            return None;
        };
        let mut over = Scenario::default();
        if let Err(problems) = over.set(name, name, &label) {
            for found in problems.list() {
                let problem = self.document.problem(node, found.what.clone());
                self.findings.push(problem.allowed(found.allowed.clone()));
            }
        }
        Some(Value { label, over })
    }

    /// Two values of one label could not be told apart in a result.
    fn distinct(&mut self, node: &Node<'a>, axis: Axis) -> Option<Axis> {
        for (i, value) in axis.values.iter().enumerate() {
            if axis.values[..i].iter().any(|v| v.label == value.label) {
                let what = format!("\"{}\" twice on one axis", value.label);
                let problem = self.document.problem(node, what);
                self.findings.push(problem.next("keep one"));
            }
        }
        Some(axis)
    }

    fn check_name(&mut self, node: &Node<'a>, name: &str) {
        let good = |c: char| c.is_ascii_alphanumeric() || "_-.:".contains(c);
        if name.is_empty() || name.len() > MAX_NAME_BYTES || !name.chars().all(good) {
            let what = format!("\"{}\" is no plain name", crate::problem::printable(name));
            let problem = self.document.problem(node, what);
            let allowed = format!("1 to {MAX_NAME_BYTES} letters, digits and _-.:");
            self.findings.push(problem.allowed(allowed));
        }
    }
}

/// Fields that an axis may have values of; seeds are counted, names say nothing.
fn axis_fields() -> impl Iterator<Item = &'static str> {
    let all = Scenario::FIELDS.into_iter().chain(Scenario::DRIFTS);
    all.filter(|field| !["name", "seed", "model"].contains(field))
}

fn unknown_field(name: &str) -> String {
    match name {
        "seed" => "seeds are said once for all: \"seeds\"".into(),
        "name" | "model" | "apis" | "faults" => {
            "no single value: name the axis and give cases".into()
        }
        _ => match nearest(name, axis_fields()) {
            Some(near) => format!("unknown field; did you mean \"{near}\"?"),
            None => "unknown field".into(),
        },
    }
}
