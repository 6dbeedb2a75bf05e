//! Rings when a program's number of ready threads crosses a threshold.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use symbiont_machine::{ProgramId, Timestamp};
use symbiont_topology::CpuSet;

use super::{Event, Kind, Reader, ReadyThreads, SwitchError};

/// Watches the threads of programs by the scheduler's tracepoints. Threads born since the last
/// [`watch`](Self::watch) are not known to be theirs, so a phase that new threads begin is noticed only at the
/// end of the quantum. Its [`bell`](Self::bell) becomes readable when a program's number of ready threads crosses
/// the threshold, up or down, and stays so until [`silence`](Self::silence).
#[derive(Debug)]
pub struct Alarm {
    threshold: f64,
    watched: Arc<Mutex<Watched>>,
    bell: Arc<OwnedFd>,
    reader: Reader,
}

/// A thread to watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// Its number.
    pub thread: u32,
    /// Its program.
    pub program: ProgramId,
    /// Was it ready when it was last looked at?
    pub ready: bool,
}

/// The threads and what they do.
#[derive(Debug, Clone)]
struct Watched {
    threshold: f64,
    programs: BTreeMap<u32, ProgramId>,
    ready: ReadyThreads,
    counts: BTreeMap<ProgramId, u32>,
    above: BTreeMap<ProgramId, bool>,
}

impl Alarm {
    /// Starts to read on these hardware threads; nothing is watched yet.
    ///
    /// # Errors
    /// When the tracepoints cannot be read.
    pub fn start(cpus: &CpuSet, threshold: f64) -> Result<Self, SwitchError> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let bell = Arc::new(eventfd(0, flags).map_err(SwitchError::Thread)?);
        let watched = Arc::new(Mutex::new(Watched::new(threshold)));
        let (theirs, their_bell) = (Arc::clone(&watched), Arc::clone(&bell));
        let reader = Reader::start(cpus, move |events, _| {
            let mut watched = theirs.lock().unwrap_or_else(PoisonError::into_inner);
            if watched.apply(events) {
                ring(&their_bell);
            }
        })?;
        Ok(Self { threshold, watched, bell, reader })
    }

    /// The number of ready threads of a program at which it rings.
    #[must_use]
    pub fn threshold(&self) -> f64 {
        self.threshold
    }

    /// Watches these threads from now on, and no others. Those of which the tracepoints have shown nothing yet
    /// are taken to be as they were at `at`.
    pub fn watch(&self, members: &[Member], at: Timestamp) {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner).watch(members, at);
    }

    /// Readable while the alarm is on.
    #[must_use]
    pub fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// Ends the alarm.
    pub fn silence(&self) {
        // Nothing to read is silence as well.
        let _ = rustix::io::read(&self.bell, &mut [0; 8]);
    }

    /// The thread that reads the tracepoints.
    #[must_use]
    pub fn reader(&self) -> &Reader {
        &self.reader
    }
}

fn ring(bell: &OwnedFd) {
    // It rings already if no more fits.
    let _: Result<usize, Errno> = rustix::io::write(bell, &1u64.to_ne_bytes());
}

impl Watched {
    fn new(threshold: f64) -> Self {
        Self {
            threshold,
            programs: BTreeMap::new(),
            ready: ReadyThreads::default(),
            counts: BTreeMap::new(),
            above: BTreeMap::new(),
        }
    }

    fn watch(&mut self, members: &[Member], at: Timestamp) {
        self.programs = members.iter().map(|member| (member.thread, member.program)).collect();
        let programs = &self.programs;
        self.ready.retain(|thread| programs.contains_key(&thread));
        self.counts.clear();
        for member in members {
            self.ready.assume(member.thread, member.ready, at);
            let ready = self.ready.is_ready(member.thread) == Some(true);
            *self.counts.entry(member.program).or_default() += u32::from(ready);
        }
        let counts = &self.counts;
        // The thread that asks to watch has just looked.
        self.above = counts.iter().map(|(id, count)| (*id, self.is_above(*count))).collect();
    }

    fn is_above(&self, count: u32) -> bool {
        f64::from(count) > self.threshold
    }

    /// Applies events, in order; has a program crossed the threshold?
    fn apply(&mut self, events: &[Event]) -> bool {
        for event in events {
            let threads = match event.kind {
                Kind::Wakeup { thread } => [thread, 0],
                Kind::Switch { from, to, .. } => [from, to],
            };
            let was = threads.map(|thread| self.ready.is_ready(thread) == Some(true));
            self.ready.apply(event);
            for (thread, was) in threads.into_iter().zip(was) {
                let is = self.ready.is_ready(thread) == Some(true);
                let Some(program) = self.programs.get(&thread) else { continue };
                let count = self.counts.entry(*program).or_default();
                *count = match (was, is) {
                    (false, true) => *count + 1,
                    (true, false) => count.saturating_sub(1),
                    _ => *count,
                };
            }
        }
        let mut crossed = false;
        let now: Vec<_> = self.counts.iter().map(|(id, n)| (*id, self.is_above(*n))).collect();
        for (program, above) in now {
            crossed |= self.above.insert(program, above).is_some_and(|before| before != above);
        }
        crossed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: ProgramId = ProgramId(1);

    fn member(thread: u32, ready: bool) -> Member {
        Member { thread, program: A, ready }
    }

    fn wakeup(at: u64, thread: u32) -> Event {
        Event { at: Timestamp(at), kind: Kind::Wakeup { thread } }
    }

    fn sleep(at: u64, from: u32) -> Event {
        let kind = Kind::Switch { from, from_is_ready: false, to: 99 };
        Event { at: Timestamp(at), kind }
    }

    fn watched() -> Watched {
        let mut watched = Watched::new(1.1);
        watched.watch(&[member(1, true), member(2, false)], Timestamp(100));
        watched
    }

    #[test]
    fn crossing_the_threshold_either_way_rings() {
        let mut watched = watched();
        assert!(watched.apply(&[wakeup(200, 2)]));
        assert!(!watched.apply(&[wakeup(210, 2)]), "it is ready already");
        assert!(watched.apply(&[sleep(220, 1)]));
        assert!(!watched.apply(&[sleep(230, 2)]), "from one to none is no crossing");
    }

    #[test]
    fn there_and_back_at_once_does_not_ring() {
        assert!(!watched().apply(&[wakeup(200, 2), sleep(201, 2)]));
    }

    #[test]
    fn others_threads_do_not_ring() {
        let mut watched = watched();
        assert!(!watched.apply(&[wakeup(200, 7), wakeup(201, 8), wakeup(202, 9)]));
        assert!(watched.ready.is_ready(7).is_some());
        // They are forgotten when the threads are reported the next time.
        watched.watch(&[member(1, true)], Timestamp(300));
        assert_eq!(watched.ready.is_ready(7), None);
    }

    #[test]
    fn what_was_looked_at_is_known() {
        let mut watched = watched();
        watched.apply(&[wakeup(200, 2)]);
        // The sample, which is older, says otherwise of thread 2; the
        // tracepoints know better.
        watched.watch(&[member(1, true), member(2, false)], Timestamp(150));
        assert_eq!(watched.counts[&A], 2);
        assert!(watched.apply(&[sleep(300, 2)]));
    }
}
