//! Text for people: lines of bounded length, columns.

use std::fmt::Write;

use crate::top::clean::clean;

/// Longest line.
const WIDTH: usize = 100;
/// A column that grows beyond this has its neighbour on the next line.
const COLUMN: usize = 44;

/// Paragraphs, broken into lines that begin with so many blanks.
pub fn wrapped(text: &str, indent: usize) -> String {
    let blanks = " ".repeat(indent);
    let paragraph = |text: &str| {
        let mut lines: Vec<String> = Vec::new();
        for word in text.split_whitespace() {
            match lines.last_mut() {
                Some(line) if line.chars().count() + 1 + word.chars().count() <= WIDTH => {
                    let _ = write!(line, " {word}");
                }
                _ => lines.push(format!("{blanks}{word}")),
            }
        }
        lines.join("\n")
    };
    text.split("\n\n").map(paragraph).collect::<Vec<_>>().join("\n\n")
}

/// A text behind a label, broken into lines of which all but the first begin with so many blanks.
pub fn hanging(label: &str, text: &str, indent: usize) -> String {
    let text = wrapped(text, indent);
    format!("{label:<indent$}{}\n", text.trim_start())
}

/// Rows in columns; the last column is broken into lines.
pub fn table(rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut rows: Vec<Vec<String>> = rows.collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0).saturating_sub(1);
    // Names of programs may have ends of lines.
    rows.iter_mut().flat_map(|row| row.iter_mut().take(columns)).for_each(|it| *it = clean(it));
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).filter(|&count| count <= COLUMN).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let indent = 2 + widths.iter().map(|width| width + 2).sum::<usize>();
    let mut out = String::new();
    for row in &rows {
        let mut line = " ".repeat(2);
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(line, "{cell:<width$}  ");
        }
        let last = row.get(columns).map(|text| wrapped(text, indent)).unwrap_or_default();
        if line.chars().count() > indent {
            let _ = writeln!(out, "{}\n{last}", line.trim_end());
        } else {
            let _ = writeln!(out, "{line}{}", last.trim_start());
        }
    }
    out
}

/// Numbers, neighbours joined: `0 to 5`.
pub fn range(numbers: &[u32]) -> String {
    let mut spans: Vec<(u32, u32)> = Vec::new();
    for &number in numbers {
        match spans.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
            _ => spans.push((number, number)),
        }
    }
    let span = |&(first, last): &(u32, u32)| match last - first {
        0 => first.to_string(),
        1 => format!("{first}, {last}"),
        _ => format!("{first} to {last}"),
    };
    spans.iter().map(span).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words() {
        let text = wrapped(&"word ".repeat(60), 4);
        assert!(text.lines().count() == 4 && text.lines().all(|line| line.len() <= WIDTH));
        assert!(text.lines().all(|line| line.starts_with("    word")));
        assert_eq!(wrapped("a\nb\n\nc", 1), " a b\n\n c");
    }

    #[test]
    fn a_cell_is_one_line() {
        let row = ["7", "na\nme\u{1b}[31m", "a\nlast one"].map(str::to_owned).to_vec();
        assert_eq!(table([row].into_iter()), "  7  na?me?[31m  a last one\n");
    }

    #[test]
    fn a_text_hangs_behind_its_label() {
        let text = hanging(" why", &"word ".repeat(30), 6);
        let lines: Vec<_> = text.lines().collect();
        assert!(lines[0].starts_with(" why  word") && lines[1].starts_with("      word"), "{text}");
        assert!(text.ends_with("word\n"));
    }

    #[test]
    fn columns_stand_under_each_other() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let long = "n".repeat(COLUMN + 1);
        let rows = [row(["a", "1", "x"]), row(["bcd", "22", "y z"]), row([&long, "3", "w"])];
        let text = table(rows.into_iter());
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "  a    1   x");
        assert_eq!(lines[1], "  bcd  22  y z");
        assert_eq!(lines[2], format!("  {long}  3"));
        assert_eq!(lines[3], "           w");
    }

    #[test]
    fn neighbours_are_joined() {
        assert_eq!(range(&[0, 1, 2, 3]), "0 to 3");
        assert_eq!(range(&[0, 1, 4]), "0, 1, 4");
        assert_eq!(range(&[2]), "2");
    }
}
