//! Reading JSON so that every finding names its line, column and field.
//!
//! A [`Document`] hands out objects whose fields are slices of the text, so that a value's place is
//! known when it turns out to be wrong. Duplicate and unknown fields are findings, with the nearest
//! known name; a reader goes on after each and reports all of them at once.

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, DeserializeOwned, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::collections::BTreeSet;
use std::fmt;
use std::marker::PhantomData;

use crate::problem::{Findings, Problem, Problems, nearest};

/// A JSON text and the name messages give it.
#[derive(Debug, Clone, Copy)]
pub struct Document<'a> {
    /// File name as the user gave it.
    pub source: &'a str,
    /// The whole text.
    pub text: &'a str,
}

/// The text of a file's bytes; `source` is its name in messages.
///
/// # Errors
/// The line of the first byte that is not UTF-8.
pub fn utf8<'a>(source: &str, bytes: &'a [u8]) -> Result<&'a str, Problems> {
    std::str::from_utf8(bytes).map_err(|e| {
        let line = bytes[..e.valid_up_to()].iter().filter(|b| **b == b'\n');
        let what = format!("byte {} is not UTF-8 text", e.valid_up_to());
        Problem::new("", "", what)
            .in_source(source)
            .at(line.count() + 1, 1)
            .into()
    })
}

/// A value that stands as an object. A derived reader alone would also take a list of the fields' values in
/// their order, which no format here means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fields<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Fields<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for FieldsVisitor<T> {
            type Value = Fields<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with named fields")
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Fields)
            }
        }
        deserializer.deserialize_map(FieldsVisitor(PhantomData))
    }
}

/// A value that knows its path and, being a slice of the document, its place.
#[derive(Debug, Clone)]
pub struct Node<'a> {
    /// Such as `apis[3].task_size_mi`; empty for the whole document.
    pub path: String,
    raw: &'a RawValue,
}

/// The fields of one object, duplicates removed.
#[derive(Debug)]
pub struct Object<'a> {
    path: String,
    fields: Vec<Node<'a>>,
    place: &'a str,
}

impl<'a> Document<'a> {
    /// A text of at most `max_bytes`; `source` is its name in messages.
    ///
    /// # Errors
    /// It is larger.
    pub fn within(source: &'a str, text: &'a str, max_bytes: usize) -> Result<Self, Problems> {
        if text.len() > max_bytes {
            let bytes = text.len().to_string();
            return Err(Problem::new("size", bytes, "file too large")
                .in_source(source)
                .allowed(format!("{max_bytes} bytes"))
                .into());
        }
        Ok(Self { source, text })
    }

