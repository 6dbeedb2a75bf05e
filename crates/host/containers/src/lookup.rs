//! Finds the state of one container in the folders of the runtimes.
//!
//! # Problem
//! The path of a cgroup gives an id and, at best, a runtime; which folder has the id is to be found out, and whether
//! the state there is that of this cgroup.
//!
//! # Approach
//! For each runtime the files that may have it, in an order: those with the most names first. Root's folders come
//! before the user's. What was recorded of the cgroup must be this one ([`crate::files::Recorded`]). State without a
//! recorded cgroup counts only where nothing else can have made the cgroup: for the outermost container of a path
//! that does not begin with a user's slice.
//!
//! # Properties
//! See [`crate::Containers`], whose tests look through it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::Owner;
use crate::files::{self, Facts, StoredNames};
use crate::folders::{Folders, Kind};
use crate::id::is_id;
use crate::path::{ContainerRef, Runtime};
use crate::read::{ReadError, Stamp, StateFolder, StateLocation};

/// Namespaces of one containerd that are looked through.
const MOST_NAMESPACES: usize = 64;
/// Drivers of containers/storage.
const DRIVERS: [&str; 4] = ["overlay", "vfs", "btrfs", "zfs"];
const TASKS: &str = "io.containerd.runtime.v2.task";

/// A file that an identity was read from.
#[derive(Debug)]
pub(crate) struct Source {
    /// The folder.
    pub location: StateLocation,
    /// The file within it.
    pub file: PathBuf,
    /// The version that was read.
    pub stamp: Stamp,
    /// What a list of names said next to it.
    pub listed: Option<Listed>,
}

/// A container's part of a list of names, which changes as others come and go.
#[derive(Debug)]
pub(crate) struct Listed {
    list: PathBuf,
    id: String,
    names: Option<StoredNames>,
}

impl Source {
    /// Is it as it was read?
    pub fn is_current(&self, folders: &Folders, lists: &mut Lists, opened: &mut u64) -> bool {
        let Some(folder) = folders.enter(&self.location) else { return false };
        let is_listed_so = |Listed { list, id, names }: &Listed| {
            stored(&folder, list, id, lists, opened) == *names
        };
        folder.stamp(&self.file) == Some(self.stamp)
            && self.listed.as_ref().is_none_or(is_listed_so)
    }
}

/// State of a container.
#[derive(Debug)]
pub(crate) struct Found {
    pub facts: Facts,
    pub stated_by: u32,
    pub sources: Vec<Source>,
}

/// Lists of names that many containers share, read once for each version.
pub(crate) type Lists = BTreeMap<PathBuf, (Stamp, BTreeMap<String, StoredNames>)>;

/// Reads for one process.
pub(crate) struct Lookup<'a> {
    pub folders: &'a Folders,
    pub owner: &'a Owner,
    pub lists: &'a mut Lists,
    /// Files opened so far.
    pub opened: &'a mut u64,
}

