//! Puts back what dead managers left: `symbiont restore`, and the start of
//! every manager.

use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock};
use serde::Serialize;
use symbiont_topology::HostTopology;

use super::cgroup::Cgroups;
use super::journal::{self, Found, JournalError};
use super::putback::{RestoreReport, put_back};
use super::state_dir::{StateDir, StateDirError};

/// What was found in a state directory, and what became of it.
#[derive(Debug, Default, Serialize)]
pub struct Restored {
    /// What was put back, over all journals of dead managers.
    pub report: RestoreReport,
    /// Journals from which everything possible was put back; they are removed.
    pub journals: Vec<PathBuf>,
    /// Journals of managers that live; left alone.
    pub live: Vec<PathBuf>,
    /// Journals from before the machine last booted; removed.
    pub stale: Vec<PathBuf>,
    /// Journals that could not be used; nothing was changed because of them.
    #[serde(serialize_with = "as_text")]
    pub unusable: Vec<JournalError>,
}

fn as_text<S: serde::Serializer>(errors: &[JournalError], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(errors.iter().map(ToString::to_string))
}

/// Puts back what the journals of dead managers say.
///
/// A journal is removed once everything in it was put back, had exited or
/// belongs to somebody else now; one with failures stays for a later try with
/// more rights.
///
/// # Errors
/// When the state directory itself cannot be used. A missing one is fine.
pub fn restore(host: &HostTopology, state_dir: &Path) -> Result<Restored, StateDirError> {
    let mut restored = Restored::default();
    let Some(dir) = StateDir::open(state_dir)? else { return Ok(restored) };
    let cgroups = Cgroups::discover(host);
    for found in journal::find_all(&dir)? {
        match found {
            Ok(Found::Held(path)) => restored.live.push(path),
            Ok(Found::Left { name, path, text, _lock }) => {
                if let Err(error) = from_journal(&dir, &name, path, &text, &cgroups, &mut restored)
                {
                    restored.unusable.push(error);
                }
            }
            Err(error) => restored.unusable.push(error.into()),
        }
    }
    remove_drafts(&dir)?;
    Ok(restored)
}

fn from_journal(
    dir: &StateDir,
    name: &str,
    path: PathBuf,
    text: &[u8],
    cgroups: &Cgroups,
    restored: &mut Restored,
) -> Result<(), JournalError> {
    let (header, book) = journal::parse(&path, text)?;
    if !header.is_of_this_boot() {
        dir.remove(name)?;
        restored.stale.push(path);
        return Ok(());
    }
    if !header.has_our_numbers() {
        return Err(JournalError::OtherNumbers { path });
    }
    let report = put_back(&book, cgroups);
    if report.failed.is_empty() {
        dir.remove(name)?;
        restored.journals.push(path);
    }
    restored.report.add(report);
    Ok(())
}

/// Removes journals that a dead manager had not finished to write.
fn remove_drafts(dir: &StateDir) -> Result<(), StateDirError> {
    for name in dir.names()?.iter().filter_map(|name| name.to_str()) {
        if !name.starts_with("draft-") {
            continue;
        }
        let Ok(file) = dir.open_file(name, OFlags::RDONLY | OFlags::NONBLOCK) else { continue };
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            dir.remove(name)?;
        }
    }
    Ok(())
}
