//! One measurement at a time in a folder: a second one would disturb the first, and the other way round.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use symbiont_campaign::Error;

use super::PairsError;

/// The file in the folder that is locked; it stays, since another one might wait for it.
const NAME: &str = ".lock";

/// Keeps others off a folder until what it gives is dropped, or this process ends in any way.
pub(super) fn lock(folder: &Path) -> Result<File, PairsError> {
    let path = folder.join(NAME);
    let file = File::options().write(true).create(true).truncate(false).open(&path);
    let file = file.map_err(Error::io(&path))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(Errno::WOULDBLOCK) => Err(PairsError::InUse(folder.to_owned())),
        Err(error) => Err(Error::io(&path)(io::Error::from(error)).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_measures_in_a_folder() {
        let [folder, other] = [(), ()].map(|()| tempfile::tempdir().unwrap());
        let first = lock(folder.path()).unwrap();
        let error = lock(folder.path()).unwrap_err().to_string();
        let path = folder.path().display();
        assert!(
            error.starts_with(&format!("another `symbiont bench pairs` measures in {path}: ")),
            "{error}"
        );
        assert!(lock(other.path()).is_ok());
        drop(first);
        assert!(lock(folder.path()).is_ok());
        assert!(lock(&folder.path().join("none")).unwrap_err().to_string().contains("none/.lock"));
    }
}
