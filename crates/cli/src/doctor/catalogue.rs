//! `symbiont doctor --machine NAME`: an event catalogue for people.

use std::fmt::Write;
use std::path::Path;

use anyhow::Context;
use serde::Serialize;
use symbiont_counters::catalogue::{Catalogue, Counters, CpuRule, Encoding, Event, PmuType};
use symbiont_machine::Signal;
use symbiont_policy::policies;

use super::text::{range, table, wrapped};

/// A catalogue and what can be made of it.
#[derive(Debug, Serialize)]
pub struct CatalogueFinding {
    name: String,
    title: String,
    source: String,
    caveats: String,
    smt_threads: u32,
    smt_correction: String,
    processors: Vec<String>,
    counts: String,
    counters: Vec<u32>,
    watchdog: Option<String>,
    note: Option<String>,
    events: Vec<EventFinding>,
    groups: Vec<GroupFinding>,
    formulas: Vec<FormulaFinding>,
    sums: Vec<SumFinding>,
    categories: Vec<CategoriesFinding>,
    signals: Vec<SignalFinding>,
    policies: Vec<PolicyFinding>,
}

#[derive(Debug, Serialize)]
struct EventFinding {
    name: String,
    what: String,
    /// The word for the kernel in hexadecimal, the second one after a slash.
    encoding: String,
    fields: Vec<(String, u64)>,
    counters: String,
    in_kernel: bool,
    source: String,
}

#[derive(Debug, Serialize)]
struct GroupFinding {
    name: String,
    events: Vec<String>,
}

#[derive(Debug, Serialize)]
struct FormulaFinding {
    name: String,
    expression: String,
    unit: String,
    source: String,
    note: Option<String>,
}

#[derive(Debug, Serialize)]
struct SumFinding {
    name: String,
    parts: Vec<String>,
    total: Option<String>,
}

#[derive(Debug, Serialize)]
struct CategoriesFinding {
    name: String,
    members: Vec<String>,
    note: Option<String>,
}

/// What a signal takes, or why it cannot be had.
#[derive(Debug, Serialize)]
struct SignalFinding {
    signal: Signal,
    groups: Vec<String>,
    missing: Option<String>,
}

#[derive(Debug, Serialize)]
struct PolicyFinding {
    name: &'static str,
    /// Signals that it needs and that this machine does not report.
    missing: Vec<Signal>,
}

/// The catalogue of this name.
///
/// # Errors
/// When there is none; the nearest names are reported.
pub fn find(name: &str) -> anyhow::Result<Catalogue> {
    if let Some(found) = Catalogue::named(name) {
        return Ok(found?);
    }
    let all: Vec<&str> = Catalogue::builtin().iter().map(|(known, _)| *known).collect();
    let asked = name.to_lowercase();
    let mut near: Vec<(usize, &str)> = all
        .iter()
        .map(|known| (strsim::damerau_levenshtein(&asked, known), *known))
        .filter(|(distance, known)| *distance <= known.len() / 2 || known.starts_with(&asked))
        .collect();
    near.sort_unstable();
    let near: Vec<_> = near.into_iter().map(|(_, name)| name).take(3).collect();
    let hint = match near.is_empty() {
        true => String::new(),
        false => format!("did you mean '{}'? ", near.join("' or '")),
    };
    let simulated = match cfg!(feature = "research") {
        true => " (`symbiont machines` lists other names: of machines to simulate)",
        false => "",
    };
    anyhow::bail!(
        "no event catalogue is called '{name}'; {hint}there are: {}{simulated}",
        all.join(", ")
    )
}

/// A catalogue by its name or its file.
///
/// # Errors
/// When there is none, or it is malformed.
pub fn read_or_find(name: &str) -> anyhow::Result<Catalogue> {
    let meant_as_file = name.contains('/') || name.ends_with(".toml");
    if Catalogue::named(name).is_some() || !(meant_as_file || Path::new(name).is_file()) {
        return find(name);
    }
    let text = symbiont_safe_open::read_to_string(Path::new(name))
        .with_context(|| format!("cannot read the event catalogue {name}"))?;
    Ok(Catalogue::parse(name, &text)?)
}

