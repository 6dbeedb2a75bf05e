//! Time of one decision of `hysched`. `cargo bench -p symbiont-policy`.
//!
//! Threads of the nine categories, some of which change theirs each quantum; each
//! decision is applied when the next one is made. The first decision, when no thread
//! has a place yet, is distinguished.
#![allow(clippy::unwrap_used, reason = "a bench that cannot run stops")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use symbiont_counters::catalogue::{Quantity, Unit};
use symbiont_counters::{Characterizations, Measured, Measurement, Outputs};
use symbiont_machine::test_support::thread;
use symbiont_machine::{Placement, RunState, Sample};
use symbiont_policy::{Hysched, Policy, Variant, View};
use symbiont_topology::Topology;

const QUANTA: u32 = 101;
const NAMES: [&str; 9] = [
    "frontend_bound",
    "bad_speculation",
    "retiring",
    "core_bound",
    "store_bound",
    "l1_bound",
    "l2_bound",
    "l3_bound",
    "dram_bound",
];

/// What is measured is called the same for all threads of a machine.
fn outputs() -> Arc<Outputs> {
    let categories = NAMES.map(Arc::from).to_vec();
    let names = [&categories[..], &["ipc".into()]].concat();
    let list = ("TopB2M3L".into(), categories);
    Arc::new(Outputs { names, categories: vec![list], ..Outputs::default() })
}

fn measured(outputs: &Arc<Outputs>, category: usize, ipc: f64) -> Measured {
    let share = |index| if index == category { 0.5 } else { 0.05 };
    let fresh = |value, unit| Ok(Measurement { value, unit, coverage: 1.0, age: 0 });
    let shares = (0..NAMES.len()).map(|index| fresh(share(index), Unit::Fraction));
    let ipc = fresh(ipc, Unit::Per(Quantity::Instructions, Quantity::Cycles));
    Measured::new(Arc::clone(outputs), shares.chain([ipc]).collect())
}

fn main() {
    println!("one decision of hysched, microseconds, of {QUANTA} quanta");
    println!(
        "{:>8}{:>5}{:>10}{:>10}{:>10}{:>10}",
        "threads", "smt", "first", "least", "median", "most"
    );
    for (threads, smt) in [16_u32, 160, 1024].into_iter().flat_map(|n| [(n, 2), (n, 4)]) {
        let machine = Topology::synthetic(&format!("core:{} smt:{smt}", threads / smt)).unwrap();
        let all = machine.cpus();
        let runs = |number| {
            let mut new = thread(number, number, &all);
            new.state = RunState::Runnable;
            new
        };
        let sample = Sample { threads: (0..threads).map(runs).collect(), ..Sample::default() };
        let did = Characterizations::new();
        let mut policy = Hysched::new(Variant::TopB2M3L);
        let mut applied = Placement::new();
        let mut times = Vec::new();
        let outputs = outputs();
        for quantum in 0..QUANTA {
            let of = |number: u32| {
                // A seventh of the threads changes its category.
                let turn = if number % 7 == 0 { quantum } else { 0 };
                let category = (number.wrapping_mul(2_654_435_761) >> 16).wrapping_add(turn) % 9;
                measured(&outputs, category as usize, f64::from(number % 97) / 50.0)
            };
            let known: Vec<Measured> = (0..threads).map(of).collect();
            let mut view = View::new(&machine, &sample, &did, &applied);
            for (thread, known) in view.threads.iter_mut().zip(&known) {
                thread.measured = Some(known);
            }
            let begin = Instant::now();
            let placement = black_box(policy.place(black_box(&view)));
            times.push(begin.elapsed().as_secs_f64() * 1e6);
            applied = placement;
        }
        let first = times.remove(0);
        times.sort_by(f64::total_cmp);
        let (least, median, most) = (times[0], times[times.len() / 2], times[times.len() - 1]);
        println!("{threads:>8}{smt:>5}{first:>10.0}{least:>10.0}{median:>10.0}{most:>10.0}");
    }
}
