//! What the policy has learned of programs, or jobs, that shared a core: for whatever chooses which run together next.
//!
//! # Approach
//! After each step, for each two threads that ran on one core in it: the time of one next to the other is added, and what
//! the policy has learned of the two replaces what it had learned before, averaged over the threads of both.
//!
//! # Terms and units
//! What a co-runner adds is a natural logarithm of instructions per cycle ([`Policy::learned_of`]).
//!
//! # Properties
//! - What ran next to what, for how long, and what was learned last (`pairs_that_shared_a_core_are_kept`).
//! - It is bounded, and those that were together longest stay (`what_is_kept_is_bounded`).

use std::collections::BTreeMap;
use std::time::Duration;

use symbiont_control::Step;
use symbiont_machine::{ProgramId, ThreadSample};
use symbiont_policy::Policy;
use symbiont_topology::{CoreId, Topology};

/// Co-runners that are kept of one, those that ran longest next to it.
const MOST: usize = 16;
/// Shares of a quantum in which a thread has to have run.
const LEAST_SHARE: f64 = 0.5;

/// One next to another.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Next {
    /// What the other one adds.
    pub ln: f64,
    /// CPU time of the one next to the other.
    pub together: Duration,
}

/// Pairs of programs, or of jobs, by their numbers.
#[derive(Debug)]
pub struct Together<K> {
    pairs: BTreeMap<K, BTreeMap<K, Next>>,
}

impl<K> Default for Together<K> {
    fn default() -> Self {
        Self { pairs: BTreeMap::new() }
    }
}

/// Sums over the threads of two in one step.
#[derive(Debug, Default)]
struct Sum {
    ran: Duration,
    /// Weighted by time.
    ln: f64,
}

impl<K: Ord + Copy> Together<K> {
    /// Adds a step of the loop; `of`: what is kept of a program, if anything.
    pub fn observe(
        &mut self,
        step: &Step,
        topology: &Topology,
        policy: &dyn Policy,
        of: impl Fn(ProgramId) -> Option<K>,
    ) {
        let mut cores: BTreeMap<CoreId, Vec<(&ThreadSample, K, Duration)>> = BTreeMap::new();
        for thread in &step.sample.threads {
            let did =
                step.characterizations.get(&thread.id).filter(|did| did.running >= LEAST_SHARE);
            let core =
                thread.cpu.and_then(|cpu| topology.core_of(cpu)).filter(|core| core.cpus.len() > 1);
            let (Some(did), Some(core), Some(key)) = (did, core, of(thread.program)) else {
                continue;
            };
            let ran = did.over.mul_f64(did.running.clamp(0.0, 1.0));
            cores.entry(core.id).or_default().push((thread, key, ran));
        }
        let mut sums: BTreeMap<(K, K), Sum> = BTreeMap::new();
        for here in cores.values() {
            for &(thread, key, ran) in here {
                // Threads of one program share its work: they are no pair of programs.
                for &(other, next, _) in here.iter().filter(|(_, next, _)| *next != key) {
                    let learned = policy.learned_of(thread.id, other.id);
                    let Some(ln) = learned.filter(|ln| ln.is_finite()) else { continue };
                    let sum = sums.entry((key, next)).or_default();
                    sum.ran += ran;
                    sum.ln += ln * ran.as_secs_f64();
                }
            }
        }
        for ((key, other), sum) in sums.into_iter().filter(|(_, sum)| !sum.ran.is_zero()) {
            let ln = sum.ln / sum.ran.as_secs_f64();
            self.add(key, other, Next { ln, together: sum.ran });
        }
    }

    /// Adds time of one next to another, and takes what was learned last.
    fn add(&mut self, key: K, other: K, next: Next) {
        let row = self.pairs.entry(key).or_default();
        let one = row.entry(other).or_default();
        one.ln = next.ln;
        one.together += next.together;
        if row.len() > MOST {
            let shortest = row.iter().filter(|(one, _)| **one != other);
            let shortest = shortest.min_by_key(|(_, next)| next.together).map(|(one, _)| *one);
            shortest.map(|one| row.remove(&one));
        }
    }

    /// Keeps what is of these alone, on both sides.
    pub fn retain(&mut self, stays: impl Fn(K) -> bool) {
        self.pairs.retain(|key, row| {
            row.retain(|other, _| stays(*other));
            stays(*key) && !row.is_empty()
        });
    }

