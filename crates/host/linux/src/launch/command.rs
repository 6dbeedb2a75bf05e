//! What to run, and why it could not be run.

use std::ffi::{CStr, CString, OsString};
use std::io;
use std::os::unix::ffi::OsStringExt;

use serde::Deserialize;

/// A program and its arguments, as `execvp(3)` takes them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Vec<String>")]
pub struct Command {
    /// Never empty; the first is the program.
    words: Vec<CString>,
}

/// A list of words that is no command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// There is no word at all.
    #[error("the command is empty; give at least the program's name")]
    Empty,
    /// Arguments end at a zero byte, so none can contain one.
    #[error("word {0} of the command contains a zero byte")]
    ZeroByte(usize),
}

impl Command {
    /// A command of the program's name or path, followed by its arguments.
    ///
    /// # Errors
    /// When there is no word, or one contains a zero byte.
    pub fn new(words: impl IntoIterator<Item = impl Into<OsString>>) -> Result<Self, CommandError> {
        let words: Vec<CString> = words
            .into_iter()
            .enumerate()
            .map(|(at, word)| {
                CString::new(word.into().into_vec()).map_err(|_| CommandError::ZeroByte(at + 1))
            })
            .collect::<Result<_, _>>()?;
        if words.is_empty() { Err(CommandError::Empty) } else { Ok(Self { words }) }
    }

    /// The program's name or path as given, for people.
    #[must_use]
    pub fn program(&self) -> String {
        self.words.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// The last part of the program's path.
    #[must_use]
    pub fn name(&self) -> String {
        let program = self.program();
        match program.rsplit('/').find(|part| !part.is_empty()) {
            Some(part) => part.to_owned(),
            None => program,
        }
    }

    /// What it means that `execvp(3)` failed like this, just now, in this process.
    pub(super) fn failed_to_run(&self, source: io::Error) -> ExecError {
        let program = self.program();
        let path = std::env::var_os("PATH").unwrap_or_default();
        // A directory of PATH that may not be searched also gives EACCES.
        let nowhere = !program.contains('/')
            && source.kind() == io::ErrorKind::PermissionDenied
            && !std::env::split_paths(&path).any(|directory| directory.join(&program).exists());
        let source = if nowhere { io::Error::from_raw_os_error(libc::ENOENT) } else { source };
        ExecError { program, source }
    }

    /// The words for `execvp(3)`.
    pub(super) fn words(&self) -> impl Iterator<Item = &CStr> {
        self.words.iter().map(CString::as_c_str)
    }
}

impl TryFrom<Vec<String>> for Command {
    type Error = CommandError;

    fn try_from(words: Vec<String>) -> Result<Self, CommandError> {
        Self::new(words)
    }
}

/// A program could not be run.
#[derive(Debug, thiserror::Error)]
#[error("cannot run '{program}': {}", self.reason())]
pub struct ExecError {
    /// The program as given.
    pub program: String,
    /// The kernel's answer.
    #[source]
    pub source: io::Error,
}

impl ExecError {
    /// The exit status by which shells, `env` and `nohup` report the same: 127
    /// when there is no such program, 126 when there is but it cannot be run.
    #[must_use]
    pub fn exit_code(&self) -> i32 {
        if self.source.kind() == io::ErrorKind::NotFound { 127 } else { 126 }
    }

    /// In words. `ENOENT` has a second meaning, where the file itself exists.
    fn reason(&self) -> String {
        let is_path = self.program.contains('/');
        match self.source.kind() {
            io::ErrorKind::NotFound if is_path && std::fs::metadata(&self.program).is_ok() => {
                "the interpreter that its first line or ELF header names was not found".to_owned()
            }
            io::ErrorKind::NotFound => "not found".to_owned(),
            io::ErrorKind::PermissionDenied
                if is_path && std::path::Path::new(&self.program).is_dir() =>
            {
                "is a directory".to_owned()
            }
            io::ErrorKind::PermissionDenied => "not executable (permission denied)".to_owned(),
            _ => self.source.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_at_least_one_word_and_no_zero_bytes() {
        assert_eq!(Command::new(Vec::<String>::new()), Err(CommandError::Empty));
        assert_eq!(Command::new(["a", "b\0c"]), Err(CommandError::ZeroByte(2)));
        let command = Command::new(["/usr/bin/env", "-i"]).unwrap();
        assert_eq!(command.program(), "/usr/bin/env");
        assert_eq!(command.name(), "env");
    }

    #[test]
    fn the_name_of_an_odd_path_is_not_empty() {
        for odd in ["/", "//", "a/"] {
            assert!(!Command::new([odd]).unwrap().name().is_empty());
        }
    }

    #[test]
    fn errors_distinguish_not_found_from_not_executable() {
        let error = |program: &str, raw| ExecError {
            program: program.to_owned(),
            source: io::Error::from_raw_os_error(raw),
        };
        let missing = error("foo", libc::ENOENT);
        assert_eq!(missing.to_string(), "cannot run 'foo': not found");
        assert_eq!(missing.exit_code(), 127);
        let directory = error("/", libc::EACCES);
        assert_eq!(directory.to_string(), "cannot run '/': is a directory");
        assert_eq!(directory.exit_code(), 126);
        assert_eq!(error("./x", libc::ENOEXEC).exit_code(), 126);
        let interpreter = error("/proc/self/exe", libc::ENOENT);
        assert!(interpreter.to_string().contains("interpreter"), "{interpreter}");
    }

    #[test]
    fn an_unsearchable_directory_in_the_path_does_not_hide_that_nothing_was_found() {
        let denied = || io::Error::from_raw_os_error(libc::EACCES);
        let nowhere = Command::new(["symbiont-no-such-program"]).unwrap();
        assert_eq!(nowhere.failed_to_run(denied()).exit_code(), 127);
        let given_as_path = Command::new(["/"]).unwrap();
        assert_eq!(given_as_path.failed_to_run(denied()).exit_code(), 126);
    }
}
