//! Carries a simulated experiment out.

use std::collections::BTreeMap;
use std::io::Write;
use std::ops::ControlFlow;
use std::time::Duration;

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use symbiont_control::{ControlError, Controller};
use symbiont_machine::Machine;
use symbiont_planner::{Bounds, Planner};
use symbiont_policy::{Entry, Settings, UnknownPolicy, find};
use symbiont_profile::Profile;
use symbiont_sim::PrepareError;
use symbiont_sim::fast::{Fast, Switches, Workshop};
use symbiont_sim::machine::{Errors, Options, SimError, SimMachine};
use symbiont_sim::program::{Alternating, Program, Shape};

use super::timeline::Timeline;
use super::{App, AppOutcome, Form, Outcome, Provenance, Workload};
use crate::metrics;
use crate::stats::{Estimate, StatsError, mean, mean_estimate};

/// Fewest and most instructions of a parallel phase for each of its threads:
/// some ten to hundred milliseconds.
const PARALLEL: (f64, f64) = (2e7, 2e8);

/// How an experiment is set up.
#[derive(Debug, Clone, PartialEq)]
pub struct Setup {
    /// The policy's name.
    pub policy: String,
    /// What it is set to; its seed is another one in each repeat.
    pub settings: Settings,
    /// Period of its decisions; none: the policy's own.
    pub quantum: Option<Duration>,
    /// How long each program runs alone; what it retires then is its target.
    pub alone: Duration,
    /// When a repeat ends at the latest, simulated time.
    pub until: Duration,
    /// How often all is repeated, each time from another start.
    pub repeats: u32,
    /// Longest part, in targets, with which a program starts and that does not
    /// count.
    pub lead: f64,
    /// Seed of everything that is random.
    pub seed: u64,
    /// Which resources each thread has for itself.
    pub switches: Switches,
    /// How far counters err.
    pub errors: Errors,
    /// May there be more threads than hardware threads?
    pub share: bool,
}

impl Default for Setup {
    /// 15 repeats of targets of 20 s under `stay`, with realistic counters.
    fn default() -> Self {
        Self {
            policy: "stay".to_owned(),
            settings: Settings::default(),
            quantum: None,
            alone: Duration::from_secs(20),
            until: Duration::from_secs(1200),
            repeats: 15,
            lead: 0.5,
            seed: 1,
            switches: Switches::default(),
            errors: Errors::default(),
            share: false,
        }
    }
}

