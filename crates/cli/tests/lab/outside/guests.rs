//! The guests, as QEMU is asked for them.

use super::device_tree::Edit;
use super::{arm64, power};
use crate::given::{Given, NODE_MIB, Scope};

/// A machine to emulate.
#[derive(Debug, Clone)]
pub struct Guest {
    /// What the kernel should find.
    pub given: Given,
    /// Rust's name of the architecture.
    pub architecture: &'static str,
    /// QEMU's arguments that make the machine.
    pub machine: Vec<String>,
    /// What is changed in the device tree that QEMU makes; nothing: QEMU's own is used.
    pub device_tree: Vec<Edit>,
    /// The serial line's name in the guest.
    pub console: &'static str,
}

/// Time is executed instructions, a virtual nanosecond each.
pub const COUNTING: &str =
    "-accel tcg -icount shift=0,sleep=off -rtc base=2026-01-01,clock=vm -seed 1";

/// All guests of the lab, those that take longest first.
pub fn all() -> Vec<Guest> {
    vec![
        power::power9(),
        arm64::clusters(),
        arm64::two_llcs(),
        x86_two_sockets(),
        power::power8(),
        x86_smt4(),
        x86_two_llcs(),
        x86_watched(),
        x86_timed("x86-timed", [1, 4, 2], Scope::Timed),
        x86_timed("x86-timed-two-llcs", [2, 2, 2], Scope::Timed),
        x86_timed("x86-timed-smt4", [1, 2, 4], Scope::Timed),
        arm64::timed(),
        x86_timed("x86-pods", [1, 4, 2], Scope::Pods),
        x86_kills(),
        x86_runtimes(),
    ]
}

fn x86(given: Given) -> Guest {
    x86_executing(given, "-accel tcg,thread=multi")
}

fn x86_executing(given: Given, how: &str) -> Guest {
    let words = format!("-M q35 -cpu Nehalem {how}");
    Guest {
        given,
        architecture: "x86_64",
        machine: words.split(' ').map(str::to_owned).collect(),
        device_tree: Vec::new(),
        console: "ttyS0",
    }
}

/// Memory, and the NUMA nodes that were given.
pub fn nodes(guest: &mut Guest) {
    let given = &guest.given;
    let mut words = format!("-m {}M", given.memory_mib.iter().sum::<u32>());
    for (node, (cpus, mib)) in given.nodes.iter().zip(&given.memory_mib).enumerate() {
        let (first, last) = (cpus[0], cpus[cpus.len() - 1]);
        let mut options = format!("node,nodeid={node},cpus={first}-{last}");
        if *mib > 0 {
            words += &format!(" -object memory-backend-ram,id=m{node},size={mib}M");
            options += &format!(",memdev=m{node}");
        }
        words += &format!(" -numa {options}");
    }
    guest.machine.extend(words.split_whitespace().map(str::to_owned));
}

/// `-smp` and one NUMA node for each socket.
fn sockets(guest: &mut Guest, sockets: u32, cores: u32, threads: u32) {
    let cpus = sockets * cores * threads;
    let words = format!("-smp {cpus},sockets={sockets},cores={cores},threads={threads}");
    guest.machine.extend(words.split_whitespace().map(str::to_owned));
    nodes(guest);
}

/// 2 sockets and NUMA nodes × 4 cores × 2 threads.
fn x86_two_sockets() -> Guest {
    let mut guest = x86(Given::regular("x86-smt2-numa", 2, 4, 2));
    sockets(&mut guest, 2, 4, 2);
    guest.given.scope = Scope::Whole;
    guest
}

/// One socket × 4 cores × 4 threads.
fn x86_smt4() -> Guest {
    let mut guest = x86(Given::regular("x86-smt4", 1, 4, 4));
    sockets(&mut guest, 1, 4, 4);
    guest
}

/// One socket × 2 cores × 4 threads; each core has a last-level cache of its own and is a
/// NUMA node, of which the second has no memory. (QEMU 10.0 dies of Intel processors with
/// dies or modules, and emulates no AMD topology, so a domain of several cores cannot be
/// had here; `arm64-two-llcs` has them.)
fn x86_two_llcs() -> Guest {
    let regular = Given::regular("x86-two-llcs", 1, 2, 4);
    let (llcs, nodes) = (regular.cores.clone(), regular.cores.clone());
    let mut guest = x86(Given { llcs, nodes, memory_mib: vec![NODE_MIB, 0], ..regular });
    let words = ["-M", "smp-cache.0.cache=l3,smp-cache.0.topology=core"];
    guest.machine.extend(words.map(str::to_owned));
    sockets(&mut guest, 1, 2, 4);
    guest
}

/// As the first, but it executes by counting: to the kernel all CPUs run at the same time,
/// however few there are outside.
fn x86_watched() -> Guest {
    let given = Given { scope: Scope::Watched, ..Given::regular("x86-watched", 2, 4, 2) };
    let mut guest = x86_executing(given, COUNTING);
    sockets(&mut guest, 2, 4, 2);
    guest
}

/// One socket × 4 cores × 2 threads, with programs of this machine's runtimes. As it executes by counting, no
/// CPU rests outside while others go on: a mask that is narrow for a moment would be so for a long time then.
fn x86_runtimes() -> Guest {
    let regular = Given::regular("x86-runtimes", 1, 4, 2);
    let mut guest = x86_executing(
        Given { scope: Scope::Runtimes, memory_mib: vec![2 * NODE_MIB], ..regular },
        COUNTING,
    );
    sockets(&mut guest, 1, 4, 2);
    guest
}

/// One socket × 2 cores × 2 threads: the fewer CPUs, the sooner a program is started and killed. It executes by
/// counting: where this machine lets a CPU rest for long, the kernel takes it for stuck, and ends the scheduler for that.
fn x86_kills() -> Guest {
    let given = Given { scope: Scope::Kills, ..Given::regular("x86-kills", 1, 2, 2) };
    let mut guest = x86_executing(given, COUNTING);
    sockets(&mut guest, 1, 2, 2);
    guest
}

/// As the watched one: threads of cores in sockets, each with a last-level cache, of one NUMA node.
fn x86_timed(name: &str, [packages, cores, threads]: [u32; 3], scope: Scope) -> Guest {
    let regular = Given::regular(name, packages, cores, threads);
    let (nodes, memory_mib) = (vec![regular.cpus()], vec![NODE_MIB]);
    let mut guest = x86_executing(Given { scope, nodes, memory_mib, ..regular }, COUNTING);
    sockets(&mut guest, packages, cores, threads);
    guest
}
