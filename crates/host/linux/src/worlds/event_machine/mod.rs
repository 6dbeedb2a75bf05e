//! The actuator over a simulated kernel, in any order of events.
//!
//! # Problem
//! What the actuator must never do depends on the order in which threads are born, exec, exit and
//! are changed, reports arrive, samples fall and the manager dies. A real kernel produces the rare
//! orders rarely, and none of them on demand.
//!
//! # Approach
//! Bytes are read as actions ([`step`]): of a simulated kernel ([`world`]) that a manager calls
//! ([`handle`]), and of a manager ([`driver`]), which is the real tree of threads
//! and the real actuator with its journal on disk. The model is the kernel without a manager: each
//! thread keeps, besides the settings that it has, those that it would have had.
//!
//! # Properties
//! - At the end, or after a crash and a restore, every living thread has what it would have had
//!   without a manager; no thread was changed that was not enrolled; none was ever widened; the
//!   journal is gone when all is restored (`any_order_of_events_is_undone`,
//!   `any_order_of_events_is_undone_while_cpusets_change`).
//! - A process stays enrolled however late an exec of it is reported
//!   (`a_process_whose_exec_is_reported_late_stays_enrolled`).
//! - What was not undone once is (`orders_that_were_not_undone_once_are_undone`).
//! - A thread that gets the number of another one within an act gets back what was read
//!   (`a_number_that_is_used_again_within_a_restore_is_found`).
//!
//! # What is left out
//! Nothing happens between two calls of one act, except in tests of just that. Where a cpuset
//! changes between an inheritance and its undoing, the kernel shows less than what was inherited:
//! one order of events in some ten thousand is not undone then, and the cases of that test are fixed.
//! Where cpusets stay as they are, it is one in some hundred thousand.
//! Threads that cannot be distinguished from others are not compared. Each exception is one of "What
//! remains" in [`super`] and is named in [`world`] where a thread is marked.

mod driver;
mod handle;
mod step;
mod world;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use driver::Driver;
use step::{Actions, Cpusets};

/// Lets happen what the bytes say, with cpusets that do not change, and checks that everything was
/// undone.
///
/// # Panics
/// When something was not undone.
#[allow(clippy::panic, reason = "a fuzzer takes a panic for a fault")]
pub fn run(bytes: &[u8]) {
    if let Err(fault) = check(bytes, Cpusets::Fixed) {
        panic!("{fault}\nafter:{}", story(bytes, Cpusets::Fixed));
    }
}

/// The actions, a line each.
fn story(bytes: &[u8], cpusets: Cpusets) -> String {
    let actions = Actions::new(bytes.get(1..).unwrap_or_default(), cpusets);
    actions.fold(String::new(), |text, action| format!("{text}\n{action:?}"))
}

/// Like [`run`], but gives the fault instead of panicking.
pub(super) fn check(bytes: &[u8], cpusets: Cpusets) -> Result<(), String> {
    let (drain, bytes) = bytes.split_first().map_or((false, bytes), |(f, rest)| (f & 1 == 1, rest));
    let folder = Folder::new();
    std::fs::create_dir_all(&folder.0).map_err(|error| error.to_string())?;
    let mut driver = Driver::new(folder.0.join("state"))?;
    for action in Actions::new(bytes, cpusets) {
        driver.act(action);
    }
    driver.finish(drain)
}

/// A folder of this run alone, removed with its files when it is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static RUNS: AtomicU32 = AtomicU32::new(0);
        let memory = PathBuf::from("/dev/shm");
        let parent = if memory.is_dir() { memory } else { std::env::temp_dir() };
        let run = RUNS.fetch_add(1, Ordering::Relaxed);
        Self(parent.join(format!("symbiont-event-machine-{}-{run}", std::process::id())))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests;
