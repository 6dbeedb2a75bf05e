//! Which users may count what.

use std::fs::{self, File};
use std::process::{Command, Stdio};

use rustix::fs::{FlockOperation, flock};
use rustix::process::{Gid, Uid, geteuid};
use rustix::thread::{set_thread_gid, set_thread_res_gid, set_thread_res_uid};
use symbiont_linux::perf::{Group, OpenError, Reason, Spec, Support, paranoid_level, support};

use crate::support::skip;

const LEVEL: &str = "/proc/sys/kernel/perf_event_paranoid";
const UNPRIVILEGED: u32 = 65534;

/// Puts the level back at the end.
struct Restore(String);

impl Drop for Restore {
    fn drop(&mut self) {
        fs::write(LEVEL, &self.0).unwrap();
    }
}

/// What an ordinary user's thread finds, also about a thread of root's.
fn as_unprivileged(target: u32) -> (Support, Result<(), OpenError>) {
    let thread = std::thread::spawn(move || {
        let (user, group) = (Uid::from_raw(UNPRIVILEGED), Gid::from_raw(UNPRIVILEGED));
        set_thread_gid(group).unwrap();
        set_thread_res_gid(group, group, group).unwrap();
        set_thread_res_uid(user, user, user).unwrap();
        let found = support();
        let foreign = Group::open(target, &[Spec::page_faults()], found.options()).map(drop);
        (found, foreign)
    });
    thread.join().unwrap()
}

#[test]
fn each_paranoid_level_says_what_it_allows() {
    if !geteuid().is_root() {
        return skip("only root may set kernel.perf_event_paranoid");
    }
    let Ok(file) = File::open(LEVEL) else { return skip("no perf events here") };
    // The level is the whole machine's: one test of this kind at a time.
    flock(&file, FlockOperation::LockExclusive).unwrap();
    let before = fs::read_to_string(LEVEL).unwrap();
    let restore = Restore(before);
    if fs::write(LEVEL, &restore.0).is_err() {
        return skip("kernel.perf_event_paranoid cannot be written here");
    }
    // Ends with its input, however this test ends.
    let other = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    for level in [-1, 0, 1, 2, 3, 4] {
        if fs::write(LEVEL, level.to_string()).is_err() {
            skip(&format!("no level {level} on this kernel"));
            continue;
        }
        let (found, foreign) = as_unprivileged(other.id());
        assert_eq!(found.paranoid, Some(level));
        assert_eq!(found.paranoid, paranoid_level());
        if level <= 2 {
            assert_eq!(found.software, Ok(()), "level {level}");
        }
        assert_eq!(found.kernel_side.is_ok(), level <= 1, "level {level}");
        for error in [found.software.err(), found.kernel_side.err()].into_iter().flatten() {
            assert!(
                matches!(error.reason, Reason::Refused { paranoid: Some(l), .. } if l == level)
            );
            assert!(error.to_string().contains(&format!("paranoid, now {level}")), "{error}");
        }
        let refused = foreign.unwrap_err().to_string();
        assert!(refused.contains("may belong to another user"), "{refused}");
    }
    other.wait_with_output().unwrap();
}
