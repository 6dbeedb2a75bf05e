//! Predicts the directions of branches by two-bit counters (McFarling), in four tables at once.
//!
//! # Approach
//! Each table is half as long as the one before, and each is looked up by as many bits of the same number. So the
//! counters that a number can lead to are kept together, in a word for each place of the shortest table:
//!
//! ```text
//! bits      0 … 15       16 … 23      24 … 27      28 … 29
//! counters  8 of the     4 of the     2 of the     1 of the
//!           longest      second       third        shortest
//! ```
//!
//! All four are counted up or down in the same few steps: with bits h and l, a counter up is h | l, h | ¬l, and down
//! is the same with both bits flipped before and after.
//!
//! # Properties
//! It mispredicts what four tables do (`they_are_four_tables`).

use crate::PREDICTOR_CONFIGS;

/// Tables.
pub(super) const TABLES: usize = 4;
/// Words: the length of the shortest table.
const WORDS: usize = PREDICTOR_CONFIGS[TABLES - 1].entries as usize;
/// The bits of each.
const TABLE_BITS: [u32; TABLES] = [0xffff, 0xff << 16, 0xf << 24, 3 << 28];
/// The lower bits of the counters that the bits of the number above those of the word choose.
const CHOSEN: [u32; 1 << (TABLES - 1)] = {
    let mut chosen = [0; 1 << (TABLES - 1)];
    let mut choice = 0;
    while choice < chosen.len() {
        chosen[choice] = 1 << (2 * choice)
            | 1 << (16 + 2 * (choice & 3))
            | 1 << (24 + 2 * (choice & 1))
            | 1 << 28;
        choice += 1;
    }
    chosen
};
/// Every counter predicts weakly that the branch is not taken.
const WEAK: u32 = 0x1555_5555;

/// The tables.
#[derive(Debug)]
pub(super) struct Gshares {
    words: Box<[u32; WORDS]>,
}

impl Gshares {
    pub(super) fn new() -> Self {
        Self { words: Box::new([WEAK; WORDS]) }
    }

    /// A branch was taken or not, of which this number comes from its address and history. Bit i: the i-th table
    /// mispredicted it. Learns from it.
    #[inline]
    pub(super) fn mispredict(&mut self, place: u64, taken: bool) -> u8 {
        let choice = (place as usize / WORDS) % CHOSEN.len();
        let word = &mut self.words[place as usize % WORDS];
        let lows = CHOSEN[choice];
        let chosen = 3 * lows;
        let flip = if taken { 0 } else { u32::MAX };
        // Flipped, a counter that is sure and right is 3: nothing changes.
        if (*word ^ flip) & chosen == chosen {
            return 0;
        }
        let (high, low) = ((*word ^ flip) >> 1 & lows, (*word ^ flip) & lows);
        let (up_high, up_low) = (high | low, high | low ^ lows);
        *word = *word & !chosen | (up_high << 1 | up_low) ^ (flip & chosen);
        let wrong = high ^ lows;
        // The counters of a table are the only ones of its bits.
        let tables = TABLE_BITS.iter().enumerate();
        tables.fold(0, |bits, (table, of)| bits | u8::from(wrong & of != 0) << table)
    }
}

#[cfg(test)]
mod tests {
    use super::{Gshares, TABLES};
    use crate::PREDICTOR_CONFIGS;

    #[test]
    fn they_are_four_tables() {
        let mut together = Gshares::new();
        let mut apart: [Vec<u8>; TABLES] =
            std::array::from_fn(|table| vec![1; PREDICTOR_CONFIGS[table].entries as usize]);
        let mut state = 1_u64;
        for round in 0..1_000_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let place = state >> 40 & 0x7_ffff;
            let taken = place % 3 == 0 || state >> 33 & 7 == 0;
            let mut wrong = 0;
            for (bit, counters) in apart.iter_mut().enumerate() {
                let index = place as usize & (counters.len() - 1);
                let counter = &mut counters[index];
                wrong |= u8::from((*counter >= 2) != taken) << bit;
                *counter = if taken { (*counter + 1).min(3) } else { counter.saturating_sub(1) };
            }
            assert_eq!(together.mispredict(place, taken), wrong, "round {round}");
        }
    }
}
