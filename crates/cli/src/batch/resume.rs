//! Which jobs an earlier batch has done, and which of its jobs still run.
//!
//! # Approach
//! A job is known by what it does: its command and its folder. Of equal jobs as many are done as ended well, the
//! first ones, and the next ones run. So nothing is run again because a line was added or moved.
//!
//! # Properties
//! - Of equal jobs as many are done as ended well (`of_equal_jobs_as_many_are_done_as_ended_well`).
//! - No line's number or place matters (`jobs_are_known_by_what_they_do`).

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::OwnedFd;

use symbiont_linux::{ProcessBirth, boot_id};

use super::progress::{Placed, Progress};
use super::record::{Begun, Ended, JobProcesses, JobRecord};

/// A run of a job that an earlier batch started and that has not ended.
#[derive(Debug)]
pub struct Survivor {
    /// Where its block is.
    pub at: u64,
    /// Its begin.
    pub begun: Begun,
    /// What ends when it ends.
    pub process: Process,
}

/// A process that ends when a job ends.
#[derive(Debug)]
pub struct Process {
    /// The process.
    pub pidfd: OwnedFd,
    /// Its number.
    pub pid: u32,
    /// Is it the job's keeper? Else the job itself, without a keeper.
    pub is_keeper: bool,
}

/// What an earlier batch has left.
#[derive(Debug, Default)]
pub struct Earlier {
    /// Digests of jobs that ended well, one for each.
    pub well: Vec<String>,
    /// Jobs that run.
    pub running: Vec<Survivor>,
    /// Names of jobs whose end is not known: not even a keeper is left.
    pub unknown: Vec<String>,
    /// What output files of jobs that ended well or run are called.
    pub names: BTreeSet<String>,
}

/// The process to wait for: the keeper, or what it left behind; none: no process is left.
pub fn process_of(held: &JobProcesses) -> Option<Process> {
    if held.boot != boot_id() {
        return None;
    }
    let process = |birth: ProcessBirth, is_keeper| {
        let pidfd = birth.hold_alive()?;
        Some(Process { pidfd, pid: birth.process, is_keeper })
    };
    process(held.keeper, true).or_else(|| process(held.job?, false))
}

/// Looks at all that was recorded, and records what has ended without a keeper.
pub fn earlier(progress: &Progress) -> io::Result<Earlier> {
    let mut earlier = Earlier::default();
    for (at, record) in progress.records()? {
        let JobRecord { begun, held: Some(held), ended: None } = record else {
            earlier.add_ended(record);
            continue;
        };
        if let Some(process) = process_of(&held) {
            earlier.names.insert(begun.name.clone());
            earlier.running.push(Survivor { at, begun, process });
            continue;
        }
        // It may have ended since it was read.
        match progress.read(at)?.filter(|record| record.ended.is_some()) {
            Some(record) => earlier.add_ended(record),
            None => {
                progress.end(at, &Ended::unknown())?;
                earlier.unknown.push(begun.name);
            }
        }
    }
    Ok(earlier)
}

/// The digests of jobs that ended well, as far as was recorded; changes nothing.
pub fn well(records: &[Placed]) -> Vec<String> {
    let mut earlier = Earlier::default();
    records.iter().for_each(|(_, record)| earlier.add_ended(record.clone()));
    earlier.well
}

impl Earlier {
    fn add_ended(&mut self, record: JobRecord) {
        if record.ended.is_some_and(|ended| ended.is_well()) {
            self.well.push(record.begun.job);
            self.names.insert(record.begun.name);
        }
    }
}

/// Which jobs are done and which run.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Assignment {
    /// The numbers of those that are done.
    pub done: BTreeSet<usize>,
    /// Those that run: their numbers, and which of the running ones each is.
    pub running: Vec<(usize, usize)>,
    /// Those that run and are none of the jobs.
    pub others: Vec<usize>,
}

/// Finds the jobs, given by number and digest, in what ended well and in what runs.
pub fn assign<'a>(
    jobs: impl Iterator<Item = (usize, &'a str)>,
    well: &[String],
    running: &[&str],
) -> Assignment {
    let mut left_well: BTreeMap<&str, usize> = BTreeMap::new();
    well.iter().for_each(|digest| *left_well.entry(digest).or_default() += 1);
    let mut left_running: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (place, digest) in running.iter().enumerate().rev() {
        left_running.entry(digest).or_default().push(place);
    }
    let mut assignment = Assignment::default();
    for (number, digest) in jobs {
        if let Some(count) = left_well.get_mut(digest).filter(|count| **count > 0) {
            *count -= 1;
            assignment.done.insert(number);
        } else if let Some(place) = left_running.get_mut(digest).and_then(Vec::pop) {
            assignment.running.push((number, place));
        }
    }
    assignment.others = left_running.into_values().flatten().collect();
    assignment.others.sort_unstable();
    assignment
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(jobs: &[(usize, &str)], well: &[&str], running: &[&str]) -> Assignment {
        let well: Vec<String> = well.iter().map(|digest| (*digest).to_owned()).collect();
        assign(jobs.iter().copied(), &well, running)
    }

    #[test]
    fn of_equal_jobs_as_many_are_done_as_ended_well() {
        let jobs = [(1, "a"), (2, "a"), (3, "b"), (4, "a"), (5, "a")];
        let assignment = found(&jobs, &["a", "a"], &["a"]);
        assert_eq!(assignment.done, BTreeSet::from([1, 2]));
        assert_eq!((assignment.running, assignment.others), (vec![(4, 0)], vec![]));
    }

    #[test]
    fn jobs_are_known_by_what_they_do() {
        let (well, running) = (["c", "a"], ["x", "d", "b"]);
        let assignment = found(&[(7, "b"), (9, "a"), (12, "e"), (40, "c")], &well, &running);
        assert_eq!(assignment.done, BTreeSet::from([9, 40]));
        assert_eq!((assignment.running, assignment.others), (vec![(7, 2)], vec![0, 1]));
    }
}
