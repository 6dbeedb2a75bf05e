//! The jobs: commands, one to a line, or a template and its arguments.

use std::io::{IsTerminal, Read};
use std::os::unix::ffi::OsStrExt;
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
        return checked(template.lines(arguments.iter().map(|argument| argument.as_bytes())));
    }
    let (text, whence) = match file.filter(|file| *file != Path::new("-")) {
        Some(path) => (
            symbiont_safe_open::read(path)
                .with_context(|| format!("cannot read the job file {}", path.display()))?,
            format!("in the job file {}", path.display()),
        ),
        None => (standard_input()?, "on standard input".to_owned()),
    };
    let is_file = file.is_some_and(|file| file != Path::new("-"));
    match template {
        // A list that is made by another command may be empty.
        _ if !is_file && text.trim_ascii().is_empty() => Ok(Vec::new()),
        Some(template) => checked(template.lines(lines(&text))),
        None => parse(&text),
    }
    .context(whence)
}

fn standard_input() -> anyhow::Result<Vec<u8>> {
    let mut stdin = std::io::stdin();
    anyhow::ensure!(
        !stdin.is_terminal(),
        "name a job file, or write commands to standard input: see symbiont batch --help"
    );
    let mut text = Vec::new();
    stdin.read_to_end(&mut text).context("cannot read standard input")?;
    Ok(text)
}

/// Without their ends, as [`str::lines`]; of any bytes, since names of files may hold any.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = text.split_inclusive(|byte| *byte == b'\n');
    lines.map(|line| {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        line.strip_suffix(b"\r").unwrap_or(line)
    })
}

fn parse(text: &[u8]) -> anyhow::Result<Vec<Line>> {
    let numbered = (1..).zip(lines(text).map(<[u8]>::trim_ascii));
    let commands =
        numbered.filter(|(_, command)| !command.is_empty() && !command.starts_with(b"#"));
    checked(commands.map(|(number, command)| Line::new(number, command)).collect())
}

fn checked(lines: Vec<Line>) -> anyhow::Result<Vec<Line>> {
    for Line { number, command } in &lines {
        anyhow::ensure!(!command.as_bytes().contains(&0), "line {number} holds a zero byte");
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
        let lines = parse(b"# all\n\n  xz a \n#no\ncd b && make # yes\r\nxz \xe9\n").unwrap();
        let commands = [(3, &b"xz a"[..]), (5, b"cd b && make # yes"), (6, b"xz \xe9")];
        assert_eq!(lines, commands.map(|(number, command)| Line::new(number, command)));
    }

    #[test]
    fn a_file_without_a_command_and_one_with_a_zero_byte_are_refused() {
        assert!(parse(b"# nothing\n").is_err());
        assert_eq!(parse(b"a\nb\0c").unwrap_err().to_string(), "line 2 holds a zero byte");
    }
}
