//! Reads the files a user names: whole, within a bound, never the one that is about to be written.
//!
//! What goes wrong with them is the user's to mend, so every error is a [`Problem`] (exit code 2), also
//! that there is no such file. When not to use: for files that a program wrote itself a moment ago, whose
//! absence is a failure of the machine. Files that may be larger than memory are read line by line
//! ([`open_lines`]). The other way round, [`append_lines`] tells how much of a record a file took.

mod append;
mod lines;
pub mod models;
mod open;
pub mod recorded;

pub use append::{append_lines, count_lines};
pub use lines::{BoundedLines, open_lines};
pub use open::{open, open_with};

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use schema::problem::Problem;

/// Largest file that is read whole unless its own format has a smaller bound. A workload of ten million
/// requests or a fault timeline is far below; `/dev/zero` and a pipe without an end are above.
pub const MAX_BYTES: u64 = 256 << 20;

/// All bytes of a file of at most [`MAX_BYTES`].
///
/// # Errors
/// A file that cannot be read, or is larger.
pub fn read(path: &Path) -> Result<Vec<u8>, Box<Problem>> {
    read_up_to(path, MAX_BYTES)
}

/// All bytes of a file of at most `limit` bytes.
///
/// # Errors
/// A file that cannot be read, or is larger.
pub fn read_up_to(path: &Path, limit: u64) -> Result<Vec<u8>, Box<Problem>> {
    let mut bytes = Vec::new();
    // One byte more than allowed tells a file of the limit from a larger one.
    open(path)
        .and_then(|file| file.take(limit.saturating_add(1)).read_to_end(&mut bytes))
        .map_err(|error| problem(path, format!("cannot read it: {error}")))?;
    if bytes.len() as u64 > limit {
        let too_large = problem(path, "is too large".to_string());
        return Err(Box::new(
            too_large
                .allowed(format!("up to {limit} bytes"))
                .next("name another file, or a part of this one"),
        ));
    }
    Ok(bytes)
}

/// The text of a file of at most [`MAX_BYTES`].
///
/// # Errors
/// A file that cannot be read, is larger, or is not UTF-8 (with the line).
pub fn read_text(path: &Path) -> Result<String, Box<Problem>> {
    let bytes = read(path)?;
    String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + before.iter().filter(|b| **b == b'\n').count();
        let what = format!("byte {} is not UTF-8 text", before.len());
        Box::new(problem(path, what).at(line, 1))
    })
}

/// Refuses an output that is the input itself, by this name or another one; `flag` names the output.
///
/// # Errors
/// Both are one file. Devices such as a terminal may be both.
pub fn refuse_same(input: &Path, output: &Path, flag: &str) -> Result<(), Box<Problem>> {
    let (Ok(from), Ok(to)) = (fs::metadata(input), fs::metadata(output)) else {
        return Ok(());
    };
    if !from.is_file() || (from.dev(), from.ino()) != (to.dev(), to.ino()) {
        return Ok(());
    }
    let what = format!("is the file that is read, {}", input.display());
    Err(Box::new(
        Problem::new(flag, output.display().to_string(), what).next("name another one"),
    ))
}

fn problem(path: &Path, what: String) -> Problem {
    Problem::new("", "", what).in_source(path.display().to_string())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::{read, read_text, read_up_to, refuse_same};

    #[test]
    fn a_file_is_read_up_to_its_bound_and_not_beyond() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("f");
        fs::write(&path, [7; 10]).expect("write");
        assert_eq!(read_up_to(&path, 10).expect("fits"), [7; 10]);
        let error = read_up_to(&path, 9).unwrap_err().to_string();
        assert!(
            error.contains("/f: is too large (allowed: up to 9 bytes)"),
            "{error}"
        );
        assert!(read_up_to(Path::new("/dev/zero"), 1 << 20).is_err());
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let error = read(Path::new("/nowhere/f")).unwrap_err().to_string();
        assert!(error.starts_with("/nowhere/f: cannot read it: "), "{error}");
        assert!(read(Path::new("/")).is_err(), "a folder");
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("f");
        fs::write(&path, b"one\ntwo\xff").expect("write");
        let error = read_text(&path).unwrap_err().to_string();
        assert!(
            error.contains("/f:2:1: byte 7 is not UTF-8 text"),
            "{error}"
        );
    }

    #[test]
    fn one_file_is_not_both_input_and_output_under_any_name() {
        let folder = tempfile::tempdir().expect("folder");
        let name = |n: &str| folder.path().join(n);
        fs::write(name("a"), "x").expect("write");
        fs::write(name("b"), "x").expect("write");
        fs::hard_link(name("a"), name("hard")).expect("link");
        std::os::unix::fs::symlink(name("a"), name("soft")).expect("link");
        for same in ["a", "hard", "soft", "./a"] {
            let error = refuse_same(&name("a"), &name(same), "--out").unwrap_err();
            assert!(error.to_string().starts_with("--out: "), "{error}");
        }
        for other in ["b", "not-there"] {
            assert!(refuse_same(&name("a"), &name(other), "--out").is_ok());
        }
        let null = Path::new("/dev/null");
        assert!(refuse_same(null, null, "--out").is_ok());
    }
}
