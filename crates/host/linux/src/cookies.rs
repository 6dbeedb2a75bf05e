//! Threads' core-scheduling cookies.
//!
//! # Problem
//! With core scheduling, Linux leaves a hardware thread idle rather than run there a thread whose cookie differs
//! from that of the thread on its sibling (prctl(2), `PR_SCHED_CORE`;
//! `Documentation/admin-guide/hw-vuln/core-scheduling.rst`). Whatever places threads must know their cookies.
//!
//! # Approach
//! A thread is asked for its cookie when it is first seen, and every few seconds after that; a child inherits its
//! parent's. Asking takes the right to trace the thread: a cookie that cannot be read counts as none. A kernel
//! without core scheduling (not built in, or older than 5.14) and a machine without SMT are asked once.
//!
//! # Properties
//! - A cookie that a thread gives itself is read (`a_cookie_is_read`), at birth and every few seconds, but not at
//!   each sample (`threads_are_asked_at_birth_and_every_few_seconds`).

use std::collections::BTreeMap;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::Pid;
use rustix::thread::{CoreSchedulingScope, core_scheduling_cookie};
use symbiont_machine::{Ability, CoreCookie, ThreadId, Timestamp};

/// How long a cookie is believed: cookies are given when a container, a session or a guest begins.
const AGAIN: Duration = Duration::from_secs(5);

/// Can cookies be read here?
#[must_use]
pub fn ability() -> Ability {
    match read(rustix::thread::gettid()) {
        Ok(_) => Ability::Full,
        Err(Errno::NODEV) => Ability::Absent("no core has several hardware threads".into()),
        Err(Errno::INVAL) => Ability::Absent(
            "the kernel is older than 5.14 or built without CONFIG_SCHED_CORE".into(),
        ),
        Err(error) => Ability::Absent(format!("prctl PR_SCHED_CORE: {error}")),
    }
}

fn read(thread: Pid) -> Result<Option<CoreCookie>, Errno> {
    core_scheduling_cookie(thread, CoreSchedulingScope::Thread).map(CoreCookie::new)
}

fn read_of(thread: ThreadId) -> Option<CoreCookie> {
    let number = i32::try_from(thread.thread).ok().and_then(Pid::from_raw)?;
    read(number).ok().flatten()
}

/// The cookies of the threads of a machine.
#[derive(Debug)]
pub(crate) struct Cookies {
    exist: bool,
    known: BTreeMap<ThreadId, Option<CoreCookie>>,
    asked: Timestamp,
}

impl Cookies {
    pub fn new() -> Self {
        let exist = ability().exists();
        Self { exist, known: BTreeMap::new(), asked: Timestamp::default() }
    }

    /// A sample begins: forgets what was read too long ago, and what was read of ended threads.
    pub fn begin(&mut self, at: Timestamp) {
        if self.exist && at.since(self.asked) >= AGAIN {
            self.asked = at;
            self.known.clear();
        }
    }

    /// The cookie of a thread; none if it has none, or if it cannot be read.
    pub fn of(&mut self, thread: ThreadId) -> Option<CoreCookie> {
        self.with(thread, read_of)
    }

    fn with(
        &mut self,
        thread: ThreadId,
        read: impl FnOnce(ThreadId) -> Option<CoreCookie>,
    ) -> Option<CoreCookie> {
        if !self.exist {
            return None;
        }
        *self.known.entry(thread).or_insert_with(|| read(thread))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(thread: u32) -> ThreadId {
        ThreadId { process: 1, thread, born: 0, generation: 0 }
    }

    #[test]
    fn threads_are_asked_at_birth_and_every_few_seconds() {
        let mut cookies =
            Cookies { exist: true, known: BTreeMap::new(), asked: Timestamp::default() };
        let mut asked = Vec::new();
        for second in 0..12 {
            cookies.begin(Timestamp(second * 1_000_000_000));
            let threads = if second < 2 { 1..2 } else { 1..3 };
            for thread in threads {
                let cookie = cookies.with(id(thread), |_| {
                    asked.push((second, thread));
                    CoreCookie::new(second)
                });
                assert_eq!(cookie.is_some(), second > 0 && (thread > 1 || second >= 5));
            }
        }
        assert_eq!(asked, [(0, 1), (2, 2), (5, 1), (5, 2), (10, 1), (10, 2)]);
    }

    #[test]
    fn where_there_are_none_no_thread_is_asked() {
        let mut cookies =
            Cookies { exist: false, known: BTreeMap::new(), asked: Timestamp::default() };
        cookies.begin(Timestamp(9_000_000_000));
        assert_eq!(cookies.with(id(1), |_| panic!("asked")), None);
    }

    /// A thread of its own, since a cookie stays.
    #[test]
    fn a_cookie_is_read() {
        if let Some(why) = ability().why() {
            eprintln!("skipped: {why}");
            return;
        }
        let own = std::thread::spawn(|| {
            let me = rustix::thread::gettid();
            let before = read(me).unwrap();
            rustix::thread::create_core_scheduling_cookie(me, CoreSchedulingScope::Thread).unwrap();
            (before, read(me).unwrap())
        });
        let (before, after) = own.join().unwrap();
        assert!(after.is_some() && after != before);
    }

    /// What this kernel says fits what it is: where it has none, nothing fails.
    #[test]
    fn an_unknown_cookie_is_none() {
        let mut cookies = Cookies::new();
        cookies.begin(Timestamp(0));
        assert_eq!(cookies.of(id(u32::MAX)), None);
    }
}
