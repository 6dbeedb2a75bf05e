//! What is known around the processes: users, their subordinate uids, containers.

use std::collections::HashMap;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use procfs::process::Process;
use symbiont_containers::{Containers, Folders, Identity, Owner, Runtime, Subordinates};
use symbiont_linux::actuate::CgroupPaths;

/// The file of subordinate uids is read again after this time.
const FRESH: Duration = Duration::from_secs(60);
const SUBORDINATES: &str = "etc/subuid";
/// Bytes of the list of a process's cgroups that are read.
const MOST_CGROUPS: u64 = 256 << 10;

/// Said where cgroups of other processes are out of sight.
const BLIND_SPOT: &str = "the cgroups of other processes are not seen: this daemon is in a cgroup namespace, and \
    /sys/fs/cgroup of the node is not mounted here. Rules by cgroup match nothing, no quota is named, and cpusets are \
    asked of the threads themselves. Mount /sys/fs/cgroup of the node at /sys/fs/cgroup, read-only";

/// A user, as the system's databases have it.
#[derive(Debug, Clone)]
struct User {
    name: String,
    home: PathBuf,
}

/// Users and containers of this machine, as far as they were asked for.
#[derive(Debug, Default)]
pub struct Surroundings {
    users: HashMap<u32, Option<User>>,
    subordinates: Subordinates,
    read: Option<Instant>,
    root: PathBuf,
    containers: Containers,
    cgroups: CgroupPaths,
}

impl Surroundings {
    /// As this process sees them.
    #[must_use]
    pub fn find() -> Self {
        Self { cgroups: CgroupPaths::find(), ..Self::default() }
    }

    /// Are there cgroups of which only a part of the path is seen? What is missing, in words.
    #[must_use]
    pub fn blind_spot(&self) -> Option<&'static str> {
        self.cgroups.lead_out().then_some(BLIND_SPOT)
    }

    /// With the state of containers in these folders.
    pub fn set_folders(&mut self, folders: Folders) {
        self.root.clone_from(&folders.root);
        self.read = None;
        self.containers.set_folders(folders);
    }

    /// The name of a user.
    pub fn name_of(&mut self, uid: u32) -> Option<String> {
        self.user(uid).map(|user| user.name.clone())
    }

    /// The container of a process that runs as this user; `lines`: its `/proc/PID/cgroup`.
    pub fn container(&mut self, lines: &str, uid: u32, now: Instant) -> Option<Arc<Identity>> {
        if self.read.is_none_or(|read| now.saturating_duration_since(read) >= FRESH) {
            self.read = Some(now);
            let text = symbiont_safe_open::read_to_string(&self.root.join(SUBORDINATES));
            let uid_of = |name: &str| uzers::get_user_by_name(name).map(|user| user.uid());
            self.subordinates = Subordinates::parse(&text.unwrap_or_default(), uid_of);
        }
        let uid = self.subordinates.user_of(uid);
        let home = self.user(uid).map(|user| user.home.clone());
        self.containers.identify(lines, &Owner { uid, home }, now)
    }

    /// The container of a process now; a step of a job is none.
    pub fn container_of(&mut self, process: u32) -> Option<Arc<Identity>> {
        let process = Process::new(i32::try_from(process).ok()?).ok()?;
        let (lines, uid) = (self.cgroups_of(&process)?, process.uid().ok()?);
        self.container(&lines, uid, Instant::now()).filter(|of| is_container(of))
    }

    /// Its `/proc/PID/cgroup`, with paths from the top of what is mounted.
    pub(crate) fn cgroups_of(&self, process: &Process) -> Option<String> {
        let text = text_of(process, "cgroup", MOST_CGROUPS).ok()?;
        Some(self.cgroups.of_lines(&text).into_owned())
    }

    /// Ends a round of looks: forgets what is gone, and gives what could not be read.
    pub fn end_round(&mut self) -> Vec<String> {
        self.containers.sweep(Instant::now());
        let notes = self.containers.take_notes();
        notes
            .into_iter()
            .map(|note| {
                format!("the container of cgroup {} has no names: {}", note.cgroup, note.error)
            })
            .collect()
    }

    fn user(&mut self, uid: u32) -> Option<&User> {
        let find = || {
            let user = uzers::get_user_by_uid(uid)?;
            let home = uzers::os::unix::UserExt::home_dir(&user).to_owned();
            Some(User { name: user.name().to_string_lossy().into_owned(), home })
        };
        self.users.entry(uid).or_insert_with(find).as_ref()
    }
}

/// Does it count what is said of its pod? A pod is the cluster's: what the runtime of an ordinary user calls its
/// containers counts for that user alone.
pub(crate) fn is_of_cluster(of: &Identity) -> bool {
    let own = rustix::process::geteuid().as_raw();
    of.stated_by.is_some_and(|uid| [0, own].contains(&uid))
}

/// Is it what people call a container?
fn is_container(of: &Identity) -> bool {
    of.runtime != Runtime::Slurm
}

/// The start of a file of a process.
pub(crate) fn text_of(process: &Process, file: &str, most: u64) -> io::Result<String> {
    let opened = process.open_relative(file).map_err(io::Error::other)?;
    let mut bytes = Vec::new();
    opened.take(most).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
