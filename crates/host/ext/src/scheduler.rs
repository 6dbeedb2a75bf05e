//! A loaded scheduler, by its loader.

use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::{Duration, Instant};

use rustix::io::ioctl_fionbio;

use crate::{Report, Request};

/// A loader that has said nothing for so long does not load: the kernel checks its programs within a tenth of a second,
/// and within some ten in an emulated machine.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);
/// How often it is looked whether it is loaded.
const LOOK: Duration = Duration::from_millis(2);
/// So many bytes of requests may wait for the loader to read them: those of some ten thousand threads.
const MOST_UNSENT: usize = 4 << 20;
/// What a pipe holds.
const A_PIPE: usize = 64 << 10;
/// So long is what a loader said before it ended waited for.
const LAST_WORDS: Duration = Duration::from_millis(100);
/// So long it may take to unload and end.
const FAREWELL: Duration = Duration::from_secs(2);

/// Why there is no scheduler.
#[derive(Debug, thiserror::Error)]
pub enum SchedulerError {
    /// The loader does not run.
    #[error("{program} does not start: {source}")]
    Start {
        /// The loader.
        program: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The scheduler is not loaded, in the loader's words.
    #[error("{}", .0.why)]
    Ended(crate::Ended),
    /// The loader ended without a word, does not read, or says what is not understood.
    #[error("{0} {1}")]
    Lost(PathBuf, &'static str),
}

/// A `sched_ext` scheduler that is loaded as long as this lives.
#[derive(Debug)]
pub struct Scheduler {
    program: PathBuf,
    child: Child,
    requests: Option<ChildStdin>,
    /// What the pipe had no room for.
    unsent: Vec<u8>,
    reports: Receiver<Option<Report>>,
    /// Until when it has to be loaded; none: it is.
    loads_until: Option<Instant>,
}

impl Scheduler {
    /// Has `program` load the scheduler, with more arguments; [`Scheduler::is_loaded`] says when it is.
    ///
    /// # Errors
    /// When the loader does not run.
    pub fn begin(program: &Path, arguments: &[&str]) -> Result<Self, SchedulerError> {
        let fail = |source| SchedulerError::Start { program: program.to_owned(), source };
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(fail)?;
        let (requests, said) = (child.stdin.take(), child.stdout.take());
        let (sender, reports) = channel();
        let scheduler = Self {
            program: program.to_owned(),
            child,
            requests,
            unsent: Vec::new(),
            reports,
            loads_until: Some(Instant::now() + ANSWER_WITHIN),
        };
        if let Some(requests) = &scheduler.requests {
            // A loader that does not read must not hold up its manager.
            ioctl_fionbio(requests.as_fd(), true).map_err(|why| fail(why.into()))?;
        }
        let Some(said) = said else { return Err(scheduler.lost("has no output")) };
        let read = move || {
            for line in BufReader::new(said).lines() {
                let report = line.ok().and_then(|line| serde_json::from_str(&line).ok());
                let is_understood = report.is_some();
                if sender.send(report).is_err() || !is_understood {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("scheduler".to_owned()).spawn(read).map_err(fail)?;
        Ok(scheduler)
    }

    /// The process of its loader.
    #[must_use]
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it is loaded.
    ///
    /// # Errors
    /// As [`Scheduler::is_loaded`].
    pub fn wait(mut self) -> Result<Self, SchedulerError> {
        while !self.is_loaded()? {
            std::thread::sleep(LOOK);
        }
        Ok(self)
    }

    /// Is it loaded by now?
    ///
    /// # Errors
    /// When it will not be: in the loader's words, or since it has taken more than a minute.
    pub fn is_loaded(&mut self) -> Result<bool, SchedulerError> {
        let Some(until) = self.loads_until else { return Ok(true) };
        match self.report()? {
            Some(Report::Loaded) => {
                self.loads_until = None;
                Ok(true)
            }
            Some(_) => Err(self.lost("says what is not understood")),
            None if Instant::now() >= until => Err(self.lost("does not answer")),
            None => Ok(false),
        }
    }

    /// Asks for all of this at once. What the loader has not read yet waits here.
    ///
    /// # Errors
    /// When the loader takes no more, or too much waits for it; in its words, if it has ended with some.
    pub fn ask(
        &mut self,
        requests: impl IntoIterator<Item = Request>,
    ) -> Result<(), SchedulerError> {
        for request in requests {
            let mut line = serde_json::to_string(&request).unwrap_or_default();
            line.push('\n');
            self.unsent.extend(line.as_bytes());
            if self.unsent.len() >= A_PIPE {
                self.send()?;
            }
        }
        self.send()
    }

    /// Writes as much as the pipe has room for.
    fn send(&mut self) -> Result<(), SchedulerError> {
        let mut sent = 0;
        let mut is_open = self.requests.is_some();
        if let Some(requests) = &mut self.requests {
            while sent < self.unsent.len() && is_open {
                match requests.write(&self.unsent[sent..]) {
                    Ok(0) => break,
                    Ok(more) => sent += more,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(_) => is_open = false,
                }
            }
        }
        self.unsent.drain(..sent);
        if is_open && self.unsent.len() <= MOST_UNSENT {
            return Ok(());
        }
        self.requests = None;
        Err(self.last_words().unwrap_or_else(|| self.lost("takes no more requests")))
    }

    /// Why it ended, if it says so: what it wrote may still be on its way.
    fn last_words(&self) -> Option<SchedulerError> {
        let until = Instant::now() + LAST_WORDS;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.reports.recv_timeout(left).ok()?? {
                Report::Ended(ended) => return Some(SchedulerError::Ended(ended)),
                Report::Loaded | Report::Statistics(_) => {}
            }
        }
    }

    /// What it reported since the last call; none if there is nothing.
    ///
    /// # Errors
    /// When the scheduler is loaded no more.
    pub fn report(&mut self) -> Result<Option<Report>, SchedulerError> {
        match self.reports.try_recv() {
            Ok(Some(Report::Ended(ended))) => Err(SchedulerError::Ended(ended)),
            Ok(Some(report)) => Ok(Some(report)),
            Ok(None) => Err(self.lost("says what is not understood")),
            Err(TryRecvError::Empty) if self.unsent.is_empty() => Ok(None),
            Err(TryRecvError::Empty) => self.send().map(|()| None),
            Err(TryRecvError::Disconnected) => Err(self.lost("ended without a word")),
        }
    }

    fn lost(&self, how: &'static str) -> SchedulerError {
        SchedulerError::Lost(self.program.clone(), how)
    }
}

impl Drop for Scheduler {
    /// The scheduler is unloaded when this returns.
    fn drop(&mut self) {
        self.requests = None;
        let until = Instant::now() + FAREWELL;
        while Instant::now() < until {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ended;

    /// A loader that is a shell script.
    fn begun(script: &str) -> Result<Scheduler, SchedulerError> {
        Scheduler::begin(Path::new("/bin/sh"), &["-c", script])
    }

    fn started(script: &str) -> Result<Scheduler, SchedulerError> {
        begun(script)?.wait()
    }

    fn next(scheduler: &mut Scheduler) -> Result<Report, SchedulerError> {
        loop {
            if let Some(report) = scheduler.report()? {
                return Ok(report);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn a_loader_that_does_not_load_is_an_error_with_its_words() {
        let error = started(r#"echo '{"ended":{"why":"no BTF here"}}'"#).unwrap_err();
        assert_eq!(error.to_string(), "no BTF here");
        for script in ["", "echo nonsense", r#"echo '{"statistics":{}}'"#] {
            assert!(matches!(started(script), Err(SchedulerError::Lost(..))), "{script}");
        }
        let error = Scheduler::begin(Path::new("/nowhere/loader"), &[]).unwrap_err();
        assert!(error.to_string().starts_with("/nowhere/loader does not start"), "{error}");
    }

    #[test]
    fn a_loader_that_ends_later_says_why() {
        let script =
            r#"echo '"loaded"'; read line; echo '{"ended":{"why":"'"$line"'","again":true}}'"#;
        let mut scheduler = started(script).unwrap();
        assert!(scheduler.report().unwrap().is_none());
        scheduler.ask([Request::Release(7)]).unwrap_or_default();
        // The line is JSON, which is no text within JSON.
        assert!(matches!(next(&mut scheduler), Err(SchedulerError::Lost(..))));

        let script = r#"echo '"loaded"'; read line; echo '{"ended":{"why":"gone","again":true}}'"#;
        let mut scheduler = started(script).unwrap();
        scheduler.ask([Request::Statistics]).unwrap();
        match next(&mut scheduler).unwrap_err() {
            SchedulerError::Ended(ended) => {
                assert_eq!(ended, Ended { why: "gone".to_owned(), again: true });
            }
            other => panic!("{other}"),
        }
    }

    #[test]
    fn a_loader_that_does_not_read_is_given_up() {
        let mut scheduler = started(r#"echo '"loaded"'; exec sleep 60"#).unwrap();
        let asked = (0..1_000_000).find_map(|nth| scheduler.ask([Request::Release(nth)]).err());
        assert!(matches!(asked, Some(SchedulerError::Lost(..))));
        assert!(scheduler.ask([Request::Statistics]).is_err(), "nothing follows half a line");
    }

    #[test]
    fn a_loader_that_closes_its_input_and_says_why_is_heard() {
        let script = r#"echo '"loaded"'; exec <&-; sleep 0.05; echo '{"ended":{"why":"a CPU went","again":true}}'"#;
        let mut scheduler = started(script).unwrap();
        let asked = (0..1000).find_map(|_| {
            std::thread::sleep(Duration::from_millis(1));
            scheduler.ask([Request::Statistics]).err()
        });
        assert!(
            matches!(asked, Some(SchedulerError::Ended(Ended { again: true, .. }))),
            "{asked:?}"
        );
    }

    #[test]
    fn requests_wait_for_a_loader_that_reads_late() {
        let script = r#"
            echo '"loaded"'; sleep 0.2
            while read line; do
                case "$line" in *statistics*) echo '{"ended":{"why":"'$count'"}}';; esac
                count=$((count + 1))
            done"#;
        let mut scheduler = started(script).unwrap();
        // More than a pipe holds.
        let many = 20_000;
        (0..many).for_each(|nth| scheduler.ask([Request::Release(nth)]).unwrap());
        scheduler.ask([Request::Statistics]).unwrap();
        let error = next(&mut scheduler).unwrap_err();
        assert_eq!(error.to_string(), many.to_string(), "each once, in whole lines");
    }

    #[test]
    fn a_loader_that_takes_its_time_is_not_waited_for() {
        let script = r#"read line; echo '"loaded"'"#;
        let mut scheduler = begun(script).unwrap();
        assert!(!scheduler.is_loaded().unwrap());
        scheduler.ask([Request::Statistics]).unwrap();
        while !scheduler.is_loaded().unwrap() {
            std::thread::sleep(LOOK);
        }
    }
}
