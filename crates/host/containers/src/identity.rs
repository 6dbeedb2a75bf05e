//! What is known of a container.

use crate::kube::Qos;
use crate::path::{ContainerRef, Runtime};
use crate::slurm::SlurmStep;
use crate::{Labels, Names};

/// What is known of the container of a process. Names are what its makers call it, and two containers may have the
/// same:
/// they are distinguished by the cgroup and the owner of the state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// What made it.
    pub runtime: Runtime,
    /// The runtime's id of it.
    pub id: String,
    /// Its own cgroup; processes may be in cgroups below.
    pub cgroup: String,
    /// Its pod.
    pub pod: Option<String>,
    /// The pod's id in the cluster.
    pub pod_uid: Option<String>,
    /// The namespace of the pod.
    pub namespace: Option<String>,
    /// Its name.
    pub container: Option<String>,
    /// Its image.
    pub image: Option<String>,
    /// Labels, of the container and then of the pod.
    pub labels: Labels,
    /// Annotations, of the container and then of the pod. The labels of containerd's clients are here.
    pub annotations: Labels,
    /// Class of service of its pod.
    pub qos: Option<Qos>,
    /// Id of its podman pod.
    pub podman_pod: Option<String>,
    /// The step of a Slurm job that it is.
    pub step: Option<SlurmStep>,
    /// Display name of the container that it is in.
    pub outer: Option<String>,
    /// The user whose state says so: 0 is root. None: only the path says so.
    pub stated_by: Option<u32>,
}

/// Characters of a display name.
const MOST_DISPLAY: usize = 256;
/// Characters of an id, for people.
const SHORT_ID: usize = 12;

impl Identity {
    /// What a path says, without any state.
    pub(crate) fn of_path(found: &ContainerRef) -> Self {
        let pod = found.pod.as_ref();
        Self {
            runtime: found.runtime,
            id: found.id.clone(),
            cgroup: found.cgroup.clone(),
            pod: None,
            pod_uid: pod.map(|pod| pod.uid.clone()),
            namespace: None,
            // systemd calls a machine by its name.
            container: Some(found.id.clone()).filter(|_| found.runtime == Runtime::Nspawn),
            image: None,
            labels: Labels::default(),
            annotations: Labels::default(),
            qos: pod.map(|pod| pod.qos),
            podman_pod: found.podman_pod.clone(),
            step: found.step.clone(),
            outer: None,
            stated_by: None,
        }
    }

    /// Adds names where there are none yet.
    pub(crate) fn add(&mut self, names: Names) {
        let or = |mine: &mut Option<String>, other: Option<String>| *mine = mine.take().or(other);
        or(&mut self.pod, names.pod);
        or(&mut self.namespace, names.namespace);
        or(&mut self.pod_uid, names.pod_uid);
        or(&mut self.container, names.container);
        or(&mut self.image, names.image);
        or(&mut self.podman_pod, names.podman_pod);
    }

    /// `NAMESPACE/POD/CONTAINER`, as far as there are names; else the runtime and the start of the id. Without
    /// characters that act on a terminal.
    #[must_use]
    pub fn display(&self) -> String {
        let parts: Vec<&str> = [&self.namespace, &self.pod, &self.container]
            .into_iter()
            .flatten()
            .map(String::as_str)
            .collect();
        let name = match parts[..] {
            [] => format!(
                "{}/{}",
                self.runtime.name(),
                self.id.chars().take(SHORT_ID).collect::<String>()
            ),
            _ => parts.join("/"),
        };
        clean(&name)
    }

    /// `NAMESPACE/POD`, or the pod alone where it has no namespace.
    #[must_use]
    pub fn pod_path(&self) -> Option<String> {
        let pod = self.pod.as_ref()?;
        Some(
            self.namespace
                .as_ref()
                .map_or_else(|| pod.clone(), |namespace| format!("{namespace}/{pod}")),
        )
    }

    /// A label, or an annotation of that key: some runtimes keep labels among the annotations.
    #[must_use]
    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels.get(key).or_else(|| self.annotations.get(key))
    }

    /// An annotation, or a label of that key: Docker has no annotations.
    #[must_use]
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.annotations.get(key).or_else(|| self.labels.get(key))
    }
}

/// A text without control characters, and without those that turn the direction of writing or show nothing.
fn clean(text: &str) -> String {
    let acts = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    text.chars().take(MOST_DISPLAY).map(|c| if acts(c) { '?' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::path::parse;

    fn identity() -> Identity {
        Identity::of_path(&parse(&format!("/docker/{}", "a".repeat(64)))[0])
    }

    #[test]
    fn the_display_name_has_what_is_known() {
        let mut one = identity();
        assert_eq!(one.display(), "docker/aaaaaaaaaaaa");
        one.container = Some("web".to_owned());
        assert_eq!(one.display(), "web");
        one.pod = Some("web-0".to_owned());
        assert_eq!(one.pod_path().as_deref(), Some("web-0"));
        one.namespace = Some("shop".to_owned());
        assert_eq!(one.display(), "shop/web-0/web");
        assert_eq!(one.pod_path().as_deref(), Some("shop/web-0"));
    }

    proptest! {
        #[test]
        fn a_display_name_acts_on_no_terminal(name in "(?s).{0,300}") {
            let one = Identity { container: Some(name), ..identity() };
            let shown = one.display();
            let acts = shown.chars().any(|c| c.is_control() || c == '\u{202e}');
            prop_assert!(!acts);
            prop_assert!(shown.chars().count() <= MOST_DISPLAY);
        }
    }
}
