//! A command with places for arguments, as GNU parallel has it.
//!
//! # Approach
//! The words of a template are joined by blanks; the shell reads them, so that pipes and redirections are
//! written as one quoted word. Each replacement string in it becomes the argument or a part of it, quoted for
//! the shell. A template without one gets the argument at its end; in one that begins with one, arguments are
//! commands, and not quoted.
//!
//! # Properties
//! - The shell reads a quoted argument as it was (`the_shell_reads_a_quoted_argument_as_it_was`).
//! - Parts of arguments are those of GNU parallel (`parts_are_those_of_gnu_parallel`).

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use super::line::Line;

/// What stands between a template and its arguments.
const ARGUMENTS: &str = ":::";
/// Of GNU parallel, but not known here.
const UNKNOWN: [&str; 4] = ["{%}", "{=", "{1", "{2"];

/// A template and its arguments, if they are given with it: any bytes, as names of files may hold them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    text: Vec<u8>,
    /// Those of the command line.
    pub arguments: Option<Vec<OsString>>,
}

/// A part of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    All,
    WithoutExtension,
    Name,
    Folder,
    NameWithoutExtension,
    Number,
}

const PARTS: [(&str, Part); 6] = [
    ("{}", Part::All),
    ("{.}", Part::WithoutExtension),
    ("{/}", Part::Name),
    ("{//}", Part::Folder),
    ("{/.}", Part::NameWithoutExtension),
    ("{#}", Part::Number),
];

impl Template {
    /// From the words of the command line.
    pub fn new(words: &[OsString]) -> anyhow::Result<Self> {
        let mut halves = words.splitn(2, |word| word == ARGUMENTS);
        let (template, arguments) = (halves.next().unwrap_or_default(), halves.next());
        for word in arguments.into_iter().flatten().chain(template) {
            anyhow::ensure!(
                !word.as_bytes().starts_with(ARGUMENTS.as_bytes()),
                "'{}': one list of arguments is taken, after one {ARGUMENTS}",
                word.to_string_lossy()
            );
        }
        let text = template.join(OsStr::new(" ")).into_vec();
        for unknown in UNKNOWN {
            anyhow::ensure!(
                !contains(&text, unknown),
                "the replacement string {unknown} is not known here; known are {{}} {{.}} {{/}} {{//}} {{/.}} {{#}}"
            );
        }
        Ok(Self { text, arguments: arguments.map(<[OsString]>::to_vec) })
    }

    /// The command for an argument, which has this number from 1.
    pub fn command(&self, argument: &[u8], number: usize) -> Vec<u8> {
        let text = match self.text.as_slice() {
            [] => b"{}".to_vec(),
            text if PARTS.iter().any(|(name, _)| contains(text, name)) => text.to_vec(),
            text => [text, b" {}"].concat(),
        };
        let is_quoted = !PARTS.iter().any(|(name, _)| text.starts_with(name.as_bytes()));
        let (mut command, mut rest) = (Vec::new(), text.as_slice());
        while let Some((next, others)) = rest.split_first() {
            match PARTS.iter().find(|(name, _)| rest.starts_with(name.as_bytes())) {
                Some((name, part)) => {
                    let part = part.of(argument, number);
                    command.extend(if is_quoted { quoted(part) } else { part });
                    rest = rest.get(name.len()..).unwrap_or_default();
                }
                None => {
                    command.push(*next);
                    rest = others;
                }
            }
        }
        command
    }

    /// The commands for arguments.
    pub fn lines<'a>(&self, arguments: impl Iterator<Item = &'a [u8]>) -> Vec<Line> {
        let line = |(number, argument)| Line::new(number, &self.command(argument, number));
        (1..).zip(arguments).map(line).collect()
    }
}

fn contains(text: &[u8], part: &str) -> bool {
    text.windows(part.len()).any(|window| window == part.as_bytes())
}

/// What is before and behind the last of these bytes.
fn split_at_last(text: &[u8], byte: u8) -> Option<(&[u8], &[u8])> {
    let at = text.iter().rposition(|other| *other == byte)?;
    Some((text.get(..at)?, text.get(at + 1..)?))
}

