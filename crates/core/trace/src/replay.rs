//! A machine that replays a recording.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::time::Duration;

use symbiont_machine::{Machine, Move, Outcome, Sample, Support};
use symbiont_topology::Topology;

use crate::{Header, Quantum, Reader, TraceError};

/// Gives the samples of a recording in order; carries out nothing.
#[derive(Debug)]
pub struct Replay<R = BufReader<File>> {
    reader: Reader<R>,
    /// The quantum that was read ahead, to know whether there is more.
    next: Option<Result<Quantum, TraceError>>,
    recorded: Option<Quantum>,
    quanta: usize,
}

impl Replay {
    /// Replays the recording in a file.
    ///
    /// # Errors
    /// When the file cannot be read, is no recording, or is of a version that
    /// is not known here.
    pub fn open(path: &Path) -> Result<Self, TraceError> {
        Ok(Self::new(Reader::open(path)?))
    }
}

impl<R: BufRead> Replay<R> {
    /// Replays what is left of a recording.
    pub fn new(mut reader: Reader<R>) -> Self {
        let next = reader.next_quantum().transpose();
        Self { reader, next, recorded: None, quanta: 0 }
    }

    /// The header of the recording.
    pub fn header(&self) -> &Header {
        self.reader.header()
    }

    /// The decisions that were recorded with the last sample that was given.
    pub fn recorded(&self) -> Option<&Quantum> {
        self.recorded.as_ref()
    }

    /// The number of the line that was left out because it ends in the middle,
    /// as when the recorder was killed. Known once the replay has ended.
    pub fn truncated(&self) -> Option<usize> {
        self.reader.truncated()
    }
}

impl<R: BufRead> Machine for Replay<R> {
    type Error = TraceError;

    fn topology(&self) -> &Topology {
        &self.reader.header().topology
    }

    /// The support of the recorded machine.
    fn support(&self) -> &Support {
        &self.reader.header().support
    }

    /// # Errors
    /// When the line of this quantum cannot be read or is damaged, which ends
    /// the recording; [`TraceError::Ended`] after the end.
    fn sample(&mut self) -> Result<Sample, TraceError> {
        let Some(quantum) = self.next.take() else {
            let name = self.reader.name().to_owned();
            return Err(TraceError::Ended { name, quanta: self.quanta });
        };
        let quantum = quantum?;
        self.next = self.reader.next_quantum().transpose();
        self.quanta += 1;
        Ok(self.recorded.insert(quantum).sample.clone())
    }

    fn acts(&self) -> bool {
        false
    }

    fn apply(&mut self, moves: &[Move]) -> Result<Vec<Outcome>, TraceError> {
        Ok(vec![Outcome::NotEnforced; moves.len()])
    }

    fn wait(&mut self, _: Duration) -> Result<(), TraceError> {
        Ok(())
    }

    fn ended(&self) -> bool {
        self.next.is_none()
    }
}
