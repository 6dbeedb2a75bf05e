//! Where what is learnt of programs is kept.

use std::path::{Path, PathBuf};

use anyhow::Context;
use symbiont_daemon::LearnedFile;

use crate::knowledge::{UNKNOWN, processor};

/// Where what is known of programs is kept, unless another file is given.
pub fn default_store() -> anyhow::Result<PathBuf> {
    let set = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || set("HOME").map(|home| home.join(".local/state"));
    let state = set("XDG_STATE_HOME").or_else(home);
    let state = state.context(
        "there is no home directory for what is learnt of programs: name a file by --store",
    )?;
    Ok(state.join(Path::new("symbiont/jobs.json")))
}

/// Where is kept what policies learn of pairs of programs: with the service manager's state, else next to what is known
/// of programs. None: this user has no such place, or it is another user's.
pub fn learned_file() -> Option<LearnedFile> {
    let of_service = std::env::var_os("STATE_DIRECTORY").map(PathBuf::from);
    let usual = || Some(default_store().ok()?.parent()?.to_owned());
    let folder = of_service.filter(|path| path.is_absolute()).or_else(usual)?;
    let processor = processor().unwrap_or_else(|| UNKNOWN.to_owned());
    Some(LearnedFile::new(&folder.join("learned.json"), &processor))
        .filter(LearnedFile::is_in_reach)
}
