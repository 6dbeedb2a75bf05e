//! Hardware threads: their core, package, last-level cache, core type and speed.
//!
//! *Modules.* The two integer cores of an AMD Bulldozer module share a front
//! end and an FPU; Linux lists them as siblings, so they are one core here.
//!
//! *Contradictions.* The threads of one core that name different last-level
//! caches (some hypervisors do this) are put in the one with the lowest CPU
//! number. A CPU that two nodes list (`numa=fake`) belongs to the lower node.

use std::collections::BTreeMap;

use super::{Sys, SysfsError, value};
use crate::speed::{CpuSpeed, speeds};
use crate::{CoreKind, CpuSet, HardwareThread, NodeId, PackageId, PuId};

/// Caches below this level are private to a core's pipeline; a machine that
/// lists no others does not list its last-level cache.
const LOWEST_LLC_LEVEL: u64 = 2;

/// What one CPU's own files contain.
struct Cpu {
    pu: PuId,
    core: u32,
    package: u32,
    die: u32,
    cache: Option<Cache>,
    capacity: Option<u64>,
    max_khz: Option<u64>,
}

struct Cache {
    level: u64,
    /// Lowest online CPU that shares it.
    key: u32,
    bytes: Option<u64>,
}

/// All online hardware threads; the node is left at 0.
pub(super) fn read(sys: &Sys<'_>, online: &CpuSet) -> Result<Vec<HardwareThread>, SysfsError> {
    let cpus = online.iter().map(|pu| read_one(sys, pu, online)).collect::<Result<Vec<_>, _>>()?;
    let kind_of = listed_kinds(sys)?;
    let reported = |cpu: &Cpu| CpuSpeed {
        capacity: cpu.capacity,
        max_khz: cpu.max_khz,
        kind: kind_of(cpu.pu),
    };
    let speeds = speeds(&cpus.iter().map(reported).collect::<Vec<_>>());
    let llc_of_core = llcs(&cpus);
    let thread = |(cpu, (kind, capacity)): (&Cpu, (CoreKind, u32))| {
        let &(llc, llc_bytes) = llc_of_core.get(&cpu.core).unwrap_or(&(cpu.core, None));
        HardwareThread {
            pu: cpu.pu,
            core: cpu.core,
            llc,
            llc_bytes,
            node: NodeId(0),
            package: PackageId(cpu.package),
            kind,
            capacity,
            max_khz: cpu.max_khz,
        }
    };
    Ok(cpus.iter().zip(speeds).map(thread).collect())
}

fn read_one(sys: &Sys<'_>, pu: PuId, online: &CpuSet) -> Result<Cpu, SysfsError> {
    let directory = format!("devices/system/cpu/{pu}");
    let file = |name: &str| format!("{directory}/{name}");
    let id =
        |name: &str| Ok(sys.value(&file(name), value::identifier)?.flatten().unwrap_or_default());
    let siblings = match sharers(sys, &file("topology/core_cpus_list"), pu, online)? {
        None => sharers(sys, &file("topology/thread_siblings_list"), pu, online)?,
        some => some,
    };
    let max_khz = sys.value(&file("cpufreq/cpuinfo_max_freq"), value::number)?;
    Ok(Cpu {
        pu,
        core: siblings.unwrap_or(pu.0),
        package: id("topology/physical_package_id")?,
        die: id("topology/die_id")?,
        cache: last_level_cache(sys, &directory, pu, online)?,
        capacity: sys.value(&file("cpu_capacity"), value::capacity)?,
        max_khz: max_khz.filter(|&khz| khz > 0),
    })
}

/// The lowest online CPU of a list that must name the CPU itself.
fn sharers(
    sys: &Sys<'_>,
    path: &str,
    pu: PuId,
    online: &CpuSet,
) -> Result<Option<u32>, SysfsError> {
    let Some(listed) = sys.list(path)? else { return Ok(None) };
    if !listed.contains(pu) {
        return Err(sys.malformed(path, &listed.to_string(), format!("{pu} itself is missing")));
    }
    Ok(listed.intersection(online).first().map(|lowest| lowest.0))
}

fn last_level_cache(
    sys: &Sys<'_>,
    directory: &str,
    pu: PuId,
    online: &CpuSet,
) -> Result<Option<Cache>, SysfsError> {
    let mut highest: Option<Cache> = None;
    for index in sys.numbered(&format!("{directory}/cache"), "index")? {
        let file = |name: &str| format!("{directory}/cache/index{index}/{name}");
        let Some(level) = sys.value(&file("level"), value::number)? else { continue };
        let holds_data =
            sys.value(&file("type"), |text| Ok(text != "Instruction"))?.unwrap_or(false);
        if !holds_data || level < highest.as_ref().map_or(LOWEST_LLC_LEVEL, |c| c.level) {
            continue;
        }
        let Some(key) = sharers(sys, &file("shared_cpu_list"), pu, online)? else { continue };
        let bytes = sys.value(&file("size"), value::size)?.flatten();
        highest = Some(Cache { level, key, bytes });
    }
    Ok(highest)
}

/// The LLC domain of each core: its key, which is the lowest CPU number, and
/// its size. CPUs that list no cache share their die's domain.
fn llcs(cpus: &[Cpu]) -> BTreeMap<u32, (u32, Option<u64>)> {
    let mut dies = BTreeMap::new();
    let mut llc_of_core = BTreeMap::new();
    for cpu in cpus {
        let domain = match &cpu.cache {
            Some(cache) => (cache.key, cache.bytes),
            None => (*dies.entry((cpu.package, cpu.die)).or_insert(cpu.pu.0), None),
        };
        let whole = llc_of_core.entry(cpu.core).or_insert(domain);
        *whole = domain.min(*whole);
    }
    llc_of_core
}

/// The core type of each CPU, where the kernel lists types.
fn listed_kinds(sys: &Sys<'_>) -> Result<impl Fn(PuId) -> Option<CoreKind>, SysfsError> {
    let fast = sys.list("devices/cpu_core/cpus")?;
    let small = sys.list("devices/cpu_atom/cpus")?;
    let listed = fast.is_some() || small.is_some();
    let small = small.unwrap_or_default();
    Ok(move |pu| match (listed, small.contains(pu)) {
        (false, _) => None,
        (true, false) => Some(CoreKind::Performance),
        (true, true) => Some(CoreKind::Efficiency),
    })
}
