//! A machine whose programs slow each other down as pairs of real programs were measured to.
//!
//! # Problem
//! Which programs suit each other on a core is what a described machine knows least: judged by measured
//! pairs, its own choices are little better than chance. A policy that learns from the machine should be judged
//! by what real programs do to each other.
//!
//! # Approach
//! Cores have two hardware threads. A thread runs at its isolated speed over the slowdown that was measured next
//! to the program on the other hardware thread; threads that share a hardware thread take turns. Only
//! instructions and cycles are counted, with noise; isolated speeds are drawn at random, and no policy knows
//! them. Optionally programs change their phase (from then on they behave as another program of the matrix),
//! end and are replaced, or drift in speed. A thread with a new co-runner is stalled for a moment. The OS leaves
//! threads where they are, and fills idle hardware threads.
//!
//! # Terms and units
//! *Matrix*: slowdown (time together / time alone) of each program next to each. *Throughput*: sum of 1/slowdown
//! over threads, in a quantum, less the costs of moves.
//!
//! # Properties
//! - Threads run as fast as the matrix says, and that is what is counted (`pairs_run_as_measured`).
//! - Equal seeds give equal samples (`equal_seeds_give_equal_samples`).
//! - Moves cost, phases change, programs arrive (`what_was_set_up_happens`).

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use rand::{Rng, SeedableRng};
use rand_distr::StandardNormal;
use rand_pcg::Pcg64Mcg;
use symbiont_machine::{
    Ability, Change, GroupReading, Lifecycle, Machine, Move, Outcome, Program, ProgramId, RunState,
    Sample, Signal, Signals, Support, Target, ThreadId, ThreadSample, Timestamp,
};
use symbiont_topology::{CpuSet, PuId, SyntheticError, Topology};

use crate::activity::{Activity, Cycle};
use crate::events::Reader;

/// The catalogue of its counters.
const CATALOGUE: &str = "xsim";
/// Cycles in a nanosecond.
const FREQUENCY: f64 = 2.0;
/// Instructions per cycle alone are drawn between these.
const ALONE: std::ops::Range<f64> = 0.5..2.5;

/// Slowdown of each program next to each.
#[derive(Debug, Clone, PartialEq)]
pub struct Matrix {
    /// Names of the programs.
    pub programs: Vec<String>,
    /// Victim by co-runner.
    pub slowdowns: Vec<Vec<f64>>,
}

/// What happens on it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Events {
    /// Standard deviation of ln of what is counted in a quantum.
    pub noise: f64,
    /// For how long a thread with a new co-runner stands still.
    pub move_costs: Duration,
    /// How often a program, by chance, changes its phase.
    pub phases: Option<Duration>,
    /// How often a program, by chance, ends and another one arrives.
    pub arrivals: Option<Duration>,
    /// Standard deviation of ln by which a speed alone has changed after a minute.
    pub drift: f64,
}

impl Default for Events {
    /// 3 % of noise, a move costs 1 ms, and nothing changes.
    fn default() -> Self {
        let move_costs = Duration::from_millis(1);
        Self { noise: 0.03, move_costs, phases: None, arrivals: None, drift: 0.0 }
    }
}

#[derive(Debug, Clone)]
struct Thread {
    id: ThreadId,
    /// Its name is that of a program of the matrix.
    program: usize,
    /// It does what this program of the matrix does.
    does: usize,
    /// ln by which its speed alone has changed.
    drift: f64,
    cpu: PuId,
    target: Option<CpuSet>,
    /// The threads that it shared its core with.
    with: Vec<ThreadId>,
    ran_ns: f64,
    waited_ns: f64,
    switches: u64,
    opened: Timestamp,
    /// What was counted since then.
    counted: Activity,
}

/// The machine.
#[derive(Debug)]
pub struct MeasuredMachine {
    matrix: Matrix,
    events: Events,
    topology: Topology,
    online: Arc<CpuSet>,
    support: Support,
    reader: Reader,
    measured: Signals,
    /// IPC alone by program of the matrix.
    alone: Vec<f64>,
    threads: Vec<Thread>,
    now: u64,
    born: u32,
    random: Pcg64Mcg,
    throughput: f64,
}

impl MeasuredMachine {
    /// One with as many cores as these programs of a matrix need, each on a hardware thread by chance.
    ///
    /// # Errors
    /// When there is no program.
    pub fn new(
        matrix: Matrix,
        programs: &[usize],
        events: Events,
        seed: u64,
    ) -> Result<Self, SyntheticError> {
        let topology = Topology::synthetic(&format!("core:{} smt:2", programs.len().div_ceil(2)))?;
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let alone = matrix.programs.iter().map(|_| random.random_range(ALONE)).collect();
        let mut cpus: Vec<PuId> = topology.cpus().iter().collect();
        rand::seq::SliceRandom::shuffle(&mut cpus[..], &mut random);
        let mut machine = Self {
            matrix,
            events,
            online: Arc::new(topology.cpus()),
            topology,
            support: support(),
            reader: Reader::idle(),
            measured: Signals::new(),
            alone,
            threads: Vec::new(),
            now: 0,
            born: 0,
            random,
            throughput: 0.0,
        };
        for (program, cpu) in programs.iter().zip(cpus) {
            let thread = machine.thread(*program, cpu);
            machine.threads.push(thread);
        }
        machine.meet();
        Ok(machine)
    }

