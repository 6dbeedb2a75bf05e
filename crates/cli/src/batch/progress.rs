//! The progress file: what ran, runs and has ended.
//!
//! # Problem
//! A batch may be killed at any moment, and go on with `--resume`. No job may then run twice at the same
//! time, or again after it ended well, and none may be lost.
//!
//! # Approach
//! A header and a block for each run of a job ([`super::record`]). The batch that uses the file locks it, so
//! that there is one. Each job has a *keeper* ([`super::keeper`]), a process that outlives the batch and records
//! the job's end.
//!
//! ```text
//! batch:  append a block: the job begins      keeper: shares the batch's lock
//!         start the keeper                            write which processes run the job
//!                                                     let go of the lock, let the job run
//!                                                     write the job's end
//! ```
//!
//! Since a keeper holds the lock until it has written that it runs, the next batch that has the lock reads of
//! all jobs that run; what is not said to run never will. A file of another user is refused: signals are sent to
//! the processes that it names.
//!
//! # Properties
//! - A second batch on a file is refused (`a_second_batch_is_refused_until_the_first_ends`).
//! - A file that is none of ours stays as it is (`a_file_that_is_not_ours_is_refused_and_kept`).
//! - A file of another user is refused (`a_file_of_another_user_is_refused`).
//! - A begin that cannot be written leaves no trace (`a_begin_that_cannot_be_written_leaves_no_trace`).

use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::fs::{FlockOperation, MemfdFlags, flock, memfd_create};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use symbiont_linux::ProcessBirth;
use symbiont_safe_open::output;

use super::record::{self, BLOCK, Begun, Ended, JobProcesses, JobRecord};

/// Of the format.
const VERSION: u32 = 1;
/// How long the keepers of a batch that was killed may take to let go of the lock.
const SETTLING: Duration = Duration::from_secs(2);
const OTHER: &str = "name another file by --progress";

#[derive(Serialize, Deserialize)]
struct Header {
    symbiont_batch: u32,
    /// The batch that uses the file, or did.
    batch: Option<ProcessBirth>,
}

/// The file, locked.
#[derive(Debug)]
pub struct Progress {
    file: File,
    path: Option<PathBuf>,
    /// Where the next block begins.
    end: u64,
}

/// A block, and where it is.
pub type Placed = (u64, JobRecord);

