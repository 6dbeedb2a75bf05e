//! Finished runs, one JSON line each.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Error;

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
        let text = match fs::read_to_string(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            other => other.map_err(Error::io(path))?,
        };
        let (records, whole) = whole(path, &text)?;
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
fn whole<T: DeserializeOwned>(path: &Path, text: &str) -> Result<(Vec<T>, usize), Error> {
    let whole = text.rfind('\n').map_or("", |end| text.get(..=end).unwrap_or_default());
    let record = |line| serde_json::from_str(line).map_err(Error::json(path));
    Ok((whole.lines().map(record).collect::<Result<_, _>>()?, whole.len()))
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
    fn a_foreign_file_is_refused_with_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.jsonl");
        fs::write(&path, "hello\n").unwrap();
        let error = Journal::open::<u32>(&path).unwrap_err().to_string();
        assert!(error.contains("runs.jsonl"), "{error}");
    }
}
