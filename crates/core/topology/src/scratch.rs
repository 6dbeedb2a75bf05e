//! Trees of files for tests.

use std::{fs, io};

use tempfile::TempDir;

/// A directory with these files: paths below it, and what they hold. It lies
/// in memory where possible, since a large machine has thousands of files.
pub(crate) fn tree(
    files: impl IntoIterator<Item = (impl AsRef<str>, impl AsRef<[u8]>)>,
) -> io::Result<TempDir> {
    let root = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir())?;
    for (path, content) in files {
        let path = root.path().join(path.as_ref());
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory)?;
        }
        fs::write(path, content)?;
    }
    Ok(root)
}