impl Progress {
    /// Opens and locks a file, which is made if missing.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        let what = || format!("cannot note progress in {}", path.display());
        let file = output::update(path, 0o600);
        let mut file = file.with_context(|| format!("{}; {OTHER}", what()))?;
        let data = file.metadata().with_context(what)?;
        anyhow::ensure!(data.is_file(), "{}: not a file; {OTHER}", what());
        let is_ours = data.uid() == rustix::process::geteuid().as_raw();
        anyhow::ensure!(is_ours, "{}: it belongs to another user; {OTHER}", what());
        lock(&mut file, SETTLING).with_context(what)?;
        let length = file.metadata().with_context(what)?.len();
        if length > 0 {
            anyhow::ensure!(
                header(&mut file).is_some(),
                "{}: it holds something else; {OTHER}",
                what()
            );
        }
        // What was not written to its end was not begun.
        let end = (length - length % BLOCK as u64).max(BLOCK as u64);
        let progress = Self { file, path: Some(path.to_owned()), end };
        if let Err(error) = progress.write_header().and_then(|()| progress.file.set_len(end)) {
            // Half a header would be none of ours.
            let _ = progress.file.set_len(length);
            return Err(error).with_context(what);
        }
        Ok(progress)
    }

    /// In memory, where nothing is to be resumed.
    pub fn in_memory() -> io::Result<Self> {
        let file = File::from(memfd_create("symbiont-batch", MemfdFlags::CLOEXEC)?);
        flock(&file, FlockOperation::LockExclusive)?;
        let progress = Self { file, path: None, end: BLOCK as u64 };
        progress.write_header()?;
        Ok(progress)
    }

    fn write_header(&self) -> io::Result<()> {
        let batch = ProcessBirth::of(std::process::id());
        let header = Header { symbiont_batch: VERSION, batch };
        self.file.write_all_at(&record::line(&header, BLOCK)?, 0)
    }

    /// Can another batch go on with it?
    pub fn is_kept(&self) -> bool {
        self.path.is_some()
    }

    /// Its path, for people.
    pub fn name(&self) -> String {
        self.path.as_ref().map_or("memory".to_owned(), |path| path.display().to_string())
    }

    /// All that was recorded; what is damaged is left out.
    pub fn records(&self) -> io::Result<Vec<Placed>> {
        let length = usize::try_from(self.end).unwrap_or(usize::MAX);
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, 0)?;
        Ok(placed(&bytes))
    }

    /// Forgets all that was recorded.
    pub fn clear(&mut self) -> io::Result<()> {
        self.file.set_len(BLOCK as u64)?;
        self.end = BLOCK as u64;
        Ok(())
    }

    /// Records that a job begins, and where.
    pub fn begin(&mut self, begun: &Begun) -> io::Result<u64> {
        let (at, block) = (self.end, record::block(begun)?);
        if let Err(error) = self.file.write_all_at(&block, at) {
            // If that fails, the next block is written there.
            let _ = self.file.set_len(at);
            return Err(error);
        }
        self.end += BLOCK as u64;
        Ok(at)
    }

    /// A block as it is now.
    pub fn read(&self, at: u64) -> io::Result<Option<JobRecord>> {
        let mut block = [0; BLOCK];
        self.file.read_exact_at(&mut block, at)?;
        Ok(record::read(&block))
    }

    /// Records a job's end in place of its keeper.
    pub fn end(&self, at: u64, ended: &Ended) -> io::Result<()> {
        Slot { file: self.file.try_clone()?, at }.end(ended)
    }

    /// For a keeper: the file, with the lock as long as any process has this.
    pub fn share(&self) -> io::Result<File> {
        self.file.try_clone()
    }
}

/// The block of one job, for its keeper.
#[derive(Debug)]
pub struct Slot {
    /// The file.
    pub file: File,
    /// Where the block begins.
    pub at: u64,
}

impl Slot {
    /// Records the processes that run the job.
    pub fn hold(&self, held: &JobProcesses) -> io::Result<()> {
        let (place, line) = record::held_line(held)?;
        self.file.write_all_at(&line, self.at + place)
    }

    /// Records the end of the job, and has it on the disk.
    pub fn end(&self, ended: &Ended) -> io::Result<()> {
        let (place, line) = record::ended_line(ended)?;
        self.file.write_all_at(&line, self.at + place)?;
        self.file.sync_data()
    }
}

