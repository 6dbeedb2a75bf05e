//! Widths and wrapping of text, by estimate: the reader's font is not known.

/// Width of `text` in pixels at a font size in pixels; on the wide side for
/// common sans-serif fonts.
pub(super) fn width(text: &str, size: f64) -> f64 {
    text.chars().map(advance).sum::<f64>() * size
}

/// Advance of a character in em.
fn advance(c: char) -> f64 {
    match c {
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | 'I' | '’' => 0.30,
        'f' | 'r' | 't' | ' ' | '(' | ')' | '[' | ']' | '/' | '-' => 0.40,
        'm' | 'w' | 'M' | 'W' | '@' | '%' | '∞' | '…' | '—' => 0.92,
        c if c.is_uppercase() => 0.70,
        c if c.is_ascii() => 0.60,
        c if ('\u{2e80}'..).contains(&c) => 1.05,
        _ => 0.65,
    }
}

/// `text`, cut to `limit` pixels with an ellipsis if it is wider.
pub(super) fn fit(text: &str, size: f64, limit: f64) -> String {
    if width(text, size) <= limit {
        return text.to_owned();
    }
    let room = limit - advance('…') * size;
    let mut used = 0.0;
    let fits = |c: &char| {
        used += advance(*c) * size;
        used <= room
    };
    text.chars().take_while(fits).chain(['…']).collect()
}

/// Breaks `text` into lines no wider than `limit` pixels, between words where
/// possible, within a word where not.
pub(super) fn wrap(text: &str, size: f64, limit: f64) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        for piece in pieces(word, size, limit) {
            let Some(last) = lines.last_mut() else { continue };
            let joined = if last.is_empty() { piece.clone() } else { format!("{last} {piece}") };
            if width(&joined, size) <= limit {
                *last = joined;
            } else {
                lines.push(piece);
            }
        }
    }
    lines
}

/// As [`wrap`], cut after `most` lines with an ellipsis.
pub(super) fn wrap_to(text: &str, size: f64, limit: f64, most: usize) -> Vec<String> {
    let mut lines = wrap(text, size, limit);
    if let Some(rest) = lines.get(most.saturating_sub(1)..).filter(|rest| rest.len() > 1) {
        let rest = fit(&rest.concat(), size, limit);
        lines.truncate(most.saturating_sub(1));
        lines.push(rest);
    }
    lines
}

/// A word in pieces that each fit.
fn pieces(word: &str, size: f64, limit: f64) -> Vec<String> {
    let mut pieces = vec![String::new()];
    for c in word.chars() {
        let Some(last) = pieces.last_mut() else { continue };
        if !last.is_empty() && width(last, size) + advance(c) * size > limit {
            pieces.push(c.to_string());
        } else {
            last.push(c);
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn breaks_between_words_and_within_long_ones() {
        assert_eq!(wrap("serial next to parallel", 10.0, 90.0), ["serial next to", "parallel"]);
        assert_eq!(wrap("aaaaaaaaaa", 10.0, 31.0), ["aaaaa", "aaaaa"]);
        assert_eq!(wrap("", 10.0, 50.0), [""]);
    }

    #[test]
    fn cuts_what_does_not_fit() {
        assert_eq!(fit("short", 10.0, 90.0), "short");
        assert_eq!(fit("aaaaaaaaaa", 10.0, 40.0), "aaaaa…");
        assert_eq!(fit("aaa", 10.0, 1.0), "…");
        assert_eq!(wrap_to("aaaa bbbb cccc dddd", 10.0, 30.0, 2), ["aaaa", "bbb…"]);
        assert_eq!(wrap_to("aaaa bbbb", 10.0, 30.0, 2), ["aaaa", "bbbb"]);
    }

    proptest! {
        #[test]
        fn wrapping_keeps_every_letter_and_the_limit(text in "\\PC{0,80}", limit in 20.0..300.0_f64) {
            let lines = wrap(&text, 10.0, limit);
            let letters = |s: &str| s.chars().filter(|c| !c.is_whitespace()).collect::<String>();
            prop_assert_eq!(letters(&lines.concat()), letters(&text));
            prop_assert!(lines.iter().all(|l| width(l, 10.0) <= limit + 1e-9));
        }
    }
}
