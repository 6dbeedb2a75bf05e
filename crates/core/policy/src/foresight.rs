//! The placement that a policy chose, and the best one to compare it with.
//!
//! # Problem
//! "Why does this thread run here?" is answered well by what else could have been done, and what that
//! would have cost. A policy gives the placement that it chose, not those that it did not.
//!
//! # Approach
//! A policy that predicts slowdowns gives a [`Foresight`]: its predictions for any group of threads.
//! [`runner_up`] tries, for one thread, each exchange with a thread on another core and each move to a
//! free hardware thread, and keeps the best by what the policy judges by. Only the two cores concerned
//! are predicted anew. Exchanges that leave each thread with the same co-runners (two threads that are
//! alone) are no other placement.
//!
//! # Terms and units
//! *Slowdown*: time together / time alone. *Throughput*: the sum of 1/slowdown over threads (STP).
//! *Free*: no placed thread is kept there. Cores of another kind are left out: slowdowns refer to a
//! thread alone on the same kind.
//!
//! # Properties
//! - A change that puts threads with different cookies of core scheduling on one core is none
//!   (`cookies_limit_the_changes`).
//! - The runner-up is the best of all single changes (`the_runner_up_is_the_best_other_placement`), also
//!   a move to a free hardware thread (`a_free_hardware_thread_is_tried`).
//! - It is one that the threads' limits allow (`a_limit_is_kept_by_both_threads`).
//! - What is not predicted is not compared (`what_is_not_predicted_is_not_compared`).

use std::collections::BTreeMap;

use symbiont_machine::{Placement, Target, ThreadId};
use symbiont_model::Objective;
use symbiont_topology::{Core, CoreId, CoreKind, CpuSet};

use crate::{ThreadView, View, cookies};

/// Predicted slowdowns of threads that might share a core.
pub trait Foresight {
    /// What the policy judges placements by.
    fn objective(&self) -> Objective;

    /// Slowdown of each thread of a group on one core of this kind, in the group's order; none where
    /// nothing is predicted of them.
    fn slowdowns(&self, kind: CoreKind, group: &[ThreadId]) -> Option<Vec<f64>>;
}

/// What becomes of the thread that is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It changes places with another thread.
    Exchange(ThreadId),
    /// It goes to a free hardware thread.
    Move,
}

/// How good a placement is predicted to be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Score {
    /// Slowdown of the thread that is asked about.
    pub slowdown: f64,
    /// Mean slowdown of all placed threads.
    pub mean_slowdown: f64,
    /// Sum of 1/slowdown over all placed threads.
    pub throughput: f64,
}

/// The best placement that differs by one change.
#[derive(Debug, Clone, PartialEq)]
pub struct RunnerUp {
    /// The change.
    pub change: Change,
    /// Where the thread would run.
    pub cpus: CpuSet,
    /// What is predicted of it.
    pub score: Score,
    /// What is predicted of the placement that is applied.
    pub applied: Score,
    /// Placed threads that both scores are over.
    pub threads: usize,
}

/// Why there is no runner-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoRunnerUp {
    /// The thread has no place.
    #[error("it is not kept on one core")]
    NotPlaced,
    /// The policy knows too little.
    #[error("nothing is predicted of the threads on its core")]
    Unpredicted,
    /// There is nothing to choose.
    #[error("no other core has a place for it, or a thread that may take its place")]
    NoOther,
}

/// The threads of a core, and what is predicted of them.
struct Group<'v> {
    core: &'v Core,
    members: Vec<(&'v ThreadView<'v>, &'v CpuSet)>,
    slowdowns: Vec<f64>,
}

impl Group<'_> {
    fn ids(&self) -> impl Iterator<Item = ThreadId> {
        self.members.iter().map(|(thread, _)| thread.id)
    }

    /// Is something predicted of its threads? An empty core has none.
    fn is_predicted(&self) -> bool {
        self.slowdowns.len() == self.members.len()
    }

    /// Hardware threads that no placed thread is kept on.
    fn free(&self) -> CpuSet {
        let taken = self.members.iter().fold(CpuSet::new(), |all, (_, cpus)| all.union(cpus));
        self.core.cpus.difference(&taken)
    }

    /// Its threads with one of them replaced, or left out, or one more.
    fn with(&self, without: Option<ThreadId>, more: Option<ThreadId>) -> Vec<ThreadId> {
        self.ids().filter(|id| Some(*id) != without).chain(more).collect()
    }
}

