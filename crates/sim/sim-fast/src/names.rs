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
            (if contained { 0 } else { strsim::levenshtein(&wanted, &lower) }, candidate)
        })
        .collect();
    ranked.sort();
    ranked.into_iter().take(3).map(|(_, name)| name.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_part_of_a_name_is_nearest() {
        let known = ["power8-s812l", "power7-755", "zen4", "xsim"];
        assert_eq!(nearest("power8", known.into_iter())[0], "power8-s812l");
        assert_eq!(nearest("Zen5", known.into_iter())[0], "zen4");
        assert_eq!(nearest("", known.into_iter()).len(), 3);
    }
}
