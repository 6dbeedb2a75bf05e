//! The POWER guest: cores of four hardware threads, and a PMU.
//!
//! It executes by counting, as the arm64 guest does. Its PMU counts the instructions of
//! the CPU that it belongs to, and as cycles the nanoseconds of virtual time (QEMU,
//! target/ppc/power8-pmu.c), in which other CPUs have their turns as well. It counts on
//! while the kernel runs, though asked for the user's side alone. No cache beyond the
//! first level is told, so the socket stands for the last-level cache's domain.

use super::guests::{Guest, nodes};
use crate::given::{Counters, Given, Scope};

/// A virtual nanosecond is a cycle, an instruction takes 2³.
const SHIFT: u32 = 3;
/// Protections that the emulator lacks, and does not start without a word about.
const UNPROTECTED: &str = "cap-cfpc=broken,cap-sbbc=broken,cap-ibs=broken,cap-ccf-assist=off";

/// POWER9: a socket of 2 cores × 4 threads.
pub fn power9() -> Guest {
    let regular = Given::regular("power9-smt4", 1, 2, 4);
    let counters = Counters {
        instructions: "instructions".to_owned(),
        at_a_time: 4,
        cycles_per_instruction: 1 << SHIFT,
        others: 5,
    };
    let words = format!(
        "-M pseries,{UNPROTECTED} -cpu power9 -accel tcg \
         -icount shift={SHIFT},sleep=off -rtc base=2026-01-01,clock=vm -seed 1 \
         -smp 8,sockets=1,cores=2,threads=4"
    );
    let mut guest = Guest {
        given: Given { counters: Some(counters), scope: Scope::Kernel, ..regular },
        architecture: "powerpc64le",
        machine: words.split_whitespace().map(str::to_owned).collect(),
        device_tree: Vec::new(),
        console: "hvc0",
    };
    nodes(&mut guest);
    guest
}
