//! Loads latency models, by the balancer's rule ([`input::models`]).

use input::models::{ENDING, ModelFile, ModelFlag};
use predictor::LatencyTable;
use schema::problem::{Problem, Problems};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use strategies::registry::Models;

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
            for file in files_of(text).map_err(problem)? {
                let table = self.table(&file.path).map_err(problem)?;
                models.add(&file.name, table).map_err(problem)?;
            }
        }
        Ok(models)
    }

    /// The files read.
    pub(crate) fn paths(&self) -> impl Iterator<Item = PathBuf> {
        self.tables.keys().cloned()
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

/// Every file that a text names.
pub(crate) fn paths(text: &str) -> Vec<PathBuf> {
    let files = files_of(text).unwrap_or_default();
    files.into_iter().map(|file| file.path).collect()
}

/// Name and file of each model that a text names.
fn files_of(text: &str) -> Result<Vec<ModelFile>, String> {
    let flag: ModelFlag = text.parse()?;
    let files = flag.files().map_err(|e| e.to_string())?;
    if files.is_empty() {
        return Err(format!("no file in this folder ends with .{ENDING}"));
    }
    Ok(files)
}
