//! Names that are nearest to one that no list has, for messages.

/// The known names that a misspelt one probably means, nearest first.
pub(crate) fn nearest(
    asked: &str,
    known: impl IntoIterator<Item = &'static str>,
) -> Vec<&'static str> {
    let asked = asked.to_lowercase();
    let mut near: Vec<(usize, &'static str)> = known
        .into_iter()
        .map(|name| (strsim::levenshtein(&asked, name), name))
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
