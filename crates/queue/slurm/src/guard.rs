//! Undoes the assignments of a releaser that was killed, from a process that outlives it.

use std::path::Path;
use std::time::Duration;

use symbiont_jobs::{Observations, Rules, Store};

use crate::FileError;
use crate::assignments::Journal;
use crate::cluster::Commands;
use crate::lock::StoreLock;
use crate::releaser::{ReleaseOptions, Releaser};

/// How long one look may take: a releaser that begins waits for it.
const A_LOOK: Duration = Duration::from_secs(4);
/// How long the guard waits for the lock of the store.
const LOCKED: Duration = Duration::from_millis(500);

/// Looks once, and gives back jobs that have not started where they were sent. True: there may be more to undo. Where
/// another releaser uses the store there is nothing to do: that one looks after the jobs. The store is locked for this
/// look only, so that a new releaser can begin.
///
/// # Errors
/// [`FileError`] when the journal cannot be read.
pub fn undo_left_over(store: &Path, now_s: f64) -> Result<bool, FileError> {
    let Ok(_lock) = StoreLock::of(store, LOCKED) else { return Ok(false) };
    let journal = Journal::next_to(store);
    let assignments = journal.read()?;
    let options = ReleaseOptions {
        partition: None,
        qos: None,
        rules: Rules::default(),
        ahead: 0,
        first_come: true,
        dry_run: false,
    };
    let (commands, known) = (Commands::within(A_LOOK), Observations::default());
    let left = (journal, assignments);
    let mut releaser = Releaser::new(commands, options, Store::new(store), known, left);
    if releaser.on_their_way().is_empty() {
        return Ok(false);
    }
    // Where Slurm does not answer, it is asked again at the next look.
    drop(releaser.settle(now_s));
    Ok(true)
}
