//! The files that the plugin hands over to the capture, one for each executed program.
//!
//! # Approach
//!
//! ```text
//! file  = frame*
//! frame = kind (1 byte), length (4 bytes, least significant first), content (postcard)
//! ```
//!
//! The frames of an interval are appended by one write. So threads need no lock between them, and a process that
//! is killed leaves whole intervals and at most a torn end, which is ignored. Both sides are built from the same
//! source; the first frame says which version of this layout follows.

mod reader;

use serde::{Deserialize, Serialize};

use crate::vectors::Counts;
use crate::{MicroTrace, Phase};
pub use reader::{IntervalAt, RawFile};

/// Layout of the frames.
pub const LAYOUT: u32 = 3;

/// Buckets of a signature.
pub const BUCKETS: usize = 64;

/// Kinds of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A [`Start`].
    Start = 1,
    /// A [`Signature`]; a [`Phase`] and [`Traces`] follow.
    Signature = 2,
    /// The [`Phase`] of an interval, without micro-traces.
    Phase = 3,
    /// The micro-traces of an interval.
    Traces = 4,
    /// An [`End`].
    End = 5,
    /// A [`crate::trace::RawWindow`].
    Window = 6,
    /// What the interval before did to simulated caches.
    Caches = 7,
}

/// The program that writes this file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// [`LAYOUT`].
    pub layout: u32,
    /// Process id.
    pub pid: u32,
    /// Path of the program.
    pub program: String,
    /// Was the process forked off another one, and has it not executed another program since?
    pub forked: bool,
}

/// The process ended of its own accord, and everything was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// Threads that there was no room to observe.
    pub unmetered_threads: u32,
}

/// What distinguishes intervals that behave alike from others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
    /// The thread, counted from 0 in its process.
    pub thread: u32,
    /// Instructions of the interval.
    pub instructions: u64,
    /// Written because the thread is about to execute another program. If that
    /// fails, the same interval goes on and is written again.
    pub before_exec: bool,
    /// Instructions executed in each of [`BUCKETS`] random groups of basic blocks.
    pub blocks: Vec<u64>,
    /// How often what matters to performance happened: mispredictions of the
    /// best predictor, loads, stores, floating-point operations, data accesses
    /// with reuse times from 2^10, 2^14, 2^18 and 2^22 on, instruction lines with
    /// reuse times from 2^9 on.
    pub events: [u64; 9],
}

/// The micro-traces of an interval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traces {
    /// In the order of execution.
    pub traces: Vec<MicroTrace>,
}

/// One interval of one thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interval {
    /// What distinguishes it from others.
    pub signature: Signature,
    /// What it did, without micro-traces.
    pub phase: Phase,
    /// Its micro-traces.
    pub traces: Traces,
    /// What it did to simulated caches, if any were.
    pub caches: Option<[Counts; 3]>,
}

impl Interval {
    /// Its frames.
    ///
    /// # Errors
    /// As [`frame`].
    pub fn frames(&self) -> Result<Vec<u8>, postcard::Error> {
        let mut bytes = frame(Kind::Signature, &self.signature)?;
        bytes.extend(frame(Kind::Phase, &self.phase)?);
        bytes.extend(frame(Kind::Traces, &self.traces)?);
        if let Some(caches) = &self.caches {
            bytes.extend(frame(Kind::Caches, caches)?);
        }
        Ok(bytes)
    }
}

/// One frame.
///
/// # Errors
/// When the value is longer than 4 GiB or cannot be encoded.
pub fn frame<T: Serialize>(kind: Kind, value: &T) -> Result<Vec<u8>, postcard::Error> {
    let payload = postcard::to_stdvec(value)?;
    let length = u32::try_from(payload.len()).map_err(|_| postcard::Error::SerializeBufferFull)?;
    let mut bytes = vec![kind as u8];
    bytes.extend(length.to_le_bytes());
    bytes.extend(payload);
    Ok(bytes)
}
