//! Latency models: finding them, keeping a copy of those a result was made with.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use schema::manifest::Model;
use schema::problem::{Problem, Problems};

use crate::folder::digest_file;

/// Ending of a model's file name.
const ENDING: &str = "plbtab";
/// Where models are looked for when none is named.
const SHIPPED: &str = "models";

/// A model and its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ModelFile {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
}

impl ModelFile {
    /// As the balancer's flag takes it.
    pub(crate) fn flag(&self) -> std::ffi::OsString {
        let mut flag = std::ffi::OsString::from(format!("{}=", self.name));
        flag.push(&self.path);
        flag
    }
}

/// The models of `[NAME=]FILE` and `FOLDER` flags; without flags those that are shipped.
///
/// # Errors
/// A file that is not there, a name given twice.
pub(crate) fn find(flags: &[String]) -> anyhow::Result<Vec<ModelFile>> {
    let mut found = Vec::new();
    if flags.is_empty() && Path::new(SHIPPED).is_dir() {
        found = in_folder(Path::new(SHIPPED))?;
    }
    for flag in flags {
        let (name, path) = match flag.split_once('=') {
            Some((name, path)) => (Some(name), Path::new(path)),
            None => (None, Path::new(flag)),
        };
        let bad = |what: &str| Problems::from(Problem::new("--model", flag, what));
        match name {
            None if path.is_dir() => found.append(&mut in_folder(path)?),
            _ if !path.is_file() => return Err(bad("no such file").into()),
            Some(name) => found.push(ModelFile {
                name: name.to_string(),
                path: path.to_path_buf(),
            }),
            None => found.push(named_after(path)),
        }
    }
    for (i, model) in found.iter().enumerate() {
        if found[..i].iter().any(|m| m.name == model.name) {
            return Err(Problems::from(
                Problem::new("--model", &model.name, "two models of this name")
                    .next("write NAME=FILE"),
            )
            .into());
        }
    }
    Ok(found)
}

fn named_after(path: &Path) -> ModelFile {
    let stem = path.file_stem().unwrap_or_default();
    ModelFile {
        name: stem.to_string_lossy().into_owned(),
        path: path.to_path_buf(),
    }
}

pub(crate) fn in_folder(folder: &Path) -> anyhow::Result<Vec<ModelFile>> {
    let entries = fs::read_dir(folder).with_context(|| format!("{}", folder.display()))?;
    let mut found = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == ENDING) {
            found.push(named_after(&path));
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// The folder of the shipped models.
pub(crate) fn shipped() -> PathBuf {
    PathBuf::from(SHIPPED)
}

/// As the manifest lists them.
pub(crate) fn describe(models: &[ModelFile]) -> anyhow::Result<Vec<Model>> {
    models
        .iter()
        .map(|model| {
            let sha256 = digest_file(&model.path)
                .with_context(|| format!("cannot read {}", model.path.display()))?;
            Ok(Model {
                name: model.name.clone(),
                sha256,
            })
        })
        .collect()
}

/// Keeps copies in a folder, each under its name.
pub(crate) fn copy(models: &[ModelFile], folder: &Path) -> anyhow::Result<()> {
    for model in models {
        let to = folder.join(format!("{}.{ENDING}", model.name));
        fs::copy(&model.path, &to).with_context(|| format!("cannot write {}", to.display()))?;
    }
    Ok(())
}
