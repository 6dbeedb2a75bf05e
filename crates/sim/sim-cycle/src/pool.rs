//! Queues and buffers that threads partition, share or cap.
//!
//! # Properties
//! `each_rule_leaves_a_thread_what_it_says`, `a_thread_that_holds_back_gets_an_even_part`.

use symbiont_sim_fast::description::{SmtRule, Structure};

/// The entries of a structure, and how many each thread holds.
#[derive(Debug, Clone)]
pub struct Pool {
    /// Held by each thread, and the most that it may hold.
    threads: Vec<(u32, u32)>,
    /// The group in which each thread competes.
    group_of: Vec<usize>,
    /// Held in each group, and the most.
    groups: Vec<(u32, u32)>,
    /// The part of each thread if its group were as large as the core is set up for.
    even: Vec<u32>,
}

impl Pool {
    /// A structure on a core that is set up for `mode` threads, of which the first
    /// `threads` are there.
    #[must_use]
    pub fn new(structure: Structure, threads: usize, mode: u32) -> Self {
        let (entries, mode) = (structure.entries.max(1), mode.max(threads as u32).max(1));
        let even = (entries / mode).max(1);
        let alone = |most| (vec![most; threads], (0..threads).collect(), vec![most; threads]);
        let (most, group_of, groups) = match structure.smt {
            SmtRule::Private => alone(entries),
            SmtRule::Partitioned => alone(even),
            SmtRule::Shared => (vec![entries; threads], vec![0; threads], vec![entries]),
            SmtRule::Capped(share) if mode > 1 => {
                // A cast from a float saturates.
                let most = (f64::from(entries) * share) as u32;
                (vec![most.clamp(even, entries); threads], vec![0; threads], vec![entries])
            }
            SmtRule::Halved if mode > 1 => {
                let half = (entries / 2).max(1);
                (vec![half; threads], (0..threads).map(|t| t % 2).collect(), vec![half; 2])
            }
            SmtRule::Capped(_) | SmtRule::Halved => alone(entries),
        };
        let group_of: Vec<usize> = group_of;
        let even = match structure.smt {
            SmtRule::Shared | SmtRule::Capped(_) | SmtRule::Halved => even,
            SmtRule::Private | SmtRule::Partitioned => u32::MAX,
        };
        let even = most.iter().map(|most| even.min(*most)).collect();
        Self {
            even,
            threads: most.into_iter().map(|most| (0, most)).collect(),
            group_of,
            groups: groups.into_iter().map(|most: u32| (0, most)).collect(),
        }
    }

    /// Most that one thread may hold.
    #[must_use]
    pub fn most(&self) -> u32 {
        self.threads.iter().map(|(_, most)| *most).max().unwrap_or(0)
    }

    /// Is there an entry for the thread?
    #[inline]
    #[must_use]
    pub fn has_room(&self, thread: usize) -> bool {
        let (held, most) = self.threads[thread];
        let (group_held, group_most) = self.groups[self.group_of[thread]];
        held < most && group_held < group_most
    }

    /// Is there an entry for a thread that holds back: that takes no more than an even part of what
    /// it shares?
    #[inline]
    #[must_use]
    pub fn has_even_room(&self, thread: usize) -> bool {
        self.threads[thread].0 < self.even[thread] && self.has_room(thread)
    }

    /// The thread takes an entry.
    #[inline]
    pub fn take(&mut self, thread: usize) {
        self.threads[thread].0 += 1;
        self.groups[self.group_of[thread]].0 += 1;
    }

    /// The thread gives an entry back.
    #[inline]
    pub fn give(&mut self, thread: usize) {
        self.threads[thread].0 -= 1;
        self.groups[self.group_of[thread]].0 -= 1;
    }

    /// Entries that the thread holds.
    #[inline]
    #[must_use]
    pub fn held(&self, thread: usize) -> u32 {
        self.threads[thread].0
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
