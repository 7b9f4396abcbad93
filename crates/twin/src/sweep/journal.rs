//! What is done of a sweep, kept through any end of the program.
//!
//! The file `OUT.partial`: a first line with the digest of all inputs, then one line per finished run,
//! its number before a tab, each written whole as soon as it is known. One sweep at a time holds it. A last line without its end
//! was cut and does not count. When all are there they become OUT, in order, and the journal is removed.

use anyhow::Context as _;
use rustix::fs::{FlockOperation, flock};
use schema::problem::{Problem, Problems};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

const MARK: &str = "plumbline.sweep-partial/1";
/// Longest journal that is read: all runs of the longest sweep with lines of two kilobytes.
const MAX_BYTES: u64 = 400 << 20;

/// See the module.
pub(super) struct Journal<'a> {
    out: &'a Path,
    path: PathBuf,
    file: File,
    runs: u64,
    lines: BTreeMap<u64, String>,
}

impl<'a> Journal<'a> {
    /// Every file that is written for a result: itself, the journal, the result while it is merged.
    pub(super) fn files(out: &Path) -> [PathBuf; 3] {
        let beside = |ending: &str| {
            let mut path = out.as_os_str().to_owned();
            path.push(ending);
            PathBuf::from(path)
        };
        [out.to_path_buf(), beside(".partial"), beside(".whole")]
    }

    /// Opens the journal of the result `out`, or begins one.
    ///
    /// # Errors
    /// One of other inputs, with what to do; one that cannot be read.
    pub(super) fn open(out: &'a Path, digest: &str, runs: u64) -> anyhow::Result<Self> {
        let [_, path, _] = Self::files(out);
        let named = || format!("cannot write {}", path.display());
        let mut file = locked(&path, out)?;
        let damaged = |line: usize| {
            let problem = Problem::new("", "", "not a line of a sweep's journal");
            let problem = problem.in_source(path.display().to_string()).at(line, 1);
            Problems::from(problem.next("remove the file to start anew"))
        };
        let mut bytes = Vec::new();
        (&file)
            .take(MAX_BYTES + 1)
            .read_to_end(&mut bytes)
            .with_context(|| format!("cannot read {}", path.display()))?;
        // A cut line, of whatever kind, is as if it had never been written.
        let whole = bytes.iter().rposition(|byte| *byte == b'\n');
        bytes.truncate(whole.map_or(0, |at| at + 1));
        let text = String::from_utf8(bytes).map_err(|_| damaged(1))?;
        if text.len() as u64 > MAX_BYTES || !text.is_empty() && !text.starts_with(MARK) {
            return Err(damaged(1).into());
        }
        file.set_len(text.len() as u64).with_context(named)?;
        let head = format!("{MARK} {digest} {runs}");
        let mut lines = text.lines();
        match lines.next() {
            None => writeln!(file, "{head}").with_context(named)?,
            Some(first) if first == head => {}
            Some(_) => {
                let what =
                    "belongs to a sweep of another file, of other inputs or of another version";
                let next = format!(
                    "restore the file to go on, or remove {} to start anew",
                    path.display()
                );
                let problem = Problem::new("", "", what).in_source(path.display().to_string());
                return Err(Problems::from(problem.next(next)).into());
            }
        }
        let mut done = BTreeMap::new();
        for (at, line) in lines.enumerate() {
            let entry = line.split_once('\t');
            let entry = entry.and_then(|(index, row)| Some((index.parse().ok()?, row)));
            let Some((index, row)) = entry.filter(|(index, _)| *index < runs) else {
                return Err(damaged(at + 2).into());
            };
            done.insert(index, row.to_string());
        }
        Ok(Self {
            out,
            path,
            file,
            runs,
            lines: done,
        })
    }

    /// Runs done.
    pub(super) fn done(&self) -> u64 {
        self.lines.len() as u64
    }

    /// Numbers of the runs that are not, in order.
    pub(super) fn missing(&self) -> impl Iterator<Item = u64> {
        (0..self.runs).filter(|index| !self.lines.contains_key(index))
    }

    /// Keeps the row of a finished run.
    pub(super) fn add(&mut self, index: u64, row: String) -> anyhow::Result<()> {
        let line = format!("{index}\t{row}\n");
        self.file
            .write_all(line.as_bytes())
            .with_context(|| format!("cannot write {}", self.path.display()))?;
        self.lines.insert(index, row);
        Ok(())
    }

    /// Writes the whole result in order, and removes the journal. What an interrupted merge left is the
    /// beginning of the same bytes; any other file in its place is somebody else's.
    pub(super) fn publish(self, header: &str) -> anyhow::Result<()> {
        let [_, _, whole] = Self::files(self.out);
        let rows = self.lines.values().map(String::as_str);
        let mut text = String::new();
        for line in std::iter::once(header).chain(rows) {
            text.push_str(line);
            text.push('\n');
        }
        if !is_beginning(&whole, &text) {
            let what = "is in the way and not of this sweep";
            let problem = Problem::new("", "", what).in_source(whole.display().to_string());
            return Err(Problems::from(problem.next("move it, then go on")).into());
        }
        let written = || -> std::io::Result<()> {
            let mut file = File::create(&whole)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&whole, self.out)?;
            fs::remove_file(&self.path)
        };
        written().with_context(|| format!("cannot write {}", self.out.display()))
    }
}

