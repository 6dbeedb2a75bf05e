//! One program of several, as a job file describes it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

use super::Command;

/// A command with its surroundings. Jobs are started in the order of their
/// list. All paths are relative to the directory that `symbiont` was started in.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// What people call it; the program's name if not given.
    #[serde(default)]
    pub name: Option<String>,
    /// The program and its arguments, e.g. `["make", "-j4"]`.
    pub command: Command,
    /// Variables that are added to the environment, or replaced in it.
    #[serde(default)]
    pub env: Variables,
    /// Where it runs; where `symbiont` was started if not given.
    #[serde(default)]
    pub directory: Option<PathBuf>,
    /// A file that it reads as standard input instead of the caller's.
    #[serde(default)]
    pub stdin: Option<PathBuf>,
    /// A file that its standard output replaces.
    #[serde(default)]
    pub stdout: Option<PathBuf>,
    /// A file that its standard error replaces; may be that of `stdout`.
    #[serde(default)]
    pub stderr: Option<PathBuf>,
    /// Whose session it runs in.
    #[serde(default)]
    pub session: Session,
}

/// Whose session a job runs in. The kernel shares CPU time out between
/// sessions first (autogroup), then between the threads of each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Session {
    /// The caller's: same terminal, same process group.
    #[default]
    Shared,
    /// One of its own, without controlling terminal. What the terminal sends
    /// (`^C`, `^Z`, hangup) is passed on to it.
    Own,
}

impl Job {
    /// Its name, or its program's if it was given none.
    #[must_use]
    pub fn name(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.command.name())
    }
}

impl From<Command> for Job {
    /// The command in the caller's surroundings, all of them.
    fn from(command: Command) -> Self {
        Self {
            name: None,
            command,
            env: Variables::default(),
            directory: None,
            stdin: None,
            stdout: None,
            stderr: None,
            session: Session::default(),
        }
    }
}

/// Environment variables whose names and values the environment can hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "BTreeMap<String, String>")]
pub struct Variables(BTreeMap<String, String>);

/// A name or value that no environment can hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{}' cannot be an environment variable: names are not empty and hold no '=', neither part holds a zero byte",
    .0.escape_debug()
)]
pub struct VariableError(String);

impl Variables {
    /// Name and value of each.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

impl TryFrom<BTreeMap<String, String>> for Variables {
    type Error = VariableError;

    fn try_from(variables: BTreeMap<String, String>) -> Result<Self, VariableError> {
        let bad = |(name, value): &(&String, &String)| {
            name.is_empty() || name.contains(['=', '\0']) || value.contains('\0')
        };
        match variables.iter().find(bad) {
            Some((name, _)) => Err(VariableError(name.clone())),
            None => Ok(Self(variables)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_needs_only_a_command() {
        let job: Job = toml::from_str("command = ['/usr/bin/xz', '-T2']").unwrap();
        assert_eq!(job, Job::from(Command::new(["/usr/bin/xz", "-T2"]).unwrap()));
        assert_eq!(job.name(), "xz");
    }

    #[test]
    fn every_key_is_understood() {
        let job: Job = toml::from_str(
            "name = 'build'\ncommand = ['make']\ndirectory = 'src'\nstdin = '/dev/null'\n\
             stdout = 'log'\nstderr = 'log'\nsession = 'own'\n[env]\nCC = 'gcc'\n",
        )
        .unwrap();
        assert_eq!(job.name(), "build");
        assert_eq!(job.session, Session::Own);
        assert_eq!(job.env.iter().collect::<Vec<_>>(), [("CC", "gcc")]);
        assert_eq!(job.stdout, job.stderr);
    }

    #[test]
    fn errors_say_line_and_key() {
        for (text, words) in [
            ("command = ['a']\ncolour = 1", ["line 2", "colour"]),
            ("name = 'x'\ncommand = []", ["line 2", "empty"]),
            ("command = ['a']\nsession = 'mine'", ["line 2", "mine"]),
            ("command = ['a']\n[env]\n'A=B' = 'c'", ["line 2", "A=B"]),
            ("name = 'x'", ["command", "missing"]),
        ] {
            let error = toml::from_str::<Job>(text).unwrap_err().to_string();
            for word in words {
                assert!(error.contains(word), "{text:?} gave {error}");
            }
        }
    }
}
