//! Files of an experiment: finished runs, one JSON line each, and values as JSON.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Error;

/// A file to which finished runs are appended.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
}

impl Journal {
    /// Opens or creates a journal; gives what it holds already. A torn last
    /// line, as a crash leaves it, is cut off.
    ///
    /// # Errors
    /// When the file cannot be used, or a whole line in it is not a record.
    pub fn open<T: DeserializeOwned>(path: &Path) -> Result<(Self, Vec<T>), Error> {
        let bytes = match fs::read(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            other => other.map_err(Error::io(path))?,
        };
        let (records, whole) = whole(path, &bytes)?;
        let file = File::options()
            .append(true)
            .create(true)
            .open(path)
            .and_then(|file| file.set_len(whole as u64).map(|()| file))
            .map_err(Error::io(path))?;
        Ok((Self { path: path.to_owned(), file }, records))
    }

    /// Appends a record; when this returns, a crash of this program cannot
    /// lose it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn append(&mut self, record: &impl Serialize) -> Result<(), Error> {
        let mut line = serde_json::to_vec(record).map_err(Error::json(&self.path))?;
        line.push(b'\n');
        self.file.write_all(&line).map_err(Error::io(&self.path))
    }
}

/// The records of a journal's whole lines, and how long these are.
fn whole<T: DeserializeOwned>(path: &Path, bytes: &[u8]) -> Result<(Vec<T>, usize), Error> {
    let end = bytes.iter().rposition(|byte| *byte == b'\n');
    let whole = end.and_then(|end| bytes.get(..end)).unwrap_or_default();
    let lines = whole.split(|byte| *byte == b'\n').filter(|_| end.is_some()).enumerate();
    let record = |(at, line): (usize, &[u8])| {
        serde_json::from_slice(line).map_err(|error| damaged(path, at + 1, &error))
    };
    Ok((lines.map(record).collect::<Result<_, _>>()?, end.map_or(0, |end| end + 1)))
}

/// What is wrong with this line: the parser saw no other one.
fn damaged(path: &Path, line: usize, error: &serde_json::Error) -> Error {
    let (text, column) = (error.to_string(), error.column());
    let place = format!(" at line {} column {column}", error.line());
    let why = match text.strip_suffix(&place) {
        Some(what) => format!("{what} at column {column}"),
        None => text,
    };
    Error::Line { path: path.to_owned(), line, why }
}

/// Makes a folder, and those that it is in, where they are not there yet.
///
/// # Errors
/// When it cannot be made, or what is there of it is no folder.
pub fn make_folder(folder: &Path) -> Result<(), Error> {
    fs::create_dir_all(folder).map_err(|source| {
        // Of its ancestors, the first that is there is the obstacle.
        let there = folder.ancestors().find(|path| path.exists()).filter(|path| !path.is_dir());
        match there {
            Some(path) => Error::NotAFolder { path: path.to_owned() },
            None => Error::Io { path: folder.to_owned(), source },
        }
    })
}

/// Reads a file that holds one JSON value.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, Error> {
    let text = fs::read_to_string(path).map_err(Error::io(path))?;
    serde_json::from_str(&text).map_err(Error::json(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.jsonl");
        let (mut journal, before) = Journal::open::<u32>(&path).unwrap();
        assert!(before.is_empty());
        journal.append(&1u32).unwrap();
        journal.append(&2u32).unwrap();
        assert_eq!(Journal::open::<u32>(&path).unwrap().1, [1, 2]);
    }

    #[test]
    fn a_torn_last_line_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.jsonl");
        fs::write(&path, "1\n2\n34").unwrap();
        let (mut journal, before) = Journal::open::<u32>(&path).unwrap();
        assert_eq!(before, [1, 2]);
        journal.append(&5u32).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "1\n2\n5\n");
    }

    #[test]
    fn a_damaged_line_is_named_with_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.jsonl");
        for damage in [&b"[2"[..], b"", b"\xff\xfe", b"{}"] {
            fs::write(&path, [b"1\n2\n", damage, b"\n4\n5"].concat()).unwrap();
            let error = Journal::open::<u32>(&path).unwrap_err().to_string();
            assert!(error.contains("runs.jsonl: line 3 is damaged ("), "{error}");
            assert!(
                error.ends_with("): remove that line, and the run that it was of is measured anew"),
                "{error}"
            );
            assert!(!error.contains("line 1"), "{error}");
        }
        assert_eq!(fs::read(&path).unwrap(), b"1\n2\n{}\n4\n5", "it is left as it is");
    }

    #[test]
    fn a_foreign_file_is_refused_with_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.jsonl");
        fs::write(&path, "hello\n").unwrap();
        let error = Journal::open::<u32>(&path).unwrap_err().to_string();
        assert!(error.contains("runs.jsonl"), "{error}");
    }
}
