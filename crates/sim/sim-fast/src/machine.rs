//! The simulated machine itself: programs on described hardware, in virtual time.
//!
//! # Problem
//! A policy must see the simulated machine as it sees a real one: threads that come and go, counters that
//! err, moves that cost, an operating system that places what no policy placed.
//!
//! # Approach
//! Time passes from event to event; between two events everything runs at a constant rate, which the physics
//! ([`Contention`]) returns whenever a thread starts or stops running or enters another phase. Events: a phase
//! or a part of a program ends, a tick of the operating system ([`crate::os`]) while it has work, a cost is
//! paid off, the quantum ends. Ends of phases that lie close together are one event ([`crate::program`]).
//!
//! Programs are launched into *slots*; a program that has completed its instructions is launched again, so
//! that the load stays (Feliu et al., section 5). Or a slot runs several programs in turn, each once, and
//! stays empty then (Morad et al., Fig. 5). Each launch makes new threads. Memory is on the node where a
//! program first ran, or on the nearest that has any. No other programs run on the machine.
//!
//! Costs: a core whose number of running threads changes so that it must repartition stands still for the mode
//! switch; a thread that is switched in stands still for the context switch, and for the move if it comes from
//! elsewhere. The physics adds the lines that it must bring into its caches. Not modelled: lines that a waiting
//! thread keeps in the caches next to the core (L1, translation); threads of one program share code, no data.
//!
//! # Terms and units
//! Times are nanoseconds since the machine started. *Run*: one execution of a slot's program, from launch to
//! completion.
//!
//! # Properties
//! - Equal seeds give equal samples, byte by byte (`equal_seeds_give_equal_samples`).
//! - No count runs backwards (`no_count_runs_backwards`).
//! - Work is conserved (`work_is_conserved`, `what_is_done_is_counted`), and no hardware thread is idle while a
//!   thread waits that may run there (`no_thread_waits_next_to_an_idle_place`).
//! - A program does the same each time (`a_program_does_the_same_alone_and_with_co_runners`), and a slot with an
//!   order runs its programs one after the other (`a_slot_runs_its_programs_in_turn`).
//! - Cutting a span of time into quanta changes nothing but caches that fill (`cutting_time_changes_nothing`,
//!   `what_happens_elsewhere_fills_nobodys_caches`).

mod advance;
#[cfg(test)]
mod against_linux;
mod contention;
mod launch;
mod meter;
#[cfg(test)]
mod tests;
mod threads;
#[cfg(test)]
mod warm_tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;
use symbiont_counters::catalogue::CatalogueError;
use symbiont_machine::{
    Ability, Change, Ended, GroupCounts, Lifecycle, Machine, Move, Outcome, Program, ProgramId,
    RunState, Sample, Signal, Signals, Support, Target, ThreadId, ThreadSample, Timestamp,
};
use symbiont_topology::{CpuSet, NodeId, PuId, Topology};

pub use self::contention::{Contention, Fidelity, Runner, Switches, ThreadRate};
pub use self::meter::Errors;
use self::threads::{ProgramRun, Thread};
use crate::activity::Activity;
use crate::description::{Costs, Description};
use crate::events::Reader;
pub use crate::os::Generation;
use crate::os::{LoadBalancer, Map};
use crate::program::SimProgram;

/// What can go wrong with a simulated machine.
#[derive(Debug, thiserror::Error)]
pub enum SimError<E: std::error::Error + 'static> {
    /// A program has more threads ready than there is any use for.
    #[error(
        "{threads} threads on {places} hardware threads: a simulated machine takes at most {most} \
         for each", most = MOST
    )]
    TooMany {
        /// Threads asked for.
        threads: usize,
        /// Hardware threads.
        places: usize,
    },
    /// The hardware threads that programs were limited to are none of this
    /// machine's.
    #[error("the hardware threads {allowed} are none of this machine's ({online})")]
    Allowed {
        /// The allowed CPUs asked for.
        allowed: CpuSet,
        /// What the machine has.
        online: CpuSet,
    },
    /// A profile holds a phase that cannot be simulated.
    #[error("program '{program}', phase {phase}: {reason}")]
    Phase {
        /// The program.
        program: String,
        /// Its phase, from 0.
        phase: usize,
        /// What the physics says.
        reason: E,
    },
    /// A program's profile has no phase at all.
    #[error("program '{0}' has an empty profile; capture it again")]
    NoPhase(String),
    /// A slot is to run a program that there is not.
    #[error("a slot is to run program {program}, but there are {programs} (counted from 0)")]
    Order {
        /// The program asked for.
        program: usize,
        /// Programs there are.
        programs: usize,
    },
    /// The machine's event catalogue cannot be read.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
}

