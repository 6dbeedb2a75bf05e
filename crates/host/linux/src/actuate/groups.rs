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
/// The reason, in words for a user.
pub fn share_one_group(keys: &BTreeMap<u32, GroupKey>) -> Result<(), String> {
    let mut pairs = keys.iter();
    let Some((first, key)) = pairs.next() else { return Ok(()) };
    match pairs.find(|(_, other)| *other != key) {
        None => Ok(()),
        Some((second, other)) => Err(format!(
            "processes {first} and {second} are in different scheduling groups ({} and {}): \
             nice values do not act between them; start the programs in one session \
             and one cgroup",
            name(key),
            name(other)
        )),
    }
}

fn name(key: &GroupKey) -> String {
    match key {
        GroupKey::Root => "the root group".to_owned(),
        GroupKey::Session(name) => format!("autogroup {}", name.trim_start_matches("autogroup-")),
        GroupKey::Cgroup(path) => format!("cgroup {path}"),
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
    fn nice_does_not_act_between_groups_and_the_reason_names_them() {
        let keys = [(1, session("autogroup-6")), (2, GroupKey::Cgroup("/batch".to_owned()))];
        let why = share_one_group(&keys.into()).unwrap_err();
        assert!(why.contains("processes 1 and 2"), "{why}");
        assert!(why.contains("autogroup 6 and cgroup /batch"), "{why}");
    }
}
