//! The lines of a recording, and how a quantum is written as its changes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use symbiont_machine::{
    Assignment, Change, CoreCookie, Counting, Ended, Lifecycle, Move, Outcome, Placement, Program,
    ProgramId, RunState, Sample, Support, ThreadId, ThreadSample, Timestamp,
};
use symbiont_topology::{CpuSet, PuId, Topology};

use crate::counts::{CountingChange, Counts, nanos};

/// Newest version of the format that is written and read here.
pub const VERSION: u32 = 2;
/// The name of the format in the first line.
pub(crate) const FORMAT: &str = "symbiont recording";

/// The first line of a recording.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// The machine that was recorded.
    pub topology: Topology,
    /// What could be measured and enforced there.
    pub support: Support,
    /// Name of the policy that decided.
    pub policy: String,
    /// Period of the loop.
    pub quantum: Duration,
    /// The programs that were enrolled at the start.
    pub programs: Vec<Program>,
    /// The machine's processor, as its firmware names it, where that is known. Models and slowdowns are
    /// of one processor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor: Option<String>,
}

impl Header {
    /// Version of a recording that begins so: a reader of version 1 knows no
    /// signals that are counted.
    pub(crate) fn version(&self) -> u32 {
        if self.support.signals.keys().any(|signal| signal.is_counted()) { VERSION } else { 1 }
    }
}

/// One quantum of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Quantum {
    /// The machine at the start of the quantum.
    pub sample: Sample,
    /// The decisions of the policy.
    pub placement: Placement,
    /// The moves that were asked for, in order, and what became of each.
    pub moves: Vec<(Move, Outcome)>,
}

/// The part of the first line that identifies a recording; it is read first.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Preamble {
    pub format: String,
    pub version: u32,
}

/// The first line as written.
#[derive(Debug, Serialize)]
pub(crate) struct FirstLine<'a> {
    #[serde(flatten)]
    pub preamble: Preamble,
    #[serde(flatten)]
    pub header: &'a Header,
}

/// A thread's identity: process, thread, birth, generation.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Id(u32, u32, u64, u32);

impl From<ThreadId> for Id {
    fn from(id: ThreadId) -> Self {
        Self(id.process, id.thread, id.born, id.generation)
    }
}

impl From<Id> for ThreadId {
    fn from(Id(process, thread, born, generation): Id) -> Self {
        Self { process, thread, born, generation }
    }
}

/// A thread that is new or not as it was; times in nanoseconds.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ThreadEntry {
    id: Id,
    program: ProgramId,
    state: RunState,
    ran: u64,
    waited: u64,
    switches: u64,
    cpu: Option<PuId>,
    limit: Arc<CpuSet>,
    settled: bool,
    /// Not settled because its program starts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    starting: bool,
    /// Is it scheduled in a class of its own?
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    special: bool,
    /// Does a scheduler in the kernel keep it on its target?
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    kept: bool,
    /// Its cookie of core scheduling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cookie: Option<CoreCookie>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    counts: Vec<Counts>,
}

impl From<&ThreadSample> for ThreadEntry {
    fn from(t: &ThreadSample) -> Self {
        Self {
            id: t.id.into(),
            program: t.program,
            state: t.state,
            ran: nanos(t.run_time),
            waited: nanos(t.wait_time),
            switches: t.switches,
            cpu: t.cpu,
            limit: Arc::clone(&t.allowed),
            settled: t.lifecycle.is_settled(),
            starting: t.lifecycle == Lifecycle::Starting,
            special: t.lifecycle == Lifecycle::Special,
            kept: t.kept,
            cookie: t.cookie,
            counts: t.counts.iter().map(Counts::from).collect(),
        }
    }
}

impl From<ThreadEntry> for ThreadSample {
    fn from(t: ThreadEntry) -> Self {
        Self {
            id: t.id.into(),
            program: t.program,
            state: t.state,
            run_time: Duration::from_nanos(t.ran),
            wait_time: Duration::from_nanos(t.waited),
            switches: t.switches,
            cpu: t.cpu,
            allowed: t.limit,
            lifecycle: match (t.settled, t.starting) {
                _ if t.special => Lifecycle::Special,
                (true, _) => Lifecycle::Settled,
                (false, true) => Lifecycle::Starting,
                (false, false) => Lifecycle::Fresh,
            },
            kept: t.kept,
            cookie: t.cookie,
            counts: t.counts.into_iter().map(Into::into).collect(),
        }
    }
}

