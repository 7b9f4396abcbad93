//! `report`, and the report a bench makes: the summary again, report.html by the analysis package.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

use crate::bed::select::find_checkout;
use crate::folder::{Folder, newest};
use crate::summary::Summary;

const PACKAGE: &str = "plumbline_analysis";
/// Overrides which Python runs the analysis package.
const PYTHON_VARIABLE: &str = "PLUMBLINE_PYTHON";

/// Makes `summary.json` and `report.html` of a folder again and prints the table; of a lone rows file
/// it prints what can be said.
pub(crate) fn run(results: Option<&Path>) -> anyhow::Result<u8> {
    let root = match results {
        Some(file) if file.is_file() => return lone(file),
        Some(folder) => folder.to_path_buf(),
        None => newest(Path::new("results"))?,
    };
    let (folder, manifest) = Folder::open(&root)?;
    if let Some(holder) = folder.holder() {
        console::tell!(
            "{}: still being filled by {holder}; this is what is finished so far",
            root.display()
        );
    }
    let rows = folder.read_rows(&manifest)?;
    let summary = Summary::of(&manifest, &rows);
    folder.write_json("summary.json", &summary)?;
    console::print(format_args!("{}", summary.text()))?;
    let report = make(&root)?;
    console::say!("\nreport: {}", report.display())?;
    Ok(0)
}

/// Without a manifest the analysis package alone judges, by its own exit code.
fn lone(rows: &Path) -> anyhow::Result<u8> {
    let python = python()?;
    let status = python
        .command()
        .args(["-m", PACKAGE, "summarize"])
        .arg(rows)
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("cannot run {}", python.program.display()))?;
    Ok(status
        .code()
        .and_then(|c| u8::try_from(c).ok())
        .unwrap_or(1))
}

/// Has the analysis package write `report.html`.
///
/// # Errors
/// No Python with the package, or the package failed; the message says how to get it.
pub(crate) fn make(root: &Path) -> anyhow::Result<PathBuf> {
    let python = python()?;
    let output = python
        .command()
        .args(["-m", PACKAGE, "report"])
        .arg(root)
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run {}", python.program.display()))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        let last = complaint.lines().last().unwrap_or_default();
        bail!("the analysis package failed: {}: {last}", output.status);
    }
    let report = root.join("report.html");
    if !report.is_file() {
        bail!("the analysis package wrote no {}", report.display());
    }
    Ok(report)
}

/// A Python that can run the package.
pub(crate) struct Python {
    pub(crate) program: PathBuf,
    /// Where the package is, when it is not installed.
    package_path: Option<OsString>,
}

impl Python {
    /// To be given arguments.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        if let Some(path) = &self.package_path {
            command.env("PYTHONPATH", path);
        }
        command
    }
}

/// `PLUMBLINE_PYTHON`, else the checkout's environment, else `python3` if it can import what the
/// package needs.
pub(crate) fn python() -> anyhow::Result<Python> {
    if let Some(program) = std::env::var_os(PYTHON_VARIABLE) {
        return usable(PathBuf::from(program), None)
            .with_context(|| format!("{PYTHON_VARIABLE} cannot run {PACKAGE}"));
    }
    let analysis = find_checkout().ok().map(|top| top.join("analysis"));
    let path = analysis.as_ref().map(|a| a.clone().into_os_string());
    if let Some(analysis) = &analysis
        && let Some(python) = usable(analysis.join(".venv/bin/python"), path.clone())
    {
        return Ok(python);
    }
    usable(PathBuf::from("python3"), path).context(
        "no Python with the analysis package; `make env` sets it up, `testbed report` then makes \
         the report",
    )
}

fn usable(program: PathBuf, package_path: Option<OsString>) -> Option<Python> {
    let mut command = Command::new(&program);
    if let Some(path) = &package_path {
        command.env("PYTHONPATH", path);
    }
    // Importing the heavy parts would take seconds; finding them takes none.
    let look = format!(
        "import importlib.util as u, sys; \
         sys.exit(any(u.find_spec(m) is None for m in ('{PACKAGE}', 'pandas', 'matplotlib')))"
    );
    let status = command
        .args(["-c", &look])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .ok()?;
    status.success().then_some(Python {
        program,
        package_path,
    })
}
