//! Mixes of programs under several contenders on a simulated machine, as an experiment.
//!
//! # Problem
//! Most published comparisons have this form: workloads × schedulers × repeats, each run until every
//! program has completed once. Each should be written as a list of mixes and contenders, without a loop of its own.
//!
//! # Approach
//! As in [`crate`]: what a program retires alone is its target. In one repeat of a mix all
//! contenders meet the same programs with the same random starts, so gains over the baseline are paired.
//! Repeats are added to a mix until all contenders' gains are decided ([`Repeats`]).
//!
//! # Terms and units
//! *Mix*: programs that run together on some hardware threads, of one thread each or with serial and
//! parallel phases. *Contender*: a policy with its settings, what it is shown, what threads have for
//! themselves, and whether its model knows the programs ([`Models`]).
//!
//! # Properties
//! - Each program is dealt as often as any other (`each_program_is_dealt_as_often_as_any_other`).
//! - A contender that leaves programs out is given a model that knows none of the mix's
//!   (`a_model_with_programs_left_out_knows_none_of_the_mix`).
//! - All contenders of a repeat meet the same starts, and equal contenders give equal records
//!   (`equal_contenders_give_equal_records`).

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rand::SeedableRng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand_pcg::Pcg64Mcg;
use serde::{Deserialize, Serialize};
use symbiont_machine::{Signals, ThreadId};
use symbiont_model::Model;
use symbiont_policy::{Fixed, Settings, Together, find};
use symbiont_profile::Profile;
use symbiont_sim_fast::description::Costs;
use symbiont_sim_fast::fast::{Switches, TableBuilder};
use symbiont_sim_fast::machine::{Contention, Errors, Generation, SimMachine};
use symbiont_sim_fast::program::{Shape, SimProgram};
use symbiont_synth::Ratio;
use symbiont_topology::CpuSet;

use super::co_runs::CoRuns;
use super::{Decision, Runner, Setup, ShownMeasurements, SimulateError, alternating};
use crate::training::Models;
use symbiont_campaign::{
    Error, Experiment, FinishedRun, FinishedRunOf, Metric, Repeats, Row, Rows, digest,
};

/// Programs that run together.
#[derive(Debug, Clone, PartialEq)]
pub struct Mix {
    /// Its name, of which there is one.
    pub name: String,
    /// The programs.
    pub programs: Vec<String>,
    /// The first of the programs have serial and parallel phases; none: each has one thread.
    pub phased: Vec<Phased>,
    /// Programs that contenders of policy `static` keep on a core of their own.
    pub groups: Vec<Vec<String>>,
    /// Hardware threads that they may use.
    pub allowed: CpuSet,
}

/// Serial and parallel phases of a program.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Phased {
    /// Parallel to serial time, alone.
    pub ratio: Ratio,
    /// Threads of a parallel phase.
    pub threads: usize,
}

/// What is compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Contender {
    /// Its name in tables.
    pub name: String,
    /// The policy.
    pub policy: &'static str,
    /// What it is set to.
    pub settings: Settings,
    /// A digest of the settings that stays the same where they do.
    pub key: String,
    /// Whose measurements it is shown.
    pub shown: ShownMeasurements,
    /// What threads have for themselves.
    pub switches: Switches,
    /// What moves cost; none: what the machine says.
    pub costs: Option<Costs>,
    /// Do counters see the floating-point unit of the whole core ([`Errors::fpu_of_core`])?
    pub fpu_of_core: bool,
    /// Which Linux the OS is like.
    pub os: Generation,
    /// Its period of decisions; none: the policy's own.
    pub quantum: Option<Duration>,
    /// Do all programs start at once, and only the order differ in which the OS reads them? Else each has
    /// a part of random length before that does not count.
    pub at_once: bool,
    /// How many hardware threads of each core programs may use; none: those of the mix.
    pub width: Option<usize>,
    /// What its decisions cost.
    pub decision: Decision,
    /// Is its interference model one that knows none of the mix's programs ([`Mixes::models`])?
    pub left_out: bool,
    /// Is it recorded how often programs share a core?
    pub watched: bool,
    /// In how many of the mixes it runs; none: all.
    pub mixes: Option<usize>,
    /// In how many repeats of a mix it runs; none: all. Repeats are added for the others alone.
    pub repeats: Option<u32>,
}

impl Contender {
    /// A policy as it comes.
    #[must_use]
    pub fn new(name: &str, policy: &'static str) -> Self {
        Self {
            name: name.to_owned(),
            policy,
            settings: Settings::default(),
            key: String::new(),
            shown: ShownMeasurements::Own,
            switches: Switches::default(),
            costs: None,
            fpu_of_core: false,
            os: Generation::default(),
            quantum: None,
            at_once: false,
            width: None,
            decision: Decision::default(),
            left_out: false,
            watched: false,
            mixes: None,
            repeats: None,
        }
    }
}

