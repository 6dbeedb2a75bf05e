//! Processes grouped into jobs, as a user knows them.
//!
//! # Problem
//! A user starts a command and thinks of it as one program, whatever processes it makes. Watched
//! from outside there are processes only.
//!
//! # Approach
//! A job is a process with the descendants in its process group, which a shell makes for each job and
//! a service manager for each service. Shells in a group run other programs: so a job begins at the
//! topmost process of the group that is no shell, and a shell with none above it is a job by itself.
//! What a script starts belongs to the script until it is [`GROWN`]: commands that come and go are
//! no jobs of their own. A process stays in its job until it replaces its program.
//!
//! # Properties
//! - A build is one job, whatever runs its recipes (`a_build_is_one_job`).
//! - Programs that a script started are jobs once they are old enough
//!   (`programs_of_a_script_are_jobs_once_they_are_grown`).
//! - Another process group is another job (`another_process_group_is_another_job`).
//! - A shell that came meanwhile is a passing one (`shells_that_came_meanwhile_pass`).
//! - A process keeps its job when its parent ends (`an_orphan_stays_in_its_job`).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use symbiont_machine::{ProgramId, Timestamp};

use crate::processes::Process;

/// How old a process is that a shell started, for it to be a job of its own.
pub const GROWN: Duration = Duration::from_secs(1);
/// Programs that run others on behalf of a user.
const SHELLS: [&str; 16] = [
    "sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "tcsh", "csh", "busybox", "sudo",
    "su", "doas", "timeout", "time",
];
/// Longest chain of parents that is followed.
const DEEPEST: usize = 64;

/// A job: its first process and that one's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// The process.
    pub process: u32,
    /// The name of its program.
    pub name: String,
    /// Is it a shell that was not there yet when watching began? Such a one ends soon, as a rule.
    pub is_passing: bool,
}

/// Which job each process belongs to.
#[derive(Debug, Default)]
pub struct Jobs {
    members: BTreeMap<u32, Member>,
    jobs: BTreeMap<ProgramId, Job>,
    /// Jobs by their first process, with the time of its birth.
    numbers: BTreeMap<(u32, u64), ProgramId>,
    next: u32,
    began: bool,
}

#[derive(Debug, Clone, Copy)]
struct Member {
    program: ProgramId,
    generation: u32,
    since: Timestamp,
    /// Was it there when watching began?
    is_old: bool,
    /// Is it decided for good?
    is_settled: bool,
}

/// A process on the way from a member of a group to its top.
struct Link {
    process: u32,
    found: Process,
    is_grown: bool,
}

impl Jobs {
    /// Sorts the processes that live at a moment, each with its count of execs; `get` looks one up.
    pub fn sort(
        &mut self,
        at: Timestamp,
        alive: &BTreeMap<u32, u32>,
        get: impl Fn(u32) -> Option<Process>,
    ) {
        self.members.retain(|process, _| alive.contains_key(process));
        for (&process, &generation) in alive {
            let known = self.members.get(&process).copied();
            if known.is_some_and(|known| known.is_settled && known.generation == generation) {
                continue;
            }
            let (since, is_old) = known.map_or((at, !self.began), |k| (k.since, k.is_old));
            let mut member =
                Member { program: ProgramId(0), generation, since, is_old, is_settled: false };
            // It is its own ancestor when it is asked how old that is.
            self.members.insert(process, known.unwrap_or(member));
            let chain = self.chain(process, at, &get);
            let job = match (job_of(&chain), known) {
                (Some((link, is_settled)), _) => {
                    member.is_settled = is_settled;
                    self.number(link)
                }
                // It has ended meanwhile.
                (None, Some(known)) => known.program,
                (None, None) => {
                    self.members.remove(&process);
                    continue;
                }
            };
            member.program = job;
            self.members.insert(process, member);
        }
        self.began = true;
        let used: BTreeSet<ProgramId> = self.members.values().map(|m| m.program).collect();
        self.numbers.retain(|_, program| used.contains(program));
    }

    /// The job of a process.
    pub fn program_of(&self, process: u32) -> Option<ProgramId> {
        self.members.get(&process).map(|member| member.program)
    }

    /// A job, also one that has ended.
    pub fn get(&self, program: ProgramId) -> Option<&Job> {
        self.jobs.get(&program)
    }

    /// From a process up to the top of its group.
    fn chain(
        &self,
        process: u32,
        at: Timestamp,
        get: &impl Fn(u32) -> Option<Process>,
    ) -> Vec<Link> {
        let mut chain: Vec<Link> = Vec::new();
        let mut next = process;
        while let Some(found) = get(next).filter(|_| chain.len() < DEEPEST) {
            if chain.last().is_some_and(|below| below.found.group != found.group) {
                break;
            }
            let member = self.members.get(&next);
            let is_grown = member.is_none_or(|m| m.is_old || at.since(m.since) >= GROWN);
            let process = std::mem::replace(&mut next, found.parent);
            chain.push(Link { process, found, is_grown });
        }
        chain
    }

    fn number(&mut self, first: &Link) -> ProgramId {
        let program = *self.numbers.entry((first.process, first.found.born)).or_insert_with(|| {
            self.next += 1;
            ProgramId(self.next)
        });
        // The name may be another one since an exec.
        let (process, name) = (first.process, first.found.name.clone());
        let is_old = self.members.get(&process).is_none_or(|member| member.is_old);
        let is_passing = !is_old && is_shell(&name);
        self.jobs.insert(program, Job { process, name, is_passing });
        program
    }
}

