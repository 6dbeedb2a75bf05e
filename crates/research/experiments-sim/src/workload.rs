//! The programs of a workload, as users write them.
//!
//! On the command line, names separated by commas: `gzip`, `gzip*3` (three of
//! them), `gzip@4:1` (serial and parallel phases, as Morad et al. label programs),
//! `gzip@all` (all threads that its profile has). In a file:
//!
//! ```toml
//! name = "two of a kind"
//!
//! [[app]]
//! program = "gzip"
//! count = 3             # default 1
//!
//! [[app]]
//! program = "povray"
//! ratio = "4:1"         # or threads = "all"; default: its first thread alone
//! ```

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use symbiont_synth::Ratio;

/// Programs that run together.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// What people call it.
    pub name: String,
    /// Its programs, one entry for each that runs.
    pub apps: Vec<App>,
}

/// One program of a workload.
#[derive(Debug, Clone, PartialEq)]
pub struct App {
    /// The program's name in the library.
    pub program: String,
    /// How its work is carried out.
    pub form: Form,
}

/// How a program's work is carried out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Form {
    /// By one thread.
    Single,
    /// By the threads that its profile has.
    Recorded,
    /// In serial and parallel phases; a parallel phase has a thread for each
    /// hardware thread of the machine.
    Phased(Ratio),
}

/// Why a text is no workload.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkloadError {
    /// An entry cannot be understood.
    #[error("'{entry}': {reason}")]
    Entry {
        /// The entry, as written.
        entry: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The file cannot be understood; the text says where.
    #[error("{file}: {reason}")]
    File {
        /// The file.
        file: String,
        /// What is wrong, and where.
        reason: String,
    },
    /// There is no program in it.
    #[error("{0} names no program")]
    Empty(String),
}

/// Most programs of one entry.
const MOST: u32 = 4096;

impl Workload {
    /// Reads a list as on the command line.
    ///
    /// # Errors
    /// The first entry that is no program.
    pub fn from_list(text: &str) -> Result<Self, WorkloadError> {
        let mut apps = Vec::new();
        for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
            let wrong = |reason: &str| WorkloadError::Entry {
                entry: entry.to_owned(),
                reason: reason.to_owned(),
            };
            let (rest, count) = match entry.rsplit_once('*') {
                None => (entry, 1),
                Some((rest, digits)) => {
                    let count = digits.trim().parse().ok();
                    let count = count.filter(|count| (1..=MOST).contains(count));
                    (rest, count.ok_or_else(|| wrong("a count is a number from 1 to 4096"))?)
                }
            };
            let app: App = rest.trim().parse()?;
            apps.extend(std::iter::repeat_n(app, count as usize));
        }
        Self { name: text.to_owned(), apps }.checked("the list")
    }

    /// Reads a file's text; `file` stands for it in errors.
    ///
    /// # Errors
    /// What is wrong with the text, and where.
    pub fn from_toml(file: &str, text: &str) -> Result<Self, WorkloadError> {
        let wrong = |reason: String| WorkloadError::File { file: file.to_owned(), reason };
        let written: WorkloadFile = toml::from_str(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            let line = text.get(..at).unwrap_or(text).matches('\n').count() + 1;
            wrong(format!("line {line}: {}", error.message()))
        })?;
        let mut apps = Vec::new();
        for app in written.app {
            let name = &app.program;
            let form = match (app.ratio, app.threads.as_deref()) {
                (None, None | Some("1")) => Form::Single,
                (None, Some("all")) => Form::Recorded,
                (Some(ratio), None) => {
                    Form::Phased(ratio.parse().map_err(|error| wrong(format!("{name}: {error}")))?)
                }
                (None, Some(_)) => {
                    return Err(wrong(format!("{name}: threads is \"1\" or \"all\"")));
                }
                (Some(_), Some(_)) => {
                    return Err(wrong(format!("{name}: give either ratio or threads")));
                }
            };
            let count = app.count.unwrap_or(1);
            if !(1..=MOST).contains(&count) {
                return Err(wrong(format!("{name}: a count is a number from 1 to {MOST}")));
            }
            let app = App { program: app.program, form };
            apps.extend(std::iter::repeat_n(app, count as usize));
        }
        Self { name: written.name.unwrap_or_else(|| file.to_owned()), apps }.checked(file)
    }

    fn checked(self, what: &str) -> Result<Self, WorkloadError> {
        if self.apps.is_empty() { Err(WorkloadError::Empty(what.to_owned())) } else { Ok(self) }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WorkloadFile {
    name: Option<String>,
    #[serde(default)]
    app: Vec<WrittenApp>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenApp {
    program: String,
    count: Option<u32>,
    ratio: Option<String>,
    threads: Option<String>,
}

impl FromStr for App {
    type Err = WorkloadError;

    fn from_str(text: &str) -> Result<Self, WorkloadError> {
        let wrong = |reason: String| WorkloadError::Entry { entry: text.to_owned(), reason };
        let (program, form) = match text.rsplit_once('@') {
            None => (text, Form::Single),
            Some((program, "all")) => (program, Form::Recorded),
            Some((program, ratio)) => {
                (program, Form::Phased(ratio.parse().map_err(|e| wrong(format!("{e}")))?))
            }
        };
        if program.is_empty() {
            return Err(wrong("names no program".to_owned()));
        }
        if program.contains(['*', '@']) {
            return Err(wrong("a program's name holds neither '*' nor '@'".to_owned()));
        }
        Ok(Self { program: program.to_owned(), form })
    }
}

impl fmt::Display for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.form {
            Form::Single => write!(f, "{}", self.program),
            Form::Recorded => write!(f, "{}@all", self.program),
            Form::Phased(ratio) => write!(f, "{}@{ratio}", self.program),
        }
    }
}

