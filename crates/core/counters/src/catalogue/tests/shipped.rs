//! What holds for every catalogue that the crate carries.

use proptest::prelude::*;

use super::super::{CpuIdentity, PmuType};
use super::*;

fn all() -> Vec<Catalogue> {
    Catalogue::builtin().iter().map(|(name, _)| shipped(name)).collect()
}

/// Hardware catalogues: those that name processors.
fn hardware() -> impl Iterator<Item = Catalogue> {
    all().into_iter().filter(|catalogue| !catalogue.rules().is_empty())
}

#[test]
fn all_catalogues_can_be_read() {
    let mut errors = Vec::new();
    for (name, text) in Catalogue::builtin() {
        match Catalogue::parse(&format!("{name}.toml"), text) {
            Ok(catalogue) => assert_eq!(catalogue.name(), *name),
            Err(error) => errors.push(error.to_string()),
        }
    }
    assert!(errors.is_empty(), "\n{}", errors.join("\n"));
}

#[test]
fn every_machine_answers_what_policies_ask() {
    for catalogue in hardware() {
        for formula in ["cycles", "instructions", "cpi", "ipc", "l1d_bandwidth", "fpu_usage"] {
            assert!(catalogue.formula(formula).is_some(), "{}: {formula}", catalogue.name());
        }
        let stack = catalogue.sums().iter().find(|sum| sum.name == "cpi_stack");
        assert!(stack.is_some(), "{}: cpi_stack", catalogue.name());
    }
}

/// Peternier et al., sections 3.1 and 3.2.
#[test]
fn the_papers_cores_have_their_floating_point_units() {
    let units = |name: &str| shipped(name).units().map(|units| units.floating_point);
    assert_eq!([units("bulldozer"), units("power7"), units("generic")], [Some(2), Some(4), None]);
}

/// So that any count can be related to them without leaving its group.
#[test]
fn every_group_counts_cycles_and_instructions() {
    for catalogue in hardware() {
        for formula in ["cycles", "instructions"] {
            let formula = catalogue.formula(formula).expect("every machine has it");
            let event = catalogue.events_of(formula).next().expect("it is an event");
            for group in catalogue.groups() {
                let there = group.events.contains(&event.name);
                assert!(there, "{}: {} does not have {}", catalogue.name(), group.name, event.name);
            }
        }
    }
}

#[test]
fn no_event_is_carried_without_use() {
    for catalogue in all() {
        for event in catalogue.events() {
            let used = catalogue.formulas().iter().any(|formula| {
                catalogue.events_of(formula).any(|needed| needed.name == event.name)
            });
            assert!(used, "{}: no formula uses {}", catalogue.name(), event.name);
        }
    }
}

#[test]
fn events_of_one_catalogue_differ_in_their_encoding() {
    for catalogue in all() {
        for (place, event) in catalogue.events().iter().enumerate() {
            let twin = catalogue.events().iter().skip(place + 1);
            let twin = twin.into_iter().find(|other| other.encoding == event.encoding);
            assert!(twin.is_none(), "{}: {} twice", catalogue.name(), event.name);
        }
    }
}

#[test]
fn only_the_kernels_own_counters_need_no_processor() {
    for catalogue in all() {
        let portable = matches!(catalogue.pmu().kind, PmuType::Software | PmuType::Hardware);
        assert_eq!(catalogue.rules().is_empty(), portable, "{}", catalogue.name());
    }
}

fn power(version: u32) -> CpuIdentity {
    CpuIdentity::Power { pvr: version << 16 | 0x0201 }
}

fn x86(vendor: &str, family: u32, model: u32) -> CpuIdentity {
    CpuIdentity::X86 { vendor: vendor.into(), family, model, stepping: 1, core_type: None }
}

fn hybrid(model: u32, core: u32) -> CpuIdentity {
    let vendor = "GenuineIntel".to_owned();
    CpuIdentity::X86 { vendor, family: 6, model, stepping: 2, core_type: Some(core) }
}

fn arm(midr: u64) -> CpuIdentity {
    CpuIdentity::Arm { midr }
}