/// Threads that one hardware thread takes at most.
const MOST: usize = 64;

/// How a machine is set up.
#[derive(Debug, Clone, Default)]
pub struct SimOptions {
    /// Seed of everything that is random.
    pub seed: u64,
    /// The errors of its counters.
    pub errors: Errors,
    /// Where programs may run; none: everywhere.
    pub allowed: Option<CpuSet>,
    /// What mode switches, context switches and migrations cost; none: what the description says.
    pub costs: Option<Costs>,
    /// Hardware threads that each core is set up for at least, however few
    /// run: with n and one thread per core, throttled ST.
    pub least_mode: u32,
    /// Is memory on the first node that has any, wherever a program starts?
    /// Otherwise near where it first ran.
    pub one_memory: bool,
    /// For each slot the programs, by number, that it runs one after the other,
    /// each once. Empty: each program has a slot of its own, in which it is
    /// launched again and again.
    pub orders: Vec<Vec<usize>>,
    /// Are slots launched in their order? Otherwise in a random one.
    pub in_order: bool,
    /// Which version of Linux the OS resembles.
    pub os: Generation,
}

/// A run that ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Completion {
    /// The slot.
    pub slot: usize,
    /// The program, by number.
    pub program: usize,
    /// How many runs of the slot were before it.
    pub run: u64,
    /// Does it count, or did it only make the start uneven?
    pub counts: bool,
    /// When it was launched.
    pub started: Timestamp,
    /// When it completed.
    pub ended: Timestamp,
    /// Instructions that it retired.
    pub instructions: f64,
}

/// The ground truth of a thread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Truth {
    /// The thread.
    pub id: ThreadId,
    /// The slot of its program.
    pub slot: usize,
    /// The hardware thread that it runs on; none if it does not run.
    pub cpu: Option<PuId>,
    /// What it did since it started.
    pub done: Activity,
}

/// A simulated machine.
#[derive(Debug)]
pub struct SimMachine<'p, C> {
    topology: Topology,
    map: Map,
    costs: Costs,
    memory_nodes: Vec<NodeId>,
    contention: C,
    programs: Vec<SimProgram<'p>>,
    /// For each slot its programs, in order.
    orders: Vec<Vec<usize>>,
    /// Does a slot start anew when all of them have completed?
    again: bool,
    /// For each program and phase of its profile, the physics' number.
    phases: Vec<Vec<usize>>,
    runs: Vec<ProgramRun>,
    threads: Vec<Thread<'p>>,
    ended: Vec<Ended>,
    completions: Vec<Completion>,
    support: Support,
    allowed: Arc<CpuSet>,
    options: SimOptions,
    catalogue: String,
    reader: Arc<Reader>,
    measured: Signals,
    now: u64,
    born: u64,
    random: Pcg64Mcg,
    noise: Pcg64Mcg,
    /// The thread that runs on each hardware thread, by index into `threads`.
    current: Vec<Option<usize>>,
    /// Set-up mode of each core: threads that ran there last.
    modes: Vec<usize>,
    /// Must rates be computed again?
    stale: bool,
    /// Did rates change without an event last time: do caches fill?
    filling: bool,
    /// Until when the rates hold.
    reckoned: u64,
    /// When rates were asked for last.
    asked: u64,
    /// Has anything changed that balancing may improve?
    unbalanced: bool,
    balancer: LoadBalancer,
    /// How much each hardware thread ran lately, 0 … 1.
    used: Vec<f64>,
    /// Scratch space for marks and speeds.
    marks: Vec<bool>,
    speeds: Vec<(f64, f64)>,
}

