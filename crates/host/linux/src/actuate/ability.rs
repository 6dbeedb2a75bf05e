//! What this process may do to the threads of its user, and can undo.
//!
//! Raising a thread's priority takes `CAP_SYS_NICE` in the first user namespace, or a high enough `RLIMIT_NICE`
//! of the thread's process; lowering it again is always allowed. With `SCHED_IDLE` it is the other way round: any
//! user may enter it, but leaving it takes the privilege. So for `SCHED_IDLE` the privilege is checked before a
//! thread enters it: what could not be undone is not done.

use std::fs;

use procfs::FromRead;
use procfs::process::{LimitValue, Limits};
use rustix::process::{Resource, getrlimit};
use rustix::thread::{CapabilitySet, capabilities};
use symbiont_machine::Ability;

use super::groups::Grouping;
use super::scheduler::{no_priority_under, placing_under};

/// The most urgent nice value.
pub const MOST_URGENT: i8 = -20;

/// Priority rights of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Privilege {
    /// May set any priority of any thread.
    capable: bool,
    /// The most urgent nice value that its `RLIMIT_NICE` grants.
    floor: i8,
    /// May it place any thread, even one that comes to belong to another user?
    places_all: bool,
}

impl Privilege {
    /// No right but those of every user.
    pub(super) const NONE: Self = Self { capable: false, floor: 19, places_all: false };

    /// The rights that this process has now.
    #[must_use]
    pub fn current() -> Self {
        // Rights within a user namespace of one's own do not count for priorities.
        let first_namespace = fs::read_to_string("/proc/self/uid_map")
            .is_ok_and(|map| map.split_whitespace().eq(["0", "0", "4294967295"]));
        // For affinities they do: threads that it sees are in its namespace or one inside.
        let places_all =
            capabilities(None).is_ok_and(|c| c.effective.contains(CapabilitySet::SYS_NICE));
        let capable = first_namespace && places_all;
        Self { capable, floor: floor(getrlimit(Resource::Nice).current), places_all }
    }

    /// May it place any thread, even one that comes to belong to another user?
    #[must_use]
    pub fn may_place_all(&self) -> bool {
        self.places_all
    }

    /// All rights, over a simulated kernel.
    #[cfg(any(test, fuzzing))]
    pub(super) fn all() -> Self {
        Self { capable: true, floor: MOST_URGENT, places_all: true }
    }

    /// The most urgent nice value that it may give to threads of this process.
    #[must_use]
    pub fn most_urgent(&self, process: u32) -> i8 {
        if self.capable { MOST_URGENT } else { floor_of(process).unwrap_or(self.floor) }
    }

    /// Could a thread with this nice value leave `SCHED_IDLE` again?
    #[must_use]
    pub fn can_end_idle_class(&self, process: u32, nice: i8) -> bool {
        self.capable || floor_of(process).is_some_and(|floor| floor <= nice)
    }
}

/// The most urgent nice value under a limit, which counts from 20 (nice 0) to 40.
fn floor(limit: Option<u64>) -> i8 {
    let levels = limit.unwrap_or(u64::MAX).min(40);
    i8::try_from(levels).map_or(MOST_URGENT, |levels| (20 - levels).min(19))
}

fn floor_of(process: u32) -> Option<i8> {
    let limits = Limits::from_file(format!("/proc/{process}/limits")).ok()?;
    Some(match limits.max_nice_priority.soft_limit {
        LimitValue::Unlimited => MOST_URGENT,
        LimitValue::Value(limit) => floor(Some(limit)),
    })
}

/// What can be changed and restored here, and why not more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Abilities {
    /// Keeping threads on chosen hardware threads.
    pub affinity: Ability,
    /// Making a thread more urgent.
    pub boost: Ability,
    /// Making a thread run only when no other thread is ready.
    pub idle_class: Ability,
}

impl Abilities {
    /// The abilities that follow from the number of hardware threads online, these rights, the way in which the
    /// host groups processes for scheduling, and the loaded `sched_ext` scheduler, if any.
    #[must_use]
    pub fn new(
        online: usize,
        privilege: Privilege,
        grouping: Grouping,
        scheduler: Option<&str>,
    ) -> Self {
        let all = Self {
            affinity: affinity_ability(online),
            boost: boost_ability(privilege, grouping),
            idle_class: idle_class_ability(privilege, grouping),
        };
        let Some(name) = scheduler else { return all };
        let unheeded = Ability::Absent(no_priority_under(name));
        Self {
            affinity: placing_under(name, all.affinity),
            boost: unheeded.clone(),
            idle_class: unheeded,
        }
    }
}

