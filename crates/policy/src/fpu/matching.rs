//! A seat for each party, where parties accept some seats only.
//!
//! # Approach
//! A party takes the free seat that it likes most. Where none is free to it, others change their seats, each for
//! one that it accepts too, along the first such chain that is found (an augmenting path). So a party is
//! refused only if no change of seats makes room for it, and none that has a seat is left without one.
//!
//! # Properties
//! - One is refused only where no seats are left for all (`as_many_are_seated_as_can_be`).

use std::collections::{BTreeMap, BTreeSet};

/// The party on each seat that is taken.
#[derive(Debug, Clone)]
pub(super) struct Matching<S>(BTreeMap<S, usize>);

impl<S> Default for Matching<S> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<S: Copy + Ord> Matching<S> {
    pub(super) fn is_free(&self, seat: S) -> bool {
        !self.0.contains_key(&seat)
    }

    /// Each seat that is taken, with its party.
    pub(super) fn iter(&self) -> impl Iterator<Item = (S, usize)> + '_ {
        self.0.iter().map(|(seat, party)| (*seat, *party))
    }

    /// Gives a party a seat; false: there is none for it. `accepted`: what a party accepts, the seat that
    /// it likes most first.
    pub(super) fn seat(&mut self, party: usize, accepted: &dyn Fn(usize) -> Vec<S>) -> bool {
        self.find(party, accepted, &mut BTreeSet::new())
    }

    fn find(
        &mut self,
        party: usize,
        accepted: &dyn Fn(usize) -> Vec<S>,
        asked: &mut BTreeSet<S>,
    ) -> bool {
        let seats = accepted(party);
        if let Some(free) = seats.iter().find(|seat| self.is_free(**seat)) {
            self.0.insert(*free, party);
            return true;
        }
        for seat in seats {
            let Some(other) = self.0.get(&seat).copied().filter(|_| asked.insert(seat)) else {
                continue;
            };
            if self.find(other, accepted, asked) {
                self.0.insert(seat, party);
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The most parties that can sit, by trying all.
    fn most(parties: &[Vec<u8>], taken: u8) -> usize {
        let Some((first, rest)) = parties.split_first() else { return 0 };
        let free = first.iter().filter(|seat| taken & (1 << **seat) == 0);
        let seated = free.map(|seat| 1 + most(rest, taken | 1 << seat));
        seated.chain([most(rest, taken)]).max().unwrap_or(0)
    }

    proptest! {
        #[test]
        fn as_many_are_seated_as_can_be(
            parties in prop::collection::vec(prop::collection::vec(0_u8..6, 0..4), 0..7),
        ) {
            let mut matching = Matching::default();
            let accepted = |party: usize| parties[party].clone();
            let mut before = BTreeSet::new();
            for party in 0..parties.len() {
                let seated = matching.seat(party, &accepted);
                prop_assert!(matching.iter().all(|(seat, party)| parties[party].contains(&seat)));
                let now: BTreeSet<usize> = matching.iter().map(|(_, party)| party).collect();
                prop_assert!(now.is_superset(&before) && now.contains(&party) == seated);
                prop_assert_eq!(now.len(), most(&parties[..=party], 0));
                before = now;
            }
        }
    }
}
