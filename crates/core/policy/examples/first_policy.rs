//! A first policy, complete: `apart` keeps threads that wait much on different cores.
//!
//! # Problem
//! A thread that retires few instructions in each cycle waits, mostly for memory. Two of them on one
//! core wait for the same caches.
//!
//! # Approach
//! A thread whose IPC is below a limit, the parameter `slow`, counts as slow. Slow threads are dealt
//! to the cores first, each to a core with the fewest slow ones, then the others, each to a core with
//! the fewest threads. Among equal cores a thread stays where it is.
//! A thread that was not measured counts as not slow.
//!
//! # Properties
//! - No two slow threads share a core while there is a core for each, and with IPC shuffled between
//!   threads they do so as by chance (`the_gain_vanishes_when_ipc_is_shuffled`).
//!
//! `cargo run --example first_policy -p symbiont-policy` shows the latter.

use std::time::Duration;

use symbiont_machine::{Assignment, Placement, Signal};
use symbiont_policy::{Entry, Kind, Parameter, Placeable, Policy, Requirements, View};
use symbiont_topology::CpuSet;

// ANCHOR: entry
/// How the policy appears in the list of policies.
pub const ENTRY: Entry = Entry {
    // What a user writes after `--policy`: a single lower-case word.
    name: "apart",
    // One line, what it does in plain words.
    summary: "keeps threads of low IPC on different cores",
    // Where it was published, if it was.
    paper: None,
    // How often it decides, unless the user says otherwise; the paper's value.
    quantum: Duration::from_millis(100),
    // Does it ask for a priority above the user's?
    boosts: false,
    // What users may set; the command line, help texts and configuration files follow from it.
    parameters: &[&Apart::SLOW],
    // Makes one. The settings have the parameters, and the seed of all that is random.
    make: |settings| Box::new(Apart { slow: settings.get(&Apart::SLOW) }),
};

// ANCHOR_END: entry

// ANCHOR: state
/// The policy. State that it keeps from quantum to quantum would be in further fields.
#[derive(Debug, Clone)]
pub struct Apart {
    slow: f64,
}

impl Apart {
    /// What a user sets by `--set slow=0.5`.
    pub const SLOW: Parameter<f64> = Parameter::new(
        "slow",
        Kind::Positive,
        0.8,
        "Instructions per cycle below which a thread counts as slow",
    );
}

// ANCHOR_END: state

/// A core, and what was dealt to it so far.
struct Core<'a> {
    cpus: &'a CpuSet,
    slow: usize,
    threads: usize,
}

impl Policy for Apart {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    // ANCHOR: requirements
    // Optional: a machine that does not count instructions can run it, though it gains nothing there.
    fn requirements(&self) -> Requirements {
        Requirements { optional: [Signal::Ipc].into(), ..Requirements::default() }
    }

    // ANCHOR_END: requirements
    // ANCHOR: place
    fn place(&mut self, view: &View<'_>) -> Placement {
        // Threads that may be placed, with the hardware threads that they may use. All others are in
        // the placement already, left to the OS.
        let (threads, mut placement) = view.placeable();
        let ipc = |it: &Placeable<'_, '_>| it.thread.measured.and_then(|all| all.value("ipc"));
        let is_slow = |it: &Placeable<'_, '_>| ipc(it).is_some_and(|ipc| ipc < self.slow);
        let (slow, others): (Vec<_>, Vec<_>) = threads.into_iter().partition(is_slow);

        let mut cores: Vec<Core<'_>> = (view.topology.cores().iter())
            .map(|core| Core { cpus: &core.cpus, slow: 0, threads: 0 })
            .collect();
        let dealt = slow.iter().map(|it| (it, true)).chain(others.iter().map(|it| (it, false)));
        for (it, is_slow) in dealt {
            let usable = cores.iter_mut().filter(|core| !core.cpus.is_disjoint(&it.allowed));
            let best = usable.min_by_key(|core| {
                let is_elsewhere = it.thread.cpu.is_none_or(|cpu| !core.cpus.contains(cpu));
                let (first, then) =
                    if is_slow { (core.slow, core.threads) } else { (core.threads, core.slow) };
                (first, then, is_elsewhere)
            });
            let Some(core) = best else { continue };
            core.threads += 1;
            core.slow += usize::from(is_slow);
            // The reason is for people, with the numbers that decided.
            let reason = match ipc(it) {
                Some(ipc) => format!("IPC {ipc:.2} (slow below {})", self.slow),
                None => "IPC not measured".to_owned(),
            };
            let cpus = core.cpus.intersection(&it.allowed);
            placement.insert(it.thread.id, Assignment::on(cpus, reason));
        }
        placement
    }
    // ANCHOR_END: place
}

