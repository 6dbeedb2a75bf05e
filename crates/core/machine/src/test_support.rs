//! For tests of other rooms: threads and a scripted machine.
//!
//! [`FakeMachine`] holds threads in memory. A test changes them between steps
//! and says how the machine answers moves; nothing happens by itself except
//! that time passes in [`Machine::wait`].

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use symbiont_topology::{CpuSet, Topology};

use crate::{
    Ability, Change, Counting, Ended, Lifecycle, Machine, Move, Outcome, Placement, Program,
    ProgramId, RunState, Sample, Signal, Signals, Support, Target, ThreadId, ThreadSample,
    Timestamp,
};

/// A sleeping, settled thread of program `program`, which is also its process.
#[must_use]
pub fn thread(program: u32, number: u32, allowed: &CpuSet) -> ThreadSample {
    ThreadSample {
        id: ThreadId { process: 1000 + program, thread: number, born: 0, generation: 0 },
        program: ProgramId(program),
        state: RunState::Sleeping,
        run_time: Duration::ZERO,
        wait_time: Duration::ZERO,
        switches: 0,
        cpu: None,
        allowed: Arc::new(allowed.clone()),
        lifecycle: Lifecycle::Settled,
        kept: false,
        cookie: None,
        counts: Vec::new(),
    }
}

/// A machine that can do everything.
#[must_use]
pub fn full_support() -> Support {
    Support {
        signals: Signal::ALL.map(|signal| (signal, Ability::Full)).into(),
        affinity: Ability::Full,
        boost: Ability::Full,
        idle_class: Ability::Full,
        scheduler: Support::no_scheduler(),
        enrolment: Ability::Full,
    }
}

/// Has a thread run on one of these hardware threads.
fn go(thread: &mut ThreadSample, cpus: &CpuSet) {
    if !thread.cpu.is_some_and(|cpu| cpus.contains(cpu)) {
        thread.cpu = cpus.first();
    }
}

/// How a [`FakeMachine`] answers a move.
pub type Answer = Box<dyn FnMut(&Move) -> Outcome + Send>;

/// A machine in memory.
pub struct FakeMachine {
    topology: Topology,
    /// What it claims to support; everything at first.
    pub support: Support,
    /// Its clock.
    pub now: Timestamp,
    /// Its threads; a test adds, changes and removes them.
    pub threads: BTreeMap<ThreadId, ThreadSample>,
    /// What the counts of its threads mean; a test sets it together with them.
    pub counting: Option<Arc<Counting>>,
    /// Counted threads that ended; the next sample takes them along.
    pub ended: Vec<Ended>,
    /// The signals that it was asked to measure; none if it was not asked.
    pub measured: Option<Signals>,
    /// Masks of ours; threads not listed have their user's own.
    pub masks: BTreeMap<ThreadId, CpuSet>,
    /// All moves that were asked for, in order, with their outcomes.
    pub log: Vec<(Move, Outcome)>,
    /// Settings that are applied no more; the next call of `lapsed` takes them along.
    pub lapsed: Vec<(Move, Outcome)>,
    /// The decision that it was given last, to keep by itself.
    pub kept: Placement,
    /// The threads that are insisted on.
    pub insisted: Vec<(ThreadId, CpuSet)>,
    /// Overrules the machine's own answer (done, or gone for a thread that it
    /// does not have) where it gives something.
    pub answer: Option<Answer>,
}

impl FakeMachine {
    /// A machine without threads at time 0.
    #[must_use]
    pub fn new(topology: Topology) -> Self {
        Self {
            topology,
            support: full_support(),
            now: Timestamp(0),
            threads: BTreeMap::new(),
            counting: None,
            ended: Vec::new(),
            measured: None,
            masks: BTreeMap::new(),
            log: Vec::new(),
            lapsed: Vec::new(),
            kept: Placement::new(),
            insisted: Vec::new(),
            answer: None,
        }
    }

    /// Has other hardware threads from now on, as after a CPU went offline.
    pub fn change_topology(&mut self, topology: Topology) {
        self.topology = topology;
    }

    /// Adds a runnable thread that may run anywhere.
    pub fn start(&mut self, program: u32, number: u32) -> ThreadId {
        let mut new = thread(program, number, &self.topology.cpus());
        new.state = RunState::Runnable;
        let id = new.id;
        self.threads.insert(id, new);
        id
    }

    fn carry_out(&mut self, asked: &Move) -> Outcome {
        if !self.threads.contains_key(&asked.thread) {
            return Outcome::Gone;
        }
        let outcome = self.answer.as_mut().map_or(Outcome::Done, |answer| answer(asked));
        if outcome == Outcome::Done {
            let thread = self.threads.get_mut(&asked.thread);
            match &asked.change {
                Change::Affinity(Target::Os) => {
                    self.masks.remove(&asked.thread);
                }
                Change::Affinity(Target::Cpus(cpus)) => {
                    self.masks.insert(asked.thread, cpus.clone());
                    thread.into_iter().for_each(|thread| go(thread, cpus));
                }
                Change::Nudge(cpus) => thread.into_iter().for_each(|thread| go(thread, cpus)),
                Change::Priority(_) => {}
            }
        }
        outcome
    }
}

impl Machine for FakeMachine {
    type Error = Infallible;

    fn topology(&self) -> &Topology {
        &self.topology
    }

    fn support(&self) -> &Support {
        &self.support
    }

    fn measure(&mut self, signals: &Signals) {
        self.measured = Some(signals.clone());
    }

    fn sample(&mut self) -> Result<Sample, Infallible> {
        let mut programs: Vec<ProgramId> = self.threads.values().map(|t| t.program).collect();
        programs.sort();
        programs.dedup();
        Ok(Sample {
            at: self.now,
            threads: self.threads.values().cloned().collect(),
            programs: programs
                .into_iter()
                .map(|id| Program::new(id, format!("program {}", id.0)))
                .collect(),
            counting: self.counting.clone(),
            ended: std::mem::take(&mut self.ended),
        })
    }

    fn lapsed(&mut self) -> Vec<(Move, Outcome)> {
        std::mem::take(&mut self.lapsed)
    }

    fn apply(&mut self, moves: &[Move]) -> Result<Vec<Outcome>, Infallible> {
        let outcomes: Vec<Outcome> = moves.iter().map(|m| self.carry_out(m)).collect();
        self.log.extend(moves.iter().cloned().zip(outcomes.iter().cloned()));
        Ok(outcomes)
    }

    /// As if each had to be nudged once since the last call.
    fn keep(&mut self, placement: &Placement) {
        self.kept.clone_from(placement);
    }

    fn insist(&mut self, on: Vec<(ThreadId, CpuSet)>) -> u64 {
        std::mem::replace(&mut self.insisted, on).len() as u64
    }

    fn wait(&mut self, quantum: Duration) -> Result<(), Infallible> {
        let nanos = u64::try_from(quantum.as_nanos()).unwrap_or(u64::MAX);
        self.now = Timestamp(self.now.0.saturating_add(nanos));
        Ok(())
    }
}
