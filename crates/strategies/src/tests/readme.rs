//! The table in the README is the registry's.

use crate::registry::table;

#[test]
fn the_readme_lists_the_registry() {
    let readme = include_str!("../../README.md");
    let (_, rest) = readme
        .split_once("<!-- strategies: begin -->\n")
        .expect("a begin mark");
    let (committed, _) = rest
        .split_once("<!-- strategies: end -->")
        .expect("an end mark");
    assert!(
        committed == table(),
        "the table in crates/strategies/README.md is out of date; replace it with:\n{}",
        table()
    );
}
