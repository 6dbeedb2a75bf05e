//! What was counted of each thread, added up. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use symbiont_linux::observe::Observed;
use symbiont_linux::perf::{Counted, OpenError, Reading};
use symbiont_machine::ThreadId;

/// A group that is counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watched {
    /// Its name in the catalogue; none for an event that the user named.
    pub name: Option<String>,
    /// Its events.
    pub events: Vec<Arc<str>>,
}

/// All threads that were seen.
#[derive(Debug)]
pub struct Tally {
    groups: Vec<Watched>,
    threads: BTreeMap<ThreadId, Thread>,
    /// Why events are not counted, for some thread at least.
    reasons: BTreeMap<Arc<str>, String>,
    /// Has anything been taken yet?
    begun: bool,
}

/// A thread.
#[derive(Debug)]
pub struct Thread {
    /// What it is called.
    pub name: String,
    /// Does it live, as far as is known?
    pub alive: bool,
    /// CPU time when watching began, and now.
    before: Duration,
    run_time: Duration,
    groups: Vec<Sum>,
}

/// Readings of a group since it was opened, and of the times before that.
#[derive(Debug, Clone, Default)]
struct Sum {
    done: Reading,
    /// The quantum after which the group was opened, and its last reading.
    open: Option<(u64, Reading)>,
}

/// CPU time and counts of a thread, or of several.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Total {
    /// CPU time.
    pub cpu: Duration,
    /// For each group what it counted; nothing is in it where it did not.
    pub groups: Vec<Reading>,
}

impl Tally {
    /// Nothing yet. CPU time from before is left out unless the programs are
    /// watched `from_start`.
    pub fn new(groups: Vec<Watched>, from_start: bool) -> Self {
        let (threads, reasons) = (BTreeMap::new(), BTreeMap::new());
        Self { groups, threads, reasons, begun: from_start }
    }

    /// The groups.
    pub fn groups(&self) -> &[Watched] {
        &self.groups
    }

    /// Takes what is known at a quantum's end; `name` is asked about each
    /// thread once.
    pub fn take(
        &mut self,
        observed: &[Observed],
        counted: &BTreeMap<ThreadId, Counted>,
        ended: &[(ThreadId, Counted)],
        mut name: impl FnMut(ThreadId) -> String,
    ) {
        let alive: BTreeSet<ThreadId> = observed.iter().map(|thread| thread.id).collect();
        for thread in observed {
            let known = self.threads.entry(thread.id).or_insert_with(|| Thread {
                name: name(thread.id),
                alive: true,
                before: if self.begun { Duration::ZERO } else { thread.run_time },
                run_time: thread.run_time,
                groups: vec![Sum::default(); self.groups.len()],
            });
            known.run_time = thread.run_time;
        }
        self.begun = true;
        let ended: BTreeMap<ThreadId, &Counted> = ended.iter().map(|(id, c)| (*id, c)).collect();
        for (id, thread) in &mut self.threads {
            thread.alive = alive.contains(id);
            match counted.get(id).or_else(|| ended.get(id).copied()) {
                Some(counted) => {
                    for (sum, group) in thread.groups.iter_mut().zip(&counted.groups) {
                        let reading = group.as_ref().ok().map(|group| &group.reading);
                        sum.take(counted.opened, reading);
                    }
                }
                // Closed: it made way for others, or is gone.
                None => thread.groups.iter_mut().for_each(Sum::close),
            }
        }
        for counted in counted.values().chain(ended.into_values()) {
            for (group, answer) in self.groups.iter().zip(&counted.groups) {
                if let Err(error) = answer {
                    let reason = error.reason.to_string();
                    let events = group.events.iter().cloned();
                    self.reasons.extend(events.map(|event| (event, reason.clone())));
                }
            }
            let missing = counted.missing.iter();
            self.reasons.extend(missing.map(|e| (e.event.clone(), e.reason.to_string())));
        }
    }

    /// Takes note that nothing can be counted of a thread.
    pub fn refuse(&mut self, error: &OpenError) {
        let reason = error.reason.to_string();
        for event in self.groups.iter().flat_map(|group| &group.events) {
            self.reasons.entry(event.clone()).or_insert_with(|| reason.clone());
        }
    }

