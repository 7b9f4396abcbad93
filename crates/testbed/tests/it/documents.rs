//! The documents say what is there: their commands parse, their flags exist, their paths lead somewhere.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::ground::programs;

/// What a bench or a build makes; the tree does not hold it.
const MADE: [&str; 11] = [
    "results",
    "RESULTS",
    "target",
    "dist",
    "events",
    "parts",
    "schedules",
    "logs",
    "agreement",
    "report.html",
    "model-card.md",
];
const SOURCE: [&str; 8] = ["rs", "py", "md", "html", "css", "j2", "svg", "yaml"];
/// Names that stand for a file of the reader's own.
const YOURS: [&str; 1] = ["your_rule.rs"];

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .expect("the checkout")
}

/// Every Markdown file of the checkout with its text.
fn documents() -> Vec<(PathBuf, String)> {
    let found = files_below(&root(), &|path| path.extension().is_some_and(|e| e == "md"));
    assert!(found.len() >= 10, "{found:?}");
    let text = |path: &PathBuf| std::fs::read_to_string(path).expect("a text");
    found
        .into_iter()
        .map(|path| (path.clone(), text(&path)))
        .collect()
}

fn files_below(folder: &Path, wanted: &dyn Fn(&Path) -> bool) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let skipped = name.starts_with('.') || MADE.contains(&&*name);
        if path.is_dir() && !skipped {
            found.extend(files_below(&path, wanted));
        } else if path.is_file() && wanted(&path) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Lines of code blocks, fenced without a language or indented, as one would type them; blocks in a
/// language, `text` among them, hold something else.
fn block_lines(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let (mut fence, mut open) = (None, String::new());
    for line in text.lines() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            fence = fence.is_none().then_some(language);
            continue;
        }
        let is_code = fence.map_or(line.starts_with("    "), str::is_empty);
        if !is_code {
            continue;
        }
        let line = line.trim().trim_start_matches("$ ");
        if let Some(part) = line.strip_suffix('\\') {
            open.push_str(part);
            continue;
        }
        lines.push(std::mem::take(&mut open) + line);
    }
    // What follows a wide gap or a number sign explains the command.
    let command = |line: String| {
        let line = line.split(" # ").next().unwrap_or_default();
        line.split("   ")
            .next()
            .unwrap_or_default()
            .trim()
            .to_string()
    };
    lines.into_iter().map(command).collect()
}

/// Code within sentences.
fn spans(text: &str) -> Vec<String> {
    let mut fenced = false;
    let mut prose = String::new();
    for line in text.lines() {
        fenced ^= line.trim_start().starts_with("```");
        if !fenced && !line.starts_with("    ") && !line.trim_start().starts_with("```") {
            prose.push_str(line);
            prose.push(' ');
        }
    }
    prose
        .split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_string)
        .collect()
}

/// Words as a shell would split them, without what stands for a choice or may be left out.
fn words(command: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), String::new(), false);
    for c in command.chars().chain([' ']) {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.extend((!word.is_empty()).then(|| std::mem::take(&mut word))),
            _ => word.push(c),
        }
    }
    let until = words
        .iter()
        .position(|w| ["|", ">", "&&"].contains(&w.as_str()));
    words.truncate(until.unwrap_or(words.len()));
    words.retain(|w| !w.starts_with('['));
    words
}

/// The program's name if a command is one of ours.
fn ours(words: &[String]) -> Option<&str> {
    const PROGRAMS: [&str; 6] = [
        "worker",
        "balancer",
        "simulator",
        "request-generator",
        "twin",
        "testbed",
    ];
    PROGRAMS
        .into_iter()
        .find(|p| words.first().is_some_and(|w| w == p))
}

fn run(program: &str, arguments: &[String]) -> (bool, String) {
    let output = Command::new(programs().join(program))
        .args(arguments)
        .arg("--help")
        .current_dir(root())
        .output()
        .expect("it runs");
    let text = [output.stdout, output.stderr].concat();
    (
        output.status.success(),
        String::from_utf8_lossy(&text).into_owned(),
    )
}

#[test]
fn commands_of_code_blocks_parse() {
    let mut checked = 0;
    for (path, text) in documents() {
        for line in block_lines(&text) {
            let words = words(&line);
            let Some(program) = ours(&words) else {
                continue;
            };
            // The help is printed only when everything before it was understood.
            let (fine, said) = run(program, &words[1..]);
            assert!(fine, "{}: {line}\n{said}", path.display());
            checked += 1;
        }
    }
    assert!(checked >= 30, "only {checked} commands found");
}

