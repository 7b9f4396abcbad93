//! Whether a rows file is still what the manifest beside it says was recorded.

use std::collections::BTreeMap;
use std::io::{self, BufRead as _, BufReader, Read};
use std::path::Path;

use schema::manifest::{ArmState, Manifest};
use schema::problem::Problem;
use sha2::{Digest as _, Sha256};

/// Checks the digest of every finished arm: that of the header and its lines, in their order. `rows` are
/// the bytes of the file at `path`, of which one line is held at a time ([`super::open_lines`] bounds it).
///
/// # Errors
/// A file that cannot be read, and an arm whose rows are not those that were recorded.
pub fn check(path: &Path, rows: impl Read, manifest: &Manifest) -> Result<(), Box<Problem>> {
    let mut found =
        digests(rows).map_err(|error| super::problem(path, format!("cannot read it: {error}")))?;
    let arms = manifest.arms.iter();
    for arm in arms.filter(|a| a.state == ArmState::Done) {
        let (rows, hash) = found
            .by_run
            .remove(arm.run_id.as_bytes())
            .unwrap_or_else(|| (0, found.header.clone()));
        let digest = format!("{:x}", hash.finalize());
        let same_count = arm.rows.is_none_or(|n| n == rows);
        if same_count && arm.rows_sha256.as_ref().is_none_or(|d| *d == digest) {
            continue;
        }
        let what = match arm.rows {
            Some(recorded) if !same_count => format!("{rows} rows of {recorded}"),
            _ => "rows have changed since they were recorded".to_string(),
        };
        let problem = Problem::new(&arm.run_id, "", what).in_source(path.display().to_string());
        return Err(Box::new(problem.next(
            "bring the recorded file back; changed rows can be judged by themselves, outside the \
             folder: testbed report FILE.csv",
        )));
    }
    Ok(())
}

struct Digests {
    header: Sha256,
    /// Rows of each run and the digest so far.
    by_run: BTreeMap<Vec<u8>, (u64, Sha256)>,
}

fn digests(rows: impl Read) -> io::Result<Digests> {
    let mut rows = BufReader::new(rows);
    let mut line = Vec::new();
    rows.read_until(b'\n', &mut line)?;
    let header = Sha256::new_with_prefix(&line);
    let mut by_run: BTreeMap<Vec<u8>, (u64, Sha256)> = BTreeMap::new();
    line.clear();
    while rows.read_until(b'\n', &mut line)? > 0 {
        let run_id = line.split(|&b| b == b',').next().unwrap_or_default();
        if !by_run.contains_key(run_id) {
            by_run.insert(run_id.to_vec(), (0, header.clone()));
        }
        if let Some((rows, hash)) = by_run.get_mut(run_id) {
            *rows += 1;
            hash.update(&line);
        }
        line.clear();
    }
    Ok(Digests { header, by_run })
}
