//! A summary of a run by program, in bounded memory.
//!
//! # Problem
//! A policy gives each thread a reason, and perhaps a predicted slowdown, every quantum. A user wants
//! to know at the end where a program ran, with which co-runners, and why; a run may last for weeks,
//! and its threads come and go by the million.
//!
//! # Approach
//! [`Summary::add`] takes one quantum after the other: the sample, what the threads did since the
//! sample before, and the placement. It keeps sums for each program, and for a bounded number of
//! threads. [`Summary::report`] gives shares and means.
//!
//! # Terms and units
//! *Thread quantum*: one thread in one quantum in which it ran. *Co-runner*: another enrolled thread
//! that ran in the same quantum and was last seen on the same core. On a core of one hardware thread
//! the two took turns. *Run time* is attributed to the CPU on which the thread was seen at the end of
//! the quantum. A thread that begins and ends within a quantum is not seen. *Pattern*: a reason without
//! its figures, so that reasons that differ in figures alone are counted together.
//!
//! # Properties
//! - Run time is credited to the CPU where a thread was seen (`run_time_goes_to_the_cpu_where_a_thread_was_seen`).
//! - Threads of one core in one quantum are co-runners, sleepers are not (`co_runners_share_a_core_and_a_quantum`).
//! - Reasons are counted by pattern, the most frequent first, and the last one is kept in full
//!   (`reasons_are_counted_without_their_figures`).
//! - Where no slowdown is predicted, there is none (`no_prediction_is_no_slowdown`).
//! - Threads at once are counted at their most, and waiting is summed (`threads_at_once_and_waiting_are_summed`).
//! - Memory does not grow with the number of threads that came and went, or of different reasons
//!   (`memory_is_bounded_whatever_comes_and_goes`).

mod accounts;
mod reasons;
mod report;

use std::collections::{BTreeMap, BTreeSet};

use symbiont_counters::Characterizations;
use symbiont_machine::{Placement, ProgramId, Sample, ThreadId, ThreadSample};
use symbiont_topology::{CoreId, PuId, Topology};

use accounts::{ProgramAccount, ThreadAccount};
pub use report::{
    CoRunner, CoRunners, CpuShare, PredictedSlowdown, ProgramSummary, ReasonCount, SummaryReport,
    ThreadSummary,
};

/// Threads that are listed one by one at most; of those that ended, the ones that ran longest.
pub const MOST_THREADS: usize = 128;
/// Different reasons that are distinguished for each program at most.
pub const MOST_REASONS: usize = 16;

/// A thread's numbers and birth: it stays the same over an exec.
type ThreadKey = (u32, u32, u64);

fn key(id: &ThreadId) -> ThreadKey {
    (id.process, id.thread, id.born)
}

/// Sums over the quanta of a run.
#[derive(Debug, Clone)]
pub struct Summary {
    cores: BTreeMap<PuId, CoreId>,
    smt_width: usize,
    quanta: u64,
    programs: BTreeMap<ProgramId, ProgramAccount>,
    threads: BTreeMap<ThreadKey, ThreadAccount>,
    /// Threads of the last sample.
    living: BTreeSet<ThreadKey>,
}

impl Summary {
    /// Of programs on a machine.
    #[must_use]
    pub fn new(topology: &Topology) -> Self {
        let cpus = topology.cpus();
        let core = |cpu| Some((cpu, topology.core_of(cpu)?.id));
        Self {
            cores: cpus.iter().filter_map(core).collect(),
            smt_width: topology.smt_width(),
            quanta: 0,
            programs: BTreeMap::new(),
            threads: BTreeMap::new(),
            living: BTreeSet::new(),
        }
    }