    /// Throughput of the last quantum.
    #[must_use]
    pub fn throughput(&self) -> f64 {
        self.throughput
    }

    /// What threads do now: programs of the matrix.
    pub fn does(&self) -> impl Iterator<Item = usize> + '_ {
        self.threads.iter().map(|thread| thread.does)
    }

    fn thread(&mut self, program: usize, cpu: PuId) -> Thread {
        self.born += 1;
        let number = self.born;
        let born = u64::from(number);
        Thread {
            id: ThreadId { process: number, thread: number, born, generation: 0 },
            program,
            does: program,
            drift: 0.0,
            cpu,
            target: None,
            with: Vec::new(),
            ran_ns: 0.0,
            waited_ns: 0.0,
            switches: 0,
            opened: Timestamp(self.now),
            counted: Activity::default(),
        }
    }

    fn core(&self, cpu: PuId) -> CpuSet {
        self.topology.siblings(cpu).cloned().unwrap_or_else(|| CpuSet::from(cpu))
    }

    /// The threads that share a core with one, by number.
    fn others(&self, at: usize) -> Vec<usize> {
        let core = self.core(self.threads[at].cpu);
        let here = |other: &usize| *other != at && core.contains(self.threads[*other].cpu);
        (0..self.threads.len()).filter(here).collect()
    }

    /// Notes which are together now; gives those that have a new co-runner.
    fn meet(&mut self) -> Vec<bool> {
        let mut met = Vec::with_capacity(self.threads.len());
        for at in 0..self.threads.len() {
            let with: Vec<ThreadId> =
                self.others(at).iter().map(|other| self.threads[*other].id).collect();
            met.push(with.iter().any(|other| !self.threads[at].with.contains(other)));
            self.threads[at].with = with;
        }
        met
    }

    /// Speed of a thread while it runs, in parts of that alone.
    fn speed(&self, at: usize) -> f64 {
        let Thread { cpu, does, .. } = &self.threads[at];
        let slowdown = |other: usize| self.matrix.slowdowns[*does][self.threads[other].does];
        let apart: Vec<f64> = (self.others(at).into_iter())
            .filter(|other| self.threads[*other].cpu != *cpu)
            .map(|other| slowdown(other).recip())
            .collect();
        if apart.is_empty() { 1.0 } else { apart.iter().sum::<f64>() / apart.len() as f64 }
    }

    fn advance(&mut self, quantum: Duration) {
        let length = quantum.as_nanos() as f64;
        let met = self.meet();
        self.throughput = 0.0;
        for (at, met) in met.into_iter().enumerate() {
            let sharing =
                self.threads.iter().filter(|other| other.cpu == self.threads[at].cpu).count();
            let still = if met { self.events.move_costs.as_nanos() as f64 / length } else { 0.0 };
            let works = 1.0 - still.min(1.0);
            let speed = self.speed(at) * works;
            self.throughput += speed / sharing as f64;
            let minutes = length / 6e10;
            let walk = self.events.drift * minutes.sqrt() * self.normal();
            let noise = self.events.noise * self.normal();
            let thread = &mut self.threads[at];
            thread.drift += walk;
            let ran = length / sharing as f64;
            let cycles = ran * FREQUENCY;
            let ipc = self.alone[thread.does] * speed * (thread.drift + noise).exp();
            let mut more = Activity { instructions: cycles * ipc, ..Activity::default() };
            more.cycles[Cycle::Retiring as usize] = cycles;
            thread.counted += &more;
            thread.ran_ns += ran;
            thread.waited_ns += length - ran;
            thread.switches += u64::from(sharing > 1);
        }
        let before = self.now;
        self.now = self.now.saturating_add(u64::try_from(quantum.as_nanos()).unwrap_or(u64::MAX));
        let passed = |each: Option<Duration>, now: u64| {
            each.filter(|each| !each.is_zero()).map_or(0, |each| u128::from(now) / each.as_nanos())
        };
        // However short the period, each thread is concerned but once a quantum on average.
        let most = self.threads.len();
        for _ in
            (passed(self.events.phases, before)..passed(self.events.phases, self.now)).take(most)
        {
            let (at, does) = (self.any(self.threads.len()), self.any(self.matrix.programs.len()));
            self.threads[at].does = does;
        }
        let arrivals = passed(self.events.arrivals, before)..passed(self.events.arrivals, self.now);
        for _ in arrivals.take(most) {
            let (at, program) =
                (self.any(self.threads.len()), self.any(self.matrix.programs.len()));
            self.threads[at] = self.thread(program, self.threads[at].cpu);
        }
    }

    fn any(&mut self, of: usize) -> usize {
        self.random.random_range(0..of)
    }

    fn normal(&mut self) -> f64 {
        self.random.sample(StandardNormal)
    }

    fn carry_out(&mut self, asked: &Move) -> Outcome {
        let Some(at) = self.threads.iter().position(|thread| thread.id == asked.thread) else {
            return Outcome::Gone;
        };
        let (cpus, holds) = match &asked.change {
            Change::Priority(_) => return Outcome::Done,
            Change::Affinity(Target::Os) => {
                self.threads[at].target = None;
                return Outcome::Done;
            }
            Change::Affinity(Target::Cpus(cpus)) => (cpus, true),
            Change::Nudge(cpus) => (cpus, false),
        };
        let target = cpus.intersection(&self.online);
        if target.is_empty() {
            return Outcome::Refused(format!("{cpus} has none of the CPUs {}", self.online));
        }
        if !target.contains(self.threads[at].cpu) {
            let load = |cpu: &PuId| self.threads.iter().filter(|other| other.cpu == *cpu).count();
            if let Some(cpu) = target.iter().min_by_key(load) {
                self.threads[at].cpu = cpu;
            }
        }
        if holds {
            self.threads[at].target = Some(target);
        }
        Outcome::Done
    }

    /// As the OS does: a hardware thread that idles takes a thread that waits, one of its core first.
    fn balance(&mut self) {
        for idle in self.online.iter() {
            if self.threads.iter().any(|thread| thread.cpu == idle) {
                continue;
            }
            let core = self.core(idle);
            let waits = |at: &usize| {
                let Thread { cpu, target, .. } = &self.threads[*at];
                let many = self.threads.iter().filter(|other| other.cpu == *cpu).count();
                many > 1 && target.as_ref().is_none_or(|target| target.contains(idle))
            };
            let all = (0..self.threads.len()).filter(waits);
            if let Some(at) = all.min_by_key(|at| !core.contains(self.threads[*at].cpu)) {
                self.threads[at].cpu = idle;
            }
        }
    }
}

