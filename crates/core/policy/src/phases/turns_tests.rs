//! Turns on the fastest cores, on the machine of the progress tests.

use proptest::prelude::*;
use symbiont_machine::test_support::thread;

use super::progress_tests::{Fluid, QUANTUM};
use super::*;

const ONE_FAST: &str = "core:1 | core:3 capacity:512";
const TWO_FAST: &str = "core:2 | core:3 capacity:512 | core:1 capacity:256";
/// Timeout and hold, in quanta.
const TIMEOUT: u32 = 50;
const HOLD: u32 = 5;

/// Programs of four threads that are serial or parallel, for so many quanta each in turn.
struct Story {
    fluid: Fluid,
    policy: Phases,
    phases: Vec<Vec<u32>>,
    now: u32,
    fast: CpuSet,
    /// Of each program, its serial thread's: quanta on a fastest core and without.
    got: Vec<(u32, u32)>,
    holding: Vec<u32>,
    waiting: Vec<u32>,
    longest_wait: u32,
    /// The shortest stay on a fastest core that a serial thread had to end.
    shortest_hold: u32,
    /// How often a serial thread had to leave a fastest core.
    changes: u32,
}

impl Story {
    /// `phases`: of each program, quanta of serial and parallel phases in turn, over
    /// and over; a serial phase of none is a parallel program.
    fn new(machine: &str, phases: &[Vec<u32>], timeout: Duration) -> Self {
        let programs = vec![(4, 0); phases.len()];
        let fluid = Fluid::new(machine, &programs);
        let most = fluid.machine.cores().iter().map(|core| core.capacity).max();
        let fast = (fluid.machine.cores().iter())
            .filter(|core| Some(core.capacity) == most)
            .fold(CpuSet::new(), |all, core| all.union(&core.cpus));
        let none = vec![0; phases.len()];
        Self {
            fluid,
            policy: Phases::of(None, timeout, true),
            phases: phases.to_vec(),
            now: 0,
            fast,
            got: vec![(0, 0); phases.len()],
            holding: none.clone(),
            waiting: none,
            longest_wait: 0,
            shortest_hold: u32::MAX,
            changes: 0,
        }
    }

    fn is_serial(&self, program: usize) -> bool {
        let phases = &self.phases[program];
        let mut left = self.now % phases.iter().sum::<u32>().max(1);
        for (number, length) in phases.iter().enumerate() {
            if left < *length {
                return number % 2 == 0;
            }
            left -= length;
        }
        true
    }

    fn quantum(&mut self) {
        for (program, number) in (0..self.phases.len()).flat_map(|p| (0..4).map(move |n| (p, n))) {
            self.fluid.threads[4 * program + number].1 = number == 0 || !self.is_serial(program);
        }
        let placement = self.fluid.quantum(&mut self.policy);
        self.now += 1;
        let mut reported = Vec::new();
        for program in 0..self.phases.len() {
            let first = thread(program as u32, 100 * program as u32, &CpuSet::new()).id;
            let assignment = &placement[&first];
            let serial =
                assignment.priority != Priority::Normal && assignment.reason.starts_with("serial");
            let fast = match &assignment.target {
                Target::Cpus(cpus) => cpus.is_subset(&self.fast),
                Target::Os => false,
            };
            reported.push((serial, serial && fast));
        }
        let taken = reported.iter().filter(|(_, fast)| *fast).count();
        assert!(taken <= self.fast.len());
        for (program, (serial, fast)) in reported.into_iter().enumerate() {
            if serial && !fast {
                assert_eq!(taken, self.fast.len(), "a fastest core is left unused");
                if self.holding[program] > 0 {
                    self.changes += 1;
                    self.shortest_hold = self.shortest_hold.min(self.holding[program]);
                }
            }
            let next = |count: u32, goes_on: bool| if goes_on { count + 1 } else { 0 };
            self.holding[program] = next(self.holding[program], fast);
            self.waiting[program] = next(self.waiting[program], serial && !fast);
            self.longest_wait = self.longest_wait.max(self.waiting[program]);
            self.got[program].0 += u32::from(fast);
            self.got[program].1 += u32::from(serial && !fast);
        }
    }

