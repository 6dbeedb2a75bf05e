//! What programs are called in the files: pure.

use std::collections::BTreeMap;

use symbiont_linux::kernels::LoopKernel;
use symbiont_report::number::counted;

/// Our own programs by default: kernels that ask for different parts of a core.
pub const OWN: [&str; 14] = [
    "dependent adds",
    "independent adds",
    "dependent multiplies",
    "divisions",
    "FP add chain",
    "FP division chain",
    "independent loads",
    "stores",
    "chain through memory by the same register",
    "taken jumps",
    "branch on a random bit",
    "pointer chase in 256 KiB",
    "pointer chase in 64 MiB",
    "sum of 64 MiB",
];

/// A program to measure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedWork {
    /// What it is called.
    pub name: String,
    /// What it runs.
    pub work: Work,
}

/// What a program is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Work {
    /// One of our own kernels, which count their work.
    Kernel,
    /// A command line for sh.
    Command(String),
}

/// Names that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// One name for each command.
    #[error(
        "--names gives {} for {}", counted(*.names, "name"), counted(*.commands, "command")
    )]
    Count {
        /// Names.
        names: usize,
        /// Commands.
        commands: usize,
    },
    /// A name would break the lines of the file.
    #[error("'{0}' cannot name a program: a name is not empty, has no comma, and is one line")]
    Unfit(String),
    /// Twice.
    #[error("two programs are called '{0}'")]
    Twice(String),
    /// A pair takes two.
    #[error("at least two programs are needed, {0} was named")]
    TooFew(usize),
    /// No such kernel.
    #[error("no program of ours is called '{0}'; `symbiont-synth kernel` lists them")]
    Unknown(String),
    /// No kernels.
    #[error(
        "our own programs exist for x86-64 only: name yours, `symbiont bench pairs 'COMMAND' 'COMMAND'`"
    )]
    NoneOfOurs,
}

/// Our own programs of these names, or those of the default.
///
/// # Errors
/// When one of the names is unknown.
pub fn own(kernels: &[String]) -> Result<Vec<NamedWork>, NameError> {
    let default: Vec<String> = OWN.map(str::to_owned).into();
    let kernels = if kernels.is_empty() { &default } else { kernels };
    if !super::kernels::has_kernels() {
        return Err(NameError::NoneOfOurs);
    }
    let known = |name: &str| match LoopKernel::named(name) {
        Some(_) => Ok(NamedWork { name: name.to_owned(), work: Work::Kernel }),
        None => Err(NameError::Unknown(name.to_owned())),
    };
    once(kernels.iter().map(|name| known(name.trim())).collect::<Result<_, _>>()?)
}

/// The user's programs, with names if they were given, else called by what they execute first.
///
/// # Errors
/// When a name is unfit, there twice, or missing.
pub fn of_user(commands: &[String], names: &[String]) -> Result<Vec<NamedWork>, NameError> {
    if !names.is_empty() && names.len() != commands.len() {
        return Err(NameError::Count { names: names.len(), commands: commands.len() });
    }
    let found = if names.is_empty() {
        distinct(commands.iter().map(|it| named(it)))
    } else {
        names.to_vec()
    };
    let programs = found.into_iter().zip(commands).map(|(name, command)| {
        let name = name.trim().to_owned();
        if name.is_empty() || name.contains([',', '\n', '\r']) {
            return Err(NameError::Unfit(name));
        }
        Ok(NamedWork { name, work: Work::Command(command.clone()) })
    });
    once(programs.collect::<Result<_, _>>()?)
}

/// Programs, at least two, none of which have the same name.
fn once(programs: Vec<NamedWork>) -> Result<Vec<NamedWork>, NameError> {
    if programs.len() < 2 {
        return Err(NameError::TooFew(programs.len()));
    }
    for (at, program) in programs.iter().enumerate() {
        if programs.iter().take(at).any(|before| before.name == program.name) {
            return Err(NameError::Twice(program.name.clone()));
        }
    }
    Ok(programs)
}

