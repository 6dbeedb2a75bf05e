//! Which users may manage what.

use std::fmt;

use symbiont_wire::Failure;

/// The user id of root.
pub const ROOT: u32 = 0;

/// The user at the other end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Peer {
    /// Effective user id when it connected.
    pub uid: u32,
    /// Its process then; for messages only, the number may be used again.
    pub pid: u32,
}

/// The user that a process belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// The user that started it.
    pub real: u32,
    /// The user whose rights it has.
    pub effective: u32,
}

impl Peer {
    /// May this peer see all programs, and change any?
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.uid == ROOT
    }

    /// May this peer specify the user that a process will run as?
    ///
    /// # Errors
    /// When it is not root, and says another user than itself.
    pub fn may_state(&self, user: Option<u32>) -> Result<(), Failure> {
        match user {
            Some(user) if !self.is_root() && user != self.uid => {
                let reason = format!("only root may enrol for user {user}");
                Err(Failure::NotPermitted { reason })
            }
            _ => Ok(()),
        }
    }

    /// May this peer have a process of this owner managed?
    ///
    /// # Errors
    /// [`Failure::NotPermitted`] with the reason.
    pub fn may_manage(&self, process: u32, owner: Owner) -> Result<(), Failure> {
        if self.is_root() || owner.is(self.uid) {
            return Ok(());
        }
        let reason = format!("process {process} {owner}, and you are user {}", self.uid);
        Err(Failure::NotPermitted { reason })
    }

    /// May this peer see what is managed for a user?
    #[must_use]
    pub fn may_see(&self, uid: u32) -> bool {
        self.is_root() || self.uid == uid
    }
}

impl Owner {
    /// Is it this user, and with this user's rights?
    #[must_use]
    pub fn is(&self, uid: u32) -> bool {
        self.real == uid && self.effective == uid
    }

    /// The user whose all of them are; root where there are several.
    #[must_use]
    pub fn of_all(owners: &[Self]) -> u32 {
        match owners {
            [first, ..] if owners.iter().all(|owner| owner.is(first.real)) => first.real,
            _ => ROOT,
        }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.real == self.effective {
            true => write!(f, "belongs to user {}", self.real),
            false => write!(f, "runs with the rights of user {}", self.effective),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_root_may_say_that_a_process_will_run_as_another_user() {
        let may = |uid, user| Peer { uid, pid: 9 }.may_state(user).is_ok();
        assert!(may(ROOT, Some(1000)) && may(1000, Some(1000)) && may(1000, None));
        assert!(!may(1000, Some(1001)) && !may(1000, Some(ROOT)));
    }

    #[test]
    fn only_the_owner_and_root_may_manage() {
        let may = |uid, real, effective| {
            Peer { uid, pid: 9 }.may_manage(7, Owner { real, effective }).is_ok()
        };
        assert!(may(1000, 1000, 1000));
        assert!(may(0, 1000, 1000) && may(0, 1000, 0));
        assert!(!may(1000, 1001, 1001), "another user's process");
        assert!(!may(1000, 1000, 0), "a setuid program that the user started");
        assert!(!may(1000, 0, 1000), "a process of root that took on the user's rights");
    }

    #[test]
    fn what_is_several_users_is_roots() {
        let owner = |real, effective| Owner { real, effective };
        let of_all = |owners: &[(u32, u32)]| {
            Owner::of_all(&owners.iter().map(|(r, e)| owner(*r, *e)).collect::<Vec<_>>())
        };
        assert_eq!(of_all(&[(1000, 1000), (1000, 1000)]), 1000);
        assert_eq!(of_all(&[(1000, 1000), (1001, 1001)]), ROOT);
        assert_eq!(of_all(&[(1000, 0)]), ROOT);
        assert_eq!(of_all(&[]), ROOT);
    }

    #[test]
    fn a_refusal_says_whose_the_process_is() {
        let refused = |real, effective| {
            let peer = Peer { uid: 1000, pid: 9 };
            peer.may_manage(7, Owner { real, effective }).unwrap_err().to_string()
        };
        assert_eq!(
            refused(0, 0),
            "not permitted: process 7 belongs to user 0, and you are user 1000"
        );
        assert!(refused(1000, 0).contains("runs with the rights of user 0"));
    }
}
