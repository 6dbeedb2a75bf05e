//! How decisions differ from the recorded ones.

use std::collections::BTreeMap;

use serde::Serialize;
use symbiont_machine::{Assignment, Placement, Priority, ProgramId, Sample, Target};

/// Different targets that are distinguished for each program at most.
const MOST_TARGETS: usize = 32;

/// Decisions for a program, next to the recorded ones.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Difference {
    /// The program.
    pub program: String,
    /// Decisions: one for each thread in each quantum.
    pub decisions: u64,
    /// Those that are as recorded, in place and priority.
    pub same: u64,
    /// Those of another place than recorded.
    pub other_place: u64,
    /// Those of another priority than recorded.
    pub other_priority: u64,
    /// Those for which there is no recorded decision.
    pub not_recorded: u64,
    /// The last one that differs.
    pub last: Option<Differing>,
    /// How often each place is decided, the most frequent first.
    pub places: Vec<PlaceCount>,
    /// Decisions for other places than these.
    pub other_places: u64,
}

/// A decision that differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Differing {
    /// The thread, in words.
    pub thread: String,
    /// Quantum of the recording, from 0.
    pub quantum: u64,
    pub decided: String,
    pub decided_reason: String,
    pub recorded: String,
    pub recorded_reason: String,
}

/// A place, in words, and how often it is decided.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlaceCount {
    pub place: String,
    pub decisions: u64,
}

/// Counts them, quantum after quantum.
#[derive(Debug, Default)]
pub struct Differences {
    quanta: u64,
    programs: BTreeMap<ProgramId, (Difference, BTreeMap<String, u64>)>,
}

impl Differences {
    pub fn add(&mut self, sample: &Sample, recorded: &Placement, decided: &Placement) {
        for program in &sample.programs {
            let (counts, _) = self.programs.entry(program.id).or_default();
            counts.program.clone_from(&program.name);
        }
        for thread in &sample.threads {
            let Some(now) = decided.get(&thread.id) else { continue };
            let (counts, places) = self.programs.entry(thread.program).or_default();
            counts.decisions += 1;
            let place = words(&now.target);
            let room = places.len() < MOST_TARGETS;
            match places.get_mut(&place) {
                Some(count) => *count += 1,
                None if room => drop(places.insert(place, 1)),
                None => counts.other_places += 1,
            }
            let Some(then) = recorded.get(&thread.id) else {
                counts.not_recorded += 1;
                continue;
            };
            let (place, priority) = (now.target != then.target, now.priority != then.priority);
            counts.other_place += u64::from(place);
            counts.other_priority += u64::from(priority);
            if place || priority {
                counts.last = Some(Differing {
                    thread: thread.id.to_string(),
                    quantum: self.quanta,
                    decided: both(now),
                    decided_reason: now.reason.clone().into_owned(),
                    recorded: both(then),
                    recorded_reason: then.reason.clone().into_owned(),
                });
            } else {
                counts.same += 1;
            }
        }
        self.quanta += 1;
    }

    pub fn report(self) -> Vec<Difference> {
        let sorted = |(counts, places): (Difference, BTreeMap<String, u64>)| {
            let place = |(place, decisions)| PlaceCount { place, decisions };
            let mut places: Vec<_> = places.into_iter().map(place).collect();
            places.sort_by_key(|place| std::cmp::Reverse(place.decisions));
            Difference { places, ..counts }
        };
        self.programs.into_values().map(sorted).collect()
    }
}

fn words(target: &Target) -> String {
    match target {
        Target::Os => "left to the OS".to_owned(),
        Target::Cpus(cpus) => format!("on {}", cpus.named()),
    }
}

fn both(assignment: &Assignment) -> String {
    let place = words(&assignment.target);
    match assignment.priority {
        Priority::Normal => place,
        Priority::Boosted(levels) => format!("{place}, boosted by {levels}"),
        Priority::Idle => format!("{place}, only when nothing else runs"),
    }
}

#[cfg(test)]
mod tests {
    use symbiont_machine::{Lifecycle, Program, ProgramId, RunState, ThreadId, ThreadSample};

    use super::*;

    fn thread(number: u32) -> ThreadSample {
        ThreadSample {
            id: ThreadId { process: 7, thread: number, born: 0, generation: 0 },
            program: ProgramId(0),
            state: RunState::Runnable,
            run_time: std::time::Duration::ZERO,
            wait_time: std::time::Duration::ZERO,
            switches: 0,
            cpu: None,
            allowed: std::sync::Arc::new("0-3".parse().unwrap()),
            lifecycle: Lifecycle::Settled,
            kept: false,
            cookie: None,
            counts: Vec::new(),
        }
    }

    #[test]
    fn places_and_priorities_are_compared() {
        let sample = Sample {
            threads: (7..11).map(thread).collect(),
            programs: vec![Program::new(ProgramId(0), "make")],
            ..Sample::default()
        };
        let ids: Vec<ThreadId> = sample.threads.iter().map(|thread| thread.id).collect();
        let on = |cpus: &str, why: &'static str| Assignment::on(cpus.parse().unwrap(), why);
        let boosted = Assignment { priority: Priority::Boosted(10), ..on("1", "serial") };
        let recorded: Placement =
            [(ids[0], on("0", "a")), (ids[1], on("0", "b")), (ids[2], on("1", "c"))].into();
        let decided: Placement = [
            (ids[0], on("0", "another reason is no difference")),
            (ids[1], Assignment::os("d")),
            (ids[2], boosted),
            (ids[3], on("0-1", "new")),
        ]
        .into();
        let mut differences = Differences::default();
        differences.add(&sample, &recorded, &decided);
        let report = differences.report().remove(0);
        assert_eq!((report.program.as_str(), report.decisions, report.same), ("make", 4, 1));
        let counts = (report.other_place, report.other_priority, report.not_recorded);
        assert_eq!(counts, (1, 1, 1));
        let last = report.last.unwrap();
        assert_eq!(last.thread, "thread 9 of process 7");
        assert_eq!(
            (last.decided.as_str(), last.recorded.as_str()),
            ("on CPU 1, boosted by 10", "on CPU 1")
        );
        assert_eq!((last.decided_reason.as_str(), last.recorded_reason.as_str()), ("serial", "c"));
        let places: Vec<_> = report.places.iter().map(|place| place.place.as_str()).collect();
        assert_eq!(places, ["left to the OS", "on CPU 0", "on CPU 1", "on CPUs 0-1"]);
    }
}
