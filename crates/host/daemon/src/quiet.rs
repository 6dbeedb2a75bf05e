//! Which other threads run on the cores of programs that are measured.
//!
//! # Problem
//! A program of class `alone` has cores on which no other managed program runs. Threads that are not
//! managed, the kernel's own, and a hypervisor may still run there, and spoil what is measured without
//! a sign.
//!
//! # Approach
//! The time of its cores, siblings among them, that was neither idle nor stolen nor spent by its own
//! threads is that of others. It is taken over windows of [`WINDOW`], each from one sample to another
//! between which the program had the same threads, all placed on the same hardware threads: of threads
//! that come and go it is not known exactly what they ran. Where others ran, the threads that ran
//! there last are looked up; those that are new since the window began, or were looked up before, are
//! named with what they ran meanwhile.
//!
//! # Terms and units
//! Times are CPU time, summed over hardware threads. *Intrusion*: others ran for more than [`LEAST`]
//! for each hardware thread in a window; less cannot be distinguished from the steps in which the kernel counts.
//!
//! # Properties
//! - Own time is no intrusion, and others' time is (`others_on_its_cores_are_reported`,
//!   `its_own_time_is_no_intrusion`).
//! - What cannot be judged is not called quiet (`what_changes_is_not_judged`).
//! - Intruders are named (`intruders_are_named_with_what_they_ran`).

mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use symbiont_linux::occupancy::CpuTimes;
use symbiont_machine::{Class, Placement, ProgramId, Sample, Target, ThreadId, Timestamp};
use symbiont_topology::{CpuSet, Topology};
use symbiont_wire::{Intruder, Quiet};
pub use words::quiet_words;

use crate::occupants::{Occupancy, RunTimes, intruders};

/// Length of a window, at least.
const WINDOW: Duration = Duration::from_secs(1);
/// Time of others that is an intrusion, for each hardware thread and window: two steps of the kernel's
/// accounts.
const LEAST: Duration = Duration::from_millis(20);
/// Names that are kept for a program.
const MOST_NAMES: usize = 32;

/// Watches the cores of all programs that are measured.
#[derive(Debug, Default)]
pub(crate) struct Watch(BTreeMap<ProgramId, Watched>);

/// Others ran on the cores of a program in the last window.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Intrusion {
    pub program: ProgramId,
    pub cpus: CpuSet,
    pub length: Duration,
    pub others: Duration,
    pub by: Vec<Intruder>,
    /// Was it quiet in the window before?
    pub begins: bool,
}

impl Intrusion {
    /// For a log.
    pub fn line(&self, name: &str) -> String {
        let by: Vec<String> =
            self.by.iter().take(4).map(|one| format!("{} {:.2} s", one.name, one.s)).collect();
        let by = if by.is_empty() { "not known".to_owned() } else { by.join(", ") };
        format!(
            "{name} is not alone: others ran for {:.2} s on {} in {:.1} s (by name: {by})",
            self.others.as_secs_f64(),
            self.cpus.named(),
            self.length.as_secs_f64()
        )
    }
}

/// One program.
#[derive(Debug, Default)]
struct Watched {
    cpus: CpuSet,
    window: Option<Window>,
    since: Option<Timestamp>,
    unwatched: Duration,
    watched: Duration,
    others: Duration,
    stolen: Duration,
    by: BTreeMap<String, Duration>,
    /// Did others run in the last window?
    intruded: bool,
    known: RunTimes,
    trouble: Option<String>,
}

/// The begin of a window.
#[derive(Debug)]
struct Window {
    at: Timestamp,
    times: CpuTimes,
    run_time: BTreeMap<ThreadId, Duration>,
}

impl Watch {
    /// Looks at a sample under what is applied; gives the windows that ended with it and in which
    /// others ran.
    pub fn check(
        &mut self,
        sample: &Sample,
        placement: &Placement,
        topology: &Topology,
        machine: &mut impl Occupancy,
    ) -> Vec<Intrusion> {
        let programs = sample.programs.iter().filter(|p| p.class == Class::Alone);
        let measured: BTreeSet<ProgramId> = programs.map(|program| program.id).collect();
        self.0.retain(|id, _| measured.contains(id));
        let mut intrusions = Vec::new();
        for id in measured {
            let watched = self.0.entry(id).or_default();
            let cpus = cores(sample, placement, topology, id);
            intrusions.extend(watched.check(sample, id, cpus, machine));
        }
        intrusions
    }

    /// The state of a program; none if it is not measured.
    pub fn report(&self, id: ProgramId) -> Option<Quiet> {
        self.0.get(&id).map(Watched::report)
    }