/// What the policy gains on threads whose IPC is known, and what is left of it without its signal.
#[allow(clippy::unwrap_used, reason = "a control that cannot be carried out fails")]
mod negative_control {
    use rand::SeedableRng;
    use rand::seq::SliceRandom;
    use rand_pcg::Pcg64Mcg;
    use symbiont_counters::catalogue::{Unit, Value};
    use symbiont_counters::{Characterizations, Measured, Measurements};
    use symbiont_machine::test_support::thread;
    use symbiont_machine::{Sample, Target};
    use symbiont_policy::Settings;
    use symbiont_topology::Topology;

    use super::*;

    /// Four slow threads and four others, on four cores of two hardware threads.
    const IPC: [f64; 8] = [0.3, 0.4, 0.5, 0.6, 1.5, 1.6, 1.7, 1.8];

    /// The IPC that the policy is shown.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Shown {
        /// Each thread's own.
        Own,
        /// That of another thread, drawn at random.
        Shuffled,
    }

    /// Share of the slow threads that have a slow co-runner, over many draws of the slow threads.
    pub fn with_slow_co_runner(settings: &Settings, shown: Shown) -> f64 {
        const DRAWS: usize = 500;
        let machine = Topology::synthetic("core:4 smt:2").unwrap();
        let mut random = Pcg64Mcg::seed_from_u64(1);
        let mut found = 0;
        for _ in 0..DRAWS {
            let mut truth = IPC;
            truth.shuffle(&mut random);
            let mut shown_ipc = truth;
            if shown == Shown::Shuffled {
                shown_ipc.shuffle(&mut random);
            }
            let core = cores(settings, &machine, &shown_ipc);
            let is_slow = |at: usize| truth[at] < 1.0;
            let has_slow_co_runner =
                |at: usize| (0..8).any(|o| o != at && is_slow(o) && core[o] == core[at]);
            found += (0..8).filter(|&at| is_slow(at) && has_slow_co_runner(at)).count();
        }
        found as f64 / (4 * DRAWS) as f64
    }

    /// The hardware threads that each thread is sent to, by the IPC that the policy is shown.
    fn cores(settings: &Settings, machine: &Topology, ipc: &[f64]) -> Vec<CpuSet> {
        let threads: Vec<_> = (0..8).map(|n| thread(n, n, &machine.cpus())).collect();
        let measured =
            |ipc: f64| Measured::of([("ipc", Value { value: ipc, unit: Unit::Fraction })]);
        let measurements: Measurements =
            threads.iter().zip(ipc).map(|(thread, ipc)| (thread.id, measured(*ipc))).collect();
        let sample = Sample { threads, ..Sample::default() };
        let (did, applied) = (Characterizations::new(), Placement::new());
        let view = View::new(machine, &sample, &did, &applied).measured(&measurements);
        let placement = (ENTRY.make)(settings).place(&view);
        let cpus = |thread: &symbiont_machine::ThreadSample| match &placement[&thread.id].target {
            Target::Cpus(cpus) => cpus.clone(),
            Target::Os => CpuSet::new(),
        };
        sample.threads.iter().map(cpus).collect()
    }

    // ANCHOR: control
    #[test]
    fn the_gain_vanishes_when_ipc_is_shuffled() {
        let settings = Settings::default();
        assert_eq!(with_slow_co_runner(&settings, Shown::Own), 0.0);
        // By chance: its co-runner is one of the seven others, three of which are slow.
        let shuffled = with_slow_co_runner(&settings, Shown::Shuffled);
        assert!((shuffled - 3.0 / 7.0).abs() < 0.05, "{shuffled}");
    }
    // ANCHOR_END: control

    #[test]
    fn the_parameter_decides_which_threads_are_slow() {
        // No thread is as slow as that, so they are dealt as they come.
        let settings = Settings::default().with(&Apart::SLOW, &0.01).unwrap();
        assert!(with_slow_co_runner(&settings, Shown::Own) > 0.3);
        assert!(ENTRY.values([("slow", "0")]).is_err());
    }
}

fn main() {
    use negative_control::{Shown, with_slow_co_runner};
    let settings = symbiont_policy::Settings::default();
    println!("Slow threads that have a slow co-runner, of four slow ones among eight:");
    for (shown, words) in [(Shown::Own, "their own IPC"), (Shown::Shuffled, "shuffled IPC")] {
        let share = 100.0 * with_slow_co_runner(&settings, shown);
        println!("  placed by {words:<14} {share:5.1} %");
    }
    println!("  by chance                {:5.1} %", 300.0 / 7.0);
}
