//! The container engine and Compose, as far as the testbed uses them.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use bollard::Docker;
use bollard::models::ContainerInspectResponse;
use bollard::query_parameters::{
    ListContainersOptionsBuilder, ListNetworksOptionsBuilder, LogsOptionsBuilder,
    RemoveContainerOptionsBuilder,
};
use futures_util::StreamExt as _;

const PROJECT_LABEL: &str = "com.docker.compose.project";
const FOLDER_LABEL: &str = "com.docker.compose.project.working_dir";
const SERVICE_LABEL: &str = "com.docker.compose.service";

/// A connection to an engine that answered.
#[derive(Clone)]
pub(crate) struct Engine {
    pub(crate) docker: Docker,
    pub(crate) version: String,
    pub(crate) cores: u32,
    pub(crate) rootless: bool,
}

/// The command that runs Compose: `docker compose` (v2) or `docker-compose` (v1, or v2 alone).
#[derive(Debug, Clone)]
pub(crate) struct Compose {
    command: Vec<OsString>,
    pub(crate) version: String,
}

/// One container of a Compose project.
#[derive(Debug, Clone)]
pub(crate) struct Container {
    pub(crate) id: String,
    pub(crate) service: String,
}

impl Engine {
    /// Connects as the `docker` command would by default.
    ///
    /// # Errors
    /// No engine, or it does not answer.
    pub(crate) async fn connect() -> anyhow::Result<Self> {
        let docker = Docker::connect_with_defaults().context("no engine")?;
        let docker = docker
            .negotiate_version()
            .await
            .context("the engine does not answer")?;
        let info = docker.info().await.context("the engine does not answer")?;
        let rootless = info
            .security_options
            .unwrap_or_default()
            .iter()
            .any(|o| o.contains("rootless"));
        Ok(Self {
            docker,
            version: info.server_version.unwrap_or_default(),
            cores: u32::try_from(info.ncpu.unwrap_or(1)).unwrap_or(1),
            rootless,
        })
    }

    /// Id of an image and the value of one of its labels; `None` without the image or the label.
    pub(crate) async fn image_with_label(
        &self,
        image: &str,
        label: &str,
    ) -> Option<(String, String)> {
        let image = self.docker.inspect_image(image).await.ok()?;
        Some((image.id?, image.config?.labels?.remove(label)?))
    }

