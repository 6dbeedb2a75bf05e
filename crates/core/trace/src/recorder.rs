//! Writes recordings.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use serde::Serialize;
use symbiont_machine::{Move, Outcome, Placement, Sample};

use crate::format::{FORMAT, FirstLine, Preamble, State};
use crate::{Header, TraceError};

/// Writes a recording, a line per quantum. Each line is handed over in a
/// single write; nothing is kept back, so there is nothing to finish.
#[derive(Debug)]
pub struct Recorder<W: Write = File> {
    to: W,
    name: String,
    line: Vec<u8>,
    last: State,
}

impl Recorder<File> {
    /// Starts a recording in a file. A file that is there already is replaced.
    ///
    /// # Errors
    /// When the file cannot be created or written.
    pub fn create(path: &Path, header: &Header) -> Result<Self, TraceError> {
        let name = path.display().to_string();
        match symbiont_safe_open::output::create(path) {
            Ok(file) => Recorder::new(file, name, header),
            Err(source) => Err(TraceError::Io { name, what: "create", source }),
        }
    }
}

impl<W: Write> Recorder<W> {
    /// Starts a recording; `name` stands in errors.
    ///
    /// # Errors
    /// When the first line cannot be written.
    pub fn new(to: W, name: impl Into<String>, header: &Header) -> Result<Self, TraceError> {
        let mut recorder = Self { to, name: name.into(), line: Vec::new(), last: State::default() };
        let preamble = Preamble { format: FORMAT.to_owned(), version: header.version() };
        recorder.write(&FirstLine { preamble, header })?;
        Ok(recorder)
    }

    /// Adds a quantum.
    ///
    /// # Errors
    /// When it cannot be written, for example because the disk is full. The
    /// recording ends there: lines build on each other, so add no more.
    pub fn record<'a>(
        &mut self,
        sample: &Sample,
        placement: &Placement,
        moves: impl IntoIterator<Item = (&'a Move, &'a Outcome)>,
    ) -> Result<(), TraceError> {
        let line = self.last.advance(sample, placement, moves);
        self.write(&line)
    }

    /// Gives back what was written to.
    pub fn into_inner(self) -> W {
        self.to
    }

    fn write(&mut self, value: &impl Serialize) -> Result<(), TraceError> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, value)
            .map_err(|source| TraceError::Encode { name: self.name.clone(), source })?;
        self.line.push(b'\n');
        self.to
            .write_all(&self.line)
            .and_then(|()| self.to.flush())
            .map_err(|source| TraceError::Io { name: self.name.clone(), what: "write", source })
    }
}
