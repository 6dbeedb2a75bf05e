//! The users that processes belong to, where user namespaces give processes other numbers.
//!
//! # Problem
//! State in a user's folder counts for that user's processes alone. In a rootless container processes
//! run as the user or as one of the user's subordinate uids.
//!
//! # Approach
//! The kernel says as what uid a process runs, seen from here. Only root can start a process as another uid, and
//! `newuidmap` does it for those ranges alone that `/etc/subuid` grants: so a uid within the range of one user is that
//! user's. A uid in ranges of several users, or of none, is its own. Ranges that a directory service grants are not
//! known: of such processes those count that run as the user, as the first process of a rootless container mostly does.
//!
//! # Properties
//! - Root's processes are no other user's, whatever the file grants (`root_is_subordinate_to_no_user`).

/// The user that a process belongs to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Owner {
    /// The user.
    pub uid: u32,
    /// The user's home, where there is one.
    pub home: Option<std::path::PathBuf>,
}

/// The ranges of subordinate uids.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Subordinates(Vec<Range>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Range {
    user: u32,
    first: u32,
    count: u32,
}

/// Ranges of a file that are looked at.
const MOST_RANGES: usize = 10_000;

impl Subordinates {
    /// The ranges of a text as `/etc/subuid`; `uid_of` finds users by their names.
    pub fn parse(text: &str, mut uid_of: impl FnMut(&str) -> Option<u32>) -> Self {
        let range = |line: &str| {
            let mut fields = line.trim().split(':');
            let (user, first, count) = (fields.next()?, fields.next()?, fields.next()?);
            let user = user.parse().ok().or_else(|| uid_of(user))?;
            Some(Range { user, first: first.parse().ok()?, count: count.parse().ok()? })
        };
        Self(text.lines().filter_map(range).take(MOST_RANGES).collect())
    }

    /// The user of a process that runs as this uid.
    #[must_use]
    pub fn user_of(&self, uid: u32) -> u32 {
        let has = |range: &&Range| uid.checked_sub(range.first).is_some_and(|at| at < range.count);
        let mut users = self.0.iter().filter(has).map(|range| range.user);
        match users.next() {
            Some(user) if uid != 0 && users.all(|other| other == user) => user,
            _ => uid,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str =
        "ann:100000:65536\n1001:165536:10\nbob:165540:3\n\n# note\nbad:x:1\nann:0:1000\n";

    fn ranges() -> Subordinates {
        Subordinates::parse(FILE, |name| {
            ["ann", "bob"].iter().position(|it| *it == name).map(|at| 1000 + 2 * at as u32)
        })
    }

    #[test]
    fn a_uid_within_one_users_range_is_that_users() {
        let ranges = ranges();
        let pairs =
            [(100_000, 1000), (165_535, 1000), (165_536, 1001), (165_546, 165_546), (1000, 1000)];
        for (uid, user) in pairs {
            assert_eq!(ranges.user_of(uid), user, "{uid}");
        }
        assert_eq!(ranges.user_of(165_541), 165_541, "two users claim it");
    }

    #[test]
    fn root_is_subordinate_to_no_user() {
        assert_eq!(ranges().user_of(0), 0);
    }
}
