//! Turns a catalogue's groups into what the kernel is asked to count.

use std::collections::BTreeMap;
use std::sync::Arc;

use symbiont_counters::catalogue::{Catalogue, Event, Group, PmuType};

use super::error::Reason;
use super::pmu::Pmu;
use super::spec::{Modes, Spec};

/// The PMU of a hybrid processor's cores has another name where all cores are
/// of that kind.
const HYBRID: [&str; 2] = ["cpu_core", "cpu_atom"];

/// What to ask of the kernel for some groups of a catalogue.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Choice {
    /// For each group, in order, its events that can be asked for.
    pub groups: Vec<Vec<Spec>>,
    /// Events that cannot, each once, and why.
    pub missing: BTreeMap<Arc<str>, Reason>,
    /// The hardware threads on which alone they are counted, as the kernel
    /// lists them; none: on all.
    pub cpus: Option<String>,
}

impl Choice {
    /// Finds the catalogue's PMU among those of the kernel and leaves out what
    /// the chip does not have.
    #[must_use]
    pub fn of<'a>(
        catalogue: &Catalogue,
        groups: impl IntoIterator<Item = &'a Group>,
        pmus: &BTreeMap<String, Pmu>,
    ) -> Self {
        let home = home(&catalogue.pmu().kind, pmus);
        let cpus = home.as_ref().ok().and_then(|home| home.cpus.clone());
        let mut choice = Self { cpus, ..Self::default() };
        for group in groups {
            let mut specs = Vec::with_capacity(group.events.len());
            for event in group.events.iter().filter_map(|name| catalogue.event(name)) {
                match home.as_ref().map_err(|reason| *reason).and_then(|home| home.spec(event)) {
                    Ok(spec) => specs.push(spec),
                    Err(reason) => {
                        choice.missing.insert(event.name.as_str().into(), reason);
                    }
                }
            }
            choice.groups.push(specs);
        }
        choice
    }
}

/// The unit that counts a catalogue's events.
struct Home {
    kind: u32,
    /// The hardware threads on which it counts, if not on all.
    cpus: Option<String>,
    /// The architectural events that the chip has, where the kernel lists them.
    implemented: Vec<u64>,
}

fn home(kind: &PmuType, pmus: &BTreeMap<String, Pmu>) -> Result<Home, Reason> {
    let (number, pmu) = match kind {
        PmuType::Device(name) => {
            let alone = || pmus.get("cpu").filter(|_| HYBRID.contains(&name.as_str()));
            let pmu = pmus.get(name).or_else(alone).ok_or(Reason::NoPmu)?;
            (pmu.kind, Some(pmu))
        }
        fixed => {
            let number = fixed.number().ok_or(Reason::NoPmu)?;
            let arm = || pmus.iter().find(|(name, _)| name.starts_with("armv8_"));
            let core = || pmus.values().find(|pmu| pmu.kind == number);
            let raw = *fixed == PmuType::Raw;
            (number, core().or_else(|| arm().map(|(_, pmu)| pmu).filter(|_| raw)))
        }
    };
    let arm = pmu.filter(|_| pmus.keys().any(|name| name.starts_with("armv8_")));
    Ok(Home {
        kind: number,
        cpus: pmu.filter(|pmu| pmu.some_cpus).and_then(|pmu| pmu.cpus.clone()),
        implemented: arm.map(|pmu| pmu.codes().collect()).unwrap_or_default(),
    })
}

impl Home {
    fn spec(&self, event: &Event) -> Result<Spec, Reason> {
        let config = event.encoding.config;
        // The kernel lists the events 0 to 0x3f and 0x4000 to 0x403f that the
        // chip says it has (PMCEID0_EL0, PMCEID1_EL0); others are not listed anywhere.
        let is_listed =
            matches!(config, 0..=0x3f | 0x4000..=0x403f) && !self.implemented.is_empty();
        if is_listed && !self.implemented.contains(&config) {
            return Err(Reason::NotImplemented);
        }
        let modes = if event.in_kernel { Modes::Kernel } else { Modes::UserAndKernel };
        let config1 = event.encoding.config1;
        let spec = Spec::new(&event.name, self.kind, config).in_modes(modes);
        Ok(Spec { config1, some_cpus: self.cpus.is_some(), ..spec })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pmu(kind: u32, some_cpus: bool, events: &[&str]) -> Pmu {
        let name = |text: &&str| ((*text).to_owned(), (*text).to_owned());
        let cpus = some_cpus.then(|| "0-15".to_owned());
        Pmu { kind, cpus, some_cpus, events: events.iter().map(name).collect(), ..Pmu::default() }
    }

    fn choice(catalogue: &str, pmus: &[(&str, Pmu)]) -> Choice {
        let catalogue = Catalogue::named(catalogue).unwrap().unwrap();
        let pmus = pmus.iter().map(|(name, pmu)| ((*name).to_owned(), pmu.clone())).collect();
        Choice::of(&catalogue, catalogue.groups(), &pmus)
    }

    #[test]
    fn words_are_the_catalogues_and_the_number_is_the_kernels() {
        let found = choice("alder-lake-p", &[("cpu_core", pmu(17, true, &[]))]);
        assert!(found.missing.is_empty());
        assert_eq!(found.cpus.as_deref(), Some("0-15"));
        let first = &found.groups[0][0];
        assert_eq!((&*first.name, first.kind, first.some_cpus), ("INST_RETIRED.ANY", 17, true));
        let raw = choice("power8", &[]);
        assert!(raw.groups.iter().flatten().all(|spec| spec.kind == 4 && !spec.some_cpus));
    }

    #[test]
    fn a_processor_without_other_cores_has_a_pmu_of_another_name() {
        let found = choice("alder-lake-e", &[("cpu", pmu(4, false, &[]))]);
        assert!(found.groups.iter().flatten().all(|spec| spec.kind == 4 && !spec.some_cpus));
        let none = choice("alder-lake-e", &[]);
        assert!(none.groups.iter().all(Vec::is_empty));
        assert!(none.missing.values().all(|reason| *reason == Reason::NoPmu));
    }

    #[test]
    fn what_the_chip_lacks_is_not_asked_for() {
        let here = ["event=0x0011", "event=0x0008", "event=0x0023", "event=0x0024"];
        let found = choice("neoverse-n1", &[("armv8_pmuv3_0", pmu(8, false, &here))]);
        let names: Vec<_> = found.missing.keys().map(|name| &**name).collect();
        assert!(names.contains(&"L1D_CACHE") && !names.contains(&"STALL_FRONTEND"), "{names:?}");
        assert!(!names.contains(&"VFP_SPEC"), "events from 0x40 on are not listed");
        assert!(found.missing.values().all(|reason| *reason == Reason::NotImplemented));
        let silent = choice("neoverse-n1", &[("armv8_pmuv3_0", pmu(8, false, &[]))]);
        assert!(silent.missing.is_empty(), "a kernel that lists nothing says nothing");
    }

    #[test]
    fn what_happens_in_the_kernel_is_counted_there() {
        let found = choice("software", &[]);
        let modes =
            |name| found.groups.iter().flatten().find(|spec| &*spec.name == name).unwrap().modes;
        let in_kernel = Catalogue::named("software").unwrap().unwrap();
        for event in in_kernel.events() {
            let expected = if event.in_kernel { Modes::Kernel } else { Modes::UserAndKernel };
            assert_eq!(modes(event.name.as_str()), expected, "{}", event.name);
        }
    }
}
