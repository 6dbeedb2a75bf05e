//! Counts events of the host's threads, for the signals that are needed.
//!
//! Until a signal is needed that is derived from counts, nothing is counted, nor is the kernel asked what it
//! could count.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use symbiont_counters::catalogue::{Catalogue, CatalogueError};
use symbiont_machine::{
    Ability, Counting, Ended, GroupCounts, GroupReading, ProgramId, Signal, Signals, ThreadId,
    ThreadSample, Timestamp,
};

use crate::perf::{
    Alive, Choice, Counted, GroupCount, OpenError, Selection, Sharing, Spec, Standing, Support,
    Watch, WatchOptions, abilities, descriptor_budget, processors, select, support,
};

/// Descriptors that neither counters nor the threads' files may take.
const OTHERS: usize = 128;
/// Most descriptors that counters and the threads' files take together, whatever the limit: a counter
/// holds up to 3 KiB in the kernel.
const MOST: usize = 8192;

/// How events are counted.
#[derive(Debug, Clone)]
pub struct CountOptions {
    /// The event catalogue; none: the one for this host's processor.
    pub catalogue: Option<Arc<Catalogue>>,
    /// How groups of events share the counters.
    pub sharing: Sharing,
    /// The fewest quanta for which a thread is counted while others wait for descriptors.
    pub stay: u64,
}

impl Default for CountOptions {
    fn default() -> Self {
        Self { catalogue: None, sharing: Sharing::Kernel, stay: 4 }
    }
}

/// Counts what is needed.
#[derive(Debug)]
pub(super) struct Counter {
    options: CountOptions,
    asked: Signals,
    active: Option<Active>,
}

/// The counted events and threads.
#[derive(Debug)]
struct Active {
    counting: Arc<Counting>,
    watch: Watch,
    /// Threads whose files may be kept open in addition to the counters.
    files: usize,
    /// When the last sample was taken, and the threads in it.
    last: Timestamp,
    known: BTreeMap<ThreadId, SampledThread>,
    reasons: Reasons,
}

/// A thread of the last sample.
#[derive(Debug, Clone, Copy)]
struct SampledThread {
    program: ProgramId,
    opened: Option<Opened>,
}

/// When a thread's groups were opened: the quantum by the watch's count, and
/// the sample at its end.
#[derive(Debug, Clone, Copy)]
struct Opened {
    quantum: u64,
    at: Timestamp,
}

/// Why a thread that may be counted is not yet.
#[derive(Debug)]
struct Reasons {
    new: Arc<str>,
    begun: Arc<str>,
    waiting: Arc<str>,
}

impl Reasons {
    /// Is the limit of open files higher than what is taken of it?
    fn new(is_bounded: bool) -> Self {
        let bound = match is_bounded {
            true => format!("{MOST} at most are used"),
            false => "raise RLIMIT_NOFILE".to_owned(),
        };
        Self {
            new: "a new thread is counted once it outlived a quantum".into(),
            begun: "counting begins with this quantum".into(),
            waiting: format!("waits for file descriptors ({bound})").into(),
        }
    }
}

impl Counter {
    pub fn new(options: CountOptions) -> Self {
        Self { options, asked: Signals::new(), active: None }
    }

    /// Counts for these signals from now on. Reports for each that is derived from counts whether it is
    /// available, unless that was reported before.
    pub fn measure(&mut self, signals: &Signals, now: Timestamp) -> BTreeMap<Signal, Ability> {
        let wanted: Signals = signals.iter().copied().filter(|s| s.is_counted()).collect();
        if wanted == self.asked {
            return BTreeMap::new();
        }
        self.asked.clone_from(&wanted);
        self.active = None;
        if wanted.is_empty() {
            return BTreeMap::new();
        }
        let support = support();
        let selection = match self.select(&support) {
            Ok(selection) => selection,
            Err(error) => {
                let absent = |signal| (signal, Ability::Absent(error.to_string()));
                return wanted.into_iter().map(absent).collect();
            }
        };
        let plan = Plan::new(&selection, &wanted, &support);
        if !plan.groups.is_empty() {
            let each = plan.groups.iter().map(Vec::len).sum();
            let budget = descriptor_budget(OTHERS);
            let (files, descriptors) = shares(budget.min(MOST), each);
            let (sharing, stay) = (self.options.sharing, self.options.stay);
            let options = WatchOptions { group: support.options(), sharing, descriptors, stay };
            self.active = Some(Active {
                counting: Arc::new(plan.counting),
                watch: Watch::new(plan.groups, options),
                files,
                last: now,
                known: BTreeMap::new(),
                reasons: Reasons::new(budget > MOST),
            });
        }
        plan.abilities
    }

