//! Threads with different cookies of core scheduling are not kept on one core.
//!
//! # Problem
//! Users of Linux give threads that do not trust each other different cookies (prctl(2), `PR_SCHED_CORE`), so that no
//! thread can observe another through what a core's hardware threads share. While one of them runs, the kernel forces
//! the siblings idle rather than run a thread with another cookie. A policy that pairs them halves their speed.
//!
//! # Approach
//! Policies know no cookies. [`part`] repairs what they decide: where threads that a placement keeps on one core
//! have different cookies, each core gets an owner, the cookie that is to run there: each cookie as many cores as
//! its threads need, those first where it has the most threads. A thread on a core with another owner goes to a core
//! of its own cookie or to one that is free, no fuller than the policy fills cores; if there is none, it is left to
//! the OS, which knows cookies when it balances.
//!
//! A policy that learns from pairs learns nothing of a pair that never runs, and may ask for it again and again: that
//! moves no thread, for equal placements are repaired equally.
//!
//! # Terms and units
//! *Kept on a core*: with a target within one core, or allowed no other core by its user (*pinned*: its core is for
//! its cookie first). Threads with wider targets are spread by the OS. Having no cookie is a cookie, too: threads
//! without one trust each other. A cookie that cannot be read counts as none. Cores with one hardware thread online
//! take threads of any cookie.
//!
//! # Properties
//! - No policy's decision keeps threads with different cookies on one core (`no_core_has_two_cookies`).
//! - With as many cores as that takes, no thread is left to the OS (`where_cores_suffice_all_threads_are_kept`).
//! - Without cookies nothing changes (`equal_cookies_change_nothing`), nor on cores without conflict
//!   (`a_core_without_conflict_stays_as_it_is`).

use std::cmp::Reverse;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use symbiont_machine::{Assignment, CoreCookie, Placement, RunState, Target, ThreadId};
use symbiont_topology::{Core, CoreId, CpuSet, Topology};

use crate::{ThreadView, View};

/// Why a thread is not kept where its policy wants it.
pub(crate) const OTHER_COOKIE: &str = "other core-scheduling cookie";

/// A cookie, or having none.
type Cookie = Option<CoreCookie>;

/// A thread that the placement keeps on a core.
struct Kept<'v, 'a> {
    thread: &'v ThreadView<'a>,
    core: &'a Core,
    /// May it use no other core?
    is_pinned: bool,
}

/// The core that all of these hardware threads are of.
fn core_of<'a>(topology: &'a Topology, cpus: &CpuSet) -> Option<&'a Core> {
    topology.core_of(cpus.first()?).filter(|core| cpus.is_subset(&core.cpus))
}

/// Have these threads different cookies?
pub(crate) fn differ(view: &View<'_>, threads: &[ThreadId]) -> bool {
    let its = |id| view.threads.iter().find(|thread| thread.id == id).map(|thread| thread.cookie);
    let mut cookies = threads.iter().filter_map(|id| its(*id));
    let first = cookies.next();
    cookies.any(|cookie| Some(cookie) != first)
}

/// Has the core siblings that the kernel would force idle?
fn shares(view: &View<'_>, core: &Core) -> bool {
    core.cpus.intersection(&view.online).len() > 1
}

/// Repairs a placement that keeps threads with different cookies on one core.
pub(crate) fn part(view: &View<'_>, placement: &mut Placement) {
    let Some(first) = view.threads.first() else { return };
    if view.threads.iter().all(|thread| thread.cookie == first.cookie) {
        return;
    }
    let keeps = |thread| {
        let thread: &ThreadView<'_> = thread;
        let allowed = view.allowed(thread);
        let target = placement.get(&thread.id)?.target.cpus().unwrap_or(&allowed);
        let core = core_of(view.topology, target)?;
        Some(Kept { thread, core, is_pinned: allowed.is_subset(&core.cpus) })
    };
    let kept: Vec<Kept<'_, '_>> = view.threads.iter().filter_map(keeps).collect();
    let mut on: BTreeMap<CoreId, Vec<&Kept<'_, '_>>> = BTreeMap::new();
    for one in &kept {
        on.entry(one.core.id).or_default().push(one);
    }
    let differ = |here: &Vec<&Kept<'_, '_>>| {
        here.windows(2).any(|two| two[0].thread.cookie != two[1].thread.cookie)
    };
    let is_shared =
        |here: &Vec<&Kept<'_, '_>>| here.first().is_some_and(|one| shares(view, one.core));
    if !on.values().any(|here| is_shared(here) && differ(here)) {
        return;
    }
    let mut cores = Cores::new(view, &on);
    cores.give_owners(&kept);
    let touched: BTreeSet<CoreId> = cores.repair(&kept, placement);
    for one in kept.iter().filter(|one| touched.contains(&one.core.id)) {
        let Some(assignment) = placement.get_mut(&one.thread.id) else { continue };
        // It was predicted of other co-runners.
        assignment.predicted_slowdown = None;
    }
}

