//! Where counts are written: standard output or error, or a file that has them whole or not at all.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;

use anyhow::Context;
use symbiont_safe_open::output::{self, Whole};

use crate::args::Stat;

/// An output.
pub enum Output {
    /// Standard output or standard error.
    Standard(Box<dyn Write>),
    /// A file to which something is added each time.
    Growing(File, PathBuf),
    /// A file that is written once, at the end; none: it is written.
    AtTheEnd(Option<Whole>, PathBuf),
}

impl Output {
    /// As the command line has it.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn of(args: &Stat) -> anyhow::Result<Self> {
        let Some(path) = &args.output else {
            return Ok(Self::Standard(match args.command.is_empty() {
                true => Box::new(io::stdout()),
                false => Box::new(io::stderr()),
            }));
        };
        let output = match args.interval {
            Some(_) => output::create(path).map(|file| Self::Growing(file, path.clone())),
            None => Whole::prepare(path).map(|whole| Self::AtTheEnd(Some(whole), path.clone())),
        };
        output.with_context(|| format!("cannot create {}", path.display()))
    }

    /// Writes a report.
    ///
    /// # Errors
    /// When it cannot be written; no half of it is left in a file then. Where the reader has gone, this process ends well.
    pub fn write(&mut self, text: &str) -> anyhow::Result<()> {
        let written = match self {
            Self::Standard(to) => to.write_all(text.as_bytes()).and_then(|()| to.flush()),
            Self::Growing(file, _) => add(file, text),
            Self::AtTheEnd(whole, _) => match whole.take() {
                Some(whole) => whole.write(0o644, text.as_bytes()),
                None => Ok(()),
            },
        };
        match (written, self) {
            // The reader has seen enough.
            (Err(error), _) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
            (written, Self::Standard(_)) => written.context("cannot write what was counted"),
            (written, Self::Growing(_, path) | Self::AtTheEnd(_, path)) => written
                .with_context(|| format!("cannot write what was counted to {}", path.display())),
        }
    }
}

/// Adds a whole text or nothing to a regular file.
fn add(file: &mut File, text: &str) -> io::Result<()> {
    let before = file.metadata()?;
    let written = file.write_all(text.as_bytes());
    if written.is_err() && before.is_file() {
        // The first error is the one that counts.
        let _ = file.set_len(before.len());
    }
    written
}
