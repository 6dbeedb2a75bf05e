//! What is recorded of a job that runs: a block of a fixed size in the progress file.
//!
//! # Problem
//! A job's end has to be recorded also where the disk is full by then, and also by another process than the
//! one that recorded its begin.
//!
//! # Approach
//! A block has three lines of fixed lengths, each a JSON object and blanks. The first says what begins; it is
//! written together with the other two, which are blank, before anything starts. The second is filled with the
//! processes that run the job, the third with its end: both are overwritten where they are, which takes no
//! room on the disk.
//!
//! # Properties
//! - Blocks are read as they were written (`what_was_written_is_read`).
//! - Any other bytes are read as damaged blocks or as none, never with a panic (`any_bytes_are_read`).

use std::io;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use symbiont_linux::{ProcessBirth, boot_id};

/// Bytes of a block.
pub const BLOCK: usize = 512;
/// Where its lines end.
const BEGUN: usize = 128;
const HELD: usize = 336;

/// A job that begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Begun {
    /// The digest of what it does.
    pub job: String,
    /// What its output files are called.
    pub name: String,
    /// When, seconds since 1970.
    pub began_s: f64,
}

/// The processes that run a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobProcesses {
    /// The boot in which they live.
    pub boot: String,
    /// The process that records the job's end.
    pub keeper: ProcessBirth,
    /// The job's first process, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<ProcessBirth>,
}

impl JobProcesses {
    /// With this process as the keeper.
    pub fn by_this_process() -> Option<Self> {
        let keeper = ProcessBirth::of(std::process::id())?;
        Some(Self { boot: boot_id(), keeper, job: None })
    }
}

/// The end of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ended {
    /// As a shell reports it; none: it is not known.
    pub exit_code: Option<i32>,
    /// The signal that killed it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Was it ended because it took too long?
    #[serde(default)]
    pub timed_out: bool,
    /// How long it took, seconds.
    pub elapsed_s: f64,
    /// CPU time of all its processes, seconds.
    pub cpu_s: f64,
}

impl Ended {
    /// Ended so without having run.
    pub fn at_once(exit_code: i32) -> Self {
        Self { exit_code: Some(exit_code), ..Self::unknown() }
    }

    /// Nothing is known but that it runs no more.
    pub fn unknown() -> Self {
        Self { exit_code: None, signal: None, timed_out: false, elapsed_s: 0.0, cpu_s: 0.0 }
    }

    /// Has it done what it was to do?
    pub fn is_well(&self) -> bool {
        self.exit_code == Some(0) && !self.timed_out
    }
}

/// All that is recorded of a run of a job.
#[derive(Debug, Clone, PartialEq)]
pub struct JobRecord {
    /// Its begin.
    pub begun: Begun,
    /// Its processes; none: it was never started.
    pub held: Option<JobProcesses>,
    /// Its end; none: it runs, or its end is not known.
    pub ended: Option<Ended>,
}

/// A block of a job that begins.
pub fn block(begun: &Begun) -> io::Result<Vec<u8>> {
    let mut block = line(begun, BEGUN)?;
    for length in [HELD - BEGUN, BLOCK - HELD] {
        block.resize(block.len() + length - 1, b' ');
        block.push(b'\n');
    }
    Ok(block)
}

/// The line of a block's processes, and where in the block it is.
pub fn held_line(held: &JobProcesses) -> io::Result<(u64, Vec<u8>)> {
    Ok((BEGUN as u64, line(held, HELD - BEGUN)?))
}

/// The line of a block's end, and where in the block it is.
pub fn ended_line(ended: &Ended) -> io::Result<(u64, Vec<u8>)> {
    let thousandths = |time_s: f64| (time_s * 1e3).round() / 1e3;
    let (elapsed_s, cpu_s) = (thousandths(ended.elapsed_s), thousandths(ended.cpu_s));
    Ok((HELD as u64, line(&Ended { elapsed_s, cpu_s, ..ended.clone() }, BLOCK - HELD)?))
}

/// A JSON object and blanks, so many bytes with the end of the line.
pub fn line(value: &impl Serialize, length: usize) -> io::Result<Vec<u8>> {
    let mut text = serde_json::to_vec(value)?;
    if text.len() >= length {
        return Err(io::Error::other("what is to be recorded is too long"));
    }
    text.resize(length - 1, b' ');
    text.push(b'\n');
    Ok(text)
}

/// Reads a block; none: it is damaged.
pub fn read(block: &[u8]) -> Option<JobRecord> {
    Some(JobRecord {
        begun: parse(block.get(..BEGUN)?)?,
        held: parse(block.get(BEGUN..HELD)?),
        ended: parse(block.get(HELD..BLOCK)?),
    })
}

fn parse<T: DeserializeOwned>(line: &[u8]) -> Option<T> {
    serde_json::from_slice(line).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(begun: &Begun, held: &JobProcesses, ended: &Ended) -> Vec<u8> {
        let mut block = block(begun).unwrap();
        for (at, line) in [held_line(held).unwrap(), ended_line(ended).unwrap()] {
            let at = usize::try_from(at).unwrap();
            block[at..at + line.len()].copy_from_slice(&line);
        }
        block
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(
            number in 1_usize..=100_000,
            process in 1_u32..=1 << 22,
            born in 0_u64..1 << 50,
            code in proptest::option::of(0..256),
            elapsed_ms in 0_u32..,
        ) {
            let name = format!("{number}.{number}");
            let begun = Begun { job: "a".repeat(32), name, began_s: 1_764_304_721.123 };
            let birth = ProcessBirth { process, born };
            let boot = "01234567-89ab-cdef-0123-456789abcdef".to_owned();
            let held = JobProcesses { boot, keeper: birth, job: Some(birth) };
            let elapsed_s = f64::from(elapsed_ms) / 1e3;
            let ended = Ended { exit_code: code, signal: code, timed_out: true, elapsed_s, cpu_s: elapsed_s };
            let block = written(&begun, &held, &ended);
            prop_assert_eq!(block.len(), BLOCK);
            prop_assert_eq!(
                read(&block).unwrap(),
                JobRecord { begun, held: Some(held), ended: Some(ended) }
            );
        }

        #[test]
        fn any_bytes_are_read(bytes: Vec<u8>, at in 0..BLOCK) {
            let _ = read(&bytes);
            let begun = Begun { job: String::new(), name: "7".to_owned(), began_s: 1.0 };
            let mut block = block(&begun).unwrap();
            for (old, new) in block[at..].iter_mut().zip(bytes) {
                *old = new;
            }
            let _ = read(&block);
        }
    }

    #[test]
    fn a_block_is_lines_of_text() {
        let begun = Begun { job: "ab".to_owned(), name: "7".to_owned(), began_s: 1.0 };
        let text = String::from_utf8(block(&begun).unwrap()).unwrap();
        assert_eq!((text.len(), text.lines().count()), (BLOCK, 3));
        let record = read(text.as_bytes()).unwrap();
        assert_eq!(record, JobRecord { begun, held: None, ended: None });
        let long = Begun { job: "x".repeat(BEGUN), name: String::new(), began_s: 1.0 };
        assert!(block(&long).is_err());
    }
}
