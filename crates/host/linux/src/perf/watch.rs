//! The counters of many threads, quantum by quantum.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use rustix::process::{Resource, getrlimit};
use symbiont_machine::ThreadId;

use super::error::{OpenError, ReadError};
use super::group::{Group, GroupOptions};
use super::reading::Reading;
use super::rotation::Rotation;
use super::spec::Spec;

/// Quanta after which a budget that a shortage shrank is tried in full again.
const RETRY: u64 = 64;

/// How groups share the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// All groups are enabled; the kernel multiplexes where counters are few.
    Kernel,
    /// One group of each thread at a time, the next one each quantum (Feliu et
    /// al. count their five components in two quanta so).
    ByQuantum,
}

/// How to watch threads.
#[derive(Debug, Clone)]
pub struct WatchOptions {
    /// How groups are opened ([`enabled`](GroupOptions::enabled) is up to
    /// `sharing`).
    pub group: GroupOptions,
    /// How groups share the time.
    pub sharing: Sharing,
    /// Most file descriptors to hold.
    pub descriptors: usize,
    /// The fewest quanta for which a thread is watched while others wait.
    pub stay: u64,
}

/// Most descriptors that counters may hold: this process's limit of open files, less `others`, which are needed
/// for something else, and less a small reserve.
#[must_use]
pub fn descriptor_budget(others: usize) -> usize {
    const RESERVE: usize = 64;
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    limit.saturating_sub(others).saturating_sub(RESERVE)
}

/// A thread that lives at a quantum's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alive {
    /// The thread.
    pub thread: ThreadId,
    /// Its CPU time so far.
    pub run_time: Duration,
}

/// What a group of a thread says at a quantum's end.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupCount {
    /// Counts since the group was opened.
    pub reading: Reading,
    /// Counts of the last quantum in which the group counted; none if there was
    /// no such quantum yet.
    pub change: Option<Reading>,
    /// Quanta that ended since `change` did; 0: it is this quantum's.
    pub age: u64,
    /// Running time over the thread's CPU time since the group was opened, in
    /// 0…1; none while the thread did not run.
    pub coverage: Option<f64>,
}

/// What is known of a watched thread.
#[derive(Debug, Clone, PartialEq)]
pub struct Counted {
    /// The quantum at whose end its groups were opened, counted from 0 since the watch began. If it is not the
    /// same as before, they were closed in between.
    pub opened: u64,
    /// For each group of the watch, in its order: its counts, or why there are
    /// none: it was refused, or it never gets a counter.
    pub groups: Vec<Result<GroupCount, OpenError>>,
    /// Events that were refused in groups that count.
    pub missing: Vec<OpenError>,
}

/// The state of a thread about which nothing is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing<'a> {
    /// It has not outlived a quantum yet, or was never seen.
    New,
    /// It was tried, and nothing of it can be counted.
    Refused(&'a OpenError),
    /// Its groups were opened at the end of the last quantum.
    Begun,
    /// It waits in line for descriptors.
    Waiting,
}

/// Groups of counters on many threads.
#[derive(Debug)]
pub struct Watch {
    groups: Vec<Vec<Spec>>,
    options: WatchOptions,
    /// The budget that proved right: smaller after the kernel ran out.
    descriptors: usize,
    quantum: u64,
    rotation: Rotation<ThreadId>,
    threads: HashMap<ThreadId, Watched>,
    /// Last counts of threads that ended in the last quantum.
    ended: Vec<(ThreadId, Counted)>,
}

#[derive(Debug)]
struct Watched {
    /// CPU time when the groups were opened, and when the thread was last seen;
    /// none: not seen since, so that the groups may be on another thread that
    /// got its number.
    run_time: Duration,
    seen: Option<Duration>,
    /// The quantum at whose end they were opened.
    opened: u64,
    groups: Vec<Result<Slot, OpenError>>,
}

#[derive(Debug)]
struct Slot {
    group: Group,
    reading: Reading,
    /// The last change and the quantum at whose end it was seen.
    change: Option<(Reading, u64)>,
    /// Why it does not count although it is open.
    starved: Option<OpenError>,
}

impl Watch {
    /// A watch over these groups of events, that watches no thread yet.
    #[must_use]
    pub fn new(groups: Vec<Vec<Spec>>, options: WatchOptions) -> Self {
        let (rotation, threads) = (Rotation::new(), HashMap::new());
        let descriptors = options.descriptors;
        Self { descriptors, groups, options, quantum: 0, rotation, threads, ended: Vec::new() }
    }

