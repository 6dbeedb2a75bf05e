//! A public record of each living manager: which programs it manages.
//!
//! # Problem
//! A program that is managed already must not get a second manager: not from another state directory, nor from
//! another user (root). The program must not notice its manager, so no environment variable can name it.
//!
//! # Approach
//! Each manager publishes a small file in the folder `managers` of its state directory, and of its user's default
//! one. Any user may read it. Readers take no lock, so that none of them can hinder the manager. A record counts
//! if its manager lives, and if only root or the reader's own user can have written it.
//!
//! # What remains
//! A program is not found if its descent is cut (its parent exited), or if it has another default directory than
//! its manager (`XDG_RUNTIME_DIR`) and uses another state directory as well.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, fchmod};
use serde::{Deserialize, Serialize};

use super::journal;
use super::namespace::number_space;
use super::state_dir::{StateDir, StateDirError, is_trusted};
use super::syscalls::{facts, facts_of};
use super::thread::{ThreadError, ThreadKey};

const FOLDER: &str = "managers";
const MOST_BYTES: u64 = 1 << 20;
const DRAFT: &str = "draft-";

/// What a record says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Holder {
    /// The manager's process.
    pub manager: ThreadKey,
    /// The PID namespace, which says which processes the numbers mean.
    numbers: String,
    /// The first processes of the managed programs.
    pub roots: Vec<ThreadKey>,
    /// Where its journal is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_dir: Option<PathBuf>,
}

impl Holder {
    /// This process, which manages nothing yet.
    pub fn this_process() -> Self {
        let me = std::process::id();
        let manager = facts(me, me).ok().flatten().map(|facts| facts.key);
        Self {
            manager: manager.unwrap_or(ThreadKey { process: me, thread: me, born: 0 }),
            numbers: number_space(),
            roots: Vec::new(),
            state_dir: None,
        }
    }

    /// Says that a process and all its descendants are managed.
    pub fn add(&mut self, process: u32) {
        if let Ok(Some(facts)) = facts(process, process) {
            self.roots.retain(|root| facts_of(*root).is_ok());
            self.roots.push(facts.key);
        }
    }

    /// Says no longer that these processes are managed; was that said of any?
    pub fn remove(&mut self, processes: &BTreeSet<u32>) -> bool {
        let before = self.roots.len();
        self.roots.retain(|root| !processes.contains(&root.process));
        self.roots.len() < before
    }

    /// Has everything ended that it manages?
    pub fn has_ended(&self) -> bool {
        self.roots.iter().all(|root| facts_of(*root).is_err())
    }

    fn lives(&self) -> bool {
        self.numbers == number_space() && facts_of(self.manager).is_ok()
    }

    /// Is there a journal where it had its own? That of a later manager is as good.
    fn left_a_journal(&self) -> bool {
        let dir = self.state_dir.as_deref().map(StateDir::open_to_restore);
        let Some(Ok(Some(dir))) = dir else { return false };
        journal::find_all(&dir).is_ok_and(|journals| !journals.is_empty())
    }

    /// Did its manager die? Unknown, and so not, for one in another container.
    fn is_dead(&self) -> bool {
        self.numbers == number_space()
            && matches!(facts_of(self.manager), Err(ThreadError::Gone(_)))
    }
}

/// A published record; removed when it is dropped.
#[derive(Debug)]
pub(super) struct PublishedRecord {
    folder: StateDir,
    name: String,
}

impl PublishedRecord {
    /// Publishes in a state directory, which is made if missing.
    pub fn publish(state_dir: &Path, holder: &Holder) -> Result<Self, StateDirError> {
        let folder = StateDir::create(state_dir)?.create_public_folder(FOLDER)?;
        remove_dead(&folder)?;
        let ThreadKey { process, born, .. } = holder.manager;
        // One process may publish several (tests do).
        let taken = |name: &str| folder.open_file(name, OFlags::RDONLY).is_ok();
        let name = (0u32..)
            .map(|n| format!("{process}-{born}-{n}"))
            .find(|name| !taken(name))
            .unwrap_or_default();
        let record = Self { folder, name };
        record.write(holder)?;
        Ok(record)
    }

