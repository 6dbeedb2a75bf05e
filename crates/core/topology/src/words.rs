//! Counted nouns, as people read them.

use std::fmt::Display;

use crate::CpuSet;

/// So many of something: `1 core`, `2 cores`, `3 processes`.
#[must_use]
pub fn counted(count: impl Display, noun: &str) -> String {
    let count = count.to_string();
    match (count.as_str(), noun.strip_suffix("quantum")) {
        ("1", _) => format!("1 {noun}"),
        (_, Some(before)) => format!("{count} {before}quanta"),
        _ if noun.ends_with(['s', 'x']) => format!("{count} {noun}es"),
        _ => format!("{count} {noun}s"),
    }
}

impl CpuSet {
    /// With the noun: `CPU 3`, `CPUs 0-3`.
    #[must_use]
    pub fn named(&self) -> String {
        let noun = if self.len() == 1 { "CPU" } else { "CPUs" };
        format!("{noun} {self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_something_is_singular() {
        let of = |noun| [0, 1, 2].map(|count| counted(count, noun));
        assert_eq!(of("thread"), ["0 threads", "1 thread", "2 threads"]);
        assert_eq!(of("process"), ["0 processes", "1 process", "2 processes"]);
        assert_eq!(of("mix"), ["0 mixes", "1 mix", "2 mixes"]);
        assert_eq!(
            of("thread quantum"),
            ["0 thread quanta", "1 thread quantum", "2 thread quanta"]
        );
        let named = |list: &str| list.parse::<CpuSet>().unwrap().named();
        assert_eq!([named("7"), named("0-1"), named("3,5")], ["CPU 7", "CPUs 0-1", "CPUs 3,5"]);
    }
}
