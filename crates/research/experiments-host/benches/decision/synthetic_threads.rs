//! A machine of synthetic threads: they count as they are set, and go where they are sent.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use symbiont_counters::catalogue::Catalogue;
use symbiont_machine::{
    Ability, Change, Counting, GroupReading, Lifecycle, Machine, Move, Outcome, Program, ProgramId,
    RunState, Sample, Signal, Signals, Support, Target, ThreadId, ThreadSample, Timestamp,
};
use symbiont_topology::Topology;

/// Cycles of a quantum of 100 ms at 3 GHz.
const CYCLES: f64 = 3e8;
/// Instructions for each cycle.
const IPC: f64 = 0.5;
/// Events of the coarse stack's parts; what else is counted of a stack is a part of one of these.
const PARTS: [&str; 5] = [
    "PM_GRP_CMPL",
    "PM_CMPLU_STALL",
    "PM_GCT_NOSLOT_CYC",
    "PM_CMPLU_STALL_THRD",
    "PM_NTCG_ALL_FIN",
];
/// Share of threads that enter a new phase in a quantum.
const NEW: f64 = 0.05;
/// Share of cycles of any other event.
const OTHER: f64 = 0.02;

/// What a thread does in its phase: most cycles go to one of the first two parts, by how much.
#[derive(Debug, Clone, Copy)]
struct Lean {
    part: usize,
    by: f64,
}

impl Lean {
    fn draw(random: &mut Pcg64Mcg) -> Self {
        Self { part: random.random_range(0..2), by: random.random_range(0.4..0.7) }
    }
}

/// The machine.
pub struct SyntheticThreads {
    topology: Topology,
    support: Support,
    counting: Arc<Counting>,
    threads: BTreeMap<ThreadId, ThreadSample>,
    leans: Vec<Lean>,
    programs: Vec<Program>,
    now: Timestamp,
    random: Pcg64Mcg,
}

impl SyntheticThreads {
    /// A thread for each hardware thread, each a program of its own, all of which run; where is not
    /// known before they are sent somewhere.
    pub fn new(topology: Topology, catalogue: &Catalogue, signals: &Signals) -> Self {
        let counting = Arc::new(catalogue.counting(signals));
        let limit = Arc::new(topology.cpus());
        let empty = |events: usize| {
            Ok(GroupReading {
                opened: Timestamp(1),
                enabled: Duration::ZERO,
                running: Duration::ZERO,
                counts: vec![0; events],
            })
        };
        let (mut threads, mut programs) = (BTreeMap::new(), Vec::new());
        for (number, _) in (0_u32..).zip(limit.iter()) {
            let process = 1000 + number;
            let id = ThreadId { process, thread: number, born: 0, generation: 0 };
            let program = ProgramId(number);
            programs.push(Program::new(program, format!("program {number}")));
            let thread = ThreadSample {
                id,
                program,
                state: RunState::Runnable,
                run_time: Duration::ZERO,
                wait_time: Duration::ZERO,
                switches: 0,
                cpu: None,
                allowed: Arc::clone(&limit),
                lifecycle: Lifecycle::Settled,
                kept: false,
                cookie: None,
                counts: counting.groups.iter().map(|group| empty(group.events.len())).collect(),
            };
            threads.insert(id, thread);
        }
        let support = Support {
            signals: Signal::ALL.map(|signal| (signal, Ability::Full)).into(),
            affinity: Ability::Full,
            boost: Ability::Full,
            idle_class: Ability::Full,
            scheduler: Support::no_scheduler(),
            enrolment: Ability::Full,
        };
        let mut random = Pcg64Mcg::seed_from_u64(7);
        let leans = threads.values().map(|_| Lean::draw(&mut random)).collect();
        Self { topology, support, counting, threads, leans, programs, now: Timestamp(0), random }
    }

    /// Each thread counts for another quantum; groups take turns.
    fn count(&mut self, quantum: Duration) {
        let turns = self.counting.groups.len().max(1) as u32;
        for (thread, lean) in self.threads.values_mut().zip(&mut self.leans) {
            thread.run_time += quantum;
            if self.random.random_bool(NEW) {
                *lean = Lean::draw(&mut self.random);
            }
            let mut share = |event: &str| {
                let shaken = 1.0 + 0.05 * self.random.random_range(0.0..1.0);
                let part = PARTS.iter().position(|part| *part == event);
                match (part, event) {
                    (Some(part), _) if part == lean.part => lean.by * shaken,
                    (Some(_), _) => 0.08 * shaken,
                    (None, "PM_RUN_CYC") => 1.0,
                    (None, "PM_RUN_INST_CMPL") => IPC,
                    (None, _) => OTHER * shaken,
                }
            };
            for (reading, group) in thread.counts.iter_mut().zip(&self.counting.groups) {
                let Ok(reading) = reading else { continue };
                reading.enabled += quantum;
                reading.running += quantum / turns;
                for (count, event) in reading.counts.iter_mut().zip(&group.events) {
                    *count += (CYCLES / f64::from(turns) * share(event)) as u64;
                }
            }
        }
    }
}

impl Machine for SyntheticThreads {
    type Error = Infallible;

    fn topology(&self) -> &Topology {
        &self.topology
    }

    fn support(&self) -> &Support {
        &self.support
    }

    fn sample(&mut self) -> Result<Sample, Infallible> {
        Ok(Sample {
            at: self.now,
            threads: self.threads.values().cloned().collect(),
            programs: self.programs.clone(),
            counting: Some(Arc::clone(&self.counting)),
            ended: Vec::new(),
        })
    }

    fn apply(&mut self, moves: &[Move]) -> Result<Vec<Outcome>, Infallible> {
        for one in moves {
            if let Change::Affinity(Target::Cpus(cpus)) = &one.change {
                if let Some(thread) = self.threads.get_mut(&one.thread) {
                    thread.cpu = cpus.first();
                }
            }
        }
        Ok(vec![Outcome::Done; moves.len()])
    }

    fn wait(&mut self, quantum: Duration) -> Result<(), Infallible> {
        let nanos = u64::try_from(quantum.as_nanos()).unwrap_or(u64::MAX);
        self.now = Timestamp(self.now.0.saturating_add(nanos));
        self.count(quantum);
        Ok(())
    }
}
