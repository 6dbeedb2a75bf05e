//! Carries out a simulated experiment.
//!
//! ```text
//! for each kind of program: target = the instructions that it retires alone in a while
//! for each repeat, with a seed of its own
//!     start all programs at random positions, under the policy
//!     quantum by quantum until each has reached its target once; those that have start again
//!     add the speedups (time alone / time of the first completion), quanta and moves
//! ```

use std::collections::BTreeMap;
use std::io::Write;
use std::ops::ControlFlow;
use std::time::Duration;

use symbiont_campaign::Error;
use symbiont_control::ControlError;
use symbiont_machine::Signals;
use symbiont_policy::{Entry, SetError, Settings, UnknownPolicy, find};
use symbiont_profile::Profile;
use symbiont_sim_fast::PrepareError;
use symbiont_sim_fast::description::{Costs, Description};
use symbiont_sim_fast::machine::{Errors, Fidelity, Generation, SimError, Switches};
use symbiont_sim_fast::program::{Alternating, Shape, SimProgram};
use symbiont_synth::Ratio;
use symbiont_topology::CpuSet;

use super::co_runs::CoRuns;
use super::runner::{RunOutcome, Runner};
use super::shuffled::ShownMeasurements;
use super::timeline::Timeline;
use super::{App, AppOutcome, Form, Outcome, Provenance, Workload};
use symbiont_report::metrics;
use symbiont_report::stats::{Estimate, StatsError, mean, mean_estimate};

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
    /// Whose measurements it is shown.
    pub shown: ShownMeasurements,
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
    /// Does the OS read programs in the order of the workload? Otherwise in a random one.
    pub in_order: bool,
    /// Seed of everything that is random.
    pub seed: u64,
    /// Which resources each thread has for itself.
    pub switches: Switches,
    /// How far counters err.
    pub errors: Errors,
    /// May there be more threads than hardware threads?
    pub share: bool,
    /// Hardware threads that the programs may use; none: all.
    pub allowed: Option<CpuSet>,
    /// What moves and switches cost; none: what the machine's description says.
    pub costs: Option<Costs>,
    /// What a decision costs.
    pub decision: Decision,
    /// Which Linux the OS is like.
    pub os: Generation,
}

/// Programs run on while a decision is taken (Feliu et al., section 4.3). What the decision takes
/// from a hardware thread that is not reserved for it is not simulated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Decision {
    /// How long each takes; at most a quantum.
    pub takes: Duration,
    /// Is the last core left to it meanwhile? The OS runs the programs on the others.
    pub reserved: bool,
}

impl Setup {
    /// The seed of a repeat.
    pub fn seed_of(&self, repeat: u32) -> u64 {
        self.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(repeat.into())
    }
}

impl Default for Setup {
    /// 15 repeats of targets of 20 s under `stay`, with realistic counters.
    fn default() -> Self {
        Self {
            policy: "stay".to_owned(),
            settings: Settings::default(),
            shown: ShownMeasurements::Own,
            quantum: None,
            alone: Duration::from_secs(20),
            until: Duration::from_secs(1200),
            repeats: 15,
            lead: 0.5,
            in_order: false,
            seed: 1,
            switches: Switches::default(),
            errors: Errors::default(),
            share: false,
            allowed: None,
            costs: None,
            decision: Decision::default(),
            os: Generation::default(),
        }
    }
}

