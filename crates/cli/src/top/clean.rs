//! Names and reasons as a terminal may show them.
//!
//! # Problem
//! Programs name themselves. A name with control characters would reach the terminal as commands,
//! one with invisible or direction-changing characters would show something else than it is, and
//! wide characters take two columns.
//!
//! # Properties
//! - Nothing that a terminal obeys is left (`what_a_terminal_obeys_is_replaced`).
//! - Text takes the stated number of columns (`text_takes_its_columns`).

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Replaces what a terminal would obey, and what would not be seen, by `?`.
pub fn clean(text: &str) -> String {
    text.chars().map(|c| if is_shown(c) { c } else { '?' }).collect()
}

/// Is it neither obeyed by a terminal nor invisible?
pub fn is_shown(c: char) -> bool {
    let hidden = matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}');
    !c.is_control() && !hidden
}

/// Columns that a text takes.
pub fn width(text: &str) -> usize {
    text.width()
}

/// The text in no more than so many columns; `~` stands for what is cut off.
pub fn cut(text: &str, most: usize) -> String {
    if width(text) <= most {
        return text.to_owned();
    }
    let (mut shown, mut columns) = (String::new(), 0);
    for c in text.chars() {
        columns += c.width().unwrap_or(0);
        if columns + 1 > most {
            break;
        }
        shown.push(c);
    }
    if most > 0 {
        shown.push('~');
    }
    shown
}

/// The text in exactly so many columns, at their left end.
pub fn left(text: &str, columns: usize) -> String {
    let text = cut(text, columns);
    let blanks = columns.saturating_sub(width(&text));
    text + &" ".repeat(blanks)
}

/// The same, at their right end.
pub fn right(text: &str, columns: usize) -> String {
    let text = cut(text, columns);
    " ".repeat(columns.saturating_sub(width(&text))) + &text
}

/// The text broken between words into lines of at most so many columns, of which all but the first begin with these
/// blanks; a word that is longer than a line is cut.
pub fn broken(text: &str, blanks: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width(line) + 1 + width(word) <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            None => lines.push(cut(word, columns)),
            Some(_) => lines.push(cut(&format!("{blanks}{word}"), columns)),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_replaced() {
        assert_eq!(clean("a\u{1b}[2Jb\n\u{7f}\u{9b}c"), "a?[2Jb???c");
        assert_eq!(clean("abc\u{202e}txt.exe\u{200b}"), "abc?txt.exe?");
        assert_eq!(clean("größe 編譯"), "größe 編譯");
    }

    #[test]
    fn text_is_broken_between_words() {
        assert_eq!(broken("a text in lines", "  ", 8), ["a text", "  in", "  lines"]);
        assert_eq!(broken("unbreakable word", "", 6), ["unbre~", "word"]);
    }

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!(cut("編譯器測試", 6), "編譯~");
        assert_eq!((left("編譯器", 4), right("xz", 4)), ("編~ ".to_owned(), "  xz".to_owned()));
    }

    proptest! {
        #[test]
        fn text_takes_its_columns(text in "\\PC*", columns in 0usize..40) {
            let text = clean(&text);
            prop_assert_eq!(width(&left(&text, columns)), columns);
            prop_assert_eq!(width(&right(&text, columns)), columns);
        }
    }
}
