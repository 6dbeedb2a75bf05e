//! A thread of ours that occupies a CPU for some microseconds.
//!
//! # Problem
//! A thread is kept from running on a CPU by another one that runs there at a higher priority. That one has to be
//! there at once, and must cost next to nothing while it is not needed.
//!
//! # Approach
//! A blocker sleeps between uses. The mask of a sleeping thread can be changed without moving it, and it wakes up
//! on the CPU that its mask names. Its caller spins until it is there, which takes less time than to sleep.
//!
//! ```text
//! caller                                    blocker
//! set the blocker's mask to the CPU         (sleeps)
//! state := ASKED; wake the blocker          wakes up on that CPU; state := THERE
//! wait until THERE, without sleeping        spins until state = IDLE, or for too long
//! do the work
//! state := IDLE                             sleeps
//! ```
//!
//! # Properties
//! - It is on the CPU that it was sent to, until it is let go (`a_blocker_is_there_until_it_is_let_go`), and not for
//!   ever (`a_blocker_that_is_forgotten_goes`).

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::Pid;
use symbiont_topology::{CpuSet, PuId};

use super::affinity;

/// For how long a CPU is kept at most, should the caller be stopped meanwhile.
const LONGEST: Duration = Duration::from_millis(20);

/// It sleeps, or is about to.
const IDLE: u32 = 0;
/// It is to wake up and stay.
const ASKED: u32 = 1;
/// It runs on its CPU.
const THERE: u32 = 2;
/// It ends.
const OVER: u32 = 3;

/// It runs at the priority of the thread that made it, and ends when it is dropped.
#[derive(Debug)]
pub(super) struct Blocker {
    number: Pid,
    state: Arc<AtomicU32>,
    thread: Option<JoinHandle<()>>,
}

impl Blocker {
    /// Starts a blocker, which sleeps; none where no thread can be made.
    pub fn start() -> Option<Self> {
        let state = Arc::new(AtomicU32::new(IDLE));
        let (says, said) = sync_channel(1);
        let own = Arc::clone(&state);
        let work = move || {
            // The caller waits for it.
            let _ = says.send(rustix::thread::gettid());
            work(&own);
        };
        let thread = std::thread::Builder::new().name("keeps-cpu".into()).spawn(work).ok()?;
        let number = said.recv().ok()?;
        Some(Self { number, state, thread: Some(thread) })
    }

    /// Sends it to a CPU; it is there when [`Self::is_there`] says so.
    pub fn send(&self, cpu: PuId) -> bool {
        self.let_go();
        // After this call it runs nowhere else, even if it was still awake.
        let is_sent = affinity::set(Some(self.number), Some(&CpuSet::from(cpu))).is_ok();
        if is_sent {
            self.become_and_wake(ASKED);
        }
        is_sent
    }

    /// Is it on the CPU that it was sent to?
    pub fn is_there(&self) -> bool {
        self.state.load(Ordering::Acquire) == THERE
    }

    /// Lets others run on its CPU.
    pub fn let_go(&self) {
        self.state.store(IDLE, Ordering::Release);
    }

    fn become_and_wake(&self, state: u32) {
        self.state.store(state, Ordering::Release);
        self.thread.iter().for_each(|thread| thread.thread().unpark());
    }
}

impl Drop for Blocker {
    fn drop(&mut self) {
        self.become_and_wake(OVER);
        if let Some(thread) = self.thread.take() {
            // It has no way to fail.
            let _ = thread.join();
        }
    }
}

fn work(state: &AtomicU32) {
    loop {
        match state.load(Ordering::Acquire) {
            OVER => return,
            ASKED => {
                let _ = state.compare_exchange(ASKED, THERE, Ordering::AcqRel, Ordering::Relaxed);
                let end = Instant::now() + LONGEST;
                while state.load(Ordering::Acquire) == THERE && Instant::now() < end {
                    std::hint::spin_loop();
                }
                let _ = state.compare_exchange(THERE, IDLE, Ordering::AcqRel, Ordering::Relaxed);
            }
            _ => std::thread::park(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpus() -> CpuSet {
        affinity::get(None).unwrap()
    }

    fn runs_on(blocker: &Blocker) -> PuId {
        let number = blocker.number.as_raw_nonzero().get().unsigned_abs();
        let facts = super::super::syscalls::facts(std::process::id(), number).unwrap().unwrap();
        facts.on.unwrap()
    }

    fn arrives(blocker: &Blocker, cpu: PuId) -> bool {
        assert!(blocker.send(cpu));
        let begun = Instant::now();
        while !blocker.is_there() && begun.elapsed() < LONGEST {
            std::thread::yield_now();
        }
        blocker.is_there()
    }

    #[test]
    fn a_blocker_is_there_until_it_is_let_go() {
        let blocker = Blocker::start().unwrap();
        assert!(!blocker.is_there());
        for cpu in cpus().iter() {
            // On a busy machine it may have given up before this thread runs again.
            let is_seen = (0..100)
                .any(|_| arrives(&blocker, cpu) && runs_on(&blocker) == cpu && blocker.is_there());
            assert!(is_seen);
            blocker.let_go();
            assert!(!blocker.is_there());
        }
    }

    #[test]
    fn a_blocker_that_is_forgotten_goes() {
        let blocker = Blocker::start().unwrap();
        assert!((0..100).any(|_| arrives(&blocker, cpus().first().unwrap())));
        while blocker.is_there() {
            std::thread::yield_now();
        }
    }
}