impl Part {
    fn of(self, argument: &[u8], number: usize) -> Vec<u8> {
        let (folder, name) = match split_at_last(argument, b'/') {
            Some((b"", name)) => (&b"/"[..], name),
            Some((folder, name)) => (folder, name),
            None => (&b"."[..], argument),
        };
        let without = |text: &[u8]| match split_at_last(text, b'.') {
            Some((stem, end)) if !end.is_empty() && !end.contains(&b'/') => stem.to_vec(),
            _ => text.to_vec(),
        };
        match self {
            Self::All => argument.to_vec(),
            Self::WithoutExtension => without(argument),
            Self::Name => name.to_vec(),
            Self::Folder => folder.to_vec(),
            Self::NameWithoutExtension => without(name),
            Self::Number => number.to_string().into(),
        }
    }
}

/// As one word of the shell.
fn quoted(text: Vec<u8>) -> Vec<u8> {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.+/".contains(byte);
    if !text.is_empty() && text.iter().all(is_plain) {
        return text;
    }
    let mut word = vec![b'\''];
    for byte in text {
        match byte {
            b'\'' => word.extend(br#"'"'"'"#),
            byte => word.push(byte),
        }
    }
    word.push(b'\'');
    word
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;

    fn template(words: &[&str]) -> Template {
        Template::new(&words.iter().map(Into::into).collect::<Vec<_>>()).unwrap()
    }

    fn command(words: &[&str], argument: &str, number: usize) -> String {
        String::from_utf8(template(words).command(argument.as_bytes(), number)).unwrap()
    }

    #[test]
    fn parts_are_those_of_gnu_parallel() {
        let all = &["echo", "{.} {/} {//} {/.} {#}"];
        for (number, argument, want) in [
            (1, "a b/.c", "echo 'a b/' .c 'a b' '' 1"),
            (2, "x.tar.gz", "echo x.tar x.tar.gz . x.tar 2"),
            (3, "/foo", "echo /foo foo / foo 3"),
            (4, "a.b/c", "echo a.b/c c a.b c 4"),
            (5, "", "echo '' '' . '' 5"),
        ] {
            assert_eq!(command(all, argument, number), want);
        }
    }

    #[test]
    fn arguments_are_quoted_unless_they_are_the_command() {
        assert_eq!(command(&["gzip", "-9"], "it's", 1), r#"gzip -9 'it'"'"'s'"#);
        assert_eq!(command(&["a <{} >{.}"], "b.c", 1), "a <b.c >b");
        assert_eq!(command(&["{}", "x", "{.}"], "a b.c", 1), "a b.c x a b");
        assert_eq!(command(&[], "gzip a", 1), "gzip a");
    }

    #[test]
    fn arguments_follow_three_colons() {
        let given = template(&["gzip", "{}", ":::", "a", "b c"]);
        let commands: Vec<_> = given.arguments.clone().unwrap();
        let commands = given.lines(commands.iter().map(|one| one.as_bytes()));
        assert_eq!(commands, [Line::new(1, b"gzip a"), Line::new(2, b"gzip 'b c'")]);
        assert_eq!(template(&["gzip"]).arguments, None);
        for wrong in [&["x", ":::", "a", ":::", "b"][..], &["x", "::::", "a"], &["x {%}"], &["{1}"]]
        {
            let words: Vec<OsString> = wrong.iter().map(Into::into).collect();
            assert!(Template::new(&words).is_err(), "{wrong:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn the_shell_reads_a_quoted_argument_as_it_was(
            text in "[^\0]*",
            bytes in proptest::collection::vec(1_u8.., 0..16),
        ) {
            let argument = [text.into_bytes(), bytes].concat();
            let command = template(&["printf", "%s", "{}"]).command(&argument, 1);
            let output = Command::new("sh").arg("-c").arg(OsStr::from_bytes(&command)).output();
            prop_assert_eq!(output.unwrap().stdout, argument);
        }
    }
}