/// The best placement that differs from the applied one by one change for a thread.
///
/// # Errors
/// When there is none, with the reason.
pub fn runner_up(
    view: &View<'_>,
    foresight: &dyn Foresight,
    applied: &Placement,
    thread: ThreadId,
) -> Result<RunnerUp, NoRunnerUp> {
    let groups = groups(view, foresight, applied);
    let is_here = |group: &&Group<'_>| group.ids().any(|id| id == thread);
    let here = groups.values().find(is_here).ok_or(NoRunnerUp::NotPlaced)?;
    let at = here.ids().position(|id| id == thread);
    let known = at.and_then(|at| Some((here.members.get(at)?, *here.slowdowns.get(at)?)));
    let (&(asked, own), slowdown) = known.ok_or(NoRunnerUp::Unpredicted)?;

    let all = groups.values().flat_map(|group| &group.slowdowns);
    let (sum, throughput) = sums(all);
    let threads = groups.values().map(|group| group.slowdowns.len()).sum::<usize>();
    let score = |slowdown, (sum, throughput): (f64, f64)| Score {
        slowdown,
        mean_slowdown: sum / threads as f64,
        throughput,
    };
    let applied_score = score(slowdown, (sum, throughput));
    // Of two changed groups, in the second of which the thread is last.
    let judge = |there: &Group<'_>, left: Vec<ThreadId>, joined: Vec<ThreadId>| -> Option<Score> {
        if [&left, &joined].into_iter().any(|together| cookies::differ(view, together)) {
            return None;
        }
        let left = match left.is_empty() {
            true => Vec::new(),
            false => foresight.slowdowns(here.core.kind, &left)?,
        };
        let joined = foresight.slowdowns(there.core.kind, &joined)?;
        let before = sums(here.slowdowns.iter().chain(&there.slowdowns));
        let after = sums(left.iter().chain(&joined));
        let changed = (sum - before.0 + after.0, throughput - before.1 + after.1);
        Some(score(*joined.last()?, changed))
    };
    let allowed = view.allowed(asked);
    let mut best: Option<RunnerUp> = None;
    let others = groups.values().filter(|other| {
        other.core.id != here.core.id && other.core.kind == here.core.kind && other.is_predicted()
    });
    for there in others {
        let free = there.free().intersection(&allowed);
        let mut tried = Vec::new();
        if !free.is_empty() && (here.members.len() > 1 || !there.members.is_empty()) {
            let (left, joined) = (here.with(Some(thread), None), there.with(None, Some(thread)));
            let cpus = free.first().into_iter().collect();
            tried.extend(judge(there, left, joined).map(|score| (Change::Move, cpus, score)));
        }
        for &(other, theirs) in &there.members {
            let alone = here.members.len() == 1 && there.members.len() == 1;
            if alone || !theirs.is_subset(&allowed) || !own.is_subset(&view.allowed(other)) {
                continue;
            }
            let left = here.with(Some(thread), Some(other.id));
            let joined = there.with(Some(other.id), Some(thread));
            let change = Change::Exchange(other.id);
            tried.extend(judge(there, left, joined).map(|score| (change, theirs.clone(), score)));
        }
        for (change, cpus, score) in tried {
            let is_better = |best: &RunnerUp| {
                cost(foresight.objective(), &score) < cost(foresight.objective(), &best.score)
            };
            if best.as_ref().is_none_or(is_better) {
                best = Some(RunnerUp { change, cpus, score, applied: applied_score, threads });
            }
        }
    }
    best.ok_or(NoRunnerUp::NoOther)
}

/// Lower is better.
fn cost(objective: Objective, score: &Score) -> f64 {
    match objective {
        Objective::Stp => -score.throughput,
        Objective::Antt | Objective::Slowdown => score.mean_slowdown,
    }
}

/// The sum of slowdowns and of speeds.
fn sums<'s>(slowdowns: impl Iterator<Item = &'s f64>) -> (f64, f64) {
    slowdowns.fold((0.0, 0.0), |(sum, throughput), slowdown| {
        (sum + slowdown, throughput + slowdown.recip())
    })
}

/// All cores with the threads that are kept there. Threads that are kept on several cores are left out,
/// and so is what is predicted of a core where anything is not.
fn groups<'v>(
    view: &'v View<'v>,
    foresight: &dyn Foresight,
    applied: &'v Placement,
) -> BTreeMap<CoreId, Group<'v>> {
    let empty = |core: &'v Core| Group { core, members: Vec::new(), slowdowns: Vec::new() };
    let mut groups: BTreeMap<CoreId, Group<'v>> =
        view.topology.cores().iter().map(|core| (core.id, empty(core))).collect();
    for thread in &view.threads {
        let Some(Target::Cpus(cpus)) = applied.get(&thread.id).map(|kept| &kept.target) else {
            continue;
        };
        let core = cpus.first().and_then(|cpu| view.topology.core_of(cpu));
        let core = core.filter(|core| cpus.is_subset(&core.cpus));
        if let Some(group) = core.and_then(|core| groups.get_mut(&core.id)) {
            group.members.push((thread, cpus));
        }
    }
    for group in groups.values_mut().filter(|group| !group.members.is_empty()) {
        let ids: Vec<ThreadId> = group.ids().collect();
        group.slowdowns = foresight.slowdowns(group.core.kind, &ids).unwrap_or_default();
    }
    groups
}

#[cfg(test)]
mod tests;
