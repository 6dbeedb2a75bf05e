//! What the two ways of reading took a program for.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use symbiont_counters::{Characterizations, characterize};
use symbiont_linux::switches::{Event, Kind, Reader, ReadyThreads, SwitchError};
use symbiont_machine::{Placement, ProgramId, Sample, Timestamp};
use symbiont_policy::{Phase, Phases, View};
use symbiont_topology::CpuSet;
use symbiont_trace::TraceError;

use super::Belief;

/// What a recording shows of a program.
#[derive(Debug, Default)]
pub(super) struct Recorded {
    /// What the policy took it for at the end of each quantum.
    pub beliefs: Vec<Belief>,
    /// The numbers of its threads.
    pub threads: BTreeSet<u32>,
}

/// Reads a recording again.
pub(super) fn recorded(path: &Path, program: ProgramId) -> Result<Recorded, TraceError> {
    let mut reader = symbiont_trace::Reader::open(path)?;
    let topology = reader.header().topology.clone();
    let policy = Phases::new(None);
    let applied = Placement::new();
    let mut found = Recorded::default();
    let mut before: Option<Sample> = None;
    while let Some(quantum) = reader.next_quantum()? {
        let now = quantum.sample;
        let known = before.as_ref().map_or_else(Characterizations::new, |b| characterize(b, &now));
        let phases = policy.programs(&View::new(&topology, &now, &known, &applied));
        let phase = phases.get(&program).map_or(Phase::Unknown, |program| program.phase);
        found.beliefs.push(Belief { at_ns: now.at.0, phase });
        let of_it = now.threads.iter().filter(|thread| thread.program == program);
        found.threads.extend(of_it.map(|thread| thread.id.thread));
        before = Some(now);
    }
    Ok(found)
}

/// Batches of events, each with the moment at which it was read.
type Log = Vec<(Timestamp, Vec<Event>)>;

/// The scheduler's tracepoints, kept as they are read.
#[derive(Debug)]
pub(super) struct Tracepoints {
    reader: Reader,
    log: Arc<Mutex<Log>>,
}

/// What they logged.
#[derive(Debug)]
pub(super) struct ReaderLog {
    log: Log,
    /// Events that were lost.
    pub lost: u64,
}

impl Tracepoints {
    pub fn start(cpus: &CpuSet) -> Result<Self, SwitchError> {
        let log = Arc::new(Mutex::new(Log::new()));
        let theirs = Arc::clone(&log);
        let reader = Reader::start(cpus, move |events, seen| {
            let mut log = theirs.lock().unwrap_or_else(PoisonError::into_inner);
            log.push((seen, events.to_vec()));
        })?;
        Ok(Self { reader, log })
    }

    pub fn stop(self) -> ReaderLog {
        let lost = self.reader.lost();
        drop(self.reader);
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        ReaderLog { log: std::mem::take(&mut log), lost }
    }
}

impl ReaderLog {
    /// What these threads' program would have been taken for. A belief lasts
    /// from when it was read.
    pub fn beliefs(&self, threads: &BTreeSet<u32>, threshold: f64) -> Vec<Belief> {
        let mut ready = ReadyThreads::default();
        let mut beliefs: Vec<Belief> = Vec::new();
        for (seen, events) in &self.log {
            let concerns = |event: &Event| match event.kind {
                Kind::Switch { from, to, .. } => threads.contains(&from) || threads.contains(&to),
                Kind::Wakeup { thread } => threads.contains(&thread),
            };
            events.iter().filter(|event| concerns(event)).for_each(|event| ready.apply(event));
            let count = threads.iter().filter(|t| ready.is_ready(**t) == Some(true)).count();
            let phase = match count {
                0 => Phase::Idle,
                count if count as f64 > threshold => Phase::Parallel,
                _ => Phase::Serial,
            };
            if beliefs.last().is_none_or(|last| last.phase != phase) {
                beliefs.push(Belief { at_ns: seen.0, phase });
            }
        }
        beliefs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beliefs_date_from_when_events_were_read() {
        let wakeup = |at, thread| Event { at: Timestamp(at), kind: Kind::Wakeup { thread } };
        let sleep = |at, from| Event {
            at: Timestamp(at),
            kind: Kind::Switch { from, from_is_ready: false, to: 0 },
        };
        let log = vec![
            (Timestamp(100), vec![wakeup(90, 1), wakeup(91, 9)]),
            (Timestamp(200), vec![wakeup(150, 2)]),
            (Timestamp(300), vec![sleep(250, 9)]),
            (Timestamp(400), vec![sleep(310, 2), sleep(390, 1)]),
        ];
        let reported = ReaderLog { log, lost: 0 };
        let beliefs = reported.beliefs(&[1, 2].into(), 1.1);
        let found: Vec<_> = beliefs.iter().map(|belief| (belief.at_ns, belief.phase)).collect();
        assert_eq!(found, [(100, Phase::Serial), (200, Phase::Parallel), (400, Phase::Idle)]);
    }
}
