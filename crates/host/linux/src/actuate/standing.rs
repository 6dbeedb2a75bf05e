//! Keeps a thread from running while its mask is narrow.
//!
//! # Problem
//! A thread whose mask is narrowed while it runs goes on running until its CPU is interrupted: for some twenty
//! microseconds, more on a busy machine. After that it runs on its target until its mask is widened. In both
//! cases its program may read the narrow mask. In a virtual machine, whose CPUs stop at any moment, either may
//! take milliseconds.
//!
//! # Approach
//! Threads of ours run at real-time priority on all CPUs of the target and on the CPU that the thread leaves: the
//! caller on one of them, a [`Blocker`] on each other one. So the thread is only queued when its mask is
//! narrowed, is moved within that call, and stays queued until its mask is widened again. Of 2,750 nudges of two
//! to five threads that read their masks all the time on two CPUs, none was seen. Without real-time priority the
//! caller goes to the CPU that the thread leaves, which displaces the thread (18 of 2,500 were seen); with the
//! caller anywhere, one in seven was (kernel 6.18).
//!
//! Without that priority the caller has no more right to run than others. A thread that it has just narrowed
//! stays so while the caller waits for its turn: for seconds, next to programs that are preferred (seen). So
//! after it had to wait for [`LATE`] on a CPU it keeps off that CPU for [`REMEMBERED`], and nudges threads that
//! leave it from another one.
//!
//! Caller and blockers stay in place for the next thread that goes the same way, for at most [`LONG`]. They go
//! only where the caller may run anyway, and so stay off cores that the manager keeps off.
//!
//! # Properties
//! - The caller has its own mask again at the end (`the_caller_runs_where_it_was_sent_and_has_its_mask_again`).
//! - A thread that is displaced does not run (`a_displaced_thread_does_not_run`).
//! - A caller that had to wait for a CPU keeps off it, for a time (`a_cpu_that_was_waited_for_is_kept_off`,
//!   `cpus_that_were_waited_for_are_forgotten`).

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rustix::thread::sched_getcpu;
use symbiont_topology::{CpuSet, PuId};

use super::affinity;
use super::blocker::Blocker;
use super::settings::Mask;
use super::syscalls::is_at_realtime_priority;

/// After which time others are let run again.
const LONG: Duration = Duration::from_micros(500);
/// How long all of them may take to be there.
const ARRIVE_WITHIN: Duration = Duration::from_millis(2);
/// After which time on its way to a CPU, or within a nudge, the caller has waited for its turn there.
const LATE: Duration = Duration::from_millis(20);
/// For how long it keeps off such a CPU.
const REMEMBERED: Duration = Duration::from_secs(60);
/// CPUs that are kept at once at most: a core of eight, and one.
const MOST: usize = 9;

/// CPUs on which the caller had to wait, and until when it keeps off them.
#[derive(Debug, Default)]
pub(super) struct Contended(BTreeMap<PuId, Instant>);

impl Contended {
    fn note(&mut self, cpu: PuId, now: Instant) {
        self.0.insert(cpu, now + REMEMBERED);
    }

    /// The CPUs that are not forgotten yet.
    fn at(&mut self, now: Instant) -> CpuSet {
        self.0.retain(|_, until| *until > now);
        self.0.keys().copied().collect()
    }
}

/// The calling thread, while it keeps others from running; dropped, it has its own mask again.
#[derive(Debug)]
pub(super) struct Standing {
    /// The CPUs that it may use.
    own: CpuSet,
    /// The same, as it is to be restored.
    saved: Mask,
    cpuset: CpuSet,
    /// The CPU that it is bound to.
    at: Option<PuId>,
    /// Is its mask another one than its own?
    is_changed: bool,
    contended: Contended,
    /// [`LATE`].
    late: Duration,
    may_keep: bool,
    blockers: Vec<Blocker>,
    kept: Option<Kept>,
}

/// CPUs that are kept by the caller and the first so many of its blockers.
#[derive(Debug)]
struct Kept {
    cpus: CpuSet,
    blockers: usize,
    until: Instant,
}

