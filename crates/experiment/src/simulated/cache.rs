//! Tables of the physics, kept from one run to the next.
//!
//! Making them takes far longer than using them. A file holds what was made of one
//! program on one machine; its name tells both and a fingerprint of everything the
//! tables depend on: description, profile, and `salt`, which stands for the code.
//! A file with another fingerprint is stale and is removed; a damaged one is made
//! anew.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::{fs, io};

use symbiont_profile::{Phase, Profile};
use symbiont_sim::fast::Workshop;
use symbiont_sim::physics::response::ResponseTable;

/// A folder of tables.
#[derive(Debug, Clone)]
pub struct Cache {
    folder: PathBuf,
    salt: String,
}

/// Tables of one phase.
type Tables = Vec<(usize, u32, ResponseTable)>;

impl Cache {
    /// In this folder; `salt` must differ between versions of the code.
    #[must_use]
    pub fn new(folder: &Path, salt: &str) -> Self {
        Self { folder: folder.to_owned(), salt: salt.to_owned() }
    }

    /// Hands over what is known of some programs; tells of how many.
    pub fn recall<'p>(
        &self,
        workshop: &Workshop<'p>,
        profiles: &'p BTreeMap<String, Profile>,
    ) -> usize {
        let mut known = 0;
        for (name, profile) in profiles {
            let (_, path) = self.place(workshop, name, profile);
            let Some(tables) = fs::read(path).ok().and_then(|bytes| read(&bytes)) else { continue };
            if tables.len() == profile.phases.len() {
                known += 1;
                for (phase, tables) in profile.phases.iter().zip(tables) {
                    workshop.take_over(phase, tables);
                }
            }
        }
        known
    }

    /// Keeps what was made of some programs, instead of what is stale.
    ///
    /// # Errors
    /// When the folder cannot be written.
    pub fn keep<'p>(
        &self,
        workshop: &Workshop<'p>,
        profiles: &'p BTreeMap<String, Profile>,
    ) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        for (name, profile) in profiles {
            let of = |phase: &'p Phase| workshop.tables(phase);
            let tables: Vec<Tables> = profile.phases.iter().map(of).collect();
            let (prefix, path) = self.place(workshop, name, profile);
            let Some(bytes) = write(&tables) else { continue };
            if fs::read(&path).is_ok_and(|there| there == bytes) {
                continue;
            }
            for entry in fs::read_dir(&self.folder)?.flatten() {
                if entry.file_name().to_string_lossy().starts_with(&prefix) {
                    fs::remove_file(entry.path())?;
                }
            }
            // Two runs at a time must not write into each other's file.
            let fresh = self.folder.join(format!(".{}.{prefix}new", std::process::id()));
            fs::write(&fresh, bytes)?;
            fs::rename(&fresh, &path)?;
        }
        Ok(())
    }

    /// What the files of a program begin with, and the one that is not stale.
    fn place(&self, workshop: &Workshop<'_>, name: &str, profile: &Profile) -> (String, PathBuf) {
        let machine = workshop.description();
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
        let name: String = name.chars().map(plain).collect();
        let topology = &machine.topology;
        let (cores, smt) = (topology.cores().len(), topology.smt_width());
        let prefix = format!("{}-{cores}x{smt}.{name}.", machine.name);
        let mut hasher = DefaultHasher::new();
        self.salt.hash(&mut hasher);
        format!("{machine:?}").hash(&mut hasher);
        postcard::to_stdvec::<Vec<Phase>>(&profile.phases).unwrap_or_default().hash(&mut hasher);
        let path = self.folder.join(format!("{prefix}{:016x}", hasher.finish()));
        (prefix, path)
    }
}

/// A checksum, then the tables.
fn write(tables: &[Tables]) -> Option<Vec<u8>> {
    let content = postcard::to_stdvec(tables).ok()?;
    let mut bytes = checksum(&content).to_le_bytes().to_vec();
    bytes.extend(content);
    Some(bytes)
}

fn read(bytes: &[u8]) -> Option<Vec<Tables>> {
    let (sum, content) = bytes.split_first_chunk::<8>()?;
    if u64::from_le_bytes(*sum) != checksum(content) {
        return None;
    }
    postcard::from_bytes(content).ok()
}

fn checksum(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use symbiont_sim::description::Description;

    use super::super::Library;
    use super::*;

    #[test]
    fn tables_are_recalled_and_stale_or_damaged_ones_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let library = Library::open(folder.path()).unwrap();
        let profiles = library.load_all(["synthetic-integer"]).unwrap();
        let phase = &profiles["synthetic-integer"].phases[0];
        let workshop = || Workshop::new(Description::named("xsim").unwrap());
        let first = workshop();
        first.make_ready(&[phase], &[1, 2], 2, &|_, _| ()).unwrap();
        assert_eq!(first.tables(phase).len(), 2);
        let cache = Cache::new(folder.path(), "one");
        assert_eq!(cache.recall(&workshop(), &profiles), 0);
        cache.keep(&first, &profiles).unwrap();

        let again = workshop();
        assert_eq!(cache.recall(&again, &profiles), 1);
        assert_eq!(again.tables(phase), first.tables(phase));
        assert_eq!(Cache::new(folder.path(), "two").recall(&workshop(), &profiles), 0);

        let file = fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
        let mut bytes = fs::read(&file).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(&file, bytes).unwrap();
        assert_eq!(cache.recall(&workshop(), &profiles), 0);

        Cache::new(folder.path(), "two").keep(&first, &profiles).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "the stale file is gone");
    }
}