    /// How many threads' files may be kept open in addition to the counters; none: as
    /// many as there is room for.
    pub fn files(&self) -> Option<usize> {
        self.active.as_ref().map(|active| active.files)
    }

    /// How many threads are counted now, and how many wait for their turn.
    pub fn turns(&self) -> (usize, usize) {
        self.active
            .as_ref()
            .map_or((0, 0), |active| (active.watch.watched(), active.watch.waiting()))
    }

    /// Adds to a sample what was counted: of its threads and of those that
    /// ended since the last one.
    pub fn take(
        &mut self,
        at: Timestamp,
        threads: &mut [ThreadSample],
    ) -> (Option<Arc<Counting>>, Vec<Ended>) {
        let Some(active) = &mut self.active else { return (None, Vec::new()) };
        let ended = active.take(at, threads);
        (Some(Arc::clone(&active.counting)), ended)
    }

    fn select(&self, support: &Support) -> Result<Selection, CatalogueError> {
        match &self.options.catalogue {
            Some(given) => Ok(Selection { catalogue: Catalogue::clone(given), why: None }),
            None => select(support, &processors(Path::new("/"), &support.pmus)),
        }
    }
}

/// What will be counted and the signals of it.
struct Plan {
    abilities: BTreeMap<Signal, Ability>,
    counting: Counting,
    groups: Vec<Vec<Spec>>,
}

impl Plan {
    fn new(selection: &Selection, wanted: &Signals, support: &Support) -> Self {
        let catalogue = &selection.catalogue;
        let mut counting = catalogue.counting(wanted);
        let chosen = |name: &str| counting.groups.iter().any(|group| &*group.name == name);
        let groups = catalogue.groups().iter().filter(|group| chosen(&group.name));
        let choice = Choice::of(catalogue, groups, &support.pmus);
        let refused = choice.refused(support.options());
        let mut groups = choice.groups;
        for (group, specs) in counting.groups.iter_mut().zip(&mut groups) {
            specs.retain(|spec| !refused.contains_key(&spec.name));
            group.events = specs.iter().map(|spec| spec.name.clone()).collect();
        }
        counting.groups.retain(|group| !group.events.is_empty());
        groups.retain(|specs| !specs.is_empty());
        let mut abilities = abilities(catalogue, &refused);
        abilities.retain(|signal, _| wanted.contains(signal));
        if let Some(why) = &selection.why {
            // The cause says more than that the other catalogue misses a formula.
            for ability in abilities.values_mut().filter(|ability| !ability.exists()) {
                *ability = Ability::Absent(format!("catalogue {} is used {why}", catalogue.name()));
            }
        }
        let words = refused.iter().map(|(event, why)| (event.clone(), why.to_string().into()));
        counting.refused = words.collect();
        Self { abilities, counting, groups }
    }
}

impl Active {
    fn take(&mut self, at: Timestamp, threads: &mut [ThreadSample]) -> Vec<Ended> {
        let alive = threads.iter().map(|t| Alive { thread: t.id, run_time: t.run_time });
        let mut counted = self.watch.end_quantum(&alive.collect::<Vec<_>>());
        let ended = self.watch.take_ended();
        let ended = ended.into_iter().filter_map(|(id, counted)| {
            let known = self.known.get(&id)?;
            let opened = self.opened(known.opened, counted.opened);
            Some(Ended {
                id,
                program: known.program,
                counts: self.group_counts(&counted, opened.at),
            })
        });
        let ended = ended.collect();
        let mut known = BTreeMap::new();
        for thread in threads {
            let mut opened = self.known.get(&thread.id).and_then(|known| known.opened);
            thread.counts = match counted.remove(&thread.id) {
                Some(counted) => {
                    let now = self.opened(opened, counted.opened);
                    opened = Some(now);
                    self.group_counts(&counted, now.at)
                }
                None => vec![Err(self.absent(thread.id)); self.counting.groups.len()],
            };
            known.insert(thread.id, SampledThread { program: thread.program, opened });
        }
        (self.known, self.last) = (known, at);
        ended
    }