    /// Adds a quantum: the sample, what the threads did since the sample before, and what was decided.
    pub fn add(&mut self, sample: &Sample, known: &Characterizations, placement: &Placement) {
        self.quanta += 1;
        for program in &sample.programs {
            self.programs.entry(program.id).or_default().name.clone_from(&program.name);
        }
        self.greet(sample);
        let co_running = CoRunning::of(sample, known, &self.cores);
        let mut threads: BTreeMap<ProgramId, u64> = BTreeMap::new();
        for thread in &sample.threads {
            let program = self.programs.entry(thread.program).or_default();
            let count = threads.entry(thread.program).or_default();
            *count += 1;
            program.most_threads = program.most_threads.max(*count);
            if let Some(did) = known.get(&thread.id) {
                program.wait_time += did.over.mul_f64((did.ready - did.running).max(0.0));
            }
            let account = self.threads.get_mut(&key(&thread.id));
            let ran = known.get(&thread.id).map(|did| did.over.mul_f64(did.running));
            if let Some(ran) = ran.filter(|ran| !ran.is_zero()) {
                let (cpu, others) = (thread.cpu, co_running.of_thread(thread, &self.cores));
                program.sums.ran(ran, cpu, others.as_ref());
                if let Some(account) = account {
                    account.sums.ran(ran, cpu, others.as_ref());
                }
            }
            let Some(assignment) = placement.get(&thread.id) else { continue };
            program.reasons.add(&assignment.reason);
            program.sums.predicted(assignment.predicted_slowdown);
            if let Some(account) = self.threads.get_mut(&key(&thread.id)) {
                account.reason.clone_from(&assignment.reason);
                account.sums.predicted(assignment.predicted_slowdown);
            }
        }
    }

    /// Counts the threads that the sample before did not have, and lists them as far as there is room.
    fn greet(&mut self, sample: &Sample) {
        let living: BTreeSet<ThreadKey> = sample.threads.iter().map(|t| key(&t.id)).collect();
        for thread in &sample.threads {
            let key = key(&thread.id);
            if self.living.contains(&key) {
                if let Some(account) = self.threads.get_mut(&key) {
                    account.program = thread.program;
                }
                continue;
            }
            self.programs.entry(thread.program).or_default().threads += 1;
            if self.threads.len() >= MOST_THREADS {
                let ended = self.threads.iter().filter(|(key, _)| !living.contains(key));
                let Some(least) = ended.min_by_key(|(_, t)| t.sums.run_time).map(|(key, _)| *key)
                else {
                    continue;
                };
                self.threads.remove(&least);
            }
            self.threads.insert(key, ThreadAccount::of(thread.program));
        }
        self.living = living;
    }

    /// The summary.
    #[must_use]
    pub fn report(&self) -> SummaryReport {
        report::report(self)
    }
}

/// Threads that ran in one quantum, by program, on each core.
struct CoRunning {
    cores: BTreeMap<CoreId, BTreeMap<ProgramId, u64>>,
}

impl CoRunning {
    fn of(sample: &Sample, known: &Characterizations, cores: &BTreeMap<PuId, CoreId>) -> Self {
        let mut found: BTreeMap<CoreId, BTreeMap<ProgramId, u64>> = BTreeMap::new();
        for thread in &sample.threads {
            let ran = known.get(&thread.id).is_some_and(|did| did.running > 0.0);
            let core = thread.cpu.filter(|_| ran).and_then(|cpu| cores.get(&cpu));
            if let Some(core) = core {
                *found.entry(*core).or_default().entry(thread.program).or_default() += 1;
            }
        }
        Self { cores: found }
    }

    /// The programs of a thread's co-runners; none if it is not known where it ran.
    fn of_thread(
        &self,
        thread: &ThreadSample,
        cores: &BTreeMap<PuId, CoreId>,
    ) -> Option<BTreeSet<ProgramId>> {
        let there = self.cores.get(cores.get(&thread.cpu?)?)?;
        let others = there
            .iter()
            .filter(|(program, count)| **count > u64::from(**program == thread.program));
        Some(others.map(|(program, _)| *program).collect())
    }
}

#[cfg(test)]
mod tests;
