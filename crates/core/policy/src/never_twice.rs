//! `never-twice`: never the same program twice on a core, as far as that is
//! possible. A baseline that costs nothing.
//!
//! Copies of a program want the same things of a core. A policy that parts them needs no
//! counters, so what a policy gains by measuring is what it gains beyond this.
//!
//! Threads are dealt to cores, those with the fewest hardware threads to choose from
//! first, or others might take theirs (`a_thread_that_pinned_itself_is_dealt_first`);
//! then program by program, the one with the most threads first; each goes to a core
//! that has the fewest threads for its hardware
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
            (asleep, c.allowed.len(), std::cmp::Reverse(size), c.program, c.thread.id)
        });
        let load = |cpus| CoreLoad { cpus, taken: 0, programs: BTreeMap::new() };
        let mut slots: Vec<CoreLoad<'_>> =
            view.topology.cores().iter().map(|core| load(&core.cpus)).collect();
        let mut dealt = Vec::with_capacity(candidates.len());
        for candidate in candidates {
            if let Some(at) = best(&slots, &candidate) {
                slots[at].taken += 1;
                *slots[at].programs.entry(candidate.program).or_default() += 1;
                dealt.push((candidate, at));
            }
        }
        for (candidate, at) in dealt {
            let cpus = slots[at].cpus.intersection(&candidate.allowed);
            let assignment = Assignment::on(cpus, reason(&slots, at, &candidate));
            placement.insert(candidate.thread.id, assignment);
        }
        placement
    }
}

/// The core where a thread goes, by its index.
fn best(slots: &[CoreLoad<'_>], candidate: &Candidate<'_>) -> Option<usize> {
    let open = slots.iter().enumerate().filter(|(_, load)| load.offers(candidate));
    let best = open.min_by_key(|(_, load)| {
        let rounds = load.taken / load.cpus.len().max(1);
        let filled = load.taken * 1024 / load.cpus.len().max(1);
        let away = candidate.thread.cpu.is_none_or(|pu| !load.cpus.contains(pu));
        (rounds, filled, load.of(candidate.program), away)
    });
    best.map(|(at, _)| at)
}

/// What became of a thread once all were dealt.
fn reason(slots: &[CoreLoad<'_>], at: usize, candidate: &Candidate<'_>) -> String {
    let program = candidate.program;
    let others = slots[at].of(program) - 1;
    let mut elsewhere = slots.iter().enumerate().filter(|(core, _)| *core != at);
    let why = match others {
        0 => return format!("no other thread of '{program}' is dealt to its core"),
        _ if elsewhere.any(|(_, load)| load.offers(candidate) && load.of(program) < others) => {
            "cores are filled evenly before programs are parted"
        }
        _ => "every core that it may use has as many",
    };
    format!("{others} other of '{program}' dealt to its core: {why}")
}

impl CoreLoad<'_> {
    fn offers(&self, candidate: &Candidate<'_>) -> bool {
        !self.cpus.is_disjoint(&candidate.allowed)
    }

    /// Threads of a program.
    fn of(&self, program: &str) -> usize {
        self.programs.get(program).copied().unwrap_or(0)
    }
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
    fn a_thread_that_pinned_itself_is_dealt_first() {
        let machine = Topology::synthetic("core:2").unwrap();
        for pinned in 0..2 {
            let mut sample = sample(&machine, &[0, 0]);
            sample.threads[pinned].allowed = std::sync::Arc::new(PuId(0).into());
            let (known, applied) = (Characterizations::new(), Placement::new());
            let placement = NeverTwice.place(&View::new(&machine, &sample, &known, &applied));
            let targets: std::collections::BTreeSet<_> =
                placement.values().map(|a| a.target.cpus().cloned().unwrap().to_string()).collect();
            assert_eq!(targets.len(), 2, "{placement:?}");
            assert!(placement.values().all(|a| a.reason.starts_with("no other")), "{placement:?}");
        }
    }

    #[test]
    fn reasons_say_what_became_of_it() {
        let machine = Topology::synthetic("core:2 smt:2").unwrap();
        let sample = sample(&machine, &[0, 0, 0, 1]);
        let (known, applied) = (Characterizations::new(), Placement::new());
        let placement = NeverTwice.place(&View::new(&machine, &sample, &known, &applied));
        let reasons: Vec<&str> = placement.values().map(|a| a.reason.as_ref()).collect();
        let shared = "1 other of 'p0' dealt to its core: every core that it may use has as many";
        let alone = |program| format!("no other thread of '{program}' is dealt to its core");
        assert_eq!(reasons, [shared, &alone("p0"), shared, &alone("p1")]);
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
