//! Captured traces for the cycle level.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use symbiont_profile::trace::TraceFile;
use symbiont_profile::{Phase, Profile};
use symbiont_sim_cycle::{CapturedWindow, CycleReference};

/// Lets programs run from `FOLDER/NAME.trace` where there is such a file; reports for each of
/// them what runs from it.
///
/// # Errors
/// When there is no such folder, or a trace cannot be read or is of something else than the profile.
pub fn add<'p>(
    reference: &mut CycleReference<'p>,
    folder: Option<&Path>,
    profiles: &'p BTreeMap<String, Profile>,
) -> anyhow::Result<BTreeMap<String, String>> {
    let mut described = BTreeMap::new();
    let Some(folder) = folder else { return Ok(described) };
    for (name, profile) in profiles {
        let Some((path, file)) = open(folder, name, profile)? else { continue };
        for (index, info) in file.windows().iter().enumerate() {
            let phase = phase(&path, name, profile, info.phase)?;
            reference.trace(phase, CapturedWindow::new(&file, index, phase)?);
        }
        let (windows, phases) = (file.windows().len(), profile.phases.len());
        described
            .insert(name.clone(), format!("{windows} of {phases} phases from {}", path.display()));
    }
    Ok(described)
}

/// The window of each program's most frequent phase that was captured.
///
/// # Errors
/// As [`add`].
pub fn windows(
    folder: &Path,
    profiles: &BTreeMap<String, Profile>,
) -> anyhow::Result<BTreeMap<String, CapturedWindow>> {
    let mut found = BTreeMap::new();
    for (name, profile) in profiles {
        let Some((path, file)) = open(folder, name, profile)? else { continue };
        // The most frequent come first.
        if let Some(info) = file.windows().first() {
            let phase = phase(&path, name, profile, info.phase)?;
            found.insert(name.clone(), CapturedWindow::new(&file, 0, phase)?);
        }
    }
    Ok(found)
}

/// A program's trace; none if there is no such file.
fn open(
    folder: &Path,
    name: &str,
    profile: &Profile,
) -> anyhow::Result<Option<(PathBuf, TraceFile)>> {
    ensure!(folder.is_dir(), "there is no folder {}", folder.display());
    let path = folder.join(format!("{name}.trace"));
    if !path.exists() {
        return Ok(None);
    }
    let file = TraceFile::open(&path)?;
    ensure!(
        file.about().digest == profile.digest,
        "{} is of another executable than the profile of '{name}'; capture both again",
        path.display()
    );
    Ok(Some((path, file)))
}

/// The phase of a profile that a window is of.
fn phase<'p>(
    path: &Path,
    name: &str,
    profile: &'p Profile,
    number: u16,
) -> anyhow::Result<&'p Phase> {
    profile.phases.get(usize::from(number)).with_context(|| {
        let shown = path.display();
        format!("{shown} has a window of a phase that the profile of '{name}' has not")
    })
}

/// Were the traces readable to the end?
pub fn whole(reference: &CycleReference<'_>) -> anyhow::Result<()> {
    match reference.failed() {
        None => Ok(()),
        Some(why) => anyhow::bail!("a trace could no longer be read: {why}"),
    }
}
