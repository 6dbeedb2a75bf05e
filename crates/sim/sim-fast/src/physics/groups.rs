//! Which threads share which cache, core by core.
//!
//! # Approach
//! Most caches belong to one core, some to several. The fixed point settles each core by itself as far as
//! it can, so the groups of a core lie next to each other, and those of several cores behind them.
//!
//! # Properties
//! Each thread is in one group of each level; a group is a core's own if no other core's threads are in
//! it (`groups_hold_all_threads_once_for_each_level`).

use std::collections::BTreeMap;
use std::ops::Range;

use super::domains::Physics;
use super::pipeline::CacheLevel;
use super::tasks::{self, Task};

/// Instances of caches and the threads that share each.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Groups {
    /// Core of each task, and whether all is private: what the rest follows from.
    of: (Vec<usize>, bool),
    /// Of each core that has any, its tasks and its own groups.
    cores: Vec<(Range<usize>, Range<usize>)>,
    members: Vec<usize>,
    /// Those of one core, core by core; then those of several.
    groups: Vec<(CacheLevel, f64, Range<usize>)>,
}

/// An instance of a cache: its level, its lines, the tasks that share it.
pub type Group<'g> = (CacheLevel, f64, &'g [usize]);

impl Groups {
    /// Which threads share which instance. With `private` each thread has all of one.
    /// What is still right is kept.
    pub fn update(&mut self, physics: &Physics, tasks: &[Task<'_>], private: bool) {
        let cores = || tasks.iter().map(|task| task.core);
        if self.of.1 == private && cores().eq(self.of.0.iter().copied()) {
            return;
        }
        let ranges: Vec<Range<usize>> = tasks::by_core(tasks).collect();
        let mut place = vec![0; tasks.len()];
        for (number, range) in ranges.iter().enumerate() {
            place[range.clone()].fill(number);
        }
        let several = ranges.len();
        let mut found: Vec<(usize, CacheLevel, f64, Vec<usize>)> = Vec::new();
        for level in CacheLevel::ALL {
            // Instances are numbered by core, cluster or LLC domain.
            let mut instances: BTreeMap<(usize, usize), (f64, Vec<usize>)> = BTreeMap::new();
            for (index, task) in tasks.iter().enumerate() {
                let cache = physics.cores[task.core].caches[level as usize];
                let key = match cache.shared.filter(|_| !private) {
                    Some(number) => (number, usize::MAX),
                    None => (usize::MAX, index),
                };
                instances.entry(key).or_insert((cache.lines, Vec::new())).1.push(index);
            }
            for (lines, members) in instances.into_values() {
                let first = members.first().map_or(several, |member| place[*member]);
                let own = members.iter().all(|member| place[*member] == first);
                found.push((if own { first } else { several }, level, lines, members));
            }
        }
        found.sort_by_key(|(owner, ..)| *owner);
        let owned = |ranges: Vec<Range<usize>>| {
            let own = |(number, tasks): (usize, Range<usize>)| {
                let start = found.partition_point(|(owner, ..)| *owner < number);
                let end = found.partition_point(|(owner, ..)| *owner <= number);
                (tasks, start..end)
            };
            ranges.into_iter().enumerate().map(own).collect()
        };
        *self = Self { of: (cores().collect(), private), cores: owned(ranges), ..Self::default() };
        for (_, level, lines, members) in found {
            let start = self.members.len();
            self.members.extend(members);
            self.groups.push((level, lines, start..self.members.len()));
        }
    }

    /// How many cores have any tasks.
    pub fn cores(&self) -> usize {
        self.cores.len()
    }

    /// The tasks of a core.
    pub fn tasks(&self, core: usize) -> Range<usize> {
        self.cores[core].0.clone()
    }

    /// The groups of a core alone.
    pub fn of_core(&self, core: usize) -> impl Iterator<Item = Group<'_>> {
        self.some(self.cores[core].1.clone())
    }

    /// The groups of several cores.
    pub fn of_several(&self) -> impl Iterator<Item = Group<'_>> {
        let start = self.cores.last().map_or(0, |(_, own)| own.end);
        self.some(start..self.groups.len())
    }

    fn some(&self, groups: Range<usize>) -> impl Iterator<Item = Group<'_>> {
        self.groups[groups]
            .iter()
            .map(|(level, lines, range)| (*level, *lines, &self.members[range.clone()]))
    }
}

#[cfg(test)]
mod tests {
    use symbiont_profile::test_support;

    use super::*;
    use crate::description::Description;
    use crate::physics::prepared::Prepared;
    use crate::physics::tasks::{CoreLoad, RunningThread, Switches};

    #[test]
    fn groups_hold_all_threads_once_for_each_level() {
        for (name, threads) in [("power8-s812l", 4), ("xeon-e5-2620v4", 2), ("alder-lake", 1)] {
            let machine = Description::named(name).unwrap();
            let physics = Physics::new(&machine);
            let profile = test_support::cache_resident();
            let prepared = Prepared::new(&machine, &profile.phases[0]).unwrap();
            let running =
                vec![RunningThread { thread: 1, prepared: &prepared, pages: &[] }; threads];
            let load = |core| CoreLoad { core, mode: threads as u32, threads: &running };
            // Neither the first core nor neighbours only.
            let loads: Vec<_> = [1, 2, 5, 7].into_iter().map(load).collect();
            let tasks = tasks::flatten(&physics, &loads, Switches::default());
            for private in [false, true] {
                let mut groups = Groups::default();
                groups.update(&physics, &tasks, private);
                let mut seen = vec![0; tasks.len()];
                for core in 0..groups.cores() {
                    for (_, _, members) in groups.of_core(core) {
                        assert!(members.iter().all(|member| groups.tasks(core).contains(member)));
                        members.iter().for_each(|&member| seen[member] += 1);
                    }
                }
                for (_, _, members) in groups.of_several() {
                    let cores: Vec<_> = members.iter().map(|&member| tasks[member].core).collect();
                    assert!(cores.iter().any(|core| *core != cores[0]), "{name}: {cores:?}");
                    members.iter().for_each(|&member| seen[member] += 1);
                }
                assert_eq!(seen, vec![CacheLevel::ALL.len(); tasks.len()], "{name}");
                let shared = groups.of_several().any(|(level, ..)| level == CacheLevel::Last);
                assert_eq!(shared, name != "power8-s812l" && !private, "{name}");
            }
        }
    }
}
