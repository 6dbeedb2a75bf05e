//! How many instructions a second of processor time simulates: two threads on a core, half of
//! them waiting for caches.
//!
//! An iteration is as many instructions as its name says, of both threads together, at least.

use divan::Bencher;
use divan::counter::ItemsCount;
use symbiont_profile::OpClass;
use symbiont_sim_cycle::{Branch, Chip, CoreSlot, CycleOptions, Op};
use symbiont_sim_fast::description::Description;
use symbiont_topology::CoreId;

fn main() {
    divan::main();
}

/// Instructions of an iteration.
const INSTRUCTIONS: u64 = 1_000_000;

/// Loads of many places, arithmetic on them, stores, branches of which some are hard.
fn ops(thread: u64, bytes: u64) -> impl Iterator<Item = Op> + Send {
    (0_u64..).map(move |n| {
        let spread = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let address = (thread << 40) + spread % bytes;
        let op = match n % 8 {
            0 | 4 => Op { sources: [8, 0], ..Op::memory(OpClass::Load, address) },
            1 => Op { sources: [1, 5], ..Op::plain(OpClass::FpAdd) },
            5 => Op { sources: [1, 3], ..Op::plain(OpClass::Integer) },
            6 => Op { sources: [1, 0], ..Op::memory(OpClass::Store, (thread << 41) + n % 4096) },
            7 => {
                let branch = Branch::Conditional { taken: n % 64 != 7 || spread % 4 == 0 };
                Op { branch, sources: [2, 0], ..Op::plain(OpClass::Branch) }
            }
            _ => Op { sources: [2, 0], ..Op::plain(OpClass::Integer) },
        };
        Op { pc: 0x40_0000 + (n % 2000) * 4, ..op }
    })
}

/// Two threads whose data take so many KiB each.
#[divan::bench(args = [16, 128, 4096], sample_count = 5, sample_size = 1)]
fn two_threads(bencher: Bencher<'_, '_>, kib: u64) {
    let Ok(machine) = Description::named("xeon-e5-2620v4") else { return };
    bencher.counter(ItemsCount::new(INSTRUCTIONS)).bench_local(|| {
        let slot = |thread| CoreSlot {
            core: CoreId(0),
            mode: 2,
            home: 0,
            stream: Box::new(ops(thread, kib << 10)),
        };
        let slots = (0..2).map(slot).collect();
        let Ok(mut chip) = Chip::new(&machine, slots, &CycleOptions::default()) else { return 0 };
        let retired = |chip: &Chip<'_>| (0..2).map(|slot| chip.counts(slot).instructions).sum();
        let mut until = 0.0;
        let mut sum: u64 = 0;
        while sum < INSTRUCTIONS {
            until += 10_000.0;
            chip.run_until(until);
            sum = retired(&chip);
        }
        sum
    });
}
