//! The result folder: what is written, when, and so that a kill at any moment leaves it readable.
//!
//! `manifest.json`, `summary.json` and `rows.csv` are replaced by rename, never written in place.
//! While a bench runs, `parts/` holds one rows file per arm and a marker written last; an arm with
//! a marker whose digest fits is finished, everything else runs again after an interruption.

mod lock;
mod rows;

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use schema::json::Fields;
use schema::manifest::{Arm, ArmState, Manifest};
use schema::problem::{Problem, Problems};
use schema::row::{self, Row};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use self::lock::Lock;
pub(crate) use self::rows::read_rows;
use crate::plan::order::stem;

/// The event log from the balancer's start to the first arm.
pub(crate) const START_LOG: &str = "events/start.jsonl";

/// A result folder.
#[derive(Debug, Clone)]
pub(crate) struct Folder {
    root: PathBuf,
    /// Held by who fills the folder, until the last copy of this value is gone.
    lock: Option<Arc<Lock>>,
}

/// Written when an arm is finished, after its rows are safe.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct DoneMarker {
    pub(crate) rows: u64,
    pub(crate) sha256: String,
}

impl Folder {
    /// Makes the folder with what a running bench needs and takes it; it must not hold a bench yet.
    pub(crate) fn create(root: &Path) -> anyhow::Result<Self> {
        let vacant = || -> Result<(), Problems> {
            if !root.join("manifest.json").exists() {
                return Ok(());
            }
            let problem = Problem::new("", "", "holds a result already");
            Err(problem
                .in_source(root.display().to_string())
                .next("name another folder or resume it with --resume")
                .into())
        };
        vacant()?;
        let mut folder = Self {
            root: root.to_path_buf(),
            lock: None,
        };
        folder.make_working_folders()?;
        folder.lock = Some(Arc::new(lock::take(root)?));
        // Another bench may have come and gone between the two.
        vacant()?;
        Ok(folder)
    }

    /// Opens a folder that holds a result, to read it.
    pub(crate) fn open(root: &Path) -> anyhow::Result<(Self, Manifest)> {
        let folder = Self {
            root: root.to_path_buf(),
            lock: None,
        };
        let manifest = folder.read_manifest()?;
        Ok((folder, manifest))
    }

    /// Opens a folder that holds an unfinished result, to go on filling it.
    pub(crate) fn resume(root: &Path) -> anyhow::Result<(Self, Manifest)> {
        let (mut folder, manifest) = Self::open(root)?;
        if manifest.complete {
            let problem = Problem::new("", "", "complete already");
            return Err(problem
                .in_source(root.display().to_string())
                .next("`testbed report` makes its report again")
                .into());
        }
        folder.make_working_folders()?;
        folder.lock = Some(Arc::new(lock::take(root)?));
        let manifest = folder.read_manifest()?;
        Ok((folder, manifest))
    }

    /// Who fills the folder at this moment, if anybody does.
    pub(crate) fn holder(&self) -> Option<String> {
        lock::holder(&self.root)
    }