/// The cores of a machine, by what is to run there.
struct Cores<'v, 'a> {
    view: &'v View<'a>,
    /// Most threads of a core in the policy's own placement.
    fullest: usize,
    owners: BTreeMap<CoreId, Cookie>,
    /// Threads on each core.
    load: BTreeMap<CoreId, usize>,
}

impl<'v, 'a> Cores<'v, 'a> {
    fn new(view: &'v View<'a>, on: &BTreeMap<CoreId, Vec<&Kept<'_, '_>>>) -> Self {
        let fullest = on.values().map(Vec::len).max().unwrap_or_default();
        Self { view, fullest, owners: BTreeMap::new(), load: BTreeMap::new() }
    }

    /// How many threads may be kept on a core.
    fn places(&self, core: &Core) -> usize {
        match core.cpus.intersection(&self.view.online).len() {
            0 => 0,
            width => width.max(self.fullest),
        }
    }

    fn load(&self, core: &Core) -> usize {
        self.load.get(&core.id).copied().unwrap_or_default()
    }

    /// Decides which cookie each core is for.
    fn give_owners(&mut self, kept: &[Kept<'_, '_>]) {
        let mut cookies: BTreeMap<Cookie, usize> = BTreeMap::new();
        let mut claims: BTreeMap<(CoreId, Cookie), Claim<'_>> = BTreeMap::new();
        for one in kept.iter().filter(|one| shares(self.view, one.core)) {
            let Kept { thread, core, is_pinned } = one;
            *cookies.entry(thread.cookie).or_default() += 1;
            let new =
                Claim { core, cookie: thread.cookie, pinned: 0, ready: 0, threads: 0, there: 0 };
            let claim = claims.entry((core.id, thread.cookie)).or_insert(new);
            claim.threads += 1;
            claim.pinned += usize::from(*is_pinned);
            claim.ready += usize::from(thread.state == RunState::Runnable);
            claim.there += usize::from(thread.cpu.is_some_and(|cpu| core.cpus.contains(cpu)));
        }
        let mut claims: Vec<Claim<'_>> = claims.into_values().collect();
        claims
            .sort_by_key(|claim| Reverse((claim.pinned, claim.ready, claim.threads, claim.there)));
        let mut room: BTreeMap<Cookie, usize> = BTreeMap::new();
        for Claim { core, cookie, .. } in claims.iter().take_while(|claim| claim.pinned > 0) {
            if let Entry::Vacant(free) = self.owners.entry(core.id) {
                free.insert(*cookie);
                *room.entry(*cookie).or_default() += self.places(core);
            }
        }
        // Each cookie has a core before one has two.
        for is_first in [true, false] {
            for Claim { core, cookie, .. } in &claims {
                let has = room.get(cookie).copied().unwrap_or_default();
                let wants = if is_first { has == 0 } else { Some(&has) < cookies.get(cookie) };
                if wants && !self.owners.contains_key(&core.id) {
                    self.owners.insert(core.id, *cookie);
                    room.insert(*cookie, has + self.places(core));
                }
            }
            for (cookie, threads) in &cookies {
                let mut has = room.get(cookie).copied().unwrap_or_default();
                while has < if is_first { 1 } else { *threads } {
                    let Some(core) = self.another(*cookie, kept) else { break };
                    has += self.places(core);
                    self.owners.insert(core.id, *cookie);
                }
                room.insert(*cookie, has);
            }
        }
        // What is left stays with those that are there.
        for Claim { core, cookie, .. } in &claims {
            self.owners.entry(core.id).or_insert(*cookie);
        }
    }

