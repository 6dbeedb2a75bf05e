//! How threads are kept where a policy wants them.
//!
//! # Problem
//! A program counts the CPUs of its mask and acts on that, often for life. A thread that is only nudged keeps
//! its mask, but the OS may move it away again, and goes on doing so where the placement disagrees with its
//! own balance: two threads on one core next to an idle one, nine threads on eight hardware threads.
//!
//! # Approach
//! By [`Holding`]. As decided, a target is nudged to, and again at each quantum that finds a running thread
//! elsewhere. [`Disagreement`] keeps the last [`CHECKS`] of a thread whose target stays the same, and climbs:
//!
//! ```text
//! exact     away in more than 3/8 of the checks → core: any hardware thread of the target's cores, where it
//!                                                 has several; else insisted
//! core      away in more than 3/8               → insisted, while that is no more than MOST threads, nor than
//!                                                 there are hardware threads
//! any       away in more than 3/4               → held, where that is allowed; else left to the OS
//! all but exact, after REST quanta, twice as many each time → exact
//! ```
//!
//! Insisted: it is looked at within the quantum as well, and nudged where it is seen away. So is one that sleeps
//! where it should not be, which no nudge moves. One that was ready for less than [`HARDLY`] of the last
//! quantum, a helper of a runtime, is left where it wakes. Held is a rung only under [`Holding::WhereNeeded`],
//! with a mask of at least as many hardware threads as its program has ready threads.
//!
//! # Terms and units
//! *Check*: a quantum in which the thread was runnable and its target was the one of the quantum before.
//! *Away*: it ran, or was about to run, on no hardware thread of its target.
//!
//! # Properties
//! - A thread that stays is left as decided (`a_thread_that_stays_is_nudged_exactly`); one that is moved away
//!   is nudged to its core (`a_thread_that_strays_is_nudged_to_its_core`), one that leaves it is insisted on
//!   (`a_thread_that_leaves_its_core_is_insisted_on`), few at a time (`few_threads_are_insisted_on`).
//! - All of it is tried again (`a_thread_is_nudged_exactly_again_after_a_while`,
//!   `a_thread_that_never_stays_is_left_alone_and_tried_again`).
//! - Sleepers: `one_that_sleeps_elsewhere_is_looked_at_until_it_wakes`, `a_thread_that_hardly_runs_is_left_where_it_wakes`.
//! - No mask is narrower than what is ready (`no_mask_is_narrower_than_the_ready_threads_of_its_program`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use symbiont_counters::Characterizations;
use symbiont_machine::{
    Assignment, Placement, ProgramId, RunState, Sample, Target, ThreadId, ThreadSample,
};
use symbiont_topology::{CpuSet, Topology};

/// Checks on which a rung is judged.
const CHECKS: u32 = 16;
/// Quanta for which a thread is kept in another way before it is tried again.
const REST: u64 = 64;
/// Threads that are insisted on at a time: a hundred looks a second at each may take a hundredth of a CPU.
const MOST: usize = 8;
/// Share of a quantum below which a thread is not worth a nudge.
const HARDLY: f64 = 0.02;
/// The longest rest.
const LONGEST_REST: u64 = 1024;

/// Whether masks stay narrow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Holding {
    /// As the policy decided: nudged, but for what a class or a baseline holds.
    #[default]
    AsDecided,
    /// The same, and held where nudging was seen not to be enough.
    WhereNeeded,
    /// Every target is held: for experiments that compare placements and not how they are kept.
    Always,
}

/// How a thread is kept on its target.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Rung {
    /// Nudged to just the target.
    #[default]
    Exact,
    /// Nudged to any hardware thread of the target's cores.
    Core,
    /// The same, and looked at several times within a quantum.
    Insisted,
    /// Held there.
    Held,
    /// Left to the OS.
    Left,
}

/// What is known of a thread.
#[derive(Debug, Clone, Default)]
struct Checked {
    rung: Rung,
    /// The target that the policy decided at the last quantum.
    target: Target,
    checks: u32,
    away: u32,
    /// Until which quantum the rung is kept, if it is not the first.
    until: u64,
    /// For how many quanta it was kept the last time.
    rest: u64,
}

