//! Which program a command or a script runs, so that what one run has shown is of use to the next.
//!
//! # Approach
//! ```text
//! a command that is a list (|, ;, &, $( ) or starts with an interpreter  →  its whole text
//! any other command      →  the executable that its first word names, along PATH; its text if there is none
//! a script of one command  →  as that command, without exec and srun
//! a script of several      →  its whole text
//! ```
//! Executables and texts are named by digests, so a program stays the same when its file moves, and is another one
//! once it is recompiled.
//!
//! # Properties
//! - Arguments do not matter (`one_executable_is_one_program_whatever_its_arguments`), but for interpreters and lists
//!   (`behind_an_interpreter_and_in_a_list_the_text_is_the_program`).
//! - A script of one command is that command's program
//!   (`a_script_of_one_command_is_the_program_of_that_and_a_longer_one_its_text`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::{ProgramKey, digest, digest_of_text};

/// Programs whose executable says little of what they run.
const INTERPRETERS: [&str; 20] = [
    "sh", "bash", "dash", "zsh", "ksh", "python", "python3", "perl", "ruby", "node", "java", "php",
    "env", "nice", "time", "timeout", "taskset", "numactl", "xargs", "sudo",
];

/// A program, and its name for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The program.
    pub key: ProgramKey,
    /// Its name for people.
    pub name: String,
}

/// Finds programs; reads each executable once.
#[derive(Debug)]
pub struct Identities {
    search: Vec<PathBuf>,
    digests: BTreeMap<PathBuf, Option<String>>,
}

impl Identities {
    /// Executables are looked for in the folders of this `PATH`.
    #[must_use]
    pub fn new(path: &str) -> Self {
        let search = std::env::split_paths(path).collect();
        Self { search, digests: BTreeMap::new() }
    }

    /// Which program a user's command runs.
    pub fn of(&mut self, user: u32, command: &str) -> Identity {
        let word = first_word(command);
        let name = word.rsplit('/').next().unwrap_or(word).to_owned();
        let is_list = command.contains(['|', ';', '&', '(', '`', '\n']) || command.contains("$(");
        let by_file = match is_list || INTERPRETERS.contains(&name.as_str()) {
            true => None,
            false => self.executable(word),
        };
        let digest = by_file.unwrap_or_else(|| digest_of_text(command));
        Identity { key: ProgramKey { user, digest }, name }
    }

    /// Which program a user's script runs: that of its command, where it has one only.
    pub fn of_script(&mut self, user: u32, script: &str) -> Identity {
        let is_command = |line: &&str| !line.is_empty() && !line.starts_with('#');
        let mut commands = script.lines().map(str::trim).filter(is_command);
        match (commands.next(), commands.next()) {
            (Some(only), None) => {
                let only = only.strip_prefix("exec ").unwrap_or(only);
                self.of(user, only.strip_prefix("srun ").unwrap_or(only))
            }
            (first, _) => {
                let name = first_word(first.unwrap_or_default());
                let name = name.rsplit('/').next().unwrap_or(name).to_owned();
                Identity { key: ProgramKey { user, digest: digest_of_text(script) }, name }
            }
        }
    }

    fn executable(&mut self, word: &str) -> Option<String> {
        let path = match word.contains('/') {
            true => PathBuf::from(word),
            false => self.search.iter().map(|dir| dir.join(word)).find(|path| path.is_file())?,
        };
        let read = |path: &Path| digest(symbiont_safe_open::open(path).ok()?).ok();
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
        let mut identities = Identities::new("/usr/bin:/bin");
        commands.iter().map(|command| identities.of(7, command).key.digest).collect()
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
    fn a_script_of_one_command_is_the_program_of_that_and_a_longer_one_its_text() {
        let mut identities = Identities::new("/usr/bin:/bin");
        let mut of = |script: &str| identities.of_script(7, script).key.digest;
        let wrapped = of("#!/bin/sh\n# This script was created by sbatch --wrap.\n\ncat a\n");
        assert_eq!(wrapped, of("#!/bin/sh\n#SBATCH -n 1\nsrun cat b\n"));
        assert_ne!(of("#!/bin/sh\ncat a\ncat b\n"), of("#!/bin/sh\ncat a\ncat c\n"));
        assert_eq!(identities.of_script(8, "#!/bin/sh\ncat a").key.user, 8);
    }

    #[test]
    fn people_read_the_programs_name() {
        let mut identities = Identities::new("/usr/bin:/bin");
        assert_eq!(identities.of(7, "A=1 /usr/bin/cat x").name, "cat");
        assert_eq!(identities.of(7, "A=1").name, "");
    }
}
