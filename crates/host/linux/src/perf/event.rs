//! An event by the name that a user gives it.

use std::collections::BTreeMap;

use symbiont_counters::catalogue::{Catalogue, Encoding, Field};

use super::choice::Choice;
use super::libpfm;
use super::pmu::Pmu;
use super::spec::Spec;

/// `PERF_TYPE_RAW`.
const RAW: u32 = 4;

/// A name that cannot be turned into an event here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no event '{name}' here: {}", tried.join("; "))]
pub struct UnknownEvent {
    /// The name.
    pub name: String,
    /// Which units were asked and what they answered.
    pub tried: Vec<String>,
}

/// The event of this name. In this order: an event of the catalogue; a raw code
/// (`r1a3`); what the kernel's PMUs list (`cpu/event=0x3c,umask=0x1/`,
/// `cpu/cache-misses/`, `cache-misses`); the kernel's generic and software
/// events (`page_faults`); libpfm4, where it is installed
/// (`amd64_fam19h_zen4::RETIRED_OPS`).
///
/// # Errors
/// When none of them knows it.
pub fn event(
    name: &str,
    catalogue: &Catalogue,
    pmus: &BTreeMap<String, Pmu>,
) -> Result<Spec, UnknownEvent> {
    let carried = ["generic", "software"].map(|name| Catalogue::named(name).and_then(Result::ok));
    if let Some(spec) = of_catalogue(name, catalogue, pmus) {
        return Ok(spec);
    }
    if let Some(config) = name.strip_prefix('r').and_then(|hex| u64::from_str_radix(hex, 16).ok()) {
        return Ok(Spec::new(name, RAW, config));
    }
    let mut tried = vec![format!("the catalogue {} does not have it", catalogue.name())];
    match of_kernel(name, pmus) {
        Ok(spec) => return Ok(spec),
        Err(why) => tried.push(why),
    }
    let mut generic = carried.iter().flatten().filter_map(|known| of_catalogue(name, known, pmus));
    if let Some(spec) = generic.next() {
        return Ok(spec);
    }
    match libpfm::encode(name) {
        Ok(spec) => return Ok(spec),
        Err(why) => tried.push(format!("libpfm4: {why}")),
    }
    Err(UnknownEvent { name: name.to_owned(), tried })
}

/// Case and the kind of dash do not matter.
fn same(a: &str, b: &str) -> bool {
    let plain = |text: &str| text.to_lowercase().replace('-', "_");
    plain(a) == plain(b)
}

fn of_catalogue(name: &str, catalogue: &Catalogue, pmus: &BTreeMap<String, Pmu>) -> Option<Spec> {
    let event = catalogue.events().iter().find(|event| same(&event.name, name))?;
    let home = catalogue.groups().iter().find(|group| group.events.contains(&event.name))?;
    let specs = Choice::of(catalogue, [home], pmus).groups.into_iter().flatten();
    specs.into_iter().find(|spec| *spec.name == *event.name)
}

/// An event by what the kernel lists in sysfs.
fn of_kernel(name: &str, pmus: &BTreeMap<String, Pmu>) -> Result<Spec, String> {
    let Some((unit, terms)) = name.split_once('/') else {
        let mut known = pmus.iter().filter_map(|(unit, pmu)| {
            let terms = pmu.events.iter().find(|(listed, _)| same(listed, name))?.1;
            Some(of_terms(name, unit, pmu, terms))
        });
        return known.next().unwrap_or_else(|| Err("no PMU of the kernel lists it".to_owned()));
    };
    let pmu = pmus.get(unit).ok_or_else(|| {
        let all: Vec<_> = pmus.keys().map(String::as_str).collect();
        format!("the kernel has no PMU '{unit}', but {}", all.join(", "))
    })?;
    let terms = terms.trim_end_matches('/');
    let listed = pmu.events.iter().find(|(listed, _)| same(listed, terms));
    of_terms(name, unit, pmu, listed.map_or(terms, |(_, terms)| terms))
}

