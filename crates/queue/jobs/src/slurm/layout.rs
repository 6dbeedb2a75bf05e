//! Nodes, partitions and reservations, and which jobs a node can take.
//!
//! Administrators write all of it. It is read from lines of words `Name=value`, of which the first with a name counts:
//! what may hold anything (`Reason`, `Comment`) comes last.
//!
//! Slurm gives CPUs in whole units: cores where nodes are described by cores and threads, sockets with `CR_Socket`.
//! What is free on a node is counted in these units.
//!
//! ```text
//! a node could take a job := it is of the job's partition, and has its units of CPUs, memory, disk and features
//! it takes it now := it has the memory free, and no reservation begins before the job ends by its limit
//! ```
//!
//! # Properties
//! - What jobs can have of a node is read (`nodes_are_read_with_what_jobs_can_have_of_them`).
//! - Partitions that share or bound CPUs are left to Slurm
//!   (`partitions_whose_cpus_are_not_one_jobs_alone_are_left_to_slurm`).

mod lines;

use super::{LineError, Memory, QueuedJob, config_value, parse};

/// How Slurm gives CPUs and memory (`SelectTypeParameters`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selection {
    /// Does it give whole sockets?
    pub whole_sockets: bool,
    /// Does it count memory, too?
    pub with_memory: bool,
    /// Why nodes are left to Slurm.
    pub trouble: Option<String>,
}

/// A partition.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Partition {
    /// Its name.
    pub name: String,
    /// The memory of a job that asks for none.
    pub default_memory: Memory,
    /// Why nodes are left to Slurm.
    pub trouble: Option<String>,
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeState {
    /// Its name.
    pub name: String,
    /// Its address, by name or number.
    pub address: String,
    /// How many CPUs jobs can have.
    pub cpus: usize,
    /// How many CPUs no job has; 0 where no job may start.
    pub idle: usize,
    /// May jobs start there?
    pub takes_jobs: bool,
    /// How many CPUs a core has.
    pub cpus_of_core: usize,
    /// How many CPUs a socket has.
    pub cpus_of_socket: usize,
    /// Memory, MB.
    pub memory_mb: u64,
    /// Memory that no job has, MB.
    pub memory_free_mb: u64,
    /// Space for temporary files, MB.
    pub disk_mb: u64,
    /// The names of its features.
    pub features: Vec<String>,
    /// Its partitions.
    pub partitions: Vec<String>,
}

/// A reservation of nodes.
#[derive(Debug, Clone, PartialEq)]
pub struct Reservation {
    /// Its nodes.
    pub nodes: Vec<String>,
    /// From when, seconds since 1970.
    pub from_s: f64,
}

/// The nodes of a cluster, and how Slurm gives them to jobs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Layout {
    /// How CPUs and memory are given.
    pub selection: Selection,
    /// The partitions.
    pub partitions: Vec<Partition>,
    /// The nodes, by name.
    pub nodes: Vec<NodeState>,
    /// The reservations.
    pub reservations: Vec<Reservation>,
}

impl Selection {
    /// Reads what `scontrol show config` wrote.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let value = |name: &str| config_value(text, name).unwrap_or_default();
        let parameters = value("SelectTypeParameters").to_ascii_uppercase();
        let has = |name: &str| parameters.split(',').any(|one| one.trim() == name);
        let (kind, one_task) = (value("SelectType"), has("CR_ONE_TASK_PER_CORE"));
        let trouble = match kind {
            "select/cons_tres" | "select/cons_res" => {
                one_task.then(|| "Slurm gives each task a core (CR_ONE_TASK_PER_CORE)".to_owned())
            }
            _ => Some(format!("Slurm gives whole nodes, or others than one knows ({kind})")),
        };
        Self {
            whole_sockets: parameters.contains("CR_SOCKET"),
            with_memory: parameters.contains("MEMORY"),
            trouble,
        }
    }

    /// How many CPUs of a node Slurm gives at least.
    #[must_use]
    pub fn unit(&self, node: &NodeState) -> usize {
        if self.whole_sockets { node.cpus_of_socket.max(1) } else { node.cpus_of_core.max(1) }
    }
}

