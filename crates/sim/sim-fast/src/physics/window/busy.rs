//! A resource that is taken by one at a time: the spans for which it is busy, and the gaps between them.
//!
//! Operations come in program order but start in any order, so a later one may need the resource sooner
//! than an earlier one: it takes a gap that is long enough. A pointer to the next free
//! moment would make it wait for all that came before.
//!
//! # Properties
//! `a_gap_that_is_long_enough_is_found`, `spans_never_overlap`.

use super::account::Ticks;

/// The spans of which the end was not passed yet, in order; none overlaps another.
#[derive(Debug, Clone, Default)]
pub struct Busy {
    spans: Vec<(Ticks, Ticks)>,
}

impl Busy {
    /// Never taken.
    pub fn clear(&mut self) {
        self.spans.clear();
    }

    /// What ended until `now` is forgotten: no time before it is asked for.
    #[inline]
    pub fn pass(&mut self, now: Ticks) {
        let ended = self.spans.iter().take_while(|(_, end)| *end <= now).count();
        self.spans.drain(..ended);
    }

    /// The first moment from `from` at which it is free for so long.
    #[inline]
    pub fn free(&self, from: Ticks, long: Ticks) -> Ticks {
        let mut at = from;
        for &(begin, end) in &self.spans {
            if at + long <= begin {
                break;
            }
            at = at.max(end);
        }
        at
    }

    /// Takes it, from a moment that was reported free; what is taken already is not taken twice.
    #[inline]
    pub fn take(&mut self, from: Ticks, until: Ticks) {
        let at = self.spans.partition_point(|(begin, _)| *begin < from);
        let from = at.checked_sub(1).map_or(from, |before| from.max(self.spans[before].1));
        let until = self.spans.get(at).map_or(until, |(begin, _)| until.min(*begin));
        if from < until {
            self.spans.insert(at, (from, until));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_gap_that_is_long_enough_is_found() {
        let mut busy = Busy::default();
        busy.take(100, 150);
        busy.take(10, 20);
        assert_eq!(busy.free(0, 10), 0);
        assert_eq!(busy.free(0, 11), 20);
        assert_eq!(busy.free(15, 80), 20);
        assert_eq!(busy.free(15, 81), 150);
        assert_eq!(busy.free(120, 1), 150);
        busy.pass(20);
        assert_eq!(busy.free(0, 100), 0);
        // What lies in others is cut.
        busy.take(90, 120);
        busy.take(140, 160);
        assert_eq!(busy.free(80, 11), 160);
    }

    proptest! {
        #[test]
        fn spans_never_overlap(asked in prop::collection::vec((0_u64..500, 1_u64..40), 1..60)) {
            let mut busy = Busy::default();
            let mut taken: Vec<(Ticks, Ticks)> = Vec::new();
            for (from, long) in asked {
                let at = busy.free(from, long);
                prop_assert!(at >= from);
                prop_assert!(taken.iter().all(|(begin, end)| at + long <= *begin || at >= *end));
                busy.take(at, at + long);
                taken.push((at, at + long));
            }
            prop_assert!(busy.spans.is_sorted());
        }
    }
}