fn is_shell(name: &str) -> bool {
    SHELLS.contains(&name.trim_start_matches('-'))
}

/// The first process of the job, and whether that is final; none of an empty chain.
fn job_of(chain: &[Link]) -> Option<(&Link, bool)> {
    let is_program = |link: &Link| !is_shell(&link.found.name);
    let first = chain.iter().rposition(is_program).unwrap_or(0);
    let above = chain.get(first..)?;
    let grown = above.iter().position(|link| link.is_grown);
    let at = grown.or(above.len().checked_sub(1))?;
    Some((above.get(at)?, at == 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Processes: number, name, parent, group.
    type World = [(u32, &'static str, u32, u32)];

    fn at(millis: u64) -> Timestamp {
        Timestamp(1 + millis * 1_000_000)
    }

    fn sorted(jobs: &mut Jobs, world: &World, millis: u64) -> Vec<(u32, String)> {
        let alive = world.iter().map(|(process, ..)| (*process, 0)).collect();
        let get = |asked: u32| {
            let (process, name, parent, group) = world.iter().find(|found| found.0 == asked)?;
            let born = u64::from(*process);
            Some(Process { name: (*name).to_owned(), parent: *parent, group: *group, born })
        };
        jobs.sort(at(millis), &alive, get);
        let of = |(process, ..): &(u32, &str, u32, u32)| {
            let job = jobs.get(jobs.program_of(*process).unwrap()).unwrap();
            (*process, format!("{} {}", job.name, job.process))
        };
        world.iter().map(of).collect()
    }

    #[track_caller]
    fn gives(given: &[(u32, String)], wanted: &[(u32, &str)]) {
        let wanted: Vec<_> = wanted.iter().map(|(at, job)| (*at, (*job).to_owned())).collect();
        assert_eq!(given, wanted);
    }

    #[test]
    fn a_build_is_one_job() {
        let world = vec![
            (10, "bash", 1, 10),
            (20, "make", 10, 20),
            (21, "sh", 20, 20),
            (22, "cc1plus", 21, 20),
        ];
        let given = sorted(&mut Jobs::default(), &world, 0);
        gives(&given, &[(10, "bash 10"), (20, "make 20"), (21, "make 20"), (22, "make 20")]);
    }

    #[test]
    fn another_process_group_is_another_job() {
        let world = vec![(20, "tmux", 1, 20), (30, "xz", 20, 30), (31, "xz", 30, 30)];
        let given = sorted(&mut Jobs::default(), &world, 0);
        gives(&given, &[(20, "tmux 20"), (30, "xz 30"), (31, "xz 30")]);
    }

    #[test]
    fn programs_of_a_script_are_jobs_once_they_are_grown() {
        let mut jobs = Jobs::default();
        let mut world = vec![(10, "sh", 1, 10), (11, "xz", 10, 10), (12, "sh", 10, 10)];
        let given = sorted(&mut jobs, &world, 0);
        gives(&given, &[(10, "sh 10"), (11, "xz 11"), (12, "sh 12")]);
        world.extend([(13, "gcc", 10, 10), (14, "sed", 12, 10)]);
        let given = sorted(&mut jobs, &world, 500);
        gives(&given[3..], &[(13, "sh 10"), (14, "sh 12")]);
        let given = sorted(&mut jobs, &world, 1600);
        gives(&given[3..], &[(13, "gcc 13"), (14, "sed 14")]);
    }

    #[test]
    fn shells_that_came_meanwhile_pass() {
        let mut jobs = Jobs::default();
        let mut world = vec![(10, "bash", 1, 10), (20, "sh", 10, 20)];
        sorted(&mut jobs, &world, 0);
        world.extend([(30, "sh", 10, 30), (40, "xz", 10, 40)]);
        sorted(&mut jobs, &world, 500);
        let passing = [10, 20, 30, 40]
            .map(|process| jobs.get(jobs.program_of(process).unwrap()).unwrap().is_passing);
        assert_eq!(passing, [false, false, true, false]);
    }

    #[test]
    fn an_orphan_stays_in_its_job() {
        let mut jobs = Jobs::default();
        let mut world = vec![(20, "make", 1, 20), (21, "cc", 20, 20)];
        sorted(&mut jobs, &world, 0);
        world.remove(0);
        world[0].2 = 1;
        gives(&sorted(&mut jobs, &world, 100), &[(21, "make 20")]);
    }

    #[test]
    fn a_number_that_is_used_again_is_another_job() {
        let mut jobs = Jobs::default();
        let get = |born| move |_| Some(Process { name: "x".into(), parent: 1, group: 7, born });
        jobs.sort(at(0), &BTreeMap::from([(7, 0)]), get(1));
        let first = jobs.program_of(7);
        jobs.sort(at(1), &BTreeMap::new(), get(1));
        jobs.sort(at(2), &BTreeMap::from([(7, 0)]), get(2));
        assert!(first.is_some() && jobs.program_of(7) != first);
    }

    #[test]
    fn a_circle_of_parents_ends() {
        let world = vec![(20, "sh", 21, 20), (21, "sh", 20, 20)];
        gives(&sorted(&mut Jobs::default(), &world, 0), &[(20, "sh 20"), (21, "sh 21")]);
    }
}