/// A run: a contender in a repeat of a mix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MixRun {
    /// The mix's name.
    pub mix: String,
    /// The contender's name.
    pub contender: String,
    /// The repeat, from 0.
    pub repeat: u32,
}

impl fmt::Display for MixRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}, repeat {}", self.mix, self.contender, self.repeat)
    }
}

/// What a run gave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MixRecord {
    /// T_alone / T_together of each program; none if not all completed in time.
    pub speedups: Option<Vec<f64>>,
    /// Moves per quantum.
    pub moves: f64,
    /// Misses of the L2 per thousand instructions of all programs.
    pub l2_mpki: f64,
    /// Share of quanta in which two programs share a core, by their order; empty where that is not
    /// recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub together: Vec<Vec<f64>>,
}

/// The experiment.
#[derive(Debug)]
pub struct Mixes<'a, 'p> {
    /// Its name.
    pub name: String,
    /// The machine, made ready for the programs.
    pub builder: &'a TableBuilder<'p>,
    /// The programs' profiles, by name.
    pub profiles: &'p BTreeMap<String, Profile>,
    /// The mixes.
    pub mixes: Vec<Mix>,
    /// The contenders, the baseline first.
    pub contenders: Vec<Contender>,
    /// How often each mix is repeated.
    pub repeats: Repeats,
    /// How long each program runs alone to set its target.
    pub alone: Duration,
    /// Seed of everything that is random.
    pub seed: u64,
    /// Digests of code, machine and each program's profile.
    pub basis: (String, BTreeMap<String, String>),
    /// Instructions by program that set the targets, as far as they are known.
    pub targets: Mutex<BTreeMap<String, u64>>,
    /// Interference models without the programs of a mix, for contenders that ask for them.
    pub models: &'a [&'a Models<'a>],
}

/// So many programs, each as often as any other, but for one.
#[must_use]
pub fn deal(programs: &[String], count: usize, seed: u64) -> Vec<String> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut deck = programs.to_vec();
    let mut dealt = Vec::with_capacity(count);
    while dealt.len() < count && !deck.is_empty() {
        deck.shuffle(&mut random);
        dealt.extend(deck.iter().take(count - dealt.len()).cloned());
    }
    dealt
}

/// So many programs, each any of them by chance: a program may be drawn again.
#[must_use]
pub fn draw(programs: &[String], count: usize, seed: u64) -> Vec<String> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    (0..count).filter_map(|_| programs.choose(&mut random).cloned()).collect()
}

/// The program with what it retires alone in a time as its target, measured once for each name.
///
/// # Errors
/// When it cannot run, or retires nothing.
pub(super) fn with_target<'p>(
    builder: &TableBuilder<'p>,
    (alone, seed): (Duration, u64),
    known: &Mutex<BTreeMap<String, u64>>,
    program: SimProgram<'p>,
) -> Result<SimProgram<'p>, SimulateError> {
    let known = || known.lock().unwrap_or_else(PoisonError::into_inner);
    let found = known().get(&program.name).copied();
    let target = match found {
        Some(target) => target,
        None => {
            let setup = Setup { alone, seed, ..Setup::default() };
            let runner = Runner { level: builder, setup: &setup, signals: &Signals::new() };
            let target = runner.alone(&program)? as u64;
            known().insert(program.name.clone(), target);
            target
        }
    };
    Ok(SimProgram { target: Some(target), ..program })
}

/// A seed that follows from these texts, whatever compiles it; `seed` where none does.
pub(super) fn derived_seed(seed: u64, texts: &[&str]) -> u64 {
    let digits = digest(texts);
    digits.get(..16).and_then(|it| u64::from_str_radix(it, 16).ok()).unwrap_or(seed)
}

/// The policy that keeps named programs together.
const STATIC: &str = "static";
/// About what a simulated second of a hardware thread takes on one CPU of today.
const COST: Duration = Duration::from_millis(10);

/// What all threads did since the start; threads that ended are remembered.
#[derive(Debug, Default)]
struct Misses {
    threads: BTreeMap<ThreadId, (f64, f64)>,
}

impl Misses {
    fn note<'p, C: Contention<'p>>(&mut self, machine: &SimMachine<'p, C>) {
        let done = machine.truth().map(|it| (it.id, (it.done.l2_misses, it.done.instructions)));
        self.threads.extend(done);
    }

