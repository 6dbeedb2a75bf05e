//! What a training set tells of programs in company: kernel forms, and what they predict from.
//!
//! A program that is left out of training is known by its stacks beside others than those whom it is
//! predicted with. Beside those, the stack would already tell what is to be predicted.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::TrainingSet;
use crate::Shares;
use crate::fit::FitError;
use crate::kernel::{Kernel, Table, choose, mean};

impl TrainingSet<'_> {
    /// The kernel form of all groups but those with any of these programs; length and ridges are
    /// chosen there too.
    ///
    /// # Errors
    /// [`FitError::Empty`] when nothing is left to fit on, [`FitError::Unsolvable`] when observations
    /// are not finite.
    pub fn kernel_without(&self, programs: &BTreeSet<Arc<str>>) -> Result<Kernel, FitError> {
        self.kernel(|group| group.is_disjoint(programs))
    }

    /// Mean slowdowns of pairs, victim (row) by co-runner (column), in the order of the programs; 1
    /// of a program beside itself where that was not observed. None if some other pair was not.
    #[must_use]
    pub fn measured(&self, programs: &[Arc<str>]) -> Option<Vec<Vec<f64>>> {
        let mean = |victim: &Arc<str>, other: &Arc<str>| {
            let found = self.meeting(victim, other).map(super::Meeting::slowdown);
            if victim == other { found.or(Some(1.0)) } else { found }
        };
        let row = |victim| programs.iter().map(|other| mean(victim, other)).collect();
        programs.iter().map(row).collect()
    }

    /// The mean stack in company of a program beside each of these, one after the other. None if it
    /// was not observed beside some.
    #[must_use]
    pub fn beside(&self, program: &Arc<str>, partners: &[Arc<str>]) -> Option<Shares> {
        let met = partners.iter().map(|other| self.meeting(program, other));
        mean(met.collect::<Option<Vec<_>>>()?.into_iter())
    }

    fn meeting(&self, victim: &Arc<str>, other: &Arc<str>) -> Option<&super::Meeting> {
        let group = self.groups.get(&[victim, other].map(Arc::clone).into())?;
        group.meetings.get(&(Arc::clone(victim), vec![Arc::clone(other)]))
    }

    /// The mean stack in company of a program over the groups that are kept.
    pub(super) fn met(
        &self,
        program: &Arc<str>,
        keep: impl Fn(&BTreeSet<Arc<str>>) -> bool,
    ) -> Option<Shares> {
        let groups = self.groups.iter().filter(|(programs, _)| keep(programs));
        let all = groups.flat_map(|(_, group)| &group.meetings);
        mean(all.filter(|((victim, _), _)| victim == program).map(|(_, meeting)| meeting))
    }

    /// Chosen and fitted by the groups that are kept, and by no other.
    pub(super) fn kernel(
        &self,
        keep: impl Fn(&BTreeSet<Arc<str>>) -> bool,
    ) -> Result<Kernel, FitError> {
        let groups = self.groups.iter().filter(|(programs, _)| keep(programs));
        let table = Table::of(groups.flat_map(|(_, group)| &group.meetings));
        let held = choose(&table, |program| !self.rulers.contains(program));
        Kernel::fit(&table, held)
    }
}