/// Which threads the OS does not leave where they are put.
#[derive(Debug, Clone, Default)]
pub(crate) struct Disagreement {
    quantum: u64,
    threads: BTreeMap<ThreadId, Checked>,
    /// Those that sleep and were last seen elsewhere.
    asleep: Vec<ThreadId>,
    /// Threads that may be looked at within a quantum: no more run at a time than there are hardware threads.
    most: usize,
}

impl Disagreement {
    /// How many threads are kept in another way than was decided.
    pub(crate) fn count(&self) -> usize {
        self.threads.values().filter(|known| known.rung != Rung::Exact).count()
    }

    fn on(&self, rung: Rung) -> usize {
        self.threads.values().filter(|known| known.rung == rung).count()
    }

    /// The threads that are to be looked at within a quantum, and where they are to be.
    pub(crate) fn insisted(&self, placement: &Placement) -> Vec<(ThreadId, CpuSet)> {
        let insisted = self.threads.iter().filter(|(_, known)| known.rung == Rung::Insisted);
        let all = insisted.map(|(id, _)| id).chain(&self.asleep);
        let place = |id: &ThreadId| placement.get(id)?.target.cpus().cloned();
        all.filter_map(|id| Some((*id, place(id)?))).take(self.most).collect()
    }

    /// Judges what the last quantum showed, and changes how the policy's decision is kept.
    pub(crate) fn adjust(
        &mut self,
        holding: Holding,
        topology: &Topology,
        sample: &Sample,
        did: &Characterizations,
        placement: &mut Placement,
    ) {
        if holding == Holding::Always {
            for assignment in placement.values_mut().filter(|assignment| !assignment.is_held()) {
                assignment.mask = assignment.target.clone();
            }
            return;
        }
        self.quantum += 1;
        self.most = topology.cpus().len().min(MOST);
        let ready = ready_by_program(sample, did);
        let mut insisted = self.on(Rung::Insisted);
        let mut before = std::mem::take(&mut self.threads);
        self.asleep.clear();
        for thread in &sample.threads {
            let Some(assignment) = placement.get_mut(&thread.id) else { continue };
            let Target::Cpus(cpus) = assignment.target.clone() else { continue };
            // What a scheduler in the kernel keeps needs no help.
            if assignment.is_held() || thread.kept {
                continue;
            }
            if did.get(&thread.id).is_some_and(|did| did.ready < HARDLY) {
                assignment.target = Target::Os;
                assignment.reason =
                    format!("hardly runs, left where it wakes; {}", assignment.reason).into();
                continue;
            }
            let mut known = before.remove(&thread.id).unwrap_or_default();
            let core = cores_of(topology, &cpus).intersection(&thread.allowed);
            let most = if known.rung == Rung::Exact { &cpus } else { &core };
            known.check(thread, &assignment.target, most);
            let may = May {
                widen: core != cpus,
                insist: insisted < self.most,
                hold: holding == Holding::WhereNeeded
                    && core.len() >= ready.get(&thread.program).copied().unwrap_or(0).max(1),
            };
            let next = known.next(self.quantum, &may);
            let was = std::mem::replace(&mut known.rung, next);
            if was != known.rung {
                insisted = insisted + usize::from(known.rung == Rung::Insisted)
                    - usize::from(was == Rung::Insisted);
                known.begin(self.quantum, was);
            }
            known.target = assignment.target.clone();
            known.keep(core, assignment);
            let is_away = |cpus: &CpuSet| thread.cpu.is_some_and(|cpu| !cpus.contains(cpu));
            let sleeps = thread.state == RunState::Sleeping && known.rung != Rung::Insisted;
            if sleeps && !assignment.is_held() && assignment.target.cpus().is_some_and(is_away) {
                self.asleep.push(thread.id);
            }
            self.threads.insert(thread.id, known);
        }
    }
}