    /// Replaces what it says.
    pub fn write(&self, holder: &Holder) -> Result<(), StateDirError> {
        let draft = format!("{DRAFT}{}", self.name);
        let path = self.folder.path_of(&draft);
        let fail = |source| StateDirError::Io { what: "write", path: path.clone(), source };
        let text = serde_json::to_vec(holder).map_err(|error| fail(error.into()))?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC;
        let mut file = self.folder.open_file(&draft, flags)?;
        fchmod(&file, Mode::from_raw_mode(0o644)).map_err(|error| fail(error.into()))?;
        file.write_all(&text).map_err(fail)?;
        self.folder.rename(&draft, &self.name)
    }

    /// Can it still be found?
    pub fn is_in_place(&self) -> bool {
        self.folder.is_in_place() && self.folder.open_file(&self.name, OFlags::RDONLY).is_ok()
    }
}

impl Drop for PublishedRecord {
    fn drop(&mut self) {
        // One that stays names a manager that is dead soon.
        let _ = self.folder.remove(&self.name);
    }
}

/// The other state directories with a journal of a killed manager that had published in `state_dir`, this user's
/// own.
#[must_use]
pub fn left_behind(state_dir: &Path) -> BTreeSet<PathBuf> {
    let is_own = |owner| owner == rustix::process::geteuid().as_raw();
    let Ok(Some(folder)) = StateDir::open_folder(state_dir, FOLDER, is_own) else {
        return BTreeSet::new();
    };
    let records = folder.names().unwrap_or_default();
    let records = records.iter().filter(|name| !name.starts_with(DRAFT));
    let dead = records.filter_map(|name| read(&folder, name)).filter(Holder::is_dead);
    let dirs = dead.filter(Holder::left_a_journal).filter_map(|holder| holder.state_dir);
    dirs.filter(|dir| dir != state_dir).collect()
}

/// Removes what managers left that were killed, but for records by which their journals are found.
fn remove_dead(folder: &StateDir) -> Result<(), StateDirError> {
    for name in folder.names()?.iter().filter(|name| !name.starts_with(DRAFT)) {
        let is_over = |holder: &Holder| holder.is_dead() && !holder.left_a_journal();
        if read(folder, name).is_some_and(|holder| is_over(&holder)) {
            folder.remove(name)?;
        }
    }
    Ok(())
}

fn read(folder: &StateDir, name: &str) -> Option<Holder> {
    let file = folder.open_file(name, OFlags::RDONLY | OFlags::NONBLOCK).ok()?;
    file.metadata().ok().filter(std::fs::Metadata::is_file)?;
    from_file(file)
}

