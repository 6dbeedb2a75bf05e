//! What a program waits for, in words.

use symbiont_daemon::{is_mostly_throttled, throttled_words};
use symbiont_wire::{Intruder, ProgramStatus, Throttled, Waits};

use crate::top::clean::clean;

/// A line on a program that is to answer at once and waits, or that a quota stops; none where nothing is to be said.
pub fn waiting_line(program: &ProgramStatus) -> Option<String> {
    match (&program.waits, &program.throttled) {
        (Some(_), Some(quota)) if is_mostly_throttled(quota) => {
            Some(format!("latency not met: {}", quota_words(quota)))
        }
        (Some(waits), Some(quota)) => {
            Some(format!("{}; {}", waits_words(waits), quota_words(quota)))
        }
        (Some(waits), None) => Some(waits_words(waits)),
        (None, Some(quota)) => Some(format!("throttled: {}", quota_words(quota))),
        (None, None) => None,
    }
}

/// The quota that stops a program.
pub fn quota_words(quota: &Throttled) -> String {
    clean(&throttled_words(quota))
}

fn waits_words(waits: &Waits) -> String {
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
        let quota =
            |throttled| Throttled { cpus: 0.5, periods: 10, throttled, ..Throttled::default() };
        let program =
            |waits, throttled| ProgramStatus { waits, throttled, ..ProgramStatus::default() };
        let line = |waits, throttled| waiting_line(&program(waits, throttled)).unwrap();
        let own = line(Some(waits.clone()), Some(quota(9)));
        assert!(own.starts_with("latency not met: its quota of 0.5 CPUs"), "{own}");
        let both = line(Some(waits), Some(quota(1)));
        assert!(both.contains("other threads use") && both.contains("; its quota of"), "{both}");
        assert!(line(None, Some(quota(1))).starts_with("throttled: its quota"));
        assert_eq!(waiting_line(&program(None, None)), None);
    }
}