/// Processors as they name themselves, and their catalogue.
fn processors() -> Vec<(CpuIdentity, &'static str)> {
    vec![
        (power(0x3f), "power7"),
        (power(0x4a), "power7"),
        (power(0x4d), "power8"),
        (power(0x4e), "power9"),
        (power(0x80), "power10"),
        (power(0x82), "power10"),
        (x86("AuthenticAMD", 0x15, 0x01), "bulldozer"),
        (x86("AuthenticAMD", 0x17, 0x31), "zen2"),
        (x86("AuthenticAMD", 0x17, 0x71), "zen2"),
        (x86("AuthenticAMD", 0x19, 0x01), "zen3"),
        (x86("AuthenticAMD", 0x19, 0x50), "zen3"),
        (x86("AuthenticAMD", 0x19, 0x11), "zen4"),
        (x86("AuthenticAMD", 0x19, 0x61), "zen4"),
        (x86("AuthenticAMD", 0x19, 0xa0), "zen4"),
        (x86("AuthenticAMD", 0x1a, 0x02), "zen5"),
        (x86("AuthenticAMD", 0x1a, 0x11), "zen5"),
        (x86("AuthenticAMD", 0x1a, 0x24), "zen5"),
        (x86("AuthenticAMD", 0x1a, 0x44), "zen5"),
        (x86("AuthenticAMD", 0x1a, 0x60), "zen5"),
        (x86("AuthenticAMD", 0x1a, 0x70), "zen5"),
        (x86("GenuineIntel", 6, 0x1a), "nehalem"),
        (x86("GenuineIntel", 6, 0x2c), "nehalem"),
        (x86("GenuineIntel", 6, 0x4f), "broadwell"),
        (x86("GenuineIntel", 6, 0x55), "skylake-sp"),
        (x86("GenuineIntel", 6, 0x6a), "icelake-sp"),
        (x86("GenuineIntel", 6, 0x8f), "sapphire-rapids"),
        (x86("GenuineIntel", 6, 0xcf), "sapphire-rapids"),
        (x86("GenuineIntel", 6, 0xad), "sapphire-rapids"),
        (x86("GenuineIntel", 6, 0xae), "sapphire-rapids"),
        (hybrid(0x97, 0x40), "alder-lake-p"),
        (hybrid(0xaa, 0x40), "alder-lake-p"),
        (hybrid(0xac, 0x40), "alder-lake-p"),
        (hybrid(0xb5, 0x40), "alder-lake-p"),
        (hybrid(0x97, 0x20), "alder-lake-e"),
        (hybrid(0xbe, 0x20), "alder-lake-e"),
        (hybrid(0xaa, 0x20), "crestmont"),
        (hybrid(0xac, 0x20), "crestmont"),
        (hybrid(0xb5, 0x20), "crestmont"),
        (x86("GenuineIntel", 6, 0xaf), "crestmont"),
        (x86("GenuineIntel", 6, 0xb6), "crestmont"),
        (hybrid(0xbd, 0x40), "lion-cove"),
        (hybrid(0xc5, 0x40), "lion-cove"),
        (hybrid(0xc6, 0x40), "lion-cove"),
        (hybrid(0xcc, 0x40), "lion-cove"),
        (hybrid(0xd5, 0x40), "lion-cove"),
        (hybrid(0xe5, 0x40), "lion-cove"),
        (hybrid(0xbd, 0x20), "skymont"),
        (hybrid(0xc5, 0x20), "skymont"),
        (hybrid(0xc6, 0x20), "skymont"),
        (hybrid(0xcc, 0x20), "darkmont"),
        (hybrid(0xd5, 0x20), "darkmont"),
        (hybrid(0xe5, 0x20), "darkmont"),
        (arm(0x413f_d0c1), "neoverse-n1"),
        (arm(0x411f_d401), "neoverse-v1"),
        (arm(0x410f_d490), "neoverse-n2-r0p0"),
        (arm(0x410f_d492), "neoverse-n2-r0p0"),
        (arm(0x410f_d493), "neoverse-n2"),
        (arm(0x411f_d490), "neoverse-n2"),
        (arm(0x6d0f_d490), "neoverse-n2-r0p0"),
        (arm(0x6d0f_d493), "neoverse-n2"),
        (arm(0x410f_d4f1), "neoverse-v2"),
        (arm(0x410f_d8e0), "neoverse-n3"),
        (arm(0x410f_d840), "neoverse-v3"),
        (arm(0x411f_d831), "neoverse-v3"),
        (arm(0x431f_0af1), "thunderx2"),
        (arm(0x420f_5160), "thunderx2"),
    ]
}

#[test]
fn each_processor_has_one_catalogue() {
    let catalogues = all();
    for (cpu, wanted) in processors() {
        let found = catalogues.iter().filter(|catalogue| catalogue.detect(&cpu));
        let found: Vec<_> = found.map(Catalogue::name).collect();
        assert_eq!(found, [wanted], "{cpu}");
    }
}

#[test]
fn an_unknown_processor_gets_the_generic_events() {
    // Zen 6, and a hybrid processor whose kernel does not say which cores are which.
    let zen6 = [0x50, 0x80].map(|model| x86("AuthenticAMD", 0x1a, model));
    let mixed = [0x97, 0xbd].map(|model| x86("GenuineIntel", 6, model));
    let others = [arm(0x610f_0120), power(0x70)];
    let unknown = zen6.into_iter().chain(mixed).chain(others);
    for cpu in unknown {
        assert_eq!(Catalogue::of(&cpu).unwrap().name(), "generic", "{cpu}");
    }
    assert_eq!(Catalogue::of(&power(0x4d)).unwrap().name(), "power8");
}

/// Whatever was counted: sums hold by construction, residues included.
#[test]
fn the_parts_of_every_sum_add_up() {
    let catalogues = all();
    proptest!(|(seed in prop::collection::vec(1u32..1_000_000, 64))| {
        for catalogue in &catalogues {
            let counts = |name: &str| {
                let place = catalogue.events().iter().position(|event| event.name == name)?;
                seed.get(place % seed.len()).map(|&count| f64::from(count))
            };
            for sum in catalogue.sums() {
                let value = |name: &String| catalogue.evaluate(name, &counts).map(|v| v.value);
                let parts: Result<Vec<_>, _> = sum.parts.iter().map(value).collect();
                let total = sum.total.as_ref().map_or(Ok(1.0), value);
                let (Ok(total), Ok(parts)) = (total, parts) else { continue };
                let added: f64 = parts.iter().sum();
                let scale: f64 = parts.iter().map(|part| part.abs()).sum::<f64>() + 1.0;
                prop_assert!(
                    (added - total).abs() < 1e-9 * scale,
                    "{}: {}: {added} is not {total}", catalogue.name(), sum.name
                );
            }
        }
    });
}