    /// Ends a quantum: reads watched threads, closes the groups of those that are gone or made way, opens those
    /// of threads that outlived their first quantum, turns to the next groups.
    ///
    /// Gives the counts of all threads that were watched and still live.
    /// Threads missing from it are new, wait in line, or were refused
    /// ([`refusal`](Self::refusal)).
    pub fn end_quantum(&mut self, alive: &[Alive]) -> BTreeMap<ThreadId, Counted> {
        let now = self.quantum;
        self.quantum += 1;
        if now % RETRY == 0 {
            // A shortage may have passed; if not, opening shows it again.
            self.descriptors = self.options.descriptors;
        }
        let counted = self.read(alive, now);
        let run_time: BTreeMap<_, _> =
            alive.iter().map(|alive| (alive.thread, alive.run_time)).collect();
        let turn =
            self.rotation.turn(now, run_time.keys().copied(), self.room(), self.options.stay);
        self.end(&run_time, now);
        for thread in &turn.close {
            self.threads.remove(thread);
        }
        self.rotate(now);
        let mut open = turn.open.into_iter();
        while let Some(thread) = open.next() {
            let run_time = run_time.get(&thread).copied().unwrap_or_default();
            if self.open(thread, run_time, now + 1).is_err() {
                // Others need descriptors too: hold fewer from now on, at once.
                let held = self.descriptors();
                self.descriptors = held.saturating_sub(self.each().max(held / 8));
                for thread in open.rev().chain([thread]) {
                    self.rotation.requeue(thread);
                }
                for thread in self.rotation.shrink(self.room()) {
                    self.threads.remove(&thread);
                }
                break;
            }
        }
        counted
    }

    /// The last counts of threads that ended in the last quantum, in the order
    /// of their identities; they are given once. A thread that was not seen
    /// again after its groups were opened is not among them.
    #[must_use]
    pub fn take_ended(&mut self) -> Vec<(ThreadId, Counted)> {
        std::mem::take(&mut self.ended)
    }

    /// Why nothing is counted of a thread, if it was tried.
    #[must_use]
    pub fn refusal(&self, thread: ThreadId) -> Option<&OpenError> {
        let watched = self.threads.get(&thread)?;
        let first = watched.groups.first()?.as_ref().err();
        first.filter(|_| watched.groups.iter().all(Result::is_err))
    }

