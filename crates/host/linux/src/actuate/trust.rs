//! What root may do on the word of another user's journal.
//!
//! # Problem
//! A setuid program keeps the mask that it inherited, and only root can give it back its own: from the journal of
//! the user that managed it. But that user may have written anything into it.
//!
//! # Approach
//! To threads of that user (by real or effective user) root does only what the user could do. Of any other thread
//! it changes the mask alone, only widens it, and only if the thread descends from the user's: by a parent, by
//! the leader of its session or group, by its login (audit's `loginuid`), or by the user's slice (systemd). No
//! mask reaches beyond a cpuset: the kernel sees to that.
//!
//! # What remains
//! A user that can make a thread number pass from one of his threads to another's within microseconds could have
//! that thread's mask changed.

use std::fs;
use std::io;

use symbiont_topology::CpuSet;

use super::ability::Privilege;
use super::inheritance::Repair;
use super::syscalls;
use super::thread::Present;
use super::thread::{Class, ThreadError, ThreadKey};

/// More ancestors than any process has.
const MOST_ANCESTORS: usize = 4096;

/// Whose journal it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trust {
    /// This process's own user's.
    Own,
    /// Another user's.
    Of(u32),
}

impl Trust {
    /// May this repair be made?
    ///
    /// # Errors
    /// The reason why not.
    pub fn check(
        self,
        key: ThreadKey,
        now: &Present,
        repair: &Repair,
        cpuset: &CpuSet,
    ) -> Result<(), ThreadError> {
        let Self::Of(owner) = self else { return Ok(()) };
        let why = if users_of(key).is_some_and(|users| users.contains(&owner)) {
            own_thread(key, now, repair)
        } else {
            others_thread(key, owner, now, repair, cpuset)
        };
        let Err(why) = why else { return Ok(()) };
        let source = io::Error::new(io::ErrorKind::PermissionDenied, why);
        Err(ThreadError::Kernel { what: "restore settings", thread: key.thread, source })
    }
}

/// Real and effective user of a thread.
fn users_of(key: ThreadKey) -> Option<[u32; 2]> {
    let ThreadKey { process, thread, .. } = key;
    let status = fs::read_to_string(format!("/proc/{process}/task/{thread}/status")).ok()?;
    let mut users = status.lines().find_map(|line| line.strip_prefix("Uid:"))?.split_whitespace();
    Some([users.next()?.parse().ok()?, users.next()?.parse().ok()?])
}

/// What the user may do to a thread of the user's.
fn own_thread(key: ThreadKey, now: &Present, repair: &Repair) -> Result<(), String> {
    let user = Privilege::NONE;
    let nice = repair.nice.unwrap_or(now.nice);
    if nice < now.nice && user.most_urgent(key.process) > nice {
        return Err(format!("its user may not give it the nice value {nice}"));
    }
    if repair.class.is_some()
        && now.class == Class::Idle
        && !user.can_end_idle_class(key.process, nice)
    {
        return Err("its user may not change its scheduling class".to_owned());
    }
    Ok(())
}

/// What may be done to a thread that became another user's.
fn others_thread(
    key: ThreadKey,
    owner: u32,
    now: &Present,
    repair: &Repair,
    cpuset: &CpuSet,
) -> Result<(), String> {
    if !descends_from(key.process, owner) {
        return Err(format!("it is not known to descend from threads of user {owner}"));
    }
    if repair.nice.is_some() || repair.class.is_some() {
        return Err(format!("user {owner} may not change its priority"));
    }
    if repair.mask.as_ref().is_some_and(|mask| !now.mask.is_subset(&mask.within(cpuset))) {
        return Err(format!("user {owner} may not narrow its affinity"));
    }
    Ok(())
}

