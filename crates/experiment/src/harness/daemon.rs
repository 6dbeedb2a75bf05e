//! A daemon that serves while something is measured.

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::{Error, run};

/// For the daemon to start or end.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A daemon of one run, with a state directory of its own.
pub(crate) struct Daemon {
    symbiont: PathBuf,
    folder: PathBuf,
}

impl Daemon {
    /// Of this program, with its files in this folder.
    pub fn new(symbiont: &Path, folder: &Path) -> Self {
        Self { symbiont: symbiont.to_owned(), folder: folder.to_owned() }
    }

    fn state(&self) -> PathBuf {
        self.folder.join("state")
    }

    /// `symbiont COMMAND` with its state directory.
    pub fn command(&self, command: &str) -> Vec<String> {
        let [symbiont, state] = [&self.symbiont, &self.state()].map(|p| p.display().to_string());
        vec![symbiont, command.to_owned(), "--state-dir".to_owned(), state]
    }

    /// Starts it with these settings, does something once it listens, and ends it. It also ends after
    /// `limit`, and when the work is to be ended.
    pub fn serve<T>(
        &self,
        settings: &str,
        limit: Duration,
        cancelled: &(dyn Fn() -> bool + Sync),
        work: impl FnOnce() -> Result<T, Error>,
    ) -> Result<T, Error> {
        let file = |name: &str| self.folder.join(name);
        let config = file("symbiontd.toml");
        fs::write(&config, settings).map_err(Error::io(&config))?;
        let mut words = self.command("daemon");
        words.extend(["--config".to_owned(), config.display().to_string()]);
        let over = AtomicBool::new(false);
        let ends = || over.load(Ordering::Relaxed) || cancelled();
        let (out, err) = (file("daemon.out"), file("daemon.err"));
        std::thread::scope(|scope| {
            let serving = scope.spawn(|| match run(&words, &out, &err, limit, &ends) {
                Err(Error::Cancelled) => Ok(()),
                other => other.map(drop),
            });
            let socket = self.state().join("symbiontd.sock");
            let begin = Instant::now();
            while UnixStream::connect(&socket).is_err()
                && begin.elapsed() < PATIENCE
                && !serving.is_finished()
            {
                std::thread::sleep(Duration::from_millis(20));
            }
            let done = work();
            over.store(true, Ordering::Relaxed);
            // A panic of its thread would be one of this crate's.
            serving.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            done
        })
    }
}
