//! What kubelet's cgroups say: the pod and its class of service.
//!
//! kubelet's cgroupfs driver writes `/kubepods/burstable/podUID`, its systemd driver
//! `/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podUID.slice`, with `_` for each `-` of the id.
//! Either may be
//! below another root (`kubelet.slice/kubelet-kubepods.slice/…`). Pods without a class in the path are guaranteed.

use crate::path::is_id;

/// Class of service of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Qos {
    /// Its containers have all that they may use.
    Guaranteed,
    /// They have some of it.
    Burstable,
    /// They have what is left.
    BestEffort,
}

impl Qos {
    /// kubelet's name of it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Guaranteed => "guaranteed",
            Self::Burstable => "burstable",
            Self::BestEffort => "besteffort",
        }
    }

    fn of(name: &str) -> Option<Self> {
        [Self::Burstable, Self::BestEffort].into_iter().find(|class| class.name() == name)
    }
}

/// A pod, as its cgroup names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pod {
    /// The id that the cluster gave it.
    pub uid: String,
    /// Its class of service.
    pub qos: Qos,
}

impl Pod {
    /// The pod of a slice of systemd: `kubepods[-CLASS]-podUID.slice`.
    pub(crate) fn of_slice(slice: &str) -> Option<Self> {
        let (_, rest) = slice.strip_suffix(".slice")?.split_once("kubepods-")?;
        let (qos, uid) = match rest.strip_prefix("pod") {
            Some(uid) => (Qos::Guaranteed, uid),
            None => {
                let (class, pod) = rest.split_once('-')?;
                (Qos::of(class)?, pod.strip_prefix("pod")?)
            }
        };
        let uid = uid.replace('_', "-");
        is_id(&uid).then_some(Self { uid, qos })
    }
}

/// What a part of a path is to kubelet.
pub(crate) enum PodPart {
    /// The cgroup of all pods.
    Root,
    /// That of a class of service.
    Class(Qos),
    /// A pod's.
    Pod(Pod),
    /// Not kubelet's.
    Other,
}

impl PodPart {
    /// Below the root of all pods, and of this class, if any was named before.
    pub fn of(part: &str, has_root: bool, class: Option<Qos>) -> Self {
        if let Some(pod) = Pod::of_slice(part) {
            return Self::Pod(pod);
        }
        let slice = part.strip_suffix(".slice").unwrap_or(part);
        if slice == "kubepods" || slice.ends_with("-kubepods") {
            return Self::Root;
        }
        if !has_root {
            return Self::Other;
        }
        match (Qos::of(part), part.strip_prefix("pod").filter(|uid| is_id(uid))) {
            (Some(class), _) => Self::Class(class),
            (None, Some(uid)) if !part.ends_with(".slice") => {
                Self::Pod(Pod { uid: uid.to_owned(), qos: class.unwrap_or(Qos::Guaranteed) })
            }
            _ => Self::Other,
        }
    }
}
