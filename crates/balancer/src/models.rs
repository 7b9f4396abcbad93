//! Loading latency models: `[NAME=]FILE`, named after the file unless a name is given; of a folder
//! every table in it, by name.

use predictor::LatencyTable;
use std::io::Read as _;
use std::path::PathBuf;
use std::sync::Arc;
use strategies::registry::Models;

/// One `--model` flag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ModelFile {
    name: String,
    path: PathBuf,
}

/// Reads `[NAME=]FILE`.
pub(crate) fn parse(text: &str) -> Result<ModelFile, String> {
    let (name, path) = match text.split_once('=') {
        Some((name, path)) => (name.to_string(), PathBuf::from(path)),
        None => {
            let path = PathBuf::from(text);
            let stem = path.file_stem().unwrap_or_default();
            (stem.to_string_lossy().into_owned(), path)
        }
    };
    if name.is_empty() || path.as_os_str().is_empty() {
        return Err("expected FILE or NAME=FILE".into());
    }
    Ok(ModelFile { name, path })
}

/// Ending of a table's file name in a folder of models.
pub(crate) const ENDING: &str = "plbtab";

/// Loads every file, and every table of a folder.
///
/// # Errors
/// A file that cannot be read or is no intact table, named with what to do about it.
pub(crate) fn load(files: &[ModelFile]) -> Result<Models, String> {
    let mut models = Models::default();
    for ModelFile { name, path } in &expand(files)? {
        let told = |e: &dyn std::fmt::Display| format!("--model {}: {e}", path.display());
        let mut bytes = Vec::new();
        // One byte more than allowed, so that the reader sees that there are too many.
        let most = predictor::table::MAX_FILE_BYTES as u64 + 1;
        input::open(path)
            .and_then(|file| file.take(most).read_to_end(&mut bytes))
            .map_err(|e| told(&e))?;
        let table = LatencyTable::from_bytes(&bytes).map_err(|e| told(&e))?;
        models.add(name, Arc::new(table)).map_err(|e| told(&e))?;
    }
    Ok(models)
}

fn expand(files: &[ModelFile]) -> Result<Vec<ModelFile>, String> {
    let mut all = Vec::new();
    for file in files {
        if !file.path.is_dir() {
            all.push(file.clone());
            continue;
        }
        let told = |e: std::io::Error| format!("--model {}: {e}", file.path.display());
        let entries = std::fs::read_dir(&file.path).map_err(told)?;
        let mut tables = Vec::new();
        for entry in entries {
            let path = entry.map_err(told)?.path();
            if path.extension().is_some_and(|e| e == ENDING) {
                let stem = path.file_stem().unwrap_or_default();
                let name = stem.to_string_lossy().into_owned();
                tables.push(ModelFile { name, path });
            }
        }
        tables.sort_by(|a, b| a.name.cmp(&b.name));
        all.append(&mut tables);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn a_model_is_named_or_takes_the_name_of_its_file() {
        let read = |text: &str| parse(text).map(|m| (m.name, m.path.display().to_string()));
        let pair = |name: &str, path: &str| Ok((name.to_string(), path.to_string()));
        assert_eq!(read("a/live.plbtab"), pair("live", "a/live.plbtab"));
        assert_eq!(read("x=a/b=c.plbtab"), pair("x", "a/b=c.plbtab"));
        assert!(read("=f").is_err() && read("x=").is_err() && read("").is_err());
    }
}
