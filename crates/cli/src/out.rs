//! Standard output and standard error, for all commands: `say!` and `say_all!` instead of
//! `println!` and `print!`, which panic when the reader is gone (`symbiont machines | head -1`),
//! and `note!` instead of `eprintln!`, which panics where standard error is on a full disk.

use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write};

use serde::Serialize;

use crate::top::clean::is_shown;

/// Writes a line to standard output.
macro_rules! say {
    () => { $crate::out::write(format_args!("\n")) };
    ($($words:tt)*) => { $crate::out::write(format_args!("{}\n", format_args!($($words)*))) };
}

/// Writes text to standard output as it is.
macro_rules! say_all {
    ($($words:tt)*) => { $crate::out::write(format_args!($($words)*)) };
}

/// Writes a line to standard error. Where that is closed or full, the line is lost.
macro_rules! note {
    ($($words:tt)*) => { $crate::out::note(format_args!($($words)*)) };
}

/// Writes a line to standard error, as far as that is possible.
pub fn note(line: Arguments<'_>) {
    // In one piece: several processes may write there.
    let _ = io::stderr().write_all(shown(&format!("{line}\n")).as_bytes());
}

/// Text without what a terminal would obey or hide, but for ends of lines and tabs: names of programs may hold it.
pub fn shown(text: &str) -> String {
    text.chars().map(|c| if matches!(c, '\n' | '\t') || is_shown(c) { c } else { '?' }).collect()
}

/// JSON on several lines, for a terminal too: what one would obey or hide is escaped.
pub fn json(value: &impl Serialize) -> serde_json::Result<String> {
    serde_json::to_string_pretty(value).map(|json| escaped(&json))
}

/// The same on one line.
pub fn json_line(value: &impl Serialize) -> serde_json::Result<String> {
    serde_json::to_string(value).map(|json| escaped(&json))
}

/// Outside of strings JSON has nothing to escape but ends of lines, which stay.
fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if c == '\n' || is_shown(c) {
            text.push(c);
        } else {
            let units = c.encode_utf16(&mut [0; 2]).to_vec();
            units.iter().for_each(|unit| text += &format!("\\u{unit:04x}"));
        }
    }
    text
}

/// Writes to standard output. Once no process reads it there is nothing left to do: the
/// program ends, successfully, as the reader has what it wanted. Other errors (a full
/// disk) are reported, and end it as a failure.
pub fn write(text: Arguments<'_>) {
    let mut out = io::stdout().lock();
    match out.write_all(shown(&text.to_string()).as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => {
            note!("symbiont: standard output: {error}");
            std::process::exit(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_has_names_as_they_are_and_nothing_that_a_terminal_obeys() {
        let names = ["a\u{1b}[31m\n\t\"\\", "\u{7f}\u{9b}31m", "\u{202e}gpj", "\u{e0041}größe"];
        for text in [json(&names).unwrap(), json_line(&names).unwrap()] {
            assert_eq!(text, shown(&text));
            assert_eq!(serde_json::from_str::<Vec<String>>(&text).unwrap(), names);
        }
    }

    #[test]
    fn what_a_terminal_obeys_is_not_written() {
        assert_eq!(shown("a\u{1b}]0;t\u{7}b\r\n\tc\u{9b}1m"), "a?]0;t?b?\n\tc?1m");
    }
}
