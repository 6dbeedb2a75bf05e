//! Hardware threads: their core, package, last-level cache, core type and speed.
//!
//! *Modules.* The two integer cores of an AMD Bulldozer module share a front
//! end and an FPU; Linux lists them as siblings, so they are one core here.
//!
//! *Contradictions.* The threads of one core that name different last-level
//! caches (some hypervisors do this) are put in the one with the lowest CPU
//! number. A CPU that two nodes list (`numa=fake`) belongs to the lower node, and so does a core whose threads
//! two nodes list. A thread that no node lists (it came online meanwhile) lies where its siblings lie.

use std::collections::BTreeMap;

use super::{Sys, SysfsError, value};
use crate::speed::{CpuSpeed, ListedKind, speeds};
use crate::{CoreKind, CpuSet, HardwareThread, NodeId, PackageId, PuId};

/// Caches below this level are private to a core's pipeline; a machine that
/// lists no others does not list its last-level cache.
const LOWEST_LLC_LEVEL: u64 = 2;

/// What one CPU's own files contain.
struct Cpu {
    pu: PuId,
    core: u32,
    package: Option<u32>,
    die: u32,
    cache: Option<Cache>,
    speed: CpuSpeed,
}

/// What is known of a core by any of its CPUs.
#[derive(Default)]
struct Whole {
    package: Option<u32>,
    speed: CpuSpeed,
}

struct Cache {
    level: u64,
    /// Lowest online CPU that shares it.
    key: u32,
    bytes: Option<u64>,
}

/// All online hardware threads; the node is left at 0.
pub(super) fn read(sys: &Sys<'_>, online: &CpuSet) -> Result<Vec<HardwareThread>, SysfsError> {
    let kind_of = listed_kinds(sys);
    let cpus = online.iter().map(|pu| read_one(sys, pu, online, kind_of(pu)));
    let cpus = cpus.collect::<Result<Vec<_>, _>>()?;
    let cores = cores(&cpus);
    let speeds = speeds(&cores.values().map(|whole| whole.speed).collect::<Vec<_>>());
    let core_of: BTreeMap<u32, (&Whole, (CoreKind, u32))> =
        cores.iter().zip(speeds).map(|((&core, whole), speed)| (core, (whole, speed))).collect();
    let llc_of_core = llcs(&cpus);
    let thread = |cpu: &Cpu| {
        let &(whole, (kind, capacity)) = core_of.get(&cpu.core)?;
        let &(llc, llc_bytes) = llc_of_core.get(&cpu.core)?;
        Some(HardwareThread {
            pu: cpu.pu,
            core: cpu.core,
            llc,
            llc_bytes,
            node: NodeId(0),
            package: PackageId(cpu.package.or(whole.package).unwrap_or(0)),
            kind,
            capacity,
            max_khz: whole.speed.max_khz,
        })
    };
    Ok(cpus.iter().filter_map(thread).collect())
}

/// What the CPUs of each core say together: one of them may not say all.
fn cores(cpus: &[Cpu]) -> BTreeMap<u32, Whole> {
    let mut cores: BTreeMap<u32, Whole> = BTreeMap::new();
    for cpu in cpus {
        let whole = cores.entry(cpu.core).or_default();
        let (all, more) = (&mut whole.speed, cpu.speed);
        whole.package = whole.package.or(cpu.package);
        all.capacity = all.capacity.max(more.capacity);
        all.max_khz = all.max_khz.max(more.max_khz);
        all.design = all.design.or(more.design);
        all.kind = all.kind.max(more.kind);
    }
    cores
}

fn read_one(
    sys: &Sys<'_>,
    pu: PuId,
    online: &CpuSet,
    kind: Option<ListedKind>,
) -> Result<Cpu, SysfsError> {
    let directory = format!("devices/system/cpu/{pu}");
    let file = |name: &str| format!("{directory}/{name}");
    let siblings = siblings(sys, &file("topology"), pu, online)?;
    let max_khz = sys.value(&file("cpufreq/cpuinfo_max_freq"), value::number);
    let id = |name: &str| sys.value(&file(name), value::identifier).flatten();
    Ok(Cpu {
        pu,
        core: siblings.unwrap_or(pu.0),
        package: id("topology/physical_package_id"),
        die: id("topology/die_id").unwrap_or_default(),
        cache: last_level_cache(sys, &directory, pu, online),
        speed: CpuSpeed {
            capacity: sys.value(&file("cpu_capacity"), value::capacity),
            max_khz: max_khz.filter(|&khz| khz > 0),
            design: sys.value(&file("regs/identification/midr_el1"), value::design),
            kind,
        },
    })
}