impl Lookup<'_> {
    /// The state of a container whose path is known.
    pub fn find(&mut self, of: &ContainerRef, is_outermost: bool) -> Result<Found, ReadError> {
        let mut error = ReadError::Missing;
        for user in [None, Some(self.owner)] {
            for kind in kinds(of.runtime) {
                match self.find_in(*kind, of, user, |found| {
                    agreed(found, of, user.is_some(), is_outermost)
                }) {
                    Ok(found) => return Ok(found),
                    Err(ReadError::Missing) => {}
                    Err(worse) => error = worse,
                }
            }
        }
        Err(error)
    }

    /// The state of the container that holds a pod together, which another one's state names: whatever its cgroup, but
    /// of the same user.
    pub fn find_pod(&mut self, of: &ContainerRef, stated_by: u32) -> Result<Found, ReadError> {
        let user = (stated_by != self.folders.superuser).then_some(self.owner);
        let mut found = Err(ReadError::Missing);
        for kind in kinds(of.runtime) {
            found = found.or_else(|_| self.find_in(*kind, of, user, Ok));
        }
        found
    }

    fn find_in(
        &mut self,
        kind: Kind,
        of: &ContainerRef,
        user: Option<&Owner>,
        agreed: impl Fn(Found) -> Result<Found, ReadError>,
    ) -> Result<Found, ReadError> {
        let mut error = ReadError::Missing;
        for folder in self.folders.open(kind, user) {
            let found = match kind {
                Kind::Containerd => self.containerd(folder, &of.id),
                Kind::Docker => self.docker(folder, &of.id, user),
                Kind::Storage => self.storage(folder, &of.id),
                Kind::Runc => {
                    self.one(folder, [&of.id, "state.json"].iter().collect(), files::runc)
                }
                Kind::Crun => self.crun(folder, &of.id),
            };
            match found.and_then(&agreed) {
                Ok(found) => return Ok(found),
                Err(ReadError::Missing) => {}
                Err(worse) => error = worse,
            }
        }
        Err(error)
    }

    fn one(
        &mut self,
        folder: StateFolder,
        file: PathBuf,
        parse: fn(&[u8]) -> Result<Facts, String>,
    ) -> Result<Found, ReadError> {
        let parsed = folder.parse(&file, parse);
        *self.opened += u64::from(!matches!(parsed, Err(ReadError::Missing)));
        let (facts, stamp) = parsed?;
        Ok(Found {
            facts,
            stated_by: folder.location.owner,
            sources: vec![Source { location: folder.location, file, stamp, listed: None }],
        })
    }

    /// `TASKS/NAMESPACE/ID/config.json`.
    fn containerd(&mut self, folder: StateFolder, id: &str) -> Result<Found, ReadError> {
        let namespaces = folder.names(Path::new(TASKS), MOST_NAMESPACES);
        let bundle =
            |namespace: &str| -> PathBuf { [TASKS, namespace, id, "config.json"].iter().collect() };
        let has = |namespace: &&String| is_id(namespace) && folder.has(&bundle(namespace));
        let namespace = namespaces.iter().find(has).ok_or(ReadError::Missing)?;
        let file = bundle(namespace);
        self.one(folder, file, files::bundle)
    }

    /// `ID/config.v2.json`; the cgroup is in the bundle that containerd has of it.
    fn docker(
        &mut self,
        folder: StateFolder,
        id: &str,
        user: Option<&Owner>,
    ) -> Result<Found, ReadError> {
        let mut found = self.one(folder, [id, "config.v2.json"].iter().collect(), files::docker)?;
        for folder in self.folders.open(Kind::Containerd, user) {
            if let Ok(bundle) = self.containerd(folder, id) {
                found.facts.cgroups = bundle.facts.cgroups;
                found.facts.annotations = bundle.facts.annotations;
                found.sources.extend(bundle.sources);
                break;
            }
        }
        Ok(found)
    }

    /// `DRIVER-containers/ID/userdata/config.json`, and the names in `DRIVER-containers/containers.json`.
    fn storage(&mut self, folder: StateFolder, id: &str) -> Result<Found, ReadError> {
        let within = |driver: &str| PathBuf::from(format!("{driver}-containers"));
        let bundle = |driver: &str| within(driver).join(id).join("userdata/config.json");
        let has = |driver: &&&str| folder.has(&bundle(driver));
        let driver = *DRIVERS.iter().find(has).ok_or(ReadError::Missing)?;
        let list = within(driver).join("containers.json");
        let names = stored(&folder, &list, id, self.lists, self.opened);
        let mut found = self.one(folder, bundle(driver), files::bundle)?;
        if let Some(names) = names.clone() {
            found.facts.name = names.name;
            found.facts.image = names.image;
        }
        if let Some(source) = found.sources.first_mut() {
            source.listed = Some(Listed { list, id: id.to_owned(), names });
        }
        Ok(found)
    }

    /// `ID/status` and the `ID/config.json` that crun copies next to it.
    fn crun(&mut self, folder: StateFolder, id: &str) -> Result<Found, ReadError> {
        let bundle: PathBuf = [id, "config.json"].iter().collect();
        let parsed = folder.parse(&bundle, files::bundle);
        *self.opened += u64::from(!matches!(parsed, Err(ReadError::Missing)));
        let annotations = match parsed {
            Ok((facts, _)) => facts.annotations,
            Err(ReadError::Missing) => crate::Labels::default(),
            Err(error) => return Err(error),
        };
        let mut found = self.one(folder, [id, "status"].iter().collect(), files::crun)?;
        found.facts.annotations = annotations;
        Ok(found)
    }
}

/// The names of a container in a list; a list that cannot be read names none.
fn stored(
    folder: &StateFolder,
    list: &Path,
    id: &str,
    lists: &mut Lists,
    opened: &mut u64,
) -> Option<StoredNames> {
    let key = folder.location.full(list);
    let stamp = folder.stamp(list)?;
    if lists.get(&key).is_none_or(|(known, _)| *known != stamp) {
        *opened += 1;
        let (names, stamp) = folder.parse(list, files::storage).ok()?;
        lists.insert(key.clone(), (stamp, names));
    }
    lists.get(&key)?.1.get(id).cloned()
}

/// Where a runtime's containers may have their state.
fn kinds(runtime: Runtime) -> &'static [Kind] {
    match runtime {
        Runtime::Containerd => &[Kind::Containerd, Kind::Runc, Kind::Crun],
        Runtime::Crio | Runtime::Podman => &[Kind::Storage, Kind::Runc, Kind::Crun],
        Runtime::Cri => &[Kind::Containerd, Kind::Docker, Kind::Storage, Kind::Runc, Kind::Crun],
        Runtime::Docker => &[Kind::Docker, Kind::Containerd, Kind::Runc, Kind::Crun],
        Runtime::Oci => &[Kind::Containerd, Kind::Runc, Kind::Crun],
        Runtime::Nspawn | Runtime::Slurm => &[],
    }
}

/// State that is this cgroup's.
fn agreed(
    found: Found,
    of: &ContainerRef,
    is_of_user: bool,
    is_outermost: bool,
) -> Result<Found, ReadError> {
    let recorded = &found.facts.cgroups;
    if recorded.iter().any(|recorded| recorded.is(&of.cgroup, is_of_user)) {
        return Ok(found);
    }
    let can_be_borrowed =
        !is_outermost || of.cgroup.starts_with("/user.slice/") || of.runtime == Runtime::Oci;
    match recorded.first() {
        None if is_of_user || !can_be_borrowed => Ok(found),
        recorded => {
            let recorded =
                recorded.map_or("no recorded cgroup", |recorded| recorded.as_str()).to_owned();
            let path = found
                .sources
                .first()
                .map(|source| source.location.full(&source.file))
                .unwrap_or_default();
            Err(ReadError::OtherCgroup { path, recorded })
        }
    }
}
