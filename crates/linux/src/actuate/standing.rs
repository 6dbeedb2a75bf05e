//! How a thread is kept from running while it is narrow.
//!
//! # Problem
//! A thread that runs is narrow until its CPU was interrupted to let it go, which takes some twenty microseconds, more
//! on a busy machine; and on its target it runs before it is widened. Its program may read that mask. In a virtual
//! machine, whose CPUs stop at any moment, both may last for milliseconds.
//!
//! # Approach
//! Threads of ours are at both places, where they run at real-time priority: the caller on the target, a [`Blocker`]
//! on the CPU that the thread leaves. So it is only queued when it is narrowed, is moved within that call, and stays
//! queued until it is widened: of 2,750 nudges of two to five threads that read their masks all the time on two CPUs,
//! none was seen. Without real-time priority, or to a target of several CPUs, the caller goes to the CPU that the thread
//! leaves, which displaces it there (18 of 2,500 were seen); with the caller anywhere, one in seven was (kernel 6.18).
//!
//! Both go only where the caller may run anyway, so that they stay off cores that it keeps off
//! ([`super::super::launch::OwnCpus`]).
//!
//! # Properties
//! - The caller has its own mask again at the end (`the_caller_runs_where_it_was_sent_and_has_its_mask_again`).
//! - A thread that is displaced does not run (`a_displaced_thread_does_not_run`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use symbiont_topology::{CpuSet, PuId};

use super::affinity;
use super::kernel::is_at_realtime_priority;
use super::settings::Mask;

/// For how long a CPU is kept at most, should the caller be stopped meanwhile.
const LONGEST: Duration = Duration::from_millis(20);

/// The calling thread, while it goes from CPU to CPU; dropped, it has its own mask again.
#[derive(Debug)]
pub(super) struct Standing {
    /// What it may use.
    own: CpuSet,
    /// The same, as it is to be restored.
    saved: Mask,
    cpuset: CpuSet,
    at: Option<PuId>,
    blocker: Option<Blocker>,
}

impl Standing {
    /// The calling thread as it is, in a cpuset; none where the kernel does not say.
    pub fn begin(cpuset: &CpuSet) -> Option<Self> {
        let own = affinity::get(None).ok()?;
        let saved = Mask::classify(own.clone(), cpuset);
        let blocker = if is_at_realtime_priority() { Blocker::start() } else { None };
        Some(Self { own, saved, cpuset: cpuset.clone(), at: None, blocker })
    }

    /// Keeps a thread that is on a CPU from running there, and on the one that it will be sent to, until
    /// [`Self::let_go`]; is it kept from both? The nudge may be seen otherwise.
    pub fn displace(&mut self, from: PuId, to: Option<PuId>) -> bool {
        let is_allowed = |cpu: &PuId| self.own.contains(*cpu);
        match (to.filter(is_allowed), &self.blocker) {
            (Some(to), Some(_)) if is_allowed(&from) => {
                self.go(to);
                let is_kept = self.blocker.as_ref().is_some_and(|blocker| blocker.keep(from));
                if !is_kept {
                    self.blocker = None;
                }
                is_kept && self.at == Some(to)
            }
            _ => {
                self.go(from);
                false
            }
        }
    }

    /// Lets threads run again on the CPU that was kept.
    pub fn let_go(&self) {
        self.blocker.iter().for_each(Blocker::let_go);
    }

    fn go(&mut self, cpu: PuId) {
        if self.at == Some(cpu) || !self.own.contains(cpu) {
            return;
        }
        if affinity::set(None, Some(&CpuSet::from(cpu))).is_ok() {
            self.at = Some(cpu);
        }
    }
}

impl Drop for Standing {
    fn drop(&mut self) {
        self.let_go();
        if self.at.is_some() {
            // A caller whose CPUs have gone meanwhile has what the kernel gave it.
            let _ = affinity::set(None, self.saved.to_write(&self.cpuset));
        }
    }
}

