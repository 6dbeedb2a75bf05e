//! Writes files that a user names: never blocks, and replaces nothing but regular files.
//!
//! # Problem
//! A path for an output may name anything. A draft that is renamed to `/dev/null` replaces the device by a plain
//! file, for all programs of the machine; a FIFO without a reader blocks; a link that is replaced leaves what it
//! named as it was.
//!
//! # Approach
//! [`replace`] gives a regular file its new contents in one step, by a draft next to it: a reader sees the old or
//! the new one, and on a full disk the old one stays. A link stays a link, and what it names is replaced. Where no
//! draft can be made next to a file that may be written (a folder that is only read, a file that is mounted by
//! itself), it is written in place. Pipes and character devices are written to; folders, sockets, disks and links to
//! nothing are refused. [`Draft`] is the same of what is written bit by bit, and [`Whole`] of what is refused at the
//! start and written at the end. [`create`], [`append`] and [`update`] open for what is read meanwhile. [`remove`]
//! removes regular files only.
//!
//! # Properties
//! - What exists is written, replaced or refused by its kind (`what_is_there_is_written_or_refused_by_its_kind`).
//! - What cannot be written whole leaves the old contents (`a_failed_replacement_leaves_the_old_contents`).

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use tempfile::NamedTempFile;

use crate::refused;

/// What is at a path, or will be.
enum Destination {
    /// A regular file, or nothing: links followed.
    File(PathBuf),
    /// A pipe or a character device.
    Stream,
}

/// Opens a file that is written from its start on, and empties it; a pipe or a character device as it is.
///
/// # Errors
/// When it cannot be opened, or is anything else; a pipe also when no process reads it.
pub fn create(path: &Path) -> io::Result<File> {
    match destination(path)? {
        Destination::File(file) => File::create(file),
        Destination::Stream => stream(path),
    }
}

/// Opens a file that is added to at its end, and may be read where it is a regular one.
///
/// # Errors
/// As [`create`].
pub fn append(path: &Path) -> io::Result<File> {
    match destination(path)? {
        Destination::File(file) => {
            OpenOptions::new().create(true).append(true).read(true).open(file)
        }
        Destination::Stream => stream(path),
    }
}

/// Replaces a file as a whole by what `fill` writes; a new one has this mode, whatever the umask.
///
/// # Errors
/// When it cannot be written, or is no file, pipe or character device. A regular file is as it was then.
pub fn replace(
    path: &Path,
    mode: u32,
    fill: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    let mut draft = Draft::begin(path, mode)?;
    fill(draft.file_mut())?;
    draft.finish()
}

/// What is written bit by bit, and has its name once it is whole; dropped before, it leaves what was there.
#[derive(Debug)]
pub struct Draft {
    file: DraftFile,
    /// Of a file that is new.
    mode: u32,
}

#[derive(Debug)]
enum DraftFile {
    /// A pipe or a device, or a file whose folder cannot be written.
    InPlace(File),
    /// Next to the file that it becomes.
    Next(NamedTempFile, PathBuf),
}

impl Draft {
    /// Of this file, which has this mode where it is new.
    ///
    /// # Errors
    /// As [`replace`].
    pub fn begin(path: &Path, mode: u32) -> io::Result<Self> {
        let file = match destination(path)? {
            Destination::Stream => DraftFile::InPlace(stream(path)?),
            Destination::File(file) => match draft(folder_of(&file)) {
                Ok(draft) => DraftFile::Next(draft, file),
                Err(error) if may_be_in_place(&error) && file.exists() => {
                    DraftFile::InPlace(File::create(file)?)
                }
                Err(error) => return Err(error),
            },
        };
        Ok(Self { file, mode })
    }

    /// To be written.
    pub fn file_mut(&mut self) -> &mut File {
        match &mut self.file {
            DraftFile::InPlace(file) => file,
            DraftFile::Next(file, _) => file.as_file_mut(),
        }
    }

    /// It is whole.
    ///
    /// # Errors
    /// As [`replace`].
    pub fn finish(self) -> io::Result<()> {
        let DraftFile::Next(draft, file) = self.file else { return Ok(()) };
        let mode = fs::metadata(&file).map_or(self.mode, |data| data.permissions().mode() & 0o7777);
        draft.as_file().set_permissions(Permissions::from_mode(mode))?;
        match draft.persist(&file) {
            Ok(_) => Ok(()),
            // It is mounted by itself, as in a container.
            Err(failed) if failed.error.kind() == ErrorKind::ResourceBusy => {
                let mut contents = File::open(failed.file.path())?;
                io::copy(&mut contents, &mut File::create(file)?).map(|_| ())
            }
            Err(failed) => Err(failed.error),
        }
    }
}

