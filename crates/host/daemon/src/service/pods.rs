//! The figures of each pod, from those of its programs.

use std::collections::BTreeMap;

use symbiont_control::Step;
use symbiont_machine::{Placement, ProgramId, Target};

use crate::contained::Contained;
use crate::metrics::{OfPod, PodFigures, Pods};
use crate::programs::Programs;
use crate::surroundings::is_of_cluster;
use crate::throttles::Throttles;
use crate::waits::Waiting;

/// What is known of programs besides their threads.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProgramStates<'a> {
    pub contained: &'a Contained,
    pub waiting: &'a Waiting,
    pub throttles: &'a Throttles,
}

/// What each pod has managed; programs that are in none are left out.
pub(super) fn pods_of(
    programs: &Programs,
    states: &ProgramStates<'_>,
    step: &Step,
    applied: &Placement,
) -> Pods {
    let is_placed = |id| applied.get(id).is_some_and(|it| matches!(it.target, Target::Cpus(_)));
    let mut threads: BTreeMap<ProgramId, (usize, usize)> = BTreeMap::new();
    for thread in &step.sample.threads {
        let (all, placed) = threads.entry(thread.program).or_default();
        *all += 1;
        *placed += usize::from(is_placed(&thread.id));
    }
    let mut pods = Pods::new();
    for (id, _) in programs.iter() {
        let Some(of) = states.contained.of(id) else { continue };
        let Some(pod) = of.pod.as_ref().filter(|_| is_of_cluster(of)) else { continue };
        let (threads, placed) = threads.get(&id).copied().unwrap_or_default();
        let figures = PodFigures {
            programs: 1,
            threads,
            placed,
            waiting: states.waiting.of(id).is_some().into(),
            throttled: states.throttles.of(id).is_some().into(),
        };
        let of = OfPod::new(of.namespace.as_deref().unwrap_or_default(), pod);
        pods.entry(of).or_default().add(&figures);
    }
    pods
}
