//! Reads recordings, line by line.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use crate::format::{FORMAT, Preamble, QuantumLine, State};
use crate::{Header, Quantum, TraceError, VERSION};
use serde::de::DeserializeOwned;

/// Longest line that is read, in bytes: some hundred times a quantum of
/// 2,048 threads. It keeps a file that is no recording from filling memory.
const LONGEST_LINE: u64 = 256 << 20;

/// Reads a recording, a quantum at a time.
#[derive(Debug)]
pub struct Reader<R> {
    from: R,
    name: String,
    header: Header,
    /// Lines read so far.
    line: usize,
    last: State,
    truncated: Option<usize>,
}

impl Reader<BufReader<File>> {
    /// Opens a recording and reads its header.
    ///
    /// # Errors
    /// When the file cannot be read, is no recording, or is of a version that
    /// is not known here.
    pub fn open(path: &Path) -> Result<Self, TraceError> {
        let name = path.display().to_string();
        match symbiont_safe_open::open(path) {
            Ok(file) => Reader::new(BufReader::new(file), name),
            Err(source) => Err(TraceError::Io { name, what: "open", source }),
        }
    }
}

impl<R: BufRead> Reader<R> {
    /// Reads the header of a recording; `name` stands in errors.
    ///
    /// # Errors
    /// As [`Reader::open`].
    pub fn new(mut from: R, name: impl Into<String>) -> Result<Self, TraceError> {
        let name = name.into();
        let Some(line) = read_line(&mut from, &name, 1)? else {
            return Err(TraceError::Empty { name });
        };
        let preamble: Preamble = match serde_json::from_slice(&line.bytes) {
            Ok(preamble) => preamble,
            Err(error) => return Err(TraceError::NotARecording { name, why: error.to_string() }),
        };
        if preamble.format != FORMAT {
            let why = format!("it calls itself '{}'", preamble.format);
            return Err(TraceError::NotARecording { name, why });
        }
        if !(1..=VERSION).contains(&preamble.version) {
            let version = preamble.version;
            return Err(TraceError::Version { name, version, known: VERSION });
        }
        let header = parse(&line.bytes, &name, 1)?;
        Ok(Self { from, name, header, line: 1, last: State::default(), truncated: None })
    }

    /// The header of the recording.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The name of the recording in errors.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number of the line that was left out because it ends in the middle,
    /// as when the recorder was killed. Known once the end was read.
    pub fn truncated(&self) -> Option<usize> {
        self.truncated
    }

    /// The next quantum; none at the end.
    ///
    /// # Errors
    /// When the line cannot be read or is damaged.
    pub fn next_quantum(&mut self) -> Result<Option<Quantum>, TraceError> {
        let number = self.line + 1;
        let Some(line) = read_line(&mut self.from, &self.name, number)? else {
            return Ok(None);
        };
        self.line = number;
        let parsed: Result<QuantumLine, _> = parse(&line.bytes, &self.name, number);
        if parsed.is_err() && !line.whole {
            self.truncated = Some(number);
            return Ok(None);
        }
        let quantum = self.last.follow(parsed?);
        let damaged = |why| TraceError::Damaged { name: self.name.clone(), line: number, why };
        quantum.map(Some).map_err(damaged)
    }
}

/// A line with its end.
struct Line {
    bytes: Vec<u8>,
    /// Was there an end?
    whole: bool,
}

/// The next line; none at the end of the file.
fn read_line(from: &mut impl BufRead, name: &str, line: usize) -> Result<Option<Line>, TraceError> {
    let mut bytes = Vec::new();
    from.take(LONGEST_LINE).read_until(b'\n', &mut bytes).map_err(|source| TraceError::Io {
        name: name.to_owned(),
        what: "read",
        source,
    })?;
    if bytes.is_empty() {
        return Ok(None);
    }
    if bytes.len() as u64 == LONGEST_LINE {
        let why = format!("the line is longer than {LONGEST_LINE} bytes");
        return Err(TraceError::Damaged { name: name.to_owned(), line, why });
    }
    let whole = bytes.last() == Some(&b'\n');
    Ok(Some(Line { bytes, whole }))
}

fn parse<T: DeserializeOwned>(bytes: &[u8], name: &str, line: usize) -> Result<T, TraceError> {
    serde_json::from_slice(bytes).map_err(|error| TraceError::Damaged {
        name: name.to_owned(),
        line,
        why: error.to_string(),
    })
}
