//! The names of a container among its annotations and labels.
//!
//! containerd's CRI writes `io.kubernetes.cri.*`; CRI-O writes `io.kubernetes.cri-o.*`, among them the labels and
//! annotations of the pod as JSON; kubelet labels what it starts with `io.kubernetes.{pod,container}.*`, which CRI-O
//! and Docker keep. podman writes a few of CRI-O's keys, where `SandboxID` is the id of its pod, not of a container.

use serde::Deserialize;

use crate::Labels;
use crate::files::Facts;

/// Names, as far as they are there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    /// Name of the pod.
    pub pod: Option<String>,
    /// Its namespace.
    pub namespace: Option<String>,
    /// Its id in the cluster.
    pub pod_uid: Option<String>,
    /// The container's name.
    pub container: Option<String>,
    /// Its image.
    pub image: Option<String>,
    /// The container that holds its pod together, unless it is that itself.
    pub sandbox: Option<String>,
    /// Its pod of podman.
    pub podman_pod: Option<String>,
}

const CRIO_LABELS: &str = "io.kubernetes.cri-o.Labels";
const CRIO_ANNOTATIONS: &str = "io.kubernetes.cri-o.Annotations";

/// Puts the labels and annotations that CRI-O wrote as JSON among the others.
pub(crate) fn unpack(facts: &mut Facts) {
    let of = |key| facts.annotations.get(key).map(Labels::of_json).unwrap_or_default();
    let (labels, annotations) = (of(CRIO_LABELS), of(CRIO_ANNOTATIONS));
    facts.labels.add_all(&labels);
    facts.annotations.add_all(&annotations);
}

/// The names in a file, once unpacked.
pub(crate) fn names(facts: &Facts) -> Names {
    let get = |key: &str| facts.annotations.get(key).or_else(|| facts.labels.get(key));
    let first = |keys: &[&str]| {
        keys.iter().find_map(|key| get(key)).filter(|value| !value.is_empty()).map(str::to_owned)
    };
    let is_podman = get("io.container.manager") == Some("libpod");
    let sandbox = first(&["io.kubernetes.cri.sandbox-id", "io.kubernetes.cri-o.SandboxID"]);
    let kind = get("io.kubernetes.cri.container-type")
        .or_else(|| get("io.kubernetes.cri-o.ContainerType"));
    let (podman_pod, sandbox) = if is_podman { (sandbox, None) } else { (None, sandbox) };
    let container = first(&[
        "io.kubernetes.cri.container-name",
        "io.kubernetes.container.name",
        "nerdctl/name",
    ]);
    let in_metadata = || name_in_metadata(get("io.kubernetes.cri-o.Metadata")?);
    Names {
        pod: first(&[
            "io.kubernetes.cri.sandbox-name",
            "io.kubernetes.pod.name",
            "io.kubernetes.cri-o.KubeName",
        ]),
        namespace: first(&[
            "io.kubernetes.cri.sandbox-namespace",
            "io.kubernetes.pod.namespace",
            "io.kubernetes.cri-o.Namespace",
        ]),
        pod_uid: first(&["io.kubernetes.cri.sandbox-uid", "io.kubernetes.pod.uid"]),
        container: container.or_else(in_metadata).or_else(|| facts.name.clone()),
        image: first(&[
            "io.kubernetes.cri.image-name",
            "io.kubernetes.cri-o.ImageName",
            "io.kubernetes.cri-o.Image",
        ])
        .or_else(|| facts.image.clone()),
        sandbox: sandbox.filter(|_| kind != Some("sandbox")),
        podman_pod,
    }
}

fn name_in_metadata(text: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Metadata {
        name: Option<String>,
    }
    serde_json::from_str::<Metadata>(text).ok()?.name.filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::bundle;

    fn read(annotations: &str) -> (Facts, Names) {
        let mut facts = bundle(format!(r#"{{"annotations":{annotations}}}"#).as_bytes()).unwrap();
        unpack(&mut facts);
        let names = names(&facts);
        (facts, names)
    }

    #[test]
    fn names_of_containerd_are_found() {
        let (_, names) = read(
            r#"{"io.kubernetes.cri.container-type":"container","io.kubernetes.cri.sandbox-name":"web-0",
            "io.kubernetes.cri.sandbox-namespace":"shop","io.kubernetes.cri.sandbox-uid":"u",
            "io.kubernetes.cri.container-name":"nginx","io.kubernetes.cri.image-name":"nginx:1",
            "io.kubernetes.cri.sandbox-id":"s"}"#,
        );
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            (names.pod, names.namespace, names.container),
            (some("web-0"), some("shop"), some("nginx"))
        );
        assert_eq!(
            (names.image, names.sandbox, names.pod_uid),
            (some("nginx:1"), some("s"), some("u"))
        );
    }

    #[test]
    fn names_of_crio_are_found_in_its_json() {
        let (facts, names) = read(
            r#"{"io.kubernetes.cri-o.ContainerType":"container","io.kubernetes.cri-o.SandboxID":"s",
            "io.kubernetes.cri-o.Namespace":"shop",
            "io.kubernetes.cri-o.Labels":"{\"io.kubernetes.pod.name\":\"web-0\"}",
            "io.kubernetes.cri-o.Annotations":"{\"symbiont.dev/class\":\"batch\"}",
            "io.kubernetes.cri-o.Metadata":"{\"name\":\"nginx\",\"attempt\":1}",
            "io.kubernetes.cri-o.ImageName":"nginx:1"}"#,
        );
        let (pod, container) = (names.pod.as_deref(), names.container.as_deref());
        assert_eq!(
            (pod, container, names.sandbox.as_deref()),
            (Some("web-0"), Some("nginx"), Some("s"))
        );
        assert_eq!(facts.annotations.get("symbiont.dev/class"), Some("batch"));
        assert_eq!(facts.labels.get("io.kubernetes.pod.name"), Some("web-0"));
    }

    #[test]
    fn the_pod_of_podman_is_no_container() {
        let (_, names) = read(
            r#"{"io.container.manager":"libpod","io.kubernetes.cri-o.SandboxID":"p",
            "io.kubernetes.cri-o.ContainerType":"container"}"#,
        );
        assert_eq!((names.sandbox, names.podman_pod.as_deref()), (None, Some("p")));
    }
}