impl<'p, C: Contention<'p>> SimMachine<'p, C> {
    /// A machine with its programs launched at time 0. Each starts with a
    /// `lead` of so many instructions that does not count (0: none).
    ///
    /// # Errors
    /// When programs or allowed CPUs do not suit the machine.
    pub fn new(
        description: &Description,
        mut contention: C,
        programs: Vec<SimProgram<'p>>,
        leads: &[u64],
        options: SimOptions,
    ) -> Result<Self, SimError<C::Error>> {
        let topology = description.topology.clone();
        let online = topology.cpus();
        let allowed = match &options.allowed {
            None => online.clone(),
            Some(allowed) if allowed.is_subset(&online) && !allowed.is_empty() => allowed.clone(),
            Some(allowed) => return Err(SimError::Allowed { allowed: allowed.clone(), online }),
        };
        let (orders, again) = match options.orders.as_slice() {
            [] => ((0..programs.len()).map(|program| vec![program]).collect(), true),
            orders => (orders.to_vec(), false),
        };
        let mut threads = 0;
        for order in &orders {
            let mut most = 0;
            for &program in order {
                let known = programs.get(program);
                let known = known.ok_or(SimError::Order { program, programs: programs.len() })?;
                most = most.max(known.threads());
            }
            threads += most;
        }
        if threads > allowed.len() * MOST {
            return Err(SimError::TooMany { threads, places: allowed.len() });
        }
        let mut phases = Vec::new();
        for program in &programs {
            if program.profile.phases.is_empty() {
                return Err(SimError::NoPhase(program.name.clone()));
            }
            let numbers = program.profile.phases.iter().enumerate().map(|(phase, what)| {
                contention.prepare(what).map_err(|reason| SimError::Phase {
                    program: program.name.clone(),
                    phase,
                    reason,
                })
            });
            phases.push(numbers.collect::<Result<_, _>>()?);
        }
        let map = Map::new(&topology, options.os);
        let catalogue =
            description.core_types.first().map_or_else(String::new, |core| core.catalogue.clone());
        let mut machine = Self {
            current: vec![None; map.len()],
            modes: vec![0; map.cores()],
            costs: options.costs.clone().unwrap_or_else(|| description.costs.clone()),
            memory_nodes: description.memory.nodes.clone(),
            contention,
            phases,
            runs: Vec::new(),
            threads: Vec::new(),
            ended: Vec::new(),
            completions: Vec::new(),
            support: support(&catalogue)?,
            allowed: Arc::new(allowed),
            catalogue,
            reader: Arc::new(Reader::idle()),
            measured: Signals::new(),
            now: 0,
            born: 0,
            balancer: LoadBalancer::new(&map, options.os, options.seed ^ 0x6C6F_6F6B_7300_0001),
            used: vec![0.0; map.len()],
            random: Pcg64Mcg::seed_from_u64(options.seed),
            noise: Pcg64Mcg::seed_from_u64(options.seed ^ 0x6E6F_6973_6500_0001),
            options,
            topology,
            programs,
            orders,
            again,
            stale: true,
            filling: false,
            reckoned: 0,
            asked: 0,
            unbalanced: true,
            marks: Vec::new(),
            speeds: Vec::new(),
            map,
        };
        machine.launch_all(leads);
        Ok(machine)
    }

    /// Runs that ended so far, in the order in which they did.
    #[must_use]
    pub fn completions(&self) -> &[Completion] {
        &self.completions
    }

    /// The machine's clock.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        Timestamp(self.now)
    }

    /// The programs, by number; where no order was given, by slot.
    #[must_use]
    pub fn programs(&self) -> &[SimProgram<'p>] {
        &self.programs
    }

    /// Instructions that the present run of a slot has retired.
    #[must_use]
    pub fn retired(&self, slot: usize) -> Option<f64> {
        self.runs.get(slot).map(|run| run.retired)
    }

    /// The ground truth of each thread so far, which no counter
    /// of a real machine reports.
    pub fn truth(&self) -> impl Iterator<Item = Truth> {
        self.threads.iter().map(|thread| Truth {
            id: thread.id,
            slot: thread.slot,
            cpu: thread.thread_rate.is_some().then(|| self.map.place(thread.at).pu),
            done: {
                let mut done = thread.done;
                done += &thread.lately(self.mode(thread));
                done
            },
        })
    }

    /// The physics.
    #[must_use]
    pub fn contention(&self) -> &C {
        &self.contention
    }

    fn thread_sample(&self, thread: &Thread<'p>) -> ThreadSample {
        ThreadSample {
            id: thread.id,
            program: ProgramId(thread.slot as u32),
            state: if thread.ready { RunState::Runnable } else { RunState::Sleeping },
            run_time: Duration::from_nanos(thread.ran_ns as u64),
            wait_time: Duration::from_nanos(thread.waited_ns as u64),
            switches: thread.switches,
            cpu: thread.warm.map(|at| self.map.place(at).pu),
            allowed: Arc::clone(&self.allowed),
            lifecycle: Lifecycle::Settled,
            kept: false,
            cookie: None,
            counts: Vec::new(),
        }
    }

    /// Reads the counters of a thread.
    fn counts(&mut self, thread: usize) -> Vec<GroupCounts> {
        self.count(thread);
        let Some(thread) = self.threads.get_mut(thread) else { return Vec::new() };
        let thread_rate = thread.thread_rate.as_ref().filter(|_| thread.still_ns <= 0.0);
        let per_ns = thread_rate.map(|thread_rate| thread_rate.activity.times(thread_rate.speed));
        let readings = thread.meter.read(per_ns.as_ref(), &self.options.errors, &mut self.noise);
        readings.into_iter().map(Ok).collect()
    }

    fn carry_out(&mut self, asked: &Move) -> Outcome {
        let Some(at) = self.threads.iter().position(|thread| thread.id == asked.thread) else {
            return Outcome::Gone;
        };
        match &asked.change {
            Change::Priority(priority) => self.threads[at].priority = *priority,
            Change::Affinity(Target::Os) => self.retarget(at, None),
            Change::Affinity(Target::Cpus(cpus)) => {
                let target = cpus.intersection(&self.allowed);
                if target.is_empty() {
                    let allowed = &self.allowed;
                    return Outcome::Refused(format!(
                        "{cpus} has none of the allowed CPUs {allowed}"
                    ));
                }
                self.retarget(at, Some(target));
            }
            Change::Nudge(cpus) => {
                let thread = &self.threads[at];
                let (before, target) = (thread.target.clone(), cpus.intersection(&thread.allowed));
                if target.is_empty() {
                    let allowed = &thread.allowed;
                    return Outcome::Refused(format!(
                        "{cpus} has none of the allowed CPUs {allowed}"
                    ));
                }
                // A mask that is widened moves no thread: the OS does, when it balances next.
                self.retarget(at, Some(target));
                self.retarget(at, before);
            }
        }
        Outcome::Done
    }
}

