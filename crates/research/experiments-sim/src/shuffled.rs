//! A negative control: a policy that is shown the measurements of other threads.

use std::collections::BTreeMap;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;
use symbiont_counters::Measured;
use symbiont_machine::{Placement, ProgramId, Support};
use symbiont_policy::{Finding, Policy, Requirements, View};
use symbiont_topology::Topology;

/// Whose measurements a policy is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ShownMeasurements {
    /// Each thread's own.
    #[default]
    Own,
    /// Those of a program that is drawn, the same one throughout a repeat: a negative control. All orders
    /// are equally likely, also those that leave some in place, since just then whatever is chosen by
    /// what is shown is any grouping with the same probability.
    Shuffled,
}

impl ShownMeasurements {
    /// A policy that is shown just that.
    pub fn to(self, policy: Box<dyn Policy>, seed: u64) -> Box<dyn Policy> {
        match self {
            Self::Own => policy,
            Self::Shuffled => Box::new(Shuffled::new(policy, seed)),
        }
    }
}

/// A policy that takes each program for another one, the same as long as it lives, so that it decides
/// as steadily as it would otherwise.
pub struct Shuffled {
    policy: Box<dyn Policy>,
    random: Pcg64Mcg,
    /// For each program the one whose measurements are shown.
    shown: BTreeMap<ProgramId, ProgramId>,
}

impl Shuffled {
    /// With an exchange that is drawn.
    pub fn new(policy: Box<dyn Policy>, seed: u64) -> Self {
        let random = Pcg64Mcg::seed_from_u64(seed);
        Self { policy, random, shown: BTreeMap::new() }
    }
}

impl Policy for Shuffled {
    fn name(&self) -> &'static str {
        self.policy.name()
    }

    fn requirements(&self) -> Requirements {
        self.policy.requirements()
    }

    fn offer(&mut self, offered: &Support, topology: &Topology) -> Option<String> {
        self.policy.offer(offered, topology)
    }

    fn choice(&self) -> Option<String> {
        self.policy.choice()
    }

    fn place(&mut self, view: &View<'_>) -> Placement {
        if self.shown.len() != view.programs.len() {
            let programs: Vec<ProgramId> = view.programs.iter().map(|program| program.id).collect();
            let mut others = programs.clone();
            others.shuffle(&mut self.random);
            self.shown = programs.into_iter().zip(others).collect();
        }
        let known: BTreeMap<ProgramId, &Measured> =
            view.threads.iter().filter_map(|t| Some((t.program, t.measured?))).collect();
        let mut shuffled = view.clone();
        for thread in &mut shuffled.threads {
            let other = self.shown.get(&thread.program);
            thread.measured = other.and_then(|other| known.get(other).copied());
        }
        self.policy.place(&shuffled)
    }

    fn gain_over_chance(&self) -> Option<f64> {
        self.policy.gain_over_chance()
    }

    fn findings(&self) -> Vec<Finding> {
        self.policy.findings()
    }
}