#[test]
fn flags_named_in_sentences_exist() {
    let mut checked = 0;
    for (path, text) in documents() {
        for span in spans(&text) {
            let words = words(&span);
            let Some(program) = ours(&words).filter(|_| words.len() > 1) else {
                continue;
            };
            let named: Vec<_> = words[1..2]
                .iter()
                .filter(|w| !w.starts_with('-'))
                .cloned()
                .collect();
            let (fine, help) = run(program, &named);
            assert!(fine, "{}: `{span}`\n{help}", path.display());
            for flag in words.iter().filter(|w| w.starts_with("--")) {
                let flag = flag.split('=').next().unwrap_or_default();
                assert!(
                    help.contains(flag),
                    "{}: `{span}`: no {flag}\n{help}",
                    path.display()
                );
            }
            checked += 1;
        }
    }
    assert!(checked >= 10, "only {checked} commands found");
}

#[test]
fn targets_of_make_exist_and_their_arguments_parse() {
    let makefile = std::fs::read_to_string(root().join("Makefile")).expect("the Makefile");
    for (path, text) in documents() {
        for line in block_lines(&text).into_iter().chain(spans(&text)) {
            let words = words(&line);
            if words.first().is_none_or(|w| w != "make") {
                continue;
            }
            for word in &words[1..] {
                if let Some(arguments) = word.strip_prefix("ARGS=") {
                    let mut all = vec![words[1].clone()];
                    all.extend(self::words(arguments));
                    let (fine, said) = run("testbed", &all);
                    assert!(fine, "{}: {line}\n{said}", path.display());
                } else {
                    let is_there = makefile.lines().any(|l| l.starts_with(&format!("{word}:")));
                    assert!(is_there, "{}: make has no target {word}", path.display());
                }
            }
        }
    }
}

#[test]
fn packages_named_for_cargo_exist() {
    for (path, text) in documents() {
        for line in block_lines(&text).into_iter().chain(spans(&text)) {
            let words = words(&line);
            if words.first().is_none_or(|w| w != "cargo") {
                continue;
            }
            for pair in words.windows(2).filter(|pair| pair[0] == "-p") {
                let folder = pair[1].strip_prefix("plumbline-").unwrap_or(&pair[1]);
                let is_there = root()
                    .join("crates")
                    .join(folder)
                    .join("Cargo.toml")
                    .is_file();
                assert!(is_there, "{}: no package {}", path.display(), pair[1]);
            }
        }
    }
}

#[test]
fn paths_and_links_lead_somewhere() {
    let (mut checked, mut missing) = (0, Vec::new());
    for (path, text) in documents() {
        let folder = path.parent().expect("a folder");
        let all = files_below(folder, &|_| true);
        for span in spans(&text)
            .iter()
            .flat_map(|s| alternatives(s))
            .filter(|s| is_path(s))
        {
            let span = span.split('<').next().unwrap_or_default();
            let last = span.trim_end_matches('/');
            let bases = [
                folder.to_path_buf(),
                folder.join("src"),
                root(),
                root().join("analysis/plumbline_analysis"),
            ];
            let there = bases.iter().any(|b| b.join(last).exists())
                || (!last.contains('/') && all.iter().any(|f| f.ends_with(last)));
            if !there {
                missing.push(format!("{}: `{span}`", path.display()));
            }
            checked += 1;
        }
        for link in text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next())
        {
            let target = link.split('#').next().unwrap_or_default();
            if target.is_empty() || target.contains("://") {
                continue;
            }
            if !folder.join(target).exists() {
                missing.push(format!("{}: link to {link}", path.display()));
            }
            checked += 1;
        }
    }
    assert!(missing.is_empty(), "not there:\n{}", missing.join("\n"));
    assert!(checked >= 100, "only {checked} paths found");
}

/// `a/{b,c}.rs` as `a/b.rs` and `a/c.rs`.
fn alternatives(text: &str) -> Vec<String> {
    let parts = text
        .split_once('{')
        .and_then(|(head, rest)| Some((head, rest.split_once('}')?)));
    match parts {
        Some((head, (names, tail))) => names
            .split(',')
            .map(|name| format!("{head}{name}{tail}"))
            .collect(),
        None => vec![text.to_string()],
    }
}

/// A file or folder of the checkout, by its look.
fn is_path(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/<>".contains(c);
    let first = text.split('/').next().unwrap_or_default();
    let is_source = Path::new(text)
        .extension()
        .is_some_and(|e| SOURCE.iter().any(|s| e == *s));
    let yours = YOURS.iter().any(|name| text.ends_with(name));
    text.chars().all(plain)
        && !yours
        && !first.is_empty()
        && !MADE.contains(&first)
        && !text.contains(".venv")
        // `plumbline.workload/1` names a format.
        && !text.ends_with("/1")
        && (text.contains('/') || is_source)
}
