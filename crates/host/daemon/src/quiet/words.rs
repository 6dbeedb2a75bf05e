//! How far a program that is measured was alone, in words for people and logs.

use symbiont_wire::{Intruder, Quiet};

/// How far a program that is measured was alone, in a line.
#[must_use]
pub fn quiet_words(quiet: &Quiet) -> String {
    const UNKNOWN: &str = "alone: not known whether other threads ran on its cores";
    /// Names that fit into a line.
    const MOST: usize = 4;
    let Quiet { watched_s, unwatched_s, others_s, stolen_s, by, trouble } = quiet;
    if let Some(trouble) = trouble {
        return format!("{UNKNOWN}: {trouble}");
    }
    if *watched_s == 0.0 {
        return format!(
            "{UNKNOWN}: that takes a second in which its threads stay the same and in place, and there was none in its \
             {unwatched_s:.1} s"
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quiet_and_disturbed_programs_are_distinguished() {
        let quiet = Quiet { watched_s: 12.04, ..Quiet::default() };
        assert_eq!(
            quiet_words(&quiet),
            "alone: verified quiet: no other thread ran on its cores in 12.0 s"
        );
        let by = vec![
            Intruder { name: "sh".to_owned(), s: 0.3 },
            Intruder { name: "kworker/1:2".to_owned(), s: 0.04 },
        ];
        let disturbed =
            Quiet { others_s: 0.345, by, unwatched_s: 0.4, stolen_s: 0.02, ..quiet.clone() };
        assert_eq!(
            quiet_words(&disturbed),
            "alone: disturbed: other threads ran for 0.34 s on its cores (sh 0.30 s, kworker/1:2 \
             0.04 s) in 12.0 s; a hypervisor withheld 0.02 s; 0.4 s not watched: its threads \
             changed or were not placed"
        );
        let brief = Quiet { watched_s: 0.0, unwatched_s: 0.5, ..Quiet::default() };
        assert!(
            quiet_words(&brief).ends_with("there was none in its 0.5 s"),
            "{}",
            quiet_words(&brief)
        );
        let blind = Quiet { trouble: Some("no /proc".to_owned()), ..quiet };
        assert_eq!(
            quiet_words(&blind),
            "alone: not known whether other threads ran on its cores: no /proc"
        );
    }
}
