//! What a policy has learned of pairs of programs, in a file, for the next time that they run.
//!
//! The file has a part for each processor, since a home directory may be that of several machines. It is replaced as a
//! whole: a crash leaves the old or the new one. A file that is damaged, or of another version, is reported and left
//! as it is.
//!
//! Properties: what was kept is read, by processor (`what_was_kept_is_read_by_processor`); a damaged file is reported
//! and kept (`a_damaged_file_is_reported_and_kept`).

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::mem;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use symbiont_policy::LearnedPairs;
use symbiont_safe_open::output;

/// The version of the format.
const VERSION: u32 = 1;
/// A longer file is not one of ours.
const MOST_BYTES: u64 = 64 << 20;
/// Processors that are kept.
const MOST_PROCESSORS: usize = 16;
/// How often it is written.
const PAUSE: Duration = Duration::from_secs(300);

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Contents {
    version: u32,
    processors: BTreeMap<String, LearnedPairs>,
}

/// The file.
#[derive(Debug, Clone)]
pub struct LearnedFile {
    path: PathBuf,
    processor: String,
    written: Option<Instant>,
}

impl LearnedFile {
    /// In this file, which need not exist yet; of this processor.
    #[must_use]
    pub fn new(path: &Path, processor: &str) -> Self {
        Self { path: path.to_owned(), processor: processor.to_owned(), written: None }
    }

    /// May it be read, or is it not there? A home directory may be another user's, as behind `setpriv`.
    #[must_use]
    pub fn is_in_reach(&self) -> bool {
        let denied = |error: io::Error| error.kind() == io::ErrorKind::PermissionDenied;
        !symbiont_safe_open::open(&self.path).is_err_and(denied)
    }

    /// What was learned; nothing if there is no file.
    ///
    /// # Errors
    /// When it cannot be read, or is not one of ours.
    pub fn read(&self) -> Result<LearnedPairs, String> {
        let mut contents = self.contents()?;
        Ok(contents.processors.get_mut(&self.processor).map(mem::take).unwrap_or_default())
    }

    fn contents(&self) -> Result<Contents, String> {
        let trouble = |why: &dyn std::fmt::Display| {
            format!("cannot read what was learned before: {}: {why}", self.path.display())
        };
        let file = match symbiont_safe_open::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Contents::default()),
            Err(error) => return Err(trouble(&error)),
        };
        let mut text = Vec::new();
        file.take(MOST_BYTES).read_to_end(&mut text).map_err(|error| trouble(&error))?;
        let contents: Contents = serde_json::from_slice(&text)
            .map_err(|error| trouble(&format!("{error}; remove it, and pairs are learned anew")))?;
        if contents.version != VERSION {
            let version = contents.version;
            let why = format!(
                "it has version {version} of the format, this symbiont reads {VERSION}; remove it, and pairs are \
                 learned anew"
            );
            return Err(trouble(&why));
        }
        Ok(contents)
    }

    /// Writes what is known, if the last time is a while ago.
    ///
    /// # Errors
    /// As [`LearnedFile::write`].
    pub fn keep(
        &mut self,
        learned: impl FnOnce() -> Option<LearnedPairs>,
        now: Instant,
    ) -> Result<(), String> {
        let written = *self.written.get_or_insert(now);
        if now.duration_since(written) < PAUSE {
            return Ok(());
        }
        self.written = Some(now);
        learned().map_or(Ok(()), |learned| self.write_soon(learned))
    }

    /// Writes what is known, if there is anything, and waits until it is on the disk.
    ///
    /// # Errors
    /// When the file cannot be written, or is there and is not one of ours.
    pub fn write(&self, learned: LearnedPairs) -> Result<(), String> {
        self.put(learned, File::sync_all)
    }

    /// The same without waiting: for a loop that others wait for.
    ///
    /// # Errors
    /// As [`LearnedFile::write`].
    pub fn write_soon(&self, learned: LearnedPairs) -> Result<(), String> {
        self.put(learned, |_| Ok(()))
    }

    fn put(&self, learned: LearnedPairs, sync: fn(&File) -> io::Result<()>) -> Result<(), String> {
        if learned.is_empty() {
            return Ok(());
        }
        let mut contents = Contents { version: VERSION, ..self.contents()? };
        contents.processors.insert(self.processor.clone(), learned);
        while contents.processors.len() > MOST_PROCESSORS {
            let mut others = contents.processors.keys().filter(|name| **name != self.processor);
            let Some(other) = others.next().cloned() else { break };
            contents.processors.remove(&other);
        }
        self.replace(&contents, sync).map_err(|error| {
            format!("what was learned is not kept: {}: {error}", self.path.display())
        })
    }

    fn replace(&self, contents: &Contents, sync: fn(&File) -> io::Result<()>) -> io::Result<()> {
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        let text = serde_json::to_vec(contents)?;
        output::replace(&self.path, 0o600, |file| {
            file.write_all(&text)?;
            sync(file)
        })
    }
}

#[cfg(test)]
mod tests {
    use symbiont_policy::{LearnedProgram, NextTo};
    use symbiont_topology::CoreKind;

    use super::*;

    fn learned(ln: f64) -> LearnedPairs {
        let next_to = vec![NextTo { program: "b".to_owned(), ln, variance: 1e-4 }];
        let program = "a".to_owned();
        let core = CoreKind::Performance;
        LearnedPairs { programs: vec![LearnedProgram { program, core, next_to }] }
    }

    #[test]
    fn what_was_kept_is_read_by_processor() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deeper/learned.json");
        let [mut here, other] = ["A", "B"].map(|processor| LearnedFile::new(&path, processor));
        assert_eq!(here.read(), Ok(LearnedPairs::default()));
        here.write(LearnedPairs::default()).unwrap();
        assert!(!path.exists(), "nothing is not written");
        here.write(learned(-0.2)).unwrap();
        other.write(learned(-0.3)).unwrap();
        assert_eq!([here.read(), other.read()], [Ok(learned(-0.2)), Ok(learned(-0.3))]);
        let now = Instant::now();
        for (after, ln) in [(0, -0.2), (299, -0.2), (301, -0.4), (302, -0.4)] {
            let change = || Some(learned(if after == 302 { -0.5 } else { -0.4 }));
            here.keep(change, now + Duration::from_secs(after)).unwrap();
            assert_eq!(here.read(), Ok(learned(ln)), "{after}");
        }
        let files: Vec<_> = fs::read_dir(folder.path().join("deeper")).unwrap().collect();
        assert_eq!(files.len(), 1, "{files:?}");
        (0..20).for_each(|at| {
            LearnedFile::new(&path, &at.to_string()).write(learned(-0.1)).unwrap();
        });
        assert_eq!(here.contents().unwrap().processors.len(), MOST_PROCESSORS);
    }

    #[test]
    fn a_damaged_file_is_reported_and_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("learned.json");
        let file = LearnedFile::new(&path, "A");
        for text in ["", "{", "[]", "{\"version\":9,\"processors\":{}}"] {
            fs::write(&path, text).unwrap();
            let why = file.read().unwrap_err();
            assert!(why.contains("learned.json") && why.contains("learned anew"), "{why}");
            assert_eq!(file.write(learned(-0.2)).unwrap_err(), why);
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
    }
}
