//! The containers of this machine, remembered by their cgroups.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::folders::Folders;
use crate::lookup::{Found, Lists, Lookup, Source};
use crate::path::{ContainerRef, candidates, parse};
use crate::{Identity, Owner, ReadError, lines, names};

/// A container's files are looked at no more often.
const LOOK: Duration = Duration::from_secs(1);
/// State that could not be read is tried again after this time, then after twice that, and so on.
const AGAIN: Duration = Duration::from_secs(1);
/// Doublings of that time.
const MOST_DOUBLINGS: u32 = 8;
/// Cgroups that are gone are forgotten this often.
const SWEEP: Duration = Duration::from_secs(30);
/// Cgroups that are remembered; with more all are read anew.
const MOST_CGROUPS: usize = 50_000;
/// Notes that wait to be taken.
const MOST_NOTES: usize = 100;
/// Hierarchies of cgroups, below `/sys/fs/cgroup`.
const HIERARCHIES: [&str; 7] = ["", "unified", "systemd", "cpu", "cpu,cpuacct", "cpuset", "memory"];

/// State that could not be read, for the log.
#[derive(Debug)]
pub struct Note {
    /// The cgroup.
    pub cgroup: String,
    /// Why not.
    pub error: ReadError,
}

/// What is known of the containers of this machine.
///
/// # Problem
/// A scan asks for thousands of processes, once a second, which containers they are in; the files that say so hardly
/// ever change, belong to others, and may be missing, broken or hostile.
///
/// # Approach
/// What was read is kept for each cgroup and user. It is read again when one of its files is another one by device,
/// inode, length or time, which is looked at once a second at most. What could not be read gives what the path says, is
/// noted once for each container, and is tried again after 1 s, then more and more seldom. A runtime makes the cgroup
/// first, so state that is missing is noted when it still is at the second look. Cgroups that are gone are forgotten.
/// The lists of podman's names are shared by all its containers, and change with each of them: one that changed is
/// read once, and only those whose names it changed are read again.
///
/// # Properties
/// - Unchanged files are not opened again (`thousands_of_cgroups_cost_each_file_once`).
/// - A changed file is read again, and a cgroup that is gone is forgotten (`a_changed_file_is_read_again`); so is the
///   state of a container that was renamed, and of no other (`a_renamed_container_has_its_new_name`).
/// - Trouble is noted once and mended by itself (`what_cannot_be_read_is_noted_once_and_tried_again`), and a
///   container that just starts is no trouble (`state_may_come_a_moment_after_the_cgroup`).
/// - However many users and cgroups a container has, it is noted once (`a_container_of_many_users_is_noted_once`).
/// - The state of another cgroup, or of another user, is not believed (`a_borrowed_name_gives_nothing`,
///   `a_users_state_counts_for_the_users_processes_alone`).
#[derive(Debug, Default)]
pub struct Containers {
    folders: Folders,
    entries: BTreeMap<(String, u32), Entry>,
    lists: Lists,
    notes: Vec<Note>,
    /// Cgroups of containers that were noted.
    noted: BTreeSet<String>,
    opened: u64,
    swept: Option<Instant>,
}

#[derive(Debug)]
struct Entry {
    identity: Option<Arc<Identity>>,
    sources: Vec<Source>,
    looked: Instant,
    /// When to try again what could not be read, and how often that was done.
    again: Option<(Instant, u32)>,
}

impl Containers {
    /// With state in these folders.
    #[must_use]
    pub fn new(folders: Folders) -> Self {
        Self { folders, ..Self::default() }
    }

    /// Other folders from now on; all is read anew.
    pub fn set_folders(&mut self, folders: Folders) {
        if self.folders != folders {
            *self = Self::new(folders);
        }
    }

    /// The container of a process; none if it is in no container. `lines`: its `/proc/PID/cgroup`.
    pub fn identify(&mut self, lines: &str, owner: &Owner, now: Instant) -> Option<Arc<Identity>> {
        let paths = lines::paths(lines);
        let main = (*paths.first()?).to_owned();
        let key = (main, owner.uid);
        let mut tries = 0;
        if let Some(entry) = self.entries.get_mut(&key) {
            if entry.is_current(&self.folders, &mut self.lists, &mut self.opened, now) {
                return entry.identity.clone();
            }
            tries = entry.again.map_or(0, |(_, tries)| tries);
        }
        let entry = self.read(&paths, owner, now, tries)?;
        if self.entries.len() >= MOST_CGROUPS {
            self.entries.clear();
        }
        let identity = entry.identity.clone();
        self.entries.insert(key, entry);
        identity
    }

