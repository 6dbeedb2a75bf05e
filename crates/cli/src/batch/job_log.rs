//! A line for each job that ended, in the columns of GNU parallel's `--joblog`.
//!
//! What cannot be written yet is kept, and written with the next line or at the end.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use symbiont_safe_open::output;

use super::record::Ended;
use crate::top::clean::is_shown;

const HEADER: &str = "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n";

/// The file.
#[derive(Debug)]
pub struct JobLog<W = File> {
    path: PathBuf,
    file: W,
    /// What is not written yet.
    left: Vec<u8>,
    /// Was it said that it cannot be written?
    is_said: bool,
}

impl JobLog {
    /// Opens the file; empties it, unless lines are to be added. One with anything else in it is refused.
    pub fn open(path: &Path, is_added: bool) -> anyhow::Result<Self> {
        let what = || format!("cannot write the job log {}", path.display());
        let mut file = output::append(path).with_context(what)?;
        let metadata = file.metadata().with_context(what)?;
        let mut is_empty = metadata.len() == 0;
        // What is no file keeps nothing.
        if metadata.is_file() && !is_empty {
            let mut begin = vec![0; HEADER.len()];
            let is_log = file.read_exact(&mut begin).is_ok() && begin == HEADER.as_bytes();
            anyhow::ensure!(is_log, "{}: there is a file that is no job log", path.display());
            if !is_added {
                file.set_len(0).with_context(what)?;
                is_empty = true;
            }
        }
        let left = if is_empty { HEADER.into() } else { Vec::new() };
        Ok(Self { path: path.to_owned(), file, left, is_said: false })
    }
}

impl<W: Write> JobLog<W> {
    /// Adds a job; gives what is to be said of a file that cannot be written, the first time.
    pub fn add(
        &mut self,
        seq: usize,
        began_s: f64,
        ended: &Ended,
        command: &str,
    ) -> Option<String> {
        self.left.extend_from_slice(line(seq, began_s, ended, command).as_bytes());
        let error = self.write().err().filter(|_| !self.is_said)?;
        self.is_said = true;
        Some(format!("cannot write {}, which is tried again: {error}", self.path.display()))
    }

    /// Writes what is left; an error: why it is lost.
    pub fn finish(&mut self) -> Result<(), String> {
        self.write().map_err(|error| format!("{}: {error}", self.path.display()))
    }

    fn write(&mut self) -> io::Result<()> {
        while !self.left.is_empty() {
            match self.file.write(&self.left) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => drop(self.left.drain(..written)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

fn line(seq: usize, began_s: f64, ended: &Ended, command: &str) -> String {
    let Ended { exit_code, signal, timed_out, elapsed_s, .. } = ended;
    let exit_value = match (exit_code, signal) {
        (None, _) => -1,
        _ if *timed_out => -1,
        (_, Some(_)) => 0,
        (Some(code), None) => *code,
    };
    let signal = signal.unwrap_or(0);
    let command: String = command.chars().map(shown).collect();
    format!("{seq}\t:\t{began_s:.3}\t{elapsed_s:10.3}\t0\t0\t{exit_value}\t{signal}\t{command}\n")
}

/// A character of a command, such that a job is a line, a column ends with a tab, and a terminal obeys nothing. GNU
/// parallel has NUL for the end of a line, too.
fn shown(c: char) -> char {
    match c {
        '\n' => '\0',
        '\t' => ' ',
        c if is_shown(c) => c,
        _ => '?',
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;

    use super::*;

    fn ended(exit_code: Option<i32>, signal: Option<i32>, timed_out: bool) -> Ended {
        Ended { exit_code, signal, timed_out, elapsed_s: 1.0894, cpu_s: 0.0 }
    }

    #[test]
    fn lines_are_those_of_gnu_parallel() {
        let line = |exit_code, signal, timed_out| {
            line(3, 1_795_842_568.934, &ended(exit_code, signal, timed_out), "sleep 5")
        };
        let start = "3\t:\t1795842568.934\t     1.089\t0\t0\t";
        assert_eq!(line(Some(3), None, false), format!("{start}3\t0\tsleep 5\n"));
        assert_eq!(line(Some(143), Some(15), false), format!("{start}0\t15\tsleep 5\n"));
        assert_eq!(line(Some(143), Some(15), true), format!("{start}-1\t15\tsleep 5\n"));
        assert_eq!(line(None, None, false), format!("{start}-1\t0\tsleep 5\n"));
    }

    #[test]
    fn a_job_is_a_line_of_nine_columns_whatever_its_command() {
        let line = line(1, 1.0, &ended(Some(0), None, false), "printf 'a\tb'\nls\r \u{1b}[31m");
        assert_eq!(line.matches('\n').count(), 1, "{line:?}");
        let columns: Vec<&str> = line.trim_end().split('\t').collect();
        assert_eq!((columns.len(), columns[8]), (9, "printf 'a b'\0ls? ?[31m"));
    }

    /// Takes as many bytes as there is room for.
    struct Full(Vec<u8>, usize);

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let room = bytes.len().min(self.1 - self.0.len());
            self.0.extend_from_slice(&bytes[..room]);
            if room == 0 { Err(io::Error::from_raw_os_error(28)) } else { Ok(room) }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_file_that_is_no_job_log_is_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let (jobs, log) = (folder.path().join("jobs"), folder.path().join("log"));
        std::fs::write(&jobs, "sleep 1\n").unwrap();
        for is_added in [false, true] {
            let error = JobLog::open(&jobs, is_added).unwrap_err().to_string();
            assert!(error.contains("no job log"), "{error}");
        }
        assert_eq!(std::fs::read_to_string(&jobs).unwrap(), "sleep 1\n");
        let written = |is_added| {
            JobLog::open(&log, is_added).unwrap().finish().unwrap();
            OpenOptions::new().append(true).open(&log).unwrap().write_all(b"1\n").unwrap();
            std::fs::read_to_string(&log).unwrap()
        };
        assert_eq!(written(false), format!("{HEADER}1\n"));
        assert_eq!(written(true), format!("{HEADER}1\n1\n"));
        assert_eq!(written(false), format!("{HEADER}1\n"));
    }

    #[test]
    fn what_has_no_room_is_written_once_there_is_some() {
        let file = Full(Vec::new(), 50);
        let mut log = JobLog { path: "log".into(), file, left: Vec::new(), is_said: false };
        let ended = ended(Some(0), None, false);
        let mut said = (1..=3).filter_map(|seq| log.add(seq, 1.0, &ended, "true"));
        assert!(said.next().is_some_and(|said| said.contains("No space left")));
        assert!(said.next().is_none());
        assert!(log.finish().is_err());
        log.file.1 = 5000;
        log.finish().unwrap();
        let lines: String = (1..=3).map(|seq| line(seq, 1.0, &ended, "true")).collect();
        assert_eq!(String::from_utf8(log.file.0).unwrap(), lines);
    }
}
