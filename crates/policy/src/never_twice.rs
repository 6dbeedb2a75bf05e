//! `never-twice`: never the same program twice on a core, as far as that is
//! possible. A baseline that costs nothing.
//!
//! Copies of a program want the same things of a core. A policy that parts them needs no
//! counters, so what a policy gains by measuring is what it gains beyond this.
//!
//! Threads are dealt to cores program by program, the one with the most threads
//! first; each goes to a core that has the fewest threads for its hardware
//! threads, among these to the one with the fewest threads of its program, among
//! these to the one where it is. So equal quanta move no thread
//! (`no_thread_moves_when_nothing_changes`). A program is known by its name, and all
//! its threads count as that program.
//!
//! Properties: with SMT2 and equal limits no pairing has fewer pairs of one
//! program (`pairs_of_one_program_are_as_few_as_possible`). With the names
//! shuffled between threads there are as many as by chance
//! (`shuffled_names_part_no_threads`).

use std::collections::BTreeMap;
use std::time::Duration;

use symbiont_machine::{Assignment, Placement, RunState};
use symbiont_topology::CpuSet;

use crate::{Entry, Placeable, Policy, ThreadView, View};

pub(crate) const ENTRY: Entry = Entry {
    name: "never-twice",
    summary: "keeps threads of one program on different cores; needs no counters",
    paper: None,
    quantum: Duration::from_millis(500),
    boosts: false,
    parameters: &[],
    make: |_| Box::new(NeverTwice),
};

/// Parts the threads of each program.
#[derive(Debug, Clone, Copy, Default)]
pub struct NeverTwice;

/// A core and what is to run there.
struct CoreLoad<'a> {
    cpus: &'a CpuSet,
    taken: usize,
    /// Threads by program.
    programs: BTreeMap<&'a str, usize>,
}

/// A thread to be assigned.
struct Candidate<'a> {
    thread: &'a ThreadView<'a>,
    program: &'a str,
    allowed: CpuSet,
}

impl Policy for NeverTwice {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn place(&mut self, view: &View<'_>) -> Placement {
        let (threads, mut placement) = view.placeable();
        let mut candidates = Vec::with_capacity(threads.len());
        let mut sizes: BTreeMap<&str, usize> = BTreeMap::new();
        for Placeable { thread, allowed, .. } in threads {
            let program = view.program_name(thread);
            *sizes.entry(program).or_default() += 1;
            candidates.push(Candidate { thread, program, allowed });
        }
        candidates.sort_by_key(|c| {
            let size = sizes.get(c.program).copied().unwrap_or(0);
            let asleep = c.thread.state != RunState::Runnable;
            (asleep, std::cmp::Reverse(size), c.program, c.thread.id)
        });
        let load = |cpus| CoreLoad { cpus, taken: 0, programs: BTreeMap::new() };
        let mut slots: Vec<CoreLoad<'_>> =
            view.topology.cores().iter().map(|core| load(&core.cpus)).collect();
        for candidate in candidates {
            if let Some(load) = best(&mut slots, &candidate) {
                load.taken += 1;
                let same = load.programs.entry(candidate.program).or_default();
                let reason = match *same {
                    0 => format!("no other thread of '{}' on its core", candidate.program),
                    n => format!("{n} other of '{}' on its core: all have some", candidate.program),
                };
                *same += 1;
                let cpus = load.cpus.intersection(&candidate.allowed);
                placement.insert(candidate.thread.id, Assignment::on(cpus, reason));
            }
        }
        placement
    }
}

