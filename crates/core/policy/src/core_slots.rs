//! Which core each group of co-runners gets.
//!
//! # Problem
//! A policy that chooses which threads share a core ends with groups of threads. Where
//! a group goes hardly matters for contention inside it, but every thread that
//! moves loses its caches, and each thread may run only on its allowed CPUs.
//!
//! # Approach
//! Threads with equal limits form a [`Pool`]; groups are made within a pool.
//! [`CoreSlots`] first gives each group the core where most of its members are
//! already, then the free groups the emptiest of the other cores, the fastest
//! first. Or, as published schedulers do, it fills cores in increasing order,
//! wherever threads are ([`Filling`]). Inside a core a thread keeps its hardware
//! thread if it can. Pools with fewer places are assigned first, and the others
//! see what they took.
//!
//! # Properties
//! - Groups are spread evenly over equal cores (`groups_are_spread_evenly`).
//! - Groups that stay the same stay where they are (`what_need_not_move_stays`), unless cores are filled
//!   in increasing order (`cores_are_filled_in_increasing_order`).
//! - Each member gets a hardware thread of its own while there are enough
//!   (`members_do_not_stack_up`).

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeSet;

use symbiont_machine::{Assignment, Placement, Target, ThreadId};
use symbiont_topology::{CpuSet, PuId, Topology};

use crate::parameter::{Typed, Value};
use crate::view::refused;
use crate::{Kind, Parameter, ThreadView, View};

/// Threads that may run on the same hardware threads, by their index in the
/// view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pool {
    pub allowed: CpuSet,
    pub threads: Vec<usize>,
}

/// Sorts the threads that may be placed into pools, those with fewer places first. All others are left
/// to the OS in the placement, as by [`View::placeable`]; so are those that `spare`, given the
/// index and the thread, has a reason to leave out.
pub(crate) fn pools<'a>(
    view: &View<'a>,
    mut spare: impl FnMut(usize, &ThreadView<'a>) -> Option<Cow<'static, str>>,
) -> (Vec<Pool>, Placement) {
    let (mut pools, mut left) = (Vec::<Pool>::new(), Placement::new());
    // Most threads have the allowed CPUs of the one before.
    let mut last: Option<(&CpuSet, CpuSet)> = None;
    for (index, thread) in view.threads.iter().enumerate() {
        let (_, allowed) = match last.take() {
            Some(before) if before.0 == thread.allowed => last.insert(before),
            _ => last.insert((thread.allowed, view.allowed(thread))),
        };
        let refused = refused(thread, allowed).map(Cow::Borrowed);
        let reason = refused.or_else(|| spare(index, thread));
        if let Some(reason) = reason {
            left.insert(thread.id, Assignment::os(reason));
        } else if let Some(pool) = pools.iter_mut().find(|pool| pool.allowed == *allowed) {
            pool.threads.push(index);
        } else {
            pools.push(Pool { allowed: allowed.clone(), threads: vec![index] });
        }
    }
    pools.sort_by_key(|pool| pool.allowed.len());
    (pools, left)
}

/// Threads that shall share a core, by their index in the view.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Group {
    pub members: Vec<usize>,
    /// Why these.
    pub reason: Cow<'static, str>,
}

/// Which cores groups get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filling {
    /// The first ones in increasing order, group after group (Feliu et al., section 6.2; Navarro et al.,
    /// section 5, third step).
    Increasing,
    /// Those where most of their threads are: ours, since each thread that moves loses its caches.
    Keep,
}

impl Filling {
    const fn name(self) -> &'static str {
        match self {
            Self::Increasing => "increasing",
            Self::Keep => "keep",
        }
    }

    /// As a parameter, by default as published.
    pub const PUBLISHED: Parameter<Self> = Parameter::new(
        "cores",
        Kind::Choice(&[Self::Increasing.name(), Self::Keep.name()]),
        Self::Increasing,
        "Which cores groups get: the first ones in increasing order, or those where their threads are",
    );
}

impl Typed for Filling {
    fn of(value: &Value) -> Option<Self> {
        let text = String::of(value)?;
        [Self::Increasing, Self::Keep]
            .into_iter()
            .find(|one| one.name().eq_ignore_ascii_case(&text))
    }

    fn to_value(&self) -> Option<Value> {
        Some(Value::Text(self.name().to_owned()))
    }
}

/// The cores of a machine and the threads on them.
#[derive(Debug, Clone)]
pub(crate) struct CoreSlots {
    cores: Vec<Core>,
    filling: Filling,
}

#[derive(Debug, Clone)]
struct Core {
    capacity: u32,
    groups: usize,
    /// Hardware threads with the number of threads on each.
    loads: Vec<(PuId, usize)>,
}

impl Core {
    fn offers(&self, allowed: &CpuSet) -> bool {
        self.loads.iter().any(|(pu, _)| allowed.contains(*pu))
    }
}

