//! Programs of this machine's runtimes, brought along into one guest.

use std::path::{Path, PathBuf};

use super::initramfs::Initramfs;
use super::programs;
use crate::given::{RUNTIMES, Runtimes};

/// Names the file that says which, and what is to be done with them; `scripts/runtimes.py --guest` writes it.
const VARIABLE: &str = "SYMBIONT_LAB_PROGRAMS";

/// That file, or the reason why there is none.
pub fn file() -> Result<PathBuf, String> {
    let file = std::env::var_os(VARIABLE).filter(|file| !file.is_empty());
    file.map(PathBuf::from).ok_or(format!(
        "{VARIABLE} names no programs to bring along; scripts/runtimes.py --guest does"
    ))
}

/// Adds that file, and what its commands name.
pub fn add(archive: &mut Initramfs) -> Result<(), String> {
    let file = file()?;
    let read = |path: &Path| {
        std::fs::read(path).map_err(|why| format!("{} is not read: {why}", path.display()))
    };
    let text = read(&file)?;
    let runtimes: Runtimes =
        serde_json::from_slice(&text).map_err(|why| format!("{}: {why}", file.display()))?;
    archive.file(Path::new(RUNTIMES), &text);
    for word in runtimes.programs.values().flatten() {
        let path = Path::new(word);
        if path.is_absolute() && path.is_file() {
            let content = read(path)?;
            if content.starts_with(b"\x7fELF") {
                programs::add_own(archive, path, path)?;
            } else {
                archive.file(path, &content);
            }
        }
    }
    Ok(())
}