    /// Makes `parts`, `events`, `logs`, `schedules`, `models` where they are missing.
    pub(crate) fn make_working_folders(&self) -> anyhow::Result<()> {
        for name in ["parts", "events", "logs", "schedules", "models"] {
            let path = self.root.join(name);
            fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        }
        // A balancer overwrites no log, so the one it begins with makes way.
        move_aside(&self.path(START_LOG))
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Rows of one arm while the bench runs.
    pub(crate) fn part(&self, arm: &Arm) -> PathBuf {
        self.root.join("parts").join(format!("{}.csv", stem(arm)))
    }

    fn marker(&self, arm: &Arm) -> PathBuf {
        self.root.join("parts").join(format!("{}.done", stem(arm)))
    }

    /// Says that the arm is finished: rows and their digest, written after the rows are synced.
    pub(crate) fn mark_done(&self, arm: &Arm) -> anyhow::Result<DoneMarker> {
        let part = self.part(arm);
        File::open(&part)
            .and_then(|f| f.sync_all())
            .with_context(|| format!("cannot sync {}", part.display()))?;
        let marker = DoneMarker {
            rows: count_rows(&part)?,
            sha256: digest_file(&part)?,
        };
        write_atomically(&self.marker(arm), &serde_json::to_vec(&marker)?)?;
        Ok(marker)
    }

    /// The marker of a finished arm whose rows are still what it says.
    pub(crate) fn finished(&self, arm: &Arm) -> Option<DoneMarker> {
        let Fields(marker): Fields<DoneMarker> =
            serde_json::from_slice(&fs::read(self.marker(arm)).ok()?).ok()?;
        let same = digest_file(&self.part(arm)).ok()? == marker.sha256;
        same.then_some(marker)
    }

    /// Moves what an unfinished arm left behind out of the way.
    pub(crate) fn set_aside(&self, arm: &Arm) -> anyhow::Result<()> {
        let _ = fs::remove_file(self.marker(arm));
        let mut left = vec![self.part(arm)];
        left.extend(arm.events.as_ref().map(|e| self.path(e)));
        left.iter().try_for_each(|path| move_aside(path))
    }

    /// Puts `rows.csv` together from the finished arms, in running order.
    pub(crate) fn assemble_rows(&self, manifest: &Manifest) -> anyhow::Result<()> {
        let target = self.path("rows.csv");
        let parts: Vec<PathBuf> = manifest
            .arms
            .iter()
            .filter(|a| a.state == ArmState::Done)
            .map(|a| self.part(a))
            .collect();
        replace_file(&target, |out| {
            let mut out = io::BufWriter::new(out);
            row::write_header(&mut out)?;
            for part in &parts {
                append_rows(part, &mut out)?;
            }
            out.flush()
        })
        .with_context(|| format!("cannot write {}", target.display()))
    }

    /// Removes the arm files of a finished bench; `rows.csv` holds them all.
    pub(crate) fn drop_parts(&self) -> anyhow::Result<()> {
        let parts = self.path("parts");
        fs::remove_dir_all(&parts).with_context(|| format!("cannot remove {}", parts.display()))
    }

    pub(crate) fn write_manifest(&self, manifest: &Manifest) -> anyhow::Result<()> {
        self.write_json("manifest.json", manifest)
    }

    /// Replaces a JSON file.
    pub(crate) fn write_json(&self, name: &str, value: &impl Serialize) -> anyhow::Result<()> {
        let mut text = serde_json::to_vec_pretty(value)?;
        text.push(b'\n');
        write_atomically(&self.path(name), &text)
    }

    fn read_manifest(&self) -> anyhow::Result<Manifest> {
        let path = self.path("manifest.json");
        let text = input::read_text(&path)
            .map_err(|problem| problem.next("name a result folder of `testbed bench`"))?;
        let source = path.display().to_string();
        let manifest: Manifest = serde_json::from_str(&text).map_err(|error| {
            Problem::new("", "", format!("not a manifest: {error}")).in_source(&source)
        })?;
        if manifest.schema != schema::manifest::SCHEMA {
            return Err(Problem::new("schema", &manifest.schema, "unknown version")
                .in_source(source)
                .allowed(schema::manifest::SCHEMA)
                .into());
        }
        Ok(manifest)
    }

    /// Rows of the finished arms.
    ///
    /// # Errors
    /// Damage, and rows that are not those that were recorded.
    pub(crate) fn read_rows(&self, manifest: &Manifest) -> anyhow::Result<Vec<Row>> {
        rows::read_recorded(&self.path("rows.csv"), manifest)
    }

    /// Removes a report of what the folder held before.
    pub(crate) fn drop_report(&self) -> anyhow::Result<()> {
        let path = self.path("report.html");
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot remove {}", path.display()))
            }
            _ => Ok(()),
        }
    }

    /// Bytes free on the folder's file system.
    pub(crate) fn free_bytes(&self) -> anyhow::Result<u64> {
        let stat = rustix::fs::statvfs(&self.root)
            .with_context(|| format!("cannot look at the disk of {}", self.root.display()))?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }
}

fn count_rows(path: &Path) -> anyhow::Result<u64> {
    let lines = BufReader::new(File::open(path)?).split(b'\n').count() as u64;
    Ok(lines.saturating_sub(1))
}

fn append_rows(part: &Path, out: &mut dyn io::Write) -> io::Result<()> {
    let mut rows = BufReader::new(File::open(part)?);
    rows.skip_until(b'\n')?;
    io::copy(&mut rows, out)?;
    Ok(())
}

/// SHA-256 of a file in lower-case hexadecimal.
pub(crate) fn digest_file(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hash = Sha256::new();
    let mut chunk = vec![0; 1 << 16];
    loop {
        match file.read(&mut chunk)? {
            0 => break,
            n => hash.update(&chunk[..n]),
        }
    }
    Ok(hexadecimal(&hash.finalize()))
}

/// Lower-case digits, two for each byte.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Replaces `path` by a file with these bytes.
pub(crate) fn write_atomically(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    replace_file(path, |out| out.write_all(bytes))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Temporary file in the same folder, sync, rename, sync of the folder.
fn replace_file(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let mut temporary = path.as_os_str().to_os_string();
    temporary.push(".tmp");
    let written = File::create(&temporary).and_then(|mut file| {
        write(&mut file)?;
        file.sync_all()
    });
    if let Err(error) = written.and_then(|()| fs::rename(&temporary, path)) {
        let _ = fs::remove_file(&temporary);
        return Err(error);
    }
    match path.parent().filter(|p| !p.as_os_str().is_empty()) {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

/// The newest result folder below `results`, by the UTC stamp its name starts with.
pub(crate) fn newest(results: &Path) -> anyhow::Result<PathBuf> {
    let none = || {
        Problem::new("", "", "no results")
            .in_source(results.display().to_string())
            .next("run `testbed bench` first or name a folder")
    };
    let entries = fs::read_dir(results).map_err(|_| none())?;
    let newest = entries
        .filter_map(|e| Some(e.ok()?.path()))
        .filter(|p| p.join("manifest.json").is_file())
        .max();
    Ok(newest.ok_or_else(none)?)
}

/// Renames what is at `path`, if anything, over what was there before it.
fn move_aside(path: &Path) -> anyhow::Result<()> {
    let mut aside = path.as_os_str().to_os_string();
    aside.push(".partial");
    match fs::rename(path, &aside) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => {
            Err(e).with_context(|| format!("cannot set {} aside", path.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
