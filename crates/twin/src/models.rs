//! Loads latency models: `[NAME=]FILE`, named after the file unless a name is given; of a folder every
//! table in it, by name. As the balancer's flag takes them.

use predictor::LatencyTable;
use schema::problem::{Problem, Problems};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use strategies::registry::Models;

/// Ending of a table's file name in a folder of models.
const ENDING: &str = "plbtab";
/// Most files that one command reads.
const MAX_FILES: usize = 256;

/// Loads every file named.
///
/// # Errors
/// A file that cannot be read or is no intact table; a name given twice.
pub fn load(named: &[String]) -> Result<Models, Problems> {
    Library::default().load(named)
}

/// Files read so far: scenarios of one sweep share them.
#[derive(Debug, Default)]
pub(crate) struct Library {
    tables: BTreeMap<PathBuf, Arc<LatencyTable>>,
    contents: Sha256,
}

impl Library {
    /// The models of one scenario; each file is read once for all.
    pub(crate) fn load(&mut self, named: &[String]) -> Result<Models, Problems> {
        let mut models = Models::default();
        for text in named {
            let problem = |what: String| Problems::from(Problem::new("model", text, what));
            for (name, path) in files_of(text).map_err(problem)? {
                let table = self.table(&path).map_err(problem)?;
                models.add(&name, table).map_err(problem)?;
            }
        }
        Ok(models)
    }

    /// Digest of the contents of all files, in the order of reading.
    pub(crate) fn digest(&self) -> impl AsRef<[u8]> {
        self.contents.clone().finalize()
    }

    fn table(&mut self, path: &Path) -> Result<Arc<LatencyTable>, String> {
        if let Some(table) = self.tables.get(path) {
            return Ok(Arc::clone(table));
        }
        if self.tables.len() == MAX_FILES {
            return Err(format!("more than {MAX_FILES} files of models"));
        }
        let most = predictor::table::MAX_FILE_BYTES as u64;
        let bytes = input::read_up_to(path, most).map_err(|e| e.to_string())?;
        self.contents.update(Sha256::digest(&bytes));
        let table = Arc::new(LatencyTable::from_bytes(&bytes).map_err(|e| e.to_string())?);
        self.tables.insert(path.to_path_buf(), Arc::clone(&table));
        Ok(table)
    }
}

/// Name and file of each model that a text names.
fn files_of(text: &str) -> Result<Vec<(String, PathBuf)>, String> {
    let named = |path: PathBuf| {
        let stem = path.file_stem().unwrap_or_default();
        (stem.to_string_lossy().into_owned(), path)
    };
    let (name, path) = match text.split_once('=') {
        Some((name, path)) => (Some(name), path),
        None => (None, text),
    };
    if path.is_empty() || name.is_some_and(str::is_empty) {
        return Err("expected FILE, FOLDER or NAME=FILE".into());
    }
    let path = PathBuf::from(path);
    match name {
        Some(name) => return Ok(vec![(name.to_string(), path)]),
        None if !path.is_dir() => return Ok(vec![named(path)]),
        None => {}
    }
    let mut tables = Vec::new();
    for entry in path.read_dir().map_err(|e| e.to_string())? {
        let path = entry.map_err(|e| e.to_string())?.path();
        if path.extension().is_some_and(|e| e == ENDING) {
            tables.push(named(path));
        }
    }
    if tables.is_empty() {
        return Err(format!("no file in this folder ends with .{ENDING}"));
    }
    tables.sort();
    Ok(tables)
}

#[cfg(test)]
mod tests {
    use super::files_of;

    #[test]
    fn a_model_is_named_or_takes_the_name_of_its_file() {
        let read = |text: &str| {
            let files = files_of(text).expect("a model");
            (files[0].0.clone(), files[0].1.display().to_string())
        };
        let pair = |name: &str, path: &str| (name.to_string(), path.to_string());
        assert_eq!(read("a/live.plbtab"), pair("live", "a/live.plbtab"));
        assert_eq!(read("x=a/b=c.plbtab"), pair("x", "a/b=c.plbtab"));
        assert!(["=f", "x=", ""].iter().all(|text| files_of(text).is_err()));
    }

    #[test]
    fn of_a_folder_every_table_comes_by_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let text = folder.path().to_str().expect("text");
        assert!(files_of(text).expect_err("empty").contains("no file"));
        for name in ["b.plbtab", "a.plbtab", "c.json"] {
            std::fs::write(folder.path().join(name), "").expect("written");
        }
        let names = files_of(text).expect("models").into_iter().map(|f| f.0);
        assert_eq!(names.collect::<Vec<_>>(), ["a", "b"]);
    }
}
