//! What all targets share.
//!
//! A target is one function of bytes or text. It reads its input with a reader of the project,
//! which must accept or refuse it: a panic, an overflow, more than [`MOST_BYTES`] of memory or more
//! time than `scripts/fuzz.sh` allows is a crash. Where there is a writer, what was read is written
//! and read again, and must be equal.

use std::alloc::System;
use std::io;
use std::path::Path;

use cap::Cap;
pub use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

/// Bytes that a target may hold at once. Inputs are at most some KiB long, so a reader that needs
/// more lets its input choose how much memory it takes.
pub const MOST_BYTES: usize = 256 << 20;

/// An allocation beyond the bound fails and ends the process, so that libFuzzer keeps the input.
#[global_allocator]
static MEMORY: Cap<System> = Cap::new(System, MOST_BYTES);

/// A directory for readers that take a path; in memory where the system has such a place.
///
/// # Errors
/// When it cannot be created.
pub fn scratch() -> io::Result<TempDir> {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { TempDir::new_in(memory) } else { TempDir::new() }
}
