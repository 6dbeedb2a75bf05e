//! What a program that is to answer at once waits for, in words.

use symbiont_wire::{Intruder, Waits};

use crate::top::clean::clean;

/// One line.
pub fn waits_words(waits: &Waits) -> String {
    let Waits { share, over_s, cpus, by } = waits;
    let names: Vec<String> =
        by.iter().map(|Intruder { name, s }| format!("{} {s:.2} s", clean(name))).collect();
    let by = match names.is_empty() {
        true => "other threads use".to_owned(),
        false => format!("{} also used", names.join(", ")),
    };
    format!(
        "latency not met: {by} CPU {cpus}; in the last {over_s:.1} s it waited for {:.0} % of the time that it was ready",
        share * 100.0
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_waits_for_is_said() {
        let by = vec![Intruder { name: "stress\u{1b}".to_owned(), s: 0.9 }];
        let waits = Waits { share: 0.9, over_s: 1.04, cpus: "0".to_owned(), by };
        assert_eq!(
            waits_words(&waits),
            "latency not met: stress? 0.90 s also used CPU 0; in the last 1.0 s it waited for 90 % of the time \
             that it was ready"
        );
        let waits = Waits { by: Vec::new(), ..waits };
        assert!(waits_words(&waits).starts_with("latency not met: other threads use CPU 0; "));
    }
}