/// A thread that keeps a CPU busy at the priority of the thread that made it, until it is let go; it ends when it
/// is dropped.
#[derive(Debug)]
struct Blocker {
    asked: Option<SyncSender<PuId>>,
    there: Receiver<bool>,
    goes_on: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Blocker {
    fn start() -> Option<Self> {
        let (asked, asks) = sync_channel::<PuId>(1);
        let (arrivals, there) = sync_channel(1);
        let goes_on = Arc::new(AtomicBool::new(true));
        let is_over = Arc::clone(&goes_on);
        let work = move || {
            for cpu in asks {
                let arrived = affinity::set(None, Some(&CpuSet::from(cpu))).is_ok();
                let end = Instant::now() + LONGEST;
                if arrivals.send(arrived).is_err() {
                    return;
                }
                while arrived && !is_over.load(Ordering::Acquire) && Instant::now() < end {
                    std::hint::spin_loop();
                }
            }
        };
        let thread = std::thread::Builder::new().name("displaces".into()).spawn(work).ok()?;
        Some(Self { asked: Some(asked), there, goes_on, thread: Some(thread) })
    }

    /// Goes to a CPU and keeps it; is it there?
    fn keep(&self, cpu: PuId) -> bool {
        self.let_go();
        let Some(asked) = &self.asked else { return false };
        self.goes_on.store(false, Ordering::Release);
        asked.send(cpu).is_ok() && self.there.recv() == Ok(true)
    }

    fn let_go(&self) {
        self.goes_on.store(true, Ordering::Release);
    }
}

impl Drop for Blocker {
    fn drop(&mut self) {
        self.let_go();
        self.asked = None;
        if let Some(thread) = self.thread.take() {
            // It has no way to fail.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use rustix::thread::sched_getcpu;

    use super::*;
    use crate::observe::run_all_at_realtime_priority;

    #[test]
    fn the_caller_runs_where_it_was_sent_and_has_its_mask_again() {
        let all = affinity::get(None).unwrap();
        let last = all.iter().last().unwrap();
        // A mask of its own, and all.
        for own in [CpuSet::from(last), all.clone()] {
            affinity::set(None, Some(&own)).unwrap();
            let mut standing = Standing::begin(&all).unwrap();
            for cpu in all.iter() {
                standing.displace(cpu, None);
                assert!(own.contains(PuId(u32::try_from(sched_getcpu()).unwrap())));
                assert!(!own.contains(cpu) || sched_getcpu() == cpu.0 as usize);
            }
            drop(standing);
            assert_eq!(affinity::get(None).unwrap(), own);
        }
    }

    #[test]
    fn a_displaced_thread_does_not_run() {
        let all = affinity::get(None).unwrap();
        let mut each = all.iter();
        let (Some(from), Some(to)) = (each.next(), each.next()) else {
            return println!("skipped: one CPU");
        };
        let (count, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                affinity::set(None, Some(&CpuSet::from(from))).unwrap();
                while !is_over.load(Ordering::Relaxed) {
                    count.fetch_add(1, Ordering::Relaxed);
                }
            });
            let stands_still = || {
                if run_all_at_realtime_priority().is_err() {
                    println!("skipped: no real-time priority");
                    return true;
                }
                while count.load(Ordering::Relaxed) == 0 {
                    std::thread::sleep(Duration::from_millis(1));
                }
                let mut standing = Standing::begin(&all).unwrap();
                // A busy host may stop this thread for longer than a CPU is kept.
                let stood_still = |_: &u32| {
                    standing.displace(from, Some(to));
                    let before = count.load(Ordering::Relaxed);
                    std::thread::yield_now();
                    let is_same = count.load(Ordering::Relaxed) == before;
                    standing.let_go();
                    is_same && sched_getcpu() == to.0 as usize
                };
                (0..100).filter(stood_still).count() > 50
            };
            let stands_still = scope.spawn(stands_still).join().unwrap();
            is_over.store(true, Ordering::Relaxed);
            assert!(stands_still);
        });
    }
}