    fn of(machine: &str, phases: &[Vec<u32>], timeout: Duration, quanta: u32) -> Self {
        let mut story = Self::new(machine, phases, timeout);
        (0..quanta).for_each(|_| story.quantum());
        story
    }
}

#[test]
fn two_endless_serial_programs_share_the_fast_core() {
    let story = Story::of(ONE_FAST, &[vec![1], vec![1]], TIMEOUT * QUANTUM, 2000);
    for (with, without) in story.got {
        assert!((0.9..1.1).contains(&(f64::from(with) / f64::from(without))), "{with} {without}");
    }
    // About as seldom as the timeout asks for.
    assert!(story.changes <= 2000 / (TIMEOUT - HOLD) + 3, "{}", story.changes);
}

/// As published: it keeps the core while it is serial, however long others wait.
#[test]
fn the_first_serial_thread_keeps_the_fast_core() {
    let mut story = Story::new(ONE_FAST, &[vec![1], vec![1], vec![13, 7]], TIMEOUT * QUANTUM);
    story.policy = Phases::of(None, TIMEOUT * QUANTUM, false);
    (0..2000).for_each(|_| story.quantum());
    assert_eq!((story.got[0].1, story.got[1].0, story.got[2].0), (0, 0, 0));
    assert_eq!(story.changes, 0);
}

#[test]
fn without_the_timeout_the_second_would_wait_for_ever() {
    let story = Story::of(ONE_FAST, &[vec![1], vec![1]], Duration::MAX, 2000);
    assert_eq!(story.got[1].0, 0);
    assert!(story.longest_wait > 1990);
}

/// An endless serial program does not slow down one with short serial phases.
#[test]
fn short_serial_phases_have_the_fast_core_before_an_endless_one() {
    let story = Story::of(ONE_FAST, &[vec![1], vec![13, 7]], TIMEOUT * QUANTUM, 2000);
    let share = |(with, without): (u32, u32)| f64::from(with) / f64::from(with + without);
    assert!(share(story.got[1]) > 0.85, "{:?}", story.got);
    assert!(share(story.got[0]) > 0.3, "{:?}", story.got);
}

/// Negative control: where cores are alike no thread moves for a turn.
#[test]
fn without_faster_cores_there_are_no_turns() {
    let placements = |quanta: u32| {
        let mut story = Story::new("core:4", &[vec![1], vec![1]], TIMEOUT * QUANTUM);
        story.quantum();
        (0..quanta).map(|_| story.fluid.quantum(&mut story.policy)).collect::<Vec<_>>()
    };
    let all = placements(300);
    assert!(all.iter().all(|placement| *placement == all[0]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn no_thread_waits_for_the_fast_core_longer_than_a_timeout(
        machine in prop::sample::select(&[ONE_FAST, TWO_FAST][..]),
        phases in prop::collection::vec(prop::collection::vec(1..120_u32, 1..6), 1..7),
    ) {
        let story = Story::of(machine, &phases, TIMEOUT * QUANTUM, 400);
        prop_assert!(story.longest_wait <= TIMEOUT + 1, "{}", story.longest_wait);
    }

    #[test]
    fn the_fast_core_changes_hands_no_faster_than_the_hold(
        machine in prop::sample::select(&[ONE_FAST, TWO_FAST][..]),
        phases in prop::collection::vec(prop::collection::vec(1..120_u32, 1..6), 1..13),
    ) {
        let story = Story::of(machine, &phases, TIMEOUT * QUANTUM, 400);
        prop_assert!(story.shortest_hold >= HOLD, "{}", story.shortest_hold);
        // More than ten: a hold for each of the others.
        let most = TIMEOUT.max(HOLD * phases.len() as u32) + HOLD;
        prop_assert!(story.longest_wait <= most, "{}", story.longest_wait);
    }
}