/// Can threads be kept on chosen hardware threads? Always, for threads of
/// the same user; `CAP_SYS_NICE` adds those of others.
#[must_use]
fn affinity_ability(online: usize) -> Ability {
    match online {
        0 | 1 => Ability::Absent("only one hardware thread is online".to_owned()),
        _ => Ability::Full,
    }
}

/// Can a thread be made more urgent than the others, and be restored?
#[must_use]
pub fn boost_ability(privilege: Privilege, grouping: Grouping) -> Ability {
    match privilege {
        Privilege { capable: true, .. } => between(grouping),
        Privilege { floor, .. } if floor < 0 => Ability::Partial(format!(
            "RLIMIT_NICE allows nice values down to {floor} only{}",
            between(grouping).why().map(|why| format!("; {why}")).unwrap_or_default()
        )),
        Privilege { .. } => Ability::Absent(
            "raising priority needs CAP_SYS_NICE, or 'nice -10' for your user in limits.conf"
                .to_owned(),
        ),
    }
}

/// Can a thread be made to run only when no other thread is ready, and be restored?
#[must_use]
fn idle_class_ability(privilege: Privilege, grouping: Grouping) -> Ability {
    match privilege {
        Privilege { capable: true, .. } => between(grouping),
        Privilege { floor, .. } if floor <= 0 => Ability::Partial(format!(
            "only threads of nice value {floor} and above could be restored (RLIMIT_NICE){}",
            between(grouping).why().map(|why| format!("; {why}")).unwrap_or_default()
        )),
        Privilege { .. } => Ability::Absent(
            "a thread could not be taken out of SCHED_IDLE again without CAP_SYS_NICE or \
             RLIMIT_NICE of at least 20 (limits.conf: 'nice 0' for your user)"
                .to_owned(),
        ),
    }
}

fn between(grouping: Grouping) -> Ability {
    let groups = match grouping {
        Grouping::None => return Ability::Full,
        Grouping::BySession => "session (autogroup) and cgroup",
        Grouping::ByCgroup => "cgroup with the CPU controller",
    };
    Ability::Partial(format!("priorities act only between programs of one {groups}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORDINARY: Privilege = Privilege::NONE;
    const ROOT: Privilege = Privilege { capable: true, floor: 19, places_all: true };

    #[test]
    fn an_ordinary_user_cannot_boost_and_the_message_names_the_remedy() {
        let why = boost_ability(ORDINARY, Grouping::None).why().unwrap().to_owned();
        assert!(why.contains("CAP_SYS_NICE") && why.contains("limits.conf"), "{why}");
        assert!(!idle_class_ability(ORDINARY, Grouping::None).exists());
    }

    #[test]
    fn a_capable_process_is_held_back_by_groups_only() {
        let root = ROOT;
        assert_eq!(boost_ability(root, Grouping::None), Ability::Full);
        assert!(matches!(boost_ability(root, Grouping::BySession), Ability::Partial(_)));
    }

    #[test]
    fn no_priority_is_promised_under_a_scheduler_that_was_loaded() {
        let root = ROOT;
        let usual = Abilities::new(4, root, Grouping::None, None);
        assert_eq!((usual.affinity, usual.boost), (Ability::Full, Ability::Full));
        let under = Abilities::new(4, root, Grouping::None, Some("rusty"));
        assert!(under.affinity.exists() && under.affinity != Ability::Full);
        assert!(under.boost.why().unwrap().contains("rusty"));
        assert!(!under.boost.exists() && !under.idle_class.exists());
    }

    #[test]
    fn the_limit_counts_from_twenty() {
        assert_eq!(floor(Some(0)), 19);
        assert_eq!(floor(Some(20)), 0);
        assert_eq!(floor(Some(30)), -10);
        assert_eq!(floor(None), -20);
        let limited = Privilege { floor: -10, ..ORDINARY };
        assert!(boost_ability(limited, Grouping::None).why().unwrap().contains("-10"));
        assert!(idle_class_ability(limited, Grouping::None).exists());
    }

    #[test]
    fn one_hardware_thread_leaves_nothing_to_choose() {
        assert!(!affinity_ability(1).exists());
        assert_eq!(affinity_ability(2), Ability::Full);
    }
}
