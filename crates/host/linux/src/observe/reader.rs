//! The thread that waits for the kernel's reports.
//!
//! # Problem
//! A newborn inherits the mask that Symbiont gave its parent. Many programs read their mask once, as they start,
//! to decide how many threads to make. To give the newborn its wide mask back in time, the hook has to act within
//! the microseconds between the fork and that read.
//!
//! # Approach
//! A thread does nothing but wait for reports and pass them on. Where permitted it runs in a real-time class:
//! else it would wait behind the very programs that it watches, and the newborn would win the race whenever all
//! hardware threads are busy. Where it may not, it asks for the shortest time slice, with which it wakes before
//! threads that have longer ones. It does a bounded amount of work for each report, and never a scan; the
//! kernel's throttling of real-time threads is the last resort.
//!
//! While nothing is applied, a newborn inherits nothing of ours, and no thread is in a hurry: reports wait for
//! the next read of the loop ([`Haste::None`]). Where that may take long ([`Haste::Soon`]), the reader looks
//! every [`PAUSE`], so that a storm of reports does not overrun the buffer within a long quantum.
//!
//! # What remains
//! A kernel without preemption (`PREEMPT_NONE`) lets a process finish its fork, exec or exit before another one
//! gets its CPU, whatever their priorities. On such a kernel with two CPUs, of the children of a pinned parent
//! that read their mask a millisecond after the fork, about one in 500 was too early next to busy loops, and one
//! in 250 during a storm of forks.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;

use super::connector::wait_readable;
use super::state::State;
use super::sys;
use crate::inheriting::Inheriting;

/// Reports handled before the lock is released.
const AT_ONCE: usize = 1024;
/// Longest time that reports are to wait: 5,000 births a second, with their execs and
/// exits, fill a third of a buffer of 8 MB.
pub const PAUSE: Duration = Duration::from_millis(250);

/// How soon a report has to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Haste {
    /// With the next read of all threads, which comes within [`PAUSE`].
    None = 0,
    /// Within [`PAUSE`].
    Soon = 3,
    /// As it comes: a newborn may inherit what is applied for its parent.
    AtOnce = 1,
}

/// What the reader is to do, and the means to wake it for that.
#[derive(Debug)]
struct Orders {
    order: AtomicU8,
    poke: OwnedFd,
}

/// The order that none of [`Haste`] is.
const STOP: u8 = 2;

impl Orders {
    fn give(&self, order: u8) -> Result<(), Errno> {
        if self.order.swap(order, Ordering::AcqRel) != order {
            rustix::io::write(&self.poke, &1_u64.to_ne_bytes())?;
        }
        Ok(())
    }

    fn taken(&self) {
        // Nothing is left to read when two orders came at once.
        let _ = rustix::io::read(&self.poke, &mut [0; 8]);
    }
}

/// The running reader; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Reader {
    orders: Arc<Orders>,
    thread: Option<JoinHandle<()>>,
    realtime: Result<(), Errno>,
}

impl Reader {
    /// Starts to hand over what comes on the socket, at once.
    pub fn start(state: Arc<Inheriting<State>>, socket: OwnedFd) -> std::io::Result<Self> {
        let poke = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let orders = Arc::new(Orders { order: AtomicU8::new(Haste::AtOnce as u8), poke });
        let (sender, realtime) = mpsc::channel();
        let given = Arc::clone(&orders);
        let thread = std::thread::Builder::new().name("reports".into()).spawn(move || {
            // No thread listens if starting failed; then the result is not needed.
            let realtime = sys::run_at_realtime_priority();
            if realtime.is_err() {
                // Where this fails too the reader is as early as any other thread.
                let _ = sys::run_in_short_slices();
            }
            let _ = sender.send(realtime);
            if catch_unwind(AssertUnwindSafe(|| run(&state, &socket, &given))).is_err() {
                // The next read goes on without reports.
                state.lock().broken = Some("their reader panicked, which is a defect".to_owned());
            }
        })?;
        let realtime = realtime.recv().unwrap_or(Err(Errno::AGAIN));
        Ok(Self { orders, thread: Some(thread), realtime })
    }

    /// Does the reader run at real-time priority?
    pub fn realtime(&self) -> Result<(), Errno> {
        self.realtime
    }

    /// From now on reports are read as soon as `haste` says. A reader that cannot be notified goes on as it was,
    /// within [`PAUSE`].
    pub fn hurry(&self, haste: Haste) {
        let _ = self.orders.give(haste as u8);
    }
}

fn run(state: &Inheriting<State>, socket: &OwnedFd, orders: &Orders) {
    loop {
        let order = orders.order.load(Ordering::Acquire);
        let poke = orders.poke.as_fd();
        let woken = match order {
            STOP => return,
            order if order == Haste::AtOnce as u8 => {
                wait_readable([poke, socket.as_fd()], None).map(|[poked, _]| poked)
            }
            order if order == Haste::Soon as u8 => {
                wait_readable([poke], Some(PAUSE)).map(|[poked]| poked)
            }
            _ => wait_readable([poke], None).map(|[poked]| poked),
        };
        match woken {
            Ok(true) => orders.taken(),
            Ok(false) => {}
            Err(_) => return,
        }
        if !state.lock().drain_some(AT_ONCE) {
            return;
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        if let (Ok(()), Some(thread)) = (self.orders.give(STOP), self.thread.take()) {
            // A panic of the hook has been reported by then.
            let _ = thread.join();
        }
    }
}
