//! Latency models: finding them, keeping a copy of those a result was made with.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use input::models::{ENDING, ModelFlag};
use schema::manifest::Model;
use schema::problem::{Problem, Problems};

use crate::folder::digest_file;

pub(crate) use input::models::ModelFile;

/// Where models are looked for when none is named.
const SHIPPED: &str = "models";

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
        let bad = |what: String| Problems::from(Problem::new("--model", flag, what));
        let named: ModelFlag = flag.parse().map_err(bad)?;
        let files = named.files().map_err(|e| bad(e.to_string()))?;
        if files.iter().any(|model| !model.path.is_file()) {
            return Err(bad("no such file".into()).into());
        }
        found.extend(files);
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

pub(crate) fn in_folder(folder: &Path) -> anyhow::Result<Vec<ModelFile>> {
    input::models::in_folder(folder).with_context(|| format!("{}", folder.display()))
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
