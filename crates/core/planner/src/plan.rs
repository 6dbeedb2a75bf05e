//! The planner itself.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;

use symbiont_machine::{
    Assignment, Change, Lifecycle, Move, Placement, Priority, RunState, Sample, Support, Target,
    ThreadId, ThreadSample,
};
use symbiont_topology::CpuSet;

use crate::Bounds;

/// The setting that a move changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Setting {
    /// Where a thread may run.
    Affinity,
    /// How urgent it is.
    Priority,
}

impl Setting {
    /// The setting that this change is about.
    #[must_use]
    pub fn of(change: &Change) -> Self {
        match change {
            Change::Affinity(_) | Change::Nudge(_) => Self::Affinity,
            Change::Priority(_) => Self::Priority,
        }
    }
}

/// Why a move is not made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Why {
    /// Nothing of the target lies within the thread's limit and is online.
    OutsideLimit,
    /// The thread's children would inherit it, or its program, which starts,
    /// count the CPUs that it is given.
    Unsettled,
    /// The kernel schedules the thread in real time or by deadlines, or its user has it run when no other is ready.
    Special,
    /// The same setting of the thread was moved too recently.
    Held,
    /// Others had waited longer, and the budget was spent.
    OverBudget,
    /// The thread is not enrolled, or not any more.
    NotEnrolled,
    /// Another process changed this setting of the thread; its value stays.
    ExternallyChanged,
    /// The machine refused this setting of late; it is tried again later.
    Refused,
    /// The machine has said from the start that it cannot do this.
    Unsupported,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OutsideLimit => "none of these CPUs is allowed to the thread and online",
            Self::Unsettled => "the thread is new, forked lately or starts a program",
            Self::Special => "real-time and deadline threads, and those that others have set idle, are never touched",
            Self::Held => "it was moved too recently",
            Self::OverBudget => "the budget of moves was spent on other threads",
            Self::NotEnrolled => "the thread is not managed",
            Self::ExternallyChanged => "another process changed this setting, which stays",
            Self::Refused => "it was refused lately; it is tried again later",
            Self::Unsupported => "this machine cannot do it",
        })
    }
}

/// A move that would be needed and is not made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Withheld {
    /// The move.
    pub wanted: Move,
    /// Why not.
    pub why: Why,
}

/// Settings that shall be left alone for now, and why.
pub type Barred = BTreeMap<(ThreadId, Setting), Why>;

/// The world that a plan is made for.
#[derive(Debug, Clone, Copy)]
pub struct Situation<'a> {
    /// The enrolled threads as they are now.
    pub sample: &'a Sample,
    /// The machine's hardware threads.
    pub online: &'a CpuSet,
    /// The settings that the machine can enforce.
    pub support: &'a Support,
    /// The settings that were applied and still hold; a thread that it does not
    /// name is as its user left it.
    pub applied: &'a Placement,
    /// Settings to leave alone.
    pub barred: &'a Barred,
}

/// The moves of a quantum.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// The moves to make, in order.
    pub moves: Vec<Move>,
    /// The moves not to make, ordered by thread.
    pub withheld: Vec<Withheld>,
    /// Targets that hold without a move, where another one held before: the thread runs there already,
    /// or its nudges are over.
    pub reached: Vec<(ThreadId, Target)>,
}

/// Makes plans, and remembers when it moved what.
#[derive(Debug, Clone)]
pub struct Planner {
    bounds: Bounds,
    /// Plans made so far.
    plans: u64,
    /// The plan that last moved a setting.
    moved: BTreeMap<(ThreadId, Setting), u64>,
}

impl Planner {
    /// A planner that has moved nothing yet.
    #[must_use]
    pub fn new(bounds: Bounds) -> Self {
        Self { bounds, plans: 0, moved: BTreeMap::new() }
    }