impl Standing {
    /// The calling thread as it is, in a cpuset; none where the kernel does not say.
    pub fn begin(cpuset: &CpuSet) -> Option<Self> {
        let own = affinity::get(None).ok()?;
        let saved = Mask::classify(own.clone(), cpuset);
        let (may_keep, cpuset) = (is_at_realtime_priority(), cpuset.clone());
        Some(Self {
            own,
            saved,
            cpuset,
            at: None,
            is_changed: false,
            contended: Contended::default(),
            late: LATE,
            may_keep,
            blockers: Vec::new(),
            kept: None,
        })
    }

    /// The same, with what was learned of contended CPUs before.
    pub fn knowing(mut self, contended: Contended) -> Self {
        self.contended = contended;
        self
    }

    /// What was learned of contended CPUs, for the next time.
    pub fn knows(mut self) -> Contended {
        std::mem::take(&mut self.contended)
    }

    /// Keeps a thread that is on a CPU from running there, and on those that it will be sent to, until it is let go.
    pub fn displace(&mut self, from: PuId, to: &CpuSet) {
        if self.keeps(from, to) {
            return;
        }
        self.let_go();
        let cpus = to.union(&CpuSet::from(from));
        if !self.may_keep || cpus.len() > MOST || !cpus.is_subset(&self.own) {
            self.approach(from);
        } else if !self.keep(cpus) {
            self.let_go();
            self.may_keep = false;
            self.approach(from);
        }
    }

    /// A nudge took this long; unless others were kept from running, the caller may have waited for its turn meanwhile.
    pub fn took(&mut self, time: Duration) {
        if time > self.late && self.kept.is_none() {
            if let Some(cpu) = self.at {
                self.contended.note(cpu, Instant::now());
            }
            self.keep_off();
        }
    }

    /// Is such a thread kept from running everywhere? The nudge may be seen otherwise.
    pub fn keeps(&self, from: PuId, to: &CpuSet) -> bool {
        self.kept.as_ref().is_some_and(|kept| {
            kept.cpus.contains(from) && to.is_subset(&kept.cpus) && self.are_there(kept.blockers)
        })
    }

    /// Lets threads run again on the CPUs that were kept, if that is due.
    pub fn let_go_in_time(&mut self) {
        if self.kept.as_ref().is_some_and(|kept| kept.until <= Instant::now()) {
            self.let_go();
        }
    }

    fn let_go(&mut self) {
        self.blockers.iter().for_each(Blocker::let_go);
        self.kept = None;
    }

    fn keep(&mut self, cpus: CpuSet) -> bool {
        let Some(at) = self.stay() else { return false };
        let others = cpus.difference(&CpuSet::from(at));
        let mut blockers = 0;
        for cpu in others.iter() {
            if self.blockers.len() == blockers {
                let Some(blocker) = Blocker::start() else { return false };
                self.blockers.push(blocker);
            }
            if !self.blockers[blockers].send(cpu) {
                return false;
            }
            blockers += 1;
        }
        let begun = Instant::now();
        while !self.are_there(blockers) {
            if begun.elapsed() > ARRIVE_WITHIN {
                return false;
            }
            std::hint::spin_loop();
        }
        self.kept = Some(Kept { cpus, blockers, until: begun + LONG });
        true
    }

    fn are_there(&self, blockers: usize) -> bool {
        self.blockers.iter().take(blockers).all(Blocker::is_there)
    }

    /// Where the caller is, and is now to stay.
    fn stay(&mut self) -> Option<PuId> {
        if self.at.is_none() {
            self.go(PuId(u32::try_from(sched_getcpu()).ok()?));
        }
        self.at
    }

    fn go(&mut self, cpu: PuId) {
        if self.at == Some(cpu) || !self.own.contains(cpu) {
            return;
        }
        if affinity::set(None, Some(&CpuSet::from(cpu))).is_ok() {
            (self.at, self.is_changed) = (Some(cpu), true);
        }
    }