/// What a thread may be changed to.
struct May {
    /// The target is less than its cores.
    widen: bool,
    insist: bool,
    hold: bool,
}

impl Checked {
    /// Notes where the thread was found, if its target is the one of the quantum before.
    fn check(&mut self, thread: &ThreadSample, target: &Target, most: &CpuSet) {
        let is_nudged = !matches!(self.rung, Rung::Held | Rung::Left);
        if self.target != *target {
            (self.checks, self.away) = (0, 0);
        } else if is_nudged && thread.state == RunState::Runnable {
            self.checks += 1;
            self.away += u32::from(thread.cpu.is_some_and(|cpu| !most.contains(cpu)));
        }
    }

    /// The rung that the checks, or the time, lead to.
    fn next(&mut self, quantum: u64, may: &May) -> Rung {
        let is_judged = self.checks >= CHECKS;
        let (often, mostly) = (self.away * 8 > self.checks * 3, self.away * 4 > self.checks * 3);
        if is_judged {
            (self.checks, self.away) = (0, 0);
        }
        let beyond = if may.hold { Rung::Held } else { Rung::Left };
        match self.rung {
            Rung::Exact if is_judged && often && may.widen => Rung::Core,
            Rung::Exact | Rung::Core if is_judged && often && may.insist => Rung::Insisted,
            Rung::Exact | Rung::Core | Rung::Insisted if is_judged && mostly => beyond,
            Rung::Exact => Rung::Exact,
            _ if quantum >= self.until => Rung::Exact,
            same => same,
        }
    }

    /// Begins on another rung.
    fn begin(&mut self, quantum: u64, was: Rung) {
        (self.checks, self.away) = (0, 0);
        if was == Rung::Exact {
            self.rest = (self.rest * 2).clamp(REST, LONGEST_REST);
        }
        self.until = quantum + self.rest;
    }

    /// Keeps a thread as its rung says.
    fn keep(&self, core: CpuSet, assignment: &mut Assignment) {
        let (target, mask, how) = match self.rung {
            Rung::Exact => return,
            Rung::Core => {
                (Target::Cpus(core), Target::Os, "kept to its core only: the kernel moves it")
            }
            Rung::Insisted => (
                Target::Cpus(core),
                Target::Os,
                "kept to its core: each 10 ms it is nudged back if the kernel moved it",
            ),
            Rung::Held => {
                let core = Target::Cpus(core);
                (core.clone(), core, "held: the kernel moves it away when it is nudged")
            }
            Rung::Left => (
                Target::Os,
                Target::Os,
                "left to the kernel for a while, which moves it away each time",
            ),
        };
        (assignment.target, assignment.mask) = (target, mask);
        assignment.reason = format!("{how}; {}", assignment.reason).into();
    }
}

/// How many threads of each program were ready for at least half of the last quantum.
fn ready_by_program(sample: &Sample, did: &Characterizations) -> BTreeMap<ProgramId, usize> {
    let mut ready = BTreeMap::new();
    for thread in &sample.threads {
        let is_ready = did.get(&thread.id).is_none_or(|did| did.ready >= 0.5);
        *ready.entry(thread.program).or_default() += usize::from(is_ready);
    }
    ready
}

/// The hardware threads of all cores that these belong to.
fn cores_of(topology: &Topology, cpus: &CpuSet) -> CpuSet {
    let siblings = cpus.iter().filter_map(|cpu| topology.siblings(cpu));
    siblings.fold(cpus.clone(), |all, core| all.union(core))
}

#[cfg(test)]
mod tests {
    use symbiont_counters::Characterization;
    use symbiont_machine::test_support::thread;
    use symbiont_topology::PuId;

    use super::*;

    /// One runnable thread on a machine of two cores of two hardware threads, wanted on CPU 0.
    struct World {
        topology: Topology,
        sample: Sample,
        disagreement: Disagreement,
        did: Characterizations,
        holding: Holding,
    }