    /// Plans one quantum. A thread that `wanted` does not name stays as it is.
    pub fn plan(&mut self, now: &Situation<'_>, wanted: &Placement) -> Plan {
        self.plans += 1;
        let enrolled: BTreeMap<ThreadId, &ThreadSample> =
            now.sample.threads.iter().map(|t| (t.id, t)).collect();
        self.moved.retain(|(id, _), _| enrolled.contains_key(id));

        let mut plan = Plan::default();
        let (mut releases, mut candidates) = (Vec::new(), Vec::new());
        let as_user_left_it = Assignment::default();
        for (&id, want) in wanted {
            let thread = enrolled.get(&id).copied();
            let have = now.applied.get(&id).unwrap_or(&as_user_left_it);
            let differences = Differences::new(thread, now.online, have, want);
            if let Some(target) = differences.reached() {
                plan.reached.push((id, target));
            }
            for change in differences.changes {
                let wanted = Move { thread: id, change };
                match self.objection(thread, now, have, &wanted) {
                    Some(why) => plan.withheld.push(Withheld { wanted, why }),
                    None if is_release(&wanted) => releases.push(wanted),
                    None => candidates.push((wanted, have)),
                }
            }
        }

        let last_moved = |m: &Move| self.moved.get(&key(m)).copied();
        candidates.sort_by_key(|(m, _)| (last_moved(m), m.thread));
        let affordable = self.bounds.budget.unwrap_or(usize::MAX).min(candidates.len());
        let late = candidates.split_off(affordable);
        let over_budget = |(wanted, _)| Withheld { wanted, why: Why::OverBudget };
        plan.withheld.extend(late.into_iter().map(over_budget));
        plan.withheld.sort_by_key(|w| key(&w.wanted));

        let is_new = |(m, have): &&(Move, &Assignment)| !is_renewal(have, &m.change);
        let moved = releases.iter().chain(candidates.iter().filter(is_new).map(|(m, _)| m));
        let moved: Vec<_> = moved.map(|m| (key(m), self.plans)).collect();
        self.moved.extend(moved);
        releases.extend(candidates.into_iter().map(|(m, _)| m));
        releases.sort_by_key(|m| (turn(m), m.thread));
        plan.moves = releases;
        plan
    }

    /// The reason against a move, the budget apart.
    fn objection(
        &self,
        thread: Option<&ThreadSample>,
        now: &Situation<'_>,
        have: &Assignment,
        wanted: &Move,
    ) -> Option<Why> {
        let Some(thread) = thread else { return Some(Why::NotEnrolled) };
        if let Some(why) = now.barred.get(&key(wanted)) {
            return Some(*why);
        }
        let ability = match &wanted.change {
            _ if is_release(wanted) => return None,
            Change::Affinity(_) | Change::Nudge(_) => &now.support.affinity,
            Change::Priority(Priority::Idle) => &now.support.idle_class,
            Change::Priority(_) => &now.support.boost,
        };
        if !ability.exists() {
            return Some(Why::Unsupported);
        }
        if let Change::Affinity(Target::Cpus(cpus)) | Change::Nudge(cpus) = &wanted.change {
            if cpus.is_disjoint(&thread.allowed.intersection(now.online)) {
                return Some(Why::OutsideLimit);
            }
        }
        let settled = match &wanted.change {
            Change::Affinity(_) => thread.lifecycle.is_settled() || widens(have, &wanted.change),
            Change::Nudge(_) => thread.lifecycle.is_settled(),
            Change::Priority(_) => thread.lifecycle >= Lifecycle::Starting,
        };
        if !settled {
            let is_special = thread.lifecycle == Lifecycle::Special;
            return Some(if is_special { Why::Special } else { Why::Unsettled });
        }
        let hold = u64::from(self.bounds.hold);
        let held = |last: &u64| self.plans - last <= hold && !is_renewal(have, &wanted.change);
        self.moved.get(&key(wanted)).is_some_and(held).then_some(Why::Held)
    }
}

/// The moves that undo all that is applied, as at the end of a run.
#[must_use]
pub fn release(applied: &Placement) -> Vec<Move> {
    let as_user_left_it = Assignment::default();
    let undo = |(&thread, have)| {
        let differences = Differences::new(None, &CpuSet::new(), have, &as_user_left_it);
        differences.changes.into_iter().map(move |change| Move { thread, change })
    };
    applied.iter().flat_map(undo).collect()
}

/// The moves that undo masks of which the thread's limit and the machine leave no hardware thread,
/// as after a CPU went offline: the kernel lets such a thread run wherever its cpuset allows, which
/// may be more than its user wants.
#[must_use]
pub fn release_stranded(sample: &Sample, online: &CpuSet, applied: &Placement) -> Vec<Move> {
    let stranded = sample.threads.iter().filter(|thread| match applied.get(&thread.id) {
        Some(Assignment { mask: Target::Cpus(cpus), .. }) => {
            cpus.is_disjoint(&thread.allowed.intersection(online))
        }
        _ => false,
    });
    let to_os =
        |thread: &ThreadSample| Move { thread: thread.id, change: Change::Affinity(Target::Os) };
    stranded.map(to_os).collect()
}

