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

use super::line::Line;

/// What stands between a template and its arguments.
const ARGUMENTS: &str = ":::";
/// Of GNU parallel, but not known here.
const UNKNOWN: [&str; 4] = ["{%}", "{=", "{1", "{2"];

/// A template and its arguments, if they are given with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    text: String,
    /// Those of the command line.
    pub arguments: Option<Vec<String>>,
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
    pub fn new(words: &[String]) -> anyhow::Result<Self> {
        let mut halves = words.splitn(2, |word| word == ARGUMENTS);
        let (template, arguments) = (halves.next().unwrap_or_default(), halves.next());
        for word in arguments.into_iter().flatten().chain(template) {
            anyhow::ensure!(
                !word.starts_with(ARGUMENTS),
                "'{word}': one list of arguments is taken, after one {ARGUMENTS}"
            );
        }
        let text = template.join(" ");
        for unknown in UNKNOWN {
            anyhow::ensure!(
                !text.contains(unknown),
                "the replacement string {unknown} is not known here; known are {{}} {{.}} {{/}} {{//}} {{/.}} {{#}}"
            );
        }
        Ok(Self { text, arguments: arguments.map(<[String]>::to_vec) })
    }

    /// The command for an argument, which has this number from 1.
    pub fn command(&self, argument: &str, number: usize) -> String {
        let text = match self.text.as_str() {
            "" => "{}".to_owned(),
            text if PARTS.iter().any(|(name, _)| text.contains(name)) => text.to_owned(),
            text => format!("{text} {{}}"),
        };
        let is_quoted = !PARTS.iter().any(|(name, _)| text.starts_with(name));
        let (mut command, mut rest) = (String::new(), text.as_str());
        while let Some(next) = rest.chars().next() {
            match PARTS.iter().find(|(name, _)| rest.starts_with(name)) {
                Some((name, part)) => {
                    let part = part.of(argument, number);
                    command += &if is_quoted { quoted(&part) } else { part };
                    rest = rest.get(name.len()..).unwrap_or_default();
                }
                None => {
                    command.push(next);
                    rest = rest.get(next.len_utf8()..).unwrap_or_default();
                }
            }
        }
        command
    }

    /// The commands for arguments.
    pub fn lines<'a>(&self, arguments: impl Iterator<Item = &'a str>) -> Vec<Line> {
        let line = |(number, argument)| Line { number, command: self.command(argument, number) };
        (1..).zip(arguments).map(line).collect()
    }
}

impl Part {
    fn of(self, argument: &str, number: usize) -> String {
        let (folder, name) = match argument.rsplit_once('/') {
            Some(("", name)) => ("/", name),
            Some((folder, name)) => (folder, name),
            None => (".", argument),
        };
        let without = |text: &str| match text.rsplit_once('.') {
            Some((stem, end)) if !end.is_empty() && !end.contains('/') => stem.to_owned(),
            _ => text.to_owned(),
        };
        match self {
            Self::All => argument.to_owned(),
            Self::WithoutExtension => without(argument),
            Self::Name => name.to_owned(),
            Self::Folder => folder.to_owned(),
            Self::NameWithoutExtension => without(name),
            Self::Number => number.to_string(),
        }
    }
}

/// As one word of the shell.
fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.+/".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r#"'"'"'"#)),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;

    fn template(words: &[&str]) -> Template {
        Template::new(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn parts_are_those_of_gnu_parallel() {
        let all = template(&["echo", "{.} {/} {//} {/.} {#}"]);
        for (number, argument, want) in [
            (1, "a b/.c", "echo 'a b/' .c 'a b' '' 1"),
            (2, "x.tar.gz", "echo x.tar x.tar.gz . x.tar 2"),
            (3, "/foo", "echo /foo foo / foo 3"),
            (4, "a.b/c", "echo a.b/c c a.b c 4"),
            (5, "", "echo '' '' . '' 5"),
        ] {
            assert_eq!(all.command(argument, number), want);
        }
    }

    #[test]
    fn arguments_are_quoted_unless_they_are_the_command() {
        assert_eq!(template(&["gzip", "-9"]).command("it's", 1), r#"gzip -9 'it'"'"'s'"#);
        assert_eq!(template(&["a <{} >{.}"]).command("b.c", 1), "a <b.c >b");
        assert_eq!(template(&["{}", "x", "{.}"]).command("a b.c", 1), "a b.c x a b");
        assert_eq!(template(&[]).command("gzip a", 1), "gzip a");
    }

    #[test]
    fn arguments_follow_three_colons() {
        let given = template(&["gzip", "{}", ":::", "a", "b c"]);
        let commands: Vec<_> = given.arguments.clone().unwrap();
        let commands = given.lines(commands.iter().map(String::as_str));
        let line = |number, command: &str| Line { number, command: command.to_owned() };
        assert_eq!(commands, [line(1, "gzip a"), line(2, "gzip 'b c'")]);
        assert_eq!(template(&["gzip"]).arguments, None);
        for wrong in [&["x", ":::", "a", ":::", "b"][..], &["x", "::::", "a"], &["x {%}"], &["{1}"]]
        {
            let words: Vec<String> = wrong.iter().map(|word| (*word).to_owned()).collect();
            assert!(Template::new(&words).is_err(), "{wrong:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn the_shell_reads_a_quoted_argument_as_it_was(argument in "[^\0]*") {
            let command = template(&["printf", "%s", "{}"]).command(&argument, 1);
            let output = Command::new("sh").args(["-c", &command]).output().unwrap();
            prop_assert_eq!(output.stdout, argument.as_bytes());
        }
    }
}