    impl World {
        fn new(holding: Holding) -> Self {
            let topology = Topology::synthetic("core:2 smt:2").unwrap();
            let mut one = thread(1, 1, &topology.cpus());
            one.state = RunState::Runnable;
            let sample = Sample { threads: vec![one], ..Sample::default() };
            let (disagreement, did) = Default::default();
            Self { topology, sample, disagreement, did, holding }
        }

        /// What becomes of the decision in a quantum that finds the thread there.
        fn quantum(&mut self, cpu: u32) -> Assignment {
            self.sample.threads[0].cpu = Some(PuId(cpu));
            let id = self.sample.threads[0].id;
            let wanted = Assignment::on("0".parse().unwrap(), "wanted");
            let mut placement = Placement::from([(id, wanted)]);
            self.disagreement.adjust(
                self.holding,
                &self.topology,
                &self.sample,
                &self.did,
                &mut placement,
            );
            placement[&id].clone()
        }
    }

    fn cpus(list: &str) -> Target {
        Target::Cpus(list.parse().unwrap())
    }

    #[test]
    fn a_thread_that_stays_is_nudged_exactly() {
        let mut world = World::new(Holding::WhereNeeded);
        for quantum in 0..200 {
            // Away in each fifth check.
            let kept = world.quantum(if quantum % 5 == 4 { 3 } else { 0 });
            assert_eq!(kept, Assignment::on("0".parse().unwrap(), "wanted"), "{quantum}");
        }
        assert_eq!(world.disagreement.count(), 0);
    }

    #[test]
    fn a_thread_that_strays_is_nudged_to_its_core() {
        let mut world = World::new(Holding::AsDecided);
        let kept: Vec<_> = (0..60).map(|n| world.quantum(n % 2)).collect();
        assert_eq!(kept[0].target, cpus("0"));
        let last = kept.last().unwrap();
        assert_eq!((&last.target, &last.mask), (&cpus("0-1"), &Target::Os), "{last:?}");
        assert!(last.reason.starts_with("kept to its core only"), "{last:?}");
        let changes = kept.windows(2).filter(|pair| pair[0].target != pair[1].target).count();
        assert_eq!(changes, 1);
    }

    #[test]
    fn a_thread_that_leaves_its_core_is_insisted_on() {
        let mut world = World::new(Holding::AsDecided);
        let id = world.sample.threads[0].id;
        let kept: Vec<_> = (0..40).map(|n| world.quantum(if n % 2 == 0 { 0 } else { 3 })).collect();
        let last = Placement::from([(id, kept[39].clone())]);
        assert_eq!(world.disagreement.insisted(&last), [(id, "0-1".parse().unwrap())]);
        assert!(kept[39].reason.contains("each 10 ms it is nudged back"), "{:?}", kept[39]);
        assert_eq!((&kept[39].target, &kept[39].mask), (&cpus("0-1"), &Target::Os));
        assert!(world.disagreement.insisted(&Placement::new()).is_empty());
    }

    #[test]
    fn one_that_sleeps_elsewhere_is_looked_at_until_it_wakes() {
        let mut world = World::new(Holding::AsDecided);
        let id = world.sample.threads[0].id;
        for (state, cpu, is_looked_at) in [
            (RunState::Sleeping, 3, true),
            (RunState::Sleeping, 0, false),
            (RunState::Runnable, 3, false),
        ] {
            world.sample.threads[0].state = state;
            let placement = Placement::from([(id, world.quantum(cpu))]);
            assert_eq!(!world.disagreement.insisted(&placement).is_empty(), is_looked_at, "{cpu}");
        }
    }

