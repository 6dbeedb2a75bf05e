//! Opens files that are to be read, regular files and nothing that could block; and writes those that a user names
//! ([`output`]). What lies within a folder of others is opened without leaving it ([`within`]).
//!
//! # Problem
//! A path on the command line may name anything. To open a FIFO waits for a writer, perhaps forever;
//! to read a terminal waits for a person, and `/dev/zero` never ends.
//!
//! # Approach
//! [`open`] looks before it opens, opens without waiting, and looks again at what it opened, since the
//! path may name something else by then. A file that is not regular is refused, and the error
//! names its kind. The error is an [`io::Error`], so that callers add the path as for any other.
//!
//! # Properties
//! - Regular files are read, also through a symbolic link (`a_regular_file_is_read`).
//! - Anything else is refused by its kind, at once (`what_is_no_regular_file_is_refused_by_its_kind`).

pub mod output;
pub mod within;

use std::fs::{File, FileType, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

/// Opens a regular file to read it.
///
/// # Errors
/// When it cannot be opened, or is no regular file.
pub fn open(path: &Path) -> io::Result<File> {
    // A device may act when it is opened.
    check(std::fs::metadata(path)?.file_type())?;
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or(0);
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    check(file.metadata()?.file_type())?;
    Ok(file)
}

/// The bytes of a regular file.
///
/// # Errors
/// As [`open`], or when it cannot be read.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The text of a regular file.
///
/// # Errors
/// As [`open`], or when it cannot be read or is no UTF-8.
pub fn read_to_string(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    open(path)?.read_to_string(&mut text)?;
    Ok(text)
}

fn check(kind: FileType) -> io::Result<()> {
    match kind.is_file() {
        true => Ok(()),
        false => Err(refused(&format!("{}, not a regular file", kind_of(kind)))),
    }
}

fn refused(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, format!("it is {what}"))
}

/// What a path names, in words.
fn kind_of(kind: FileType) -> &'static str {
    match kind {
        _ if kind.is_dir() => "a directory",
        _ if kind.is_fifo() => "a pipe (FIFO)",
        _ if kind.is_char_device() || kind.is_block_device() => "a device",
        _ if kind.is_socket() => "a socket",
        _ => "something else",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test panics")]

    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn a_regular_file_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        std::fs::write(&file, "text").unwrap();
        symlink(&file, &link).unwrap();
        assert_eq!(read_to_string(&file).unwrap(), "text");
        assert_eq!(read(&link).unwrap(), b"text");
        assert_eq!(open(&folder.path().join("none")).unwrap_err().kind(), ErrorKind::NotFound);
    }

    #[test]
    fn what_is_no_regular_file_is_refused_by_its_kind() {
        let folder = tempfile::tempdir().unwrap();
        let (fifo, link) = (folder.path().join("fifo"), folder.path().join("link"));
        mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        symlink(&fifo, &link).unwrap();
        let socket = folder.path().join("socket");
        let _listening = UnixListener::bind(&socket).unwrap();
        for (path, kind) in [
            (fifo.as_path(), "a pipe"),
            (&link, "a pipe"),
            (&socket, "a socket"),
            (folder.path(), "a directory"),
            (Path::new("/dev/null"), "a device"),
        ] {
            let error = open(path).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            let message = error.to_string();
            assert!(
                message.starts_with(&format!("it is {kind}")) && message.ends_with("file"),
                "{message}"
            );
        }
    }
}