/// The core where a thread goes.
fn best<'s, 'a>(
    slots: &'s mut [CoreLoad<'a>],
    candidate: &Candidate<'_>,
) -> Option<&'s mut CoreLoad<'a>> {
    let fits = |load: &&mut CoreLoad<'_>| !load.cpus.intersection(&candidate.allowed).is_empty();
    slots.iter_mut().filter(fits).min_by_key(|load| {
        let rounds = load.taken / load.cpus.len().max(1);
        let filled = load.taken * 1024 / load.cpus.len().max(1);
        let same = load.programs.get(candidate.program).copied().unwrap_or(0);
        let away = candidate.thread.cpu.is_none_or(|pu| !load.cpus.contains(pu));
        (rounds, filled, same, away)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand::seq::SliceRandom;
    use rand_pcg::Pcg64Mcg;
    use symbiont_counters::Characterizations;
    use symbiont_machine::test_support::thread;
    use symbiont_machine::{Program, ProgramId, Sample, Target, ThreadSample};
    use symbiont_topology::{CoreId, PuId, Topology};

    use super::*;

    fn sample(machine: &Topology, names: &[usize]) -> Sample {
        let runs = |n: u32| {
            let mut new: ThreadSample = thread(n, n, &machine.cpus());
            new.state = RunState::Runnable;
            new
        };
        let threads = (0..names.len() as u32).map(runs).collect();
        let named = |(n, name): (u32, &usize)| Program::new(ProgramId(n), format!("p{name}"));
        Sample { threads, programs: (0..).zip(names).map(named).collect(), ..Sample::default() }
    }

    /// The core of each thread.
    fn cores(machine: &Topology, sample: &Sample) -> Vec<CoreId> {
        let (known, applied) = (Characterizations::new(), Placement::new());
        let placement = NeverTwice.place(&View::new(machine, sample, &known, &applied));
        let core = |t: &ThreadSample| match &placement[&t.id].target {
            Target::Cpus(cpus) => machine.core_of(cpus.first().unwrap()).unwrap().id,
            Target::Os => panic!("{t:?} is left to the OS"),
        };
        sample.threads.iter().map(core).collect()
    }

    /// Pairs on one core of one program, which `truth` names.
    fn same(cores: &[CoreId], truth: &[usize]) -> usize {
        let pairs = (0..cores.len()).flat_map(|a| (0..a).map(move |b| (a, b)));
        pairs.filter(|&(a, b)| cores[a] == cores[b] && truth[a] == truth[b]).count()
    }

    proptest! {
        #[test]
        fn pairs_of_one_program_are_as_few_as_possible(
            names in prop::collection::vec(0usize..4, 1..12),
        ) {
            let machine = Topology::synthetic("core:6 smt:2").unwrap();
            let cores = cores(&machine, &sample(&machine, &names));
            let largest = (0..4).map(|p| names.iter().filter(|n| **n == p).count()).max().unwrap();
            prop_assert_eq!(same(&cores, &names), largest.saturating_sub(6));
            let on = |core| cores.iter().filter(|c| **c == core).count();
            prop_assert!(cores.iter().all(|core| on(*core) <= names.len().div_ceil(6)));
        }
    }

    #[test]
    fn no_thread_moves_when_nothing_changes() {
        let machine = Topology::synthetic("core:4 smt:2").unwrap();
        let mut sample = sample(&machine, &[0, 0, 1, 1, 2, 2, 3, 3]);
        // They start in another order than the policy would deal them by itself.
        for (t, pu) in sample.threads.iter_mut().zip([7, 4, 2, 0, 1, 3, 5, 6]) {
            t.cpu = Some(PuId(pu));
        }
        let first = cores(&machine, &sample);
        assert_eq!(same(&first, &[0, 0, 1, 1, 2, 2, 3, 3]), 0);
        for (t, core) in sample.threads.iter_mut().zip(&first) {
            t.cpu = machine.cores()[core.0 as usize].cpus.first();
        }
        assert_eq!(cores(&machine, &sample), first);
    }

    #[test]
    fn shuffled_names_part_no_threads() {
        let machine = Topology::synthetic("core:4 smt:2").unwrap();
        let mut truth = [0, 0, 0, 0, 1, 1, 1, 1];
        let mut random = Pcg64Mcg::seed_from_u64(1);
        let mut pairs = 0;
        for _ in 0..500 {
            truth.shuffle(&mut random);
            assert_eq!(same(&cores(&machine, &sample(&machine, &truth)), &truth), 0);
            let mut reported = truth;
            reported.shuffle(&mut random);
            pairs += same(&cores(&machine, &sample(&machine, &reported)), &truth);
        }
        // By chance three of the seven others are of the same program.
        assert!((pairs as f64 / 2000.0 - 3.0 / 7.0).abs() < 0.05, "{pairs}");
    }
}