    fn mpki(&self) -> f64 {
        let all = self.threads.values().fold((0.0, 0.0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
        1e3 * all.0 / all.1.max(1.0)
    }
}

/// Rows of all runs that ended, for comparisons.
#[must_use]
pub fn rows(mixes: &[Mix], finished: &[FinishedRun<MixRun, MixRecord>]) -> Rows {
    let programs =
        |name: &str| mixes.iter().find(|mix| mix.name == name).map(|m| m.programs.clone());
    let row = |FinishedRun { run, record }: &FinishedRun<MixRun, MixRecord>| {
        Some(Row {
            workload: run.mix.clone(),
            programs: programs(&run.mix)?,
            contender: run.contender.clone(),
            repeat: run.repeat,
            speedups: record.speedups.clone()?,
        })
    };
    Rows(finished.iter().filter_map(row).collect())
}

impl<'p> Mixes<'_, 'p> {
    fn mix(&self, name: &str) -> Result<&Mix, Error> {
        let found = self.mixes.iter().find(|mix| mix.name == name);
        found.ok_or_else(|| Error::evaluation(format!("there is no mix {name}")))
    }

    fn contender(&self, name: &str) -> Result<&Contender, Error> {
        let found = self.contenders.iter().find(|contender| contender.name == name);
        found.ok_or_else(|| Error::evaluation(format!("there is no contender {name}")))
    }

    /// The contenders of a repeat of the mix at this place.
    fn in_mix(&self, at: usize, repeat: u32) -> impl Iterator<Item = &Contender> {
        let runs = move |one: &&Contender| {
            one.mixes.is_none_or(|mixes| at < mixes) && one.repeats.is_none_or(|most| repeat < most)
        };
        self.contenders.iter().filter(runs)
    }

    /// What the contender knows of the mix.
    fn settings(&self, mix: &Mix, contender: &Contender) -> Result<Settings, Error> {
        let mut settings = contender.settings.clone();
        if contender.policy == STATIC {
            let groups = Some(Together::new(mix.groups.clone()));
            settings = settings.with(&Fixed::TOGETHER, &groups).map_err(SimulateError::from)?;
        }
        let (Some(known), true) = (&settings.models, contender.left_out) else {
            return Ok(settings);
        };
        let missing = || Error::evaluation("there are no models without programs");
        let cores = self.builder.description().topology.cores().iter();
        let width = cores.map(|core| core.cpus.intersection(&mix.allowed).len()).max().unwrap_or(1);
        let mut models = self.models.iter();
        let models = models.find(|models| models.components() == &known.first.components);
        let model = models.ok_or_else(missing)?.without(&mix.programs, width)?;
        Ok(Settings { models: Some(Arc::new(Model::clone(&model).into())), ..settings })
    }

    /// Hardware threads that the contender's programs may use.
    fn allowed(&self, mix: &Mix, contender: &Contender) -> CpuSet {
        let cores = self.builder.description().topology.cores().iter();
        let of_core = |cpus: CpuSet| {
            cpus.iter().take(contender.width.unwrap_or(usize::MAX)).collect::<Vec<_>>()
        };
        cores.flat_map(|core| of_core(core.cpus.intersection(&mix.allowed))).collect()
    }

    fn setup(&self, mix: &Mix, contender: &Contender) -> Setup {
        Setup {
            alone: self.alone,
            until: self.alone * 60,
            seed: self.seed,
            switches: contender.switches,
            costs: contender.costs.clone(),
            allowed: Some(self.allowed(mix, contender)),
            decision: contender.decision,
            os: contender.os,
            errors: Errors { fpu_of_core: contender.fpu_of_core, ..Errors::default() },
            lead: if contender.at_once { 0.0 } else { Setup::default().lead },
            ..Setup::default()
        }
    }

    fn program(&self, name: &str, phased: Option<Phased>) -> Result<SimProgram<'p>, SimulateError> {
        let missing = || SimulateError::NoProfile(name.to_owned());
        let profile = self.profiles.get(name).ok_or_else(missing)?;
        let (name, shape) = match phased {
            None => (name.to_owned(), Shape::Single),
            Some(Phased { ratio, threads }) => {
                (format!("{name}@{ratio}x{threads}"), alternating(ratio, threads))
            }
        };
        let program = SimProgram { name, profile, shape, target: None };
        with_target(self.builder, (self.alone, self.seed), &self.targets, program)
    }

    /// The same for all contenders in one repeat of a mix.
    fn seed_of(&self, run: &MixRun) -> u64 {
        derived_seed(self.seed, &[&self.seed.to_string(), &run.mix, &run.repeat.to_string()])
    }