/// A quantum's line: how it differs from the one before.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct QuantumLine {
    at: Timestamp,
    /// All programs, if they are not as they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    programs: Option<Vec<Program>>,
    /// The counted events, if they changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    counting: Option<CountingChange>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    threads: Vec<ThreadEntry>,
    /// Threads that are not there any more, neither sampled nor placed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    gone: Vec<Id>,
    /// Counted threads that ended, with their programs and last counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    ended: Vec<(Id, ProgramId, Vec<Counts>)>,
    /// Assignments that are new or not as they were.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    wants: Vec<(Id, Assignment)>,
    /// Threads that are still there but not placed any more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    unplaced: Vec<Id>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    moves: Vec<(Id, Change, Outcome)>,
}

/// The last quantum that was written or read.
#[derive(Debug, Default)]
pub(crate) struct State {
    at: Timestamp,
    programs: Vec<Program>,
    counting: Option<Arc<Counting>>,
    threads: BTreeMap<ThreadId, ThreadSample>,
    placement: Placement,
}

impl State {
    /// Goes on to a quantum; gives the line that describes it.
    pub fn advance<'a>(
        &mut self,
        sample: &Sample,
        placement: &Placement,
        moves: impl IntoIterator<Item = (&'a Move, &'a Outcome)>,
    ) -> QuantumLine {
        let threads = sample.threads.iter().map(|t| (t.id, t.clone())).collect();
        let (changed, gone) = exchange(&mut self.threads, &threads);
        self.placement.retain(|id, _| !gone.contains(id));
        let (wants, unplaced) = exchange(&mut self.placement, placement);
        let programs = (self.programs != sample.programs).then(|| sample.programs.clone());
        self.programs.clone_from(&sample.programs);
        let counting = CountingChange::change(self.counting.as_ref(), sample.counting.as_ref());
        self.counting.clone_from(&sample.counting);
        let entries = |counts: &[_]| counts.iter().map(Counts::from).collect();
        self.at = sample.at;
        QuantumLine {
            at: sample.at,
            programs,
            counting,
            threads: changed.iter().map(|(_, t)| t.into()).collect(),
            gone: gone.into_iter().map(Id::from).collect(),
            ended: sample
                .ended
                .iter()
                .map(|e| (e.id.into(), e.program, entries(&e.counts)))
                .collect(),
            wants: wants.into_iter().map(|(id, assignment)| (id.into(), assignment)).collect(),
            unplaced: unplaced.into_iter().map(Id::from).collect(),
            moves: moves
                .into_iter()
                .map(|(m, outcome)| (m.thread.into(), m.change.clone(), outcome.clone()))
                .collect(),
        }
    }

    /// Goes on by a line; gives the quantum that it leads to, or why none.
    pub fn follow(&mut self, line: QuantumLine) -> Result<Quantum, String> {
        if line.at < self.at {
            let (at, last) = (line.at.0, self.at.0);
            return Err(format!("time runs backwards, from {last} ns to {at} ns"));
        }
        self.at = line.at;
        for id in line.gone.into_iter().map(ThreadId::from) {
            self.placement.remove(&id);
            if self.threads.remove(&id).is_none() {
                return Err(format!("{id} is gone before it was there"));
            }
        }
        for id in line.unplaced {
            self.placement.remove(&id.into());
        }
        let threads = line.threads.into_iter().map(ThreadSample::from);
        self.threads.extend(threads.map(|t| (t.id, t)));
        self.placement.extend(line.wants.into_iter().map(|(id, wants)| (id.into(), wants)));
        if let Some(programs) = line.programs {
            self.programs = programs;
        }
        if let Some(counting) = line.counting {
            self.counting = counting.into();
        }
        let ended = line.ended.into_iter().map(|(id, program, counts)| Ended {
            id: id.into(),
            program,
            counts: counts.into_iter().map(Into::into).collect(),
        });
        let moves = line.moves.into_iter();
        Ok(Quantum {
            sample: Sample {
                at: self.at,
                threads: self.threads.values().cloned().collect(),
                programs: self.programs.clone(),
                counting: self.counting.clone(),
                ended: ended.collect(),
            },
            placement: self.placement.clone(),
            moves: moves
                .map(|(id, change, outcome)| (Move { thread: id.into(), change }, outcome))
                .collect(),
        })
    }
}

/// Makes `old` equal to `new`; gives what is new or changed, and what is gone.
fn exchange<V: Clone + PartialEq>(
    old: &mut BTreeMap<ThreadId, V>,
    new: &BTreeMap<ThreadId, V>,
) -> (Vec<(ThreadId, V)>, Vec<ThreadId>) {
    let gone: Vec<ThreadId> = old.keys().filter(|id| !new.contains_key(id)).copied().collect();
    for id in &gone {
        old.remove(id);
    }
    let differs = |(id, value): &(&ThreadId, &V)| old.get(id) != Some(value);
    let changed: Vec<_> =
        new.iter().filter(differs).map(|(id, value)| (*id, value.clone())).collect();
    old.extend(changed.iter().cloned());
    (changed, gone)
}
