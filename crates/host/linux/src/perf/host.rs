//! Which catalogue describes this host.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use symbiont_counters::catalogue::{Catalogue, CatalogueError, CpuIdentity};

use super::choice::Choice;
use super::pmu::Pmu;
use super::support::Support;

/// CPUID's numbers of the two kinds of cores of hybrid processors, each with
/// the PMU that the kernel makes for them; the kind that most software is
/// measured on comes first.
const KINDS: [(&str, u32); 2] = [("cpu_core", 0x40), ("cpu_atom", 0x20)];

/// The kinds of processors of a running Linux, as they name themselves; none
/// where they have names that no catalogue knows. `root` is where `/proc` and
/// `/sys` are.
#[must_use]
pub fn processors(root: &Path, pmus: &BTreeMap<String, Pmu>) -> Vec<CpuIdentity> {
    let text = fs::read_to_string(root.join("proc/cpuinfo")).unwrap_or_default();
    let designs = designs(root);
    if !designs.is_empty() {
        return designs;
    }
    let Some(first) = identity(&text) else {
        return Vec::new();
    };
    let kinds: Vec<_> = KINDS.iter().filter(|(pmu, _)| pmus.contains_key(*pmu)).collect();
    match &first {
        CpuIdentity::X86 { vendor, family, model, stepping, .. } if !kinds.is_empty() => {
            let of = |&&(_, kind): &&(&str, u32)| CpuIdentity::X86 {
                vendor: vendor.clone(),
                family: *family,
                model: *model,
                stepping: *stepping,
                core_type: Some(kind),
            };
            kinds.iter().map(of).collect()
        }
        _ => vec![first],
    }
}

/// The designs of an Arm machine's online CPUs, that of the lowest CPU first. Revisions of one
/// design are one.
fn designs(root: &Path) -> Vec<CpuIdentity> {
    let cpus = fs::read_dir(root.join("sys/devices/system/cpu")).into_iter().flatten().flatten();
    let number = |name: &str| name.strip_prefix("cpu")?.parse::<u32>().ok();
    let mut cpus: Vec<_> = cpus
        .filter_map(|entry| Some((number(entry.file_name().to_str()?)?, entry.path())))
        .collect();
    cpus.sort();
    let mut found: BTreeMap<u64, (u32, u64)> = BTreeMap::new();
    for (cpu, path) in cpus {
        let text = fs::read_to_string(path.join("regs/identification/midr_el1")).ok();
        let hex = text.as_deref().and_then(|text| text.trim().strip_prefix("0x"));
        let Some(midr) = hex.and_then(|hex| u64::from_str_radix(hex, 16).ok()) else { continue };
        // Implementer and part; the rest are variant, architecture and revision.
        found.entry(midr & 0xff00_fff0).or_insert((cpu, midr));
    }
    let mut designs: Vec<(u32, u64)> = found.into_values().collect();
    designs.sort_unstable();
    designs.into_iter().map(|(_, midr)| CpuIdentity::Arm { midr }).collect()
}

/// What the first processor of `/proc/cpuinfo` calls itself: x86 says "model name", POWER
/// "cpu", others "Hardware" or "Model". None if it does not say.
#[must_use]
pub fn processor_name(cpuinfo: &str) -> Option<String> {
    ["model name", "cpu", "Hardware", "Model"].iter().find_map(|wanted| {
        cpuinfo.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            (name.trim() == *wanted && !value.trim().is_empty()).then(|| value.trim().to_owned())
        })
    })
}