    /// The state of all of them together; none if none was ever measured.
    pub fn total(&self) -> Option<Quiet> {
        self.0.values().map(Watched::report).reduce(|mut all, one| {
            all.watched_s += one.watched_s;
            all.unwatched_s += one.unwatched_s;
            all.others_s += one.others_s;
            all.stolen_s += one.stolen_s;
            all.by.extend(one.by);
            all.trouble = all.trouble.or(one.trouble);
            all
        })
    }
}

impl Watched {
    /// The window that ends with this sample, if others ran in it.
    fn check(
        &mut self,
        sample: &Sample,
        id: ProgramId,
        cpus: Option<CpuSet>,
        machine: &mut impl Occupancy,
    ) -> Option<Intrusion> {
        let since = self.since.replace(sample.at).unwrap_or(sample.at);
        let run_time: BTreeMap<ThreadId, Duration> =
            sample.threads.iter().filter(|t| t.program == id).map(|t| (t.id, t.run_time)).collect();
        let goes_on = cpus.as_ref() == Some(&self.cpus)
            && self
                .window
                .as_ref()
                .is_some_and(|window| window.run_time.keys().eq(run_time.keys()));
        if !goes_on {
            let begun = self.window.take().map_or(since, |window| window.at);
            self.unwatched += sample.at.since(begun);
            self.cpus = cpus.clone().unwrap_or_default();
        }
        cpus?;
        let window = match self.window.take() {
            None => {
                self.begin(sample.at, run_time, machine);
                return None;
            }
            Some(window) if sample.at.since(window.at) < WINDOW => {
                self.window = Some(window);
                return None;
            }
            Some(window) => window,
        };
        let length = sample.at.since(window.at);
        self.begin(sample.at, run_time, machine);
        let Some(now) = &self.window else {
            self.unwatched += length;
            return None;
        };
        let own = now.run_time.iter().map(|(id, run_time)| {
            run_time.saturating_sub(window.run_time.get(id).copied().unwrap_or_default())
        });
        let (used, stolen) = now.times.used_since(&window.times, &self.cpus);
        let others = used.saturating_sub(own.sum());
        self.watched += length;
        self.stolen += stolen;
        let hardware_threads = u32::try_from(self.cpus.len()).unwrap_or(u32::MAX);
        let before = self.intruded;
        self.intruded = others > LEAST.saturating_mul(hardware_threads);
        if !self.intruded {
            return None;
        }
        self.others += others;
        let own: BTreeSet<u32> = now.run_time.keys().map(|id| id.thread).collect();
        let by = self.name(window.times.at, &own, machine);
        let (cpus, begins) = (self.cpus.clone(), !before);
        Some(Intrusion { program: id, cpus, length, others, by, begins })
    }

    fn begin(
        &mut self,
        at: Timestamp,
        run_time: BTreeMap<ThreadId, Duration>,
        machine: &mut impl Occupancy,
    ) {
        match machine.times() {
            Ok(times) => {
                self.window = Some(Window { at, times, run_time });
                self.trouble = None;
            }
            Err(error) => self.trouble = Some(format!("/proc/stat cannot be read: {error}")),
        }
    }

    /// The threads that ran on these cores since a moment, as far as known, most run time first.
    fn name(
        &mut self,
        since: Duration,
        own: &BTreeSet<u32>,
        machine: &mut impl Occupancy,
    ) -> Vec<Intruder> {
        let by = self.known.since(since, &self.cpus, own, machine);
        for (name, run_time) in &by {
            if self.by.contains_key(name) || self.by.len() < MOST_NAMES {
                *self.by.entry(name.clone()).or_default() += *run_time;
            }
        }
        intruders(&by)
    }

    fn report(&self) -> Quiet {
        let open = self.since.zip(self.window.as_ref()).map(|(at, window)| at.since(window.at));
        Quiet {
            watched_s: self.watched.as_secs_f64(),
            unwatched_s: (self.unwatched + open.unwrap_or_default()).as_secs_f64(),
            others_s: self.others.as_secs_f64(),
            stolen_s: self.stolen.as_secs_f64(),
            by: intruders(&self.by),
            trouble: self.trouble.clone(),
        }
    }
}

/// All hardware threads of the cores that a program's threads are placed on; none while one of them
/// is not placed, or there is none.
fn cores(
    sample: &Sample,
    placement: &Placement,
    topology: &Topology,
    id: ProgramId,
) -> Option<CpuSet> {
    let mut all = CpuSet::new();
    for thread in sample.threads.iter().filter(|thread| thread.program == id) {
        let Target::Cpus(cpus) = &placement.get(&thread.id)?.target else { return None };
        for core in cpus.iter().filter_map(|cpu| topology.core_of(cpu)) {
            all = all.union(&core.cpus);
        }
    }
    (!all.is_empty()).then_some(all)
}

#[cfg(test)]
mod tests;