    /// Takes note that an event cannot be counted of any thread.
    pub fn note_missing(&mut self, event: &Arc<str>, reason: &str) {
        self.reasons.insert(event.clone(), reason.to_owned());
    }

    /// Why an event was not counted, if it was refused for some thread.
    pub fn reason(&self, event: &str) -> Option<&str> {
        self.reasons.get(event).map(String::as_str)
    }

    /// All threads that were seen and their totals.
    pub fn threads(&self) -> impl Iterator<Item = (ThreadId, &Thread, Total)> {
        self.threads.iter().map(|(id, thread)| (*id, thread, thread.total()))
    }
}

impl Thread {
    fn total(&self) -> Total {
        let groups: Vec<Reading> = self.groups.iter().map(Sum::total).collect();
        let seen = self.run_time.saturating_sub(self.before);
        // A thread that ended ran on after it was last seen.
        let cpu = groups.iter().map(|group| group.enabled).fold(seen, Duration::max);
        Total { cpu, groups }
    }
}

impl Sum {
    fn take(&mut self, opened: u64, reading: Option<&Reading>) {
        if self.open.as_ref().is_some_and(|(then, _)| *then != opened) {
            self.close();
        }
        match reading {
            Some(reading) => self.open = Some((opened, reading.clone())),
            None => self.close(),
        }
    }

    fn close(&mut self) {
        if let Some((_, reading)) = self.open.take() {
            add(&mut self.done, &reading);
        }
    }

    fn total(&self) -> Reading {
        let mut total = self.done.clone();
        self.open.iter().for_each(|(_, open)| add(&mut total, open));
        total
    }
}

impl Total {
    /// What was added since an earlier total of the same thread.
    pub fn since(&self, earlier: &Self) -> Self {
        let nothing = Reading::default();
        let before = |at: usize| earlier.groups.get(at).unwrap_or(&nothing);
        let groups = self.groups.iter().enumerate().map(|(at, now)| subtract(now, before(at)));
        Self { cpu: self.cpu.saturating_sub(earlier.cpu), groups: groups.collect() }
    }

    /// Adds another thread's total.
    pub fn add(&mut self, other: &Self) {
        self.cpu += other.cpu;
        self.groups.resize_with(self.groups.len().max(other.groups.len()), Reading::default);
        self.groups.iter_mut().zip(&other.groups).for_each(|(sum, more)| add(sum, more));
    }

    /// Share of the CPU time in which the groups counted: the least of those
    /// that did; none if none did.
    pub fn coverage(&self) -> Option<f64> {
        let cpu = self.cpu.as_secs_f64();
        let counted = self.groups.iter().filter(|group| !group.running.is_zero());
        let shares = counted.map(|group| group.running.as_secs_f64() / cpu);
        shares.reduce(f64::min).filter(|share| share.is_finite()).map(|share| share.min(1.0))
    }
}

fn add(sum: &mut Reading, more: &Reading) {
    sum.enabled += more.enabled;
    sum.running += more.running;
    for (name, count) in &more.counts {
        match sum.counts.iter_mut().find(|(known, _)| known == name) {
            Some((_, total)) => *total = total.wrapping_add(*count),
            None => sum.counts.push((name.clone(), *count)),
        }
    }
}

