//! One bench at a time fills a folder.
//!
//! The lock is the kernel's (`flock`) on a file among the parts: it goes with the process that holds it,
//! however that ends, and the file goes with the parts when the bench is complete. What the file says is
//! for people.

use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use rustix::fs::{FlockOperation, flock};
use schema::problem::Problem;

const LOCK: &str = "parts/bench.lock";
/// Longest text about the holder that is read back, bytes.
const HOLDER_BYTES: u64 = 200;

/// Held while this value lives.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

/// Takes the folder for this process.
///
/// # Errors
/// [`Problem`] that says who holds it; a file that cannot be made.
pub(super) fn take(root: &Path) -> anyhow::Result<Lock> {
    let path = path(root);
    let told = || format!("cannot write {}", path.display());
    let mut options = File::options();
    let options = options.read(true).write(true).create(true).truncate(false);
    let mut file = options.open(&path).with_context(told)?;
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        let what = format!("is being filled by {}", said(&mut file));
        let problem = Problem::new("", "", what).in_source(root.display().to_string());
        return Err(problem
            .next("wait for its end or name another folder")
            .into());
    }
    let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ");
    let holder = format!("process {} since {now}\n", std::process::id());
    file.set_len(0)
        .and_then(|()| file.rewind())
        .and_then(|()| file.write_all(holder.as_bytes()))
        .with_context(told)?;
    Ok(Lock { _file: file })
}

/// Who fills the folder now; `None` when nobody does.
pub(super) fn holder(root: &Path) -> Option<String> {
    let mut file = File::open(path(root)).ok()?;
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => None,
        Err(_) => Some(said(&mut file)),
    }
}

fn path(root: &Path) -> PathBuf {
    root.join(LOCK)
}

fn said(file: &mut File) -> String {
    let mut text = String::new();
    let read = file.take(HOLDER_BYTES).read_to_string(&mut text);
    match (read, text.trim()) {
        (Ok(_), holder) if !holder.is_empty() => holder.to_string(),
        _ => "another process".to_string(),
    }
}