impl CatalogueFinding {
    /// All about a catalogue.
    pub fn of(catalogue: &Catalogue) -> Self {
        let pmu = catalogue.pmu();
        let signals = Signal::ALL.into_iter().filter(|signal| signal.is_counted());
        let known = catalogue.signals();
        let missing = |needs: symbiont_machine::Signals| {
            needs.into_iter().filter(|s| s.is_counted() && !known.contains(s)).collect()
        };
        Self {
            name: catalogue.name().to_owned(),
            title: catalogue.title().to_owned(),
            source: catalogue.source().to_owned(),
            caveats: catalogue.caveats().to_owned(),
            smt_threads: catalogue.smt().threads,
            smt_correction: catalogue.smt().correction.clone(),
            processors: catalogue.rules().iter().map(processors).collect(),
            counts: counts(&pmu.kind),
            counters: pmu.counters.clone(),
            watchdog: pmu.watchdog.clone(),
            note: pmu.note.clone(),
            events: catalogue.events().iter().map(event).collect(),
            groups: catalogue
                .groups()
                .iter()
                .map(|group| GroupFinding {
                    name: group.name.clone(),
                    events: group.events.clone(),
                })
                .collect(),
            formulas: catalogue
                .formulas()
                .iter()
                .map(|formula| FormulaFinding {
                    name: formula.name.clone(),
                    expression: formula.text.clone(),
                    unit: formula.unit.to_string(),
                    source: formula.source.clone(),
                    note: formula.note.clone(),
                })
                .collect(),
            sums: catalogue
                .sums()
                .iter()
                .map(|sum| SumFinding {
                    name: sum.name.clone(),
                    parts: sum.parts.clone(),
                    total: sum.total.clone(),
                })
                .collect(),
            categories: catalogue
                .categories()
                .iter()
                .map(|list| CategoriesFinding {
                    name: list.name.clone(),
                    members: list.members.clone(),
                    note: list.note.clone(),
                })
                .collect(),
            signals: signals.map(|signal| signal_of(catalogue, signal)).collect(),
            policies: policies()
                .iter()
                .map(|entry| PolicyFinding {
                    name: entry.name,
                    missing: missing(entry.requirements().required),
                })
                .collect(),
        }
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut out = format!("{}: {}\n\n", self.name, self.title);
        let _ = writeln!(out, "{}\n", wrapped(&self.caveats, 2));
        let facts = [
            ("Source", self.source.clone()),
            ("Processors", self.processors.join("; ")),
            ("Threads", format!("{} of a core. {}", self.smt_threads, self.smt_correction)),
            ("Counters", self.counters_in_words()),
        ];
        for (title, text) in facts.iter().filter(|(_, text)| !text.is_empty()) {
            let _ = writeln!(out, "{title}\n{}", wrapped(text, 2));
        }
        self.events_and_groups(&mut out);
        self.derived(&mut out);
        let _ = writeln!(out, "\nSignals");
        out += &table(self.signals.iter().map(|finding| {
            let words = match &finding.missing {
                Some(why) => format!("no: {why}"),
                None => format!("yes, from {}", finding.groups.join(", ")),
            };
            vec![finding.signal.to_string(), words]
        }));
        let _ = writeln!(out, "\nPolicies");
        out += &table(self.policies.iter().map(|policy| {
            let missing: Vec<_> = policy.missing.iter().map(ToString::to_string).collect();
            let words = match missing.is_empty() {
                true => "can be fed".to_owned(),
                false => format!("cannot be fed: no {}", missing.join(", no ")),
            };
            vec![policy.name.to_owned(), words]
        }));
        out
    }

    fn counters_in_words(&self) -> String {
        let mut words = format!("{}. ", self.counts);
        if !self.counters.is_empty() {
            let _ = write!(words, "Programmable: {}. ", range(&self.counters));
        }
        if let Some(event) = &self.watchdog {
            let _ = write!(
                words,
                "The kernel's NMI watchdog counts {event} while kernel.nmi_watchdog is 1; every \
                 group leaves it a counter. "
            );
        }
        words + self.note.as_deref().unwrap_or_default()
    }

    fn events_and_groups(&self, out: &mut String) {
        let _ = writeln!(out, "\nEvents ({})", self.events.len());
        let row = |event: &EventFinding| {
            let kernel = if event.in_kernel { " (in the kernel)" } else { "" };
            let what = format!("{}{kernel}", event.what);
            vec![event.name.clone(), event.encoding.clone(), event.counters.clone(), what]
        };
        *out += &table(self.events.iter().map(row));
        let _ = writeln!(out, "\nGroups, each counted at one time ({})", self.groups.len());
        let row = |group: &GroupFinding| vec![group.name.clone(), group.events.join(", ")];
        *out += &table(self.groups.iter().map(row));
    }

    fn derived(&self, out: &mut String) {
        let _ = writeln!(out, "\nFormulas ({})", self.formulas.len());
        for formula in &self.formulas {
            let _ = writeln!(out, "  {} [{}]", formula.name, formula.unit);
            let _ = writeln!(out, "{}", wrapped(&format!("= {}", formula.expression), 6));
            let note = formula.note.as_ref().map(|note| format!(" {note}")).unwrap_or_default();
            let _ = writeln!(out, "{}", wrapped(&format!("{}.{note}", formula.source), 6));
        }
        if !self.sums.is_empty() {
            let _ = writeln!(out, "\nSums");
        }
        for sum in &self.sums {
            let total = sum.total.as_deref().unwrap_or("1");
            let _ =
                writeln!(out, "{}", wrapped(&format!("{total} = {}", sum.parts.join(" + ")), 2));
        }
        if !self.categories.is_empty() {
            let _ = writeln!(out, "\nCategories (Navarro et al., section 5)");
        }
        *out += &table(self.categories.iter().map(|list| {
            let note = list.note.as_ref().map(|note| format!(". {note}")).unwrap_or_default();
            vec![list.name.clone(), format!("{}{note}", list.members.join(", "))]
        }));
    }
}

