//! The file to which a process writes its intervals.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};

use symbiont_profile::raw::{End, Interval, Kind, LAYOUT, Start, frame};
use symbiont_profile::trace::RawWindow;

/// One process's file.
///
/// It is opened anew for each interval: programs close descriptors that they do not
/// know, and would then have this file's number for one of their own.
pub(super) struct Output {
    dir: PathBuf,
    program: String,
    /// The process, counted from 0 in the order of their starts.
    number: u32,
    pid: u32,
    path: PathBuf,
    /// Writing failed once: what follows would not fit to what is there.
    broken: AtomicBool,
}

impl Output {
    /// Creates the next file of the folder: 000000.raw, 000001.raw, …, so that
    /// the names give the order of starts.
    pub(super) fn create(dir: PathBuf, program: String, forked: bool) -> io::Result<Self> {
        let mut number = 0_u32;
        let path = loop {
            let path = dir.join(format!("{number:06}.raw"));
            match OpenOptions::new().append(true).create_new(true).open(&path) {
                Ok(_) => break path,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => {
                    return Err(io::Error::new(
                        error.kind(),
                        format!("{}: {error}", path.display()),
                    ));
                }
            }
        };
        let pid = process::id();
        let broken = AtomicBool::new(false);
        let output = Self { dir, program, number, pid, path, broken };
        let start = Start { layout: LAYOUT, pid, program: output.program.clone(), forked };
        output.write(frame(Kind::Start, &start).ok());
        Ok(output)
    }

    /// The file of a child that was just forked off.
    pub(super) fn forked(&self) -> Option<Self> {
        Self::create(self.dir.clone(), self.program.clone(), true).ok()
    }

    /// Is this process the one that it belongs to?
    pub(super) fn is_of_this_process(&self) -> bool {
        self.pid == process::id()
    }

    /// The number of its process.
    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// Appends a window.
    pub(super) fn window(&self, window: &RawWindow) {
        self.write(frame(Kind::Window, window).ok());
    }

    /// Appends an interval.
    pub(super) fn interval(&self, interval: &Interval) {
        self.write(interval.frames().ok());
    }

    /// Says that all was written, and how many threads could not be metered.
    pub(super) fn end(&self, unmetered_threads: u32) {
        let end = End { unmetered_threads };
        self.write(frame(Kind::End, &end).ok());
    }

    /// Appends frames at once. After a failure nothing more is written, so the
    /// end is missing, which the reader reports.
    fn write(&self, frames: Option<Vec<u8>>) {
        if self.broken.load(Ordering::Relaxed) {
            return;
        }
        let append =
            |frames: Vec<u8>| OpenOptions::new().append(true).open(&self.path)?.write_all(&frames);
        let written = frames.is_some_and(|frames| append(frames).is_ok());
        self.broken.store(!written, Ordering::Relaxed);
    }
}
