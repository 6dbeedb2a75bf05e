//! Event catalogues: what each machine can count, and what that means.
//!
//! # Problem
//! Every microarchitecture counts different events under different names, on
//! counters with different restrictions. One binary should know them all, and
//! a reader should be able to check each number against its source.
//!
//! # Approach
//! One TOML text per microarchitecture (`catalogues/*.toml`): how the
//! processor is recognised, its counters, its events with their encodings, the
//! groups of events that fit the counters together, and formulas over events
//! with unit and source. Formulas of the same idea have the same name in all
//! catalogues (`cpi`, `frontend_bound`, `fpu_usage`), so that other rooms ask
//! for ideas, never for events. Nothing here reads a counter.
//!
//! # Terms and units
//! *Event*: what a counter counts. *Encoding*: the words of `perf_event_attr`
//! that select it. *Group*: events counted at the same time. *Formula*: a
//! derived value. *Sum*: formulas that add up to another one or to 1.
//! *Categories*: formulas of which the largest names what bounds a thread.
//! *Absent*: not measured, with the reason; never zero.
//!
//! # Properties
//! - All catalogues of this crate can be read (`all_catalogues_can_be_read`)
//!   and no processor is claimed by two (`each_processor_has_one_catalogue`);
//!   an unknown one gets the generic events
//!   (`an_unknown_processor_gets_the_generic_events`).
//! - Any text is read or refused without panic, and a refusal names file, line,
//!   key and reason (`any_text_is_read_or_refused_without_panic`,
//!   `refusals_name_file_line_key_and_reason`).
//! - The events of a group fit the counters at the same time
//!   (`groups_that_do_not_fit_the_counters_are_refused`), also with the
//!   kernel's watchdog (`groups_leave_the_watchdog_its_counter`).
//! - No count is divided by one of another group (`counts_of_different_groups_are_never_divided`).
//! - A formula is absent when an event that it needs is, or when its divisor
//!   is zero (`what_was_not_counted_makes_a_formula_absent`).
//! - The groups that are chosen for some formulas give each of them its counts
//!   (`the_chosen_groups_give_every_formula_its_counts`).
//! - The parts of a sum add up (`the_parts_of_every_sum_add_up`), categories
//!   of consistent counts to 1 (`the_categories_of_consistent_counts_sum_to_one`).

mod builtin;
mod counters;
mod cpu;
mod document;
mod encoding;
mod error;
mod expression;
mod formula;
mod plan;
mod read;
pub(crate) mod signal;
#[cfg(test)]
mod tests;
mod unit;

pub use counters::Counters;
pub use cpu::{CpuIdentity, CpuRule};
pub use encoding::{Encoding, Field, PmuType};
pub use error::CatalogueError;
pub(crate) use formula::Placed;
pub use formula::{Absent, Counts, Formula, Value};
pub use unit::{Quantity, Unit, UnknownUnit};

/// Everything that is known about counting on one microarchitecture.
#[derive(Debug, Clone)]
pub struct Catalogue {
    text: String,
    name: String,
    title: String,
    source: String,
    caveats: String,
    smt: Smt,
    slots: Option<u32>,
    units: Option<Units>,
    rules: Vec<CpuRule>,
    pmu: Pmu,
    oracles: Oracles,
    events: Vec<Event>,
    groups: Vec<Group>,
    formulas: Vec<Formula>,
    sums: Vec<Sum>,
    categories: Vec<Categories>,
}

/// Simultaneous multithreading and what it does to the counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Smt {
    /// Hardware threads of a core, at most.
    pub threads: u32,
    /// What counts mean while several threads share the core, and how the
    /// formulas correct for it.
    pub correction: String,
}

/// Execution units of a core, which its hardware threads share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Units {
    /// Pipes that execute floating-point operations; at least one.
    pub floating_point: u32,
    /// Where the number comes from.
    pub source: String,
}

/// The counters of a hardware thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pmu {
    /// The unit that counts.
    pub kind: PmuType,
    /// Numbers of the programmable counters, as the vendor numbers them.
    pub counters: Vec<u32>,
    /// The event that the kernel's NMI watchdog counts on every hardware thread
    /// while `kernel.nmi_watchdog` is 1. A group that leaves it no counter
    /// would never be counted, and nothing would say so; hence all groups do.
    pub watchdog: Option<String>,
    /// What the kernel or the hardware takes away from the counters.
    pub note: Option<String>,
}

/// Names under which independent tables know the machine; they check the
/// encodings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Oracles {
    /// Folder of perf's tables below `tools/perf/pmu-events/arch`.
    pub perf: Option<String>,
    /// `Unit` of the events in that folder, on hybrid processors.
    pub perf_unit: Option<String>,
    /// Folders of other processors that the catalogue is for; what they list is the same.
    pub also: Vec<String>,
    /// Name of the PMU in libpfm4.
    pub libpfm: Option<String>,
}

/// Something that can be counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The vendor's name.
    pub name: String,
    /// What it counts, in a line.
    pub what: String,
    /// The fields of the vendor's manual, in the order of the PMU's format.
    pub fields: Vec<(String, u64)>,
    /// The words for the kernel.
    pub encoding: Encoding,
    /// The counters that can count it.
    pub counters: Counters,
    /// It happens in the kernel: where counting in kernel mode is refused, it
    /// reads 0 and must be taken as absent.
    pub in_kernel: bool,
    /// Where encoding and meaning come from.
    pub source: String,
    /// How the oracles know it.
    pub oracle: EventOracle,
}