/// What a file says; nothing if it is damaged.
pub(super) fn from_file(file: File) -> Option<Holder> {
    let mut text = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

/// The process of the living manager that manages this process: the one that enrolled it or an ancestor of it.
/// None if no manager that published in one of these state directories did.
#[must_use]
pub fn managed_by(process: u32, state_dirs: &[PathBuf]) -> Option<u32> {
    let holders: Vec<Holder> = state_dirs
        .iter()
        .filter_map(|dir| published_in(dir, |owner| is_trusted(dir, owner)).ok())
        .flatten()
        .collect();
    let mut at = process;
    let mut child_born = u64::MAX;
    while let Ok(Some(facts)) = facts(at, at) {
        if facts.key.born > child_born {
            return None;
        }
        if let Some(holder) = holders.iter().find(|holder| holder.roots.contains(&facts.key)) {
            return Some(holder.manager.process);
        }
        if facts.parent == 0 || facts.parent == at {
            return None;
        }
        (at, child_born) = (facts.parent, facts.key.born);
    }
    None
}

/// The living managers that published in a directory whose owner is `trusted`.
fn published_in(
    state_dir: &Path,
    trusted: impl Fn(u32) -> bool,
) -> Result<Vec<Holder>, StateDirError> {
    let Some(folder) = StateDir::open_folder(state_dir, FOLDER, trusted)? else {
        return Ok(Vec::new());
    };
    let records = folder.names()?;
    let records = records.iter().filter(|name| !name.starts_with(DRAFT));
    Ok(records.filter_map(|name| read(&folder, name)).filter(Holder::lives).collect())
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A state directory with a record that this process manages its parent.
    fn published() -> (tempfile::TempDir, PathBuf, PublishedRecord) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state");
        let mut holder = Holder::this_process();
        holder.add(std::os::unix::process::parent_id());
        let record = PublishedRecord::publish(&path, &holder).unwrap();
        (dir, path, record)
    }

    fn manager(path: &Path) -> Option<u32> {
        managed_by(std::process::id(), &[path.to_owned()])
    }

    #[test]
    fn a_record_names_the_manager_of_descendants_as_long_as_it_exists() {
        let (_dir, path, record) = published();
        assert_eq!(manager(&path), Some(std::process::id()));
        assert!(record.is_in_place());
        drop(record);
        assert_eq!(manager(&path), None);
    }

    #[test]
    fn the_record_of_a_killed_manager_leads_to_its_journal_until_that_is_restored() {
        let (_dir, path, record) = published();
        let other = path.with_file_name("other");
        drop(StateDir::create(&other).unwrap());
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let dead = ThreadKey { process: child.id(), thread: child.id(), born: 1 };
        child.wait().unwrap();
        let dead =
            Holder { manager: dead, state_dir: Some(other.clone()), ..Holder::this_process() };
        record.write(&dead).unwrap();
        let folder = path.join(FOLDER);
        let count = || std::fs::read_dir(&folder).unwrap().count();
        assert_eq!(left_behind(&path), BTreeSet::new(), "there is no journal");
        std::fs::write(other.join("journal-1"), "").unwrap();
        set_permissions(other.join("journal-1"), Permissions::from_mode(0o600)).unwrap();
        assert_eq!(left_behind(&path), BTreeSet::from([other.clone()]));
        let next = PublishedRecord::publish(&path, &Holder::this_process()).unwrap();
        assert_eq!(count(), 2, "it is kept");
        std::fs::remove_file(other.join("journal-1")).unwrap();
        drop(next);
        let _next = PublishedRecord::publish(&path, &Holder::this_process()).unwrap();
        assert_eq!((count(), left_behind(&path)), (1, BTreeSet::new()));
    }

    #[test]
    fn any_user_may_read_a_record_and_only_its_owner_may_write_it() {
        let (_dir, path, record) = published();
        let mode = |path: PathBuf| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(path.join(FOLDER)), 0o755);
        assert_eq!(mode(path.join(FOLDER).join(&record.name)), 0o644);
    }

    #[test]
    fn a_record_where_others_may_write_says_nothing() {
        let (_dir, path, _record) = published();
        for folder in [path.clone(), path.join(FOLDER)] {
            let before = folder.metadata().unwrap().permissions();
            set_permissions(&folder, Permissions::from_mode(0o777)).unwrap();
            assert_eq!(manager(&path), None, "{}", folder.display());
            set_permissions(&folder, before).unwrap();
        }
        assert_eq!(manager(&path), Some(std::process::id()));
    }

    #[test]
    fn a_record_of_another_users_says_nothing() {
        let (_dir, path, _record) = published();
        let stranger = rustix::process::geteuid().as_raw() + 1;
        let trusted = |owner: u32| owner == stranger;
        assert!(matches!(published_in(&path, trusted), Err(StateDirError::Unsafe { .. })));
    }

    #[test]
    fn records_of_killed_managers_are_removed_and_those_of_other_containers_stay() {
        let (_dir, path, record) = published();
        let dead = ThreadKey { process: 1, thread: 1, born: u64::MAX };
        let killed = Holder { manager: dead, ..Holder::this_process() };
        let other = Holder { numbers: "pid:[1]".to_owned(), ..killed.clone() };
        for holder in [&killed, &other] {
            std::mem::forget(PublishedRecord::publish(&path, holder).unwrap());
        }
        let _next = PublishedRecord::publish(&path, &Holder::this_process()).unwrap();
        let left: Vec<_> = record.folder.names().unwrap();
        assert_eq!(left.iter().filter(|name| name.starts_with("1-")).count(), 1, "{left:?}");
        assert_eq!(managed_by(1, &[path]), None);
    }

    #[test]
    fn a_damaged_record_names_no_manager() {
        let (_dir, path, record) = published();
        std::fs::write(path.join(FOLDER).join(&record.name), "{nonsense").unwrap();
        assert_eq!(manager(&path), None);
    }
}
