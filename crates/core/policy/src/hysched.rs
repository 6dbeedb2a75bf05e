//! `hysched`: pairs threads of different Top-Down categories, then balances
//! IPC (Navarro et al., "Hy-Sched").
//!
//! # Problem
//! Two threads that wait for the same part of a core slow each other down. A model of that takes training.
//!
//! # Approach
//! The three steps of section 5, once a quantum: each thread's dominant
//! category is the one with the largest share of its issue slots, ties to the
//! first of the catalogue's list; threads are sorted by category and IPC; and
//! Algorithm 1 ([`pairing`]) makes pairs, which go to the cores from the first one
//! on, or stay where they are ([`Filling`]). [`Variant`]: which categories.
//!
//! Where the paper is silent:
//! - Threads that do not outnumber the cores get a core each. While they fill
//!   only some second places, as many cores as possible are used: of the pairs
//!   made, those of one category are parted first, the last ones before others.
//! - On wider cores pairs are paired in turn by the same algorithm: a pair's
//!   category is the dominant one of the sum of its shares, its IPC the sum.
//! - More threads than hardware threads: threads that take turns are grouped as if
//!   they ran together, pairs of pairs and so on, until each group has a core.
//! - Where a machine does not have a variant's categories, the deepest that it has are
//!   taken.
//! - Only threads that ran during the quantum take part; the others, and those
//!   without a measurement, are left to the OS.
//! - With [`Hysched::with_hysteresis`] a thread keeps its category until
//!   another one's share is larger by that margin; the paper has none.
//!
//! # Properties
//! - Threads of different categories meet (`different_categories_meet`), and as
//!   many cores as possible are used (`no_core_is_idle_while_others_are_shared`).
//! - A machine with fewer levels is made do with
//!   (`the_deepest_categories_there_are_are_taken`).
//! - It reports how often categories changed, and how many pairs are of one category
//!   and how few could be (`pairs_and_changes_are_counted`).
//! - Threads that take turns meet others of other categories, too
//!   (`threads_that_take_turns_are_paired_too`).
//! - With the signal shuffled between threads the pairs are no better than
//!   chance (`shuffled_categories_make_random_pairs`).

pub mod pairing;

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use symbiont_machine::{Ability, Placement, RunState, Signal, Support, ThreadId};
use symbiont_topology::Topology;

use crate::core_slots::{CoreSlots, Filling, Group, pools};
use crate::parameter::Parameters;
use crate::{
    Entry, Finding, Kind, Parameter, Policy, Requirements, ThreadView, Typed, Value, View,
};
use pairing::{Application, Criterion, fewest_same_category, pair};

pub(crate) const ENTRY: Entry = Entry {
    name: "hysched",
    summary: "pairs threads of different Top-Down categories, then balances IPC",
    paper: Some(
        "Navarro et al., Hy-Sched: a simple hyperthreading-aware thread to core allocation strategy",
    ),
    quantum: Duration::from_millis(500),
    boosts: false,
    parameters: PARAMETERS,
    make: |settings| {
        let policy = Hysched::new(settings.get(&Hysched::VARIANT));
        let policy = policy.with_hysteresis(settings.get(&Hysched::HYSTERESIS));
        Box::new(policy.filling(settings.get(&Filling::PUBLISHED)))
    },
};

pub(crate) const PARAMETERS: Parameters =
    &[&Hysched::VARIANT, &Hysched::HYSTERESIS, &Filling::PUBLISHED];

/// Which categories are looked at (section 5).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Variant {
    /// The four of the first level.
    TopL,
    /// The back end split into core and memory: five.
    TopB2L,
    /// Memory split into its levels: nine.
    #[default]
    TopB2M3L,
    /// All that the machine has of the third level: 18 in the paper.
    All3L,
}

impl Variant {
    /// All of them, from coarse to fine.
    pub const ALL: [Self; 4] = [Self::TopL, Self::TopB2L, Self::TopB2M3L, Self::All3L];