/// An event of `event=0x3c,umask=0x1,inv`.
fn of_terms(name: &str, unit: &str, pmu: &Pmu, terms: &str) -> Result<Spec, String> {
    let mut encoding = Encoding::default();
    for term in terms.split(',').filter(|term| !term.is_empty()) {
        let (field, value) = term.split_once('=').unwrap_or((term, "1"));
        let value = match value.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).ok(),
            None => value.parse().ok(),
        };
        let value = value.ok_or_else(|| format!("the PMU {unit}: '{term}' has no number"))?;
        let place = match (pmu.format.get(field), field) {
            (Some(place), _) => place.clone(),
            (None, "config" | "config1") => format!("{field}:0-63"),
            (None, _) => {
                let all: Vec<_> = pmu.format.keys().map(String::as_str).collect();
                let all = all.join(", ");
                return Err(format!("the PMU {unit} has no field '{field}', but {all}"));
            }
        };
        Field::parse(field, &place)
            .ok_or_else(|| {
                format!("the PMU {unit} puts '{field}' where it cannot be put: {place}")
            })?
            .place(value, &mut encoding)
            .ok_or_else(|| format!("the PMU {unit}: {value:#x} is too wide for '{field}'"))?;
    }
    let spec = Spec::new(name, pmu.kind, encoding.config);
    Ok(Spec { config1: encoding.config1, some_cpus: pmu.some_cpus, ..spec })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::{Modes, SOFTWARE};

    fn pmus() -> BTreeMap<String, Pmu> {
        let map = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|&(a, b)| (a.to_owned(), b.to_owned())).collect()
        };
        let cpu = Pmu {
            kind: 4,
            some_cpus: true,
            events: map(&[("cache-misses", "event=0x2e,umask=0x41"), ("odd", "event=?")]),
            format: map(&[
                ("event", "config:0-7,32-35"),
                ("umask", "config:8-15"),
                ("inv", "config:23"),
                ("ldlat", "config1:0-15"),
                ("far", "config2:0-7"),
            ]),
            ..Pmu::default()
        };
        [("cpu".to_owned(), cpu)].into()
    }

    fn found(name: &str) -> Result<Spec, UnknownEvent> {
        event(name, &Catalogue::named("zen4").unwrap().unwrap(), &pmus())
    }

    #[test]
    fn names_of_the_catalogue_come_first() {
        let retired = found("EX_RET_INSTR").unwrap();
        assert_eq!((&*retired.name, retired.kind, retired.config), ("ex_ret_instr", 4, 0xc0));
    }

    #[test]
    fn raw_codes_and_the_kernels_own_words_are_understood() {
        assert_eq!(found("r1a3").unwrap().config, 0x1a3);
        let listed = found("cpu/cache-misses/").unwrap();
        assert_eq!((listed.kind, listed.config, listed.some_cpus), (4, 0x412e, true));
        assert_eq!(found("Cache_Misses").unwrap().config, 0x412e);
        let written = found("cpu/event=0x1a3,umask=2,inv,ldlat=0x30/").unwrap();
        assert_eq!((written.config, written.config1), (0x1_0080_02a3, 0x30));
        assert_eq!(found("cpu/config=0xff00/").unwrap().config, 0xff00);
    }

    #[test]
    fn events_that_every_kernel_has_are_found_under_their_usual_names() {
        let faults = found("page-faults").unwrap();
        assert_eq!((faults.kind, faults.config), (SOFTWARE, 2));
        assert_eq!(found("context_switches").unwrap().modes, Modes::Kernel);
    }

    #[test]
    fn an_unknown_name_lists_the_sources_that_were_asked() {
        let said = |name| found(name).unwrap_err().to_string();
        let all = said("no-such-event");
        for words in ["no event 'no-such-event' here", "catalogue zen4", "no PMU", "libpfm4: "] {
            assert!(all.contains(words), "{words}: {all}");
        }
        for (name, words) in [
            ("gpu/x/", "no PMU 'gpu', but cpu"),
            ("cpu/evnt=1/", "no field 'evnt', but event"),
            ("cpu/event=0x1000/", "0x1000 is too wide"),
            ("cpu/event=many/", "'event=many' has no number"),
            ("cpu/odd/", "'event=?' has no number"),
            ("cpu/far=1/", "cannot be put"),
        ] {
            assert!(said(name).contains(words), "{name}: {}", said(name));
        }
    }
}
