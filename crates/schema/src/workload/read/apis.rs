//! The APIs of a workload file.

use std::collections::BTreeMap;

use super::Reader;
use crate::json::{Node, Object};
use crate::workload::{Api, MAX_APIS, MAX_URL_BYTES, Method, TASK_SIZE_MI, target_fault};

impl<'a> Reader<'a> {
    pub(super) fn apis(&mut self, object: &Object<'a>) -> Option<Vec<Api>> {
        let Some(node) = object.field("apis") else {
            let problem = self.document.missing(object, "apis");
            self.findings.push(problem);
            return None;
        };
        let items = self.document.array(&node, &mut self.findings)?;
        if !(1..=MAX_APIS).contains(&items.len()) {
            let count = format!("{} APIs", items.len());
            self.wrong(&node, &count, &format!("1 to {MAX_APIS}"));
            return None;
        }
        let mut ids = BTreeMap::new();
        let mut targets = BTreeMap::new();
        let mut apis = Vec::with_capacity(items.len());
        for (i, item) in items.iter().enumerate() {
            let Some(api) = self.api(item) else { continue };
            if let Some(first) = ids.insert(api.id.clone(), i) {
                let what = format!("duplicate API: the id is that of apis[{first}]");
                self.note(item, &what, "rename one");
            }
            if let Some(first) = targets.insert((api.method, api.url.clone()), i) {
                let what = format!("duplicate API: method and url are those of apis[{first}]");
                self.note(item, &what, "remove one");
            }
            apis.push(api);
        }
        Some(apis)
    }

    fn api(&mut self, node: &Node<'a>) -> Option<Api> {
        let known = ["id", "method", "url", "task_size_mi"];
        let object = self.document.object(node, &known, &mut self.findings)?;
        let id = self.name(&object, "id");
        let method = self.word::<Method>(&object, "method", &Method::ALL.map(Method::as_str));
        let url = self.url(&object);
        let task_size_mi = self.number(&object, "task_size_mi", &TASK_SIZE_MI);
        Some(Api {
            id: id?,
            method: method?,
            url: url?,
            task_size_mi: task_size_mi?,
        })
    }

    fn url(&mut self, object: &Object<'a>) -> Option<String> {
        let (node, url) = self.required_node::<String>(object, "url", "a string")?;
        match target_fault(&url) {
            None => Some(url),
            Some(what) => {
                let allowed = format!("/path of printable ASCII, up to {MAX_URL_BYTES} bytes");
                self.wrong(&node, what, &allowed);
                None
            }
        }
    }
}
