//! A place for each party, where parties accept some places only.
//!
//! # Approach
//! A party takes the free place that it likes most. Where none is free to it, others change their places, each for
//! one that it accepts too, along the first such chain that is found (an augmenting path). So a party is
//! refused only if no change of places makes room for it, and none that has a place is left without one.
//!
//! # Properties
//! - One is refused only where no places are left for all (`as_many_are_placed_as_can_be`).

use std::collections::{BTreeMap, BTreeSet};

/// The party on each place that is taken.
#[derive(Debug, Clone)]
pub(super) struct Matching<S>(BTreeMap<S, usize>);

impl<S> Default for Matching<S> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<S: Copy + Ord> Matching<S> {
    pub(super) fn is_free(&self, place: S) -> bool {
        !self.0.contains_key(&place)
    }

    /// Each place that is taken, with its party.
    pub(super) fn iter(&self) -> impl Iterator<Item = (S, usize)> + '_ {
        self.0.iter().map(|(place, party)| (*place, *party))
    }

    /// Gives a party a place; false: there is none for it. `accepted`: what a party accepts, the place that
    /// it likes most first.
    pub(super) fn place(&mut self, party: usize, accepted: &dyn Fn(usize) -> Vec<S>) -> bool {
        self.find(party, accepted, &mut BTreeSet::new())
    }

    fn find(
        &mut self,
        party: usize,
        accepted: &dyn Fn(usize) -> Vec<S>,
        asked: &mut BTreeSet<S>,
    ) -> bool {
        let places = accepted(party);
        if let Some(free) = places.iter().find(|place| self.is_free(**place)) {
            self.0.insert(*free, party);
            return true;
        }
        for place in places {
            let Some(other) = self.0.get(&place).copied().filter(|_| asked.insert(place)) else {
                continue;
            };
            if self.find(other, accepted, asked) {
                self.0.insert(place, party);
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

    /// The most parties that can have places, by trying all.
    fn most(parties: &[Vec<u8>], taken: u8) -> usize {
        let Some((first, rest)) = parties.split_first() else { return 0 };
        let free = first.iter().filter(|place| taken & (1 << **place) == 0);
        let placed = free.map(|place| 1 + most(rest, taken | 1 << place));
        placed.chain([most(rest, taken)]).max().unwrap_or(0)
    }

    proptest! {
        #[test]
        fn as_many_are_placed_as_can_be(
            parties in prop::collection::vec(prop::collection::vec(0_u8..6, 0..4), 0..7),
        ) {
            let mut matching = Matching::default();
            let accepted = |party: usize| parties[party].clone();
            let mut before = BTreeSet::new();
            for party in 0..parties.len() {
                let placed = matching.place(party, &accepted);
                prop_assert!(matching.iter().all(|(place, party)| parties[party].contains(&place)));
                let now: BTreeSet<usize> = matching.iter().map(|(_, party)| party).collect();
                prop_assert!(now.is_superset(&before) && now.contains(&party) == placed);
                prop_assert_eq!(now.len(), most(&parties[..=party], 0));
                before = now;
            }
        }
    }
}
