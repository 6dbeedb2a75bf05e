//! A mutex whose holder inherits the priority of its waiters.
//!
//! # Problem
//! The reader of process reports runs at real-time priority: a newborn has to get its mask back before it looks
//! at it. The reader shares locks with the control loop, which runs at normal priority. A busy machine can take
//! the CPU from the loop while it holds such a lock; then the reader waits for milliseconds, behind the very
//! programs that it should overtake.
//!
//! # Approach
//! The kernel's own remedy, a priority-inheriting futex (futex(2)): while a thread waits, the holder runs at that
//! thread's priority. The futex decides which thread comes next to an ordinary mutex, which holds the value;
//! where the kernel has no such futex, the mutex remains alone. Where none waits, locking costs no system call
//! but `gettid`.
//!
//! # Properties
//! - One at a time has the value (`one_at_a_time`).
//! - Its holder runs at the priority of its waiters
//!   (`the_holder_inherits_the_priority_of_its_waiters`).

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;
use rustix::thread::futex::{self, Flags};

/// A value that one thread at a time may use. A panic of its user does not
/// make it unusable: use it for values that are whole at any time.
#[derive(Debug, Default)]
pub(crate) struct Inheriting<T> {
    /// The holder, by thread number, as the kernel wants it; 0 if there is none.
    turn: AtomicU32,
    value: Mutex<T>,
}

/// The value, until this is dropped.
#[derive(Debug)]
pub(crate) struct Guard<'a, T> {
    // Dropped first: the next in turn finds it free.
    value: MutexGuard<'a, T>,
    _turn: Option<Turn<'a>>,
}

/// The right to take the value; passed on when dropped.
#[derive(Debug)]
struct Turn<'a>(&'a AtomicU32, u32);

impl<T> Inheriting<T> {
    pub fn new(value: T) -> Self {
        Self { turn: AtomicU32::new(0), value: Mutex::new(value) }
    }

    /// Waits until the value is free.
    pub fn lock(&self) -> Guard<'_, T> {
        let turn = Turn::take(&self.turn);
        let value = self.value.lock().unwrap_or_else(PoisonError::into_inner);
        Guard { value, _turn: turn }
    }
}

impl<'a> Turn<'a> {
    /// None where the kernel cannot order the waiters.
    fn take(turn: &'a AtomicU32) -> Option<Self> {
        let me = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
        if turn.compare_exchange(0, me, Ordering::Acquire, Ordering::Relaxed).is_ok() {
            return Some(Self(turn, me));
        }
        loop {
            match futex::lock_pi(turn, Flags::PRIVATE, None) {
                Ok(()) => return Some(Self(turn, me)),
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(_) => return None,
            }
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let Self(turn, me) = *self;
        if turn.compare_exchange(me, 0, Ordering::Release, Ordering::Relaxed).is_err() {
            // A thread waits. It cannot fail: the turn is this thread's.
            let _ = futex::unlock_pi(turn, Flags::PRIVATE);
        }
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::observe::run_at_realtime_priority;

    #[test]
    fn one_at_a_time() {
        let shared = Inheriting::new((0, 0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..5_000 {
                        let mut both = shared.lock();
                        both.0 += 1;
                        std::hint::black_box(&mut both);
                        both.1 += 1;
                        assert_eq!(both.0, both.1);
                    }
                });
            }
        });
        assert_eq!(*shared.lock(), (20_000, 20_000));
        assert_eq!(shared.turn.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_panic_leaves_it_usable() {
        let shared = Inheriting::new(1);
        std::thread::scope(|scope| {
            let holder = scope.spawn(|| {
                let _held = shared.lock();
                panic!("on purpose");
            });
            assert!(holder.join().is_err());
        });
        assert_eq!(*shared.lock(), 1);
    }

    /// As the kernel counts: negative for real-time priorities.
    fn priority() -> i32 {
        let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        let after_name = stat.rsplit_once(')').unwrap().1;
        after_name.split_ascii_whitespace().nth(15).unwrap().parse().unwrap()
    }

    #[test]
    fn the_holder_inherits_the_priority_of_its_waiters() {
        let shared = Inheriting::new(());
        let (sender, receiver) = mpsc::channel();
        std::thread::scope(|scope| {
            let held = shared.lock();
            let mine = priority();
            scope.spawn(|| {
                sender.send(run_at_realtime_priority()).unwrap();
                drop(shared.lock());
            });
            if let Err(error) = receiver.recv().unwrap() {
                println!("skipped: no real-time priority here: {error}");
                return;
            }
            let deadline = Instant::now() + Duration::from_secs(30);
            while priority() >= 0 {
                assert!(Instant::now() < deadline, "still at {}", priority());
                std::thread::sleep(Duration::from_millis(1));
            }
            drop(held);
            assert_eq!(priority(), mine);
        });
    }
}
