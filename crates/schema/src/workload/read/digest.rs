//! The digest of a workload file.

use super::Reader;
use crate::json::Object;
use crate::workload::text::hex_digest;

impl<'a> Reader<'a> {
    /// The digest of the text without its `sha256` field; a field that disagrees is a finding.
    pub(super) fn digest(&mut self, object: &Object<'a>) -> String {
        let text = self.document.text;
        let Some(node) = object.field("sha256") else {
            return hex_digest(&[text]);
        };
        let value = self.document.span(&node);
        let before = text[..value.start].trim_end().trim_end_matches(':');
        let before = before.trim_end();
        let before = before.strip_suffix("\"sha256\"").unwrap_or(before);
        let after = &text[value.end..];
        let digest = match (before.trim_end().strip_suffix(','), after.trim_start()) {
            (Some(before), _) => hex_digest(&[before, after]),
            (None, rest) => hex_digest(&[before, rest.strip_prefix(',').unwrap_or(rest)]),
        };
        let stated: Option<String> = self.document.value(&node, "a string", &mut self.findings);
        if stated.is_some_and(|s| s != digest) {
            let what = "the file was changed after it was written";
            let problem = self
                .document
                .problem(&node, what)
                .allowed(digest.clone())
                .next("generate it again or delete the sha256 field");
            self.findings.push(problem);
        }
        digest
    }
}