/// Opens the journal for this process alone. The lock is the kernel's and goes with the process.
fn locked(path: &Path, out: &Path) -> anyhow::Result<File> {
    let named = || format!("cannot write {}", path.display());
    loop {
        let mut open = OpenOptions::new();
        let open = open.read(true).append(true).create(true);
        let file = open.open(path).with_context(named)?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            let what = "is being made by another sweep";
            let problem = Problem::new("--out", out.display().to_string(), what);
            let problem = problem.next("wait for its end, or name another file");
            return Err(Problems::from(problem).into());
        }
        // The other one may have finished and removed the file between the two calls.
        let ours = file.metadata().with_context(named)?;
        let is_there =
            fs::metadata(path).is_ok_and(|m| (m.dev(), m.ino()) == (ours.dev(), ours.ino()));
        if is_there {
            return Ok(file);
        }
    }
}

/// Whether what is in a file, if there is one, begins a text.
fn is_beginning(path: &Path, text: &str) -> bool {
    match File::open(path) {
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
        Ok(file) => {
            let mut bytes = Vec::new();
            let read = file.take(text.len() as u64 + 1).read_to_end(&mut bytes);
            read.is_ok() && text.as_bytes().starts_with(&bytes)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Journal;
    use std::fs;

    #[test]
    fn what_was_written_whole_is_kept_and_becomes_the_result_in_order() {
        let folder = tempfile::tempdir().expect("a folder");
        let out = folder.path().join("out.csv");
        let partial = folder.path().join("out.csv.partial");
        let open = || Journal::open(&out, "d1", 3);
        let mut journal = open().expect("new");
        journal.add(2, "c".into()).expect("written");
        journal.add(0, "a".into()).expect("written");
        drop(journal);
        // A program that is killed may leave any part of a line.
        for cut in ["1", "1\t", "1\tb"] {
            let kept = fs::read_to_string(&partial).expect("there");
            fs::write(&partial, kept + cut).expect("written");
            let journal = open().expect("goes on");
            assert_eq!(journal.missing().collect::<Vec<_>>(), [1]);
        }
        let mut journal = open().expect("goes on");
        journal.add(1, "b".into()).expect("written");
        journal.publish("head").expect("written");
        assert_eq!(fs::read_to_string(&out).expect("there"), "head\na\nb\nc\n");
        assert_eq!(fs::read_dir(folder.path()).expect("there").count(), 1);
    }

    #[test]
    fn one_sweep_at_a_time_makes_a_result() {
        let folder = tempfile::tempdir().expect("a folder");
        let out = folder.path().join("out.csv");
        let first = Journal::open(&out, "d1", 1).expect("new");
        let said = Journal::open(&out, "d1", 1)
            .err()
            .expect("locked")
            .to_string();
        assert!(said.contains("is being made by another sweep"), "{said}");
        drop(first);
        let mut second = Journal::open(&out, "d1", 1).expect("free");
        second.add(0, "a".into()).expect("written");
        second.publish("head").expect("written");
        assert!(Journal::open(&out, "d1", 1).is_ok());
    }

    #[test]
    fn what_a_merge_left_is_taken_over_and_a_file_of_others_is_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let out = folder.path().join("out.csv");
        let whole = folder.path().join("out.csv.whole");
        let ready = || {
            let mut journal = Journal::open(&out, "d1", 1).expect("goes on");
            journal.add(0, "a".into()).expect("written");
            journal
        };
        for theirs in ["mine", "heads", "head\na\nb\n"] {
            fs::write(&whole, theirs).expect("written");
            let said = ready().publish("head").expect_err("refused").to_string();
            assert!(said.contains("out.csv.whole: is in the way"), "{said}");
            assert_eq!(fs::read_to_string(&whole).expect("kept"), theirs);
            assert!(!out.exists() && folder.path().join("out.csv.partial").exists());
        }
        for left in ["", "hea", "head\na\n"] {
            fs::write(&whole, left).expect("written");
            ready().publish("head").expect("written");
            assert_eq!(fs::read_to_string(&out).expect("there"), "head\na\n");
            assert!(!whole.exists());
        }
    }

    #[test]
    fn a_journal_of_something_else_is_refused_and_left_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let out = folder.path().join("out.csv");
        let partial = folder.path().join("out.csv.partial");
        drop(Journal::open(&out, "d1", 3).expect("new"));
        let refused = |digest: &str, runs: u64| {
            let error = Journal::open(&out, digest, runs).err().expect("refused");
            error.to_string()
        };
        assert!(refused("d2", 3).contains("belongs to a sweep of another file"));
        assert!(refused("d1", 4).contains("to start anew"));
        let before = fs::read_to_string(&partial).expect("there");
        for bad in ["3\tx\n", "x\n", "-1\tx\n"] {
            fs::write(&partial, before.clone() + bad).expect("written");
            let said = refused("d1", 3);
            assert!(said.contains("partial:2:1: not a line"), "{said}");
        }
    }
}
