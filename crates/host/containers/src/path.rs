//! The containers that the path of a cgroup names.
//!
//! # Problem
//! Each runtime, and each of its cgroup drivers, spells the cgroup of a container in its own way; kubelet puts pods and
//! classes of service around it, systemd writes a slice for each, and a container can hold another runtime's
//! containers.
//!
//! # Approach
//! [`parse`] goes down the path, part by part, and gives every container that it passes, the outermost one first,
//! each with the path that leads to it. Parts that are systemd's name the runtime (`docker-ID.scope`); those of
//! cgroupfs name it by the part before (`/docker/ID`). Where a path has no spelling of a runtime, [`candidates`] are
//! parts that could be an id; only state files can say whether they are.
//!
//! # Terms and units
//! *Id*: what a runtime calls a container, of the characters `[0-9A-Za-z_.-]`, so it can never be a path ([`is_id`]).
//!
//! # Properties
//! - Every spelling is read (`every_spelling_is_read`), and what only looks like one is not
//!   (`what_is_no_container_has_none`).
//! - An id never leads out of a folder (`an_id_is_never_a_path`).
//! - What is found lies on the path (`what_is_found_lies_on_the_path`).

use crate::id::is_id;
use crate::kube::{Pod, PodPart};
use crate::slurm::SlurmStep;

/// What made a container, as far as its path says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Runtime {
    /// containerd, for kubelet or others.
    Containerd,
    /// CRI-O.
    Crio,
    /// One of kubelet's runtimes: under cgroupfs the path does not say which.
    Cri,
    /// Docker.
    Docker,
    /// podman.
    Podman,
    /// systemd-nspawn, or another manager of machines.
    Nspawn,
    /// A step of a Slurm job: no container, but a group that is named like one.
    Slurm,
    /// runc or crun without a manager, or a containerd client with paths of its own.
    Oci,
}

impl Runtime {
    /// Its name, for people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Containerd => "containerd",
            Self::Crio => "cri-o",
            Self::Cri => "cri",
            Self::Docker => "docker",
            Self::Podman => "podman",
            Self::Nspawn => "nspawn",
            Self::Slurm => "slurm",
            Self::Oci => "oci",
        }
    }
}

/// A container that a path names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerRef {
    /// What made it.
    pub runtime: Runtime,
    /// Its id, or the name of a machine.
    pub id: String,
    /// The path of its own cgroup: the given one up to it.
    pub cgroup: String,
    /// Its pod, where kubelet's path names it.
    pub pod: Option<Pod>,
    /// Id of its podman pod, where the path names it.
    pub podman_pod: Option<String>,
    /// The step of a Slurm job that it is.
    pub step: Option<SlurmStep>,
}

/// Containers within each other that are looked at.
const MOST_NESTED: usize = 16;
/// Parts of an unknown path that are looked for.
const MOST_CANDIDATES: usize = 4;

/// Ids that managers draw: 64 hexadecimal digits.
fn is_drawn(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The containers that a path names, the outermost one first.
#[must_use]
pub fn parse(path: &str) -> Vec<ContainerRef> {
    let parts: Vec<&str> = path.split('/').collect();
    let mut found = Vec::new();
    let (mut pod, mut podman_pod, mut has_kubepods) = (None::<Pod>, None, false);
    let mut qos = None;
    for (at, part) in parts.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|before| parts.get(before)).copied().unwrap_or("");
        match PodPart::of(part, has_kubepods, qos) {
            PodPart::Root => (has_kubepods, qos) = (true, None),
            PodPart::Class(class) => qos = Some(class),
            PodPart::Pod(of) => pod = Some(of),
            PodPart::Other => {}
        }
        if let Some(id) = podman_pod_of(part) {
            podman_pod = Some(id.to_owned());
        }
        let is_in_pod =
            pod.is_some() && matches!(PodPart::of(before, has_kubepods, qos), PodPart::Pod(_));
        let named = scope(part)
            .or_else(|| with_colons(part))
            .or_else(|| cgroupfs(before, part, is_in_pod))
            .or_else(|| machine(part));
        let step = SlurmStep::at(&parts, at);
        let Some((runtime, id)) = named.or_else(|| {
            let step = step.as_ref()?;
            Some((Runtime::Slurm, step.name()))
        }) else {
            continue;
        };
        let pod_of_colons = part.split_once(':').and_then(|(slice, _)| Pod::of_slice(slice));
        found.push(ContainerRef {
            runtime,
            id,
            cgroup: parts.get(..=at).unwrap_or_default().join("/"),
            pod: pod_of_colons.or_else(|| pod.take()),
            podman_pod: podman_pod.take().filter(|_| runtime == Runtime::Podman),
            step,
        });
        (has_kubepods, qos) = (false, None);
        pod = None;
    }
    found.truncate(MOST_NESTED);
    found
}

