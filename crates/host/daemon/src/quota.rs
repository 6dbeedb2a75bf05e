//! How much of what all users share one user may have.

use std::collections::BTreeMap;

use symbiont_wire::Failure;

/// Connections at a time, for each user.
pub const CLIENTS: u64 = 64;
/// Programs at a time, for each user.
pub const PROGRAMS: u64 = 1024;
/// Threads at a time, for each user: beyond, no further program is taken.
pub const THREADS: u64 = 32_768;
/// Descriptors with one message; also the kernel's own bound is 253.
pub const DESCRIPTORS: usize = 64;

/// Counts of something that is shared, by user.
#[derive(Debug)]
pub struct Quota {
    what: &'static str,
    limit: u64,
    held: BTreeMap<u32, u64>,
}

impl Quota {
    /// No user holds any yet. Root has no limit.
    #[must_use]
    pub fn new(what: &'static str, limit: u64) -> Self {
        Self { what, limit, held: BTreeMap::new() }
    }

    /// Takes one for a user.
    ///
    /// # Errors
    /// [`Failure::QuotaExceeded`] when the user has as many as allowed.
    pub fn take(&mut self, uid: u32) -> Result<(), Failure> {
        let held = self.held.entry(uid).or_default();
        if uid != 0 && *held >= self.limit {
            return Err(Failure::QuotaExceeded { what: self.what.to_owned(), limit: self.limit });
        }
        *held += 1;
        Ok(())
    }

    /// Gives one back.
    pub fn give_back(&mut self, uid: u32) {
        if let Some(held) = self.held.get_mut(&uid) {
            *held = held.saturating_sub(1);
            if *held == 0 {
                self.held.remove(&uid);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_count_for_each_user() {
        let mut quota = Quota::new("programs", 2);
        assert!(quota.take(1000).is_ok() && quota.take(1000).is_ok());
        let refused = quota.take(1000).unwrap_err();
        assert_eq!(refused.to_string(), "too many programs: a user may have 2");
        assert!(quota.take(1001).is_ok(), "another user has a share of its own");
        assert!((0..10).all(|_| quota.take(0).is_ok()), "root has no limit");
        quota.give_back(1000);
        assert!(quota.take(1000).is_ok());
        for uid in [1000, 1000, 1001, 1002] {
            quota.give_back(uid);
        }
        (0..10).for_each(|_| quota.give_back(0));
        assert!(quota.held.is_empty(), "nothing is kept of users that have nothing");
    }
}
