//! How far a program that is measured was alone, and what one that is to answer at once waits for, in words.

use symbiont_wire::{Intruder, Quiet, Waits};

use crate::top::clean::clean;

/// One line.
pub fn words(quiet: &Quiet) -> String {
    /// Names that fit into a line.
    const MOST: usize = 4;
    let Quiet { watched_s, unwatched_s, others_s, stolen_s, by, trouble } = quiet;
    if let Some(trouble) = trouble {
        return format!("alone: not verified: {trouble}");
    }
    if *watched_s == 0.0 {
        return format!(
            "alone: not verified: it was there for {unwatched_s:.1} s, and its cores are watched only while its \
             threads stay the same and in place for a second"
        );
    }
    let mut line = match *others_s > 0.0 {
        true => format!("alone: disturbed: other threads ran for {others_s:.2} s on its cores"),
        false => "alone: verified quiet: no other thread ran on its cores".to_owned(),
    };
    let names: Vec<String> =
        by.iter().take(MOST).map(|Intruder { name, s }| format!("{name} {s:.2} s")).collect();
    if !names.is_empty() {
        line += &format!(" ({}{})", names.join(", "), if by.len() > MOST { ", …" } else { "" });
    }
    line += &format!(" in {watched_s:.1} s");
    if *stolen_s >= 0.01 {
        line += &format!("; a hypervisor withheld {stolen_s:.2} s");
    }
    if *unwatched_s >= 0.1 {
        line +=
            &format!("; {unwatched_s:.1} s not watched: its threads changed or were not placed");
    }
    line
}

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

    #[test]
    fn quiet_and_disturbed_programs_are_distinguished() {
        let quiet = Quiet { watched_s: 12.04, ..Quiet::default() };
        assert_eq!(
            words(&quiet),
            "alone: verified quiet: no other thread ran on its cores in 12.0 s"
        );
        let by = vec![
            Intruder { name: "sh".to_owned(), s: 0.3 },
            Intruder { name: "kworker/1:2".to_owned(), s: 0.04 },
        ];
        let disturbed =
            Quiet { others_s: 0.345, by, unwatched_s: 0.4, stolen_s: 0.02, ..quiet.clone() };
        assert_eq!(
            words(&disturbed),
            "alone: disturbed: other threads ran for 0.34 s on its cores (sh 0.30 s, kworker/1:2 \
             0.04 s) in 12.0 s; a hypervisor withheld 0.02 s; 0.4 s not watched: its threads \
             changed or were not placed"
        );
        let brief = Quiet { watched_s: 0.0, unwatched_s: 0.5, ..Quiet::default() };
        assert!(words(&brief).starts_with("alone: not verified: it was there for 0.5 s"));
        let blind = Quiet { trouble: Some("no /proc".to_owned()), ..quiet };
        assert_eq!(words(&blind), "alone: not verified: no /proc");
    }
}
