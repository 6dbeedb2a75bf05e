//! The file of a program's windows.
//!
//! # Layout
//!
//! ```text
//! file = "SYMBTRAC", version (4 bytes, least significant first), chunk*        (see chunk)
//! chunks: what the file is of
//!         for each window: what it is, its lines, its blocks and events in turn
//!         the count of windows
//! ```

use std::fs::File;
use std::io::{BufReader, ErrorKind, Read, Seek, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use symbiont_safe_open::output;

use super::chunk::{HEAD, Head, Kind, append_value};
use super::error::Fault;
use super::{About, RawWindow, TraceError, TraceOps, VERSION, Window, WindowInfo, lines};

const MAGIC: &[u8; 8] = b"SYMBTRAC";
/// Bytes before the first chunk.
const BEFORE: u64 = 12;
/// Most windows of a file.
pub const MOST_WINDOWS: usize = 1024;

/// A trace of which only the description has been read.
///
/// ```no_run
/// use symbiont_profile::trace::TraceFile;
///
/// let file = TraceFile::open("gzip.trace".as_ref())?;
/// for (index, info) in file.windows().iter().enumerate() {
///     let window = file.window(index)?;
///     for line in &window.data { /* touch it: the least recently used comes first */ }
///     let mut ops = window.ops;
///     while let Some(op) = ops.next() {
///         let op = op?;
///         let counts = ops.instructions() > info.warm_up;
///     }
/// }
/// # Ok::<(), symbiont_profile::trace::TraceError>(())
/// ```
#[derive(Debug, Clone)]
pub struct TraceFile {
    path: PathBuf,
    about: About,
    windows: Vec<WindowInfo>,
    /// Where the chunks of each window begin.
    places: Vec<u64>,
}

impl TraceFile {
    /// Opens a trace. Its windows are not read yet, but it is checked that all of them are there.
    ///
    /// # Errors
    /// When the file cannot be read, is no trace, is of another version, or
    /// is damaged or cut off.
    pub fn open(path: &Path) -> Result<Self, TraceError> {
        let name = path.display().to_string();
        let io = |source| TraceError::Io { name: name.clone(), what: "read", source };
        let mut file = BufReader::new(symbiont_safe_open::open(path).map_err(io)?);
        let mut start = Vec::new();
        (&mut file).take(BEFORE).read_to_end(&mut start).map_err(io)?;
        check_start(&start, &name)?;
        scan(&mut file, path).map_err(|fault| fault.of(&name))
    }

    /// What the trace was taken of.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// Its windows: that of the most frequent phase first.
    pub fn windows(&self) -> &[WindowInfo] {
        &self.windows
    }

    /// Begins to read a window; several may be read at once.
    ///
    /// # Errors
    /// When there is no such window, or the file cannot be read or is damaged.
    pub fn window(&self, index: usize) -> Result<Window, TraceError> {
        let name = self.path.display().to_string();
        let known = self.windows.get(index).zip(self.places.get(index));
        let Some((info, place)) = known else {
            return Err(TraceError::NoWindow { name, index, windows: self.windows.len() });
        };
        self.begin(info, *place).map_err(|fault| fault.of(&name))
    }

    fn begin(&self, info: &WindowInfo, place: u64) -> Result<Window, Fault> {
        let mut file = BufReader::new(symbiont_safe_open::open(&self.path)?);
        file.seek(SeekFrom::Start(place))?;
        let (mut data, mut code) = (Vec::new(), Vec::new());
        let mut number = 1;
        let head = loop {
            let head = Head::read(&mut file)?;
            if !head.is(Kind::Lines) {
                break head;
            }
            if head.number != number {
                return Err(Fault::damaged("a chunk is missing"));
            }
            number += 1;
            lines::decode(&head.content(&mut file)?, &mut data, &mut code)?;
        };
        let name = self.path.display().to_string();
        let ops = TraceOps::new(name, file, info.clone(), number, head);
        Ok(Window { data, code, ops })
    }
}

fn check_start(start: &[u8], name: &str) -> Result<(), TraceError> {
    let name = name.to_owned();
    if start.is_empty() {
        return Err(TraceError::Empty { name });
    }
    let Some(version) = start.strip_prefix(MAGIC) else {
        return Err(TraceError::NotATrace { name });
    };
    let Some(version) = version.first_chunk().map(|bytes| u32::from_le_bytes(*bytes)) else {
        return Err(TraceError::Damaged { name, why: "it ends too early".to_owned() });
    };
    if version != VERSION {
        return Err(TraceError::Version { name, version, known: VERSION });
    }
    Ok(())
}

/// Reads what it is of, and walks over all chunks.
fn scan(file: &mut BufReader<File>, path: &Path) -> Result<TraceFile, Fault> {
    let length = file.get_ref().metadata()?.len();
    let head = Head::read(file)?;
    if !head.is(Kind::About) {
        return Err(Fault::damaged("chunks are out of order"));
    }
    let about = head.value(file)?;
    let mut found = TraceFile { path: path.to_owned(), about, windows: vec![], places: vec![] };
    let mut at = BEFORE + HEAD + u64::from(head.packed);
    loop {
        file.seek(SeekFrom::Start(at))?;
        let head = Head::read(file)?;
        at += HEAD + u64::from(head.packed);
        if head.is(Kind::End) {
            let windows: u32 = head.value(file)?;
            if windows as usize != found.windows.len() || at != length {
                return Err(Fault::damaged("windows are missing or left over"));
            }
            return Ok(found);
        }
        if head.is(Kind::Window) {
            let info: WindowInfo = head.value(file)?;
            check(&info)?;
            found.windows.push(info);
            found.places.push(at);
            if found.windows.len() > MOST_WINDOWS {
                return Err(Fault::damaged("more windows than are ever kept"));
            }
        }
    }
}

fn check(info: &WindowInfo) -> Result<(), Fault> {
    let holds = info.warm_up < info.instructions && (0.0..=1.0).contains(&info.share);
    if holds { Ok(()) } else { Err(Fault::damaged("a window contradicts itself")) }
}

/// Writes a trace, which replaces the file as a whole. `windows`: for each its
/// phase, the phase's share, and its warm-up in instructions; that of the most
/// frequent phase first. They are asked for one by one, so that one at a time is
/// in memory.
///
/// # Errors
/// When the file cannot be written, or a window contradicts itself.
pub fn write(
    path: &Path,
    about: &About,
    windows: impl Iterator<Item = std::io::Result<(u16, f64, u64, RawWindow)>>,
) -> Result<(), TraceError> {
    let name = || path.display().to_string();
    let io = |source| TraceError::Io { name: name(), what: "write", source };
    let mut unusual = None;
    let written = output::replace(path, 0o644, |file| {
        fill(file, about, windows).map_err(|why| match why {
            Trouble::Io(error) => error,
            Trouble::Unusable(why) => {
                unusual = Some(why);
                ErrorKind::InvalidData.into()
            }
        })
    });
    match unusual {
        Some(why) => Err(TraceError::Unusable { name: name(), why }),
        None => written.map_err(io),
    }
}

/// Why a trace cannot be written.
enum Trouble {
    Io(std::io::Error),
    Unusable(String),
}

impl From<std::io::Error> for Trouble {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

fn fill(
    file: &mut File,
    about: &About,
    windows: impl Iterator<Item = std::io::Result<(u16, f64, u64, RawWindow)>>,
) -> Result<(), Trouble> {
    let unusable = |why: &str| Trouble::Unusable(why.to_owned());
    let mut start = [&MAGIC[..], &VERSION.to_le_bytes()].concat();
    append_value(&mut start, Kind::About, 0, about).map_err(Trouble::Unusable)?;
    file.write_all(&start)?;
    let mut count = 0_u32;
    for window in windows {
        let (phase, share, warm_up, raw) = window?;
        let RawWindow { start, instructions, ops, after, chunks, .. } = raw;
        let info = WindowInfo { phase, share, start, warm_up, instructions, ops, after };
        check(&info).map_err(|_| unusable("a window contradicts itself"))?;
        let mut head = Vec::new();
        append_value(&mut head, Kind::Window, 0, &info).map_err(Trouble::Unusable)?;
        file.write_all(&head)?;
        file.write_all(&chunks)?;
        count += 1;
    }
    if count as usize > MOST_WINDOWS {
        return Err(unusable("it has more windows than are ever kept"));
    }
    let mut end = Vec::new();
    append_value(&mut end, Kind::End, 0, &count).map_err(Trouble::Unusable)?;
    Ok(file.write_all(&end)?)
}

/// Is it a trace, by its first bytes?
///
/// # Errors
/// When the file cannot be read.
pub fn is_trace(path: &Path) -> std::io::Result<bool> {
    let mut start = [0; MAGIC.len()];
    match symbiont_safe_open::open(path)?.read_exact(&mut start) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        read => read.map(|()| start == *MAGIC),
    }
}
