//! Programs that are not to be disturbed, whatever the policy.
//!
//! # Problem
//! A user knows what no counter shows: that a program answers requests, that it may take its time,
//! that it is being measured. Policies place all programs alike.
//!
//! # Approach
//! [`Classes`] stands between a policy and the machine. Each program of class `latency` or `alone`
//! is granted whole cores: one at first, then as many as it had threads ready at a time of late. The
//! policy sees the other programs only, and a machine without those cores. What it leaves to the OS
//! is kept off them, too. Without such programs the policy's decisions pass unchanged, but that
//! programs of class `batch` run in the idle class. Both a program with cores of its own and those that
//! stay off them are *held*: their threads' masks say so, for the kernel would not keep idle cores free.
//! Where the machine has a scheduler in the kernel that knows the classes, no thread is held, and others have the
//! granted cores while their program sleeps.
//!
//! # Terms and units
//! *Granted*: the cores that a program has for itself. At least half of the cores that programs may
//! use, and no less than one, stay with the rest; a program for which none is left is placed by the
//! policy, with the reason. A core once granted stays granted while its program lives; what is
//! granted beyond the first is given back after [`LONG`] quanta without use.
//!
//! # Properties
//! - The general ones of a policy, over every policy (`targets_are_allowed` and its neighbours).
//! - No hardware thread of a granted core is a target of another program's thread, unless its user
//!   allows it no other (`granted_cores_hold_nothing_else`).
//! - Under a scheduler that knows the classes no mask is wanted, and none stays off granted cores
//!   (`under_a_scheduler_no_thread_is_held`).
//! - A program keeps its cores while it sleeps (`cores_stay_granted_while_their_program_sleeps`).
//! - A program of class `alone` has one hardware thread of each core
//!   (`a_measured_program_leaves_siblings_empty`).
//! - Threads with different cookies of core scheduling share no core ([`crate::cookies`]).
//! - Programs of the normal class alone are placed as by the policy itself
//!   (`without_classes_nothing_changes`).

use std::collections::{BTreeMap, BTreeSet};

use symbiont_machine::{
    Assignment, Class, CoreCookie, Lifecycle, Placement, Priority, ProgramId, RunState, Support,
    Target, ThreadId,
};
use symbiont_topology::{CoreId, CpuSet, Topology};

use crate::cookies::{self, OTHER_COOKIE};
use crate::{Finding, Foresight, LearnedPairs, Policy, Requirements, ThreadView, View};

/// Quanta after which a core beyond the first that was not needed is given back.
const LONG: u32 = 50;

/// A policy for the programs that have no cores of their own.
pub struct Classes {
    inner: Box<dyn Policy>,
    grants: BTreeMap<ProgramId, Grant>,
    /// Does the machine keep other programs off a granted core while its program runs there, and only then?
    kept: bool,
}

/// What a program has for itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Grant {
    cores: Vec<CoreId>,
    /// Quanta since it last needed all of them.
    spared: u32,
}

/// There is no core that a program could have for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoCore {
    /// The program may use no whole core, or but one, which others need, too.
    #[error(
        "of the cores that it may use ({usable}) one must be left to other programs: a core for \
         itself takes two"
    )]
    TooFew {
        /// Whole cores that it may use.
        usable: usize,
    },
    /// Other programs have them.
    #[error(
        "{granted} of {usable} cores are kept for other programs already; half stay with the rest"
    )]
    Taken {
        /// Whole cores that it may use.
        usable: usize,
        /// Of these: granted to other programs.
        granted: usize,
    },
}

impl Classes {
    /// Around a policy.
    #[must_use]
    pub fn new(inner: Box<dyn Policy>) -> Self {
        Self { inner, grants: BTreeMap::new(), kept: false }
    }

    /// Brings the grants up to date; gives why programs have none.
    fn grant(&mut self, view: &View<'_>) -> BTreeMap<ProgramId, NoCore> {
        let classes: BTreeMap<_, _> =
            view.programs.iter().map(|program| (program.id, program.class)).collect();
        let keeps = |id: &ProgramId| classes.get(id).is_some_and(|class| class.keeps_cores());
        self.grants.retain(|id, _| keeps(id));
        let mut allowed = BTreeMap::<ProgramId, CpuSet>::new();
        let mut ready = BTreeMap::<ProgramId, usize>::new();
        let mut cookies = BTreeMap::<ProgramId, BTreeSet<_>>::new();
        for thread in view.threads.iter().filter(|thread| keeps(&thread.program)) {
            let mask = view.allowed(thread);
            let all = allowed.entry(thread.program).or_insert_with(|| mask.clone());
            *all = all.intersection(&mask);
            *ready.entry(thread.program).or_default() += usize::from(is_ready(thread));
            cookies.entry(thread.program).or_default().insert(thread.cookie);
        }
        // Those that have cores come first, so that nothing changes hands.
        let mut order: Vec<ProgramId> = allowed.keys().copied().collect();
        order.sort_by_key(|id| (!self.grants.contains_key(id), *id));
        let mut refused = BTreeMap::new();
        for id in order {
            let (Some(mask), Some(ready)) = (allowed.get(&id), ready.get(&id)) else { continue };
            let taken: BTreeSet<CoreId> = self.cores_of_others(id).collect();
            let mut grant = self.grants.remove(&id).unwrap_or_default();
            let usable = whole_cores(view.topology, &view.online, mask);
            grant.cores.retain(|core| usable.contains(core));
            let free: Vec<CoreId> = usable
                .iter()
                .filter(|core| !taken.contains(core) && !grant.cores.contains(core))
                .copied()
                .collect();
            let granted = usable.len() - free.len();
            let left = (usable.len() / 2).saturating_sub(granted);
            let cookies = cookies.get(&id).map_or(1, BTreeSet::len);
            grant.fit((*ready).max(cookies), &free, left);
            if grant.cores.is_empty() {
                refused.insert(id, no_core(usable.len(), granted));
            } else {
                self.grants.insert(id, grant);
            }
        }
        refused
    }

