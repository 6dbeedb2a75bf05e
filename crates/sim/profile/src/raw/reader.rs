//! Reads the files that the plugin wrote.

use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use super::{End, Kind, LAYOUT, Signature, Start, Traces};
use crate::trace::RawWindow;
use crate::vectors::Counts;
use crate::{MicroTrace, Phase};

/// Where one interval lies in a file.
#[derive(Debug, Clone)]
pub struct IntervalAt {
    /// What distinguishes it from others.
    pub signature: Signature,
    phase: (u64, u64),
    traces: (u64, u64),
    caches: Option<(u64, u64)>,
}

/// A file of one executed program. Only signatures are kept in memory.
#[derive(Debug)]
pub struct RawFile {
    path: PathBuf,
    /// The program that wrote it.
    pub start: Start,
    /// Whole intervals, in the order in which they ended.
    pub intervals: Vec<IntervalAt>,
    /// Where windows of instruction traces lie, in the order in which they ended.
    windows: Vec<(u64, u64)>,
    /// How it ended; none if the process was killed or could not write on.
    pub end: Option<End>,
}

/// What a frame's header says.
struct Header {
    kind: u8,
    /// Where its value starts, and how long it is.
    value: (u64, u64),
}

fn broken(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what.to_owned())
}

fn decode<T: DeserializeOwned>(bytes: &[u8]) -> io::Result<T> {
    postcard::from_bytes(bytes).map_err(|error| broken(&error.to_string()))
}

impl RawFile {
    /// Reads the signatures. A torn end is left out.
    ///
    /// # Errors
    /// When the file cannot be read, does not start as it must, or is not what
    /// the plugin of this version writes.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut file = BufReader::new(File::open(path)?);
        let length = file.get_ref().metadata()?.len();
        let mut next = 0;
        let first = header(&mut file, &mut next, length)?.ok_or_else(|| broken("it is empty"))?;
        if first.kind != Kind::Start as u8 {
            return Err(broken("it does not start with its start"));
        }
        let start: Start = decode(&bytes(&mut file, first.value)?)?;
        if start.layout != LAYOUT {
            return Err(broken("the plugin is of another version than this program"));
        }
        let (mut intervals, mut windows) = (Vec::<IntervalAt>::new(), Vec::new());
        let mut end = None;
        while let Some(frame) = header(&mut file, &mut next, length)? {
            if frame.kind == Kind::End as u8 {
                end = Some(decode(&bytes(&mut file, frame.value)?)?);
                continue;
            }
            if frame.kind == Kind::Window as u8 {
                windows.push(frame.value);
                continue;
            }
            if frame.kind == Kind::Caches as u8 {
                let last = intervals.last_mut().ok_or_else(|| broken("frames are out of order"))?;
                last.caches = Some(frame.value);
                continue;
            }
            if frame.kind != Kind::Signature as u8 {
                return Err(broken("frames are out of order"));
            }
            let signature = decode(&bytes(&mut file, frame.value)?)?;
            let Some(phase) = header(&mut file, &mut next, length)? else { break };
            let Some(traces) = header(&mut file, &mut next, length)? else { break };
            if (phase.kind, traces.kind) != (Kind::Phase as u8, Kind::Traces as u8) {
                return Err(broken("frames are out of order"));
            }
            intervals.push(IntervalAt {
                signature,
                phase: phase.value,
                traces: traces.value,
                caches: None,
            });
        }
        Ok(Self { path: path.to_owned(), start, intervals: superseded(intervals), windows, end })
    }

    /// Reads what an interval did.
    ///
    /// # Errors
    /// When the file cannot be read or is damaged.
    pub fn phase(&self, interval: &IntervalAt) -> io::Result<Phase> {
        decode(&bytes(&mut File::open(&self.path)?, interval.phase)?)
    }

    /// Reads the micro-traces of an interval.
    ///
    /// # Errors
    /// When the file cannot be read or is damaged.
    pub fn traces(&self, interval: &IntervalAt) -> io::Result<Vec<MicroTrace>> {
        let traces: Traces = decode(&bytes(&mut File::open(&self.path)?, interval.traces)?)?;
        Ok(traces.traces)
    }

    /// Reads what an interval did to simulated caches; none if there were none.
    ///
    /// # Errors
    /// When the file cannot be read or is damaged.
    pub fn caches(&self, interval: &IntervalAt) -> io::Result<Option<[Counts; 3]>> {
        let mut file = File::open(&self.path)?;
        interval.caches.map(|place| decode(&bytes(&mut file, place)?)).transpose()
    }

    /// How many windows of instruction traces it has.
    pub fn windows(&self) -> usize {
        self.windows.len()
    }

    /// Reads a window of an instruction trace.
    ///
    /// # Errors
    /// When the file cannot be read or is damaged, or there is no such window.
    pub fn window(&self, index: usize) -> io::Result<RawWindow> {
        let place = self.windows.get(index).ok_or_else(|| broken("there is no such window"))?;
        decode(&bytes(&mut File::open(&self.path)?, *place)?)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Did it end by executing another program?
    pub fn executed_another(&self) -> bool {
        self.end.is_none() && self.intervals.last().is_some_and(|last| last.signature.before_exec)
    }
}

/// The next frame's header, and `next` set behind the frame; none if there is
/// no whole frame left.
fn header(file: &mut BufReader<File>, next: &mut u64, length: u64) -> io::Result<Option<Header>> {
    const SIZE: u64 = 5;
    let value = *next + SIZE;
    if value > length {
        return Ok(None);
    }
    let mut head = [0; SIZE as usize];
    file.seek(SeekFrom::Start(*next))?;
    file.read_exact(&mut head)?;
    let [kind, size @ ..] = head;
    let size = u64::from(u32::from_le_bytes(size));
    if value + size > length {
        return Ok(None);
    }
    *next = value + size;
    Ok(Some(Header { kind, value: (value, size) }))
}

fn bytes(file: &mut (impl Read + Seek), (start, size): (u64, u64)) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(start))?;
    file.take(size).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Leaves out intervals that were written before an attempt to execute another
/// program that failed: the thread wrote them again when they ended.
fn superseded(intervals: Vec<IntervalAt>) -> Vec<IntervalAt> {
    let mut kept: Vec<IntervalAt> = Vec::new();
    for interval in intervals {
        let thread = interval.signature.thread;
        let before = kept.iter().rposition(|other| other.signature.thread == thread);
        if let Some(before) = before.filter(|index| kept[*index].signature.before_exec) {
            kept.remove(before);
        }
        kept.push(interval);
    }
    kept
}

#[cfg(test)]
mod tests;