/// How far an experiment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RepeatsDone {
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
    /// The policy cannot be set so.
    #[error(transparent)]
    Set(#[from] SetError),
    /// The policy was not given what it cannot do without.
    #[error("policy '{policy}' cannot run: {why}")]
    Missing {
        /// The policy.
        policy: &'static str,
        /// What is missing.
        why: symbiont_policy::MissingInput,
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
    /// Threads cannot have resources for themselves.
    #[error("the {0} cannot give threads resources for themselves")]
    Shared(&'static str),
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

impl From<SimulateError> for Error {
    fn from(error: SimulateError) -> Self {
        Self::Run(error.into())
    }
}

/// Can this be simulated, as far as that is known beforehand? Gives the threads that are ready at
/// any time.
///
/// # Errors
/// See [`SimulateError`].
pub fn check<'p, L: Fidelity<'p>>(
    workload: &Workload,
    profiles: &BTreeMap<String, Profile>,
    level: &L,
    setup: &Setup,
) -> Result<usize, SimulateError> {
    let policy = find(&setup.policy)?;
    if let Some(why) = (policy.make)(&setup.settings).requirements().missing_input {
        return Err(SimulateError::Missing { policy: policy.name, why });
    }
    if level.begin(setup.switches).is_none() {
        return Err(SimulateError::Shared(L::NAME));
    }
    let places = places(level.description(), setup);
    let mut threads = 0;
    for app in &workload.apps {
        threads += least_ready(&program(app, profiles, places)?);
    }
    if threads > places && !setup.share {
        return Err(SimulateError::Crowded { threads, places });
    }
    Ok(threads)
}

/// Runs a workload under a policy on a level of the machine. `profiles` are by program; `source` says
/// where each comes from; `go_on` is asked again and again whether to go on.
///
/// # Errors
/// See [`SimulateError`].
pub fn simulate<'p, L: Fidelity<'p>>(
    level: &L,
    workload: &Workload,
    profiles: &'p BTreeMap<String, Profile>,
    setup: &Setup,
    source: &dyn Fn(&str) -> String,
    go_on: &mut dyn FnMut(RepeatsDone) -> ControlFlow<()>,
    timeline: Option<&mut dyn Write>,
) -> Result<Outcome, SimulateError> {
    check(workload, profiles, level, setup)?;
    let policy = find(&setup.policy)?;
    let signals = Signals::new();
    let runner = Runner { level, setup, signals: &signals };
    let quantum = setup.quantum.unwrap_or(policy.quantum);
    let places = places(level.description(), setup);
    let programs = workload.apps.iter().map(|app| program(app, profiles, places));
    let mut programs = programs.collect::<Result<Vec<_>, _>>()?;
    let mut kinds: Vec<String> = workload.apps.iter().map(ToString::to_string).collect();
    kinds.sort();
    kinds.dedup();
    let of = kinds.len() + setup.repeats.max(1) as usize;
    let mut step = |done| {
        if go_on(RepeatsDone { done, of }).is_break() {
            Err(SimulateError::Stopped)
        } else {
            Ok(())
        }
    };
    step(0)?;
    let mut targets: BTreeMap<String, f64> = BTreeMap::new();
    for (app, program) in workload.apps.iter().zip(&mut programs) {
        let kind = app.to_string();
        if !targets.contains_key(&kind) {
            targets.insert(kind.clone(), runner.alone(program)?);
            step(targets.len())?;
        }
        let target = targets.get(&kind).copied().unwrap_or_default();
        program.target = Some(target as u64);
    }
    let mut timeline = timeline.map(Timeline::new);
    let mut sums = Sums::default();
    for repeat in 0..setup.repeats.max(1) {
        let seed = setup.seed_of(repeat);
        let policy = (policy.make)(&Settings { seed, ..setup.settings.clone() });
        let policy = setup.shown.to(policy, seed);
        let mut timeline = timeline.take();
        let done = targets.len() + repeat as usize;
        let co_runs = &mut sums.co_runs;
        let once = runner.once(&programs, policy, quantum, seed, &mut |controller| {
            step(done)?;
            co_runs.add(controller.machine());
            let Some(timeline) = timeline.as_mut() else { return Ok(()) };
            Ok(timeline.add(controller.machine(), controller.machine().now())?)
        })?;
        sums.add(once);
        step(done + 1)?;
    }
    let provenance = Provenance { level: L::NAME, ..Provenance::new(level.description(), setup) };
    sums.outcome(provenance, (setup, policy, quantum), workload, &programs, source)
}

/// Hardware threads that programs may use.
fn places(description: &Description, setup: &Setup) -> usize {
    match &setup.allowed {
        Some(allowed) => allowed.len(),
        None => description.topology.cpus().len(),
    }
}

/// Threads of a program that are ready at any time.
fn least_ready(program: &SimProgram<'_>) -> usize {
    match program.shape {
        Shape::Alternating(_) => 1,
        Shape::Single | Shape::Recorded => program.threads(),
    }
}

fn program<'p>(
    app: &App,
    profiles: &'p BTreeMap<String, Profile>,
    places: usize,
) -> Result<SimProgram<'p>, SimulateError> {
    let missing = || SimulateError::NoProfile(app.program.clone());
    let profile = profiles.get(&app.program).ok_or_else(missing)?;
    let shape = match app.form {
        Form::Single => Shape::Single,
        Form::Recorded => Shape::Recorded,
        Form::Phased(ratio) => alternating(ratio, places),
    };
    Ok(SimProgram { name: app.to_string(), profile, shape, target: None })
}

/// Serial and parallel phases in this ratio; a parallel one has so many threads.
pub fn alternating(ratio: Ratio, threads: usize) -> Shape {
    let width = threads as f64;
    Shape::Alternating(Alternating {
        threads: threads as u32,
        parallel: (PARALLEL.0 * width, PARALLEL.1 * width),
        serial: ratio.serial_after(1.0, width),
    })
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
    co_runs: CoRuns,
}

impl Sums {
    fn add(&mut self, once: RunOutcome) {
        self.quanta += once.quanta;
        self.moves += once.moves;
        self.unsettled.push(once.unsettled);
        match once.speedups {
            None => self.unfinished += 1,
            Some(speedups) => {
                self.lengths.push(once.length_s);
                self.speedups.push(speedups);
            }
        }
    }

    fn outcome(
        self,
        provenance: Provenance,
        (setup, policy, quantum): (&Setup, &Entry, Duration),
        workload: &Workload,
        programs: &[SimProgram<'_>],
        source: &dyn Fn(&str) -> String,
    ) -> Result<Outcome, SimulateError> {
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
                turnaround: mean_estimate(
                    &own.iter().map(|speedup| speedup.recip()).collect::<Vec<_>>(),
                )?,
            });
        }
        let several = programs.len() > 1;
        Ok(Outcome {
            provenance,
            workload: workload.name.clone(),
            policy: policy.name.to_owned(),
            quantum_ms: quantum.as_secs_f64() * 1e3,
            decision_ms: Some(setup.decision.takes.min(quantum).as_secs_f64() * 1e3)
                .filter(|ms| *ms > 0.0),
            reserved_core: setup.decision.reserved,
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
            together: self.co_runs.shares(apps.len()),
            apps,
        })
    }
}
