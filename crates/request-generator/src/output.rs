//! Files that appear whole or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;

/// Bytes gathered before they are written.
const BUFFER_BYTES: usize = 256 * 1024;

/// What `content` writes goes to `path`, or to standard output when there is none.
///
/// # Errors
/// What the operating system refused, with the path.
pub(crate) fn write(
    path: Option<&Path>,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> anyhow::Result<()> {
    let Some(path) = path else {
        return Ok(console::heard(
            buffered(io::stdout().lock(), content).map(drop),
        )?);
    };
    let result = if is_special(path) {
        File::create(path)
            .and_then(|file| buffered(file, content))
            .map(drop)
    } else {
        replace(path, content)
    };
    result.with_context(|| format!("cannot write {}", path.display()))
}

/// Writes everything, so that no error is left for later, and gives `out` back.
fn buffered<W: Write>(
    out: W,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<W> {
    let mut buffer = BufWriter::with_capacity(BUFFER_BYTES, out);
    content(&mut buffer)?;
    buffer.flush()?;
    buffer.into_inner().map_err(io::IntoInnerError::into_error)
}

/// True for what cannot be replaced by a rename, such as a terminal or /dev/null.
fn is_special(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|m| !m.is_file() && !m.is_dir())
}

/// Temporary file in the same folder, synced, renamed over `path`, folder synced.
fn replace(path: &Path, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
        _ => PathBuf::from("."),
    };
    if path.is_dir() {
        return Err(io::Error::from(ErrorKind::IsADirectory));
    }
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = folder.join(name);
    let written = File::create(&temporary)
        .and_then(|file| buffered(file, content))
        .and_then(|file| {
            file.sync_all()?;
            fs::rename(&temporary, path)
        });
    if let Err(error) = written {
        let _ = fs::remove_file(&temporary);
        return Err(error);
    }
    File::open(&folder)?.sync_all()
}