    #[test]
    fn few_threads_are_insisted_on() {
        for (machine, expected) in [("core:2 smt:2", 4), ("core:8 smt:2", MOST)] {
            let mut world = World::new(Holding::AsDecided);
            world.topology = Topology::synthetic(machine).unwrap();
            let last = world.topology.cpus().iter().last().unwrap();
            let cpus = world.topology.cpus();
            let mut threads: Vec<_> = (1..=20).map(|n| thread(1, n, &cpus)).collect();
            threads.iter_mut().for_each(|thread| thread.state = RunState::Runnable);
            let mut most = 0;
            for quantum in 0..400 {
                let cpu = if quantum % 2 == 0 { PuId(0) } else { last };
                threads.iter_mut().for_each(|thread| thread.cpu = Some(cpu));
                let sample = Sample { threads: threads.clone(), ..Sample::default() };
                let wanted =
                    |thread: &ThreadSample| (thread.id, Assignment::on(PuId(0).into(), ""));
                let mut placement: Placement = threads.iter().map(wanted).collect();
                let World { holding, topology, did, disagreement, .. } = &mut world;
                disagreement.adjust(*holding, topology, &sample, did, &mut placement);
                most = most.max(disagreement.insisted(&placement).len());
            }
            assert_eq!(most, expected, "{machine}");
        }
    }

    #[test]
    fn a_thread_is_nudged_exactly_again_after_a_while() {
        let mut world = World::new(Holding::AsDecided);
        let kept: Vec<_> = (0..400).map(|n| world.quantum(n % 2).target == cpus("0")).collect();
        let spells: Vec<(bool, usize)> =
            kept.chunk_by(|a, b| a == b).map(|spell| (spell[0], spell.len())).collect();
        let wide: Vec<usize> = spells.iter().filter(|(exact, _)| !exact).map(|(_, n)| *n).collect();
        assert_eq!(wide[..2], [64, 128], "{spells:?}");
    }

    #[test]
    fn a_thread_that_never_stays_is_left_alone_and_tried_again() {
        let mut world = World::new(Holding::AsDecided);
        let kept: Vec<bool> = (0..2000).map(|_| world.quantum(3).target == Target::Os).collect();
        let spells: Vec<(bool, usize)> =
            kept.chunk_by(|a, b| a == b).map(|spell| (spell[0], spell.len())).collect();
        let left: Vec<usize> = spells.iter().filter(|(left, _)| *left).map(|(_, n)| *n).collect();
        assert_eq!(left[..3], [64, 128, 256], "{spells:?}");
        assert!(spells.iter().all(|(left, n)| *left || *n >= CHECKS as usize), "{spells:?}");
    }

    #[test]
    fn no_mask_is_narrower_than_the_ready_threads_of_its_program() {
        for ready in 1..5 {
            let mut world = World::new(Holding::WhereNeeded);
            let others = (2..=ready).map(|n| thread(1, n, &world.topology.cpus()));
            world.sample.threads.extend(others);
            let held = (0..200).map(|_| world.quantum(3)).any(|kept| kept.mask == cpus("0-1"));
            assert_eq!(held, ready <= 2, "{ready}");
        }
    }

    #[test]
    fn a_thread_that_hardly_runs_is_left_where_it_wakes() {
        let mut world = World::new(Holding::AsDecided);
        let id = world.sample.threads[0].id;
        for (ready, target) in [(0.01, Target::Os), (0.03, cpus("0"))] {
            let over = std::time::Duration::from_millis(100);
            let did = Characterization { over, ready, running: ready, switches: 1, migrated: None };
            world.did = [(id, did)].into();
            assert_eq!(world.quantum(3).target, target);
        }
    }

    #[test]
    fn another_target_is_no_disagreement() {
        let mut world = World::new(Holding::AsDecided);
        let id = world.sample.threads[0].id;
        world.sample.threads[0].cpu = Some(PuId(3));
        for quantum in 0u32..200 {
            let wanted = Assignment::on(PuId(quantum % 3).into(), "");
            let mut placement = Placement::from([(id, wanted.clone())]);
            let World { holding, topology, sample, disagreement, did } = &mut world;
            disagreement.adjust(*holding, topology, sample, did, &mut placement);
            assert_eq!(placement[&id], wanted);
        }
    }

    #[test]
    fn experiments_hold_every_target() {
        let mut world = World::new(Holding::Always);
        assert_eq!(world.quantum(3), Assignment::on("0".parse().unwrap(), "wanted").held());
    }
}
