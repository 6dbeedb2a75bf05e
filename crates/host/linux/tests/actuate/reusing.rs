//! Numbers that are used again.

#![allow(unsafe_code, reason = "clone3 with a chosen process number has no safe wrapper")]

use symbiont_machine::{Outcome, Priority};

use crate::support::*;

#[test]
fn a_reused_number_is_not_touched() {
    if !is_root() {
        return skip("only root may choose a process number");
    }
    let (rig, mut victim) = (Rig::new(), Victim::sleeper());
    let (id, thread) = (victim.id(), victim.thread());
    let before = mask_of(id);
    rig.actuator.adopt(&thread).unwrap();
    victim.kill();
    let Some(other) = Reborn::with_number(id) else {
        return skip("the kernel does not let a process number be chosen (clone3 set_tid)");
    };
    if other.born() == thread.born {
        return skip("both were born in one clock tick");
    }
    let first = before.first().unwrap().into();
    assert_eq!(rig.pin(&thread, &first), Outcome::Gone);
    assert_eq!(rig.set_priority(&thread, Priority::Boosted(3)), Outcome::Gone);
    assert_eq!(mask_of(id), before);
    rig.actuator.restore_all();
    assert_eq!(mask_of(id), before);
}

/// A child with a chosen number that waits to be killed.
struct Reborn(u32);

impl Reborn {
    fn with_number(number: u32) -> Option<Self> {
        let tid = i32::try_from(number).unwrap();
        // SAFETY: all fields of `clone_args` are integers, for which zero is valid.
        let mut arguments: libc::clone_args = unsafe { std::mem::zeroed() };
        arguments.exit_signal = u64::try_from(libc::SIGCHLD).unwrap();
        arguments.set_tid = (&raw const tid) as u64;
        arguments.set_tid_size = 1;
        let size = size_of::<libc::clone_args>();
        // SAFETY: without CLONE_VM this is a fork: the child runs on a copy of this memory. The
        // kernel reads `arguments` and `tid`, both live. The child calls only async-signal-safe
        // functions.
        let child = unsafe { libc::syscall(libc::SYS_clone3, &raw const arguments, size) };
        if child == 0 {
            loop {
                // SAFETY: pause takes nothing and is async-signal-safe.
                unsafe { libc::pause() };
            }
        }
        (child > 0).then_some(Self(number))
    }

    fn born(&self) -> u64 {
        thread_id(self.0, self.0).born
    }
}

impl Drop for Reborn {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_raw(i32::try_from(self.0).unwrap());
        if let Some(pid) = pid {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            let _ = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty());
        }
    }
}
