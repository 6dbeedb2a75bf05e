//! Between which threads a nice value acts: only those of one scheduling group. A group is a cgroup that the CPU
//! controller weighs; within the root cgroup it is a session, where autogroups are on (`sched(7)`, "The autogroup
//! feature").

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The scheduling group in which a process competes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GroupKey {
    /// The machine's one group.
    Root,
    /// The autogroup of a session, by the kernel's name for it.
    Session(String),
    /// A cgroup that the CPU controller weighs, by its path.
    Cgroup(String),
}

/// How a host makes scheduling groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grouping {
    /// It makes none: nice values act between all.
    None,
    /// A session each, and a weighed cgroup each.
    BySession,
    /// A weighed cgroup each.
    ByCgroup,
}

/// Does a nice value act between all these processes? If not, why.
///
/// # Errors
/// The reason, in words for a user. It names no group, since reasons are counted by their text and may be read by
/// others.
pub fn share_one_group(keys: &BTreeMap<u32, GroupKey>) -> Result<(), String> {
    let mut keys = keys.values();
    let Some(first) = keys.next() else { return Ok(()) };
    match keys.find(|other| *other != first) {
        None => Ok(()),
        Some(other) => Err(format!(
            "the programs that compete are in different scheduling groups ({}): nice values and the idle class \
             act only within one",
            sorts(first, other)
        )),
    }
}

/// What two different groups are.
fn sorts(one: &GroupKey, other: &GroupKey) -> &'static str {
    match (one, other) {
        (GroupKey::Cgroup(_), GroupKey::Cgroup(_)) => "two cgroups",
        (GroupKey::Session(_), GroupKey::Session(_)) => "the autogroups of two sessions",
        (GroupKey::Cgroup(_), _) | (_, GroupKey::Cgroup(_)) => "one is a cgroup",
        _ => "one is the autogroup of a session",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(name: &str) -> GroupKey {
        GroupKey::Session(name.to_owned())
    }

    #[test]
    fn nice_acts_within_one_session() {
        assert!(share_one_group(&BTreeMap::new()).is_ok());
        let keys = [(1, session("autogroup-6")), (2, session("autogroup-6"))];
        assert!(share_one_group(&keys.into()).is_ok());
    }

    #[test]
    fn nice_does_not_act_between_groups_and_the_reason_has_no_numbers() {
        let cgroup = |path: &str| GroupKey::Cgroup(path.to_owned());
        let why = |one: GroupKey, other: GroupKey| {
            share_one_group(&[(21870, one), (26996, other)].into()).unwrap_err()
        };
        let reasons = [
            (why(session("autogroup-6"), cgroup("/batch")), "(one is a cgroup)"),
            (why(cgroup("/web"), cgroup("/batch")), "(two cgroups)"),
            (why(session("autogroup-6"), session("autogroup-7")), "autogroups of two sessions"),
            (why(GroupKey::Root, session("autogroup-7")), "the autogroup of a session"),
        ];
        for (why, part) in reasons {
            assert!(why.contains(part), "{why}");
            assert!(!why.contains(|c: char| c.is_ascii_digit()) && !why.contains('/'), "{why}");
        }
    }
}