/// What the first processor of `/proc/cpuinfo` is.
fn identity(cpuinfo: &str) -> Option<CpuIdentity> {
    let field = |wanted: &str| {
        let fields = cpuinfo.lines().filter_map(|line| line.split_once(':'));
        let mut found = fields.filter(|(name, _)| name.trim() == wanted);
        found.next().map(|(_, value)| value.trim())
    };
    let number = |wanted: &str| field(wanted).and_then(|text| text.parse().ok());
    let hex = |wanted: &str| {
        let digits = field(wanted)?.strip_prefix("0x")?;
        u64::from_str_radix(digits, 16).ok()
    };
    if let Some(vendor) = field("vendor_id") {
        let (family, model) = (number("cpu family")?, number("model")?);
        let (vendor, stepping) = (vendor.to_owned(), number("stepping").unwrap_or(0));
        return Some(CpuIdentity::X86 { vendor, family, model, stepping, core_type: None });
    }
    if let Some(implementer) = hex("CPU implementer") {
        // The fields of MIDR_EL1; the architecture field is 0xf in all.
        let (part, variant) = (hex("CPU part")?, hex("CPU variant").unwrap_or(0));
        let revision = number("CPU revision").map_or(0, u64::from);
        let midr = implementer << 24 | variant << 20 | 0xf << 16 | part << 4 | revision;
        return Some(CpuIdentity::Arm { midr });
    }
    // "2.0 (pvr 004d 0200)"
    let (_, pvr) = field("revision")?.split_once("(pvr ")?;
    let digits: String = pvr.chars().filter(char::is_ascii_hexdigit).collect();
    u32::from_str_radix(&digits, 16).ok().map(|pvr| CpuIdentity::Power { pvr })
}

/// The catalogue by which this host is counted.
#[derive(Debug, Clone)]
pub struct Selection {
    /// The catalogue.
    pub catalogue: Catalogue,
    /// Why it is not the one that is made for this processor, if it is not.
    pub why: Option<String>,
}