fn subtract(now: &Reading, before: &Reading) -> Reading {
    let less = |(name, count): &(Arc<str>, u64)| {
        (name.clone(), count.wrapping_sub(before.count(name).unwrap_or(0)))
    };
    Reading {
        enabled: now.enabled.saturating_sub(before.enabled),
        running: now.running.saturating_sub(before.running),
        counts: now.counts.iter().map(less).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use symbiont_linux::observe::Scheduling;
    use symbiont_linux::perf::{GroupCount, Reason};
    use symbiont_machine::{ProgramId, RunState};

    fn id(thread: u32) -> ThreadId {
        ThreadId { process: 1, thread, born: 5, generation: 0 }
    }

    fn seen(thread: u32, ran_ms: u64) -> Observed {
        Observed {
            id: id(thread),
            program: ProgramId(0),
            state: RunState::Runnable,
            run_time: Duration::from_millis(ran_ms),
            wait_time: Duration::ZERO,
            switches: 0,
            cpu: None,
            session: 1,
            scheduling: Scheduling::Usual,
            ages: Default::default(),
        }
    }

    fn counted(ms: u64, faults: u64) -> Counted {
        let time = Duration::from_millis(ms);
        let counts = vec![("faults".into(), faults)];
        let reading = Reading { enabled: time, running: time, counts };
        let count = GroupCount { reading, change: None, age: 0, coverage: None };
        Counted { opened: 0, groups: vec![Ok(count)], missing: Vec::new() }
    }

    fn tally(from_start: bool) -> Tally {
        let group = Watched { name: Some("g".into()), events: vec!["faults".into()] };
        Tally::new(vec![group], from_start)
    }

    fn total(tally: &Tally, thread: u32) -> (u64, Option<u64>) {
        let (_, _, total) = tally.threads().find(|(known, ..)| *known == id(thread)).unwrap();
        (total.cpu.as_millis() as u64, total.groups[0].count("faults"))
    }

    fn take(
        tally: &mut Tally,
        seen: &[Observed],
        counts: &[(u32, Counted)],
        ended: &[(u32, Counted)],
    ) {
        let map = counts.iter().map(|(thread, c)| (id(*thread), c.clone())).collect();
        let ended: Vec<_> = ended.iter().map(|(thread, c)| (id(*thread), c.clone())).collect();
        tally.take(seen, &map, &ended, |id| format!("t{}", id.thread));
    }

    #[test]
    fn what_ran_before_is_left_out_but_for_the_newborn() {
        let mut tally = tally(false);
        take(&mut tally, &[seen(1, 500)], &[], &[]);
        take(&mut tally, &[seen(1, 530), seen(2, 7)], &[], &[]);
        assert_eq!((total(&tally, 1), total(&tally, 2)), ((30, None), (7, None)));
    }

    #[test]
    fn groups_that_were_closed_and_opened_again_are_added_up() {
        let mut tally = tally(true);
        take(&mut tally, &[seen(1, 10)], &[(1, counted(10, 4))], &[]);
        take(&mut tally, &[seen(1, 20)], &[], &[]);
        take(&mut tally, &[seen(1, 60)], &[(1, counted(30, 5))], &[]);
        // Closed and opened again within one quantum, and more was counted since.
        let again = Counted { opened: 3, ..counted(35, 6) };
        take(&mut tally, &[seen(1, 90)], &[(1, again)], &[]);
        assert_eq!(total(&tally, 1), (90, Some(15)));
    }

    #[test]
    fn the_last_counts_of_ended_threads_are_in_the_total() {
        let mut tally = tally(true);
        take(&mut tally, &[seen(1, 10)], &[(1, counted(10, 4))], &[]);
        take(&mut tally, &[], &[], &[(1, counted(25, 9))]);
        take(&mut tally, &[], &[], &[]);
        assert_eq!(total(&tally, 1), (25, Some(9)));
        assert!(tally.threads().all(|(_, thread, _)| !thread.alive && thread.name == "t1"));
    }

    #[test]
    fn an_interval_is_the_difference_of_two_totals() {
        let mut all = Total::default();
        let reading = |ms: u64, count| Reading {
            enabled: Duration::from_millis(2 * ms),
            running: Duration::from_millis(ms),
            counts: vec![("faults".into(), count)],
        };
        let early = Total { cpu: Duration::from_millis(20), groups: vec![reading(5, 3)] };
        let late = Total { cpu: Duration::from_millis(50), groups: vec![reading(20, 10)] };
        let between = late.since(&early);
        assert_eq!((between.cpu.as_millis(), &between.groups[0]), (30, &reading(15, 7)));
        assert_eq!(between.coverage(), Some(0.5));
        assert_eq!(Total::default().coverage(), None);
        all.add(&early);
        all.add(&between);
        assert_eq!(all, late);
    }

    #[test]
    fn reasons_are_kept_by_event() {
        let mut tally = tally(true);
        let refused = |reason| OpenError { thread: 1, event: "faults".into(), reason };
        let starved =
            Counted { opened: 0, groups: vec![Err(refused(Reason::Starved))], missing: Vec::new() };
        take(&mut tally, &[seen(1, 1)], &[(1, starved)], &[]);
        assert!(tally.reason("faults").unwrap().contains("no counter was free"));
        tally.refuse(&refused(Reason::NoPmu));
        assert!(tally.reason("faults").unwrap().contains("no counter was free"), "the first stays");
        assert_eq!(tally.reason("cycles"), None);
    }
}
