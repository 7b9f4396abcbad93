//! Containers where an engine is there and can be used, else local processes.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::ValueEnum;

use super::engine::{Compose, Engine};
use crate::host::checkout;
use crate::images::{self, Image};
use crate::programs::Programs;

/// What the programs run in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// Containers
    Docker,
    /// Local processes
    Process,
}

/// Everything needed to start containers.
#[derive(Clone)]
pub(crate) struct DockerReady {
    pub(crate) engine: Engine,
    pub(crate) compose: Compose,
    pub(crate) checkout: PathBuf,
    /// Holds exactly the programs of this build.
    pub(crate) image: Image,
}

/// The choice, with its reason.
pub(crate) struct Selected {
    /// `None`: processes.
    pub(crate) docker: Option<DockerReady>,
    pub(crate) reason: String,
}

impl Selected {
    /// As the manifest names it.
    pub(crate) fn kind(&self) -> &'static str {
        if self.docker.is_some() {
            "docker"
        } else {
            "process"
        }
    }
}

/// Chooses; `asked` forces one.
///
/// # Errors
/// Docker was asked for and cannot be used.
pub(crate) async fn select(asked: Option<Kind>, programs: &Programs) -> anyhow::Result<Selected> {
    if asked == Some(Kind::Process) {
        return Ok(Selected {
            docker: None,
            reason: "asked for".into(),
        });
    }
    match docker_ready(programs).await {
        Ok(ready) => Ok(Selected {
            reason: match asked {
                Some(_) => "asked for".into(),
                None => format!("Docker {} answers", ready.engine.version),
            },
            docker: Some(ready),
        }),
        Err(error) if asked.is_some() => {
            Err(error.context("the docker back end cannot be used; `--backend process` needs none"))
        }
        Err(error) => Ok(Selected {
            docker: None,
            reason: format!("Docker cannot be used: {error:#}"),
        }),
    }
}

/// Engine, Compose, compose.yaml and an image of these programs.
async fn docker_ready(programs: &Programs) -> anyhow::Result<DockerReady> {
    let engine = Engine::connect().await?;
    let compose = Compose::find()?;
    let checkout = find_checkout()?;
    let image = images::ensure(&engine, programs, &checkout).await?;
    Ok(DockerReady {
        engine,
        compose,
        checkout,
        image,
    })
}

/// The checkout around the working folder, else the one this program was built in.
pub(crate) fn find_checkout() -> anyhow::Result<PathBuf> {
    let here = std::env::current_dir()?;
    let own = std::env::current_exe()?;
    checkout(&here)
        .or_else(|| checkout(&own))
        .map(Path::to_path_buf)
        .context("no compose.yaml here or above")
}
