//! What the phases of a thread are beyond the time for which it was profiled.

use crate::Span;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// A first span is start-up if it has less than one of so many parts of all instructions.
const START_UP: u64 = 10;

/// A thread's phases, first as recorded, then for ever.
///
/// The rule: after the recorded end each next span is drawn, with a seed, from the recorded spans that followed a
/// span of the same phase as the one just ended (the recording as a semi-Markov chain). The first span counts as
/// following the last one, so that every phase comes again, and phases keep their lengths, their order of two
/// and, in the long run, their shares. The recording is not looped: a loop would have a period, as long as the
/// recording, that the program does not have. A first span of less than a tenth of the recording is start-up: it
/// never comes again, and the second one takes its place.
#[derive(Debug, Clone)]
pub struct Continuation<'a> {
    recorded: &'a [Span],
    next: usize,
    last: Option<Span>,
    random: Pcg64Mcg,
}

impl<'a> Continuation<'a> {
    /// Continues `recorded`; equal seeds give equal continuations.
    pub fn new(recorded: &'a [Span], seed: u64) -> Self {
        Self { recorded, next: 0, last: None, random: Pcg64Mcg::seed_from_u64(seed) }
    }

    /// The spans that come again.
    fn recurring(&self) -> &'a [Span] {
        let all: u64 = self.recorded.iter().map(|span| span.instructions).sum();
        match self.recorded {
            [first, rest @ ..] if !rest.is_empty() && first.instructions < all / START_UP => rest,
            all => all,
        }
    }

    fn draw(&mut self) -> Option<Span> {
        let (last, spans) = (self.last?, self.recurring());
        let after = spans.iter().cycle().skip(1);
        let follow =
            || spans.iter().zip(after.clone()).filter(|(before, _)| before.phase == last.phase);
        let count = follow().count();
        // Start-up may be followed by a phase that ends the recording.
        if count == 0 {
            return spans.first().copied();
        }
        follow().nth(self.random.random_range(0..count)).map(|(_, after)| *after)
    }
}

impl Iterator for Continuation<'_> {
    type Item = Span;

    /// The next span; none only if nothing was recorded.
    fn next(&mut self) -> Option<Span> {
        let span = match self.recorded.get(self.next) {
            Some(span) => *span,
            None => self.draw()?,
        };
        self.next = self.next.saturating_add(1);
        self.last = Some(span);
        Some(span)
    }
}

#[cfg(test)]
mod tests {
    use super::Continuation;
    use crate::Span;
    use proptest::prelude::*;

    fn spans(phases: &[u16]) -> Vec<Span> {
        phases.iter().map(|&phase| Span { phase, instructions: 10 + u64::from(phase) }).collect()
    }

    #[test]
    fn what_was_recorded_comes_first() {
        let recorded = spans(&[0, 1, 2, 1, 2]);
        let taken: Vec<Span> = Continuation::new(&recorded, 1).take(5).collect();
        assert_eq!(taken, recorded);
    }

    #[test]
    fn start_up_does_not_come_again() {
        let mut recorded = spans(&[9, 1, 2, 1, 2, 3]);
        recorded[0].instructions = 5;
        assert!(Continuation::new(&recorded, 1).skip(1).take(1000).all(|span| span.phase != 9));
    }

    #[test]
    fn a_long_first_phase_comes_again_and_none_is_for_ever() {
        // Half of it is the first span, and it ends in a phase of its own.
        let mut recorded = spans(&[0, 1, 2, 1, 3, 3, 3]);
        recorded[0].instructions = recorded[1..].iter().map(|span| span.instructions).sum();
        let long: Vec<Span> = Continuation::new(&recorded, 1).take(70_000).collect();
        let sum = |spans: &[Span], phase: Option<u16>| {
            let of = spans.iter().filter(|span| phase.is_none_or(|phase| span.phase == phase));
            of.map(|span| span.instructions).sum::<u64>() as f64
        };
        for phase in 0..4 {
            let share = |spans: &[Span]| sum(spans, Some(phase)) / sum(spans, None);
            assert!((share(&long) - share(&recorded)).abs() < 0.02, "{phase}: {}", share(&long));
        }
    }

    #[test]
    fn nothing_recorded_is_continued_by_nothing() {
        assert_eq!(Continuation::new(&[], 1).next(), None);
    }

    #[test]
    fn a_program_of_one_phase_stays_in_it() {
        let recorded = spans(&[0]);
        assert!(Continuation::new(&recorded, 1).take(100).all(|span| span.phase == 0));
    }

    #[test]
    fn the_continuation_has_no_period_of_the_recordings_length() {
        // A recording whose order is irregular: looping it would give
        // autocorrelation 1 at its length.
        let recorded = spans(&[0, 1, 1, 0, 1, 0, 0, 1, 1, 1, 0, 1, 0, 0, 0, 1]);
        let long: Vec<u16> =
            Continuation::new(&recorded, 3).take(16_000).map(|span| span.phase).collect();
        let same = long.iter().zip(&long[16..]).filter(|(a, b)| a == b).count();
        let share = same as f64 / (long.len() - 16) as f64;
        assert!((0.4..0.6).contains(&share), "{share}");
    }

    #[test]
    fn shares_of_phases_stay_as_recorded() {
        let recorded = spans(&[0, 1, 2, 2, 1, 2, 0, 1, 2, 2, 1, 0]);
        let long: Vec<u16> =
            Continuation::new(&recorded, 3).take(50_000).map(|span| span.phase).collect();
        let share = long.iter().filter(|phase| **phase == 2).count() as f64 / long.len() as f64;
        assert!((share - 5.0 / 12.0).abs() < 0.05, "{share}");
    }

    proptest! {
        #[test]
        fn equal_seeds_continue_equally(phases in proptest::collection::vec(0_u16..4, 1..20), seed: u64) {
            let recorded = spans(&phases);
            let once: Vec<Span> = Continuation::new(&recorded, seed).take(200).collect();
            let again: Vec<Span> = Continuation::new(&recorded, seed).take(200).collect();
            prop_assert_eq!(&once, &again);
            prop_assert!(once.iter().all(|span| recorded.contains(span)));
        }
    }
}
