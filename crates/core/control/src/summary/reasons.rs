//! Reasons, counted by their pattern.

use std::collections::BTreeMap;

use super::MOST_REASONS;

/// Characters of a reason that are kept at most.
const LONGEST: usize = 400;

/// How often each pattern of reason was given.
#[derive(Debug, Clone, Default)]
pub(super) struct Reasons {
    pub patterns: BTreeMap<String, Pattern>,
    /// Decisions with patterns for which there was no room.
    pub others: u64,
    /// The last reason of all.
    pub last: String,
}

/// A pattern's count and most recent example.
#[derive(Debug, Clone, Default)]
pub(super) struct Pattern {
    pub count: u64,
    pub last: String,
}

impl Reasons {
    pub fn add(&mut self, reason: &str) {
        let reason = reason.char_indices().nth(LONGEST).map_or(reason, |(end, _)| &reason[..end]);
        reason.clone_into(&mut self.last);
        let pattern = pattern(reason);
        let room = self.patterns.len() < MOST_REASONS;
        match self.patterns.get_mut(&pattern) {
            Some(known) => {
                known.count += 1;
                reason.clone_into(&mut known.last);
            }
            None if room => {
                self.patterns.insert(pattern, Pattern { count: 1, last: reason.to_owned() });
            }
            None => self.others += 1,
        }
    }
}

/// The reason with `#` for each figure, and `#, …` for a list of figures. A digit inside a word
/// (`L1D`, `bzip2`, `rank-1`) is no figure.
pub(super) fn pattern(reason: &str) -> String {
    let mut pattern = String::with_capacity(reason.len());
    let mut rest = reason;
    let mut in_word = false;
    while let Some(next) = rest.chars().next() {
        if next.is_ascii_digit() && !in_word {
            let is_part = |c: char| c.is_ascii_digit() || c == '.' || c == 'e';
            let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            let figure = rest[..length].trim_end_matches(['.', 'e']);
            if pattern.ends_with("#, ") {
                pattern.push('…');
            } else if !pattern.ends_with("#, …, ") {
                pattern.push('#');
            } else {
                pattern.truncate(pattern.len() - ", ".len());
            }
            rest = &rest[figure.len()..];
        } else {
            pattern.push(next);
            let joins = next == '-' && in_word;
            in_word = next.is_alphanumeric() || next == '_' || joins;
            rest = &rest[next.len_utf8()..];
        }
    }
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_taken_out_of_a_pattern_and_names_are_not() {
        for (reason, wanted) in [
            ("left to the OS", "left to the OS"),
            (
                "serial phase: 0.98 ready threads (threshold 1.1)",
                "serial phase: # ready threads (threshold #)",
            ),
            (
                "L1D bandwidth 0.123 accesses/cycle; 1.5 on its core",
                "L1D bandwidth # accesses/cycle; # on its core",
            ),
            ("2 other of 'bzip2' on its core", "# other of 'bzip2' on its core"),
            ("least stp by form rank-1", "least stp by form rank-1"),
            (
                "predicted slowdowns 1.02, 1.10: throughput 1.9",
                "predicted slowdowns #, …: throughput #",
            ),
            ("predicted slowdowns 1.02, 1.1, 1.2, 2: x", "predicted slowdowns #, …: x"),
            ("it took 3.", "it took #."),
            ("−1.5e3 is 1e99", "−# is #"),
            ("its limit is 0-3", "its limit is #-#"),
        ] {
            assert_eq!(pattern(reason), wanted);
        }
    }

    #[test]
    fn long_reasons_are_cut_between_characters() {
        let mut reasons = Reasons::default();
        reasons.add(&"ä".repeat(10_000));
        assert_eq!(reasons.last.chars().count(), LONGEST);
    }
}