/// How far an experiment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Told {
    /// Runs that are done, those alone included.
    pub done: usize,
    /// All runs.
    pub of: usize,
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum SimulateError {
    /// No such policy.
    #[error(transparent)]
    Policy(#[from] UnknownPolicy),
    /// The policy was not given what it cannot do without.
    #[error("policy '{policy}' cannot run: {why}")]
    Lacks {
        /// The policy.
        policy: &'static str,
        /// What it lacks.
        why: &'static str,
    },
    /// More threads than hardware threads.
    #[error(
        "{threads} threads for {places} hardware threads; name fewer programs, or let them share \
         (--share)"
    )]
    Crowded {
        /// Threads that are ready at any time.
        threads: usize,
        /// Hardware threads.
        places: usize,
    },
    /// The machine cannot run it.
    #[error(transparent)]
    Machine(#[from] SimError<PrepareError>),
    /// The loop could not go on.
    #[error(transparent)]
    Control(#[from] ControlError<SimError<PrepareError>>),
    /// A program's profile was not given.
    #[error("no profile was given for '{0}'")]
    NoProfile(String),
    /// A program retired nothing alone.
    #[error("'{0}' retires nothing when it runs alone; capture its profile again")]
    Idle(String),
    /// No repeat ended in time.
    #[error("no repeat ended within {0:?} of simulated time; allow more (--until)")]
    Unfinished(Duration),
    /// The results give no estimate.
    #[error(transparent)]
    Stats(#[from] StatsError),
    /// The timeline could not be written.
    #[error("timeline: {0}")]
    Timeline(#[from] std::io::Error),
    /// The user stopped it.
    #[error("stopped")]
    Stopped,
}

/// Runs a workload under a policy. `profiles` are by program; `source` tells
/// where each comes from; `tell` is asked after each run whether to go on.
///
/// # Errors
/// See [`SimulateError`].
pub fn simulate<'p>(
    workshop: &Workshop<'p>,
    workload: &Workload,
    profiles: &'p BTreeMap<String, Profile>,
    setup: &Setup,
    source: &dyn Fn(&str) -> String,
    tell: &mut dyn FnMut(Told) -> ControlFlow<()>,
    timeline: Option<&mut dyn Write>,
) -> Result<Outcome, SimulateError> {
    let policy = find(&setup.policy)?;
    if let Some(why) = (policy.make)(&setup.settings).lacks() {
        return Err(SimulateError::Lacks { policy: policy.name, why });
    }
    let experiment = Experiment { workshop, setup, policy };
    let places = workshop.description().topology.cpus().len();
    let programs = workload.apps.iter().map(|app| program(app, profiles, places));
    let mut programs = programs.collect::<Result<Vec<_>, _>>()?;
    let threads = programs.iter().map(least_ready).sum();
    if threads > places && !setup.share {
        return Err(SimulateError::Crowded { threads, places });
    }
    let mut kinds: Vec<String> = workload.apps.iter().map(ToString::to_string).collect();
    kinds.sort();
    kinds.dedup();
    let of = kinds.len() + setup.repeats.max(1) as usize;
    let mut done = 0;
    let mut step = || {
        done += 1;
        if tell(Told { done, of }).is_break() { Err(SimulateError::Stopped) } else { Ok(()) }
    };
    let mut targets: BTreeMap<String, f64> = BTreeMap::new();
    for (app, program) in workload.apps.iter().zip(&mut programs) {
        let kind = app.to_string();
        if !targets.contains_key(&kind) {
            targets.insert(kind.clone(), experiment.alone(program)?);
            step()?;
        }
        let target = targets.get(&kind).copied().unwrap_or_default();
        program.target = Some(target as u64);
    }
    let mut timeline = timeline.map(Timeline::new);
    let mut sums = Sums::default();
    for repeat in 0..setup.repeats.max(1) {
        experiment.repeat(repeat, &programs, timeline.take().as_mut(), &mut sums)?;
        step()?;
    }
    let provenance = Provenance::new(workshop.description(), setup);
    sums.outcome(provenance, &experiment, workload, &programs, source)
}

/// Threads of a program that are ready at any time.
fn least_ready(program: &Program<'_>) -> usize {
    match program.shape {
        Shape::Alternating(_) => 1,
        Shape::Single | Shape::Recorded => program.threads(),
    }
}

fn program<'p>(
    app: &App,
    profiles: &'p BTreeMap<String, Profile>,
    places: usize,
) -> Result<Program<'p>, SimulateError> {
    let missing = || SimulateError::NoProfile(app.program.clone());
    let profile = profiles.get(&app.program).ok_or_else(missing)?;
    let shape = match app.form {
        Form::Single => Shape::Single,
        Form::Recorded => Shape::Recorded,
        Form::Phased(ratio) => Shape::Alternating(Alternating {
            threads: places as u32,
            parallel: (PARALLEL.0 * places as f64, PARALLEL.1 * places as f64),
            serial: ratio.serial_after(1.0, places as f64),
        }),
    };
    Ok(Program { name: app.to_string(), profile, shape, target: None })
}

struct Experiment<'a, 'p> {
    workshop: &'a Workshop<'p>,
    setup: &'a Setup,
    policy: &'static Entry,
}