    /// What could not be read since the last call.
    pub fn take_notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }

    /// How many state files were opened so far.
    #[must_use]
    pub fn opened(&self) -> u64 {
        self.opened
    }

    /// How many cgroups are remembered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Is none remembered?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Forgets what is gone, from time to time; to be called with each scan.
    pub fn sweep(&mut self, now: Instant) {
        if self.swept.is_some_and(|swept| now.saturating_duration_since(swept) < SWEEP) {
            return;
        }
        self.swept = Some(now);
        // What is mounted of a host's files need not have its cgroups.
        let mounts = [self.folders.root.as_path(), Path::new("/")];
        let mounts = mounts.map(|root| root.join("sys/fs/cgroup"));
        let exists = |cgroup: &str| {
            let cgroup = cgroup.trim_start_matches('/');
            let is_in = |mount: &PathBuf| {
                HIERARCHIES.iter().any(|name| mount.join(name).join(cgroup).is_dir())
            };
            // Outside of all that is mounted.
            cgroup.starts_with("..") || mounts.iter().any(is_in)
        };
        self.entries.retain(|(cgroup, _), _| exists(cgroup));
        self.noted.retain(|cgroup| exists(cgroup));
        let lists: BTreeSet<PathBuf> = self
            .entries
            .values()
            .flat_map(|entry| entry.sources.iter().map(|source| source.location.full(&source.file)))
            .collect();
        let is_used = |list: &PathBuf| {
            list.parent().is_some_and(|of| lists.iter().any(|path| path.starts_with(of)))
        };
        self.lists.retain(|list, _| is_used(list));
    }

    fn note(&mut self, cgroup: &str, error: ReadError) {
        if self.noted.len() >= MOST_CGROUPS {
            self.noted.clear();
        }
        if self.notes.len() < MOST_NOTES && self.noted.insert(cgroup.to_owned()) {
            self.notes.push(Note { cgroup: cgroup.to_owned(), error });
        }
    }

    /// None: no path can be that of a container.
    fn read(&mut self, paths: &[&str], owner: &Owner, now: Instant, tries: u32) -> Option<Entry> {
        let mut named: Vec<Vec<ContainerRef>> = paths.iter().map(|path| parse(path)).collect();
        named.retain(|refs| !refs.is_empty());
        let mut error = None;
        let mut lookup = Lookup {
            folders: &self.folders,
            owner,
            lists: &mut self.lists,
            opened: &mut self.opened,
        };
        let mut entry = Entry { identity: None, sources: Vec::new(), looked: now, again: None };
        for refs in &named {
            if let Some((identity, sources)) = innermost(&mut lookup, refs, &mut error) {
                if let Some(outermost) = refs.first() {
                    self.noted.remove(&outermost.cgroup);
                }
                entry.fill(identity, sources);
                return Some(entry);
            }
        }
        entry.again =
            Some((now + AGAIN * 2u32.pow(tries.min(MOST_DOUBLINGS)), tries.saturating_add(1)));
        if let Some(outermost) = named.first().and_then(|refs| refs.first()) {
            let identity = Identity::of_path(outermost);
            let may_come = |error: &ReadError| tries == 0 && matches!(error, ReadError::Missing);
            if let Some(error) = error.filter(|error| !may_come(error)) {
                self.note(&identity.cgroup, error);
            }
            entry.identity = Some(Arc::new(identity));
            return Some(entry);
        }
        let possible: Vec<ContainerRef> = paths.iter().flat_map(|path| candidates(path)).collect();
        if possible.is_empty() {
            return None;
        }
        for of in &possible {
            if let Ok(found) = lookup.find(of, true) {
                let (identity, sources) = complete(&mut lookup, of, found);
                entry.fill(identity, sources);
                entry.again = None;
                break;
            }
        }
        Some(entry)
    }
}

impl Entry {
    fn fill(&mut self, identity: Identity, sources: Vec<Source>) {
        self.identity = Some(Arc::new(identity));
        self.sources = sources;
    }

    fn is_current(
        &mut self,
        folders: &Folders,
        lists: &mut Lists,
        opened: &mut u64,
        now: Instant,
    ) -> bool {
        if let Some((again, _)) = self.again {
            return now < again;
        }
        if now.saturating_duration_since(self.looked) < LOOK {
            return true;
        }
        self.looked = now;
        self.sources.iter().all(|source| source.is_current(folders, lists, opened))
    }
}

/// The innermost container of a path whose state can be read; and the name of the one around it.
fn innermost(
    lookup: &mut Lookup<'_>,
    refs: &[ContainerRef],
    error: &mut Option<ReadError>,
) -> Option<(Identity, Vec<Source>)> {
    for (at, of) in refs.iter().enumerate().rev() {
        let is_complete = matches!(of.runtime, crate::Runtime::Nspawn | crate::Runtime::Slurm);
        let found = match lookup.find(of, at == 0) {
            // The path says all that there is.
            Err(_) if is_complete && at == 0 => Some((Identity::of_path(of), Vec::new())),
            Err(why) => {
                error.get_or_insert(why);
                None
            }
            Ok(found) => Some(complete(lookup, of, found)),
        };
        let Some((mut identity, mut sources)) = found else { continue };
        if let Some(outer) = at.checked_sub(1).and_then(|at| refs.get(at)) {
            let around = match lookup.find(outer, at == 1) {
                Ok(found) => {
                    let (identity, others) = complete(lookup, outer, found);
                    sources.extend(others);
                    identity
                }
                Err(_) => Identity::of_path(outer),
            };
            identity.outer = Some(around.display());
        }
        return Some((identity, sources));
    }
    None
}

/// The identity that state gives, with what the container of its pod adds.
fn complete(lookup: &mut Lookup<'_>, of: &ContainerRef, found: Found) -> (Identity, Vec<Source>) {
    let Found { mut facts, stated_by, mut sources } = found;
    names::unpack(&mut facts);
    let named = names::names(&facts);
    let mut identity = Identity::of_path(of);
    identity.stated_by = Some(stated_by);
    let sandbox = named.sandbox.clone().filter(|id| *id != of.id && crate::id::is_id(id));
    identity.add(named);
    (identity.labels, identity.annotations) = (facts.labels, facts.annotations);
    if let Some(id) = sandbox {
        // In the same folder, as the same user: no cgroup needs to agree.
        let pod = ContainerRef { id, ..of.clone() };
        if let Ok(Found { facts: mut of_pod, sources: others, .. }) =
            lookup.find_pod(&pod, stated_by)
        {
            names::unpack(&mut of_pod);
            let named = names::names(&of_pod);
            identity.add(crate::Names { container: None, image: None, ..named });
            identity.labels.add_all(&of_pod.labels);
            identity.annotations.add_all(&of_pod.annotations);
            sources.extend(others);
        }
    }
    (identity, sources)
}