    /// The signal that gives these categories.
    #[must_use]
    pub fn signal(self) -> Signal {
        match self {
            Self::TopL => Signal::TopL,
            Self::TopB2L => Signal::TopB2L,
            Self::TopB2M3L => Signal::TopB2M3L,
            Self::All3L => Signal::All3L,
        }
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TopL => "TopL",
            Self::TopB2L => "TopB2L",
            Self::TopB2M3L => "TopB2M3L",
            Self::All3L => "All3L",
        })
    }
}

/// A name that no variant has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no variant is called '{0}'; there are: TopL, TopB2L, TopB2M3L, All3L")]
pub struct UnknownVariant(String);

impl FromStr for Variant {
    type Err = UnknownVariant;

    /// By name, in any case.
    fn from_str(name: &str) -> Result<Self, UnknownVariant> {
        let known = Self::ALL.into_iter().find(|v| v.to_string().eq_ignore_ascii_case(name));
        known.ok_or_else(|| UnknownVariant(name.to_owned()))
    }
}

impl Typed for Variant {
    fn of(value: &Value) -> Option<Self> {
        String::of(value)?.parse().ok()
    }

    fn to_value(&self) -> Option<Value> {
        Some(Value::Text(self.to_string()))
    }
}

/// The policy.
#[derive(Debug, Clone)]
pub struct Hysched {
    variant: Variant,
    hysteresis: f64,
    filling: Filling,
    /// The category of each thread in the last quantum, in order of the threads.
    last: Vec<(ThreadId, usize)>,
    tally: Tally,
}

/// What was decided so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Tally {
    /// Categories of threads that had one in the quantum before, too.
    judged: u64,
    /// Those that differ from it.
    changes: u64,
    /// Pairs of threads that were made.
    pairs: u64,
    /// Those of one category.
    same: u64,
    /// The fewest of one category that as many pairs of these threads have.
    fewest: u64,
}

impl Hysched {
    /// Which categories it looks at.
    pub const VARIANT: Parameter<Variant> = Parameter::new(
        "variant",
        Kind::Choice(&["TopL", "TopB2L", "TopB2M3L", "All3L"]),
        Variant::TopB2M3L,
        "Top-Down categories to look at, from coarse to fine",
    );
    /// By how much of the issue slots another category must exceed a thread's own before the thread
    /// changes it; 0 in the paper.
    pub const HYSTERESIS: Parameter<f64> = Parameter::new(
        "hysteresis",
        Kind::Share,
        0.0,
        "Share of the issue slots by which another category must exceed a thread's own to replace it",
    );

    /// Looks at the categories of a variant.
    #[must_use]
    pub fn new(variant: Variant) -> Self {
        let (filling, last) = (Filling::Increasing, Vec::new());
        Self { variant, hysteresis: 0.0, filling, last, tally: Tally::default() }
    }

    /// Pairs get cores in this way.
    #[must_use]
    pub fn filling(self, filling: Filling) -> Self {
        Self { filling, ..self }
    }

    /// A thread changes its category only if the new one's share of the issue
    /// slots is larger than the old one's by more than `margin` (0 to 1).
    #[must_use]
    pub fn with_hysteresis(self, margin: f64) -> Self {
        Self { hysteresis: margin, ..self }
    }

    /// The category of a thread in the last quantum, by its number in the
    /// catalogue's list.
    fn before(&self, thread: ThreadId) -> Option<usize> {
        let at = self.last.binary_search_by_key(&thread, |(id, _)| *id).ok()?;
        self.last.get(at).map(|(_, category)| *category)
    }