    /// Goes to a CPU where it gets its turn in time; else it is where it gets that.
    fn approach(&mut self, cpu: PuId) {
        let begun = Instant::now();
        if self.contended.at(begun).contains(cpu) {
            return self.keep_off();
        }
        self.go(cpu);
        if begun.elapsed() > self.late {
            self.contended.note(cpu, Instant::now());
            self.keep_off();
        }
    }

    /// Leaves CPUs on which it had to wait, as far as it may run on others.
    fn keep_off(&mut self) {
        let left = self.own.difference(&self.contended.at(Instant::now()));
        let wanted = if left.is_empty() { &self.own } else { &left };
        if affinity::set(None, Some(wanted)).is_ok() {
            (self.at, self.is_changed) = (None, true);
        }
    }
}

impl Drop for Standing {
    fn drop(&mut self) {
        self.let_go();
        if self.is_changed {
            // A caller whose CPUs have gone meanwhile has what the kernel gave it.
            let _ = affinity::set(None, self.saved.to_write(&self.cpuset));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

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
            // However busy the machine is.
            standing.late = Duration::MAX;
            for cpu in all.iter() {
                standing.displace(cpu, &all);
                assert!(own.contains(PuId(u32::try_from(sched_getcpu()).unwrap())));
                assert!(!own.contains(cpu) || sched_getcpu() == cpu.0 as usize);
            }
            drop(standing);
            assert_eq!(affinity::get(None).unwrap(), own);
        }
    }

    #[test]
    fn cpus_that_were_waited_for_are_forgotten() {
        let (mut contended, now) = (Contended::default(), Instant::now());
        contended.note(PuId(3), now);
        contended.note(PuId(4), now + LATE);
        assert_eq!(contended.at(now), "3-4".parse().unwrap());
        assert_eq!(contended.at(now + REMEMBERED), CpuSet::from(PuId(4)));
        assert!(contended.at(now + REMEMBERED + LATE).is_empty());
    }

    #[test]
    fn a_cpu_that_was_waited_for_is_kept_off() {
        let all = affinity::get(None).unwrap();
        let (first, last) = (all.iter().next().unwrap(), all.iter().last().unwrap());
        let others = all.difference(&CpuSet::from(last));
        let wanted = if others.is_empty() { &all } else { &others };
        let own = || affinity::get(None).unwrap();
        let without_right = |contended, late| {
            let mut standing = Standing::begin(&all).unwrap().knowing(contended);
            (standing.may_keep, standing.late) = (false, late);
            standing
        };
        // However busy the machine is, the first way is not late, and the last one is.
        let mut standing = without_right(Contended::default(), Duration::MAX);
        standing.displace(last, &all);
        standing.late = LATE;
        standing.took(LATE);
        assert_eq!(own(), CpuSet::from(last), "that is no wait yet");
        standing.took(2 * LATE);
        assert_eq!(own(), *wanted);
        let contended = standing.knows();
        assert_eq!(own(), all);
        // It is known the next time, too.
        let mut standing = without_right(contended, Duration::ZERO);
        standing.displace(last, &all);
        assert_eq!(own(), *wanted);
        standing.displace(first, &all);
        let left = others.difference(&CpuSet::from(first));
        assert_eq!(own(), if left.is_empty() { all.clone() } else { left });
        drop(standing);
        assert_eq!(own(), all);
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
                    standing.displace(from, &CpuSet::from(to));
                    let is_kept = standing.keeps(from, &CpuSet::from(to));
                    let before = count.load(Ordering::Relaxed);
                    std::thread::yield_now();
                    let is_same = count.load(Ordering::Relaxed) == before;
                    standing.let_go();
                    is_same && is_kept
                };
                (0..100).filter(stood_still).count() > 50
            };
            let stands_still = scope.spawn(stands_still).join().unwrap();
            is_over.store(true, Ordering::Relaxed);
            assert!(stands_still);
        });
    }
}
