//! From method and URL to the table's API, with stand-ins for what training never saw.

use std::collections::BTreeMap;

use crate::header::{ApiName, MAX_APIS};
use crate::refusal::Refusal;

/// Refuses a list of APIs that leaves some request without an answer, or with two.
pub(crate) fn check(apis: &[ApiName]) -> Result<(), Refusal> {
    if apis.len() > MAX_APIS {
        return Err(Refusal::new("apis", "has too many entries")
            .value(apis.len())
            .allowed(format!("at most {MAX_APIS}")));
    }
    let mut seen = BTreeMap::new();
    for (i, api) in apis.iter().enumerate() {
        if api.method.is_none() && api.url.is_some() {
            return Err(
                Refusal::new(format!("apis[{i}]"), "has a URL but no method")
                    .value(api)
                    .allowed("both, method alone, or neither"),
            );
        }
        if let Some(first) = seen.insert(api, i) {
            return Err(Refusal::new(format!("apis[{i}]"), "is listed twice")
                .value(api)
                .next(format!("the first is apis[{first}]")));
        }
    }
    if !apis.iter().any(|api| api.url.is_some()) {
        return Err(Refusal::new("apis", "names no trained API").allowed("at least one"));
    }
    let any = ApiName {
        method: None,
        url: None,
    };
    let stand_ins = apis.iter().map(|api| ApiName {
        method: api.method.clone(),
        url: None,
    });
    for stand_in in std::iter::once(any).chain(stand_ins) {
        if !seen.contains_key(&stand_in) {
            return Err(
                Refusal::new("apis", "lacks the stand-in for unknown requests")
                    .value(stand_in)
                    .next("export the model again"),
            );
        }
    }
    Ok(())
}

/// Places of APIs by name.
#[derive(Debug, Clone)]
pub(crate) struct Index {
    methods: BTreeMap<String, Method>,
    unknown: usize,
}

#[derive(Debug, Clone, Default)]
struct Method {
    unknown: usize,
    urls: BTreeMap<String, usize>,
}

impl Index {
    /// An index of a checked list.
    pub(crate) fn new(apis: &[ApiName]) -> Self {
        let mut index = Self {
            methods: BTreeMap::new(),
            unknown: 0,
        };
        for (place, api) in apis.iter().enumerate() {
            match (&api.method, &api.url) {
                (Some(method), Some(url)) => {
                    let entry = index.methods.entry(method.clone()).or_default();
                    entry.urls.insert(url.clone(), place);
                }
                (Some(method), None) => {
                    index.methods.entry(method.clone()).or_default().unknown = place;
                }
                (None, _) => index.unknown = place,
            }
        }
        index
    }

    /// The place of `method` and the path of `url`, else of the method's stand-in, else of the
    /// stand-in of everything.
    pub(crate) fn find(&self, method: &str, url: &str) -> usize {
        let path = url.split('?').next().unwrap_or(url);
        match self.methods.get(method) {
            Some(known) => known.urls.get(path).copied().unwrap_or(known.unknown),
            None => self.unknown,
        }
    }
}
