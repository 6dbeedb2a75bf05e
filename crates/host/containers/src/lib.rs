//! What a cgroup is: the pod, the container, the image of a process, from files that others wrote.
//!
//! # Problem
//! People name programs by pods, containers, images and labels; the kernel knows cgroups. What connects the two are
//! the state files of the runtimes. Their sockets and clients would be a dependency on each of them, and power over
//! them.
//!
//! # Approach
//! `/proc/PID/cgroup` ([`main_path`]) → path → [`parse`]: runtime and id → state file → [`Identity`].
//! [`Containers`] does it all, and remembers it for each cgroup.
//!
//! What is believed: root's state folders count for all processes, if the cgroup that they record is the one of the
//! process, since its name alone can be borrowed; a user's folders count for that user's processes ([`Owner`]). Ids
//! are one part of a path, links are not followed, files are regular, at most 16 MiB long, and belong to root or to
//! that user; labels are at most 1,000 of 64 KiB. Paths that state files name (a bundle's) are never opened.
//!
//! A name is only a name: two containers may have the same, and a rule for one is a rule for both. A rule gives a
//! program nothing that its user could not have by `symbiont run`.
//!
//! # Terms and units
//! *Runtime*: what starts containers, or manages those that do. *Bundle*: the folder of a container with its
//! `config.json`, as the
//! OCI runtime specification names it. *Sandbox*: the container that holds a pod together.
//!
//! # Properties
//! Each module lists its own. Hostile state is refused or harmless (`tests/hostile.rs`); states of real tools are read
//! (`tests/runtimes.rs`, and `scripts/containers-trial.sh` with the tools themselves).

mod cache;
pub mod files;
mod folders;
mod id;
mod identity;
mod kube;
mod labels;
mod lines;
mod lookup;
mod names;
mod owner;
mod path;
mod read;
mod recorded;
mod slurm;

pub use cache::{Containers, Note};
pub use folders::Folders;
pub use id::is_id;
pub use identity::Identity;
pub use kube::{Pod, Qos};
pub use labels::{Labels, MOST_KEY, MOST_LABELS, MOST_VALUE};
pub use lines::{main_path, paths};
pub use names::Names;
pub use owner::{Owner, Subordinates};
pub use path::{ContainerRef, Runtime, candidates, parse};
pub use read::{MOST_BYTES, ReadError};
pub use slurm::SlurmStep;
