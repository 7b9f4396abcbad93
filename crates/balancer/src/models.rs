//! Loading latency models.

use input::models::ModelFlag;
use predictor::LatencyTable;
use predictor::table::MAX_FILE_BYTES;
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
            let bytes = input::read_up_to(&file.path, MAX_FILE_BYTES as u64)
                .map_err(|e| format!("--model {e}"))?;
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
