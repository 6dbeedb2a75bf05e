//! Which program a command runs: what is known of one command is of use for another.
//!
//! The first word names it, where that is an executable; behind an interpreter, and in a list of commands,
//! the program is the whole text.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use symbiont_jobs::{ProgramKey, digest, digest_of_text};

/// Programs that say little of what they run.
const INTERPRETERS: [&str; 20] = [
    "sh", "bash", "dash", "zsh", "ksh", "python", "python3", "perl", "ruby", "node", "java", "php",
    "env", "nice", "time", "timeout", "taskset", "numactl", "xargs", "sudo",
];

/// A command's program, and its name for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The program.
    pub key: ProgramKey,
    /// What people call it.
    pub name: String,
}

/// Finds programs; reads each executable once.
#[derive(Debug)]
pub struct Identities {
    user: u32,
    search: Vec<PathBuf>,
    digests: BTreeMap<PathBuf, Option<String>>,
}

impl Identities {
    /// Of a user, found along the folders of `PATH`.
    pub fn new(user: u32, path: &str) -> Self {
        let search = std::env::split_paths(path).collect();
        Self { user, search, digests: BTreeMap::new() }
    }

    /// Which program a command runs.
    pub fn of(&mut self, command: &str) -> Identity {
        let word = first_word(command);
        let name = word.rsplit('/').next().unwrap_or(word).to_owned();
        let is_list = command.contains(['|', ';', '&', '(', '`', '\n']) || command.contains("$(");
        let by_file = match is_list || INTERPRETERS.contains(&name.as_str()) {
            true => None,
            false => self.executable(word),
        };
        let digest = by_file.unwrap_or_else(|| digest_of_text(command));
        Identity { key: ProgramKey { user: self.user, digest }, name }
    }

    fn executable(&mut self, word: &str) -> Option<String> {
        let path = match word.contains('/') {
            true => PathBuf::from(word),
            false => self.search.iter().map(|dir| dir.join(word)).find(|path| path.is_file())?,
        };
        let read = |path: &Path| digest(symbiont_input::open(path).ok()?).ok();
        self.digests.entry(path).or_insert_with_key(|path| read(path)).clone()
    }
}

/// The first word that is no assignment to a variable.
fn first_word(command: &str) -> &str {
    let is_assignment = |word: &str| {
        word.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        })
    };
    command.split_whitespace().find(|word| !is_assignment(word)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digests(commands: &[&str]) -> Vec<String> {
        let mut identities = Identities::new(7, "/usr/bin:/bin");
        commands.iter().map(|command| identities.of(command).key.digest).collect()
    }

    #[test]
    fn one_executable_is_one_program_whatever_its_arguments() {
        let found = digests(&["cat a", "LC_ALL=C cat b", "ls a", "/bin/cat a"]);
        assert_eq!(found[0], found[1]);
        assert_ne!(found[0], found[2]);
        assert_eq!(found[0], found[3]);
    }

    #[test]
    fn behind_an_interpreter_and_in_a_list_the_text_is_the_program() {
        let found = digests(&["sh a", "sh b", "cd x && cat a", "cd x && cat b", "cat a | cat"]);
        let different: std::collections::BTreeSet<_> = found.iter().collect();
        assert_eq!(different.len(), found.len());
        assert_eq!(digests(&["no-such-program a"]), [digest_of_text("no-such-program a")]);
    }

    #[test]
    fn people_read_the_programs_name() {
        let mut identities = Identities::new(7, "/usr/bin:/bin");
        assert_eq!(identities.of("A=1 /usr/bin/cat x").name, "cat");
        assert_eq!(identities.of("A=1").name, "");
    }
}
