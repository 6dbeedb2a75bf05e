//! Branch predictors: tables of two-bit counters.
//!
//! # Properties
//! `a_bias_is_learnt_by_two_bits`, `a_pattern_is_learnt_with_history_only`,
//! `threads_spoil_a_shared_table_only`.

/// How a predictor finds its counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Indexing {
    /// By the branch's address.
    Address,
    /// By the address and the directions of the last branches (McFarling's gshare).
    #[default]
    History,
}

/// Who has a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tables {
    /// The core has one.
    #[default]
    Shared,
    /// Each thread has one of the full size.
    Private,
}

/// The predictor of a core.
#[derive(Debug, Clone)]
pub struct Predictor {
    indexing: Indexing,
    tables: Vec<Vec<u8>>,
    histories: Vec<u64>,
}

impl Predictor {
    /// `entries` (rounded up to a power of two) counters that weakly predict not taken.
    #[must_use]
    pub fn new(entries: u32, indexing: Indexing, tables: Tables, threads: usize) -> Self {
        let table = vec![1; entries.clamp(2, 1 << 24).next_power_of_two() as usize];
        let count = if tables == Tables::Private { threads.max(1) } else { 1 };
        Self { indexing, tables: vec![table; count], histories: vec![0; threads] }
    }

    /// A thread's branch at `pc` goes its way: was it guessed wrong?
    pub fn wrong(&mut self, thread: usize, pc: u64, taken: bool) -> bool {
        let own = if self.tables.len() > 1 { thread } else { 0 };
        let (table, history) = (&mut self.tables[own], &mut self.histories[thread]);
        let spread = pc.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
        let place = match self.indexing {
            Indexing::Address => spread,
            Indexing::History => spread ^ *history,
        };
        let at = place as usize & (table.len() - 1);
        let counter = table[at];
        table[at] = if taken { (counter + 1).min(3) } else { counter.saturating_sub(1) };
        *history = *history << 1 | u64::from(taken);
        (counter >= 2) != taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrongs(predictor: &mut Predictor, thread: usize, way: impl Fn(u64) -> bool) -> u64 {
        (0..1000).map(|n| u64::from(predictor.wrong(thread, 64, way(n)))).sum()
    }

    #[test]
    fn a_bias_is_learnt_by_two_bits() {
        let mut simple = Predictor::new(64, Indexing::Address, Tables::Shared, 1);
        // Once in ten it falls through: one wrong guess each time, the bias stays.
        assert_eq!(wrongs(&mut simple, 0, |n| n % 10 != 9), 1 + 100);
    }

    #[test]
    fn a_pattern_is_learnt_with_history_only() {
        let pattern = |n: u64| n % 3 == 0;
        let mut simple = Predictor::new(4096, Indexing::Address, Tables::Shared, 1);
        let mut history = Predictor::new(4096, Indexing::History, Tables::Shared, 1);
        assert!(wrongs(&mut simple, 0, pattern) > 300);
        assert!(wrongs(&mut history, 0, pattern) < 40);
    }

    #[test]
    fn threads_spoil_a_shared_table_only() {
        for (tables, spoilt) in [(Tables::Shared, true), (Tables::Private, false)] {
            let mut both = Predictor::new(64, Indexing::Address, tables, 2);
            let wrong: u64 = (0..1000)
                .map(|_| u64::from(both.wrong(0, 64, true)) + u64::from(both.wrong(1, 64, false)))
                .sum();
            assert_eq!(wrong > 900, spoilt, "{tables:?}: {wrong}");
        }
    }
}
