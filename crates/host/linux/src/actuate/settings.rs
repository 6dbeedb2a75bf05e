//! What a thread had before us, what of ours is applied, and the question on which all else depends: is what the
//! kernel shows now still ours?

use serde::{Deserialize, Serialize};
use symbiont_topology::{CpuSet, ParseCpuSetError};

use super::thread::Class;

/// The highest nice value.
const LEAST_URGENT: i8 = 19;

/// A mask to restore.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) enum Mask {
    /// Whatever the cpuset allows, also after it grew: restored as all ones.
    All,
    /// Just these, as a user chose.
    Cpus(CpuSet),
}

impl Mask {
    /// How to save a mask: one that equals the cpuset's was not chosen.
    #[must_use]
    pub fn classify(mask: CpuSet, cpuset: &CpuSet) -> Self {
        if mask == *cpuset { Self::All } else { Self::Cpus(mask) }
    }

    /// The hardware threads that it stands for within a cpuset. If none is
    /// left of a chosen mask, the kernel gives the whole cpuset; so do we.
    #[must_use]
    pub fn within(&self, cpuset: &CpuSet) -> CpuSet {
        match self {
            Self::All => cpuset.clone(),
            Self::Cpus(cpus) => {
                let left = cpus.intersection(cpuset);
                if left.is_empty() { cpuset.clone() } else { left }
            }
        }
    }

    /// What to hand to the kernel; `None` is all ones.
    #[must_use]
    pub fn to_write(&self, cpuset: &CpuSet) -> Option<&CpuSet> {
        match self {
            Self::Cpus(cpus) if !cpus.is_disjoint(cpuset) => Some(cpus),
            _ => None,
        }
    }
}

impl TryFrom<String> for Mask {
    type Error = ParseCpuSetError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        if text == "all" { Ok(Self::All) } else { text.parse().map(Self::Cpus) }
    }
}

impl From<Mask> for String {
    fn from(mask: Mask) -> Self {
        match mask {
            Mask::All => "all".to_owned(),
            Mask::Cpus(cpus) => cpus.to_string(),
        }
    }
}

/// What a thread had before we changed anything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Saved {
    /// Its mask.
    pub mask: Mask,
    /// Its nice value, −20 (most urgent) to 19.
    pub nice: i8,
    /// Its class.
    pub class: Class,
    /// Do its children fall back to the usual class and nice value?
    pub reset_on_fork: bool,
}

/// What of ours is applied on a thread; the default is nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "WrittenSettings", into = "WrittenSettings")]
pub(super) struct AppliedSettings {
    /// The mask that we set.
    pub mask: Option<CpuSet>,
    /// The nice value that we set.
    pub nice: Option<i8>,
    /// The class that we set: the idle one, or that of `sched_ext`.
    pub class: Option<Class>,
}

/// The same as journals have it, also those of managers that knew the idle class only.
#[derive(Serialize, Deserialize)]
struct WrittenSettings {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mask: Option<CpuSet>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    nice: Option<i8>,
    #[serde(rename = "waiting", default, skip_serializing_if = "std::ops::Not::not")]
    idle: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    ext: bool,
}

impl From<WrittenSettings> for AppliedSettings {
    fn from(WrittenSettings { mask, nice, idle, ext }: WrittenSettings) -> Self {
        let class = if ext { Some(Class::Ext) } else { idle.then_some(Class::Idle) };
        Self { mask, nice, class }
    }
}

impl From<AppliedSettings> for WrittenSettings {
    fn from(AppliedSettings { mask, nice, class }: AppliedSettings) -> Self {
        let is = |wanted| class == Some(wanted);
        Self { mask, nice, idle: is(Class::Idle), ext: is(Class::Ext) }
    }
}