    fn cores_of_others(&self, id: ProgramId) -> impl Iterator<Item = CoreId> + '_ {
        let others = self.grants.iter().filter(move |(other, _)| **other != id);
        others.flat_map(|(_, grant)| grant.cores.iter().copied())
    }
}

/// The hardware threads of all granted cores.
fn granted(grants: &BTreeMap<ProgramId, Grant>, topology: &Topology) -> CpuSet {
    cpus_of(topology, grants.values().flat_map(|grant| &grant.cores).copied())
}

/// Shows the programs without grants, and of the machine what is not granted to others.
fn show<T>(
    grants: &BTreeMap<ProgramId, Grant>,
    granted: &CpuSet,
    view: &View<'_>,
    look: impl FnOnce(&View<'_>) -> T,
) -> T {
    if grants.is_empty() {
        return look(view);
    }
    let rest: Vec<_> = view.threads.iter().filter(|t| !grants.contains_key(&t.program)).collect();
    let limits: Vec<CpuSet> = rest.iter().map(|t| spared(t.allowed, view, granted)).collect();
    let threads = rest.into_iter().zip(&limits);
    let threads =
        threads.map(|(thread, allowed)| ThreadView { allowed, ..thread.clone() }).collect();
    look(&View {
        topology: view.topology,
        online: view.online.clone(),
        threads,
        programs: view.programs,
    })
}

impl Grant {
    /// Takes what it needs of the free cores, at most so many; gives back what it long did not need.
    fn fit(&mut self, needed: usize, free: &[CoreId], most: usize) {
        let lacking = needed.saturating_sub(self.cores.len()).min(most);
        self.cores.extend(free.iter().take(lacking));
        self.spared = if needed < self.cores.len() { self.spared + 1 } else { 0 };
        if self.spared > LONG {
            self.cores.pop();
            self.spared = 0;
        }
    }
}

/// Can a program that may use these hardware threads have a core for itself, where others have these
/// cores?
///
/// # Errors
/// When it cannot, and why.
pub fn room_for_one(topology: &Topology, allowed: &CpuSet, granted: usize) -> Result<(), NoCore> {
    let usable = whole_cores(topology, &topology.cpus(), allowed).len();
    match usable / 2 > granted {
        true => Ok(()),
        // Those that want a core do not all have one: no more than half are ever granted.
        false => Err(no_core(usable, granted.min(usable / 2))),
    }
}

fn no_core(usable: usize, granted: usize) -> NoCore {
    if usable < 2 { NoCore::TooFew { usable } } else { NoCore::Taken { usable, granted } }
}

/// The cores all of whose online hardware threads may be used, fastest first.
fn whole_cores(topology: &Topology, online: &CpuSet, allowed: &CpuSet) -> Vec<CoreId> {
    let is_usable = |cpus: CpuSet| !cpus.is_empty() && cpus.is_subset(allowed);
    let cores = topology.cores_by_speed().into_iter();
    cores.filter(|core| is_usable(core.cpus.intersection(online))).map(|core| core.id).collect()
}

fn cpus_of(topology: &Topology, cores: impl Iterator<Item = CoreId>) -> CpuSet {
    let cpus = cores.filter_map(|core| Some(&topology.core(core)?.cpus));
    cpus.fold(CpuSet::new(), |all, cpus| all.union(cpus))
}

/// What is left of a thread's CPUs without the granted ones; all, where nothing would be left.
fn spared(allowed: &CpuSet, view: &View<'_>, granted: &CpuSet) -> CpuSet {
    let rest = allowed.difference(granted);
    if rest.is_disjoint(&view.online) { allowed.clone() } else { rest }
}

fn is_ready(thread: &ThreadView<'_>) -> bool {
    thread.did.map_or(thread.state == RunState::Runnable, |did| did.ready > 0.1)
}

impl Policy for Classes {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn requirements(&self) -> Requirements {
        self.inner.requirements()
    }

    fn offer(&mut self, offered: &Support, topology: &Topology) -> Option<String> {
        self.kept = offered.scheduler.exists();
        self.inner.offer(offered, topology)
    }

    fn choice(&self) -> Option<String> {
        self.inner.choice()
    }

    fn place(&mut self, view: &View<'_>) -> Placement {
        let refused = self.grant(view);
        let granted = match self.kept {
            true => CpuSet::new(),
            false => granted(&self.grants, view.topology),
        };
        let mut placement = show(&self.grants, &granted, view, |rest| {
            let mut placement = self.inner.place(rest);
            cookies::part(rest, &mut placement);
            placement
        });
        for thread in &view.threads {
            let class = class_of(view, thread.program);
            if let Some(grant) = self.grants.get(&thread.program) {
                if grant.cores.len() == 1 && thread.cookie != cookie_of(view, thread.program) {
                    let mut left =
                        Assignment::os(format!("{OTHER_COOKIE} than its program's one core"));
                    keep_off(view, thread, &granted, &mut left);
                    placement.insert(thread.id, left);
                    continue;
                }
                let mut on = on_its_cores(view, thread, class, &grant.cores);
                if self.kept {
                    on.mask = Target::Os;
                }
                placement.insert(thread.id, on);
                continue;
            }
            let Some(assignment) = placement.get_mut(&thread.id) else { continue };
            if let Some(why) = refused.get(&thread.program) {
                assignment.reason =
                    format!("no core of its own: {why}; {}", assignment.reason).into();
            }
            keep_off(view, thread, &granted, assignment);
            // A scheduler in the kernel knows the class.
            if class == Class::Batch && !self.kept && thread.lifecycle >= Lifecycle::Starting {
                assignment.priority = Priority::Idle;
                assignment.reason = format!("batch; {}", assignment.reason).into();
            }
        }
        placement
    }

    fn achieved_slowdown(&self, thread: ThreadId) -> Option<f64> {
        self.inner.achieved_slowdown(thread)
    }

    fn stack_alone(&self, thread: ThreadId) -> Option<Vec<(&str, f64)>> {
        self.inner.stack_alone(thread)
    }

    fn foresight(&self, view: &View<'_>) -> Option<Box<dyn Foresight>> {
        let granted = granted(&self.grants, view.topology);
        show(&self.grants, &granted, view, |rest| self.inner.foresight(rest))
    }

    fn learned(&self) -> Option<LearnedPairs> {
        self.inner.learned()
    }

    fn learned_of(&self, thread: ThreadId, co_runner: ThreadId) -> Option<f64> {
        self.inner.learned_of(thread, co_runner)
    }

    fn gain_over_chance(&self) -> Option<f64> {
        self.inner.gain_over_chance()
    }

    fn findings(&self) -> Vec<Finding> {
        self.inner.findings()
    }
}

fn class_of(view: &View<'_>, program: ProgramId) -> Class {
    let known = view.programs.iter().find(|known| known.id == program);
    known.map_or(Class::Normal, |known| known.class)
}

/// The cookie of a program's first thread.
fn cookie_of(view: &View<'_>, program: ProgramId) -> Option<CoreCookie> {
    view.threads.iter().find(|thread| thread.program == program)?.cookie
}

fn on_its_cores(
    view: &View<'_>,
    thread: &ThreadView<'_>,
    class: Class,
    cores: &[CoreId],
) -> Assignment {
    let allowed = match view.places(thread) {
        Ok(allowed) => allowed,
        Err(why) => return Assignment::os(why),
    };
    let cpus = match class {
        Class::Alone => {
            let first = |id: &CoreId| {
                let cpus = view.topology.core(*id)?.cpus.intersection(&view.online);
                cpus.first()
            };
            cores.iter().filter_map(first).collect()
        }
        _ => cpus_of(view.topology, cores.iter().copied()),
    };
    let cpus = cpus.intersection(&allowed);
    if cpus.is_empty() {
        return Assignment::os("none of its cores is among its allowed CPUs");
    }
    let reason = match class {
        Class::Alone => "is measured: these cores run no other managed program",
        _ => "latency: these cores run no other managed program",
    };
    Assignment { own_cores: true, ..Assignment::on(cpus, reason).held() }
}

/// Other threads are held off the granted cores, wherever the policy nudges them on what is left.
fn keep_off(
    view: &View<'_>,
    thread: &ThreadView<'_>,
    granted: &CpuSet,
    assignment: &mut Assignment,
) {
    let allowed = view.allowed(thread);
    if assignment.is_held() || allowed.is_disjoint(granted) {
        return;
    }
    let rest = allowed.difference(granted);
    if rest.is_empty() {
        assignment.target = Target::Os;
        assignment.reason = format!(
            "it may only use cores that are kept for other programs; {}",
            assignment.reason
        )
        .into();
    } else if thread.lifecycle.is_settled() {
        assignment.mask = Target::Cpus(rest);
        if assignment.target.is_os() {
            assignment.target = assignment.mask.clone();
            assignment.reason =
                format!("off the cores of other programs; {}", assignment.reason).into();
        }
    }
}

#[cfg(test)]
mod tests;
