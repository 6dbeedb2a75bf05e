//! Names like one that was mistyped.

/// At most three known names, those that need the fewest edits first; one that
/// contains the name, or begins like it, counts as nearer.
#[must_use]
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Vec<String> {
    let wanted = name.to_lowercase();
    let mut ranked: Vec<(usize, &str)> = known
        .map(|candidate| {
            let lower = candidate.to_lowercase();
            let contained =
                !wanted.is_empty() && (lower.contains(&wanted) || wanted.contains(&lower));
            (if contained { 0 } else { edits(&wanted, &lower) }, candidate)
        })
        .collect();
    ranked.sort();
    ranked.into_iter().take(3).map(|(_, name)| name.to_owned()).collect()
}

/// Letters to insert, remove or replace (Levenshtein).
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.chars().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (other, above) in b.iter().zip(row.iter_mut().skip(1)) {
            let best = (diagonal + usize::from(letter != *other)).min(left + 1).min(*above + 1);
            diagonal = *above;
            *above = best;
            left = best;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_counted() {
        for (a, b, count) in
            [("", "abc", 3), ("kitten", "sitting", 3), ("zen4", "zen4", 0), ("zen3", "zen4", 1)]
        {
            assert_eq!(edits(a, b), count, "{a} {b}");
            assert_eq!(edits(b, a), count, "{b} {a}");
        }
    }

    #[test]
    fn what_is_part_of_a_name_is_nearest() {
        let known = ["power8-s812l", "power7-755", "zen4", "xsim"];
        assert_eq!(nearest("power8", known.into_iter())[0], "power8-s812l");
        assert_eq!(nearest("Zen5", known.into_iter())[0], "zen4");
        assert_eq!(nearest("", known.into_iter()).len(), 3);
    }
}
