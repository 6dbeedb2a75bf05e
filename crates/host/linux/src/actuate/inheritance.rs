//! What a newborn thread inherited of our settings, and what it gets in their place.

use symbiont_topology::CpuSet;

use super::settings::{AppliedSettings, Mask, Saved, chosen_nice, comes_from};
use super::thread::{Class, Present, ThreadKey};

/// Births and changes are stamped in clock ticks by different readers of the
/// clock, so that they may be one tick apart.
pub(super) const SLACK: u64 = 1;

/// What was applied on a thread from a tick on, and what was saved then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    pub since: u64,
    pub applied: AppliedSettings,
    pub saved: Saved,
    /// Did the thread get it at its birth, from its maker?
    pub inherited: bool,
}

impl Change {
    /// Could a thread that was born at a tick have inherited it? No act comes before it is
    /// announced, but it can come later.
    pub fn may_be_inherited(&self, born: u64) -> bool {
        self.since <= born.saturating_add(SLACK)
    }
}

/// What a newborn has.
#[derive(Debug, Clone)]
pub(super) struct Newborn {
    pub mask: CpuSet,
    pub nice: i8,
    pub class: Class,
    pub born: u64,
}

impl Newborn {
    pub fn new(key: ThreadKey, now: &Present) -> Self {
        Self { mask: now.mask.clone(), nice: now.nice, class: now.class, born: key.born }
    }
}

/// What a newborn inherited from us and is to have instead.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Repair {
    pub mask: Option<Mask>,
    pub nice: Option<i8>,
    pub class: Option<Class>,
    /// With a mask: the one that it inherited, of which it shows what the cpuset leaves.
    pub carried: Option<CpuSet>,
}

impl Repair {
    /// What of ours a newborn carries, if its maker had `applied` at its
    /// birth and `saved` before us.
    pub fn of(
        newborn: &Newborn,
        applied: &AppliedSettings,
        saved: &Saved,
        cpuset: &CpuSet,
    ) -> Self {
        let narrow = |set: &CpuSet| {
            // The kernel remembers a mask that looks like the whole cpuset, or of which nothing is
            // left, for when the cpuset grows. To write all ones is harmless if that was not
            // inherited.
            let is_hidden = set.is_disjoint(cpuset) || cpuset.is_subset(set);
            (newborn.mask != *cpuset || (is_hidden && saved.mask == Mask::All))
                && comes_from(&newborn.mask, set, &saved.mask, cpuset)
        };
        let differs = |nice: &i8| *nice == newborn.nice && saved.nice != newborn.nice;
        let carried = applied.mask.clone().filter(narrow);
        Self {
            mask: carried.is_some().then(|| saved.mask.clone()),
            carried,
            nice: applied.nice.as_ref().is_some_and(differs).then_some(saved.nice),
            class: applied.class.filter(|ours| *ours == newborn.class).map(|_| saved.class),
        }
    }

    /// The same; where nothing explains a nice value below 0, it may be one that the newborn has counted from an
    /// inherited one.
    pub fn or_counted<'a>(
        mut self,
        newborn: &Newborn,
        mut inherited: impl Iterator<Item = (&'a AppliedSettings, &'a Saved)>,
    ) -> Self {
        if self.nice.is_none() && newborn.nice < 0 {
            self.nice = inherited.find_map(|(applied, saved)| {
                let chosen = chosen_nice(saved.nice, applied.nice, newborn.nice);
                (saved.nice >= 0 && chosen != newborn.nice).then_some(chosen)
            });
        }
        self
    }

    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// The repair that explains more of what the newborn has, completed by what only the other one explains. Of two
    /// that explain as much, the one with the narrower mask: a thread that cannot be distinguished from another must
    /// not be widened.
    pub fn or_better(self, other: Self) -> Self {
        let is_narrower = match (&self.mask, &other.mask) {
            (Some(Mask::All), Some(Mask::Cpus(_))) => true,
            (Some(Mask::Cpus(own)), Some(Mask::Cpus(other))) => {
                own != other && other.is_subset(own)
            }
            _ => false,
        };
        let (own_weight, weight) = (self.weight(), other.weight());
        let is_better = weight > own_weight || (weight == own_weight && is_narrower);
        let (mut better, less) = if is_better { (other, self) } else { (self, other) };
        if better.mask.is_none() {
            (better.mask, better.carried) = (less.mask, less.carried);
        }
        better.nice = better.nice.or(less.nice);
        better.class = better.class.or(less.class);
        better
    }

    fn weight(&self) -> usize {
        [self.mask.is_some(), self.nice.is_some(), self.class.is_some()]
            .into_iter()
            .filter(|explained| *explained)
            .count()
    }
}

/// Which settings of a thread a record explains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Explained {
    pub mask: bool,
    pub nice: bool,
    pub class: bool,
    /// How many of them we applied, in contrast to those that the thread had before.
    pub ours: usize,
}

impl Explained {
    /// Are all three explained?
    pub fn is_all(self) -> bool {
        self.mask && self.nice && self.class
    }

    /// How well the record explains the thread. What we applied says more than what many threads
    /// have anyway.
    pub fn weight(self) -> usize {
        let each = [self.mask, self.nice, self.class].map(usize::from).iter().sum::<usize>();
        if self.is_all() { usize::MAX } else { each + 3 * self.ours }
    }
}