    /// When groups were opened that are first read now: at the last sample.
    fn opened(&self, known: Option<Opened>, quantum: u64) -> Opened {
        let same = known.filter(|opened| opened.quantum == quantum);
        same.unwrap_or(Opened { quantum, at: self.last })
    }

    /// What the groups of a thread say, in the terms of [`symbiont_machine`].
    fn group_counts(&self, counted: &Counted, opened: Timestamp) -> Vec<GroupCounts> {
        let groups = counted.groups.iter().zip(&self.counting.groups);
        let counts = groups.map(|(group, named)| {
            let GroupCount { reading, .. } =
                group.as_ref().map_err(|error| Arc::<str>::from(error.reason.to_string()))?;
            let events = reading.counts.iter().map(|(event, _)| event);
            if !events.eq(&named.events) {
                return Err(lacking(&counted.missing, &named.events));
            }
            Ok(GroupReading {
                opened,
                enabled: reading.enabled,
                running: reading.running,
                counts: reading.counts.iter().map(|&(_, count)| count).collect(),
            })
        });
        counts.collect()
    }

    /// Why nothing is known of a thread.
    fn absent(&self, thread: ThreadId) -> Arc<str> {
        match self.watch.standing(thread) {
            Standing::New => Arc::clone(&self.reasons.new),
            Standing::Begun => Arc::clone(&self.reasons.begun),
            Standing::Waiting => Arc::clone(&self.reasons.waiting),
            Standing::Refused(error) => error.reason.to_string().into(),
        }
    }
}

/// Why a thread's group has fewer events than those of others.
fn lacking(missing: &[OpenError], events: &[Arc<str>]) -> Arc<str> {
    let why = missing.iter().find(|error| events.contains(&error.event));
    why.map_or_else(
        || "the group is not complete".into(),
        |error| format!("{}: {}", error.event, error.reason).into(),
    )
}

/// Shares descriptors between the files of threads, two for each, and their
/// counters, `each` for each: so that as many threads as possible have both.
/// Gives threads whose files may be kept open, and descriptors for counters.
fn shares(descriptors: usize, each: usize) -> (usize, usize) {
    const FILES: usize = 2;
    let threads = descriptors / (FILES + each);
    (threads, descriptors - FILES * threads)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn files_and_counters_share_the_descriptors(all in 0usize..100_000, each in 1usize..60) {
            let (files, counters) = shares(all, each);
            prop_assert_eq!(2 * files + counters, all);
            // A thread that has files has counters, and there is no room for one more.
            prop_assert!(counters / each >= files);
            prop_assert!((files + 1) * (2 + each) > all);
        }
    }

    #[test]
    fn nothing_is_asked_of_the_kernel_unless_it_is_needed() {
        let mut counter = Counter::new(CountOptions::default());
        assert!(counter.measure(&Signals::from([Signal::RunStates]), Timestamp(0)).is_empty());
        assert_eq!(counter.take(Timestamp(1), &mut []), (None, vec![]));
        assert_eq!(counter.files(), None);
    }

    #[test]
    fn each_signal_that_is_asked_for_is_answered() {
        let software = Catalogue::named("software").unwrap().unwrap();
        let catalogue = Some(Arc::new(software));
        let mut counter = Counter::new(CountOptions { catalogue, ..CountOptions::default() });
        let asked: Signals = Signal::ALL.into();
        let abilities = counter.measure(&asked, Timestamp(0));
        assert_eq!(abilities.len(), Signal::ALL.len() - 1);
        assert!(abilities.values().all(|ability| ability.why().is_some_and(|why| !why.is_empty())));
        assert!(counter.measure(&asked, Timestamp(0)).is_empty(), "reported before");
    }
}
