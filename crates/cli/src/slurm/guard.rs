//! A process that undoes what a releaser has assigned, should that be killed.
//!
//! The releaser holds the other end of its standard input, so that this ends with the releaser, however that ends. Then
//! the guard looks each second whether the jobs have started, and gives back those that do not, until none is left or
//! another releaser uses the store. It takes the lock of the store for each look only, so that this one can.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::Context;
use symbiont_jobs::{Observations, Rules, Store};

use super::cluster::Commands;
use super::released::Journal;
use super::releaser::{ReleaseOptions, Releaser};
use super::{SETTLES_EVERY, lock, now_s};

/// How long a look may take: a releaser that begins waits for it.
const A_LOOK: Duration = Duration::from_secs(4);

/// The guard of this process; it ends once it is dropped, if there is nothing to undo.
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
pub fn guard(store_path: &Path) -> anyhow::Result<()> {
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    let options = ReleaseOptions {
        partition: None,
        qos: None,
        rules: Rules::default(),
        ahead: 0,
        first_come: true,
        dry_run: false,
    };
    loop {
        let (store, journal) = (Store::new(store_path), Journal::next_to(store_path));
        // Another releaser looks after them.
        let Ok(alone) = lock(store_path, Duration::from_millis(500)) else { return Ok(()) };
        let released = journal.read()?;
        let (commands, known) = (Commands::within(A_LOOK), Observations::default());
        let mut releaser =
            Releaser::new(commands, options.clone(), store, known, (journal, released));
        if releaser.on_their_way().is_empty() {
            return Ok(());
        }
        // Where Slurm does not answer it is asked again.
        drop(releaser.settle(now_s()));
        drop(alone);
        std::thread::sleep(SETTLES_EVERY);
    }
}