impl CoreSlots {
    /// All free.
    pub fn new(topology: &Topology) -> Self {
        let core = |core: &symbiont_topology::Core| Core {
            capacity: core.capacity,
            groups: 0,
            loads: core.cpus.iter().map(|pu| (pu, 0)).collect(),
        };
        Self { cores: topology.cores().iter().map(core).collect(), filling: Filling::Keep }
    }

    /// Groups get cores in this way.
    pub fn filling(self, filling: Filling) -> Self {
        Self { filling, ..self }
    }

    /// How many cores a pool can use.
    pub fn cores(&self, pool: &Pool) -> usize {
        self.cores.iter().filter(|core| core.offers(&pool.allowed)).count()
    }

    /// The most threads of a pool that one core can run at once.
    pub fn width(&self, pool: &Pool) -> usize {
        let places =
            |core: &Core| core.loads.iter().filter(|(pu, _)| pool.allowed.contains(*pu)).count();
        self.cores.iter().map(places).max().unwrap_or(0)
    }

    /// Gives each group of a pool a core, and each member a hardware thread.
    pub fn assign(
        &mut self,
        view: &View<'_>,
        pool: &Pool,
        groups: &[Group],
        placement: &mut Placement,
    ) {
        let offered: Vec<usize> =
            (0..self.cores.len()).filter(|&core| self.cores[core].offers(&pool.allowed)).collect();
        let taken: usize = offered.iter().map(|&core| self.cores[core].groups).sum();
        let quota = (taken + groups.len()).div_ceil(offered.len().max(1));
        let mut assigned = vec![false; groups.len()];
        let mut slots = Vec::with_capacity(pool.threads.len());
        let preferences = match self.filling {
            Filling::Increasing => Vec::new(),
            Filling::Keep => self.preferences(view, pool, groups),
        };
        for (group, core) in preferences {
            if !assigned[group] && self.cores[core].groups < quota {
                assigned[group] = true;
                self.put_on(view, pool, &groups[group], core, &mut slots);
            }
        }
        let filling = self.filling;
        let room = |core: &Core, at| {
            let capacity = if filling == Filling::Keep { core.capacity } else { 0 };
            (core.groups, Reverse(capacity), at)
        };
        let mut rooms: BTreeSet<_> =
            offered.into_iter().map(|at| room(&self.cores[at], at)).collect();
        for (group, _) in groups.iter().zip(&assigned).filter(|(_, assigned)| !**assigned) {
            if let Some((.., at)) = rooms.pop_first() {
                self.put_on(view, pool, group, at, &mut slots);
                rooms.insert(room(&self.cores[at], at));
            }
        }
        // All at once: a tree is built from a sorted list much faster than by inserts.
        placement.append(&mut slots.into_iter().collect());
    }

    /// Pairs of a group and a core where members of it are, most members first.
    fn preferences(&self, view: &View<'_>, pool: &Pool, groups: &[Group]) -> Vec<(usize, usize)> {
        let mut preferences = Vec::new();
        for (number, group) in groups.iter().enumerate() {
            let mut homes: Vec<usize> = group
                .members
                .iter()
                .filter_map(|&member| home(view.threads.get(member)?))
                .filter(|pu| pool.allowed.contains(*pu))
                .filter_map(|pu| Some(view.topology.core_of(pu)?.id.0 as usize))
                .collect();
            homes.sort_unstable();
            let counted = homes.chunk_by(|a, b| a == b);
            preferences.extend(counted.map(|same| (Reverse(same.len()), number, same[0])));
        }
        preferences.sort_unstable();
        preferences.into_iter().map(|(_, group, core)| (group, core)).collect()
    }

    fn put_on(
        &mut self,
        view: &View<'_>,
        pool: &Pool,
        group: &Group,
        core: usize,
        slots: &mut Vec<(ThreadId, Assignment)>,
    ) {
        let core = &mut self.cores[core];
        core.groups += 1;
        let members = group.members.iter().filter_map(|&member| view.threads.get(member));
        let mut members: Vec<_> = members.map(|thread| (thread.id, home(thread))).collect();
        members.sort_by_key(|(_, home)| !core.loads.iter().any(|(pu, _)| *home == Some(*pu)));
        for (id, home) in members {
            let places = core.loads.iter_mut().filter(|(pu, _)| pool.allowed.contains(*pu));
            let best = places.min_by_key(|(pu, load)| (*load, home != Some(*pu)));
            if let Some((pu, load)) = best {
                *load += 1;
                slots.push((id, Assignment::on((*pu).into(), group.reason.clone())));
            }
        }
    }
}

/// The hardware thread that a thread was given, or else where it ran last.
pub(crate) fn home(thread: &ThreadView<'_>) -> Option<PuId> {
    match thread.applied.map(|assignment| &assignment.target) {
        Some(Target::Cpus(cpus)) => cpus.only().or(thread.cpu),
        _ => thread.cpu,
    }
}

#[cfg(test)]
mod tests;
