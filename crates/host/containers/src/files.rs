//! What the state files of the runtimes hold.
//!
//! # Problem
//! Each runtime keeps what it knows of a container in files of its own. None of their formats is promised; what is
//! read here was seen in runc 1.1, crun 1.8, containerd 1.6, docker 20.10 and podman 4.3, and what those leave out
//! in the sources of CRI-O.
//!
//! # Approach
//! One function from bytes for each file, all with the same result: [`Facts`]. What is not there stays absent; what
//! has another type than expected is an error, since the file is another one then.
//!
//! - `config.json` of a bundle ([`bundle`]): annotations, and the cgroup that was asked for. containerd writes its
//!   clients'
//!   labels there, CRI's and CRI-O's are among them.
//! - `config.v2.json` ([`docker`]): name, image and labels of a Docker container.
//! - `containers.json` ([`storage`]): names and images of all containers of a podman or CRI-O storage.
//! - `state.json` of runc ([`runc`]): annotations as `key=value`, and the cgroups that it made.
//! - `status` of crun ([`crun`]): the cgroup that it made; the annotations are in the `config.json` next to it.
//!
//! # Properties
//! - Files as the tools write them are read (`files_of_each_runtime_are_read`).
//! - No bytes make a reader panic (`no_bytes_make_a_reader_panic`, and the fuzz target `container_state`).

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::Labels;
use crate::labels::{MOST_LABELS, MOST_VALUE};
use crate::read::json;

/// What one file says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// Name of the container.
    pub name: Option<String>,
    /// Image.
    pub image: Option<String>,
    /// Labels.
    pub labels: Labels,
    /// Annotations.
    pub annotations: Labels,
    /// The cgroup, as the file spells it; there may be one for each hierarchy.
    pub cgroups: Vec<Recorded>,
}

/// The cgroup that a runtime recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recorded {
    /// `cgroupsPath` of a bundle: a path, or `SLICE:PREFIX:NAME`.
    Asked(String),
    /// A path below `/sys/fs/cgroup`, as runc made it.
    Folder(String),
    /// A path within the hierarchies, as crun made it.
    Path(String),
}

#[derive(Deserialize)]
struct Bundle {
    #[serde(default)]
    annotations: Labels,
    linux: Option<Linux>,
}

#[derive(Deserialize)]
struct Linux {
    #[serde(rename = "cgroupsPath")]
    cgroups_path: Option<String>,
}

/// `config.json` of an OCI bundle.
///
/// # Errors
/// When it is not one.
pub fn bundle(bytes: &[u8]) -> Result<Facts, String> {
    let Bundle { annotations, linux } = json(bytes)?;
    let asked = linux.and_then(|linux| linux.cgroups_path).filter(|path| !path.is_empty());
    let cgroups = asked.map(Recorded::Asked).into_iter().collect();
    Ok(Facts { annotations, cgroups, ..Facts::default() })
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Docker {
    name: Option<String>,
    config: Option<DockerConfig>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct DockerConfig {
    image: Option<String>,
    #[serde(default)]
    labels: Labels,
}

/// `config.v2.json` of Docker.
///
/// # Errors
/// When it is not one.
pub fn docker(bytes: &[u8]) -> Result<Facts, String> {
    let Docker { name, config } = json(bytes)?;
    let name = name.map(|name| name.trim_start_matches('/').to_owned());
    let config = config.ok_or("it has no Config")?;
    Ok(Facts {
        name: bounded(name),
        image: bounded(config.image),
        labels: config.labels,
        ..Facts::default()
    })
}

#[derive(Deserialize)]
struct Stored {
    id: String,
    #[serde(default)]
    names: Option<Vec<String>>,
    metadata: Option<String>,
}

#[derive(Deserialize)]
struct StoredMetadata {
    #[serde(rename = "image-name")]
    image: Option<String>,
}

/// Name and image of a container in `containers.json`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoredNames {
    /// Its first name.
    pub name: Option<String>,
    /// Its image.
    pub image: Option<String>,
}

/// `containers.json` of containers/storage, by id.
///
/// # Errors
/// When it is not one.
pub fn storage(bytes: &[u8]) -> Result<BTreeMap<String, StoredNames>, String> {
    let all: Vec<Stored> = json(bytes)?;
    let names_of = |stored: Stored| {
        let metadata = stored
            .metadata
            .as_deref()
            .and_then(|text| serde_json::from_str::<StoredMetadata>(text).ok());
        let name = stored.names.unwrap_or_default().into_iter().next();
        let image = metadata.and_then(|metadata| metadata.image);
        (stored.id, StoredNames { name: bounded(name), image: bounded(image) })
    };
    Ok(all.into_iter().map(names_of).collect())
}

#[derive(Deserialize)]
struct Runc {
    config: Option<RuncConfig>,
    #[serde(default)]
    cgroup_paths: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
struct RuncConfig {
    #[serde(default)]
    labels: Option<Vec<String>>,
}

/// `state.json` of runc. Its label `bundle` names a folder that is not opened: others may write it.
///
/// # Errors
/// When it is not one.
pub fn runc(bytes: &[u8]) -> Result<Facts, String> {
    let Runc { config, cgroup_paths } = json(bytes)?;
    let mut annotations = Labels::default();
    for label in config.and_then(|config| config.labels).unwrap_or_default() {
        if let Some((key, value)) = label.split_once('=').filter(|(key, _)| *key != "bundle") {
            annotations.add(key, value);
        }
    }
    let made = cgroup_paths.unwrap_or_default().into_values().take(MOST_LABELS);
    Ok(Facts { annotations, cgroups: made.map(Recorded::Folder).collect(), ..Facts::default() })
}

#[derive(Deserialize)]
struct Crun {
    #[serde(rename = "cgroup-path")]
    cgroup_path: Option<String>,
    /// What has none is no status of crun.
    #[serde(rename = "pid")]
    _pid: IgnoredAny,
}

/// `status` of crun.
///
/// # Errors
/// When it is not one.
pub fn crun(bytes: &[u8]) -> Result<Facts, String> {
    let Crun { cgroup_path, .. } = json(bytes)?;
    let made = cgroup_path.filter(|path| !path.is_empty());
    Ok(Facts { cgroups: made.map(Recorded::Path).into_iter().collect(), ..Facts::default() })
}

fn bounded(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty() && text.len() <= MOST_VALUE)
}

#[cfg(test)]
mod tests;
