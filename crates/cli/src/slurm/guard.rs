//! A process that undoes what the releaser has assigned, should that be killed.
//!
//! The releaser holds the other end of the guard's standard input, so that the guard finds out when the releaser has
//! ended, however that was. Then it looks each second whether jobs have started, and gives back those that do not,
//! until none is left or another releaser uses the store.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::Context;
use symbiont_slurm::undo_left_over;

use super::{SETTLES_EVERY, now_s};

/// The guard of this process. It ends once this is dropped, if there is nothing to undo.
#[derive(Debug)]
pub struct Guard {
    child: Child,
}

impl Guard {
    /// Of a releaser with this store.
    pub fn of(store: &Path) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("cannot find the program of symbiont")?;
        let mut command = Command::new(program);
        command.args(["slurm", "--guard", "--store"]).arg(store);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // What a terminal sends to the releaser is not meant for it.
        let child = command.process_group(0).spawn().context("cannot start the guard")?;
        Ok(Self { child })
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // It is not waited for: it ends by itself.
        drop(self.child.stdin.take());
    }
}

/// Waits for the end of the releaser, and undoes what it has left.
pub fn guard(store: &Path) -> anyhow::Result<()> {
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    while undo_left_over(store, now_s())? {
        std::thread::sleep(SETTLES_EVERY);
    }
    Ok(())
}
