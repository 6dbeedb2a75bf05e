//! Where the programs' profiles are, unless the user names a folder.

use std::path::{Path, PathBuf};

/// Below the folder that has `bin`, as `scripts/install.sh` installs them.
const INSTALLED: &str = "share/symbiont/profiles";
/// In a checkout.
const HERE: &str = "profiles";

/// `profiles` in the current folder where there is one, else those installed with this program.
pub fn usual_profiles() -> PathBuf {
    let program = std::env::current_exe().unwrap_or_default();
    usual(Path::new("."), &program)
}

fn usual(here: &Path, program: &Path) -> PathBuf {
    let installed = program.parent().and_then(Path::parent).map(|prefix| prefix.join(INSTALLED));
    match installed {
        Some(installed) if !here.join(HERE).is_dir() && installed.is_dir() => installed,
        _ => HERE.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::create_dir_all;

    use super::*;

    #[test]
    fn profiles_are_those_here_else_the_installed_ones() {
        let dir = tempfile::tempdir().unwrap();
        let (here, program) = (dir.path().join("here"), dir.path().join("usr/bin/symbiont"));
        assert_eq!(usual(&here, &program), Path::new("profiles"), "there are none");
        let installed = dir.path().join("usr/share/symbiont/profiles");
        create_dir_all(&installed).unwrap();
        assert_eq!(usual(&here, &program), installed);
        create_dir_all(here.join("profiles")).unwrap();
        assert_eq!(usual(&here, &program), Path::new("profiles"));
    }
}
