//! How fast a thread was with each group of co-runners, with forgetting: what feedback knows.
//!
//! A thread that changes its phase must not be known by the old one for long: old quanta count half after
//! [`HALF_LIFE`].

use std::collections::BTreeMap;

use symbiont_machine::ThreadId;
use symbiont_topology::CoreKind;

/// Quanta after which a quantum counts half: one second of quanta of 100 ms. Not fitted to anything: longer
/// than a thread needs to co-run with some others, shorter than phases of seconds.
pub(super) const HALF_LIFE: f64 = 10.0;

/// Groups whose quanta count for less are forgotten.
const FORGOTTEN: f64 = 1.0 / 64.0;

/// Quanta with the same co-runners, old ones counting less.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct CoRun {
    quanta: f64,
    /// Sum of instructions per cycle.
    ipc: f64,
}

/// What one thread did, by its co-runners.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct CoRuns {
    /// The core type that all of it was on.
    kind: CoreKind,
    by_others: BTreeMap<Vec<ThreadId>, CoRun>,
}

impl CoRuns {
    /// A quantum in which the thread was measured passes: older ones count less, and those on another core
    /// type no longer.
    pub fn age(&mut self, kind: CoreKind) {
        if self.kind != kind {
            *self = Self { kind, ..Self::default() };
        }
        let left = 0.5_f64.powf(HALF_LIFE.recip());
        for run in self.by_others.values_mut() {
            run.quanta *= left;
            run.ipc *= left;
        }
        self.by_others.retain(|_, run| run.quanta > FORGOTTEN);
    }

    /// Adds a quantum in which all of these ran at once, in order of their identities.
    pub fn add(&mut self, others: Vec<ThreadId>, ipc: f64) {
        let run = self.by_others.entry(others).or_default();
        run.quanta += 1.0;
        run.ipc += ipc;
    }

    /// Co-runners, for how many quanta, and the mean instructions per cycle there.
    pub fn all(&self) -> impl Iterator<Item = (&[ThreadId], f64, f64)> {
        self.by_others
            .iter()
            .map(|(others, run)| (others.as_slice(), run.quanta, run.ipc / run.quanta))
    }
}

#[cfg(test)]
mod tests {
    use symbiont_machine::test_support::thread;
    use symbiont_topology::CpuSet;

    use super::*;

    fn id(at: u32) -> ThreadId {
        thread(at, at, &CpuSet::default()).id
    }

    fn quantum(runs: &mut CoRuns, partner: u32, ipc: f64) {
        runs.age(CoreKind::default());
        runs.add(vec![id(partner)], ipc);
    }

    #[test]
    fn each_group_has_its_quanta_and_speed() {
        let mut runs = CoRuns::default();
        quantum(&mut runs, 1, 0.4);
        quantum(&mut runs, 2, 1.2);
        quantum(&mut runs, 2, 1.4);
        let left = 0.5_f64.powf(HALF_LIFE.recip());
        let all: Vec<(Vec<ThreadId>, f64, f64)> =
            runs.all().map(|(others, quanta, ipc)| (others.to_vec(), quanta, ipc)).collect();
        let [(first, one, slow), (second, two, fast)] = &all[..] else { panic!("{all:?}") };
        assert_eq!((&first[..], &second[..]), (&[id(1)][..], &[id(2)][..]));
        assert!((one - left * left).abs() < 1e-12 && (two - 1.0 - left).abs() < 1e-12);
        assert!((slow - 0.4).abs() < 1e-12);
        assert!((fast - (1.4 + 1.2 * left) / (1.0 + left)).abs() < 1e-12);
    }

    #[test]
    fn a_new_phase_is_half_of_what_is_known_after_the_half_life() {
        let mut runs = CoRuns::default();
        (0..300).for_each(|_| quantum(&mut runs, 1, 0.2));
        (0..HALF_LIFE as u32).for_each(|_| quantum(&mut runs, 1, 0.6));
        assert!((runs.all().next().unwrap().2 - 0.4).abs() < 1e-6);
    }

    #[test]
    fn another_core_type_and_long_past_are_forgotten() {
        let mut runs = CoRuns::default();
        quantum(&mut runs, 1, 0.2);
        (0..100).for_each(|_| quantum(&mut runs, 2, 0.6));
        assert_eq!(runs.all().count(), 1);
        runs.age(CoreKind::Efficiency);
        assert_eq!(runs.all().count(), 0);
    }
}
