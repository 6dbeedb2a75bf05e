//! Lines of `scontrol --oneliner show`: words `Name=value`, of which the first with a name counts.

use super::{NodeState, Partition, Reservation};
use crate::slurm::{Memory, hosts, size, time};

/// The value of a word `Name=value`.
fn field<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    line.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
}

fn need<'a>(line: &'a str, name: &str) -> Result<&'a str, String> {
    field(line, name).ok_or_else(|| format!("no field {name}"))
}

/// Names between commas; Slurm has `(null)` for none.
fn names(list: &str) -> Vec<String> {
    let some = list.split(',').filter(|name| !matches!(*name, "" | "(null)"));
    some.map(str::to_owned).collect()
}

/// Reads the line of a node.
pub fn node(line: &str) -> Result<NodeState, String> {
    let number = |name: &str| {
        let text = need(line, name)?;
        text.parse::<u64>().map_err(|_| format!("{name} '{}' is no number", text.escape_debug()))
    };
    let count = |name: &str| {
        number(name).and_then(|count| size(count).ok_or_else(|| format!("{name} is too large")))
    };
    let name = need(line, "NodeName")?.to_owned();
    if name.is_empty() {
        return Err("a node without a name".to_owned());
    }
    let all = count("CPUTot")?;
    let cpus = count("CPUEfctv").unwrap_or(all).min(all);
    let takes_jobs = takes_jobs(need(line, "State")?);
    let idle = if takes_jobs { cpus.saturating_sub(count("CPUAlloc")?) } else { 0 };
    let sockets = count("Sockets").unwrap_or(1).max(1);
    let cores = sockets.saturating_mul(count("CoresPerSocket").unwrap_or(1)).max(1);
    let memory_mb = number("RealMemory").unwrap_or(0);
    let memory_mb = memory_mb.saturating_sub(number("MemSpecLimit").unwrap_or(0));
    Ok(NodeState {
        address: field(line, "NodeAddr")
            .filter(|text| !text.is_empty())
            .unwrap_or(&name)
            .to_owned(),
        cpus,
        idle,
        takes_jobs,
        // Where CPUs are cores, none has several.
        cpus_of_core: (all / cores).max(1),
        cpus_of_socket: (all / sockets).max(1),
        memory_mb,
        memory_free_mb: memory_mb.saturating_sub(number("AllocMem").unwrap_or(0)),
        disk_mb: number("TmpDisk").unwrap_or(0),
        features: names(field(line, "ActiveFeatures").unwrap_or_default()),
        partitions: names(field(line, "Partitions").unwrap_or_default()),
        name,
    })
}

/// May jobs start on a node of this state? A node that backfilling has planned for takes jobs that end in time, and one
/// that is powered down is woken.
fn takes_jobs(state: &str) -> bool {
    let mut words = state.split('+');
    let known =
        ["PLANNED", "CLOUD", "POWERED_DOWN", "POWERING_UP", "DYNAMIC_NORM", "DYNAMIC_FUTURE"];
    matches!(words.next(), Some("IDLE" | "MIXED" | "ALLOCATED"))
        && words.all(|word| known.contains(&word))
}

/// Reads the line of a partition.
pub fn partition(line: &str) -> Result<Partition, String> {
    let is = |name: &str, usual: &[&str]| match field(line, name) {
        Some(value) if !usual.contains(&value) => Some(format!("its partition has {name}={value}")),
        _ => None,
    };
    let unlimited = ["UNLIMITED"];
    let memory = |name: &str| field(line, name)?.parse::<u64>().ok().filter(|mb| *mb > 0);
    let (of_node, of_cpu) = (memory("DefMemPerNode"), memory("DefMemPerCPU"));
    let shared = field(line, "OverSubscribe").filter(|value| {
        // Jobs share CPUs only where they ask for it.
        *value != "NO" && !value.starts_with("YES")
    });
    Ok(Partition {
        name: need(line, "PartitionName")?.to_owned(),
        default_memory: of_node
            .map(Memory::OfNode)
            .or(of_cpu.map(Memory::OfCpu))
            .unwrap_or_default(),
        trouble: shared
            .map(|value| format!("its partition has OverSubscribe={value}"))
            .or_else(|| is("MaxCPUsPerNode", &unlimited))
            .or_else(|| is("MaxCPUsPerSocket", &unlimited))
            .or_else(|| is("ExclusiveUser", &["NO"]))
            .or_else(|| is("ExclusiveTopo", &["NO"]))
            .or_else(|| is("SelectTypeParameters", &["NONE"])),
    })
}

/// Reads the line of a reservation.
pub fn reservation(line: &str) -> Result<Reservation, String> {
    let nodes = match need(line, "Nodes")? {
        "" | "(null)" => Vec::new(),
        list => hosts(list)?,
    };
    let from_s = time(need(line, "StartTime")?).ok_or("StartTime is no time")?;
    Ok(Reservation { nodes, from_s })
}