impl Write for Draft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file_mut().flush()
    }
}

/// The same of bytes.
///
/// # Errors
/// As [`replace`].
pub fn replace_by(path: &Path, mode: u32, contents: &[u8]) -> io::Result<()> {
    replace(path, mode, |file| file.write_all(contents))
}

/// Opens a file to change parts of it, and to read it; one that is missing is made, with this mode.
///
/// # Errors
/// When it cannot be opened, or is no regular file.
pub fn update(path: &Path, mode: u32) -> io::Result<File> {
    match destination(path)? {
        Destination::File(file) => {
            let mut options = OpenOptions::new();
            options.create(true).truncate(false).write(true).read(true).mode(mode).open(file)
        }
        Destination::Stream => Err(refused("a pipe or a device, not a regular file")),
    }
}

/// Is there anything at a path that is never written? Whether the rest can be, shows when it is.
///
/// # Errors
/// When there is.
pub fn check(path: &Path) -> io::Result<()> {
    match destination(path) {
        Err(error) if error.kind() == ErrorKind::InvalidInput => Err(error),
        _ => Ok(()),
    }
}

/// An output that is written as a whole once all of it is there, and refused before anything is done for it.
#[derive(Debug)]
pub struct Whole {
    path: PathBuf,
    /// Where it is a pipe or a device: opened at once, since the reader of a pipe sees its end.
    stream: Option<File>,
}

impl Whole {
    /// Looks whether the path could be written now.
    ///
    /// # Errors
    /// As [`replace`].
    pub fn prepare(path: &Path) -> io::Result<Self> {
        let stream = match destination(path)? {
            Destination::Stream => Some(stream(path)?),
            Destination::File(file) => {
                match fs::metadata(&file) {
                    Ok(_) => drop(OpenOptions::new().write(true).open(&file)?),
                    Err(_) => drop(draft(folder_of(&file))?),
                }
                None
            }
        };
        Ok(Self { path: path.to_owned(), stream })
    }

    /// Writes it, as [`replace_by`].
    ///
    /// # Errors
    /// As [`replace`].
    pub fn write(self, mode: u32, contents: &[u8]) -> io::Result<()> {
        match self.stream {
            Some(mut stream) => stream.write_all(contents),
            None => replace_by(&self.path, mode, contents),
        }
    }
}

/// Removes a regular file, not what a link names; anything else stays.
///
/// # Errors
/// When it cannot be removed.
pub fn remove(path: &Path) -> io::Result<()> {
    if fs::symlink_metadata(path)?.is_file() { fs::remove_file(path) } else { Ok(()) }
}

fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A file in a folder that is removed unless it is given another name.
fn draft(folder: &Path) -> io::Result<NamedTempFile> {
    // A name that cannot be foreseen, as others may write the folder.
    let draft = tempfile::Builder::new()
        .prefix(".symbiont-")
        .suffix(".draft")
        .permissions(Permissions::from_mode(0o600))
        .tempfile_in(folder);
    draft.map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            let missing = format!("there is no folder {}", folder.display());
            io::Error::new(ErrorKind::NotFound, missing)
        }
        // The error names the draft too, which is of no use.
        kind => kind.into(),
    })
}

fn destination(path: &Path) -> io::Result<Destination> {
    let kind = match fs::metadata(path) {
        Ok(data) => data.file_type(),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return match fs::symlink_metadata(path) {
                Ok(_) => Err(refused("a link to nothing")),
                Err(_) => Ok(Destination::File(path.to_owned())),
            };
        }
        Err(error) => return Err(error),
    };
    if kind.is_file() {
        // What the link names, so that the link stays.
        return Ok(Destination::File(fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())));
    }
    match kind.is_fifo() || kind.is_char_device() {
        true => Ok(Destination::Stream),
        false => Err(refused(crate::kind_of(kind))),
    }
}