    /// Why nothing was reported of a thread at the end of the last quantum.
    #[must_use]
    pub fn standing(&self, thread: ThreadId) -> Standing<'_> {
        if let Some(error) = self.refusal(thread) {
            Standing::Refused(error)
        } else if self.threads.contains_key(&thread) {
            Standing::Begun
        } else if self.rotation.is_old(thread, self.quantum) {
            Standing::Waiting
        } else {
            Standing::New
        }
    }

    /// How many threads are watched.
    #[must_use]
    pub fn watched(&self) -> usize {
        self.rotation.watched()
    }

    /// How many threads outlived a quantum and wait for descriptors.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.rotation.waiting()
    }

    /// File descriptors held.
    #[must_use]
    pub fn descriptors(&self) -> usize {
        let slots = self.threads.values().flat_map(|watched| watched.groups.iter().flatten());
        slots.map(|slot| slot.group.descriptors()).sum()
    }

    /// Descriptors for a thread.
    fn each(&self) -> usize {
        self.groups.iter().map(Vec::len).sum()
    }

    /// How many threads the budget allows.
    fn room(&self) -> usize {
        self.descriptors.checked_div(self.each()).unwrap_or(0)
    }

    /// The one group that counts in a quantum, where they take turns.
    fn active(&self, quantum: u64) -> Option<usize> {
        let count = u64::try_from(self.groups.len()).ok()?;
        match self.options.sharing {
            Sharing::Kernel => None,
            Sharing::ByQuantum => usize::try_from(quantum.checked_rem(count)?).ok(),
        }
    }

    fn read(&mut self, alive: &[Alive], now: u64) -> BTreeMap<ThreadId, Counted> {
        let active = self.active(now);
        let mut all = BTreeMap::new();
        for &Alive { thread, run_time } in alive {
            let Some(watched) = self.threads.get_mut(&thread) else { continue };
            watched.seen = Some(run_time);
            let cpu = run_time.saturating_sub(watched.run_time);
            all.extend(watched.read(active, cpu, now).map(|counted| (thread, counted)));
        }
        all
    }

    /// Reads those that ended once more, and closes them.
    fn end(&mut self, alive: &BTreeMap<ThreadId, Duration>, now: u64) {
        let active = self.active(now);
        let gone = self.threads.keys().copied().filter(|thread| !alive.contains_key(thread));
        let mut gone: Vec<ThreadId> = gone.collect();
        gone.sort_unstable();
        self.ended.clear();
        for thread in gone {
            let Some(mut watched) = self.threads.remove(&thread) else { continue };
            let Some(seen) = watched.seen else { continue };
            let cpu = seen.saturating_sub(watched.run_time);
            self.ended.extend(watched.read(active, cpu, now).map(|counted| (thread, counted)));
        }
    }

    /// Stops the groups whose quantum ended and starts the next ones.
    fn rotate(&self, now: u64) {
        let (Some(old), Some(new)) = (self.active(now), self.active(now + 1)) else { return };
        if old == new {
            return;
        }
        for watched in self.threads.values() {
            for (index, slot) in watched.groups.iter().enumerate() {
                let Ok(slot) = slot else { continue };
                // A group that will not turn shows it: its coverage is wrong
                // and its age grows.
                let _: Result<(), ReadError> = match index {
                    index if index == old => slot.group.disable(),
                    index if index == new => slot.group.enable(),
                    _ => Ok(()),
                };
            }
        }
    }

    /// Opens a thread's groups before the quantum `first`; fails for lack of
    /// descriptors alone.
    fn open(&mut self, thread: ThreadId, run_time: Duration, first: u64) -> Result<(), OpenError> {
        let active = self.active(first);
        let mut groups = Vec::with_capacity(self.groups.len());
        for (index, specs) in self.groups.iter().enumerate() {
            let enabled = active.is_none_or(|active| active == index);
            let options = GroupOptions { enabled, ..self.options.group };
            let group = Group::open(thread.thread, specs, options);
            match group {
                Ok(group) => groups.push(Ok(Slot::new(group))),
                Err(error) if error.reason.is_shortage() => return Err(error),
                Err(error) => groups.push(Err(error)),
            }
        }
        if groups.iter().all(Result::is_err) {
            self.rotation.give_up(thread);
        }
        let opened = first.saturating_sub(1);
        self.threads.insert(thread, Watched { run_time, seen: None, opened, groups });
        Ok(())
    }
}

impl Watched {
    /// Reads the groups that may have counted; `cpu` is the thread's CPU time
    /// since they were opened, as far as it is known.
    fn read(&mut self, active: Option<usize>, cpu: Duration, now: u64) -> Option<Counted> {
        let mut counted = Counted { opened: self.opened, groups: Vec::new(), missing: Vec::new() };
        for (index, slot) in self.groups.iter_mut().enumerate() {
            // A group that does not count has nothing new to say.
            let due = active.is_none_or(|active| active == index);
            let reading = slot.as_mut().map_err(|error| error.clone()).and_then(|slot| {
                if due {
                    slot.read(now);
                }
                counted.missing.extend_from_slice(slot.group.missing());
                slot.count(cpu, now)
            });
            counted.groups.push(reading);
        }
        self.groups.iter().any(Result::is_ok).then_some(counted)
    }
}

impl Slot {
    fn new(group: Group) -> Self {
        Self { reading: group.zero(), group, change: None, starved: None }
    }

    /// Reads the group; what cannot be read grows old.
    fn read(&mut self, now: u64) {
        let Ok((reading, starved)) = self.group.read_and_judge() else { return };
        if let Some(change) = reading.since(&self.reading) {
            self.change = Some((change, now));
        }
        (self.reading, self.starved) = (reading, starved);
    }

    fn count(&self, cpu: Duration, now: u64) -> Result<GroupCount, OpenError> {
        if let Some(error) = &self.starved {
            return Err(error.clone());
        }
        // A thread that ended ran on after it was last seen.
        let cpu = cpu.max(self.reading.enabled);
        let coverage = self.reading.running.as_secs_f64() / cpu.as_secs_f64();
        Ok(GroupCount {
            reading: self.reading.clone(),
            change: self.change.as_ref().map(|(change, _)| change.clone()),
            age: self.change.as_ref().map_or(0, |&(_, seen)| now.saturating_sub(seen)),
            coverage: (!cpu.is_zero()).then_some(coverage.min(1.0)),
        })
    }
}
