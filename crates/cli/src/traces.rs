//! Captured traces for the cycle level.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, ensure};
use symbiont_cycle::{Captured, Referee};
use symbiont_profile::Profile;
use symbiont_profile::trace::TraceFile;

/// Lets programs run from `FOLDER/NAME.trace` where there is such a file; tells for each of
/// them what runs from it.
///
/// # Errors
/// When there is no such folder, or a trace cannot be read or is of something else than the profile.
pub fn add<'p>(
    referee: &mut Referee<'p>,
    folder: Option<&Path>,
    profiles: &'p BTreeMap<String, Profile>,
) -> anyhow::Result<BTreeMap<String, String>> {
    let mut told = BTreeMap::new();
    let Some(folder) = folder else { return Ok(told) };
    ensure!(folder.is_dir(), "there is no folder {}", folder.display());
    for (name, profile) in profiles {
        let path = folder.join(format!("{name}.trace"));
        if !path.exists() {
            continue;
        }
        let file = TraceFile::open(&path)?;
        let shown = path.display();
        ensure!(
            file.about().digest == profile.digest,
            "{shown} is of another executable than the profile of '{name}'; capture both again"
        );
        for (index, info) in file.windows().iter().enumerate() {
            let phase = profile.phases.get(usize::from(info.phase)).with_context(|| {
                format!("{shown} has a window of a phase that the profile of '{name}' has not")
            })?;
            referee.trace(phase, Captured::new(&file, index)?);
        }
        let (windows, phases) = (file.windows().len(), profile.phases.len());
        told.insert(name.clone(), format!("{windows} of {phases} phases from {shown}"));
    }
    Ok(told)
}

/// Were the traces readable to the end?
pub fn whole(referee: &Referee<'_>) -> anyhow::Result<()> {
    match referee.failed() {
        None => Ok(()),
        Some(why) => anyhow::bail!("a trace could no longer be read: {why}"),
    }
}
