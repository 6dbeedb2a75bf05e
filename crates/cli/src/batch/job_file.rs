//! The jobs: commands, one to a line, or a template and its arguments.

use std::io::{IsTerminal, Read};
use std::path::Path;

use anyhow::Context;

use super::line::Line;
use super::template::Template;

/// Commands in a file at most.
const MOST_JOBS: usize = 100_000;

/// Reads the commands, or the arguments of a template; from standard input where no file is named, which alone may be
/// empty.
pub fn read(file: Option<&Path>, template: Option<&Template>) -> anyhow::Result<Vec<Line>> {
    let arguments = template.and_then(|template| template.arguments.as_deref());
    if let (Some(template), Some(arguments)) = (template, arguments) {
        anyhow::ensure!(file.is_none(), "arguments are given twice: in a file and after :::");
        return checked(template.lines(arguments.iter().map(String::as_str)));
    }
    let (text, whence) = match file.filter(|file| *file != Path::new("-")) {
        Some(path) => (
            symbiont_safe_open::read_to_string(path)
                .with_context(|| format!("cannot read the job file {}", path.display()))?,
            format!("in the job file {}", path.display()),
        ),
        None => (standard_input()?, "on standard input".to_owned()),
    };
    let is_file = file.is_some_and(|file| file != Path::new("-"));
    match template {
        // A list that is made by another command may be empty.
        _ if !is_file && text.trim().is_empty() => Ok(Vec::new()),
        Some(template) => checked(template.lines(text.lines())),
        None => parse(&text),
    }
    .context(whence)
}

fn standard_input() -> anyhow::Result<String> {
    let mut stdin = std::io::stdin();
    anyhow::ensure!(
        !stdin.is_terminal(),
        "name a job file, or write commands to standard input: see symbiont batch --help"
    );
    let mut text = String::new();
    stdin.read_to_string(&mut text).context("cannot read standard input")?;
    Ok(text)
}

fn parse(text: &str) -> anyhow::Result<Vec<Line>> {
    let mut lines = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let command = line.trim();
        if command.is_empty() || command.starts_with('#') {
            continue;
        }
        lines.push(Line { number, command: command.to_owned() });
    }
    checked(lines)
}

fn checked(lines: Vec<Line>) -> anyhow::Result<Vec<Line>> {
    for Line { number, command } in &lines {
        anyhow::ensure!(!command.contains('\0'), "line {number} holds a zero byte");
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
