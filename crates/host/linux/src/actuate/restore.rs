//! Restores what dead managers left: for `symbiont restore`, and whenever a manager starts.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Signal, geteuid};
use serde::Serialize;
use symbiont_topology::HostTopology;

use super::journal::{self, Found, JournalError, Left};
use super::kernel::{Host, Kernel};
use super::restoring::{RestoreReport, restore_threads};
use super::state_dir::{StateDir, StateDirError};
use super::syscalls::facts_of;
use super::thread::ThreadKey;
use super::trust::Trust;

/// No user should be able to make root read without end. No journal that was kept bounded comes near this size.
const MOST_BYTES_OF_OTHERS: u64 = 64 << 20;

/// What was found in a state directory, and what became of it.
#[derive(Debug, Default, Serialize)]
pub struct Restored {
    /// The state directories that were there.
    pub directories: Vec<PathBuf>,
    /// What was restored, over all journals of dead managers.
    pub report: RestoreReport,
    /// Journals from which everything possible was restored; they are removed.
    pub journals: Vec<PathBuf>,
    /// Journals of managers that live; left alone.
    pub live: Vec<PathBuf>,
    /// Journals from before the machine last booted, or of a container that
    /// has ended, all of whose threads are gone; removed.
    pub stale: Vec<PathBuf>,
    /// Journals that could not be used; nothing was changed because of them.
    #[serde(serialize_with = "as_text")]
    pub unusable: Vec<JournalError>,
}

impl Restored {
    /// Is something still changed that other managers here should know of? Processes of another PID namespace do not
    /// count: only managers in there see them, and restore them.
    #[must_use]
    pub fn leaves_something(&self) -> bool {
        let is_of_here = |error: &JournalError| !matches!(error, JournalError::OtherNumbers { .. });
        !self.report.failed.is_empty() || self.unusable.iter().any(is_of_here)
    }

    /// Adds what was found in another directory.
    pub fn add(&mut self, other: Self) {
        self.directories.extend(other.directories);
        self.report.add(other.report);
        self.journals.extend(other.journals);
        self.live.extend(other.live);
        self.stale.extend(other.stale);
        self.unusable.extend(other.unusable);
    }
}

fn as_text<S: serde::Serializer>(errors: &[JournalError], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(errors.iter().map(ToString::to_string))
}

/// Restores what the journals of dead managers say. Root may do so for
/// another user, as far as that user's threads and their descendants go.
///
/// A journal is removed once everything in it was restored, has exited, or was changed by another process since;
/// one with failures stays for a later try with more rights.
///
/// # Errors
/// When the state directory itself cannot be used. A missing one is fine.
pub fn restore(host: &HostTopology, state_dir: &Path) -> Result<Restored, StateDirError> {
    restore_over(&Host::new(host), state_dir)
}

/// The same over any kernel.
pub(super) fn restore_over(
    kernel: &dyn Kernel,
    state_dir: &Path,
) -> Result<Restored, StateDirError> {
    let mut restored = Restored::default();
    let Some(dir) = StateDir::open_to_restore(state_dir)? else { return Ok(restored) };
    restored.directories.push(state_dir.to_owned());
    let owner = dir.owner()?;
    let trust = if owner == geteuid().as_raw() { Trust::Own } else { Trust::Of(owner) };
    for found in journal::find_all(&dir)? {
        match found {
            Ok(Found::Held(path, _)) => restored.live.push(path),
            Ok(Found::Left(left)) => {
                if let Err(error) = from_journal(kernel, &dir, left, trust, &mut restored) {
                    restored.unusable.push(error);
                }
            }
            Err(error) => restored.unusable.push(error.into()),
        }
    }
    journal::remove_drafts(&dir)?;
    Ok(restored)
}

/// Is a manager of this state directory still ending after it was killed? It ends once it gets a CPU, which takes
/// seconds where others are preferred; what it did cannot be restored before that.
#[must_use]
pub fn is_manager_ending(state_dir: &Path) -> bool {
    let Ok(Some(dir)) = StateDir::open_to_restore(state_dir) else { return false };
    let found = journal::find_all(&dir).unwrap_or_default();
    let is_ending = |found| match found {
        Found::Held(_, Some(manager)) => is_being_killed(manager),
        _ => false,
    };
    found.into_iter().flatten().any(is_ending)
}

fn is_being_killed(key: ThreadKey) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/status", key.process));
    facts_of(key).is_ok() && status.is_ok_and(|status| says_killed(&status))
}

/// Does the file `status` of a process say that SIGKILL is on its way?
fn says_killed(status: &str) -> bool {
    const KILL: u64 = 1 << (Signal::KILL.as_raw() - 1);
    let pending = ["SigPnd:", "ShdPnd:"].iter().filter_map(|name| {
        let set = status.lines().find_map(|line| line.strip_prefix(name))?;
        u64::from_str_radix(set.trim(), 16).ok()
    });
    pending.fold(0, |all, set| all | set) & KILL != 0
}

fn from_journal(
    kernel: &dyn Kernel,
    dir: &StateDir,
    left: Left,
    trust: Trust,
    restored: &mut Restored,
) -> Result<(), JournalError> {
    if trust != Trust::Own && left.bytes()? > MOST_BYTES_OF_OTHERS {
        return Err(JournalError::TooLong { path: left.path });
    }
    let (header, state) = left.read()?;
    let is_ours = header.has_our_numbers();
    if !header.is_of_this_boot() || (!is_ours && header.is_of_a_dead_container()) {
        dir.remove(&left.name)?;
        restored.stale.push(left.path);
        return Ok(());
    }
    if !is_ours {
        return Err(JournalError::OtherNumbers { path: left.path });
    }
    let report = restore_threads(kernel, &state, trust);
    if report.failed.is_empty() {
        dir.remove(&left.name)?;
        restored.journals.push(left.path);
    }
    restored.report.add(report);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_in_another_namespace_is_nothing_that_is_left_here() {
        let path = || PathBuf::from("journal-1");
        let left = |error| Restored { unusable: vec![error], ..Restored::default() };
        assert!(!left(JournalError::OtherNumbers { path: path() }).leaves_something());
        assert!(left(JournalError::TooLong { path: path() }).leaves_something());
        assert!(!Restored::default().leaves_something());
    }

    #[test]
    fn a_process_that_is_being_killed_is_known_by_its_pending_signals() {
        let status =
            |own, all| format!("Name:\tx\nSigPnd:\t{own:016x}\nShdPnd:\t{all:016x}\nSigBlk:\t0\n");
        for (own, all, is_killed) in
            [(0, 0, false), (0x100, 0, true), (0, 0x100, true), (0x4200, 2, false)]
        {
            assert_eq!(says_killed(&status(own, all)), is_killed, "{own:x} {all:x}");
        }
        assert!(!says_killed("") && !says_killed("SigPnd:\tnone\n"));
        assert!(!says_killed(&fs::read_to_string("/proc/self/status").unwrap()));
    }
}