/// What leads from the applied placement of a thread to the wanted one.
struct Differences {
    /// The mask's, then the nudge, then the priority's.
    changes: Vec<Change>,
    /// The target, cut down to what the thread's mask will leave.
    target: Target,
    /// Did the same target hold before?
    is_same: bool,
    /// Does the thread run there?
    is_there: bool,
}

impl Differences {
    /// A mask or a target outside the thread's limit is given as it is.
    fn new(
        thread: Option<&ThreadSample>,
        online: &CpuSet,
        have: &Assignment,
        want: &Assignment,
    ) -> Self {
        let allowed = thread.map(|thread| thread.allowed.intersection(online));
        let mask = cut(&want.mask, allowed.as_ref());
        let is_outside = |cpus: &CpuSet| allowed.as_ref().is_none_or(|all| cpus.is_disjoint(all));
        let room = mask.cpus().filter(|mask| !is_outside(mask)).or(allowed.as_ref());
        let target = match cut(&want.target, room) {
            // Beyond the mask that it keeps no thread can be nudged.
            Target::Cpus(part)
                if is_outside(&part) || room.is_some_and(|room| !part.is_disjoint(room)) =>
            {
                Target::Cpus(part)
            }
            _ => mask.clone(),
        };
        let mut changes = Vec::new();
        if mask != have.mask {
            changes.push(Change::Affinity(mask.clone()));
        }
        let mut is_there = target == mask;
        if let (Target::Cpus(cpus), false) = (&target, is_there) {
            is_there = thread.and_then(|thread| thread.cpu).is_some_and(|cpu| cpus.contains(cpu));
            // A thread that sleeps is not moved by it: it wakes where it was.
            let runs = thread.is_some_and(|thread| thread.state == RunState::Runnable);
            is_there |= thread.is_some_and(|thread| thread.kept && thread.lifecycle.is_settled());
            if is_outside(cpus) || (!is_there && runs) {
                changes.push(Change::Nudge(cpus.clone()));
            }
        }
        if want.priority != have.priority {
            changes.push(Change::Priority(want.priority));
        }
        Self { changes, is_same: target == have.target, target, is_there }
    }

    /// The target, where it holds anew and without a move of the thread's affinity.
    fn reached(&self) -> Option<Target> {
        let moves = |change: &Change| Setting::of(change) == Setting::Affinity;
        let holds = self.is_there && !self.is_same && !self.changes.iter().any(moves);
        holds.then(|| self.target.clone())
    }
}

/// A target within these hardware threads; all of them: the OS's choice.
fn cut(target: &Target, within: Option<&CpuSet>) -> Target {
    let (Target::Cpus(cpus), Some(within)) = (target, within) else { return target.clone() };
    match cpus.intersection(within) {
        none if none.is_empty() => target.clone(),
        all if all == *within => Target::Os,
        part => Target::Cpus(part),
    }
}

/// Is it a nudge to where the thread was nudged before?
fn is_renewal(have: &Assignment, change: &Change) -> bool {
    matches!(change, Change::Nudge(cpus) if have.target.cpus() == Some(cpus))
}

fn is_release(m: &Move) -> bool {
    matches!(m.change, Change::Affinity(Target::Os) | Change::Priority(Priority::Normal))
}

/// Does the change only add hardware threads to the applied ones?
fn widens(have: &Assignment, change: &Change) -> bool {
    match (&have.mask, change) {
        (Target::Cpus(have), Change::Affinity(Target::Cpus(want))) => have.is_subset(want),
        _ => false,
    }
}

fn key(m: &Move) -> (ThreadId, Setting) {
    (m.thread, Setting::of(&m.change))
}

/// When in a plan the move is made: releases, then wide masks, then narrow
/// ones, then all nudges in one, then priorities.
fn turn(m: &Move) -> (u8, Reverse<usize>) {
    match &m.change {
        _ if is_release(m) => (0, Reverse(0)),
        Change::Affinity(Target::Cpus(cpus)) => (1, Reverse(cpus.len())),
        Change::Nudge(_) => (2, Reverse(0)),
        Change::Affinity(Target::Os) | Change::Priority(_) => (3, Reverse(0)),
    }
}
