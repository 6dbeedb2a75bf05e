//! What a job needs of a node.
//!
//! Of all that Slurm lets a job ask for, this is understood: CPUs, memory, disk, features that all have to be there,
//! and nodes to leave out. What a job asks for beyond that is named ([`Needs::other`]); its node is for Slurm to
//! choose.
//!
//! # Properties
//! - It is read, or said not to be understood (`what_a_job_needs_is_read_or_said_not_to_be_understood`).
//! - CPUs are counted in Slurm's units (`cpus_are_counted_in_the_units_that_slurm_gives`).

use serde_json::Value;

use super::queue::{number, word};
use super::{hosts, size};

/// Memory that a job asks for, MB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Memory {
    /// What the partition gives; if that is not set, all memory of the node.
    #[default]
    Default,
    /// As much of its node.
    OfNode(u64),
    /// As much for each CPU.
    OfCpu(u64),
}

/// What a job of one node needs of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Needs {
    /// How many tasks it has.
    pub tasks: usize,
    /// How many CPUs each task has; 0: it does not ask.
    pub cpus_of_task: usize,
    /// Memory.
    pub memory: Memory,
    /// Space for temporary files, MB.
    pub disk_mb: u64,
    /// Features that the node has to have, all of them.
    pub features: Vec<String>,
    /// Nodes where it must not run.
    pub excluded: Vec<String>,
    /// What else it asks for, which is not understood.
    pub other: Option<String>,
}

impl Needs {
    /// Reads them of a job that `squeue --json` wrote.
    pub(super) fn of(one: &Value) -> Self {
        let count = |name: &str| number(one, name).unwrap_or(0);
        let memory = match (number(one, "memory_per_node"), number(one, "memory_per_cpu")) {
            (Some(most), _) if most > 0 => Memory::OfNode(most),
            (_, Some(each)) if each > 0 => Memory::OfCpu(each),
            _ => Memory::Default,
        };
        let mut other = other(one);
        let features = features(word(one, "features")).unwrap_or_else(|| {
            other.get_or_insert_with(|| "one of several features".to_owned());
            Vec::new()
        });
        let excluded = match word(one, "excluded_nodes") {
            "" => Vec::new(),
            list => hosts(list).unwrap_or_else(|_| {
                other
                    .get_or_insert_with(|| "nodes to leave out that are not understood".to_owned());
                Vec::new()
            }),
        };
        Self {
            tasks: size(count("tasks")).unwrap_or(1).max(1),
            cpus_of_task: size(count("cpus_per_task")).unwrap_or(0),
            memory,
            disk_mb: count("minimum_tmp_disk_per_node"),
            features,
            excluded,
            other,
        }
    }

    /// How many units of `unit` CPUs each (cores, sockets) so many CPUs take: Slurm gives whole ones.
    #[must_use]
    pub fn units(&self, cpus: usize, unit: usize) -> usize {
        let unit = unit.max(1);
        let all = cpus.div_ceil(unit);
        match self.cpus_of_task {
            0 | 1 => all,
            of_task => all.max(self.tasks.saturating_mul(of_task.div_ceil(unit))),
        }
        .max(1)
    }
}

/// What a job asks for that is not understood.
fn other(one: &Value) -> Option<String> {
    let words = [
        ("tres_per_job", "generic resources"),
        ("tres_per_node", "generic resources"),
        ("tres_per_socket", "generic resources"),
        ("cpus_per_tres", "generic resources"),
        ("memory_per_tres", "generic resources"),
        ("licenses", "licences"),
        ("resv_name", "a reservation"),
        ("prefer", "features that it prefers"),
        ("cluster_features", "a cluster"),
        ("burst_buffer", "a burst buffer"),
        ("network", "a network"),
        ("mcs_label", "nodes of a label"),
        ("het_job_id_set", "several parts"),
    ];
    let word = words.iter().find(|(name, _)| !word(one, name).is_empty()).map(|(_, what)| *what);
    let set = |name: &&(&str, &str)| number(one, name.0).is_some_and(|number| number > 0);
    let numbers = [
        ("sockets_per_node", "sockets"),
        ("cores_per_socket", "cores of a socket"),
        ("threads_per_core", "threads of a core"),
        ("tasks_per_core", "tasks of a core"),
        ("tasks_per_socket", "tasks of a socket"),
        ("tasks_per_board", "tasks of a board"),
        ("tasks_per_node", "tasks of a node"),
        ("core_spec", "specialized cores"),
        ("required_switches", "switches"),
        ("deadline", "a deadline"),
        ("array_job_id", "an array"),
        ("het_job_id", "several parts"),
    ];
    let number_of = numbers.iter().find(set).map(|(_, what)| *what);
    // Newer releases write this where none is asked for.
    const NO_THREADS: u64 = 0x7ffe;
    let threads = number(one, "thread_spec").filter(|threads| !matches!(threads, 0 | &NO_THREADS));
    // All its CPUs are to be of one node; with fewer than that node has to have, this is more than is counted.
    let of_node = number(one, "minimum_cpus_per_node").unwrap_or(0);
    let is_more = of_node > number(one, "cpus").unwrap_or(1).max(1);
    let is_shared = match one.get("shared") {
        None | Some(Value::Null) => false,
        Some(Value::Array(words)) => !words.is_empty(),
        Some(word) => word != "",
    };
    let of_task = super::queue::word(one, "tres_per_task");
    let is_true = |name: &str| one.get(name) == Some(&Value::Bool(true));
    word.or(number_of)
        .or(threads.map(|_| "specialized threads"))
        .or(is_more.then_some("more CPUs of a node than it gets"))
        .or(is_shared.then_some("nodes of its own, or shared ones"))
        .or((!of_task.split(',').all(|one| one.is_empty() || one.starts_with("cpu")))
            .then_some("generic resources"))
        .or(is_true("contiguous").then_some("contiguous nodes"))
        .map(str::to_owned)
}

/// The features of a list of which all have to be there; none: it says more than that.
fn features(list: &str) -> Option<Vec<String>> {
    let names: Vec<&str> = list.split('&').filter(|name| !name.is_empty()).collect();
    let is_name = |name: &&str| {
        name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '=' | ':'))
    };
    names.iter().all(is_name).then(|| names.into_iter().map(str::to_owned).collect())
}
