//! The jobs of a file, one command to a line.

use std::path::Path;

use anyhow::Context;

/// Commands in a file at most.
const MOST_JOBS: usize = 100_000;

/// A command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The number of its line, from 1: its name for people.
    pub number: usize,
    /// What `sh -c` is given.
    pub command: String,
}

/// Reads the commands.
pub fn read(path: &Path) -> anyhow::Result<Vec<Line>> {
    let text = symbiont_input::read_to_string(path)
        .with_context(|| format!("cannot read the job file {}", path.display()))?;
    parse(&text).with_context(|| format!("in the job file {}", path.display()))
}

fn parse(text: &str) -> anyhow::Result<Vec<Line>> {
    let mut lines = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let command = line.trim();
        if command.is_empty() || command.starts_with('#') {
            continue;
        }
        anyhow::ensure!(!command.contains('\0'), "line {number} holds a zero byte");
        lines.push(Line { number, command: command.to_owned() });
    }
    anyhow::ensure!(!lines.is_empty(), "there is no command");
    anyhow::ensure!(lines.len() <= MOST_JOBS, "there are more than {MOST_JOBS} commands");
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_empty_lines_are_no_jobs_and_lines_keep_their_numbers() {
        let lines = parse("# all\n\n  xz a \n#no\ncd b && make # yes\n").unwrap();
        let line = |number, command: &str| Line { number, command: command.to_owned() };
        assert_eq!(lines, [line(3, "xz a"), line(5, "cd b && make # yes")]);
    }

    #[test]
    fn a_file_without_a_command_and_one_with_a_zero_byte_are_refused() {
        assert!(parse("# nothing\n").is_err());
        assert_eq!(parse("a\nb\0c").unwrap_err().to_string(), "line 2 holds a zero byte");
    }
}
