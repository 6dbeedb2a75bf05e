//! A daemon that serves while something is measured.

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::run;
use symbiont_campaign::Error;

/// For the daemon to start or end.
pub const TIMEOUT: Duration = Duration::from_secs(20);

/// A daemon of one run, with a state directory of its own.
pub struct Daemon {
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
    ///
    /// # Errors
    /// When it does not listen, fails, or the work does.
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
                && begin.elapsed() < TIMEOUT
                && !serving.is_finished()
            {
                std::thread::sleep(Duration::from_millis(20));
            }
            // Without it, programs would bring managers of their own.
            let listens = UnixStream::connect(&socket).is_ok();
            let done = listens.then(work);
            over.store(true, Ordering::Relaxed);
            // A panic of its thread would be one of this crate's.
            serving.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            done.unwrap_or_else(|| Err(Error::Unmanaged("the daemon does not listen".to_owned())))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worlds::scripts::script;

    #[test]
    fn nothing_is_measured_without_a_daemon() {
        let folder = tempfile::tempdir().unwrap();
        let limit = Duration::from_secs(60);
        for (text, why) in [("exit 0", "does not listen"), ("echo oh >&2; exit 3", "oh")] {
            let ends = script(folder.path(), "symbiont", &format!("#!/bin/sh\n{text}\n"));
            let daemon = Daemon::new(&ends, folder.path());
            let served = daemon.serve("", limit, &|| false, || -> Result<(), Error> {
                panic!("it is measured all the same");
            });
            let error = served.unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
