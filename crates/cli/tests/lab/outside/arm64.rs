//! The arm64 guests: two clusters of cores of different speed, and a PMU; and two clusters that only
//! their caches distinguish.
//!
//! The first executes by counting: each instruction takes eight nanoseconds of its virtual
//! time, in which its PMU counts cycles too, at one a nanosecond (QEMU,
//! target/arm/helper.c: `instructions_get_count` and `cycles_get_count`). Idle time is skipped. So
//! counts are known, and a run takes the same course each time.

use super::device_tree::Edit;
use super::guests::{COUNTING, Guest, nodes};
use crate::given::{Counters, Given, Scope};

/// A virtual nanosecond is a cycle, an instruction takes 2³.
const SHIFT: u32 = 3;
/// Names of the caches in the device tree, beyond QEMU's own.
const CACHES: u32 = 0x100;

/// A socket of 2 clusters × 2 cores × 2 threads; each cluster is a NUMA node and has an
/// L2 of its own, the last cache level. The second one's cores are the fast ones.
pub fn clusters() -> Guest {
    let regular = Given::regular("arm64-clusters", 2, 2, 2);
    let given = Given {
        packages: vec![regular.cpus()],
        capacities: vec![400, 400, 1024, 1024],
        counters: Some(Counters {
            instructions: "inst_retired".to_owned(),
            at_a_time: 6,
            cycles_per_instruction: Some(1 << SHIFT),
            // The kernel is not counted, and other CPUs are switched off.
            others: 0,
        }),
        scope: Scope::Kernel,
        ..regular
    };
    let how =
        format!("-accel tcg -icount shift={SHIFT},sleep=off -rtc base=2026-01-01,clock=vm -seed 1");
    guest(given, &how, "clusters=2,cores=2,threads=2")
}

/// A socket of 2 clusters × 4 cores without siblings; each cluster has an L2 of its own, the last
/// cache level.
pub fn two_llcs() -> Guest {
    let regular = Given::regular("arm64-two-llcs", 2, 4, 1);
    let all = vec![regular.cpus()];
    let memory_mib = vec![regular.memory_mib.iter().sum()];
    let given = Given { nodes: all.clone(), packages: all, memory_mib, ..regular };
    guest(given, "-accel tcg,thread=multi", "clusters=2,cores=4,threads=1")
}

/// The clusters of the first, where an instruction takes a nanosecond and only times are measured.
pub fn timed() -> Guest {
    let clusters = clusters().given;
    let given =
        Given { name: "arm64-timed".to_owned(), counters: None, scope: Scope::Timed, ..clusters };
    guest(given, COUNTING, "clusters=2,cores=2,threads=2")
}

fn guest(given: Given, how: &str, cores: &str) -> Guest {
    let words =
        format!("-M virt,gic-version=3 -cpu max,pauth-impdef=on {how} -smp 8,sockets=1,{cores}");
    let mut guest = Guest {
        device_tree: device_tree(&given),
        given,
        architecture: "aarch64",
        machine: words.split_whitespace().map(str::to_owned).collect(),
        console: "ttyAMA0",
    };
    nodes(&mut guest);
    guest
}

/// Capacities and last-level caches, which QEMU does not report.
fn device_tree(given: &Given) -> Vec<Edit> {
    let mut edits = Vec::new();
    for (cluster, cpus) in (0..).zip(&given.llcs) {
        let cache = format!("/cpus/l2-cache{cluster}");
        edits.extend([
            Edit::node(&cache),
            Edit::text(&cache, "compatible", "cache"),
            Edit::flag(&cache, "cache-unified"),
            Edit::number(&cache, "cache-level", 2),
            Edit::number(&cache, "cache-size", 1 << 20),
            Edit::number(&cache, "phandle", CACHES + cluster),
        ]);
        for cpu in cpus {
            let node = format!("/cpus/cpu@{cpu:x}");
            edits.push(Edit::number(&node, "next-level-cache", CACHES + cluster));
        }
    }
    for (core, capacity) in given.cores.iter().zip(&given.capacities) {
        for cpu in core {
            let node = format!("/cpus/cpu@{cpu:x}");
            edits.push(Edit::number(&node, "capacity-dmips-mhz", *capacity));
        }
    }
    edits
}
