//! Which user displaced which line.
//!
//! # Approach
//! Lines that are displaced lie near each other in memory, so 64 neighbours share a block: two bytes for
//! each, where an entry of a hash table takes twenty.
//!
//! # Properties
//! `lines_are_known_as_in_a_plain_map`.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// log₂ of the lines of a block.
const BLOCK: u32 = 6;

/// For each line of a block the number of the user that displaced it, plus 1.
type Block = Box<[u16; 1 << BLOCK]>;

/// The users that displaced lines which are not back yet.
#[derive(Debug, Clone, Default)]
pub(super) struct Lost {
    blocks: HashMap<u64, Block, BuildHasherDefault<Spread>>,
}

fn place(line: u64) -> (u64, usize) {
    (line >> BLOCK, (line & ((1 << BLOCK) - 1)) as usize)
}

/// A user's number in a block: those beyond the last one that fits are taken for one.
fn stored(user: usize) -> u16 {
    u16::try_from(user).unwrap_or(u16::MAX).saturating_add(1)
}

impl Lost {
    /// Did this user displace the line? None: no user did, or it has been back.
    #[inline]
    pub(super) fn is_by(&self, line: u64, user: usize) -> Option<bool> {
        let (block, at) = place(line);
        let by = self.blocks.get(&block)?[at];
        (by != 0).then(|| by == stored(user))
    }

    /// A user displaced the line.
    #[inline]
    pub(super) fn displaced(&mut self, line: u64, user: usize) {
        let (block, at) = place(line);
        self.blocks.entry(block).or_insert_with(|| Box::new([0; 1 << BLOCK]))[at] = stored(user);
    }

    /// The line is back.
    #[inline]
    pub(super) fn back(&mut self, line: u64) {
        let (block, at) = place(line);
        if let Some(block) = self.blocks.get_mut(&block) {
            block[at] = 0;
        }
    }
}

/// A hash of one number. Addresses are not chosen so that they collide.
#[derive(Debug, Clone, Copy, Default)]
struct Spread(u64);

impl Hasher for Spread {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    #[inline]
    fn write_u64(&mut self, number: u64) {
        let mixed = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 32;
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn lines_are_known_as_in_a_plain_map(
            steps in prop::collection::vec((any::<bool>(), 0_u64..300, 0_usize..4), 1..300),
        ) {
            let (mut lost, mut plain) = (Lost::default(), HashMap::new());
            for (displaced, line, user) in steps {
                // Some are far from the others.
                let line = if line % 3 == 0 { line << 40 } else { line };
                if displaced {
                    lost.displaced(line, user);
                    plain.insert(line, user);
                } else {
                    lost.back(line);
                    plain.remove(&line);
                }
                prop_assert_eq!(lost.is_by(line, user), plain.get(&line).map(|by| *by == user));
            }
            for (line, by) in &plain {
                prop_assert_eq!(lost.is_by(*line, *by), Some(true));
                prop_assert_eq!(lost.is_by(*line, by + 1), Some(false));
            }
        }
    }
}
