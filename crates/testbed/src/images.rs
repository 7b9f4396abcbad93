//! The container image, made from the static programs next to this one.
//!
//! Its tag is the digest of the programs inside, so that several checkouts on one machine never run each
//! other's programs; `dev` names the one that was built last, for `docker compose up` by hand.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use sha2::{Digest as _, Sha256};

use crate::bed::engine::Engine;
use crate::folder::{digest_file, hexadecimal};
use crate::host::checkout;
use crate::programs::Programs;

/// What was built last, whoever built it.
pub(crate) const IMAGE: &str = "plumbline:dev";
const REPOSITORY: &str = "plumbline";
/// Digits of the digest that make a tag.
const TAG_DIGITS: usize = 12;
/// Images of builds that are kept: those of a few checkouts that take turns.
const KEPT_BUILDS: usize = 4;
/// User and group of the containers: nobody, everywhere.
pub(crate) const USER: &str = "65534:65534";
/// Label with the digest of the programs inside.
const PROGRAMS_LABEL: &str = "plumbline.programs";
/// What goes into the image.
const CONTENT: [&str; 4] = ["worker", "balancer", "simulator", "request-generator"];

/// An image of this build's programs.
#[derive(Debug, Clone)]
pub(crate) struct Image {
    /// Tag in the repository `plumbline`.
    pub(crate) tag: String,
    /// As the engine names it.
    pub(crate) id: String,
}

/// Builds the image from the programs of this build.
pub(crate) async fn run() -> anyhow::Result<()> {
    let programs = Programs::find()?;
    let here = std::env::current_dir()?;
    let top = checkout(&here).context("no compose.yaml here or above; run it in a checkout")?;
    build(&programs, top)?;
    let tag = tag(&digest(&programs)?);
    console::say!(
        "{IMAGE} and {REPOSITORY}:{tag} built from {}",
        programs.path("").display()
    )?;
    Ok(())
}

/// The image that holds exactly these programs; says when it had to be built.
pub(crate) async fn ensure(
    engine: &Engine,
    programs: &Programs,
    checkout: &Path,
) -> anyhow::Result<Image> {
    let wanted = digest(programs)?;
    let tag = tag(&wanted);
    let name = format!("{REPOSITORY}:{tag}");
    if let Some((id, label)) = engine.image_with_label(&name, PROGRAMS_LABEL).await
        && label == wanted
    {
        return Ok(Image { tag, id });
    }
    console::tell!("building {name} from {}", programs.path("").display());
    build(programs, checkout)?;
    match engine.image_with_label(&name, PROGRAMS_LABEL).await {
        Some((id, label)) if label == wanted => Ok(Image { tag, id }),
        _ => bail!("{name} does not hold the programs it was just built from"),
    }
}

fn tag(digest: &str) -> String {
    digest[..TAG_DIGITS].to_string()
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
    let digest = digest(programs)?;
    let output = Command::new("docker")
        .current_dir(checkout)
        .args(["build", "--quiet", "--file", "docker/Dockerfile"])
        .args(["--target", "prebuilt", "--tag", IMAGE, "--tag"])
        .arg(format!("{REPOSITORY}:{}", tag(&digest)))
        .arg("--label")
        .arg(format!("{PROGRAMS_LABEL}={digest}"))
        .arg(".")
        .stdin(Stdio::null())
        .output()
        .context("cannot run docker")?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        bail!("docker build: {}: {}", output.status, complaint.trim());
    }
    forget_old();
    Ok(())
}

/// Removes the images of older builds but for the newest few; one that is in use stays.
fn forget_old() {
    let docker = |arguments: &[&str]| Command::new("docker").args(arguments).output();
    // The newest come first. What cannot be listed or removed now is removed after a later build.
    let Ok(listed) = docker(&["image", "ls", "--format", "{{.Tag}}", REPOSITORY]) else {
        return;
    };
    let tags = String::from_utf8_lossy(&listed.stdout).into_owned();
    let of_builds =
        |tag: &&str| tag.len() == TAG_DIGITS && tag.bytes().all(|b| b.is_ascii_hexdigit());
    for tag in tags.lines().filter(of_builds).skip(KEPT_BUILDS) {
        let _ = docker(&["image", "rm", &format!("{REPOSITORY}:{tag}")]);
    }
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
    Ok(hexadecimal(&hash.finalize()))
}