impl<'p, C: Contention<'p>> Machine for SimMachine<'p, C> {
    type Error = SimError<C::Error>;

    fn topology(&self) -> &Topology {
        &self.topology
    }

    fn support(&self) -> &Support {
        &self.support
    }

    fn measure(&mut self, signals: &Signals) {
        if self.measured == *signals {
            return;
        }
        self.measured = signals.clone();
        // The catalogue was read when the machine was made.
        let Ok(reader) = Reader::new(&self.catalogue, signals) else { return };
        self.reader = Arc::new(reader);
        (0..self.threads.len()).for_each(|thread| self.count(thread));
        let opened = Timestamp(self.now);
        for thread in &mut self.threads {
            thread.meter = meter::Meter::new(Arc::clone(&self.reader), opened);
        }
    }

    fn sample(&mut self) -> Result<Sample, Self::Error> {
        let mut samples: Vec<ThreadSample> = Vec::with_capacity(self.threads.len());
        for at in 0..self.threads.len() {
            let counts = self.counts(at);
            let Some(thread) = self.threads.get(at) else { continue };
            samples.push(ThreadSample { counts, ..self.thread_sample(thread) });
        }
        samples.sort_by_key(|sample| sample.id);
        let mut ended = std::mem::take(&mut self.ended);
        ended.sort_by_key(|ended| ended.id);
        let named = |(slot, run): (usize, &ProgramRun)| {
            let program = self.programs.get(run.program)?;
            Some(Program::new(ProgramId(slot as u32), program.name.clone()))
        };
        Ok(Sample {
            at: Timestamp(self.now),
            threads: samples,
            programs: self.runs.iter().enumerate().filter_map(named).collect(),
            counting: self.reader.counting(),
            ended,
        })
    }

    fn apply(&mut self, moves: &[Move]) -> Result<Vec<Outcome>, Self::Error> {
        let outcomes = moves.iter().map(|asked| self.carry_out(asked)).collect();
        self.assign();
        Ok(outcomes)
    }

    fn wait(&mut self, quantum: Duration) -> Result<(), Self::Error> {
        let quantum = u64::try_from(quantum.as_nanos()).unwrap_or(u64::MAX);
        self.advance(self.now.saturating_add(quantum));
        Ok(())
    }
}

/// Everything that its catalogue has formulas for, and all actuators.
fn support(catalogue: &str) -> Result<Support, CatalogueError> {
    let all = Reader::new(catalogue, &Signal::ALL.into())?;
    let counted_signals =
        all.counting().map(|counting| counting.signals.clone()).unwrap_or_default();
    let ability = |signal: Signal| match signal {
        Signal::RunStates => Ability::Full,
        counted if counted_signals.contains(&counted) => Ability::Full,
        _ => Ability::Absent(format!("the event catalogue {catalogue} does not have it")),
    };
    let signals: BTreeMap<Signal, Ability> =
        Signal::ALL.into_iter().map(|signal| (signal, ability(signal))).collect();
    Ok(Support {
        signals,
        affinity: Ability::Full,
        boost: Ability::Full,
        idle_class: Ability::Full,
        scheduler: Support::no_scheduler(),
        enrolment: Ability::Full,
    })
}