/// Chooses a catalogue: the one made for the first kind of processor, else the
/// kernel's generic events, else its software events.
///
/// # Errors
/// When a built-in catalogue is malformed, which the tests rule out.
pub fn select(support: &Support, processors: &[CpuIdentity]) -> Result<Selection, CatalogueError> {
    let carried = |name: &str| Catalogue::named(name).unwrap_or_else(|| Catalogue::parse(name, ""));
    let native = match processors.first() {
        Some(cpu) => Catalogue::of(cpu)?,
        None => carried("generic")?,
    };
    if let Err(error) = &support.hardware {
        let why = format!(
            "instead of {}: no hardware event can be counted: {}",
            native.name(),
            error.reason
        );
        return Ok(Selection { catalogue: carried("software")?, why: Some(why) });
    }
    if native.name() == "generic" {
        let cpu = processors.first().map_or("this processor".to_owned(), ToString::to_string);
        let why = format!(
            "for no catalogue is made for {cpu}: without Top-Down, FPU usage and L1D bandwidth"
        );
        return Ok(Selection { catalogue: native, why: Some(why) });
    }
    let choice = Choice::of(&native, native.groups(), &support.pmus);
    match choice.missing.values().next() {
        Some(reason) if choice.groups.iter().all(Vec::is_empty) => {
            let why = format!("instead of {}: {reason}", native.name());
            Ok(Selection { catalogue: carried("generic")?, why: Some(why) })
        }
        _ => Ok(Selection { catalogue: native, why: None }),
    }
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;
    use crate::perf::{OpenError, Reason};

    fn here(cpuinfo: &str, midr: Option<&str>, pmus: &[&str]) -> Vec<CpuIdentity> {
        let midrs: Vec<_> = midr.into_iter().map(|midr| (0, midr)).collect();
        with_midrs(cpuinfo, &midrs, pmus)
    }

    fn with_midrs(cpuinfo: &str, midrs: &[(u32, &str)], pmus: &[&str]) -> Vec<CpuIdentity> {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("proc/cpuinfo", cpuinfo);
        for (cpu, midr) in midrs {
            write(&format!("sys/devices/system/cpu/cpu{cpu}/regs/identification/midr_el1"), midr);
        }
        let pmus = pmus.iter().map(|name| ((*name).to_owned(), Pmu::default())).collect();
        processors(root.path(), &pmus)
    }

    fn catalogues(found: &[CpuIdentity]) -> Vec<String> {
        found.iter().map(|cpu| Catalogue::of(cpu).unwrap().name().to_owned()).collect()
    }

    const INTEL: &str = "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\n\
                         model\t\t: 151\nmodel name\t: x\nstepping\t: 2\n\nprocessor\t: 1\n";

    #[test]
    fn processors_are_known_by_what_the_kernel_says_of_them() {
        let zen = "vendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\nstepping\t: 1\n";
        assert_eq!(catalogues(&here(zen, None, &["cpu"])), ["zen4"]);
        let power = "processor\t: 0\ncpu\t\t: POWER8 (raw), altivec supported\n\
                     revision\t: 2.0 (pvr 004d 0200)\n";
        assert_eq!(here(power, None, &[]), [CpuIdentity::Power { pvr: 0x004d_0200 }]);
        let arm = "processor\t: 0\nCPU implementer\t: 0x41\nCPU architecture: 8\n\
                   CPU variant\t: 0x3\nCPU part\t: 0xd0c\nCPU revision\t: 1\n";
        assert_eq!(here(arm, None, &[]), [CpuIdentity::Arm { midr: 0x413f_d0c1 }]);
        assert_eq!(here("", Some("0x00000000413fd0c1\n"), &[]), here(arm, None, &[]));
        assert_eq!(here("processor : 0\nisa : rv64imafdc\n", None, &[]), []);
    }

    /// CPU 0 may be offline, and then says nothing.
    #[test]
    fn each_design_of_an_arm_machine_is_a_kind_of_processor() {
        let midrs =
            [(2, "0x410fd870\n"), (9, "0x410fd851\n"), (10, "0x410fd850\n"), (11, "0x410fd871")];
        let found = with_midrs("", &midrs, &[]);
        let expected = [0x410f_d870, 0x410f_d851].map(|midr| CpuIdentity::Arm { midr });
        assert_eq!(found, expected);
    }

    #[test]
    fn the_processor_is_named_on_several_architectures() {
        let x86 = "processor\t: 0\nmodel name\t: Fast CPU @ 3 GHz\ncpu MHz\t: 2\n";
        assert_eq!(processor_name(x86).as_deref(), Some("Fast CPU @ 3 GHz"));
        let power = "processor\t: 0\ncpu\t\t: POWER8E (raw), altivec supported\n";
        assert_eq!(processor_name(power).as_deref(), Some("POWER8E (raw), altivec supported"));
        assert_eq!(processor_name(""), None);
    }

    #[test]
    fn a_hybrid_has_two_kinds_of_processors() {
        let found = here(INTEL, None, &["cpu_atom", "cpu_core", "msr"]);
        assert_eq!(catalogues(&found), ["alder-lake-p", "alder-lake-e"]);
        assert_eq!(catalogues(&here(INTEL, None, &["cpu"])), ["generic"]);
    }

    fn support(hardware: bool, pmus: &[&str]) -> Support {
        let reason = Reason::Refused { errno: Errno::NOENT, paranoid: None };
        let error = OpenError { thread: 1, event: "instructions".into(), reason };
        let pmus = pmus.iter().map(|name| ((*name).to_owned(), Pmu::default())).collect();
        let hardware = if hardware { Ok(()) } else { Err(error) };
        let (software, kernel_side) = (Ok(()), Ok(()));
        Support { paranoid: Some(0), software, kernel_side, hardware, watchdog: false, pmus }
    }

    #[test]
    fn what_cannot_be_had_is_replaced_and_said() {
        let core = here(INTEL, None, &["cpu_core"]);
        let chosen = |hardware, pmus: &[&str], cpus: &[CpuIdentity]| {
            let found = select(&support(hardware, pmus), cpus).unwrap();
            (found.catalogue.name().to_owned(), found.why)
        };
        assert_eq!(chosen(true, &["cpu_core"], &core), ("alder-lake-p".into(), None));
        let (name, why) = chosen(false, &["cpu_core"], &core);
        assert!(
            name == "software" && why.unwrap().contains("instead of alder-lake-p: no hardware")
        );
        let (name, why) = chosen(true, &["software"], &core);
        assert!(name == "generic" && why.unwrap().contains("no such PMU"));
        let (name, why) = chosen(true, &[], &[]);
        assert!(name == "generic" && why.unwrap().contains("no catalogue"));
    }
}