/// The first word of a command that sets no variable, without its folder.
fn named(command: &str) -> String {
    let mut words = command.split_whitespace().skip_while(|word| word.contains('='));
    let word = words.next().unwrap_or("program");
    let last = word.rsplit('/').next().unwrap_or(word);
    let plain: String =
        last.chars().filter(|c| c.is_ascii_alphanumeric() || "._+-".contains(*c)).collect();
    if plain.is_empty() { "program".to_owned() } else { plain }
}

/// Names with numbers behind those that occur again.
fn distinct(names: impl Iterator<Item = String>) -> Vec<String> {
    let names: Vec<String> = names.collect();
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    let mut taken: Vec<String> = Vec::new();
    for name in &names {
        let mut candidate = name.clone();
        while taken.contains(&candidate) || (candidate != *name && names.contains(&candidate)) {
            let number = seen.entry(name.clone()).or_insert(1);
            *number += 1;
            candidate = format!("{name}-{number}");
        }
        taken.push(candidate);
    }
    taken
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(list: &[&str]) -> Vec<String> {
        list.iter().map(|&it| it.to_owned()).collect()
    }

    fn called(commands: &[&str], names: &[&str]) -> Result<Vec<String>, NameError> {
        let programs = of_user(&words(commands), &words(names))?;
        Ok(programs.into_iter().map(|program| program.name).collect())
    }

    proptest! {
        #[test]
        fn any_commands_get_distinct_names_that_fit_a_line(commands in prop::collection::vec(".{0,12}", 2..12)) {
            let programs = of_user(&commands, &[]).unwrap();
            prop_assert_eq!(programs.len(), commands.len());
            for program in programs {
                prop_assert!(!program.name.is_empty() && !program.name.contains([',', '\n']), "{:?}", program);
            }
        }
    }

    #[test]
    fn programs_are_called_by_what_they_execute() {
        let commands = ["xz -9k a", "/opt/b/solve in", "LANG=C xz b", "'x y'", "xz-2", "xz"];
        assert_eq!(called(&commands, &[]).unwrap(), ["xz", "solve", "xz-3", "x", "xz-2", "xz-4"]);
        assert_eq!(called(&["a", "a"], &["one", "two words"]).unwrap(), ["one", "two words"]);
    }

    #[test]
    fn names_that_cannot_be_are_refused() {
        let count = called(&["a"], &["b", "c"]).unwrap_err();
        assert_eq!(count, NameError::Count { names: 2, commands: 1 });
        assert_eq!(count.to_string(), "--names gives 2 names for 1 command");
        let one = called(&["a", "b"], &["c"]).unwrap_err().to_string();
        assert_eq!(one, "--names gives 1 name for 2 commands");
        assert_eq!(called(&["a", "b"], &["b\nc", "d"]), Err(NameError::Unfit("b\nc".to_owned())));
        assert_eq!(called(&["a", "b"], &[" ", "d"]), Err(NameError::Unfit(String::new())));
        assert_eq!(called(&["a"], &[]), Err(NameError::TooFew(1)));
        assert_eq!(called(&["a", "b"], &["c", "c "]), Err(NameError::Twice("c".to_owned())));
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn our_own_programs_are_known() {
        assert_eq!(own(&[]).unwrap().len(), OWN.len());
        assert!(OWN.iter().all(|name| !name.contains(',')));
        assert_eq!(own(&words(&["nosuch"])), Err(NameError::Unknown("nosuch".to_owned())));
        let blanks = own(&words(&["stores", " sum of 64 MiB "])).unwrap();
        assert_eq!([blanks[0].name.as_str(), &blanks[1].name], ["stores", "sum of 64 MiB"]);
        assert_eq!(own(&words(&["stores", " stores"])), Err(NameError::Twice("stores".to_owned())));
    }
}
