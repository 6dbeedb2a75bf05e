//! The first jobs in the order of the queue, among which partners are chosen.

use std::collections::{BTreeMap, VecDeque};

use super::schedule::Schedule;
use crate::{Job, Predict, ProgramNumber, Reason, Rules};

/// Jobs of one program and size cost the same, so the first of them that fits is considered for all.
type Group = (ProgramNumber, usize);

fn group(job: &Job) -> Group {
    (job.program, job.slots.max(1))
}

/// A window over the queue, which slides on as jobs are taken out of it.
#[derive(Debug)]
pub(super) struct Window<'a> {
    /// In the order of the queue.
    order: Vec<&'a Job>,
    rules: &'a Rules,
    /// The places of each group's jobs in the order, ascending.
    groups: BTreeMap<Group, VecDeque<usize>>,
    /// Which jobs start, or fit nowhere.
    taken: Vec<bool>,
    /// The first that is not taken.
    first: usize,
    /// The first that has not been in the window.
    next: usize,
    held: usize,
}

impl<'a> Window<'a> {
    /// Over those jobs of a queue, given in its order, that fit somewhere.
    pub(super) fn new(jobs: Vec<&'a Job>, rules: &'a Rules, fits: impl Fn(&Job) -> bool) -> Self {
        let taken = vec![false; jobs.len()];
        let groups = BTreeMap::new();
        let mut window = Self { order: jobs, rules, groups, taken, first: 0, next: 0, held: 0 };
        window.slide();
        window.replace(fits);
        window
    }

    /// Replaces jobs that fit nowhere any more by those that come next.
    pub(super) fn replace(&mut self, fits: impl Fn(&Job) -> bool) {
        loop {
            let places = self.groups.values().flatten();
            let unfit: Vec<usize> = places.copied().filter(|&at| !fits(self.order[at])).collect();
            if unfit.is_empty() {
                return;
            }
            for place in unfit {
                self.remove(place);
            }
            self.slide();
        }
    }

    /// Jobs of each program in the window.
    pub(super) fn composition(&self) -> Vec<(ProgramNumber, usize)> {
        let mut counts: BTreeMap<ProgramNumber, usize> = BTreeMap::new();
        for ((program, _), places) in &self.groups {
            *counts.entry(*program).or_default() += places.len();
        }
        counts.into_iter().collect()
    }

    /// Takes the job out that costs least on a node, of those that fit there, and gives the reason.
    pub(super) fn pick<P: Predict>(
        &mut self,
        node: usize,
        schedule: &mut Schedule<'_, P>,
    ) -> Option<(&'a Job, Reason)> {
        let fits =
            |place: &usize| self.order.get(*place).is_some_and(|job| schedule.takes(node, job));
        let first_of = |places: &VecDeque<usize>| places.iter().copied().find(fits);
        let fitting =
            self.groups.iter().filter_map(|(group, places)| Some((group.0, first_of(places)?)));
        let fitting: Vec<(ProgramNumber, usize)> = fitting.collect();
        let cost = |(program, place)| (schedule.relative_cost(program, node), place);
        let costs: Vec<(f64, usize)> = fitting.into_iter().map(cost).collect();
        let &(first_cost, first) = costs.iter().min_by_key(|(_, place)| *place)?;
        let by_cost =
            |a: &&(f64, usize), b: &&(f64, usize)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
        let &(cost, place) = costs.iter().min_by(by_cost)?;
        if first_cost - cost <= self.rules.least_gain {
            return Some((self.take(first)?, Reason::First));
        }
        let overtaken = (self.first..place).filter(|&at| !self.taken[at]).count();
        let first = self.order.get(first)?.id;
        let job = self.take(place)?;
        Some((job, Reason::Partner { first, first_cost, cost, overtaken }))
    }

    fn take(&mut self, place: usize) -> Option<&'a Job> {
        let job = self.remove(place);
        self.slide();
        job
    }

    fn remove(&mut self, place: usize) -> Option<&'a Job> {
        let job = *self.order.get(place)?;
        let group = group(job);
        let places = self.groups.get_mut(&group)?;
        places.retain(|&other| other != place);
        if places.is_empty() {
            self.groups.remove(&group);
        }
        *self.taken.get_mut(place)? = true;
        self.held -= 1;
        Some(job)
    }

    /// Takes in as many jobs as the rules allow.
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
            self.groups.entry(group(job)).or_default().push_back(self.next);
            self.held += 1;
            self.next += 1;
        }
    }
}
