//! The README's commands run, and its flags are those of the help.

use crate::{stderr, stdout, twin};
use std::path::Path;

fn readme() -> &'static str {
    include_str!("../../README.md")
}

#[test]
fn every_command_of_the_readme_runs() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = tempfile::tempdir().expect("a folder");
    let commands: Vec<&str> = readme()
        .lines()
        .filter_map(|l| l.trim().strip_prefix("$ twin "))
        .collect();
    assert!(commands.len() >= 5, "the README shows commands");
    for command in commands {
        let replaced = command
            .replace("workloads/", &format!("{}/workloads/", root.display()))
            .replace("OUT/", &format!("{}/", folder.path().display()));
        let mut arguments: Vec<&str> = replaced
            .split_whitespace()
            .map(|w| w.trim_matches('\''))
            .collect();
        // Shorter than printed: what they show is checked elsewhere.
        let requests = arguments.iter().position(|a| *a == "--requests");
        if let Some(at) = requests {
            arguments[at + 1] = "20000";
        }
        let output = twin(&arguments);
        assert!(
            output.status.success(),
            "twin {command}: {}",
            stderr(&output)
        );
    }
}

#[test]
fn the_readme_names_every_flag() {
    let help = stdout(&twin(&["run", "--help"]));
    let flags = help
        .lines()
        .filter_map(|l| l.trim_start().strip_prefix("--"))
        .map(|l| l.split([' ', '=']).next().unwrap_or_default())
        .filter(|f| !f.is_empty());
    for flag in flags {
        assert!(
            readme().contains(&format!("`--{flag}")),
            "--{flag} is not in the README"
        );
    }
}
