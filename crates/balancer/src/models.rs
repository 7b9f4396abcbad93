//! Loading latency models.

use input::models::ModelFlag;
use predictor::LatencyTable;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;
use strategies::registry::Models;

/// Loads every file named, and every table of a folder.
///
/// # Errors
/// A file that cannot be read or is no intact table, named with what to do about it.
pub(crate) fn load(flags: &[ModelFlag]) -> Result<Models, String> {
    let mut models = Models::default();
    for flag in flags {
        for file in flag.files().map_err(|e| told(flag.path(), &e))? {
            let told = |e: &dyn std::fmt::Display| told(&file.path, e);
            let mut bytes = Vec::new();
            // One byte more than allowed, so that the reader sees that there are too many.
            let most = predictor::table::MAX_FILE_BYTES as u64 + 1;
            input::open(&file.path)
                .and_then(|file| file.take(most).read_to_end(&mut bytes))
                .map_err(|e| told(&e))?;
            let table = LatencyTable::from_bytes(&bytes).map_err(|e| told(&e))?;
            models
                .add(&file.name, Arc::new(table))
                .map_err(|e| told(&e))?;
        }
    }
    Ok(models)
}

fn told(path: &Path, e: &dyn std::fmt::Display) -> String {
    format!("--model {}: {e}", path.display())
}