/// Parts of a path that could be the id of a container of runc, crun or a containerd client, the innermost one first.
#[must_use]
pub fn candidates(path: &str) -> Vec<ContainerRef> {
    let parts: Vec<&str> = path.split('/').collect();
    let could_be = |part: &str| {
        let is_unit = [".slice", ".service", ".scope", ".mount", ".socket"]
            .iter()
            .any(|end| part.ends_with(end));
        is_id(part) && !is_unit
    };
    let ends =
        (0..parts.len()).rev().filter(|at| parts.get(*at).is_some_and(|part| could_be(part)));
    ends.take(MOST_CANDIDATES)
        .filter_map(|at| {
            Some(ContainerRef {
                runtime: Runtime::Oci,
                id: (*parts.get(at)?).to_owned(),
                cgroup: parts.get(..=at)?.join("/"),
                pod: None,
                podman_pod: None,
                step: None,
            })
        })
        .collect()
}

/// A scope of systemd, or what podman and CRI-O call theirs under cgroupfs.
fn scope(part: &str) -> Option<(Runtime, String)> {
    let is_scope = part.ends_with(".scope");
    let name = part.strip_suffix(".scope").unwrap_or(part);
    let prefixes = [
        ("cri-containerd-", Runtime::Containerd, false),
        ("nerdctl-", Runtime::Containerd, false),
        ("crio-", Runtime::Crio, true),
        ("docker-", Runtime::Docker, false),
        ("libpod-", Runtime::Podman, true),
    ];
    prefixes.iter().find_map(|(prefix, runtime, also_bare)| {
        let id = name.strip_prefix(prefix).filter(|id| is_drawn(id) && (is_scope || *also_bare))?;
        Some((*runtime, id.to_owned()))
    })
}

/// containerd's cgroupfs driver under kubelet's systemd driver: `SLICE:cri-containerd:ID`.
fn with_colons(part: &str) -> Option<(Runtime, String)> {
    let mut fields = part.split(':');
    let (_, prefix, id) = (fields.next()?, fields.next()?, fields.next()?);
    let runtime = match prefix {
        "cri-containerd" => Runtime::Containerd,
        "crio" => Runtime::Crio,
        "docker" => Runtime::Docker,
        "libpod" => Runtime::Podman,
        _ => return None,
    };
    (fields.next().is_none() && is_drawn(id)).then(|| (runtime, id.to_owned()))
}

fn cgroupfs(before: &str, part: &str, is_in_pod: bool) -> Option<(Runtime, String)> {
    let runtime = match before {
        _ if is_in_pod => Runtime::Cri,
        "docker" => Runtime::Docker,
        _ => return None,
    };
    is_drawn(part).then(|| (runtime, part.to_owned()))
}

/// A machine of systemd: `machine-NAME.scope`, `systemd-nspawn@NAME.service`.
fn machine(part: &str) -> Option<(Runtime, String)> {
    let scope = part.strip_prefix("machine-").and_then(|rest| rest.strip_suffix(".scope"));
    let service = || part.strip_prefix("systemd-nspawn@")?.strip_suffix(".service");
    let name = unescape(scope.or_else(service)?)?;
    is_id(&name).then_some((Runtime::Nspawn, name))
}

/// The id of a podman pod: `libpod_pod_ID` or `machine-libpod_pod_ID.slice`.
fn podman_pod_of(part: &str) -> Option<&str> {
    let part = part.strip_suffix(".slice").unwrap_or(part);
    let (_, id) = part.rsplit_once("libpod_pod_")?;
    Some(id).filter(|id| is_drawn(id))
}

/// A name as systemd escapes it: `\x2d` for `-`.
fn unescape(text: &str) -> Option<String> {
    let mut name = String::new();
    let mut rest = text;
    while let Some((plain, escaped)) = rest.split_once("\\x") {
        let byte = u8::from_str_radix(escaped.get(..2)?, 16).ok().filter(u8::is_ascii)?;
        name.push_str(plain);
        name.push(char::from(byte));
        rest = escaped.get(2..)?;
    }
    name.push_str(rest);
    Some(name)
}

#[cfg(test)]
mod tests;
