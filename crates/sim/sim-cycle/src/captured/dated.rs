//! Reuse times of the lines that were used before a window.
//!
//! # Problem
//! A window starts with a list of the lines that had been used before, the least recently used first,
//! without times. A simulated cache needs their order alone. A model of reuse times needs times that lead
//! to the same contents: a cache of C lines must reach back just to the C-th last line.
//!
//! # Approach
//! They are estimated from the window itself. As long as the program behaves as in the window, a line moves
//! back by one position of the LRU stack with each access to a line behind it, or to a new one. If b of the
//! window's a accesses are the first to such a line, that takes a/b accesses. So the age of the line at
//! position k is the sum of these times over all positions before it. Where the window uses nothing
//! behind a position, half an access is assumed to.
//!
//! # Terms and units
//! *Piece*: as many neighbouring lines of 64 bytes as make a longer line or a page. *Place*: the LRU stack
//! position, how many other pieces were used since.
//!
//! # Properties
//! `a_place_is_as_old_as_it_takes_to_get_there`.

use std::collections::{HashMap, HashSet};

/// Pieces that one stream used, before the window and in it.
#[derive(Debug)]
pub(super) struct ReuseAges {
    /// Lines of a piece.
    lines: u64,
    /// Is an access to the piece of the one before none, as of instructions?
    runs: bool,
    places: HashMap<u64, usize>,
    /// By place: did the window use it?
    again: Vec<bool>,
    fresh: HashSet<u64>,
    accesses: u64,
    last: Option<u64>,
}

impl ReuseAges {
    /// Nothing of the window yet. `before`: the lines used before it, the least recently
    /// used first.
    pub(super) fn new(
        before: impl DoubleEndedIterator<Item = u64>,
        lines: u64,
        runs: bool,
    ) -> Self {
        let mut places = HashMap::new();
        for line in before.rev() {
            let place = places.len();
            places.entry(line / lines).or_insert(place);
        }
        let again = vec![false; places.len()];
        Self { lines, runs, places, again, fresh: HashSet::new(), accesses: 0, last: None }
    }

    /// The window uses a line.
    pub(super) fn access(&mut self, line: u64) {
        let piece = line / self.lines;
        let before = self.last.replace(piece);
        if self.runs && before == Some(piece) {
            return;
        }
        self.accesses += 1;
        match self.places.get(&piece) {
            Some(&place) => self.again[place] = true,
            None => {
                self.fresh.insert(piece);
            }
        }
    }

    /// How many accesses before the window's first one lines were used, all of them known by now.
    pub(super) fn ages(&self) -> Ages<'_> {
        let again = self.again.iter().filter(|again| **again).count();
        let mut behind = (self.fresh.len() + again) as f64;
        let mut age = 0.0;
        let by_place = self.again.iter().map(|again| {
            age += self.accesses as f64 / behind.max(0.5);
            behind -= f64::from(u8::from(*again));
            age
        });
        Ages { by_place: by_place.collect(), dated: self }
    }
}

/// See [`ReuseAges::ages`].
#[derive(Debug)]
pub(super) struct Ages<'d> {
    by_place: Vec<f64>,
    dated: &'d ReuseAges,
}

impl Ages<'_> {
    /// Of a line that was used before the window, in accesses; 0 of others.
    pub(super) fn of(&self, line: u64) -> u64 {
        let place = self.dated.places.get(&(line / self.dated.lines));
        let age = place.and_then(|place| self.by_place.get(*place));
        age.map_or(0, |age| age.ceil() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_as_old_as_it_takes_to_get_there() {
        // Ten pieces of two lines; those at the places 2 and 9 are used again, two are new.
        let mut dated = ReuseAges::new((0..20).rev(), 2, false);
        for line in [4, 19, 4, 5, 100, 102, 103, 100] {
            dated.access(line);
        }
        let ages = dated.ages();
        // Of eight accesses four are the first to something behind the first places.
        assert_eq!([0, 2, 4].map(|line| ages.of(line)), [2, 4, 6]);
        // Behind place 2 three.
        assert_eq!(ages.of(6), 9);
        assert_eq!(ages.of(18), (6.0 + 7.0 * 8.0 / 3.0_f64).ceil() as u64);
        assert_eq!(ages.of(102), 0);
        // Of instructions a piece counts when it is entered.
        let mut code = ReuseAges::new(0..20, 2, true);
        for line in [4, 5, 100, 4, 4] {
            code.access(line);
        }
        assert_eq!(code.accesses, 3);
    }
}
