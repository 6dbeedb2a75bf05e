//! The POWER guests: a core of POWER9 has four hardware threads here, one of POWER8 eight.
//!
//! POWER9 executes by counting, as the arm64 guest does. Its PMU counts the instructions of
//! the CPU that it belongs to, and as cycles the nanoseconds of virtual time (QEMU,
//! target/ppc/power8-pmu.c), in which other CPUs have their turns as well; they are switched
//! off. It counts on while the kernel runs, though asked for the user's side alone. No cache
//! beyond the first level is reported, so the socket stands for the last-level cache's domain.

use super::guests::{Guest, nodes};
use crate::given::{Counters, Given, Scope};

const CORES: u32 = 2;
/// A virtual nanosecond is a cycle, an instruction takes 2³.
const SHIFT: u32 = 3;
/// The firmware that goes on to the kernel at once (QEMU, pc-bios/README, vof.bin): the usual
/// one takes as long as Linux does.
const FIRMWARE: &str = "x-vof=on";
/// Protections that the emulator does not have, and does not start without a word about.
const UNPROTECTED: &str = "cap-cfpc=broken,cap-sbbc=broken,cap-ibs=broken,cap-ccf-assist=off";
/// Memory for each CPU in MiB: pages have 64 KiB.
const EACH_MIB: u32 = 64;

/// POWER9: a socket of 2 cores × 4 threads. It executes by counting.
pub fn power9() -> Guest {
    let counters = Counters {
        instructions: "instructions".to_owned(),
        at_a_time: 4,
        cycles_per_instruction: Some(1 << SHIFT),
        others: 2,
    };
    let how =
        format!("-accel tcg -icount shift={SHIFT},sleep=off -rtc base=2026-01-01,clock=vm -seed 1");
    let mut guest = guest("power9-smt4", "power9", 4, &how);
    guest.given.scope = Scope::Kernel;
    guest.given.counters = Some(counters);
    guest
}

/// POWER8: a socket of 2 cores × 8 threads. It does not execute by counting: Linux 6.12
/// hangs then on QEMU's POWER8 (10.0), before init. Its PMU counts each instruction all the
/// same, and how many are the kernel's depends on this machine.
pub fn power8() -> Guest {
    let mut guest = guest("power8-smt8", "power8", 8, "-accel tcg,thread=multi");
    guest.given.counters = Some(Counters {
        instructions: "instructions".to_owned(),
        at_a_time: 4,
        cycles_per_instruction: None,
        others: 5,
    });
    guest
}

fn guest(name: &str, cpu: &str, threads: u32, how: &str) -> Guest {
    let cpus = CORES * threads;
    let words = format!(
        "-M pseries,{FIRMWARE},{UNPROTECTED} -cpu {cpu} {how} \
         -smp {cpus},sockets=1,cores={CORES},threads={threads}"
    );
    let regular = Given::regular(name, 1, CORES, threads);
    let mut guest = Guest {
        given: Given { memory_mib: vec![EACH_MIB * cpus], ..regular },
        architecture: "powerpc64le",
        machine: words.split_whitespace().map(str::to_owned).collect(),
        device_tree: Vec::new(),
        console: "hvc0",
    };
    nodes(&mut guest);
    guest
}
