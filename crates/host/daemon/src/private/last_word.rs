//! A last word to the user whose program took symbiont's place: after that no
//! process of symbiont's holds the user's terminal any more, or waits for a
//! report.

use std::fs::{File, OpenOptions};
use std::io::{IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// The terminal that is a program's standard error, not held open.
#[derive(Debug)]
pub struct LastWord(PathBuf);

impl LastWord {
    /// The terminal of a process; none if its standard error is something else: a file or a
    /// pipe is the program's alone.
    pub fn to_user_of(process: u32) -> Option<Self> {
        let path = std::fs::read_link(format!("/proc/{process}/fd/2")).ok()?;
        open(&path).map(|_| Self(path))
    }

    /// Says what the user should know.
    pub fn say(&self, lines: &[String]) {
        let Some(mut terminal) = open(&self.0) else { return };
        for line in lines {
            // It does not wait for a terminal that is gone or whose output is stopped.
            let _ = terminal.write_all(format!("symbiont: {line}\r\n").as_bytes());
        }
    }
}

fn open(path: &Path) -> Option<File> {
    // Neither becomes it ours, nor do we wait for it.
    let flags = OFlags::NOCTTY | OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    let file = OpenOptions::new().write(true).custom_flags(flags).open(path).ok()?;
    file.is_terminal().then_some(file)
}
