//! Where the other programs are, and how they are asked short questions.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use serde::Deserialize;

use crate::folder::digest_file;
use crate::models::ModelFile;
use schema::problem::{Problem, Problems};

/// Overrides the folder the programs are taken from.
const FOLDER_VARIABLE: &str = "PLUMBLINE_BIN_DIR";
/// The programs a bench runs.
pub(crate) const NAMES: [&str; 3] = ["worker", "balancer", "simulator"];

/// Measurements of the host's speed.
const CALIBRATIONS: usize = 5;

/// The folder with the programs.
#[derive(Debug, Clone)]
pub(crate) struct Programs {
    folder: PathBuf,
}

/// What `worker calibrate` prints.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Calibration {
    #[serde(rename = "loop")]
    pub(crate) loop_name: String,
    pub(crate) native_mips_per_core: f64,
    pub(crate) native_mips_all_busy: f64,
}

/// One entry of `balancer strategies --json`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Registered {
    pub(crate) name: String,
    pub(crate) aliases: Vec<String>,
    pub(crate) needs_model: bool,
    /// What it looks at, one letter each.
    pub(crate) reads: String,
}

impl Registered {
    /// Whether it looks at polls or probes, so that its balancer may ask before a pick.
    pub(crate) fn reads_reports(&self) -> bool {
        self.reads.contains(['P', 'X'])
    }
}

impl Programs {
    /// Next to this program, or in `PLUMBLINE_BIN_DIR`.
    ///
    /// # Errors
    /// A program is missing.
    pub(crate) fn find() -> anyhow::Result<Self> {
        let folder = match std::env::var_os(FOLDER_VARIABLE) {
            Some(folder) => PathBuf::from(folder),
            None => std::env::current_exe()
                .context("cannot tell where this program is")?
                .parent()
                .map(Path::to_path_buf)
                .context("this program is in no folder")?,
        };
        let programs = Self { folder };
        for name in NAMES {
            if !programs.path(name).is_file() {
                bail!(
                    "{}: no such program; build them with `make build` or set {FOLDER_VARIABLE}",
                    programs.path(name).display()
                );
            }
        }
        Ok(programs)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// SHA-256 of each program.
    pub(crate) fn digests(&self) -> anyhow::Result<BTreeMap<String, String>> {
        NAMES
            .into_iter()
            .map(|name| {
                let path = self.path(name);
                let digest = digest_file(&path)
                    .with_context(|| format!("cannot read {}", path.display()))?;
                Ok((name.to_string(), digest))
            })
            .collect()
    }

    /// Measures the host several times, about a tenth of a second each: the best speed of one core
    /// alone, the worst with all of them busy. A look at a moment when the host's cores did not
    /// share a physical one would promise more than a bench gets.
    pub(crate) fn calibrate(&self) -> anyhow::Result<Calibration> {
        let mut found = self.calibrate_once()?;
        for _ in 1..CALIBRATIONS {
            let next = self.calibrate_once()?;
            found.native_mips_per_core = found.native_mips_per_core.max(next.native_mips_per_core);
            found.native_mips_all_busy = found.native_mips_all_busy.min(next.native_mips_all_busy);
        }
        Ok(found)
    }

    fn calibrate_once(&self) -> anyhow::Result<Calibration> {
        let text = self.ask("worker", ["calibrate"])?;
        serde_json::from_str(&text).with_context(|| format!("`worker calibrate` printed {text:?}"))
    }

    /// All strategies, in registry order.
    pub(crate) fn strategies(&self) -> anyhow::Result<Vec<Registered>> {
        let text = self.ask("balancer", ["strategies", "--json"])?;
        serde_json::from_str(&text)
            .with_context(|| "`balancer strategies --json` printed no list of strategies")
    }

    /// Checks how strategies are spelled, and that the models they need are there.
    ///
    /// # Errors
    /// What the balancer says of the first that it refuses, as a mistake of the user.
    pub(crate) fn check_strategies(
        &self,
        strategies: &[String],
        models: &[ModelFile],
    ) -> anyhow::Result<()> {
        let mut command = Command::new(self.path("balancer"));
        command.arg("strategies").stdin(Stdio::null());
        for strategy in strategies {
            command.args(["--check", strategy]);
        }
        for model in models {
            command.arg("--model").arg(model.flag());
        }
        let output = command.output().context("cannot run the balancer")?;
        if output.status.success() {
            return Ok(());
        }
        let complaint = String::from_utf8_lossy(&output.stderr);
        let complaint = complaint.trim().trim_start_matches("error: ").to_string();
        Err(Problems::from(Problem::new(
            "--strategies",
            strategies.join(","),
            complaint,
        ))
        .into())
    }

    /// Runs a program to its end and returns its standard output.
    pub(crate) fn ask(
        &self,
        name: &str,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> anyhow::Result<String> {
        let output = Command::new(self.path(name))
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("cannot run {}", self.path(name).display()))?;
        if !output.status.success() {
            let complaint = String::from_utf8_lossy(&output.stderr);
            bail!("{name}: {}: {}", output.status, complaint.trim());
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// True when all programs run without any library, as an image on an empty base needs.
    pub(crate) fn are_static(&self) -> anyhow::Result<bool> {
        for name in NAMES {
            let path = self.path(name);
            let bytes =
                std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            if !is_static_elf(&bytes) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// True for a 64-bit little-endian ELF file that names no interpreter.
fn is_static_elf(bytes: &[u8]) -> bool {
    const PT_INTERP: u32 = 3;
    let half = |at: usize| Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let long = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    if !bytes.starts_with(b"\x7fELF\x02\x01") {
        return false;
    }
    let (Some(table), Some(size), Some(count)) = (long(0x20), half(0x36), half(0x38)) else {
        return false;
    };
    (0..u64::from(count)).all(|i| {
        let at = table + i * u64::from(size);
        word(at as usize).is_some_and(|kind| kind != PT_INTERP)
    })
}

#[cfg(test)]
mod tests {
    use super::is_static_elf;

    /// A header with program headers of the given kinds.
    fn elf(kinds: &[u32]) -> Vec<u8> {
        let mut bytes = vec![0; 0x40];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[0x20] = 0x40;
        bytes[0x36] = 56;
        bytes[0x38] = kinds.len() as u8;
        for kind in kinds {
            let mut header = vec![0; 56];
            header[..4].copy_from_slice(&kind.to_le_bytes());
            bytes.extend(header);
        }
        bytes
    }

    #[test]
    fn a_program_with_an_interpreter_is_not_static() {
        assert!(is_static_elf(&elf(&[1, 2, 6])));
        assert!(!is_static_elf(&elf(&[6, 3, 1])));
        assert!(!is_static_elf(b"#!/bin/sh"));
        let cut = &elf(&[1, 2])[..0x50];
        assert!(!is_static_elf(cut));
    }
}