/// Opens without waiting; it blocks only where it is written faster than it is read.
fn stream(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let flags = i32::try_from(flags.bits()).unwrap_or(0);
    let opened = OpenOptions::new().write(true).custom_flags(flags).open(path);
    let file = opened.map_err(|error| match error.raw_os_error() {
        Some(number) if number == rustix::io::Errno::NXIO.raw_os_error() => {
            io::Error::new(ErrorKind::BrokenPipe, "it is a pipe (FIFO) that no process reads")
        }
        _ => error,
    })?;
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(file)
}

/// May the folder not be written, though a file in it may be?
fn may_be_in_place(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem)
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    fn each(path: &Path) -> [io::Result<()>; 4] {
        let whole = Whole::prepare(path).and_then(|whole| whole.write(0o644, b"whole"));
        let appended = append(path).and_then(|mut file| file.write_all(b"more"));
        let created = create(path).and_then(|mut file| file.write_all(b"new"));
        [whole, appended, created, replace_by(path, 0o644, b"new")]
    }

    #[test]
    fn what_is_there_is_written_or_refused_by_its_kind() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let read = |name: &str| fs::read_to_string(at(name)).unwrap();
        // Nothing, a file, a link to one.
        for name in ["none", "file", "link"] {
            if name != "none" {
                fs::write(at("file"), "what was there, and is longer").unwrap();
            }
            if name == "link" {
                symlink("file", at("link")).unwrap();
            }
            let _ = each(&at(name)).map(Result::unwrap);
            assert_eq!(read(name), "new");
        }
        assert!(fs::symlink_metadata(at("link")).unwrap().is_symlink(), "the link stays");
        assert_eq!(read("file"), "new");
        // A device stays one, also through a link.
        symlink("/dev/null", at("device")).unwrap();
        for path in [Path::new("/dev/null"), &at("device")] {
            let _ = each(path).map(Result::unwrap);
            remove(&at("device")).unwrap();
        }
        assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
        assert!(at("device").exists(), "what is no regular file is not removed");
        let full = each(Path::new("/dev/full")).map(|written| written.unwrap_err().kind());
        assert_eq!(full, [ErrorKind::StorageFull; 4]);
        // Anything else is refused at once.
        mknodat(CWD, at("fifo"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let _listening = UnixListener::bind(at("socket")).unwrap();
        symlink("gone", at("dangling")).unwrap();
        for (name, why) in [
            ("fifo", "a pipe (FIFO) that no process reads"),
            ("socket", "it is a socket"),
            ("dangling", "it is a link to nothing"),
            (".", "it is a directory"),
        ] {
            let is_fifo = name == "fifo";
            assert_eq!(check(&at(name)).is_err(), !is_fifo, "{name}");
            assert!(update(&at(name), 0o600).is_err(), "{name}");
            for refused in each(&at(name)) {
                let why_not = refused.unwrap_err().to_string();
                assert!(why_not.contains(why), "{name}: {why_not}");
            }
        }
        assert!(fs::symlink_metadata(at("gone")).is_err(), "nothing was made");
    }

    #[test]
    fn a_pipe_that_is_read_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let reading = std::thread::spawn({
            let fifo = fifo.clone();
            move || {
                let mut text = String::new();
                File::open(fifo).unwrap().read_to_string(&mut text).unwrap();
                text
            }
        });
        // More than a pipe holds.
        let long = "x".repeat(1 << 20);
        loop {
            match replace_by(&fifo, 0o644, long.as_bytes()) {
                Err(error) if error.kind() == ErrorKind::BrokenPipe => std::thread::yield_now(),
                other => break other.unwrap(),
            }
        }
        assert_eq!(reading.join().unwrap(), long);
    }

    #[test]
    fn a_failed_replacement_leaves_the_old_contents() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        let fails = |file: &mut File| {
            file.write_all(b"half of")?;
            Err(io::Error::from(ErrorKind::StorageFull))
        };
        assert_eq!(replace(&file, 0o644, fails).unwrap_err().kind(), ErrorKind::StorageFull);
        assert_eq!(fs::read_to_string(&file).unwrap(), "old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no draft is left");
        replace_by(&file, 0o644, b"new").unwrap();
        let mode = fs::metadata(&file).unwrap().permissions().mode() & 0o777;
        assert_eq!((fs::read_to_string(&file).unwrap().as_str(), mode), ("new", 0o640));
        // What is prepared and not written leaves nothing.
        drop(Whole::prepare(&folder.path().join("other")).unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        let private = folder.path().join("private");
        replace_by(&private, 0o600, b"new").unwrap();
        assert_eq!(fs::metadata(&private).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