impl AppliedSettings {
    /// Is anything of ours applied?
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// Does the mask that the kernel shows now come from the one that we `set`?
///
/// The kernel narrows masks to the cpuset, and gives the whole cpuset when
/// nothing would be left (before Linux 6.2 on every change of the cpuset). So
/// the whole cpuset is no sign of a foreign hand where that is what the thread
/// had anyway: saying so wrongly would change nothing. No process can choose an empty mask: that is
/// what a sleeping thread shows whose CPUs are all offline, until it wakes.
#[must_use]
pub(super) fn comes_from(now: &CpuSet, set: &CpuSet, saved: &Mask, cpuset: &CpuSet) -> bool {
    let left = set.intersection(cpuset);
    now == set
        || now.is_empty()
        || (!left.is_empty() && *now == left)
        || (now == cpuset && (left.is_empty() || *saved == Mask::All))
}

/// The nice value that a thread has chosen, if the kernel shows `now`, which is not ours.
///
/// Programs count theirs from what they have (nice(2), `nice -n`). So one between ours and what it
/// had before is counted from what it had: without the right to it its user could not have chosen it, and with it
/// hardly would. Any other one was chosen as it is.
#[must_use]
pub(super) fn chosen_nice(saved: i8, ours: Option<i8>, now: i8) -> i8 {
    match ours {
        Some(ours) if ours < now && now < saved => {
            saved.saturating_add(now - ours).min(LEAST_URGENT)
        }
        _ => now,
    }
}

/// Is the mask that the kernel shows now the saved one?
#[must_use]
pub(super) fn is_saved(now: &CpuSet, saved: &Mask, cpuset: &CpuSet) -> bool {
    match saved {
        Mask::All => now == cpuset,
        Mask::Cpus(cpus) => comes_from(now, cpus, saved, cpuset),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use symbiont_topology::PuId;

    use super::*;

    fn set(text: &str) -> CpuSet {
        text.parse().unwrap()
    }

    fn any_set() -> impl Strategy<Value = CpuSet> {
        prop::collection::btree_set(0u32..6, 1..6)
            .prop_map(|members| members.into_iter().map(PuId).collect())
    }

    #[test]
    fn a_mask_equal_to_the_cpuset_is_saved_as_all() {
        assert_eq!(Mask::classify(set("0-3"), &set("0-3")), Mask::All);
        assert_eq!(Mask::classify(set("1"), &set("0-3")), Mask::Cpus(set("1")));
        assert_eq!(serde_json::to_string(&Mask::All).unwrap(), "\"all\"");
        assert_eq!(serde_json::from_str::<Mask>("\"1\"").unwrap(), Mask::Cpus(set("1")));
    }

    #[test]
    fn a_cpuset_that_shrank_is_no_foreign_hand() {
        assert!(comes_from(&set("1"), &set("0-1"), &Mask::All, &set("1-3")));
        assert!(comes_from(&set("1-3"), &set("0"), &Mask::All, &set("1-3")));
        assert!(comes_from(&set("1-3"), &set("0"), &Mask::Cpus(set("0")), &set("1-3")));
    }

    #[test]
    fn a_sleeping_thread_of_offline_cpus_was_changed_by_no_process() {
        let nothing = CpuSet::new();
        for saved in [Mask::All, Mask::Cpus(set("0,2"))] {
            assert!(comes_from(&nothing, &set("2"), &saved, &set("0-1,3")));
        }
        assert!(is_saved(&nothing, &Mask::Cpus(set("2")), &set("0-1,3")));
    }

    #[test]
    fn a_nice_value_is_counted_from_what_the_thread_had() {
        // nice(1), nice(5) of one that we boosted to -8.
        assert_eq!([-7, -3].map(|now| chosen_nice(0, Some(-8), now)), [1, 5]);
        assert_eq!(chosen_nice(15, Some(5), 14), 19);
        // Set as they are: above, below, and where nothing of ours is.
        assert_eq!([0, 10, -20].map(|now| chosen_nice(0, Some(-8), now)), [0, 10, -20]);
        assert_eq!(chosen_nice(0, None, -3), -3);
    }

    #[test]
    fn what_is_applied_is_written_as_ever_and_read_back() {
        let written = [(Class::Idle, r#"{"waiting":true}"#), (Class::Ext, r#"{"ext":true}"#)];
        for (class, text) in written {
            let applied = AppliedSettings { class: Some(class), ..AppliedSettings::default() };
            assert_eq!(serde_json::to_string(&applied).unwrap(), text);
            assert_eq!(serde_json::from_str::<AppliedSettings>(text).unwrap(), applied);
        }
        assert!(serde_json::from_str::<AppliedSettings>("{}").unwrap().is_nothing());
    }

    #[test]
    fn a_widened_chosen_mask_is_a_foreign_hand() {
        assert!(!comes_from(&set("0-3"), &set("1"), &Mask::Cpus(set("1-2")), &set("0-3")));
        assert!(!comes_from(&set("2"), &set("1"), &Mask::All, &set("0-3")));
    }

    proptest! {
        #[test]
        fn what_the_kernel_makes_of_a_mask_comes_from_it(m in any_set(), cpuset in any_set(), saved in any_set()) {
            let left = m.intersection(&cpuset);
            let kernel = if left.is_empty() { cpuset.clone() } else { left };
            prop_assert!(comes_from(&kernel, &m, &Mask::Cpus(saved), &cpuset));
            prop_assert!(is_saved(&kernel, &Mask::Cpus(m), &cpuset));
        }

        #[test]
        fn a_saved_mask_never_reaches_beyond_the_cpuset(m in any_set(), cpuset in any_set()) {
            prop_assert!(Mask::Cpus(m).within(&cpuset).is_subset(&cpuset));
        }
    }
}