/// All that was recorded in a file, which is not locked; nothing if there is no file.
pub fn records(path: &Path) -> anyhow::Result<Vec<Placed>> {
    match symbiont_safe_open::read(path) {
        Ok(bytes) => Ok(placed(&bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => {
            Err(error).with_context(|| format!("cannot read the progress in {}", path.display()))
        }
    }
}

fn placed(bytes: &[u8]) -> Vec<Placed> {
    let blocks = (0..).step_by(BLOCK).zip(bytes.chunks_exact(BLOCK)).skip(1);
    blocks.filter_map(|(at, block)| Some((at, record::read(block)?))).collect()
}

fn header(file: &mut File) -> Option<Header> {
    file.rewind().ok()?;
    let mut text = Vec::new();
    file.take(BLOCK as u64).read_to_end(&mut text).ok()?;
    let header: Header = serde_json::from_slice(&text).ok()?;
    (header.symbiont_batch == VERSION).then_some(header)
}

/// Locks the file, once the keepers of a batch that is gone have let go of it.
fn lock(file: &mut File, settling: Duration) -> anyhow::Result<()> {
    let begin = Instant::now();
    loop {
        match flock(&*file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(Errno::WOULDBLOCK) => {
                let batch = header(file).and_then(|header| header.batch);
                // One that lives is not waited for: what it has done would be done again.
                let lives = batch.is_some_and(|batch| batch.hold_alive().is_some());
                if lives || begin.elapsed() >= settling {
                    let process = batch.map(|batch| format!(" (process {})", batch.process));
                    let process = process.unwrap_or_default();
                    anyhow::bail!("another symbiont batch{process} uses it");
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(error) => anyhow::bail!("it cannot be locked: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun(job: &str) -> Begun {
        Begun { job: job.to_owned(), name: "7".to_owned(), began_s: 5.0 }
    }

    /// Opens a file that was in use here: a child that another test makes holds it until it executes its program.
    fn open_again(path: &Path) -> Progress {
        let begin = Instant::now();
        loop {
            match Progress::open(path) {
                Ok(progress) => return progress,
                Err(error) => assert!(begin.elapsed().as_secs() < 60, "{error:#}"),
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn what_was_recorded_is_there_after_a_crash() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("jobs.progress");
        assert_eq!(records(&path).unwrap(), []);
        let mut progress = Progress::open(&path).unwrap();
        let places = ["a", "b"].map(|job| progress.begin(&begun(job)).unwrap());
        progress.end(places[1], &Ended::at_once(3)).unwrap();
        drop(progress);
        // In the middle of a block.
        let mut bytes = std::fs::read(&path).unwrap();
        bytes.extend_from_slice(b"{\"job\":\"c\"");
        std::fs::write(&path, bytes).unwrap();
        let mut progress = open_again(&path);
        let place = progress.begin(&begun("d")).unwrap();
        let ended = Some(Ended::at_once(3));
        let found = [
            (places[0], JobRecord { begun: begun("a"), held: None, ended: None }),
            (places[1], JobRecord { begun: begun("b"), held: None, ended }),
            (place, JobRecord { begun: begun("d"), held: None, ended: None }),
        ];
        assert_eq!(progress.records().unwrap(), found);
        assert_eq!(records(&path).unwrap(), found);
        progress.clear().unwrap();
        assert_eq!(progress.records().unwrap(), []);
    }

    #[test]
    fn a_second_batch_is_refused_until_the_first_ends() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("jobs.progress");
        let first = Progress::open(&path).unwrap();
        let keeper = first.share().unwrap();
        drop(first);
        // One that lives is not waited for.
        lock(&mut File::open(&path).unwrap(), Duration::MAX).unwrap_err();
        let refused = format!("{:#}", Progress::open(&path).unwrap_err());
        let part = format!("another symbiont batch (process {}) uses it", std::process::id());
        assert!(refused.contains(&part), "{refused}");
        drop(keeper);
        open_again(&path);
    }

    #[test]
    fn a_file_that_is_not_ours_is_refused_and_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("jobs.progress");
        for text in ["xz a\nxz b\n", "{\"symbiont_batch\":99}\n"] {
            std::fs::write(&path, text).unwrap();
            let refused = Progress::open(&path).unwrap_err().to_string();
            assert!(refused.contains("holds something else"), "{refused}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
    }

    #[test]
    fn a_file_of_another_user_is_refused() {
        if !rustix::process::geteuid().is_root() {
            note!("skipped: only root can give files to others");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("jobs.progress");
        drop(Progress::open(&path).unwrap());
        std::os::unix::fs::chown(&path, Some(1), None).unwrap();
        let refused = Progress::open(&path).unwrap_err().to_string();
        assert!(refused.contains("belongs to another user"), "{refused}");
    }

    #[test]
    fn a_begin_that_cannot_be_written_leaves_no_trace() {
        let mut progress = Progress::in_memory().unwrap();
        let place = progress.begin(&begun("a")).unwrap();
        let long = begun(&"x".repeat(BLOCK));
        assert!(progress.begin(&long).is_err());
        assert_eq!(progress.begin(&begun("b")).unwrap(), place + BLOCK as u64);
        assert_eq!(progress.records().unwrap().len(), 2);
    }
}
