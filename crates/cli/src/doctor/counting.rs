//! What this host can count, and why not more.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;

use anyhow::Context;
use serde::Serialize;
use symbiont_linux::perf::{Choice, abilities, processors, select, support};
use symbiont_machine::{Ability, Signal};

use super::text::table;
use super::words;

/// What can be counted.
#[derive(Debug, Serialize)]
pub struct CountingFinding {
    processors: Vec<String>,
    /// The catalogue that is used here.
    catalogue: String,
    /// Why it is not the processor's own.
    why: Option<String>,
    /// The hardware threads on which alone it counts; none: all.
    cpus: Option<String>,
    /// `kernel.perf_event_paranoid`.
    paranoid: Option<i32>,
    /// Does the NMI watchdog run?
    nmi_watchdog: bool,
    software_events: Ability,
    kernel_side: Ability,
    hardware_events: Ability,
    /// Signals that are derived from counts.
    pub signals: BTreeMap<Signal, Ability>,
    /// Events of the catalogue that cannot be counted here, and why.
    refused: BTreeMap<String, String>,
    pmus: Vec<String>,
}

/// Asks the kernel.
pub fn look() -> anyhow::Result<CountingFinding> {
    let support = support();
    let processors = processors(Path::new("/"), &support.pmus);
    let chosen = select(&support, &processors).context("an event catalogue is malformed")?;
    let choice = Choice::of(&chosen.catalogue, chosen.catalogue.groups(), &support.pmus);
    let refused = choice.refused(support.options());
    let able = |answer: &Result<(), symbiont_linux::perf::OpenError>| match answer {
        Ok(()) => Ability::Full,
        Err(error) => Ability::Absent(error.reason.to_string()),
    };
    let mut signals = abilities(&chosen.catalogue, &refused);
    if let Some(why) = &chosen.why {
        // The cause says more than that the other catalogue misses a formula; why there is no hardware event
        // is said once.
        let cause = match &support.hardware {
            Ok(()) => format!("catalogue {} is used {why}", chosen.catalogue.name()),
            Err(_) => "hardware events cannot be counted here".to_owned(),
        };
        for ability in signals.values_mut().filter(|ability| !ability.exists()) {
            *ability = Ability::Absent(cause.clone());
        }
    }
    Ok(CountingFinding {
        processors: processors.iter().map(ToString::to_string).collect(),
        catalogue: chosen.catalogue.name().to_owned(),
        why: chosen.why,
        cpus: choice.cpus,
        paranoid: support.paranoid,
        nmi_watchdog: support.watchdog,
        software_events: able(&support.software),
        kernel_side: able(&support.kernel_side),
        hardware_events: able(&support.hardware),
        signals,
        refused: refused.iter().map(|(event, why)| (event.to_string(), why.to_string())).collect(),
        pmus: support.pmus.into_keys().collect(),
    })
}

impl CountingFinding {
    /// For people.
    pub fn text(&self) -> String {
        let line = |title: &str, text: &dyn Display| vec![title.to_owned(), text.to_string()];
        let processor = match self.processors.is_empty() {
            true => "none that a catalogue knows".to_owned(),
            false => self.processors.join("; "),
        };
        let catalogue = match &self.why {
            Some(why) => format!("{}, {why}", self.catalogue),
            None => self.catalogue.clone(),
        };
        let watchdog = match self.nmi_watchdog {
            true => {
                "on: on most kernels it holds a counter of each hardware thread (set \
                     kernel.nmi_watchdog to 0 to have all)"
            }
            false => "off: it holds no counter",
        };
        let paranoid = self.paranoid.map_or("unknown".to_owned(), |level| level.to_string());
        let mut rows = vec![
            line("processor", &processor),
            line("catalogue", &catalogue),
            line("paranoid level", &paranoid),
            line("NMI watchdog", &watchdog),
            line("software events", &words(&self.software_events)),
            line("kernel's side", &words(&self.kernel_side)),
            line("hardware events", &words(&self.hardware_events)),
        ];
        if let Some(cpus) = &self.cpus {
            rows.push(line("counted on", &format!("hardware threads {cpus} only")));
        }
        let signals = self.signals.iter().map(|(signal, able)| (short(*signal), words(able)));
        for (names, words) in by_reason(signals) {
            rows.push(line("signals", &format!("{names}: {words}")));
        }
        let refused = self.refused.iter().map(|(event, why)| (event.clone(), why.clone()));
        for (names, why) in by_reason(refused) {
            rows.push(line("not counted", &format!("{names}: {why}")));
        }
        format!("Counting\n{}", table(rows.into_iter()))
    }
}

/// What has the same reason, together.
fn by_reason(pairs: impl Iterator<Item = (String, String)>) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    for (name, why) in pairs {
        match all.iter_mut().find(|(_, known)| *known == why) {
            Some((names, _)) => *names += &format!(", {name}"),
            None => all.push((name, why)),
        }
    }
    all
}

/// A signal's name for a narrow column.
fn short(signal: Signal) -> String {
    let name = signal.to_string();
    let inside = name.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
    inside.map(|variant| format!("Top-Down {variant}")).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_reasons_are_listed_once() {
        let pairs = [("a", "x"), ("b", "y"), ("c", "x")];
        let pairs = pairs.map(|(name, why)| (name.to_owned(), why.to_owned()));
        let listed = by_reason(pairs.into_iter());
        assert_eq!(listed, [("a, c".to_owned(), "x".to_owned()), ("b".to_owned(), "y".to_owned())]);
    }

    #[test]
    fn each_thing_that_is_missing_has_its_reason() {
        let found = look().unwrap();
        assert_eq!(found.signals.len(), Signal::ALL.len() - 1);
        let absent = found.signals.values().filter(|ability| !ability.exists());
        assert!(absent.clone().all(|ability| ability.why().is_some_and(|why| !why.is_empty())));
        assert_eq!(found.why.is_some(), matches!(found.catalogue.as_str(), "generic" | "software"));
        let text = found.text();
        for title in ["processor", "catalogue", "paranoid level", "Top-Down TopL", "CPI stacks"] {
            assert!(text.contains(title), "{title}: {text}");
        }
    }
}