fn descends_from(process: u32, owner: u32) -> bool {
    let is_owners = |process: u32| {
        let leader = ThreadKey { process, thread: process, born: 0 };
        process != 0 && users_of(leader).is_some_and(|[real, _]| real == owner)
    };
    let login = fs::read_to_string(format!("/proc/{process}/loginuid")).ok();
    let cgroup = fs::read_to_string(format!("/proc/{process}/cgroup")).unwrap_or_default();
    if login.and_then(|login| login.trim().parse().ok()) == Some(owner)
        || is_in_slice_of(owner, &cgroup)
    {
        return true;
    }
    let mut at = process;
    for _ in 0..MOST_ANCESTORS {
        let Ok(Some(facts)) = syscalls::facts(at, at) else { return false };
        if [facts.parent, facts.session, facts.group].into_iter().any(is_owners) {
            return true;
        }
        if facts.parent == 0 {
            return false;
        }
        at = facts.parent;
    }
    false
}

fn is_in_slice_of(owner: u32, cgroup: &str) -> bool {
    let slice = format!("user-{owner}.slice");
    cgroup.lines().flat_map(|line| line.split('/')).any(|part| part == slice)
}

#[cfg(test)]
mod tests {
    use super::super::settings::Mask;
    use super::super::thread::Class;
    use super::*;

    fn set(text: &str) -> CpuSet {
        text.parse().unwrap()
    }

    fn this_thread() -> (ThreadKey, Present) {
        let me = std::process::id();
        let key = syscalls::facts(me, me).unwrap().unwrap().key;
        let now = Present {
            parent: 1,
            mask: set("1"),
            nice: 5,
            class: Class::Idle,
            reset_on_fork: false,
            on: None,
        };
        (key, now)
    }

    fn check(trust: Trust, repair: &Repair) -> Result<(), ThreadError> {
        let (key, now) = this_thread();
        trust.check(key, &now, repair, &set("0-3"))
    }

    fn mask(text: &str) -> Repair {
        Repair { mask: Some(Mask::Cpus(set(text))), ..Repair::default() }
    }

    #[test]
    fn what_the_user_may_do_is_done_to_the_users_own_threads() {
        let own = Trust::Of(rustix::process::getuid().as_raw());
        check(own, &mask("2")).unwrap();
        check(own, &Repair { nice: Some(10), ..Repair::default() }).unwrap();
        check(Trust::Own, &Repair { nice: Some(-20), ..Repair::default() }).unwrap();
    }

    #[test]
    fn a_thread_is_not_made_more_urgent_than_its_user_may_make_it() {
        let own = Trust::Of(rustix::process::getuid().as_raw());
        if Privilege::NONE.most_urgent(std::process::id()) <= -20 {
            return;
        }
        let error = check(own, &Repair { nice: Some(-20), ..Repair::default() }).unwrap_err();
        assert!(error.to_string().contains("nice value -20"), "{error}");
    }

    #[test]
    fn threads_that_do_not_descend_from_the_user_are_left_alone() {
        let error = check(Trust::Of(4_000_000_000), &mask("0-3")).unwrap_err();
        assert!(error.to_string().contains("user 4000000000"), "{error}");
    }

    #[test]
    fn a_descendant_of_another_user_is_only_widened() {
        let (key, now) = this_thread();
        let owner = rustix::process::getuid().as_raw();
        let try_it = |repair: &Repair| others_thread(key, owner, &now, repair, &set("0-3"));
        try_it(&mask("0-1")).unwrap();
        try_it(&Repair { mask: Some(Mask::All), ..Repair::default() }).unwrap();
        assert!(try_it(&mask("2")).unwrap_err().contains("narrow"));
        assert!(try_it(&Repair { nice: Some(19), ..Repair::default() }).is_err());
        assert!(try_it(&Repair { class: Some(Class::Other), ..Repair::default() }).is_err());
    }

    #[test]
    fn a_slice_is_known_by_its_whole_name() {
        let cgroup = "0::/user.slice/user-1000.slice/session-3.scope\n";
        assert!(is_in_slice_of(1000, cgroup));
        assert!(!is_in_slice_of(100, cgroup) && !is_in_slice_of(0, cgroup));
    }
}
