//! The result folder: what is written, when, and so that a kill at any moment leaves it readable.
//!
//! `manifest.json`, `summary.json` and `rows.csv` are replaced by rename, never written in place.
//! While a bench runs, `parts/` holds one rows file per arm and a marker written last; an arm with
//! a marker whose digest fits is finished, everything else runs again after an interruption.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use schema::manifest::{Arm, ArmState, Manifest};
use schema::row::{self, Row};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::plan::order::stem;

/// A result folder.
#[derive(Debug, Clone)]
pub(crate) struct Folder {
    root: PathBuf,
}

/// Written when an arm is finished, after its rows are safe.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct DoneMarker {
    pub(crate) rows: u64,
    pub(crate) sha256: String,
}

impl Folder {
    /// Makes the folder with what a running bench needs; it must not hold a bench yet.
    pub(crate) fn create(root: &Path) -> anyhow::Result<Self> {
        if root.join("manifest.json").exists() {
            bail!(
                "{}: holds a result already; name another folder or resume it with --resume",
                root.display()
            );
        }
        let folder = Self {
            root: root.to_path_buf(),
        };
        folder.make_working_folders()?;
        Ok(folder)
    }

    /// Opens a folder that holds a result.
    pub(crate) fn open(root: &Path) -> anyhow::Result<(Self, Manifest)> {
        let folder = Self {
            root: root.to_path_buf(),
        };
        let manifest = folder.read_manifest()?;
        Ok((folder, manifest))
    }

    /// Makes `parts`, `events`, `logs`, `schedules`, `models` where they are missing.
    pub(crate) fn make_working_folders(&self) -> anyhow::Result<()> {
        for name in ["parts", "events", "logs", "schedules", "models"] {
            let path = self.root.join(name);
            fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        }
        Ok(())
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
        let marker: DoneMarker = serde_json::from_slice(&fs::read(self.marker(arm)).ok()?).ok()?;
        let same = digest_file(&self.part(arm)).ok()? == marker.sha256;
        same.then_some(marker)
    }

    /// Moves what an unfinished arm left behind out of the way.
    pub(crate) fn set_aside(&self, arm: &Arm) -> anyhow::Result<()> {
        let _ = fs::remove_file(self.marker(arm));
        let mut left = vec![self.part(arm)];
        left.extend(arm.events.as_ref().map(|e| self.path(e)));
        for path in left.into_iter().filter(|p| p.exists()) {
            let mut aside = path.clone().into_os_string();
            aside.push(".partial");
            fs::rename(&path, &aside)
                .with_context(|| format!("cannot set {} aside", path.display()))?;
        }
        Ok(())
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
        let text = fs::read_to_string(&path).with_context(|| {
            format!(
                "cannot read {}; name a result folder of `testbed bench`",
                path.display()
            )
        })?;
        let manifest: Manifest = serde_json::from_str(&text)
            .with_context(|| format!("{}: not a manifest", path.display()))?;
        if manifest.schema != schema::manifest::SCHEMA {
            bail!(
                "{}: schema: {}: unknown version (allowed: {})",
                path.display(),
                manifest.schema,
                schema::manifest::SCHEMA
            );
        }
        Ok(manifest)
    }

    /// Rows of the finished arms.
    pub(crate) fn read_rows(&self, manifest: &Manifest) -> anyhow::Result<Vec<Row>> {
        let path = self.path("rows.csv");
        let done = |row: &Row| {
            manifest
                .arms
                .iter()
                .any(|a| a.run_id == row.run_id && a.state == ArmState::Done)
        };
        Ok(read_rows(&path)?.into_iter().filter(done).collect())
    }

    /// Bytes free on the folder's file system.
    pub(crate) fn free_bytes(&self) -> anyhow::Result<u64> {
        let stat = rustix::fs::statvfs(&self.root)
            .with_context(|| format!("cannot look at the disk of {}", self.root.display()))?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }
}

/// Reads rows; one unterminated last line is dropped, any other damage is an error with its line.
pub(crate) fn read_rows(path: &Path) -> anyhow::Result<Vec<Row>> {
    let mut text = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let whole = text
        .iter()
        .rposition(|&b| b == b'\n')
        .map_or(0, |at| at + 1);
    text.truncate(whole);
    csv::Reader::from_reader(text.as_slice())
        .deserialize()
        .collect::<Result<Vec<Row>, csv::Error>>()
        .with_context(|| format!("{}: not a rows file", path.display()))
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
    Ok(hash.finalize().iter().map(|b| format!("{b:02x}")).collect())
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
    let entries = fs::read_dir(results).with_context(|| {
        format!(
            "no results in {}; run `testbed bench` first or name a folder",
            results.display()
        )
    })?;
    entries
        .filter_map(|e| Some(e.ok()?.path()))
        .filter(|p| p.join("manifest.json").is_file())
        .max()
        .with_context(|| {
            format!(
                "no results in {}; run `testbed bench` first or name a folder",
                results.display()
            )
        })
}

#[cfg(test)]
mod tests;
