//! The machine that advice is about: this host, only watched, with jobs as its programs.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::Context;
use symbiont_linux::machine::{LinuxError, Observer, Wait};
use symbiont_linux::observe::WatchError;
use symbiont_machine::{
    Machine, Move, Outcome, Program, ProgramId, Sample, Signals, Support, Timestamp,
};
use symbiont_topology::Topology;

use super::jobs::{Job, Jobs};
use crate::processes::Processes;

/// How often processes are looked for that no watched one made.
const LOOK: Duration = Duration::from_secs(1);
/// How all processes are enrolled where they are found by themselves: jobs are distinguished afterwards.
const ALL: &str = "all";

/// This host with its jobs.
pub struct Watch<W> {
    observer: Observer<W>,
    subject: Subject,
    ended: bool,
}

/// What is watched.
enum Subject {
    /// All processes of the user.
    All { processes: Processes, jobs: Jobs, program: ProgramId, looked: Option<Looked> },
    /// Processes that the user named, each with its descendants.
    Named(BTreeMap<ProgramId, Job>),
}

/// When processes were looked for, and when the last sample was taken.
#[derive(Debug, Clone, Copy)]
struct Looked {
    at: Timestamp,
    last: Timestamp,
}

impl<W: Wait> Watch<W> {
    /// All processes of the user.
    pub fn all(mut observer: Observer<W>) -> Self {
        let program = observer.add_program(ALL);
        let (processes, jobs) = (Processes::of_this_user(), Jobs::default());
        let subject = Subject::All { processes, jobs, program, looked: None };
        Self { observer, subject, ended: false }
    }

    /// These processes only.
    ///
    /// # Errors
    /// When there is no such process.
    pub fn named(mut observer: Observer<W>, pids: &[u32]) -> anyhow::Result<Self> {
        let processes = Processes::of_this_user();
        let mut jobs = BTreeMap::new();
        for &process in pids {
            let named = processes.of_thread(process).zip(processes.get(process));
            let (leader, found) =
                named.with_context(|| format!("--pid {process}: there is no such process"))?;
            anyhow::ensure!(
                leader == process,
                "--pid {process}: this is a thread of process {leader}; name the process"
            );
            // A descendant of another one that is named comes with that one.
            if observer.program_of(process).is_some() {
                continue;
            }
            let program = observer.add_program(&found.name);
            observer
                .enrol_in(program, process)
                .with_context(|| format!("--pid {process} cannot be watched"))?;
            jobs.insert(program, Job { process, name: found.name, is_passing: false });
        }
        Ok(Self { observer, subject: Subject::Named(jobs), ended: false })
    }

    /// A job that was seen.
    pub fn job(&self, program: ProgramId) -> Option<&Job> {
        match &self.subject {
            Subject::All { jobs, .. } => jobs.get(program),
            Subject::Named(jobs) => jobs.get(&program),
        }
    }

    /// Enrols processes that are not known yet, once in a while.
    fn find(&mut self) -> Result<(), LinuxError> {
        let Subject::All { processes, program, looked, .. } = &mut self.subject else {
            return Ok(());
        };
        if looked.is_some_and(|looked| looked.last.since(looked.at) < LOOK) {
            return Ok(());
        }
        *looked = None;
        for process in processes.unknown(|process| self.observer.program_of(process).is_some()) {
            match self.observer.enrol_in(*program, process) {
                Ok(()) | Err(WatchError::NoSuchProcess { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// Puts the jobs of a sample's processes in the place of its one program.
fn separate_jobs(sample: &mut Sample, processes: &Processes, jobs: &mut Jobs) {
    let alive = sample.threads.iter().map(|thread| (thread.id.process, thread.id.generation));
    jobs.sort(sample.at, &alive.collect(), |process| processes.get(process));
    sample.threads.retain_mut(|thread| {
        let program = jobs.program_of(thread.id.process);
        program.map(|program| thread.program = program).is_some()
    });
    for ended in &mut sample.ended {
        if let Some(program) = jobs.program_of(ended.id.process) {
            ended.program = program;
        }
    }
    let programs: BTreeSet<ProgramId> = sample.threads.iter().map(|t| t.program).collect();
    let named = |id: ProgramId| Program::new(id, jobs.get(id).map_or("", |job| &job.name));
    sample.programs = programs.into_iter().map(named).collect();
}

impl<W: Wait> Machine for Watch<W> {
    type Error = LinuxError;

    fn topology(&self) -> &Topology {
        self.observer.topology()
    }

    fn support(&self) -> &Support {
        self.observer.support()
    }

    fn measure(&mut self, signals: &Signals) {
        self.observer.measure(signals);
    }

    fn sample(&mut self) -> Result<Sample, LinuxError> {
        self.find()?;
        let mut sample = self.observer.sample()?;
        match &mut self.subject {
            Subject::All { processes, jobs, looked, .. } => {
                let at = looked.map_or(sample.at, |looked| looked.at);
                *looked = Some(Looked { at, last: sample.at });
                separate_jobs(&mut sample, processes, jobs);
            }
            Subject::Named(_) => self.ended |= sample.threads.is_empty(),
        }
        Ok(sample)
    }

    fn apply(&mut self, moves: &[Move]) -> Result<Vec<Outcome>, LinuxError> {
        self.observer.apply(moves)
    }

    fn wait(&mut self, quantum: Duration) -> Result<(), LinuxError> {
        self.observer.wait(quantum)
    }

    fn ended(&self) -> bool {
        self.ended || self.observer.ended()
    }
}
