//! The list of requests of a workload file.
//!
//! A list may have a million entries, so it is read in one pass first. Only when that pass stumbles
//! is it read again entry by entry, slowly, for the places of the findings.

use serde::Deserialize;
use serde::de::{Deserializer, Visitor};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use super::Reader;
use crate::json::{Fields, Node, Object};
use crate::problem::nearest;
use crate::workload::{Api, MAX_AT_US, MAX_REQUESTS, Request, TASK_SIZE_MI};

/// Entries with findings after which the rest is not looked at.
const MAX_BAD: usize = 100;
/// APIs whose ids are compared with a wrong one to suggest the nearest.
const MAX_COMPARED: usize = 1000;

/// One entry as it stands in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry<'a> {
    at_us: u64,
    #[serde(borrow)]
    api: Name<'a>,
    /// The API's own when left out.
    task_size_mi: Option<f64>,
}

/// An API by its id, or by its place in `apis` from 0.
enum Name<'a> {
    Id(Cow<'a, str>),
    Place(u64),
}

struct Known<'a> {
    apis: &'a [Api],
    by_id: BTreeMap<&'a str, u32>,
}

impl Known<'_> {
    fn index(&self, name: &Name<'_>) -> Option<u32> {
        match name {
            Name::Id(id) => self.by_id.get(id.as_ref()).copied(),
            Name::Place(place) => (*place < self.apis.len() as u64).then_some(*place as u32),
        }
    }

    /// The request that `entry` stands for, if it may follow one at `earliest_us`.
    fn request(&self, entry: &Entry<'_>, earliest_us: u64) -> Option<Request> {
        let api = self.index(&entry.api)?;
        let own_mi = self.apis[api as usize].task_size_mi;
        let task_size_mi = entry.task_size_mi.unwrap_or(own_mi);
        let good = (earliest_us..=MAX_AT_US).contains(&entry.at_us)
            && TASK_SIZE_MI.contains(&task_size_mi);
        good.then_some(Request {
            at_us: entry.at_us,
            api,
            task_size_mi,
        })
    }
}

impl<'a> Reader<'a> {
    pub(super) fn requests(&mut self, node: &Node<'a>, apis: &[Api]) -> Option<Vec<Request>> {
        let by_id = apis.iter().map(|a| a.id.as_str()).zip(0..).collect();
        let known = Known { apis, by_id };
        let text = &self.document.text[self.document.span(node)];
        if let Ok(entries) = serde_json::from_str::<Vec<Fields<Entry<'_>>>>(text) {
            if !(1..=MAX_REQUESTS).contains(&(entries.len() as u64)) {
                let what = match entries.len() {
                    0 => "the schedule would be empty".to_string(),
                    n => format!("{n} requests"),
                };
                self.wrong(node, &what, &format!("1 to {MAX_REQUESTS}"));
                return None;
            }
            let mut earliest_us = 0;
            let requests = entries.iter().map(|Fields(entry)| {
                let request = known.request(entry, earliest_us)?;
                earliest_us = request.at_us;
                Some(request)
            });
            if let Some(requests) = requests.collect() {
                return Some(requests);
            }
        }
        self.faults(node, &known);
        None
    }

    /// Finds what is wrong with a list in which something is.
    fn faults(&mut self, node: &Node<'a>, known: &Known<'_>) {
        let Some(items) = self.document.array(node, &mut self.findings) else {
            return;
        };
        let (mut earliest_us, mut bad) = (0, 0);
        for item in &items {
            let text = &self.document.text[self.document.span(item)];
            let entry = serde_json::from_str(text).ok();
            let good = entry.and_then(|Fields(entry)| known.request(&entry, earliest_us));
            if let Some(good) = good {
                earliest_us = good.at_us;
                continue;
            }
            if let Some(at_us) = self.fault(item, known, earliest_us) {
                earliest_us = at_us;
            }
            bad += 1;
            if bad == MAX_BAD {
                return;
            }
        }
    }

    /// Finds what is wrong with an entry in which something is, and gives its time if that is right.
    fn fault(&mut self, item: &Node<'a>, known: &Known<'_>, earliest_us: u64) -> Option<u64> {
        let fields = ["at_us", "api", "task_size_mi"];
        let entry = self.document.object(item, &fields, &mut self.findings)?;
        let at_us = self.at_us(&entry, earliest_us);
        self.api_name(&entry, known);
        if entry.field("task_size_mi").is_some() {
            self.number(&entry, "task_size_mi", &TASK_SIZE_MI);
        }
        at_us
    }

    fn at_us(&mut self, entry: &Object<'a>, earliest_us: u64) -> Option<u64> {
        let expected = "a whole number of microseconds";
        let (node, at_us) = self.required_node::<u64>(entry, "at_us", expected)?;
        if at_us > MAX_AT_US {
            self.wrong(&node, "too late", &format!("up to {MAX_AT_US}"));
        } else if at_us < earliest_us {
            let problem = self
                .document
                .problem(&node, "earlier than the request before it")
                .allowed(format!("{earliest_us} or later"))
                .next("sort the requests by at_us");
            self.findings.push(problem);
        } else {
            return Some(at_us);
        }
        None
    }

    fn api_name(&mut self, entry: &Object<'a>, known: &Known<'_>) {
        let Some(node) = entry.field("api") else {
            let problem = self.document.missing(entry, "api");
            self.findings.push(problem);
            return;
        };
        let text = &self.document.text[self.document.span(&node)];
        let Ok(name) = serde_json::from_str::<Name<'_>>(text) else {
            let what = "expected the id of an API, or its place in apis from 0";
            let problem = self.document.problem(&node, what);
            self.findings.push(problem);
            return;
        };
        match name {
            name if known.index(&name).is_some() => {}
            Name::Place(_) => {
                let last = known.apis.len() - 1;
                self.wrong(&node, "no such API", &format!("0 to {last}"));
            }
            Name::Id(id) => {
                let ids = known.by_id.keys().copied().take(MAX_COMPARED);
                match nearest(&id, ids) {
                    Some(near) => {
                        let what = format!("no such API; did you mean \"{near}\"?");
                        self.note(&node, &what, "");
                    }
                    None => self.note(&node, "no such API", "add it to apis"),
                }
            }
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Name<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameVisitor<'a>(PhantomData<&'a ()>);
        impl<'de: 'a, 'a> Visitor<'de> for NameVisitor<'a> {
            type Value = Name<'a>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an id or a whole number")
            }
            fn visit_u64<E>(self, place: u64) -> Result<Self::Value, E> {
                Ok(Name::Place(place))
            }
            fn visit_borrowed_str<E>(self, id: &'de str) -> Result<Self::Value, E> {
                Ok(Name::Id(Cow::Borrowed(id)))
            }
            fn visit_str<E>(self, id: &str) -> Result<Self::Value, E> {
                Ok(Name::Id(Cow::Owned(id.to_string())))
            }
        }
        deserializer.deserialize_any(NameVisitor(PhantomData))
    }
}