fn processors(rule: &CpuRule) -> String {
    let hex = |numbers: &[u32]| {
        let words: Vec<_> = numbers.iter().map(|number| format!("{number:#x}")).collect();
        words.join(", ")
    };
    match rule {
        CpuRule::X86 { vendor, family, models, core_type } => {
            let models: Vec<_> = models
                .iter()
                .map(|&(low, high)| match low == high {
                    true => format!("{low:#x}"),
                    false => format!("{low:#x} to {high:#x}"),
                })
                .collect();
            let kind = core_type.map(|kind| format!(", cores of type {kind:#x}"));
            let models = match models.is_empty() {
                true => String::new(),
                false => format!(" models {}", models.join(", ")),
            };
            format!("{vendor} family {family}{models}{}", kind.unwrap_or_default())
        }
        CpuRule::Power { versions } => format!("PVR version {}", hex(versions)),
        CpuRule::Arm { implementer, parts, revisions } => {
            let revision = |packed: u32| format!("r{}p{}", packed >> 4, packed & 0xf);
            let revisions = match *revisions {
                None => String::new(),
                Some((first, 0xff)) => format!(" from {} on", revision(first)),
                Some((first, last)) => format!(" {} to {}", revision(first), revision(last)),
            };
            format!("MIDR implementer {implementer:#x} part {}{revisions}", hex(parts))
        }
    }
}

fn counts(kind: &PmuType) -> String {
    match kind {
        PmuType::Raw => "The core's own events".to_owned(),
        PmuType::Hardware => "The kernel's generic hardware events".to_owned(),
        PmuType::Software => "The kernel counts".to_owned(),
        PmuType::Device(name) => format!("The PMU {name}"),
    }
}

fn event(event: &Event) -> EventFinding {
    let Encoding { config, config1 } = event.encoding;
    let second = if config1 == 0 { String::new() } else { format!("/{config1:#x}") };
    EventFinding {
        name: event.name.clone(),
        what: event.what.clone(),
        encoding: format!("{config:#x}{second}"),
        fields: event.fields.clone(),
        counters: match &event.counters {
            Counters::Any => "any".to_owned(),
            Counters::Only(list) => range(list),
            Counters::Fixed(number) => format!("fixed {number}"),
            Counters::Kernel => "kernel".to_owned(),
        },
        in_kernel: event.in_kernel,
        source: event.source.clone(),
    }
}

fn signal_of(catalogue: &Catalogue, signal: Signal) -> SignalFinding {
    let groups = catalogue
        .formulas_for(signal)
        .and_then(|formulas| catalogue.groups_for(formulas))
        .map(|groups| groups.into_iter().map(|group| group.name.clone()).collect());
    match groups {
        Ok(groups) => SignalFinding { signal, groups, missing: None },
        Err(why) => SignalFinding { signal, groups: Vec::new(), missing: Some(why.to_string()) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_is_said_to_be_no_catalogue_and_the_other_list_is_named() {
        let why = find("xeon-e5-2620v4").unwrap_err().to_string();
        assert!(why.starts_with("no event catalogue is called 'xeon-e5-2620v4'; "), "{why}");
        assert_eq!(why.contains("`symbiont machines`"), cfg!(feature = "research"), "{why}");
    }

    #[test]
    fn every_machine_can_be_shown() {
        for (name, _) in Catalogue::builtin() {
            let finding = CatalogueFinding::of(&find(name).unwrap());
            let text = finding.text();
            for event in &finding.events {
                assert!(text.contains(&event.name), "{name}: {}", event.name);
            }
            for formula in &finding.formulas {
                assert!(text.contains(&format!("{} [{}]", formula.name, formula.unit)), "{name}");
            }
            let longest = text.lines().map(|line| line.chars().count()).max();
            assert!(longest <= Some(160), "{name}: {longest:?}");
            assert!(serde_json::to_string(&finding).is_ok());
        }
    }

    #[test]
    fn signals_say_what_they_take_or_what_is_missing() {
        let text = CatalogueFinding::of(&find("power8").unwrap()).text();
        assert!(text.contains("CPI stacks"), "{text}");
        assert!(text.contains("yes, from stack, stack_memory"), "{text}");
        assert!(text.contains("no: this machine has no formula 'TopL'"), "{text}");
        assert!(text.contains("0x600f4") && text.contains("PVR version 0x4b"), "{text}");
    }

    #[test]
    fn an_unknown_machine_is_answered_with_the_nearest() {
        let said = |name| find(name).unwrap_err().to_string();
        assert!(
            said("zen1").contains("did you mean 'zen2' or 'zen3' or 'zen4'?"),
            "{}",
            said("zen1")
        );
        assert!(said("skylake").contains("did you mean 'skylake-sp'"), "{}", said("skylake"));
        assert!(said("Power8x").contains("'power8'"));
        let far = said("quantum-computer");
        assert!(
            !far.contains("did you mean") && far.contains("there are: power7, power8"),
            "{far}"
        );
    }
}