impl Layout {
    /// Reads what `scontrol --oneliner show node` wrote.
    #[must_use]
    pub fn parse_nodes(text: &str) -> (Vec<NodeState>, Vec<LineError>) {
        let (mut nodes, errors) = parse(text, "scontrol show node", lines::node);
        nodes.sort_by(|a, b| a.name.cmp(&b.name));
        nodes.dedup_by(|a, b| a.name == b.name);
        (nodes, errors)
    }

    /// Reads what `scontrol --oneliner show partition` wrote.
    #[must_use]
    pub fn parse_partitions(text: &str) -> (Vec<Partition>, Vec<LineError>) {
        parse(text, "scontrol show partition", lines::partition)
    }

    /// Reads what `scontrol --oneliner show reservation` wrote. A sentence says that there are none.
    #[must_use]
    pub fn parse_reservations(text: &str) -> (Vec<Reservation>, Vec<LineError>) {
        let lines = text.lines().filter(|line| line.starts_with("ReservationName="));
        parse(
            &lines.collect::<Vec<_>>().join("\n"),
            "scontrol show reservation",
            lines::reservation,
        )
    }

    /// Why the node of a job has to be left to Slurm; none: it can be chosen.
    #[must_use]
    pub fn trouble(&self, job: &QueuedJob) -> Option<String> {
        if let Some(other) = &job.needs.other {
            return Some(format!("it asks for {other}"));
        }
        if job.nodes > 1 {
            return Some(format!("it asks for {} nodes", job.nodes));
        }
        if job.partition.contains(',') {
            return Some("it asks for several partitions".to_owned());
        }
        let Some(partition) = self.partitions.iter().find(|one| one.name == job.partition) else {
            return Some(format!("its partition '{}' is not shown", job.partition.escape_debug()));
        };
        if let Some(trouble) = self.selection.trouble.as_ref().or(partition.trouble.as_ref()) {
            return Some(trouble.clone());
        }
        let fits = self.nodes.iter().any(|node| self.could_take(job, node));
        (!fits).then(|| "no node of its partition has what it asks for".to_owned())
    }

    /// Could a node take a job if nothing ran there?
    #[must_use]
    pub fn could_take(&self, job: &QueuedJob, node: &NodeState) -> bool {
        let needs = &job.needs;
        let unit = self.selection.unit(node);
        node.partitions.contains(&job.partition)
            && needs.units(job.cpus, unit) <= node.cpus / unit
            && self.memory_mb(job, node) <= node.memory_mb
            && needs.disk_mb <= node.disk_mb
            && needs.features.iter().all(|name| node.features.contains(name))
            && !needs.excluded.contains(&node.name)
    }

    /// Does a node that could take a job have memory for it now, and no reservation before the job's end?
    #[must_use]
    pub fn takes_now(&self, job: &QueuedJob, node: &NodeState, now_s: f64) -> bool {
        let ends_s = now_s + job.limit_s.unwrap_or(f64::INFINITY);
        let reserved = |one: &Reservation| one.nodes.contains(&node.name) && one.from_s < ends_s;
        let memory_mb = if self.selection.with_memory { self.memory_mb(job, node) } else { 0 };
        memory_mb <= node.memory_free_mb && !self.reservations.iter().any(reserved)
    }

    /// The memory of a node that Slurm gives a job, MB; where it does not count memory, how much there has to be.
    #[must_use]
    pub fn memory_mb(&self, job: &QueuedJob, node: &NodeState) -> u64 {
        let unit = self.selection.unit(node);
        // A CPU that is given with the core has its memory too.
        let cpus = (job.needs.units(job.cpus, unit) * unit) as u64;
        let of = |memory| match memory {
            Memory::OfNode(most) => Some(most),
            Memory::OfCpu(each) => Some(each.saturating_mul(cpus)),
            Memory::Default => None,
        };
        let partition = self.partitions.iter().find(|one| one.name == job.partition);
        let by_default = || of(partition?.default_memory);
        // Without a default it is all of the node's.
        let all = if self.selection.with_memory { node.memory_mb } else { 0 };
        of(job.needs.memory).or_else(by_default).unwrap_or(all)
    }
}