impl Machine for MeasuredMachine {
    type Error = Infallible;

    fn topology(&self) -> &Topology {
        &self.topology
    }

    fn support(&self) -> &Support {
        &self.support
    }

    fn measure(&mut self, signals: &Signals) {
        let counted: Signals =
            signals.intersection(&Signals::from([Signal::Ipc])).copied().collect();
        if counted == self.measured {
            return;
        }
        // The catalogue is this crate's own.
        let Ok(reader) = Reader::new(CATALOGUE, &counted) else { return };
        (self.reader, self.measured) = (reader, counted);
        let now = Timestamp(self.now);
        for thread in &mut self.threads {
            (thread.opened, thread.counted) = (now, Activity::default());
        }
    }

    fn sample(&mut self) -> Result<Sample, Self::Error> {
        let read = |thread: &Thread| {
            let groups = self.reader.group_sizes().iter().enumerate().map(|(group, size)| {
                let time = Duration::from_nanos(self.now.saturating_sub(thread.opened.0));
                let count = |event| self.reader.count(group, event, &thread.counted).0 as u64;
                let counts = (0..*size).map(count).collect();
                Ok(GroupReading { opened: thread.opened, enabled: time, running: time, counts })
            });
            ThreadSample {
                id: thread.id,
                program: ProgramId(thread.id.process),
                state: RunState::Runnable,
                run_time: Duration::from_nanos(thread.ran_ns as u64),
                wait_time: Duration::from_nanos(thread.waited_ns as u64),
                switches: thread.switches,
                cpu: Some(thread.cpu),
                allowed: Arc::clone(&self.online),
                lifecycle: Lifecycle::Settled,
                kept: false,
                cookie: None,
                counts: groups.collect(),
            }
        };
        let mut threads: Vec<ThreadSample> = self.threads.iter().map(read).collect();
        threads.sort_by_key(|thread| thread.id);
        let name = |thread: &Thread| self.matrix.programs[thread.program].clone();
        let programs: BTreeMap<u32, String> =
            self.threads.iter().map(|thread| (thread.id.process, name(thread))).collect();
        let programs = programs.into_iter().map(|(id, name)| Program::new(ProgramId(id), name));
        Ok(Sample {
            at: Timestamp(self.now),
            threads,
            programs: programs.collect(),
            counting: self.reader.counting(),
            ended: Vec::new(),
        })
    }

    fn apply(&mut self, moves: &[Move]) -> Result<Vec<Outcome>, Self::Error> {
        let outcomes = moves.iter().map(|asked| self.carry_out(asked)).collect();
        self.balance();
        Ok(outcomes)
    }

    fn wait(&mut self, quantum: Duration) -> Result<(), Self::Error> {
        self.advance(quantum);
        Ok(())
    }
}

/// Instructions and cycles, and all actuators.
fn support() -> Support {
    let ability = |signal: Signal| match signal {
        Signal::RunStates | Signal::Ipc => Ability::Full,
        _ => Ability::Absent("measured pairs say how fast programs are, and no more".to_owned()),
    };
    Support {
        signals: Signal::ALL.into_iter().map(|signal| (signal, ability(signal))).collect(),
        affinity: Ability::Full,
        boost: Ability::Full,
        idle_class: Ability::Full,
        scheduler: Support::no_scheduler(),
        enrolment: Ability::Full,
    }
}

#[cfg(test)]
mod tests;
