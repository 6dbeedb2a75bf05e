//! The jobs, first in the order of the queue, among which partners are chosen.

use std::collections::{BTreeMap, VecDeque};

use crate::{Job, Program, Reason, Rules};

/// Jobs of one program and size cost the same: the first of them stands for all.
type Group = (Program, usize);

/// The window over the queue; it slides on as jobs are taken.
#[derive(Debug)]
pub(super) struct Window<'a> {
    /// In the order of the queue.
    order: Vec<&'a Job>,
    rules: &'a Rules,
    /// Places in the order, ascending.
    groups: BTreeMap<Group, VecDeque<usize>>,
    taken: Vec<bool>,
    /// The first that is not taken.
    first: usize,
    /// The first that has not been in the window.
    next: usize,
    held: usize,
}

impl<'a> Window<'a> {
    /// Over jobs that fit into `most_free` slots.
    pub(super) fn new(mut jobs: Vec<&'a Job>, rules: &'a Rules, most_free: usize) -> Self {
        jobs.retain(|job| job.slots.max(1) <= most_free);
        jobs.sort_by(|a, b| a.order(b));
        let taken = vec![false; jobs.len()];
        let groups = BTreeMap::new();
        let mut window = Self { order: jobs, rules, groups, taken, first: 0, next: 0, held: 0 };
        window.slide();
        window
    }

    /// Jobs of each program in the window.
    pub(super) fn composition(&self) -> Vec<(Program, usize)> {
        let mut counts: BTreeMap<Program, usize> = BTreeMap::new();
        for ((program, _), places) in &self.groups {
            *counts.entry(*program).or_default() += places.len();
        }
        counts.into_iter().collect()
    }

    /// Takes the job that costs least and fits into the free slots, and says why it is this one.
    pub(super) fn pick(
        &mut self,
        free: usize,
        mut cost: impl FnMut(Program) -> f64,
    ) -> Option<(&'a Job, Reason)> {
        let fitting = self.groups.iter().filter(|((_, slots), _)| *slots <= free);
        let costs: Vec<(f64, usize, Group)> = fitting
            .filter_map(|(group, places)| Some((cost(group.0), *places.front()?, *group)))
            .collect();
        let &(first_cost, first, first_group) = costs.iter().min_by_key(|(_, place, _)| *place)?;
        let by_cost = |a: &&(f64, usize, Group), b: &&(f64, usize, Group)| {
            a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))
        };
        let &(cost, place, group) = costs.iter().min_by(by_cost)?;
        if first_cost - cost <= self.rules.least_gain {
            return Some((self.take(first, first_group)?, Reason::First));
        }
        let overtaken = (self.first..place).filter(|&at| !self.taken[at]).count();
        let first = self.order.get(first)?.id;
        let job = self.take(place, group)?;
        Some((job, Reason::Partner { first, first_cost, cost, overtaken }))
    }

    fn take(&mut self, place: usize, group: Group) -> Option<&'a Job> {
        let places = self.groups.get_mut(&group)?;
        places.pop_front();
        if places.is_empty() {
            self.groups.remove(&group);
        }
        *self.taken.get_mut(place)? = true;
        self.held -= 1;
        let job = self.order.get(place).copied();
        self.slide();
        job
    }

    /// Takes in as many jobs as the rules let it.
    fn slide(&mut self) {
        while self.taken.get(self.first).is_some_and(|taken| *taken) {
            self.first += 1;
        }
        let Some(first) = self.order.get(self.first) else { return };
        let least =
            self.rules.priority_spread.map_or(0, |most| first.priority.saturating_sub(most));
        while self.held < self.rules.window.max(1) {
            let Some(job) = self.order.get(self.next).filter(|job| job.priority >= least) else {
                return;
            };
            let group = (job.program, job.slots.max(1));
            self.groups.entry(group).or_default().push_back(self.next);
            self.held += 1;
            self.next += 1;
        }
    }
}
