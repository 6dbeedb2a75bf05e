//! Whose turn it is among programs that all want all of the machine
//! (Morad et al., section 6, "seniority boost").
//!
//! Two programs that are both parallel with at least as many ready threads as
//! there are hardware threads compete without any gain: each switch between
//! them costs cache contents, and neither ends its phase early. So the senior
//! is boosted, the one that entered its parallel phase first. Its boost ends
//! when the state does, and at a timeout it passes to the next in seniority;
//! a program that had a turn goes to the end of the queue.
//!
//! A turn is counted over all of the senior's time as the holder, also when the
//! state is left and entered again in between: so a program waits for its turn
//! at most as many timeouts as there were programs before it
//! (`each_gets_its_turn_within_the_timeouts_before_it`).
//!
//! The paper does not print its timeout.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use symbiont_machine::ProgramId;

/// How long the boost stays with one program at most, unless set otherwise.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(1);

/// Turns among parallel programs.
#[derive(Debug, Clone)]
pub(super) struct Seniority {
    timeout: Duration,
    /// Parallel programs, the senior at the front.
    queue: VecDeque<ProgramId>,
    /// The program that was boosted over the last quantum.
    holder: Option<ProgramId>,
    /// How long the program at the front has held the boost in this turn.
    held: Duration,
    turns: Turns,
}

/// What became of the boost so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Turns {
    /// Times that a program got the boost.
    pub begun: u64,
    /// Times that it was taken away by the timeout.
    pub timed_out: u64,
    /// How long each program held it.
    pub held: BTreeMap<ProgramId, Duration>,
    /// The longest turn.
    pub longest: Duration,
}

impl Seniority {
    /// Without a timeout no program is boosted.
    pub(super) fn new(timeout: Duration) -> Self {
        Self {
            timeout,
            queue: VecDeque::new(),
            holder: None,
            held: Duration::ZERO,
            turns: Turns::default(),
        }
    }

    /// Whose turn it is for the next quantum. `parallel`: the programs that are
    /// parallel now; `contended`: do they compete without gain? `over`: the
    /// quantum that has passed.
    pub(super) fn turn(
        &mut self,
        parallel: &[ProgramId],
        contended: bool,
        over: Duration,
    ) -> Option<ProgramId> {
        let front = self.queue.front().copied();
        if let Some(holder) = self.holder {
            self.held += over;
            *self.turns.held.entry(holder).or_default() += over;
            self.turns.longest = self.turns.longest.max(self.held);
        }
        self.queue.retain(|program| parallel.contains(program));
        for program in parallel {
            if !self.queue.contains(program) {
                self.queue.push_back(*program);
            }
        }
        if self.queue.front().copied() != front {
            self.held = Duration::ZERO;
        }
        let contended = contended && self.queue.len() > 1 && !self.timeout.is_zero();
        if contended && self.held >= self.timeout {
            self.queue.rotate_left(1);
            self.held = Duration::ZERO;
            self.turns.timed_out += 1;
        }
        let next = self.queue.front().copied().filter(|_| contended);
        self.turns.begun += u64::from(next.is_some() && next != self.holder);
        self.holder = next;
        next
    }

    pub(super) fn turns(&self) -> &Turns {
        &self.turns
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const QUANTUM: Duration = Duration::from_millis(20);
    const A: ProgramId = ProgramId(1);
    const B: ProgramId = ProgramId(2);
    const C: ProgramId = ProgramId(3);

    fn seniority(quanta: u32) -> Seniority {
        Seniority::new(QUANTUM * quanta)
    }

    #[test]
    fn without_a_timeout_no_program_is_senior() {
        let mut seniority = seniority(0);
        for _ in 0..3 {
            assert_eq!(seniority.turn(&[A, B], true, QUANTUM), None);
        }
        assert_eq!(*seniority.turns(), Turns::default());
    }

    #[test]
    fn the_first_in_its_parallel_phase_is_the_senior() {
        let mut seniority = seniority(100);
        assert_eq!(seniority.turn(&[B], true, QUANTUM), None);
        assert_eq!(seniority.turn(&[A, B], true, QUANTUM), Some(B));
        assert_eq!(seniority.turn(&[A, B, C], true, QUANTUM), Some(B));
    }

    #[test]
    fn the_boost_ends_when_either_leaves_the_state() {
        let mut seniority = seniority(100);
        seniority.turn(&[A], true, QUANTUM);
        assert_eq!(seniority.turn(&[A, B], true, QUANTUM), Some(A));
        assert_eq!(seniority.turn(&[B], true, QUANTUM), None);
        // A program that comes back is the junior now.
        assert_eq!(seniority.turn(&[A, B], true, QUANTUM), Some(B));
        assert_eq!(seniority.turn(&[A, B], false, QUANTUM), None);
        assert_eq!(seniority.turns().begun, 2);
    }

    #[test]
    fn at_the_timeout_it_passes_to_the_next() {
        let mut seniority = seniority(2);
        let turns: Vec<_> = (0..7).map(|_| seniority.turn(&[A, B, C], true, QUANTUM)).collect();
        assert_eq!(turns, [A, A, B, B, C, C, A].map(Some));
        assert_eq!(seniority.turns().timed_out, 3);
        assert_eq!(seniority.turns().longest, 2 * QUANTUM);
        assert_eq!(seniority.turns().held[&B], 2 * QUANTUM);
    }

    #[test]
    fn leaving_the_state_for_a_moment_does_not_lengthen_a_turn() {
        let mut seniority = seniority(4);
        let mut held = 0;
        for round in 0..100 {
            // Contended in two quanta out of three.
            if seniority.turn(&[A, B], round % 3 != 0, QUANTUM) == Some(B) {
                break;
            }
            held += 1;
        }
        assert!(held < 10, "{held} quanta before the first change");
    }

    proptest! {
        #[test]
        fn each_gets_its_turn_within_the_timeouts_before_it(
            programs in 2..8_u32, timeout in 1..6_u32, quanta in 1..200_usize
        ) {
            let all: Vec<_> = (0..programs).map(ProgramId).collect();
            let mut seniority = seniority(timeout);
            let mut waiting = vec![0u32; all.len()];
            for _ in 0..quanta {
                let holder = seniority.turn(&all, true, QUANTUM).unwrap();
                for (program, waited) in all.iter().zip(&mut waiting) {
                    *waited = if *program == holder { 0 } else { *waited + 1 };
                    prop_assert!(*waited <= timeout * (programs - 1));
                }
            }
        }

        /// Others that come and go do not take a turn away.
        #[test]
        fn a_lasting_parallel_program_is_not_passed_over(
            story in prop::collection::vec(prop::collection::btree_set(1..6_u32, 1..5), 60..120)
        ) {
            let mut seniority = seniority(2);
            let mut waited = 0;
            for others in story {
                let parallel: Vec<_> = std::iter::once(0).chain(others).map(ProgramId).collect();
                let holder = seniority.turn(&parallel, true, QUANTUM);
                waited = if holder == Some(ProgramId(0)) { 0 } else { waited + 1 };
                // At most five programs before it, two quanta each.
                prop_assert!(waited <= 10);
            }
        }
    }
}