    /// The document's value.
    ///
    /// # Errors
    /// The place and reason of the first syntax error.
    pub fn root(&self) -> Result<Node<'a>, Problems> {
        let raw: &RawValue = serde_json::from_str(self.text).map_err(|e| {
            let what = e.to_string();
            let what = what.split(" at line ").next().unwrap_or_default();
            Problem::new("", "", format!("not JSON: {what}"))
                .in_source(self.source)
                .at(e.line(), e.column().max(1))
        })?;
        Ok(Node {
            path: String::new(),
            raw,
        })
    }

    /// A problem with the value of `node`.
    pub fn problem(&self, node: &Node<'_>, what: impl Into<String>) -> Problem {
        let value = match node.raw.get() {
            v if v.starts_with(['{', '[']) => "",
            v => v,
        };
        self.problem_at(node.raw.get(), node.path.clone(), value, what)
    }

    /// A problem with the object as a whole, such as a missing field.
    pub fn missing(&self, object: &Object<'_>, name: &str) -> Problem {
        self.problem_at(object.place, join(&object.path, name), "", "missing field")
    }

    fn problem_at(
        &self,
        slice: &str,
        path: String,
        value: &str,
        what: impl Into<String>,
    ) -> Problem {
        let (line, column) = position(self.text, self.offset(slice));
        Problem::new(path, value, what)
            .in_source(self.source)
            .at(line, column)
    }

    /// Where `slice`, a part of the text, begins, in bytes.
    fn offset(&self, slice: &str) -> usize {
        (slice.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize)
    }

    /// The bytes of the text that `node` takes.
    pub fn span(&self, node: &Node<'_>) -> std::ops::Range<usize> {
        let start = self.offset(node.raw.get());
        start..start + node.raw.get().len()
    }

    /// Reads `node` as an object with the fields `known`; anything else is a finding.
    pub fn object(
        &self,
        node: &Node<'a>,
        known: &[&str],
        findings: &mut Findings,
    ) -> Option<Object<'a>> {
        // Placing a finding takes a walk through the text; a file of nothing but mistakes must not take
        // one for each.
        if findings.is_full() {
            return None;
        }
        let Ok(Members(members)) = serde_json::from_str::<Members<'a>>(node.raw.get()) else {
            findings.push(self.problem(node, "expected an object"));
            return None;
        };
        let mut fields: Vec<Node<'a>> = Vec::with_capacity(members.len());
        for (name, raw) in members {
            if findings.is_full() {
                return None;
            }
            let field = Node {
                path: join(&node.path, &name),
                raw,
            };
            if fields.iter().any(|f| f.path == field.path) {
                findings.push(self.problem(&field, "duplicate field").next("keep one"));
            } else if known.contains(&name.as_str()) {
                fields.push(field);
            } else {
                let what = match nearest(&name, known.iter().copied()) {
                    Some(near) => format!("unknown field; did you mean \"{near}\"?"),
                    None => "unknown field".to_string(),
                };
                findings.push(self.problem(&field, what).allowed(known.join(", ")));
            }
        }
        Some(Object {
            path: node.path.clone(),
            fields,
            place: node.raw.get(),
        })
    }

    /// Reads `node` as an object whose names are the user's, in their order.
    pub fn members(
        &self,
        node: &Node<'a>,
        findings: &mut Findings,
    ) -> Option<Vec<(String, Node<'a>)>> {
        let Ok(Members(members)) = serde_json::from_str::<Members<'a>>(node.raw.get()) else {
            findings.push(self.problem(node, "expected an object"));
            return None;
        };
        let mut found: Vec<(String, Node<'a>)> = Vec::with_capacity(members.len());
        let mut names = BTreeSet::new();
        for (name, raw) in members {
            if findings.is_full() {
                return None;
            }
            let path = join(&node.path, &name);
            let member = Node { path, raw };
            if !names.insert(name.clone()) {
                findings.push(self.problem(&member, "duplicate field").next("keep one"));
            } else {
                found.push((name, member));
            }
        }
        Some(found)
    }

    /// Reads `node` as an array.
    pub fn array(&self, node: &Node<'a>, findings: &mut Findings) -> Option<Vec<Node<'a>>> {
        let Ok(items) = serde_json::from_str::<Vec<&'a RawValue>>(node.raw.get()) else {
            findings.push(self.problem(node, "expected an array"));
            return None;
        };
        let items = items.into_iter().enumerate();
        Some(
            items
                .map(|(i, raw)| Node {
                    path: format!("{}[{i}]", node.path),
                    raw,
                })
                .collect(),
        )
    }

    /// Reads a field that must be there, as a `T` (`expected` in words, such as "a string").
    pub fn required<T: DeserializeOwned>(
        &self,
        object: &Object<'a>,
        name: &str,
        expected: &str,
        findings: &mut Findings,
    ) -> Option<(Node<'a>, T)> {
        let Some(node) = object.field(name) else {
            findings.push(self.missing(object, name));
            return None;
        };
        let value = self.value(&node, expected, findings)?;
        Some((node, value))
    }

    /// Reads `node` as a `T`.
    pub fn value<T: DeserializeOwned>(
        &self,
        node: &Node<'a>,
        expected: &str,
        findings: &mut Findings,
    ) -> Option<T> {
        match serde_json::from_str(node.raw.get()) {
            Ok(value) => Some(value),
            Err(_) if findings.is_full() => None,
            Err(_) => {
                findings.push(self.problem(node, format!("expected {expected}")));
                None
            }
        }
    }
}

impl<'a> Object<'a> {
    /// The field `name`, if it is there.
    pub fn field(&self, name: &str) -> Option<Node<'a>> {
        let path = join(&self.path, name);
        self.fields.iter().find(|f| f.path == path).cloned()
    }
}