impl<'a, 'p> Experiment<'a, 'p> {
    fn machine(
        &self,
        programs: Vec<Program<'p>>,
        leads: &[u64],
        seed: u64,
    ) -> Result<SimMachine<'p, Fast<'a, 'p>>, SimulateError> {
        let fast = self.workshop.fast(self.setup.switches);
        let options = Options { seed, errors: self.setup.errors, ..Options::default() };
        let description = self.workshop.description();
        Ok(SimMachine::new(description, fast, programs, leads, options)?)
    }

    /// Instructions that a program retires alone in the time that sets its
    /// target.
    fn alone(&self, program: &Program<'p>) -> Result<f64, SimulateError> {
        let mut machine = self.machine(vec![program.clone()], &[], self.setup.seed)?;
        machine.wait(self.setup.alone)?;
        let retired = machine.retired(0).unwrap_or(0.0).floor();
        if retired >= 1.0 { Ok(retired) } else { Err(SimulateError::Idle(program.name.clone())) }
    }

    fn quantum(&self) -> Duration {
        self.setup.quantum.unwrap_or(self.policy.quantum)
    }

    /// One repeat, until everybody has completed once.
    fn repeat(
        &self,
        repeat: u32,
        programs: &[Program<'p>],
        mut timeline: Option<&mut Timeline<'_>>,
        sums: &mut Sums,
    ) -> Result<(), SimulateError> {
        let seed = self.setup.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(repeat.into());
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let lead = |program: &Program<'p>| {
            let share = random.random_range(0.0..=self.setup.lead.max(0.0));
            (program.target.unwrap_or(0) as f64 * share) as u64
        };
        let leads: Vec<u64> = programs.iter().map(lead).collect();
        let machine = self.machine(programs.to_vec(), &leads, seed)?;
        let policy = (self.policy.make)(&Settings { seed, ..self.setup.settings.clone() });
        let mut controller = Controller::new(machine, policy, Planner::new(Bounds::none()));
        let mut speedups = vec![None; programs.len()];
        let mut now = Duration::ZERO;
        while now < self.setup.until && speedups.iter().any(Option::is_none) {
            controller.step()?;
            let machine = controller.machine_mut();
            machine.wait(self.quantum())?;
            now += self.quantum();
            for run in machine.completions().iter().filter(|run| run.counts) {
                let time = run.ended.since(run.started).as_secs_f64();
                if let Some(first) = speedups.get_mut(run.slot) {
                    first.get_or_insert(self.setup.alone.as_secs_f64() / time);
                }
            }
            if let Some(timeline) = timeline.as_deref_mut() {
                let at = machine.now();
                timeline.add(machine, at)?;
            }
        }
        let tally = controller.tally();
        sums.quanta += tally.quanta;
        sums.moves += tally.done;
        sums.unsettled.push(controller.machine().contention().unsettled());
        match speedups.into_iter().collect::<Option<Vec<f64>>>() {
            None => sums.unfinished += 1,
            Some(speedups) => {
                sums.lengths.push(now.as_secs_f64());
                sums.speedups.push(speedups);
            }
        }
        Ok(())
    }
}

/// What the repeats gave.
#[derive(Default)]
struct Sums {
    speedups: Vec<Vec<f64>>,
    lengths: Vec<f64>,
    unsettled: Vec<f64>,
    unfinished: usize,
    quanta: u64,
    moves: u64,
}

impl Sums {
    fn outcome(
        self,
        provenance: Provenance,
        experiment: &Experiment<'_, '_>,
        workload: &Workload,
        programs: &[Program<'_>],
        source: &dyn Fn(&str) -> String,
    ) -> Result<Outcome, SimulateError> {
        let setup = experiment.setup;
        if self.speedups.is_empty() {
            return Err(SimulateError::Unfinished(setup.until));
        }
        let figure = |figure: fn(&[f64]) -> Option<f64>| -> Result<Estimate, StatsError> {
            mean_estimate(&self.speedups.iter().filter_map(|s| figure(s)).collect::<Vec<_>>())
        };
        let seconds = setup.alone.as_secs_f64();
        let mut apps = Vec::new();
        for (slot, (app, program)) in workload.apps.iter().zip(programs).enumerate() {
            let own: Vec<f64> =
                self.speedups.iter().filter_map(|repeat| repeat.get(slot).copied()).collect();
            let target = program.target.unwrap_or_default();
            apps.push(AppOutcome {
                app: app.clone(),
                profile: source(&app.program),
                command: program.profile.command.join(" "),
                target,
                alone_speed: target as f64 / seconds / 1e9,
                speedup: mean_estimate(&own)?,
            });
        }
        let several = programs.len() > 1;
        Ok(Outcome {
            provenance,
            workload: workload.name.clone(),
            policy: experiment.policy.name.to_owned(),
            quantum_ms: experiment.quantum().as_secs_f64() * 1e3,
            seed: setup.seed,
            alone_s: seconds,
            repeats: self.speedups.len(),
            unfinished: self.unfinished,
            stp: figure(metrics::stp)?,
            antt: figure(metrics::antt)?,
            fairness: several.then(|| figure(metrics::fairness)).transpose()?,
            length_s: mean(&self.lengths).unwrap_or_default(),
            quanta: self.quanta,
            moves: self.moves,
            unsettled: mean(&self.unsettled).unwrap_or_default(),
            apps,
        })
    }
}
