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
//! exact     away in more than a quarter of the checks  → core: any hardware thread of the target's cores
//! core      away in more than three quarters           → held, where that is allowed; else left to the OS
//! held      for REST quanta                             → exact
//! left      for REST quanta, twice as long each time    → exact
//! ```
//!
//! A thread that was ready for less than [`HARDLY`] of the last quantum is left where it wakes: helpers of a
//! runtime, that handle signals or collect garbage now and then, are not worth a move.
//!
//! The checks begin anew on each rung, and a thread climbs only when there are [`CHECKS`] of them, so that it
//! cannot swing from quantum to quantum. Held is a rung only under [`Holding::WhereNeeded`], and only with a
//! mask of at least as many hardware threads as its program has ready threads.
//!
//! # Terms and units
//! *Check*: a quantum in which the thread was runnable and its target was the one of the quantum before.
//! *Away*: it ran, or was about to run, on no hardware thread of its target.
//!
//! # Properties
//! - A thread that stays is left as decided (`a_thread_that_stays_is_nudged_exactly`).
//! - One that is moved away now and then is nudged to its core (`a_thread_that_strays_is_nudged_to_its_core`).
//! - One that never stays is left to the OS for a while, and tried again
//!   (`a_thread_that_never_stays_is_left_alone_and_tried_again`).
//! - One that hardly runs is not nudged (`a_thread_that_hardly_runs_is_left_where_it_wakes`).
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
/// Quanta for which a thread is left alone, or held, before it is tried again.
const REST: u64 = 64;
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
    /// Held there until a quantum.
    Held(u64),
    /// Left to the OS until a quantum.
    Left(u64),
}

/// What is known of a thread.
#[derive(Debug, Clone, Default)]
struct Checked {
    rung: Rung,
    /// The target that the policy decided at the last quantum.
    target: Target,
    checks: u32,
    away: u32,
    /// The last rest.
    rest: u64,
}

/// Which threads the OS does not leave where they are put.
#[derive(Debug, Clone, Default)]
pub(crate) struct Disagreement {
    quantum: u64,
    threads: BTreeMap<ThreadId, Checked>,
}

impl Disagreement {
    /// How many threads are kept in another way than was decided.
    pub(crate) fn count(&self) -> usize {
        self.threads.values().filter(|known| known.rung != Rung::Exact).count()
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
        let ready = ready_by_program(sample, did);
        let mut before = std::mem::take(&mut self.threads);
        for thread in &sample.threads {
            let Some(assignment) = placement.get_mut(&thread.id) else { continue };
            let Target::Cpus(cpus) = assignment.target.clone() else { continue };
            if assignment.is_held() {
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
            let most = match known.rung {
                Rung::Core => &core,
                _ => &cpus,
            };
            known.check(thread, &assignment.target, most);
            let may_hold = holding == Holding::WhereNeeded
                && core.len() >= ready.get(&thread.program).copied().unwrap_or(0).max(1);
            known.climb(self.quantum, may_hold);
            known.target = assignment.target.clone();
            known.keep(core, assignment);
            self.threads.insert(thread.id, known);
        }
    }
}

impl Checked {
    /// Notes where the thread was found, if its target is the one of the quantum before.
    fn check(&mut self, thread: &ThreadSample, target: &Target, most: &CpuSet) {
        let is_nudged = matches!(self.rung, Rung::Exact | Rung::Core);
        if self.target != *target {
            (self.checks, self.away) = (0, 0);
        } else if is_nudged && thread.state == RunState::Runnable {
            self.checks += 1;
            self.away += u32::from(thread.cpu.is_some_and(|cpu| !most.contains(cpu)));
        }
    }

    /// Judges the rung by its checks, or by its time.
    fn climb(&mut self, quantum: u64, may_hold: bool) {
        let rung = match self.rung {
            Rung::Exact if self.checks >= CHECKS && self.away * 4 > self.checks => Rung::Core,
            Rung::Core if self.checks >= CHECKS && self.away * 4 > self.checks * 3 => {
                self.rest = (self.rest * 2).clamp(REST, LONGEST_REST);
                if may_hold { Rung::Held(quantum + REST) } else { Rung::Left(quantum + self.rest) }
            }
            Rung::Held(until) | Rung::Left(until) if quantum >= until => Rung::Exact,
            same => same,
        };
        if rung != self.rung || self.checks >= CHECKS {
            (self.checks, self.away) = (0, 0);
        }
        self.rung = rung;
    }

    /// Keeps a thread as its rung says.
    fn keep(&self, core: CpuSet, assignment: &mut Assignment) {
        let (target, mask, how) = match self.rung {
            Rung::Exact => return,
            Rung::Core => {
                (Target::Cpus(core), Target::Os, "kept to its core only: the kernel moves it")
            }
            Rung::Held(_) => {
                let core = Target::Cpus(core);
                (core.clone(), core, "held: the kernel moves it away when it is nudged")
            }
            Rung::Left(_) => (
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
        let kept: Vec<_> = (0..100).map(|n| world.quantum(n % 2)).collect();
        assert_eq!(kept[0].target, cpus("0"));
        let last = kept.last().unwrap();
        assert_eq!((&last.target, &last.mask), (&cpus("0-1"), &Target::Os), "{last:?}");
        assert!(last.reason.starts_with("kept to its core only"), "{last:?}");
        let changes = kept.windows(2).filter(|pair| pair[0].target != pair[1].target).count();
        assert_eq!(changes, 1);
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