    /// What there is to know of a thread, or why not.
    fn read<'a>(
        &self,
        thread: &ThreadView<'a>,
        index: usize,
    ) -> Result<Party<'a>, Cow<'static, str>> {
        let ran =
            thread.state == RunState::Runnable || thread.did.is_some_and(|did| did.running > 0.0);
        if !ran {
            return Err("asleep".into());
        }
        let Some(measured) = thread.measured else { return Err("not measured yet".into()) };
        let missing = |why| Cow::Owned(format!("not measured: {why}"));
        let ipc = measured.get("ipc").map_err(missing)?.value;
        let shares = measured.categories(self.variant.signal()).map_err(missing)?;
        let shares: Vec<_> = shares.into_iter().map(|(name, share)| (name, share.value)).collect();
        let before = self.before(thread.id);
        let category = self.category(before, &shares);
        let name = name(&shares, category);
        let members = vec![index];
        Ok(Party { members, before, category, name, ipc, reason: "alone".into() })
    }

    fn category(&self, before: Option<usize>, shares: &[(&str, f64)]) -> usize {
        let now = dominant(shares.iter().map(|(_, share)| *share));
        let before = before.and_then(|last| Some((last, shares.get(last)?.1)));
        match (before, shares.get(now)) {
            (Some((last, kept)), Some((_, largest))) if largest - kept <= self.hysteresis => last,
            _ => now,
        }
    }
}

/// Threads that share a core, or one alone.
#[derive(Debug, Clone)]
struct Party<'a> {
    members: Vec<usize>,
    /// The category of a thread in the quantum before.
    before: Option<usize>,
    category: usize,
    /// Of the category.
    name: &'a str,
    ipc: f64,
    reason: Cow<'static, str>,
}

impl Party<'_> {
    /// Both together; the category is still that of the first.
    fn join(mut self, other: Self, criterion: Criterion) -> Self {
        let reason = match criterion {
            Criterion::CombineCategories => {
                ["different categories: ", self.name, " with ", other.name].concat()
            }
            Criterion::BalanceIpc => format!(
                "one category, {}: IPC {:.2} balances {:.2}",
                self.name, self.ipc, other.ipc
            ),
        };
        self.members.extend(other.members);
        self.ipc += other.ipc;
        self.reason = reason.into();
        self
    }
}

fn name<'a>(shares: &[(&'a str, f64)], category: usize) -> &'a str {
    shares.get(category).map_or("?", |(name, _)| name)
}

/// The dominant category, and its name, of the sum of the shares of some threads.
fn together<'a>(view: &View<'a>, signal: Signal, members: &[usize]) -> (usize, &'a str) {
    let mut sums: Vec<(&str, f64)> = Vec::new();
    let measured = members.iter().filter_map(|&member| view.threads.get(member)?.measured);
    for shares in measured.filter_map(|measured| measured.categories(signal).ok()) {
        if sums.is_empty() {
            sums = shares.iter().map(|(name, _)| (*name, 0.0)).collect();
        }
        for ((_, sum), (_, share)) in sums.iter_mut().zip(shares) {
            *sum += share.value;
        }
    }
    let category = dominant(sums.iter().map(|(_, sum)| *sum));
    (category, name(&sums, category))
}

/// The dominant category of these shares, by number: the first of the largest.
/// 0 where there is none.
#[must_use]
pub fn dominant(shares: impl IntoIterator<Item = f64>) -> usize {
    let mut first = (0, f64::NEG_INFINITY);
    for (number, share) in shares.into_iter().enumerate() {
        if share > first.1 {
            first = (number, share);
        }
    }
    first.0
}

/// Pairs parties until each has a core of its own; `judge` gives the category of
/// several threads, and its name.
fn form<'a>(
    mut parties: Vec<Party<'a>>,
    cores: usize,
    tally: &mut Tally,
    judge: impl Fn(&[usize]) -> (usize, &'a str),
) -> Vec<Party<'a>> {
    let cores = cores.max(1);
    if parties.len() > cores {
        parties = halve(parties, cores, tally);
    }
    while parties.len() > cores {
        for party in parties.iter_mut().filter(|party| party.members.len() > 1) {
            (party.category, party.name) = judge(&party.members);
        }
        // Pairs of pairs are not counted.
        parties = halve(parties, cores, &mut Tally::default());
    }
    parties
}

