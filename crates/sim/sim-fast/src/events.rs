//! From what a thread did to what its event counters read.
//!
//! # Approach
//! Each catalogue's events are a table of the vendor's names and sums over [`Activity`], so that the very
//! formulas that are used on the real machine are used here. What the simulated machine does not report has
//! no row: the event is refused, never zero. A row that reads 0 counts something that never happens on the
//! simulated machine (machine clears, microcode).
//!
//! # Properties
//! - All events of the catalogues that machines name are known or listed as unreported
//!   (`every_event_is_reported_or_known_to_be_unreported`).
//! - The CPI stack that a catalogue's formulas derive sums to the CPI, and Top-Down to 1
//!   (`stacks_derived_from_events_sum_to_the_whole`).

mod amd;
mod intel;
mod power;
mod simple;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use symbiont_counters::catalogue::{Catalogue, CatalogueError};
use symbiont_machine::{CountedGroup, Counting, Signals};

use crate::activity::Activity;

/// How precisely an event is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Precision {
    /// By a counter of its own: cycles and instructions.
    Exactly,
    /// As one cause of several, which leave a residue.
    AsCause,
    /// As a plain count.
    Plainly,
}

/// An event: the vendor's name, how precisely, what it counts.
pub(crate) type Row = (&'static str, Precision, fn(&Activity) -> f64);

/// The table of a catalogue.
fn table(catalogue: &str) -> &'static [Row] {
    match catalogue {
        "power8" => power::POWER8,
        "power7" => power::POWER7,
        "bulldozer" => amd::BULLDOZER,
        "zen4" => amd::ZEN4,
        "broadwell" => intel::BROADWELL,
        "sapphire-rapids" | "alder-lake-p" => intel::GOLDEN_COVE,
        "alder-lake-e" => intel::GRACEMONT,
        "netburst" | "xsim" => simple::SIMPLE,
        _ => &[],
    }
}

/// Catalogues of machines that `counters` has none for: name and text.
const OWN: [(&str, &str); 2] = [
    ("netburst", include_str!("../catalogues/netburst.toml")),
    ("xsim", include_str!("../catalogues/xsim.toml")),
];

/// The text of the catalogue of this name; none if there is no such.
pub(crate) fn catalogue_text(name: &str) -> Option<&'static str> {
    let known = Catalogue::builtin().iter().chain(&OWN);
    known.into_iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// What is counted, and how each count is made.
#[derive(Debug, Clone)]
pub(crate) struct Reader {
    counting: Arc<Counting>,
    rows: Vec<Vec<Row>>,
    sizes: Vec<usize>,
}

impl Reader {
    /// Counts nothing.
    pub(crate) fn idle() -> Self {
        Self { counting: Arc::default(), rows: Vec::new(), sizes: Vec::new() }
    }

    /// Counts what some signals need, as far as the catalogue has it.
    ///
    /// # Errors
    /// When the catalogue cannot be read, which the tests rule out.
    pub(crate) fn new(name: &str, signals: &Signals) -> Result<Self, CatalogueError> {
        let text = catalogue_text(name).unwrap_or_default();
        let catalogue = Catalogue::parse(&format!("{name}.toml"), text)?;
        let wanted: Signals = signals.intersection(&catalogue.signals()).copied().collect();
        let formulas = wanted.iter().filter_map(|signal| catalogue.formulas_for(*signal).ok());
        let groups = catalogue.groups_for(formulas.flatten()).unwrap_or_default();
        let rows = table(name);
        let mut counting = Counting {
            catalogue: name.to_owned(),
            text: text.to_owned(),
            signals: wanted.clone(),
            groups: Vec::new(),
            refused: BTreeMap::new(),
        };
        let mut counted = Vec::new();
        for group in groups {
            let (mut names, mut members) = (Vec::new(), Vec::new());
            for event in &group.events {
                match rows.iter().find(|(known, _, _)| known == event) {
                    Some(row) => {
                        names.push(Arc::from(event.as_str()));
                        members.push(*row);
                    }
                    None => {
                        let why = "the simulated machine does not report it";
                        counting.refused.insert(event.as_str().into(), why.into());
                    }
                }
            }
            counting.groups.push(CountedGroup { name: group.name.as_str().into(), events: names });
            counted.push(members);
        }
        let sizes = counted.iter().map(Vec::len).collect();
        Ok(Self { counting: Arc::new(counting), rows: counted, sizes })
    }

    /// What travels with each sample; none if nothing is counted.
    pub(crate) fn counting(&self) -> Option<Arc<Counting>> {
        (!self.rows.is_empty()).then(|| Arc::clone(&self.counting))
    }

    /// Events of each group.
    pub(crate) fn group_sizes(&self) -> &[usize] {
        &self.sizes
    }

    /// What an event of a group counts in a stretch of execution, and how it
    /// is counted.
    pub(crate) fn count(
        &self,
        group: usize,
        event: usize,
        activity: &Activity,
    ) -> (f64, Precision) {
        match self.rows.get(group).and_then(|rows| rows.get(event)) {
            Some((_, precision, count)) => (count(activity), *precision),
            None => (0.0, Precision::Exactly),
        }
    }
}
