//! Tables of the physics, kept from one run to the next.
//!
//! # Problem
//! Making tables takes far longer than using them; a wrong one would spoil results
//! unnoticed.
//!
//! # Approach
//! One file for each table. Its name is the SHA-256 of all that the table follows from
//! ([`TableName`], and the code that made it), which the file repeats; so a table for
//! another phase, machine or version is never found. A file is written next to its place and
//! renamed: whole, or not there. One that is damaged all the same, or is not what its name says,
//! is reported, made anew and replaced.
//!
//! Files lie in a folder for each version of the code; a new version's removes those to
//! which nothing was added for a week, so that two versions can be compared.
//!
//! | bytes | content |
//! |---|---|
//! | 8 | `SYMBTABL` |
//! | 32 | the file's name |
//! | 32 | SHA-256 of the rest |
//! | rest | the table: postcard |
//!
//! # Properties
//! - What was kept is found again, by what it follows from alone
//!   (`a_table_is_found_by_what_it_follows_from`).
//! - A damaged file is reported and made anew (`damage_anywhere_is_reported_and_mended`).

use std::io::ErrorKind::{NotADirectory, NotFound};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use std::{fs, io};

use sha2::{Digest, Sha256};
use symbiont_profile::Phase;
use symbiont_sim_fast::physics::response_table::ResponseTable;
use symbiont_sim_fast::ready::{CODE, PhaseDigest, TableCache, TableName};

const MAGIC: &[u8; 8] = b"SYMBTABL";

/// A folder of tables.
#[derive(Debug)]
pub struct Cache {
    folder: PathBuf,
    trouble: Mutex<Trouble>,
}

/// What went wrong with a cache.
#[derive(Debug, Default)]
pub struct Trouble {
    /// Files that were not as they had been written; their tables were made anew.
    pub damaged: Vec<PathBuf>,
    /// Why tables could not be kept.
    pub unwritten: Option<io::Error>,
}