/// The lowest online CPU of the core, by the first of the files that is there.
fn siblings(
    sys: &Sys<'_>,
    directory: &str,
    pu: PuId,
    online: &CpuSet,
) -> Result<Option<u32>, SysfsError> {
    let files = [
        ("core_cpus_list", value::list as fn(&str) -> _),
        ("thread_siblings_list", value::list),
        ("core_cpus", value::bit_map),
        ("thread_siblings", value::bit_map),
    ];
    for (name, parse) in files {
        let path = format!("{directory}/{name}");
        if let Some(listed) = sys.checked(&path, parse)? {
            return lowest(sys, &path, &listed, pu, online);
        }
    }
    Ok(None)
}

/// The lowest online CPU of those that a file lists, which must be with the CPU itself.
fn lowest(
    sys: &Sys<'_>,
    path: &str,
    listed: &CpuSet,
    pu: PuId,
    online: &CpuSet,
) -> Result<Option<u32>, SysfsError> {
    if !listed.contains(pu) {
        return Err(sys.malformed(path, &listed.to_string(), format!("{pu} itself is missing")));
    }
    Ok(listed.intersection(online).first().map(|lowest| lowest.0))
}

fn last_level_cache(sys: &Sys<'_>, directory: &str, pu: PuId, online: &CpuSet) -> Option<Cache> {
    let mut highest: Option<Cache> = None;
    for index in sys.numbered(&format!("{directory}/cache"), "index") {
        let file = |name: &str| format!("{directory}/cache/index{index}/{name}");
        let Some(level) = sys.value(&file("level"), value::number) else { continue };
        let holds_data = sys.value(&file("type"), |text| Ok(text != "Instruction"));
        if holds_data != Some(true)
            || level < highest.as_ref().map_or(LOWEST_LLC_LEVEL, |c| c.level)
        {
            continue;
        }
        let (list, map) = (file("shared_cpu_list"), file("shared_cpu_map"));
        let Some((path, listed)) = sys.list_or_map(&list, &map) else { continue };
        let key = lowest(sys, path, &listed, pu, online).unwrap_or_else(|why| {
            sys.leave_out(path, &why);
            None
        });
        let Some(key) = key else { continue };
        let bytes = sys.value(&file("size"), value::size).flatten();
        highest = Some(Cache { level, key, bytes });
    }
    highest
}

/// The LLC domain of each core: its key, which is the lowest CPU number, and
/// its size. CPUs that list no cache share their die's domain.
fn llcs(cpus: &[Cpu]) -> BTreeMap<u32, (u32, Option<u64>)> {
    let mut dies = BTreeMap::new();
    let mut llc_of_core = BTreeMap::new();
    for cpu in cpus {
        let domain = match &cpu.cache {
            Some(cache) => (cache.key, cache.bytes),
            None => (*dies.entry((cpu.package.unwrap_or(0), cpu.die)).or_insert(cpu.pu.0), None),
        };
        let whole = llc_of_core.entry(cpu.core).or_insert(domain);
        *whole = domain.min(*whole);
    }
    llc_of_core
}

/// The core type of each CPU, where the kernel lists types. Low-power cores are those of a part
/// of its own in the processor (Arrow Lake-H); other efficiency cores are faster.
fn listed_kinds(sys: &Sys<'_>) -> impl Fn(PuId) -> Option<ListedKind> {
    let of = |pmu: &str| sys.list(&format!("devices/{pmu}/cpus"));
    let (fast, small, lowest) = (of("cpu_core"), of("cpu_atom"), of("cpu_lowpower"));
    let lists = |set: &Option<CpuSet>, pu| set.as_ref().is_some_and(|set| set.contains(pu));
    move |pu| {
        if fast.is_none() && small.is_none() && lowest.is_none() {
            None
        } else if lists(&lowest, pu) {
            Some(ListedKind::LowPower)
        } else if lists(&small, pu) || fast.as_ref().is_some_and(|fast| !fast.contains(pu)) {
            Some(ListedKind::Efficiency)
        } else {
            Some(ListedKind::Performance)
        }
    }
}
