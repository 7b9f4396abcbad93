//! Facts about this machine and this checkout.

use std::path::Path;
use std::process::Command;

use schema::manifest::Host;
use sysinfo::{CpuRefreshKind, MemoryRefreshKind, RefreshKind, System};

use crate::programs::Calibration;

/// The machine, with what `worker calibrate` measured on it.
pub(crate) fn facts(calibration: &Calibration) -> Host {
    let what = RefreshKind::nothing()
        .with_cpu(CpuRefreshKind::nothing())
        .with_memory(MemoryRefreshKind::nothing().with_ram());
    let system = System::new_with_specifics(what);
    Host {
        system: format!(
            "{}, {}",
            System::long_os_version().unwrap_or_else(|| "unknown system".into()),
            System::kernel_long_version()
        ),
        cpu_model: system
            .cpus()
            .first()
            .map_or(String::new(), |c| c.brand().trim().to_string()),
        cores: cores(),
        memory_bytes: system.total_memory(),
        loop_name: calibration.loop_name.clone(),
        native_mips_per_core: calibration.native_mips_per_core,
        native_mips_per_core_all_busy: calibration.native_mips_all_busy,
    }
}

/// Cores this process may use.
pub(crate) fn cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(u32::MAX))
}

/// Commit, as of now, of the checkout this program lies in, with `-dirty` when the tree was changed;
/// `None` outside a checkout or without git.
pub(crate) fn git_commit() -> Option<String> {
    let own = std::env::current_exe().ok()?;
    let output = Command::new("git")
        .arg("-C")
        .arg(own.parent()?)
        .args([
            "describe",
            "--always",
            "--dirty",
            "--abbrev=40",
            "--exclude=*",
        ])
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let commit = text.trim();
    (output.status.success() && !commit.is_empty()).then(|| commit.to_string())
}

/// The checkout's top folder: the nearest folder above `from` that holds `compose.yaml`.
pub(crate) fn checkout(from: &Path) -> Option<&Path> {
    from.ancestors()
        .find(|folder| folder.join("compose.yaml").is_file() && folder.join("docker").is_dir())
}