/// How independent tables know an event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventOracle {
    /// Its name in perf's tables, if it is another.
    pub perf: Option<String>,
    /// Its name in libpfm4, if it is another.
    pub libpfm: Option<String>,
    /// Why perf's tables give another encoding, and by which source they err.
    pub perf_differs: Option<String>,
    /// Why libpfm4 gives another encoding, and by which source it errs.
    pub libpfm_differs: Option<String>,
}

/// Events that are counted at the same time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// Names of its events, the leader first.
    pub events: Vec<String>,
    /// The same by place in the catalogue.
    members: Vec<usize>,
}

/// Formulas that add up: CPI stacks, Top-Down levels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sum {
    /// Its name.
    pub name: String,
    /// Names of the formulas that are added.
    pub parts: Vec<String>,
    /// Name of the formula that they add up to; none: they add up to 1.
    pub total: Option<String>,
}

/// Formulas of which the largest names what bounds a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Categories {
    /// Name of the variant (Navarro et al., section 5): `TopL`, `TopB2L`,
    /// `TopB2M3L`, `All3L`.
    pub name: String,
    /// Names of the formulas, all fractions.
    pub members: Vec<String>,
    /// How they differ from the published variant on this machine.
    pub note: Option<String>,
}

impl Catalogue {
    /// Reads a catalogue; `name` stands for the file in errors.
    ///
    /// # Errors
    /// The first thing that is wrong with the text, with its line and key.
    pub fn parse(name: &str, text: &str) -> Result<Self, CatalogueError> {
        read::catalogue(name, text)
    }

    /// The catalogues that this crate carries, by name.
    #[must_use]
    pub fn builtin() -> &'static [(&'static str, &'static str)] {
        builtin::TEXTS
    }

    /// Reads the catalogue of this name that the crate carries.
    #[must_use]
    pub fn named(name: &str) -> Option<Result<Self, CatalogueError>> {
        let (file, text) = builtin::TEXTS.iter().find(|(known, _)| *known == name)?;
        Some(Self::parse(&format!("{file}.toml"), text))
    }

    /// The catalogue that the crate carries for a processor; `generic`, the
    /// kernel's own events, if none is made for it.
    ///
    /// # Errors
    /// When a carried catalogue is malformed, which the tests rule out.
    pub fn of(cpu: &CpuIdentity) -> Result<Self, CatalogueError> {
        for (name, text) in builtin::TEXTS {
            let catalogue = Self::parse(&format!("{name}.toml"), text)?;
            if catalogue.detect(cpu) {
                return Ok(catalogue);
            }
        }
        Self::parse("generic.toml", builtin::GENERIC)
    }

    /// Is it made for this processor?
    #[must_use]
    pub fn detect(&self, cpu: &CpuIdentity) -> bool {
        self.rules.iter().any(|rule| rule.matches(cpu))
    }

    /// The text that it was read from.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Short name, as in the file's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What people call the machine.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Where encodings come from, unless an event says otherwise.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// What to know before trusting the numbers.
    #[must_use]
    pub fn caveats(&self) -> &str {
        &self.caveats
    }

    /// Multithreading and its corrections.
    #[must_use]
    pub fn smt(&self) -> &Smt {
        &self.smt
    }

    /// Issue or dispatch slots of a core in each cycle, where the formulas
    /// use them.
    #[must_use]
    pub fn slots(&self) -> Option<u32> {
        self.slots
    }

    /// Execution units of a core, where their numbers are known.
    #[must_use]
    pub fn units(&self) -> Option<&Units> {
        self.units.as_ref()
    }

    /// The processors that it is for; none: chosen by name only.
    #[must_use]
    pub fn rules(&self) -> &[CpuRule] {
        &self.rules
    }

    /// The counters.
    #[must_use]
    pub fn pmu(&self) -> &Pmu {
        &self.pmu
    }

    /// Names in the tables that check it.
    #[must_use]
    pub fn oracles(&self) -> &Oracles {
        &self.oracles
    }

    /// All events, in the order of the file.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// All groups, in the order of the file.
    #[must_use]
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// All formulas, in the order of the file: each after those it uses.
    #[must_use]
    pub fn formulas(&self) -> &[Formula] {
        &self.formulas
    }

    /// Formulas that add up.
    #[must_use]
    pub fn sums(&self) -> &[Sum] {
        &self.sums
    }

    /// Lists of categories.
    #[must_use]
    pub fn categories(&self) -> &[Categories] {
        &self.categories
    }

    /// The event of this name.
    #[must_use]
    pub fn event(&self, name: &str) -> Option<&Event> {
        self.events.iter().find(|event| event.name == name)
    }

    /// The formula of this name.
    #[must_use]
    pub fn formula(&self, name: &str) -> Option<&Formula> {
        self.formulas.iter().find(|formula| formula.name == name)
    }

    /// The events that a formula needs, through its references too.
    pub fn events_of<'a>(&'a self, formula: &'a Formula) -> impl Iterator<Item = &'a Event> {
        formula.events.iter().filter_map(|&event| self.events.get(event))
    }

    /// The value of a formula over counts.
    ///
    /// # Errors
    /// Why it has no value: unknown, an event not counted, a divisor of zero.
    pub fn evaluate(&self, formula: &str, counts: &dyn Counts) -> Result<Value, Absent> {
        let found = self.formula(formula).ok_or_else(|| Absent::NoFormula(formula.to_owned()))?;
        let (events, groups) = (&self.events[..], &self.groups[..]);
        self.context().value(found, &formula::Named { events, groups, counts })
    }

    /// The value of a formula over counts by places in this catalogue.
    pub(crate) fn compute(&self, formula: &Formula, counts: &dyn Placed) -> Result<Value, Absent> {
        self.context().value(formula, counts)
    }

    fn context(&self) -> formula::Context<'_> {
        formula::Context { events: &self.events, groups: &self.groups, formulas: &self.formulas }
    }
}