    /// The programs next to which one ran.
    pub fn of(&self, key: K) -> impl Iterator<Item = (K, Next)> + '_ {
        self.pairs.get(&key).into_iter().flatten().map(|(other, next)| (*other, *next))
    }
}

#[cfg(test)]
mod tests {
    use symbiont_control::Controller;
    use symbiont_machine::test_support::FakeMachine;
    use symbiont_machine::{Assignment, Machine, Placement, ThreadId};
    use symbiont_planner::{Bounds, Planner};
    use symbiont_policy::View;
    use symbiont_topology::PuId;

    use super::*;

    const QUANTUM: Duration = Duration::from_millis(100);

    /// Has learned of all pairs that a co-runner takes as many hundredths as the last two digits of its number.
    struct Learning;

    impl Policy for Learning {
        fn name(&self) -> &'static str {
            "learning"
        }

        fn place(&mut self, view: &View<'_>) -> Placement {
            view.threads.iter().map(|thread| (thread.id, Assignment::os("as it is"))).collect()
        }

        fn learned_of(&self, thread: ThreadId, co_runner: ThreadId) -> Option<f64> {
            (thread != co_runner).then(|| -f64::from(co_runner.thread % 100) / 100.0)
        }
    }

    /// Threads by program, number and CPU, each of which runs for a share of each quantum.
    fn together(threads: &[(u32, u32, u32, f64)], quanta: usize) -> Together<u32> {
        let widest = threads.iter().map(|one| one.2 / 2 + 1).max().unwrap_or(1);
        let topology = Topology::synthetic(&format!("core:{widest} smt:2")).unwrap();
        let mut machine = FakeMachine::new(topology.clone());
        for &(program, number, cpu, _) in threads {
            let id = machine.start(program, number);
            machine.threads.get_mut(&id).unwrap().cpu = Some(PuId(cpu));
        }
        let planner = Planner::new(Bounds::none());
        let mut controller = Controller::new(machine, Box::new(Learning), planner);
        let mut together = Together::default();
        for _ in 0..=quanta {
            for (id, thread) in &mut controller.machine_mut().threads {
                let of = threads.iter().find(|one| one.1 == id.thread).unwrap();
                thread.run_time += QUANTUM.mul_f64(of.3);
            }
            controller.machine_mut().wait(QUANTUM).unwrap();
            controller.step().unwrap();
            let step = controller.last().unwrap();
            let known = |program: ProgramId| (program.0 < 1000).then_some(program.0);
            together.observe(step, &topology, controller.policy(), known);
        }
        together
    }

    #[test]
    fn pairs_that_shared_a_core_are_kept() {
        // 1 next to 2, 3 next to a thread of its own, 4 next to one that hardly runs, 5 next to one that nothing is kept of.
        let threads = [
            (1, 10, 0, 1.0),
            (2, 20, 1, 0.8),
            (3, 30, 2, 1.0),
            (3, 31, 3, 1.0),
            (4, 40, 4, 1.0),
            (4, 41, 5, 0.1),
            (5, 50, 6, 1.0),
            (1000, 60, 7, 1.0),
        ];
        let mut together = together(&threads, 10);
        let of = |together: &Together<u32>, key| -> Vec<(u32, i64, u128)> {
            let rounded = |(other, next): (u32, Next)| {
                (other, (next.ln * 1e3).round() as i64, next.together.as_millis())
            };
            together.of(key).map(rounded).collect()
        };
        assert_eq!(of(&together, 1), [(2, -200, 1000)]);
        assert_eq!(of(&together, 2), [(1, -100, 800)]);
        for alone in 3..=5 {
            assert_eq!(of(&together, alone), [], "{alone}");
        }
        together.retain(|key| key != 2);
        assert_eq!(of(&together, 1), [], "the other one is gone");
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut row: Together<u32> = Together::default();
        for other in 0..(MOST as u32 + 8) {
            // The first was there longest.
            let together = QUANTUM * if other == 0 { 1000 } else { other };
            row.add(500, other, Next { ln: -0.1, together });
        }
        let left: Vec<u32> = row.of(500).map(|(other, _)| other).collect();
        assert_eq!(left.len(), MOST);
        assert!(left.contains(&0) && left.contains(&(MOST as u32 + 7)), "{left:?}");
    }
}