    /// The best core without owner for a cookie.
    fn another(&self, cookie: Cookie, kept: &[Kept<'_, '_>]) -> Option<&'a Core> {
        let its: Vec<&Kept<'_, '_>> =
            kept.iter().filter(|one| one.thread.cookie == cookie).collect();
        let free = self.view.topology.cores().iter().filter(|core| {
            let may = |one: &&Kept<'_, '_>| !core.cpus.is_disjoint(one.thread.allowed);
            shares(self.view, core) && !self.owners.contains_key(&core.id) && its.iter().any(may)
        });
        free.min_by_key(|core| {
            let others = kept.iter().filter(|one| one.core.id == core.id).count();
            let far = its.iter().filter(|one| one.core.llc != core.llc).count();
            (others, far, Reverse(core.capacity), core.id)
        })
    }

    /// Sends threads on cores with another owner elsewhere; gives the cores whose threads are not as they were.
    fn repair(&mut self, kept: &[Kept<'_, '_>], placement: &mut Placement) -> BTreeSet<CoreId> {
        let owners = self.owners.clone();
        let is_at_home = |one: &&Kept<'_, '_>| owners.get(&one.core.id) == Some(&one.thread.cookie);
        for one in kept.iter().filter(is_at_home) {
            *self.load.entry(one.core.id).or_default() += 1;
        }
        let mut touched = BTreeSet::new();
        let is_placed = |one: &&Kept<'_, '_>| {
            placement.get(&one.thread.id).is_some_and(|assignment| !assignment.target.is_os())
        };
        let away = kept.iter().filter(|one| !is_at_home(one)).filter(is_placed);
        let mut away: Vec<&Kept<'_, '_>> = away.collect();
        away.sort_by_key(|one| (one.thread.state != RunState::Runnable, one.thread.id));
        for Kept { thread, core, .. } in away {
            let Some(assignment) = placement.get_mut(&thread.id) else { continue };
            touched.insert(core.id);
            let Some(to) = self.home(thread, core) else {
                let reason = format!(
                    "{OTHER_COOKIE}: each core that it may use is for threads with another one"
                );
                let priority = assignment.priority;
                *assignment = Assignment { priority, ..Assignment::os(reason) };
                continue;
            };
            touched.insert(to.id);
            *self.load.entry(to.id).or_default() += 1;
            self.owners.insert(to.id, thread.cookie);
            let was_held = assignment.is_held();
            assignment.target = Target::Cpus(to.cpus.intersection(&self.view.allowed(thread)));
            if was_held {
                assignment.mask = assignment.target.clone();
            }
            assignment.predicted_slowdown = None;
            assignment.reason = format!(
                "{OTHER_COOKIE} than threads of the core that was chosen: {}",
                assignment.reason
            )
            .into();
        }
        touched
    }

    /// The best core for a thread that its policy wanted on another one.
    fn home(&self, thread: &ThreadView<'_>, wanted: &Core) -> Option<&'a Core> {
        let allowed = self.view.allowed(thread);
        let open = self.view.topology.cores().iter().filter(|core| {
            let owner = self.owners.get(&core.id).filter(|_| shares(self.view, core));
            owner.is_none_or(|owner| *owner == thread.cookie)
                && self.load(core) < self.places(core)
                && !core.cpus.is_disjoint(&allowed)
        });
        open.min_by_key(|core| {
            let far = (core.node != wanted.node, self.load(core), core.llc != wanted.llc);
            (far, Reverse(core.capacity), core.id)
        })
    }
}

/// Threads of one cookie that the placement keeps on one core.
struct Claim<'a> {
    core: &'a Core,
    cookie: Cookie,
    pinned: usize,
    ready: usize,
    threads: usize,
    /// Of these, those that run there already.
    there: usize,
}

#[cfg(test)]
mod tests;
