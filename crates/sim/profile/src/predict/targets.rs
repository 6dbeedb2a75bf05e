//! Predicts the targets of branches by tagged tables for several lengths of history.
//!
//! # Approach
//! A smaller version of Seznec, A 64-Kbytes ITTAGE indirect branch predictor, 2011: the last target by address,
//! and tables of tagged targets by the address and the last 8 to 64 bits of history. The longest history whose
//! entry has the tag predicts. A target is replaced after it was wrong twice in a row.

use super::tage::{hashed, mixed, tag};

const TABLES: usize = 3;
/// Bits of history of each.
const LENGTHS: [u32; TABLES] = [8, 24, 64];
const MOST_SURE: u8 = 3;

#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    tag: u16,
    sure: u8,
    target: u64,
}

/// The tables of one predictor.
#[derive(Debug, Clone)]
pub struct Targets {
    last: Vec<u64>,
    tables: [Vec<Entry>; TABLES],
}

impl Targets {
    /// Tables with this many targets in each, rounded to a power of two.
    #[must_use]
    pub fn new(each: usize) -> Self {
        let each = each.clamp(16, 1 << 20).next_power_of_two();
        Self { last: vec![0; each], tables: std::array::from_fn(|_| vec![Entry::default(); each]) }
    }

    /// An indirect branch at `at` went to `target`: was it mispredicted? Learns from it.
    pub fn mispredicts(&mut self, at: u64, history: u128, target: u64) -> bool {
        let mask = self.last.len() - 1;
        let last = &mut self.last[mixed(at) as usize & mask];
        let by_address = std::mem::replace(last, target);
        let hashes = LENGTHS.map(|bits| hashed(at, history, bits));
        let tables = self.tables.iter_mut().zip(hashes).enumerate().rev();
        let mut entries: Vec<(usize, u16, &mut Entry)> = Vec::with_capacity(TABLES);
        for (number, (table, hash)) in tables {
            entries.push((number, tag(hash), &mut table[hash as usize & mask]));
        }
        let known = entries.iter().position(|(_, tag, entry)| entry.tag == *tag);
        let predicted = known.map_or(by_address, |at| entries[at].2.target);
        if let Some((_, _, entry)) = known.and_then(|at| entries.get_mut(at)) {
            match (entry.target == target, entry.sure) {
                (true, sure) => entry.sure = (sure + 1).min(MOST_SURE),
                (false, 0) => entry.target = target,
                (false, sure) => entry.sure = sure - 1,
            }
        }
        if predicted != target {
            // The entries before the known one have longer histories, the nearest last.
            let longer = &mut entries[..known.unwrap_or(TABLES)];
            match longer.iter_mut().rev().find(|(_, _, entry)| entry.sure == 0) {
                Some((_, tag, entry)) => **entry = Entry { tag: *tag, sure: 0, target },
                None => longer.iter_mut().for_each(|(_, _, entry)| entry.sure -= 1),
            }
        }
        predicted != target
    }
}