impl Serialize for App {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_as_written() {
        let workload = Workload::from_list("gzip, xz*2,povray@4:1,make@all").unwrap();
        let apps: Vec<String> = workload.apps.iter().map(ToString::to_string).collect();
        assert_eq!(apps, ["gzip", "xz", "xz", "povray@4:1", "make@all"]);
        for (text, error) in [
            ("gzip*0", "'gzip*0': a count is a number from 1 to 4096"),
            ("gzip*x", "'gzip*x': a count is a number from 1 to 4096"),
            ("gzip@4", "'gzip@4': `4` is no ratio"),
            ("@1:1", "'@1:1': names no program"),
            ("a*z*2", "'a*z': a program's name holds neither '*' nor '@'"),
            ("a@b@all", "'a@b@all': a program's name holds neither '*' nor '@'"),
            (" , ", "the list names no program"),
        ] {
            let found = Workload::from_list(text).unwrap_err().to_string();
            assert!(found.starts_with(error), "{found}");
        }
    }

    #[test]
    fn files_are_read_as_written() {
        let text = "name = \"mix\"\n[[app]]\nprogram = \"gzip\"\ncount = 2\n\
                    [[app]]\nprogram = \"povray\"\nratio = \"1:4\"\n";
        let workload = Workload::from_toml("w.toml", text).unwrap();
        let apps: Vec<String> = workload.apps.iter().map(ToString::to_string).collect();
        assert_eq!((workload.name.as_str(), apps.len()), ("mix", 3));
        assert_eq!(apps[2], "povray@1:4");
        for (text, error) in [
            ("", "w.toml names no program"),
            ("[[app]]\nprogram = \"a\"\ncuont = 2", "w.toml: line 3: unknown field `cuont`"),
            ("[[app]]\ncount = 2", "w.toml: line 1: missing field `program`"),
            ("[[app]]\nprogram = \"a\"\nthreads = \"3\"", "w.toml: a: threads is"),
            (
                "[[app]]\nprogram = \"a\"\nratio = \"1:1\"\nthreads = \"all\"",
                "w.toml: a: give either",
            ),
            ("[[app]]\nprogram = \"a\"\ncount = 0", "w.toml: a: a count is a number"),
        ] {
            let found = Workload::from_toml("w.toml", text).unwrap_err().to_string();
            assert!(found.starts_with(error), "{found}");
        }
    }
}
