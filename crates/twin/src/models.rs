//! Loads latency models: `[NAME=]FILE`, named after the file unless a name is given.

use predictor::LatencyTable;
use schema::problem::{Problem, Problems};
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;
use strategies::registry::Models;

/// Loads every file named.
///
/// # Errors
/// A file that cannot be read or is no intact table.
pub fn load(named: &[String]) -> Result<Models, Problems> {
    let mut models = Models::default();
    for text in named {
        let (name, path) = match text.split_once('=') {
            Some((name, path)) => (name.to_string(), Path::new(path)),
            None => {
                let stem = Path::new(text).file_stem().unwrap_or_default();
                (stem.to_string_lossy().into_owned(), Path::new(text))
            }
        };
        let problem =
            |e: &dyn std::fmt::Display| Problems::from(Problem::new("model", text, e.to_string()));
        let mut bytes = Vec::new();
        // One byte more than allowed, so that the reader sees that there are too many.
        let most = predictor::table::MAX_FILE_BYTES as u64 + 1;
        File::open(path)
            .and_then(|file| file.take(most).read_to_end(&mut bytes))
            .map_err(|e| problem(&e))?;
        let table = LatencyTable::from_bytes(&bytes).map_err(|e| problem(&e))?;
        models
            .add(&name, Arc::new(table))
            .map_err(|e| problem(&e))?;
    }
    Ok(models)
}