/// One round of pairs: not more than are needed for the parties to fit.
fn halve<'a>(parties: Vec<Party<'a>>, cores: usize, tally: &mut Tally) -> Vec<Party<'a>> {
    let seen: Vec<Application> =
        parties.iter().map(|p| Application { category: p.category, ipc: p.ipc }).collect();
    let mut pairing = pair(&seen);
    // Pairs of one category were made last and are parted first.
    let made = pairing.pairs.len().min(parties.len().saturating_sub(cores));
    let parted = pairing.pairs.split_off(made);
    tally.pairs += made as u64;
    tally.same += pairing.same_category() as u64;
    tally.fewest += fewest_same_category(&seen, made) as u64;
    let mut parties: Vec<Option<Party<'a>>> = parties.into_iter().map(Some).collect();
    let mut take = |index: usize| parties.get_mut(index).and_then(Option::take);
    let mut formed = Vec::with_capacity(seen.len());
    for (one, other, criterion) in pairing.pairs {
        if let (Some(one), Some(other)) = (take(one), take(other)) {
            formed.push(one.join(other, criterion));
        }
    }
    let single = parted.into_iter().flat_map(|(one, other, _)| [one, other]).chain(pairing.alone);
    formed.extend(single.filter_map(take));
    formed
}

impl Policy for Hysched {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    /// Alternatives are the variants that are not deeper than the one asked for.
    fn requirements(&self) -> Requirements {
        let reachable = Variant::ALL.into_iter().filter(|variant| *variant <= self.variant);
        Requirements {
            alternatives: reachable.map(Variant::signal).collect(),
            ..Requirements::of([Signal::RunStates, Signal::Ipc, self.variant.signal()])
        }
    }

    /// The deepest variant that the machine measures, not deeper than the one
    /// asked for; that one if it measures none.
    fn offer(&mut self, offered: &Support, _topology: &Topology) -> Option<String> {
        let reported = |variant: &&Variant| {
            offered.signals.get(&variant.signal()).is_some_and(Ability::exists)
        };
        let reachable = Variant::ALL.iter().filter(|variant| **variant <= self.variant);
        let deepest = *reachable.rev().find(reported)?;
        let asked = std::mem::replace(&mut self.variant, deepest);
        (asked != deepest).then(|| {
            format!("{asked} is not measured here; {deepest} are the deepest categories there are")
        })
    }

    fn place(&mut self, view: &View<'_>) -> Placement {
        let mut parties: Vec<Option<Party<'_>>> = vec![None; view.threads.len()];
        let (pools, mut placement) = pools(view, |index, thread| {
            self.read(thread, index).map(|party| parties[index] = Some(party)).err()
        });
        for party in parties.iter().flatten() {
            self.tally.judged += u64::from(party.before.is_some());
            self.tally.changes += u64::from(party.before.is_some_and(|it| it != party.category));
        }
        let now = view.threads.iter().zip(&parties);
        let now = now.filter_map(|(thread, party)| Some((thread.id, party.as_ref()?.category)));
        self.last = now.collect();
        self.last.sort_unstable();
        let signal = self.variant.signal();
        let mut slots = CoreSlots::new(view.topology).filling(self.filling);
        for pool in &pools {
            let members =
                pool.threads.iter().filter_map(|&thread| parties.get_mut(thread)?.take()).collect();
            let judge = |members: &[usize]| together(view, signal, members);
            let formed = form(members, slots.cores(pool), &mut self.tally, judge);
            let group = |party: Party<'_>| Group { members: party.members, reason: party.reason };
            let groups: Vec<Group> = formed.into_iter().map(group).collect();
            slots.assign(view, pool, &groups, &mut placement);
        }
        placement
    }

    fn findings(&self) -> Vec<Finding> {
        let Tally { judged, changes, pairs, same, fewest } = self.tally;
        let share = |part: u64, of: u64| (of > 0).then(|| part as f64 / of as f64);
        let changed = share(changes, judged)
            .map(|share| Finding::new("threads whose category changed, per quantum", share, "1"));
        let of_pairs = |name: &str, part| Some(Finding::new(name, share(part, pairs)?, "1"));
        let made = [
            of_pairs("pairs of one category", same),
            of_pairs("pairs of one category, the fewest possible", fewest),
        ];
        changed.into_iter().chain(made.into_iter().flatten()).collect()
    }
}

#[cfg(test)]
mod tests;