impl Cache {
    /// In this folder, which is made when the first table is kept.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        Self::of_code(folder, CODE)
    }

    fn of_code(folder: &Path, code: &str) -> Self {
        Self { folder: folder.join(code), trouble: Mutex::default() }
    }

    /// What went wrong since the last call.
    pub fn trouble(&self) -> Trouble {
        std::mem::take(&mut *self.trouble.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn note(&self, note: impl FnOnce(&mut Trouble)) {
        note(&mut self.trouble.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn place(&self, name: &[u8]) -> PathBuf {
        let digits: String = name.iter().map(|byte| format!("{byte:02x}")).collect();
        self.folder.join(digits)
    }

    fn write(&self, name: &[u8], content: &[u8]) -> io::Result<()> {
        if !self.folder.is_dir() {
            fs::create_dir_all(&self.folder)?;
            remove_others(&self.folder);
        }
        let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
        let parts: [&[u8]; 4] = [MAGIC, name, &Sha256::digest(content), content];
        parts.iter().try_for_each(|part| file.write_all(part))?;
        file.persist(self.place(name)).map_err(|error| error.error)?;
        Ok(())
    }
}

impl TableCache for Cache {
    fn digest(&self, phase: &Phase) -> Option<PhaseDigest> {
        Some(Sha256::digest(postcard::to_stdvec(phase).ok()?).into())
    }

    fn take(&self, name: &TableName) -> Option<ResponseTable> {
        let name = digest(name);
        let path = self.place(&name);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if matches!(error.kind(), NotFound | NotADirectory) => return None,
            // Whatever it is, it is no table.
            Err(_) => Vec::new(),
        };
        let table = table(&bytes, &name);
        if table.is_none() {
            self.note(|trouble| trouble.damaged.push(path));
        }
        table
    }

    fn put(&self, name: &TableName, table: &ResponseTable) {
        let content = postcard::to_stdvec(table).map_err(io::Error::other);
        if let Err(error) = content.and_then(|content| self.write(&digest(name), &content)) {
            self.note(|trouble| {
                trouble.unwritten.get_or_insert(error);
            });
        }
    }
}

/// What a table's file is called.
fn digest(name: &TableName) -> [u8; 32] {
    let mut hasher = Sha256::new();
    hasher.update(CODE);
    hasher.update(name.phase);
    hasher.update(&name.machine);
    hasher.finalize().into()
}

/// The table in a file of this name.
fn table(bytes: &[u8], name: &[u8; 32]) -> Option<ResponseTable> {
    let rest = bytes.strip_prefix(MAGIC)?.strip_prefix(name)?;
    let (sum, content) = rest.split_first_chunk::<32>()?;
    if Sha256::digest(content)[..] != sum[..] {
        return None;
    }
    let table: ResponseTable = postcard::from_bytes(content).ok()?;
    table.is_sound().then_some(table)
}

/// How long nothing was added to a folder that is removed.
const FORGOTTEN: Duration = Duration::from_secs(7 * 24 * 3600);

/// Removes what other versions of the code kept long ago next to `folder`, as far as possible.
fn remove_others(folder: &Path) {
    let neighbours = folder.parent().and_then(|neighbours| fs::read_dir(neighbours).ok());
    for entry in neighbours.into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let version = name.len() == CODE.len() && name.bytes().all(|b| b.is_ascii_hexdigit());
        let added = entry.metadata().and_then(|it| it.modified()).ok();
        let old = added.and_then(|at| at.elapsed().ok()).is_some_and(|ago| ago > FORGOTTEN);
        if version && old && entry.path() != folder {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;
    use std::time::SystemTime;

    use symbiont_profile::test_support;
    use symbiont_sim_fast::description::Description;
    use symbiont_sim_fast::fast::TableBuilder;

    use super::*;

    /// How many tables of a phase must be made on this machine.
    fn made(cache: &Cache, machine: &str, phase: &Phase) -> usize {
        let builder = TableBuilder::new(Description::named(machine).unwrap());
        let of = Mutex::new(0);
        let report = |made: symbiont_sim_fast::ready::TableProgress| {
            *of.lock().unwrap() = made.of;
            ControlFlow::Continue(())
        };
        let uses: Vec<_> = symbiont_sim_fast::ready::full_cores(&[1]).collect();
        assert!(
            builder.make_ready(&[phase], &uses, 1, Some(cache), &report).unwrap().is_continue()
        );
        of.into_inner().unwrap()
    }

    fn files(cache: &Cache) -> Vec<PathBuf> {
        fs::read_dir(&cache.folder).unwrap().map(|entry| entry.unwrap().path()).collect()
    }

    #[test]
    fn a_table_is_found_by_what_it_follows_from() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path());
        let mut phase = test_support::cache_resident().phases.remove(0);
        assert_eq!(made(&cache, "xsim", &phase), 1);
        assert_eq!(made(&cache, "xsim", &phase), 0);
        assert_eq!(made(&cache, "pentium4-ht", &phase), 1);
        phase.traces[0].ops[0].mispredicted ^= 1;
        assert_eq!(made(&cache, "xsim", &phase), 1);
        assert_eq!(files(&cache).len(), 3);
        let later = Cache::of_code(folder.path(), "0123456789abcdef");
        assert_eq!(made(&later, "xsim", &phase), 1);
        assert_eq!(made(&later, "xsim", &phase), 0);
        assert!(cache.folder.exists(), "the other version may be used, too");
        for kept in [&cache, &later] {
            let long_ago = SystemTime::now() - 2 * FORGOTTEN;
            fs::File::open(&kept.folder).unwrap().set_modified(long_ago).unwrap();
        }
        let latest = Cache::of_code(folder.path(), "fedcba9876543210");
        assert_eq!(made(&latest, "xsim", &phase), 1);
        assert!(!cache.folder.exists() && !later.folder.exists(), "unused tables");
    }

    #[test]
    fn damage_anywhere_is_reported_and_mended() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path());
        let phase = test_support::cache_resident().phases.remove(0);
        made(&cache, "xsim", &phase);
        let [file] = &files(&cache)[..] else { panic!("one file") };
        let whole = fs::read(file).unwrap();
        for at in [0, 10, 50, 80, whole.len() - 1] {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            fs::write(file, bytes).unwrap();
            assert_eq!(made(&cache, "xsim", &phase), 1, "byte {at}");
            assert_eq!(cache.trouble().damaged, std::slice::from_ref(file));
            assert_eq!(fs::read(file).unwrap(), whole);
        }
        fs::write(file, &whole[..whole.len() / 2]).unwrap();
        assert_eq!(made(&cache, "xsim", &phase), 1);
        assert_eq!(cache.trouble().damaged.len(), 1);
        assert_eq!(made(&cache, "xsim", &phase), 0);
        assert!(cache.trouble().damaged.is_empty());
    }

    #[test]
    fn what_cannot_be_kept_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let cache = Cache::new(&file);
        assert_eq!(made(&cache, "xsim", &test_support::cache_resident().phases[0]), 1);
        assert!(cache.trouble().unwritten.is_some());
    }
}