    fn is_decided(&self, done: &Rows, at: usize, mix: &Mix) -> bool {
        let Some(baseline) = self.contenders.first() else { return true };
        let repeated = |one: &&Contender| one.repeats.is_none() && one.name != baseline.name;
        self.in_mix(at, 0).filter(repeated).all(|contender| {
            let gains = done.gains(&mix.name, &contender.name, &baseline.name, Metric::Stp);
            self.repeats.decide(&gains) != symbiont_campaign::Decision::Undecided
        })
    }
}

impl Experiment for Mixes<'_, '_> {
    type Run = MixRun;
    type Record = MixRecord;

    fn name(&self) -> String {
        self.name.clone()
    }

    fn basis(&self, run: &MixRun) -> String {
        let (common, profiles) = &self.basis;
        let (Ok(mix), Ok(contender)) = (self.mix(&run.mix), self.contender(&run.contender)) else {
            return String::new();
        };
        let Contender { policy, key, shown, switches, costs, .. } = contender;
        let Contender { decision, left_out, watched, quantum, at_once, .. } = contender;
        let Contender { width, fpu_of_core, os, .. } = contender;
        let own = format!(
            "{policy} {key} {shown:?} {switches:?} {costs:?} {decision:?} {left_out} {watched} \
             {quantum:?} {at_once} {width:?} {fpu_of_core} {os:?}"
        );
        let Mix { programs, phased, allowed, groups, .. } = mix;
        let groups = if *policy == STATIC { groups.as_slice() } else { &[] };
        let length = format!("{:?} {}", self.alone, self.seed);
        let setting = format!("{length} {allowed} {programs:?} {phased:?} {groups:?}");
        let profiles = mix.programs.iter().filter_map(|name| profiles.get(name));
        let parts = [common, &own, &setting].into_iter().chain(profiles);
        digest(&parts.map(String::as_str).collect::<Vec<_>>())
    }

    fn next(&self, done: &[FinishedRunOf<Self>]) -> Vec<MixRun> {
        let rows = rows(&self.mixes, done);
        let mut runs = Vec::new();
        for (at, mix) in self.mixes.iter().enumerate() {
            let repeats =
                done.iter().filter(|it| it.run.mix == mix.name).map(|it| it.run.repeat + 1);
            let count = repeats.max().unwrap_or(0);
            for repeat in count..self.repeats.wanted(count, || self.is_decided(&rows, at, mix)) {
                runs.extend(self.in_mix(at, repeat).map(|contender| MixRun {
                    mix: mix.name.clone(),
                    contender: contender.name.clone(),
                    repeat,
                }));
            }
        }
        runs
    }

    fn carry_out(&self, run: &MixRun, stop: &AtomicBool) -> Result<MixRecord, Error> {
        let (mix, contender) = (self.mix(&run.mix)?, self.contender(&run.contender)?);
        let phased = mix.phased.iter().copied().map(Some).chain(std::iter::repeat(None));
        let programs = mix.programs.iter().zip(phased).map(|(name, by)| self.program(name, by));
        let programs = programs.collect::<Result<Vec<_>, _>>()?;
        let entry = find(contender.policy).map_err(SimulateError::from)?;
        let seed = self.seed_of(run);
        let policy = (entry.make)(&Settings { seed, ..self.settings(mix, contender)? });
        let policy = contender.shown.to(policy, seed);
        let (setup, signals) = (self.setup(mix, contender), Signals::new());
        let runner = Runner { level: self.builder, setup: &setup, signals: &signals };
        let mut co_runs = CoRuns::default();
        let mut misses = Misses::default();
        let quantum = contender.quantum.unwrap_or(entry.quantum);
        let once = runner.once(&programs, policy, quantum, seed, &mut |controller| {
            if contender.watched {
                co_runs.add(controller.machine());
            }
            misses.note(controller.machine());
            if stop.load(Ordering::Relaxed) { Err(SimulateError::Stopped) } else { Ok(()) }
        })?;
        let moves = once.moves as f64 / once.quanta.max(1) as f64;
        let together = match contender.watched {
            true => co_runs.shares(programs.len()),
            false => Vec::new(),
        };
        Ok(MixRecord { speedups: once.speedups, moves, l2_mpki: misses.mpki(), together })
    }

    fn cost(&self, run: &MixRun) -> Duration {
        let phased =
            |mix: &Mix| mix.phased.iter().map(|by| by.threads.saturating_sub(1)).sum::<usize>();
        let threads = self.mix(&run.mix).map_or(1, |mix| mix.programs.len() + phased(mix));
        COST.mul_f64(self.alone.as_secs_f64() * 2.5 * threads as f64)
    }
}