    /// Compose projects that were brought up from a folder's compose.yaml.
    pub(crate) async fn projects_of(&self, checkout: &Path) -> anyhow::Result<Vec<String>> {
        let wanted = format!("{FOLDER_LABEL}={}", checkout.display());
        let filter = HashMap::from([("label", vec![wanted.as_str()])]);
        let options = ListContainersOptionsBuilder::default()
            .all(true)
            .filters(&filter)
            .build();
        let list = self.docker.list_containers(Some(options)).await?;
        let project = |labels: Option<HashMap<String, String>>| labels?.remove(PROJECT_LABEL);
        let mut found: Vec<String> = list.into_iter().filter_map(|c| project(c.labels)).collect();
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    /// Whether a project has left anything: a container, whatever its state, or a network.
    pub(crate) async fn has_project(&self, project: &str) -> anyhow::Result<bool> {
        if !self.containers(project).await?.is_empty() {
            return Ok(true);
        }
        let wanted = format!("{PROJECT_LABEL}={project}");
        let filter = HashMap::from([("label", vec![wanted.as_str()])]);
        let options = ListNetworksOptionsBuilder::default()
            .filters(&filter)
            .build();
        Ok(!self.docker.list_networks(Some(options)).await?.is_empty())
    }

    /// Name and project of the running container that publishes a port on this host.
    pub(crate) async fn publisher(&self, port: u16) -> Option<(String, String)> {
        let list = self.docker.list_containers(None).await.ok()?;
        let publishes = |c: &bollard::models::ContainerSummary| {
            let mut ports = c.ports.iter().flatten();
            ports.any(|p| p.public_port == Some(port))
        };
        let container = list.into_iter().find(publishes)?;
        let name = container.names?.into_iter().next()?;
        let project = container.labels?.remove(PROJECT_LABEL).unwrap_or_default();
        Some((name.trim_start_matches('/').to_string(), project))
    }

    pub(crate) async fn has_image(&self, image: &str) -> bool {
        self.docker.inspect_image(image).await.is_ok()
    }

    /// All containers of a project, whatever their state.
    pub(crate) async fn containers(&self, project: &str) -> anyhow::Result<Vec<Container>> {
        let filter = HashMap::from([("label", vec![format!("{PROJECT_LABEL}={project}")])]);
        let filter: HashMap<&str, Vec<&str>> = filter
            .iter()
            .map(|(k, v)| (*k, v.iter().map(String::as_str).collect()))
            .collect();
        let options = ListContainersOptionsBuilder::default()
            .all(true)
            .filters(&filter)
            .build();
        let list = self.docker.list_containers(Some(options)).await?;
        Ok(list
            .into_iter()
            .filter_map(|c| {
                Some(Container {
                    id: c.id?,
                    service: c.labels?.remove(SERVICE_LABEL).unwrap_or_default(),
                })
            })
            .collect())
    }

    pub(crate) async fn inspect(&self, id: &str) -> anyhow::Result<ContainerInspectResponse> {
        self.docker
            .inspect_container(id, None)
            .await
            .with_context(|| format!("cannot inspect container {id}"))
    }

    /// Standard output and standard error of a container so far.
    pub(crate) async fn logs(&self, id: &str) -> anyhow::Result<(String, String)> {
        let options = LogsOptionsBuilder::default()
            .stdout(true)
            .stderr(true)
            .build();
        let mut lines = self.docker.logs(id, Some(options));
        let (mut out, mut err) = (Vec::new(), Vec::new());
        while let Some(line) = lines.next().await {
            match line? {
                bollard::container::LogOutput::StdErr { message } => err.extend(message),
                other => out.extend(other.into_bytes()),
            }
        }
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ok((text(out), text(err)))
    }

    /// Removes a container, running or not; one that is gone already is fine.
    pub(crate) async fn remove(&self, id: &str) -> anyhow::Result<()> {
        let options = RemoveContainerOptionsBuilder::default()
            .force(true)
            .v(true)
            .build();
        match self.docker.remove_container(id, Some(options)).await {
            Ok(())
            | Err(bollard::errors::Error::DockerResponseServerError {
                status_code: 404 | 409,
                ..
            }) => Ok(()),
            Err(error) => Err(error).with_context(|| format!("cannot remove container {id}")),
        }
    }

    /// Removes every container of a project and its network.
    pub(crate) async fn remove_project(&self, project: &str) -> anyhow::Result<()> {
        for container in self.containers(project).await? {
            self.remove(&container.id).await?;
        }
        match self.docker.remove_network(&network(project)).await {
            Ok(())
            | Err(bollard::errors::Error::DockerResponseServerError {
                status_code: 404, ..
            }) => Ok(()),
            Err(error) => Err(error).context("cannot remove the network"),
        }
    }
}

/// Name of a project's network.
pub(crate) fn network(project: &str) -> String {
    format!("{project}_testbed")
}

/// Labels that make a container part of a project, so that everything of a bench is found together.
pub(crate) fn labels(project: &str, service: &str) -> HashMap<String, String> {
    HashMap::from([
        (PROJECT_LABEL.to_string(), project.to_string()),
        (SERVICE_LABEL.to_string(), service.to_string()),
        ("com.docker.compose.oneoff".to_string(), "True".to_string()),
    ])
}

impl Compose {
    /// Prefers the plugin (v2) to the program of the same name.
    ///
    /// # Errors
    /// Neither is there.
    pub(crate) fn find() -> anyhow::Result<Self> {
        for command in [&["docker", "compose"][..], &["docker-compose"]] {
            let output = Command::new(command[0])
                .args(&command[1..])
                .args(["version", "--short"])
                .stdin(Stdio::null())
                .output();
            if let Ok(output) = output
                && output.status.success()
            {
                return Ok(Self {
                    command: command.iter().map(OsString::from).collect(),
                    version: String::from_utf8_lossy(&output.stdout).trim().to_string(),
                });
            }
        }
        bail!("neither `docker compose` nor `docker-compose` is there")
    }

    /// Runs Compose on a project with these files; its output goes to `log`, or through when there
    /// is none.
    pub(crate) async fn run(
        &self,
        project: &str,
        files: &[PathBuf],
        variables: &[(String, String)],
        arguments: &[&str],
        log: Option<&Path>,
    ) -> anyhow::Result<()> {
        let mut command = tokio::process::Command::new(&self.command[0]);
        command
            .args(&self.command[1..])
            .args(["-p", project])
            .envs(variables.iter().cloned())
            .stdin(Stdio::null())
            // Its own process group: Ctrl-C is passed on by the testbed, in order.
            .process_group(0)
            .kill_on_drop(true);
        for file in files {
            command.arg("-f").arg(file);
        }
        command.args(arguments);
        if let Some(log) = log {
            let file = std::fs::File::options()
                .create(true)
                .append(true)
                .open(log)
                .with_context(|| format!("cannot write {}", log.display()))?;
            command.stdout(file.try_clone()?).stderr(file);
        }
        let status = command.status().await.context("cannot run Compose")?;
        if !status.success() {
            let words = log.map_or(String::new(), last_line);
            bail!("compose {}: {status}{words}", arguments.join(" "));
        }
        Ok(())
    }
}

fn last_line(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let errors = text.lines().rev().filter(|l| !l.trim().is_empty());
    errors.take(1).map(|l| format!("; {l}")).collect()
}
