//! What the tests stand on: built programs, a folder, a way to see what is left running.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::Value;

/// Marks every process a test started, directly or not.
const MARK: &str = "PLUMBLINE_TEST_MARK";

/// The programs next to the testbed, built in the profile of this test run; or those of
/// `PLUMBLINE_BIN_DIR`, which the testbed heeds as well.
pub(crate) fn programs() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        if let Some(folder) = std::env::var_os("PLUMBLINE_BIN_DIR") {
            return PathBuf::from(folder);
        }
        let folder = Path::new(env!("CARGO_BIN_EXE_testbed"))
            .parent()
            .expect("a folder");
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--bins"]);
        for name in [
            "worker",
            "balancer",
            "simulator",
            "request-generator",
            "twin",
        ] {
            build.args(["--package", &format!("plumbline-{name}")]);
        }
        if !cfg!(debug_assertions) {
            build.arg("--release");
        }
        assert!(build.status().expect("cargo runs").success());
        folder.to_path_buf()
    })
}

/// A folder of its own and a mark of its own.
pub(crate) struct Ground {
    folder: tempfile::TempDir,
    mark: String,
}

impl Ground {
    pub(crate) fn new(name: &str) -> Self {
        Self {
            folder: tempfile::tempdir().expect("a folder"),
            mark: format!("{name}-{}", std::process::id()),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A testbed command that finds no container engine and works in this folder.
    pub(crate) fn testbed(&self, arguments: &[&str]) -> Command {
        programs();
        let mut command = Command::new(env!("CARGO_BIN_EXE_testbed"));
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env("DOCKER_HOST", "unix:///nonexistent/docker.sock")
            .env(MARK, &self.mark);
        command
    }

    /// A workload of `calls` requests of 100 MI or so, 20 ms apart.
    pub(crate) fn workload(&self, calls: u32) -> PathBuf {
        let out = self.path("workload-in.json");
        let status = Command::new(programs().join("request-generator"))
            .args([
                "generate",
                "--apis",
                "10",
                "--runs",
                &(calls / 10).to_string(),
            ])
            .args(["--seed", "3", "--arrivals", "constant:20ms", "--out"])
            .arg(&out)
            .status();
        assert!(status.expect("request-generator runs").success());
        out
    }

    /// Processes with this ground's mark.
    fn left_running(&self) -> Vec<String> {
        let wanted = format!("{MARK}={}", self.mark);
        let processes = std::fs::read_dir("/proc").expect("/proc");
        processes
            .filter_map(|e| Some(e.ok()?.path()))
            .filter(|p| {
                let environment = std::fs::read(p.join("environ")).unwrap_or_default();
                environment
                    .split(|&b| b == 0)
                    .any(|v| v == wanted.as_bytes())
            })
            .map(|p| {
                let line = std::fs::read(p.join("cmdline")).unwrap_or_default();
                String::from_utf8_lossy(&line).replace('\0', " ")
            })
            .collect()
    }

    /// Waits until nothing with this ground's mark runs.
    pub(crate) fn assert_nothing_left(&self) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !self.left_running().is_empty() {
            assert!(
                Instant::now() < deadline,
                "left running: {:?}",
                self.left_running()
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub(crate) fn json(path: &Path) -> Value {
    let text = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_slice(&text).expect("JSON")
}
