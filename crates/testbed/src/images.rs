//! The container image, made from the static programs next to this one.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use sha2::{Digest as _, Sha256};

use crate::bed::engine::Engine;
use crate::folder::digest_file;
use crate::host::checkout;
use crate::programs::Programs;

/// What `testbed images` builds and every container is made from.
pub(crate) const IMAGE: &str = "plumbline:dev";
/// User and group of the containers: nobody, everywhere.
pub(crate) const USER: &str = "65534:65534";
/// Label with the digest of the programs inside.
const PROGRAMS_LABEL: &str = "plumbline.programs";
/// What goes into the image.
const CONTENT: [&str; 4] = ["worker", "balancer", "simulator", "request-generator"];

/// Builds the image from the programs of this build.
pub(crate) async fn run() -> anyhow::Result<()> {
    let programs = Programs::find()?;
    let here = std::env::current_dir()?;
    let top = checkout(&here).context("no compose.yaml here or above; run it in a checkout")?;
    build(&programs, top)?;
    println!("{IMAGE} built from {}", programs.path("").display());
    Ok(())
}

/// Makes sure that the image holds exactly these programs; says when it had to be built.
pub(crate) async fn ensure(
    engine: &Engine,
    programs: &Programs,
    checkout: &Path,
) -> anyhow::Result<()> {
    let wanted = digest(programs)?;
    match engine.image_label(IMAGE, PROGRAMS_LABEL).await {
        Some(label) if label == wanted => Ok(()),
        _ => {
            eprintln!("building {IMAGE} from {}", programs.path("").display());
            build(programs, checkout)
        }
    }
}

fn build(programs: &Programs, checkout: &Path) -> anyhow::Result<()> {
    if !programs.are_static()? {
        bail!(
            "the programs in {} need shared libraries and would not run in an empty image; \
             build them with `make build`",
            programs.path("").display()
        );
    }
    let dist = checkout.join("dist");
    fs::create_dir_all(&dist).with_context(|| format!("cannot make {}", dist.display()))?;
    for name in CONTENT {
        let (from, to) = (programs.path(name), dist.join(name));
        fs::copy(&from, &to)
            .with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
    }
    let output = Command::new("docker")
        .current_dir(checkout)
        .args(["build", "--quiet", "--file", "docker/Dockerfile"])
        .args(["--target", "prebuilt", "--tag", IMAGE])
        .arg("--label")
        .arg(format!("{PROGRAMS_LABEL}={}", digest(programs)?))
        .arg(".")
        .stdin(Stdio::null())
        .output()
        .context("cannot run docker")?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        bail!("docker build: {}: {}", output.status, complaint.trim());
    }
    Ok(())
}

/// One digest over all programs of the image.
fn digest(programs: &Programs) -> anyhow::Result<String> {
    let mut hash = Sha256::new();
    for name in CONTENT {
        let path = programs.path(name);
        let digest =
            digest_file(&path).with_context(|| format!("cannot read {}", path.display()))?;
        hash.update(format!("{name} {digest}\n"));
    }
    Ok(hash.finalize().iter().map(|b| format!("{b:02x}")).collect())
}
