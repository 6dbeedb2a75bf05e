//! Reads the TOML files that an administrator writes, and says what is wrong in them.
//!
//! # Approach
//! A [`Mistake`] has its place in the text; shown, it is line, column and reason, and below them the line itself with
//! the place marked. The reasons of serde are put in words of TOML: its files have tables and lists, no maps and
//! structs.
//!
//! # Properties
//! - Every mistake has its line, also one that is none of TOML (`a_mistake_is_shown_at_its_place`).
//! - What is shown is short, says where it was cut, and has no control characters
//!   (`long_lines_and_control_characters_are_not_shown`).

use std::ops::Range;

use serde::de::DeserializeOwned;
use toml::value::Datetime;

/// Most characters of a line that are shown.
const MOST_OF_LINE: usize = 120;
/// Most characters of a reason.
const MOST_OF_REASON: usize = 600;

/// Something wrong at a place of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mistake {
    at: Range<usize>,
    why: String,
}

impl Mistake {
    /// At these bytes.
    pub fn new(at: Range<usize>, why: impl Into<String>) -> Self {
        Self { at, why: why.into() }
    }

    fn of(error: &toml::de::Error, why: String) -> Self {
        Self::new(error.span().unwrap_or_default(), why)
    }

    /// Line, column and reason, and the line of the text.
    pub fn show(&self, text: &str) -> String {
        // The end of a text is still in its last line.
        let last = text.strip_suffix('\n').unwrap_or(text).len();
        let (line, column) = place(text, self.at.start.min(last));
        let marked = text.get(self.at.clone()).map_or(0, |marked| marked.chars().count());
        let [shown, marks] = quote(text.lines().nth(line).unwrap_or_default(), column, marked);
        let (line, column) = (line + 1, column + 1);
        let gutter = " ".repeat(line.to_string().len());
        let why: String = self.why.chars().take(MOST_OF_REASON).map(printable).collect();
        let cut = if self.why.chars().nth(MOST_OF_REASON).is_some() { "…" } else { "" };
        format!(
            "line {line}, column {column}: {why}{cut}\n\
             {gutter} |\n{line} | {shown}\n{gutter} | {marks}"
        )
    }
}

/// A line, or what is around a column of a long one; and below it marks for some characters from that column.
fn quote(line: &str, column: usize, marked: usize) -> [String; 2] {
    let length = line.chars().count();
    let is_long = length > MOST_OF_LINE;
    let start = if is_long { column.saturating_sub(MOST_OF_LINE / 2) } else { 0 };
    let shown: String = line.chars().skip(start).take(MOST_OF_LINE).map(printable).collect();
    let before = column - start;
    let rest = shown.chars().count().saturating_sub(before);
    let marks = "^".repeat(marked.min(rest).max(1));
    let cut = |is_cut: bool| if is_cut { "…" } else { "" };
    let [left, right] = [cut(start > 0), cut(start + MOST_OF_LINE < length)];
    let indent = " ".repeat(before + left.chars().count());
    [format!("{left}{shown}{right}"), format!("{indent}{marks}")]
}

/// What a text says.
pub(crate) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, Mistake> {
    let parsed = toml::Deserializer::parse(text)
        .map_err(|error| Mistake::of(&error, format!("this is no TOML: {}", error.message())))?;
    T::deserialize(parsed).map_err(|error| {
        let value = error.span().and_then(|at| text.get(at)).unwrap_or_default();
        Mistake::of(&error, in_words_of_toml(error.message(), value))
    })
}

/// The text of a file.
pub(crate) fn text(bytes: Vec<u8>) -> Result<String, String> {
    String::from_utf8(bytes).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let before = String::from_utf8_lossy(error.as_bytes().get(..good).unwrap_or_default());
        let (line, column) = place(&before, good);
        format!(
            "line {}, column {}: this is no text in UTF-8 (`iconv -f ISO-8859-1 -t UTF-8` converts from Latin-1)",
            line + 1,
            column + 1
        )
    })
}

/// The line and the column of a byte, from 0.
fn place(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count();
    (before.matches('\n').count(), column)
}

/// A terminal obeys control characters.
fn printable(character: char) -> char {
    match character {
        '\t' | '\n' => ' ',
        _ if character.is_control() => '?',
        _ => character,
    }
}

/// A reason of serde's for the refusal of a value in the words that TOML has for the same things.
fn in_words_of_toml(reason: &str, value: &str) -> String {
    let of_a_value = ["invalid type: ", "invalid value: "];
    let found_and_expected =
        of_a_value.iter().find_map(|kind| reason.strip_prefix(kind)?.rsplit_once(", expected "));
    if let Some((found, expected)) = found_and_expected {
        let found = match word(found) {
            // serde has no dates: they come as tables.
            "a table" if value.parse::<Datetime>().is_ok() => "a date or time",
            found => found,
        };
        return format!("expected {}, found {found}", word(expected));
    }
    let named = [("unknown field ", "unknown key "), ("unknown variant ", "unknown value ")];
    let renamed =
        named.iter().find_map(|(rust, toml)| Some(format!("{toml}{}", reason.strip_prefix(rust)?)));
    renamed.unwrap_or_else(|| reason.to_owned())
}

