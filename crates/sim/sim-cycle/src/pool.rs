//! Queues and buffers that threads partition, share or cap.
//!
//! # Properties
//! `each_rule_leaves_a_thread_what_it_says`, `a_thread_that_holds_back_gets_an_even_part`.

use symbiont_sim_fast::description::{SmtRule, Structure};

/// A thread's part of a structure.
#[derive(Debug, Clone, Copy)]
struct Part {
    /// Entries that it holds, and the most that it may hold.
    held: u32,
    most: u32,
    /// Its part if its group were as large as the core is set up for.
    even: u32,
    /// The group in which it competes.
    group: u32,
}

/// The entries of a structure, and how many each thread holds.
#[derive(Debug, Clone)]
pub struct Pool {
    threads: Vec<Part>,
    /// Held in each group, and the most.
    groups: [(u32, u32); GROUPS],
}

/// Groups in which threads compete; there are two where a structure is halved.
const GROUPS: usize = 2;

impl Pool {
    /// A structure on a core that is set up for `mode` threads, of which the first
    /// `threads` are there.
    #[must_use]
    pub fn new(structure: Structure, threads: usize, mode: u32) -> Self {
        let (entries, mode) = (structure.entries.max(1), mode.max(threads as u32).max(1));
        let even = (entries / mode).max(1);
        // The most that a thread may hold, its even part, and the most of a group.
        let (most, even, of_group) = match structure.smt {
            SmtRule::Private => (entries, entries, u32::MAX),
            SmtRule::Partitioned => (even, even, u32::MAX),
            SmtRule::Shared => (entries, even, entries),
            SmtRule::Capped(share) if mode > 1 => {
                // A cast from a float saturates.
                let most = (f64::from(entries) * share) as u32;
                (most.clamp(even, entries), even, entries)
            }
            SmtRule::Halved if mode > 1 => {
                let half = (entries / 2).max(1);
                (half, even, half)
            }
            SmtRule::Capped(_) | SmtRule::Halved => (entries, even, u32::MAX),
        };
        let halved = structure.smt == SmtRule::Halved;
        let part = |thread: usize| {
            let group = if halved { thread % GROUPS } else { 0 };
            Part { held: 0, most, even: even.min(most), group: group as u32 }
        };
        Self { threads: (0..threads).map(part).collect(), groups: [(0, of_group); GROUPS] }
    }

    /// Most that one thread may hold.
    #[must_use]
    pub fn most(&self) -> u32 {
        self.threads.iter().map(|part| part.most).max().unwrap_or(0)
    }

    /// Is there an entry for the thread?
    #[inline]
    #[must_use]
    pub fn has_room(&self, thread: usize) -> bool {
        let part = &self.threads[thread];
        let (held, most) = self.groups[part.group as usize % GROUPS];
        part.held < part.most && held < most
    }

    /// Is there an entry for a thread that holds back: that takes no more than an even part of what
    /// it shares?
    #[inline]
    #[must_use]
    pub fn has_even_room(&self, thread: usize) -> bool {
        let part = &self.threads[thread];
        part.held < part.even && self.has_room(thread)
    }

    /// The thread takes an entry.
    #[inline]
    pub fn take(&mut self, thread: usize) {
        let part = &mut self.threads[thread];
        part.held += 1;
        self.groups[part.group as usize % GROUPS].0 += 1;
    }

    /// The thread gives an entry back.
    #[inline]
    pub fn give(&mut self, thread: usize) {
        self.give_many(thread, 1);
    }

    /// The thread gives so many entries back.
    #[inline]
    pub fn give_many(&mut self, thread: usize, count: u32) {
        let part = &mut self.threads[thread];
        part.held -= count;
        self.groups[part.group as usize % GROUPS].0 -= count;
    }

    /// Entries that the thread holds.
    #[inline]
    #[must_use]
    pub fn held(&self, thread: usize) -> u32 {
        self.threads[thread].held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many the first thread gets, then the second with it.
    fn fill(entries: u32, smt: SmtRule, threads: usize, mode: u32) -> Vec<u32> {
        let mut pool = Pool::new(Structure { entries, smt }, threads, mode);
        (0..threads)
            .map(|thread| {
                while pool.has_room(thread) {
                    pool.take(thread);
                }
                pool.held(thread)
            })
            .collect()
    }

    #[test]
    fn a_thread_that_holds_back_gets_an_even_part() {
        let even = |entries, smt, threads, mode| -> Vec<u32> {
            let mut pool = Pool::new(Structure { entries, smt }, threads, mode);
            while pool.has_even_room(0) {
                pool.take(0);
            }
            (0..threads).map(|thread| pool.held(thread)).collect()
        };
        assert_eq!(even(12, SmtRule::Shared, 2, 2), [6, 0]);
        assert_eq!(even(12, SmtRule::Shared, 1, 4), [3]);
        assert_eq!(even(12, SmtRule::Capped(0.75), 2, 2), [6, 0]);
        assert_eq!(even(12, SmtRule::Partitioned, 2, 2), [6, 0]);
        assert_eq!(even(12, SmtRule::Halved, 4, 4), [3, 0, 0, 0]);
        assert_eq!(even(12, SmtRule::Private, 2, 2), [12, 0]);
    }

    #[test]
    fn each_rule_leaves_a_thread_what_it_says() {
        assert_eq!(fill(12, SmtRule::Private, 2, 2), [12, 12]);
        assert_eq!(fill(12, SmtRule::Partitioned, 2, 2), [6, 6]);
        assert_eq!(fill(12, SmtRule::Partitioned, 1, 4), [3]);
        assert_eq!(fill(12, SmtRule::Shared, 2, 2), [12, 0]);
        assert_eq!(fill(12, SmtRule::Capped(0.75), 2, 2), [9, 3]);
        assert_eq!(fill(12, SmtRule::Capped(0.75), 1, 1), [12]);
        assert_eq!(fill(12, SmtRule::Halved, 4, 4), [6, 6, 0, 0]);
        assert_eq!(fill(12, SmtRule::Halved, 1, 1), [12]);
    }
}
