//! How much of their time threads spend where they belong under a scheduler in the kernel, under the loads of
//! [`super::nudging`], and that their masks stay as they are. In guests of several kinds: on what it depends is how
//! CPUs share cores and caches, and how long the kernel takes there.

use symbiont_control::Holding;
use symbiont_linux::launch::be_urgent;
use symbiont_linux::machine::Keeping;

use super::kept::needs_a_scheduler;
use super::nudging::{ROWS, stayed};
use crate::given::Given;

/// Of the time of each load, threads are where they belong, in percent.
const LEAST: f64 = 99.0;

pub fn table(given: &Given) {
    needs_a_scheduler();
    be_urgent().unwrap();
    println!("| load | where decided, % | on that CPU | on its core | manager, % of a CPU |");
    println!("|---|---|---|---|---|");
    let mut wrong = Vec::new();
    for row in ROWS {
        let [kept] = stayed(given, row, Keeping::SchedExt, [(Holding::AsDecided, 2)]);
        let share = kept.where_decided(row);
        println!(
            "| {} | {share:.1} | {:.1} | {:.1} | {:.1} |",
            row.name, kept.on_cpu, kept.on_core, kept.cost
        );
        if share < LEAST {
            wrong.push(format!("{}: {kept:?}", row.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("; "));
}
