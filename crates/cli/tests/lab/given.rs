//! What a guest was given: the truth that scenarios hold Symbiont against.
//!
//! CPU numbers are the guest kernel's. All lists are in ascending order.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Where the guest finds it.
pub const FILE: &str = "/lab/given.json";

/// Names of the scenarios that are to be played, as JSON.
pub const SCENARIOS: &str = "/lab/scenarios.json";

/// What is to be done with programs of runtimes, as JSON; only where such are brought along.
pub const RUNTIMES: &str = "/lab/runtimes.json";

/// Memory of a NUMA node, where nothing else is said.
pub const NODE_MIB: u32 = 512;

/// A machine as it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Given {
    /// The guest's name.
    pub name: String,
    /// CPUs of each core.
    pub cores: Vec<Vec<u32>>,
    /// CPUs of each last-level-cache domain.
    pub llcs: Vec<Vec<u32>>,
    /// CPUs of each NUMA node.
    pub nodes: Vec<Vec<u32>>,
    /// Memory of each NUMA node in MiB; some may have none.
    pub memory_mib: Vec<u32>,
    /// CPUs of each socket.
    pub packages: Vec<Vec<u32>>,
    /// Speed of each core, 1024 for the fastest.
    pub capacities: Vec<u32>,
    /// What counts instructions and cycles, if anything does.
    pub counters: Option<Counters>,
    /// How much is tried here.
    pub scope: Scope,
}

/// How much is tried on a guest: slower guests need not repeat what others show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Scope {
    /// Nothing: it is recorded what the kernel does.
    Watched,
    /// How much of their time threads spend where they are put.
    Timed,
    /// What programs of runtimes count.
    Runtimes,
    /// How soon changes of pods are followed.
    Pods,
    /// That nothing is left of a scheduler in the kernel, however often it is killed.
    Kills,
    /// What differs from machine to machine.
    Machine,
    /// And what differs between kernels of different architectures.
    Kernel,
    /// All; the plain test command boots this guest.
    Whole,
}

/// Programs of runtimes, and what is to be done with them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Runtimes {
    /// Their commands by name.
    pub programs: BTreeMap<String, Vec<String>>,
    /// Each is run in each of these ways.
    pub ways: Vec<Way>,
    /// As often as this.
    pub runs: u32,
    /// No run starts later, by the guest's clock.
    pub minutes: Option<f64>,
    /// Files that the options name: path and text.
    pub files: BTreeMap<String, String>,
}

/// How programs are run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Way {
    pub name: String,
    /// Of `symbiont run`.
    pub options: Vec<String>,
    /// It must be found that programs count otherwise; else never.
    pub control: bool,
}

/// A PMU, as it is emulated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// The event of instructions, as the kernel calls it.
    pub instructions: String,
    /// How often instructions can be counted at a time.
    pub at_a_time: usize,
    /// What each instruction takes, where time is counted by instructions; else it is not known.
    pub cycles_per_instruction: Option<u32>,
    /// What others or the kernel do is counted too: so much at the most, in percent.
    pub others: u32,
}

impl Given {
    /// Sockets of cores of hardware threads, a NUMA node and a last-level cache
    /// for each socket. CPUs are numbered through thread by thread, core by core.
    pub fn regular(name: &str, sockets: u32, cores: u32, threads: u32) -> Self {
        let groups = |size: u32| -> Vec<Vec<u32>> {
            let all: Vec<u32> = (0..sockets * cores * threads).collect();
            all.chunks(size as usize).map(<[u32]>::to_vec).collect()
        };
        let packages = groups(cores * threads);
        Self {
            name: name.to_owned(),
            cores: groups(threads),
            llcs: packages.clone(),
            nodes: packages.clone(),
            memory_mib: vec![NODE_MIB; sockets as usize],
            capacities: vec![1024; (sockets * cores) as usize],
            packages,
            counters: None,
            scope: Scope::Machine,
        }
    }

    /// The longest that a scenario may take, by the guest's clock; a few seconds on an idle machine, but for
    /// measurements.
    pub fn longest(&self) -> Duration {
        Duration::from_secs(match self.scope {
            Scope::Timed | Scope::Pods => 900,
            Scope::Kills => 3600,
            Scope::Runtimes => 2 * 3600,
            _ => 300,
        })
    }

    /// Hardware threads of a core.
    pub fn smt(&self) -> usize {
        self.cores[0].len()
    }

    /// CPUs by what caches, memory and speed divide: cores of one speed and one NUMA node, and of one
    /// last-level cache where cores share one.
    pub fn domains(&self) -> Vec<Vec<u32>> {
        let place = |groups: &[Vec<u32>], cpu| groups.iter().position(|group| group.contains(&cpu));
        let mut domains = BTreeMap::<_, Vec<u32>>::new();
        for (core, speed) in self.cores.iter().zip(&self.capacities) {
            let llc = place(&self.llcs, core[0]).filter(|llc| self.llcs[*llc] != *core);
            let key = (place(&self.nodes, core[0]), llc, speed);
            domains.entry(key).or_default().extend(core);
        }
        domains.into_values().collect()
    }

    /// The cores of a domain.
    pub fn cores_in(&self, domain: &[u32]) -> Vec<&Vec<u32>> {
        self.cores.iter().filter(|core| domain.contains(&core[0])).collect()
    }

    /// All CPUs.
    pub fn cpus(&self) -> Vec<u32> {
        self.cores.iter().flatten().copied().collect()
    }
}
