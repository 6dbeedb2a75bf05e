//! Names that are nearest to one that no list has, for messages.

/// The known names that a misspelt one probably means, nearest first.
pub(crate) fn nearest(
    asked: &str,
    known: impl IntoIterator<Item = &'static str>,
) -> Vec<&'static str> {
    let asked = asked.to_lowercase();
    let mut near: Vec<(usize, &'static str)> = known
        .into_iter()
        .map(|name| (distance(&asked, name), name))
        .filter(|(distance, name)| *distance <= name.len() / 2)
        .collect();
    near.sort_unstable();
    near.into_iter().map(|(_, name)| name).collect()
}

/// A question for a message; empty without names.
pub(crate) fn hint(near: &[&str]) -> String {
    if near.is_empty() {
        String::new()
    } else {
        format!("did you mean '{}'? ", near.join("' or '"))
    }
}

/// Letters to insert, delete or replace to get from one word to the other
/// (Levenshtein).
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.chars().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (cell, b) in row.iter_mut().skip(1).zip(&to) {
            let best = (diagonal + usize::from(a != *b)).min(*cell + 1).min(left + 1);
            diagonal = *cell;
            *cell = best;
            left = best;
        }
        row[0] = i + 1;
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_edits() {
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", ""), 3);
        assert_eq!(distance("phases", "phases"), 0);
        assert_eq!(distance("phsaes", "phases"), 2);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