/// What serde expects or finds.
fn word(of_serde: &str) -> &str {
    match of_serde {
        "map" | "a map" => "a table",
        "sequence" | "a sequence" => "a list",
        "path string" => "a path in quotes",
        "a string" => "text in quotes",
        "a boolean" => "true or false",
        "u16" | "u32" | "u64" | "usize" => "a whole number that is not negative",
        _ if of_serde.starts_with("struct ") => "a table",
        _ => of_serde,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_is_shown_at_its_place() {
        let text = "a = 1\n\u{fc} = [2]\n";
        let at = |at: Range<usize>| Mistake::new(at, "wrong").show(text);
        assert_eq!(at(0..1), "line 1, column 1: wrong\n  |\n1 | a = 1\n  | ^");
        assert_eq!(at(11..14), "line 2, column 5: wrong\n  |\n2 | \u{fc} = [2]\n  |     ^^^");
        assert_eq!(
            at(4..14),
            "line 1, column 5: wrong\n  |\n1 | a = 1\n  |     ^",
            "its first line"
        );
        let end = "line 2, column 8: wrong\n  |\n2 | \u{fc} = [2]\n  |        ^";
        assert_eq!(at(text.len()..text.len()), end);
        assert!(Mistake::new(0..0, "wrong").show("").starts_with("line 1, column 1: wrong"));
    }

    #[test]
    fn long_lines_and_control_characters_are_not_shown() {
        let text = format!("{}\u{1b}[31m{}", "a".repeat(5000), "b".repeat(5000));
        let shown = Mistake::new(5000..5003, "c".repeat(5000)).show(&text);
        assert!(shown.chars().count() < 1000 && shown.contains("aaa?[31mbbb"), "{shown}");
        assert!(shown.contains("column 5001: ccc") && shown.ends_with(" ^^^"), "{shown}");
        let [line, marks] = [1, 0].map(|from_end| shown.lines().nth_back(from_end).unwrap());
        let (line, marks) = (line.split_once("| ").unwrap().1, marks.split_once("| ").unwrap().1);
        assert!(line.starts_with("…aaa") && line.ends_with("bbb…"), "{line}");
        assert_eq!(line.chars().position(|c| c == '?'), marks.chars().position(|c| c == '^'));
        let [start, end] = [0..3, 10_000..10_001].map(|at| Mistake::new(at, "wrong").show(&text));
        assert!(start.contains("| aaa") && start.contains("aaa…\n"), "{start}");
        assert!(end.contains("| …bbb") && end.contains("bbb\n"), "{end}");
        assert!(Mistake::new(0..9999, "\u{7}").show("\t\u{7}").contains(": ?\n  |\n1 |  ?\n"));
    }

    #[test]
    fn reasons_are_in_words_of_toml() {
        #[derive(Debug, PartialEq, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Some {
            list: Option<Vec<u32>>,
            flag: Option<bool>,
            table: Option<Box<Some>>,
            map: Option<std::collections::BTreeMap<String, std::path::PathBuf>>,
        }
        let right = Some { list: None, flag: None, table: None, map: None };
        assert_eq!(parse("").as_ref(), Ok(&right));
        for (text, why) in [
            ("list = \"a\"", "expected a list, found string \"a\""),
            ("list = [-1]", "expected a whole number that is not negative, found integer `-1`"),
            ("[list]\na = 1", "expected a list, found a table"),
            ("flag = [true]", "expected true or false, found a list"),
            ("flag = 2026-11-30", "expected true or false, found a date or time"),
            ("list = [07:32:00]", "negative, found a date or time"),
            ("map.a = 1979-05-27T07:32:00Z", "expected a path in quotes, found a date or time"),
            ("flag = {}", "expected true or false, found a table"),
            ("table = 2", "expected a table, found integer `2`"),
            ("map = \", expected \"", "expected a table, found string \", expected \""),
            ("map.a = 1", "expected a path in quotes, found integer `1`"),
            ("mop = 1", "unknown key `mop`, expected one of `list`, `flag`, `table`, `map`"),
            ("list = ", "this is no TOML: "),
        ] {
            let shown = parse::<Some>(text).unwrap_err().show(text);
            assert!(shown.starts_with("line 1, column ") && shown.contains(why), "{text}: {shown}");
        }
    }

    #[test]
    fn a_text_that_is_not_utf_8_is_refused_by_line() {
        assert_eq!(text(b"a = 1\n".to_vec()).as_deref(), Ok("a = 1\n"));
        let why = text(b"a = 1\nb = '\xfc'\n".to_vec()).unwrap_err();
        assert!(why.starts_with("line 2, column 6: this is no text in UTF-8"), "{why}");
        let why = text(b"a = 1\n\xfc".to_vec()).unwrap_err();
        assert!(why.starts_with("line 2, column 1: "), "{why}");
    }
}
