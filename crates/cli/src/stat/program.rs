//! The command whose threads are counted.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command};

use rustix::process::{Pid, Signal, kill_process};
use symbiont_linux::launch::by_fork;

/// A child of this process.
#[derive(Debug)]
pub struct Program {
    child: Child,
}

impl Program {
    /// Starts it with this process's own input and output. Where it cannot be
    /// run this process ends, with the status by which shells report that.
    ///
    /// # Errors
    /// When there is no word.
    pub fn start(words: &[OsString]) -> anyhow::Result<Self> {
        let Some((program, arguments)) = words.split_first() else {
            anyhow::bail!("the command is empty; give at least the program's name");
        };
        match by_fork(Command::new(program).args(arguments)).spawn() {
            Ok(child) => Ok(Self { child }),
            Err(error) => {
                let (code, why) = match error.kind() {
                    io::ErrorKind::NotFound => (127, "not found".to_owned()),
                    _ => (126, error.to_string()),
                };
                note!("symbiont: cannot run '{}': {why}", program.to_string_lossy());
                std::process::exit(code);
            }
        }
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The status by which shells report how it ended, once it has.
    ///
    /// # Errors
    /// When the kernel cannot report it.
    pub fn ended(&mut self) -> anyhow::Result<Option<i32>> {
        let code = |status: std::process::ExitStatus| {
            status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1)
        };
        Ok(self.child.try_wait()?.map(code))
    }

    /// Sends it a signal.
    pub fn send(&self, signal: i32) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let (Some(pid), Some(signal)) = (pid, Signal::from_named_raw(signal)) {
            // Not waited for yet, so the number is still its own.
            let _ = kill_process(pid, signal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(words: &[&str]) -> i32 {
        let words: Vec<OsString> = words.iter().map(|&word| word.into()).collect();
        let mut program = Program::start(&words).unwrap();
        loop {
            if let Some(code) = program.ended().unwrap() {
                return code;
            }
            std::thread::yield_now();
        }
    }

    #[test]
    fn statuses_are_those_of_shells() {
        assert_eq!(status(&["true"]), 0);
        assert_eq!(status(&["sh", "-c", "exit 7"]), 7);
        assert_eq!(status(&["sh", "-c", "kill -TERM $$"]), 128 + 15);
    }

    #[test]
    fn signals_reach_it() {
        let words = ["sleep", "1000"].map(OsString::from);
        let mut program = Program::start(&words).unwrap();
        program.send(15);
        let code = loop {
            match program.ended().unwrap() {
                Some(code) => break code,
                None => std::thread::yield_now(),
            }
        };
        assert_eq!(code, 128 + 15);
        assert!(Program::start(&[]).is_err());
    }
}