/// The members of an object in their order, duplicates kept.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de> serde::Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;
        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = Members<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(MembersVisitor)
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_string()
    } else {
        format!("{path}.{name}")
    }
}

/// Line and column of a byte offset, both from 1; columns are characters.
fn position(text: &str, offset: usize) -> (usize, usize) {
    let before = &text[..offset.min(text.len())];
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    (
        before.matches('\n').count() + 1,
        before[line_start..].chars().count() + 1,
    )
}

#[cfg(test)]
mod tests {
    use super::{Document, Fields, utf8};
    use crate::problem::Findings;

    /// Placing each of a hundred thousand would take a minute.
    #[test]
    fn a_file_of_nothing_but_mistakes_is_looked_at_until_enough_are_found() {
        let fields: Vec<String> = (0..100_000).map(|i| format!("\"u{i}\":1")).collect();
        let text = format!("{{{}}}", fields.join(","));
        let document = Document {
            source: "f.json",
            text: &text,
        };
        let root = document.root().expect("syntax is right");
        let mut findings = Findings::default();
        assert!(document.object(&root, &["name"], &mut findings).is_none());
        assert!(findings.is_full());
        assert!(document.object(&root, &["name"], &mut findings).is_none());
        let members = document.members(&root, &mut Findings::default());
        assert_eq!(members.map(|m| m.len()), Some(100_000));
    }

    #[test]
    fn findings_name_line_column_and_field() {
        let document = Document {
            source: "f.json",
            text: "{\n  \"name\": 7,\n  \"nmae\": 1,\n  \"list\": [{\"x\": 1}, {\"x\": -2}],\n  \"name\": 8\n}",
        };
        let mut findings = Findings::default();
        let root = document.root().expect("syntax is right");
        let object = document
            .object(&root, &["name", "list", "gone"], &mut findings)
            .expect("an object");
        document.required::<String>(&object, "name", "a string", &mut findings);
        document.required::<String>(&object, "gone", "a string", &mut findings);
        let list = object.field("list").expect("there");
        let items = document.array(&list, &mut findings).expect("an array");
        let second = document
            .object(&items[1], &["x"], &mut findings)
            .expect("an object");
        let (node, x) = document
            .required::<i32>(&second, "x", "a number", &mut findings)
            .expect("a number");
        findings.push(document.problem(&node, "negative"));
        assert_eq!(x, -2);
        assert_eq!(
            findings.finish(()).unwrap_err().to_string(),
            "f.json:3:11: nmae: 1: unknown field; did you mean \"name\"? (allowed: name, list, gone)\n\
             error: f.json:5:11: name: 8: duplicate field; keep one\n\
             error: f.json:2:11: name: 7: expected a string\n\
             error: f.json:1:1: gone: missing field\n\
             error: f.json:4:28: list[1].x: -2: negative"
        );
    }

    #[test]
    fn a_list_is_no_object() {
        #[derive(Debug, PartialEq, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Point<'a> {
            x: i32,
            name: Option<&'a str>,
        }
        let read = serde_json::from_str::<Fields<Point<'_>>>;
        let point = Point {
            x: 1,
            name: Some("a"),
        };
        let text = r#"{"x": 1, "name": "a"}"#;
        assert_eq!(read(text).expect("an object").0, point);
        for bad in ["[1, \"a\"]", "[1]", "[]", "1", "null", "\"x\""] {
            let error = read(bad).expect_err(bad).to_string();
            assert!(error.contains("expected an object"), "{bad}: {error}");
        }
        for bad in [r#"{"x": 1, "y": 2}"#, r#"{"x": 1, "x": 2}"#, "{}"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn bytes_that_are_not_text_name_their_line() {
        assert_eq!(utf8("f", b"{}"), Ok("{}"));
        let problems = utf8("f.json", b"{\n\xff}").expect_err("not text");
        assert_eq!(problems.to_string(), "f.json:2:1: byte 2 is not UTF-8 text");
    }

    #[test]
    fn a_syntax_error_names_its_place() {
        let document = Document {
            source: "f.json",
            text: "{\n  \"a\": nope\n}",
        };
        let problem = document.root().expect_err("not JSON");
        assert!(problem.to_string().starts_with("f.json:2:"), "{problem}");
    }
}
