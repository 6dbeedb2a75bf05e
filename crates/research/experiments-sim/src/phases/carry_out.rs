//! Carries out one run.

use std::time::Duration;

use rand::SeedableRng;
use rand::seq::IndexedRandom;
use rand_pcg::Pcg64Mcg;
use serde::{Deserialize, Serialize};
use symbiont_control::{Controller, Holding};
use symbiont_machine::{Change, Machine, Move, Target};
use symbiont_planner::{Bounds, Planner};
use symbiont_policy::{Settings, find};
use symbiont_profile::Profile;
use symbiont_sim_fast::description::Description;
use symbiont_sim_fast::fast::{Fast, Switches, TableBuilder};
use symbiont_sim_fast::machine::{Errors, SimMachine, SimOptions};
use symbiont_sim_fast::program::{Alternating, Shape, SimProgram};
use symbiont_synth::Ratio;
use symbiont_topology::{Core, PuId};

use super::plan::{BASELINE, MACHINES, SimulatedPhasesRun};
use crate::SimulateError;
use symbiont_campaign::Error;

/// Phases' time that a cycle takes on average, as in our benchmark.
const PHASES: f64 = 2.0;
/// Simulated time before anything is measured.
const WARM: Duration = Duration::from_secs(1);
/// Time in which a thread's speed is measured.
const TRIAL: Duration = Duration::from_millis(200);

/// A machine, the calculation that the programs make, and how fast its cores do it.
#[derive(Debug)]
pub struct CalibratedMachine<'p> {
    builder: TableBuilder<'p>,
    profile: &'p Profile,
    /// Instructions per nanosecond of one thread on the slowest core.
    small: f64,
    /// The same on the fastest.
    large: f64,
}

/// What a run gave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PhasesRecord {
    /// Of each program, instructions per time, in threads on a small core.
    pub performance: Vec<f64>,
    /// Share of the cores' time in which they ran nothing.
    pub idle: f64,
    /// Moves that were carried out.
    pub moves: u64,
}

/// All machines, in the order of [`MACHINES`].
///
/// # Errors
/// When one cannot run the profile.
pub fn stages(profile: &Profile) -> Result<Vec<CalibratedMachine<'_>>, Error> {
    let machine_under_test = |(name, _): &(&str, f64)| {
        let description = Description::named(name).map_err(Error::evaluation)?;
        CalibratedMachine::new(description, profile).map_err(Error::evaluation)
    };
    MACHINES.iter().map(machine_under_test).collect()
}

impl<'p> CalibratedMachine<'p> {
    /// Measures a thread's speed on the machine's slowest and fastest core.
    ///
    /// # Errors
    /// When the machine cannot run the profile.
    pub fn new(description: Description, profile: &'p Profile) -> Result<Self, SimulateError> {
        let builder = TableBuilder::new(description);
        let mut machine_under_test = Self { builder, profile, small: 1.0, large: 1.0 };
        let mut cores: Vec<_> = machine_under_test.builder.description().topology.cores().to_vec();
        cores.sort_by_key(|core| core.capacity);
        let speed = |core: Option<&Core>| -> Result<f64, SimulateError> {
            let allowed = core.map(|core| core.cpus.clone());
            let program =
                SimProgram { name: "trial".into(), profile, shape: Shape::Single, target: None };
            let options = SimOptions { allowed, errors: Errors::NONE, ..SimOptions::default() };
            let mut machine = machine_under_test.machine(vec![program], options)?;
            machine.wait(TRIAL)?;
            let before = machine.retired(0).unwrap_or_default();
            machine.wait(TRIAL)?;
            let speed = (machine.retired(0).unwrap_or_default() - before) / TRIAL.as_nanos() as f64;
            if speed > 0.0 { Ok(speed) } else { Err(SimulateError::Idle(profile.program.clone())) }
        };
        let (small, large) = (speed(cores.first())?, speed(cores.last())?);
        (machine_under_test.small, machine_under_test.large) = (small, large);
        Ok(machine_under_test)
    }

    /// How many times as fast the fastest core is as the slowest: the a of the paper.
    #[must_use]
    pub fn factor(&self) -> f64 {
        self.large / self.small
    }

    /// The machine.
    #[must_use]
    pub fn description(&self) -> &Description {
        self.builder.description()
    }

    fn machine(
        &self,
        programs: Vec<SimProgram<'p>>,
        options: SimOptions,
    ) -> Result<SimMachine<'p, Fast<'_, 'p>>, SimulateError> {
        let fast = self.builder.fast(Switches::default());
        Ok(SimMachine::new(self.builder.description(), fast, programs, &[], options)?)
    }

    /// The synthetic benchmark, without an end.
    fn program(&self, ratio: Ratio, cores: u32, phase: Duration) -> SimProgram<'p> {
        let n = f64::from(cores);
        let share = ratio.parallel_share();
        let parallel = PHASES * phase.as_nanos() as f64 * share * n * self.small;
        let shape = Shape::Alternating(Alternating {
            threads: cores,
            parallel: (0.0, 2.0 * parallel),
            serial: if share > 0.0 { ratio.serial_after(1.0, n) } else { f64::INFINITY },
        });
        SimProgram { name: ratio.to_string(), profile: self.profile, shape, target: None }
    }

    /// Measures for the run's time.
    ///
    /// # Errors
    /// When the machine cannot run it.
    pub fn carry_out(&self, run: &SimulatedPhasesRun) -> Result<PhasesRecord, SimulateError> {
        let (mut controller, quantum) = self.begin(run)?;
        let mut goes_on = |time: Duration| -> Result<(Vec<f64>, f64, Duration), SimulateError> {
            let mut now = Duration::ZERO;
            while now < time {
                controller.step()?;
                controller.machine_mut().wait(quantum)?;
                now += quantum;
            }
            let machine = controller.machine_mut();
            let ran = machine.sample()?.threads.iter().map(|t| t.run_time.as_secs_f64()).sum();
            let retired = (0..run.ratios().len()).filter_map(|slot| machine.retired(slot));
            Ok((retired.collect(), ran, now))
        };
        let (before, ran_before, _) = goes_on(WARM)?;
        let (after, ran, over) = goes_on(run.time)?;
        let per_ns = |(after, before): (&f64, &f64)| (after - before) / over.as_nanos() as f64;
        let speeds = after.iter().zip(&before).map(per_ns);
        let busy = (ran - ran_before) / over.as_secs_f64() / f64::from(run.cores);
        Ok(PhasesRecord {
            performance: speeds.map(|speed| speed / self.small).collect(),
            idle: 1.0 - busy,
            moves: controller.tally().done,
        })
    }

    /// The machine with the run's programs, whose threads are on random cores, under
    /// the run's policy, and that policy's quantum.
    fn begin(
        &self,
        run: &SimulatedPhasesRun,
    ) -> Result<(Controller<SimMachine<'p, Fast<'_, 'p>>>, Duration), SimulateError> {
        let contender = run.contender().unwrap_or(BASELINE);
        let mut words = contender.split_whitespace();
        let policy = find(words.next().unwrap_or(BASELINE))?;
        let values = policy.values(words.filter_map(|word| word.split_once('=')))?;
        let programs: Vec<_> = run
            .ratios()
            .into_iter()
            .map(|ratio| self.program(ratio, run.cores, run.phase))
            .collect();
        let cores = self.description().topology.cores().iter().take(run.cores as usize);
        let cpus: Vec<PuId> = cores.filter_map(|core| core.cpus.first()).collect();
        let allowed = Some(cpus.iter().copied().collect());
        let (seed, errors) = (run.seed, Errors::NONE);
        let os = run.os();
        let options = SimOptions { seed, errors, allowed, os, ..SimOptions::default() };
        let mut machine = self.machine(programs, options)?;
        scatter(&mut machine, &cpus, run.seed)?;
        let policy_of_run = (policy.make)(&Settings { seed, values, ..Settings::default() });
        let controller = Controller::new(machine, policy_of_run, Planner::new(Bounds::none()))
            // What is compared is where programs run, not how they are kept there.
            .holding(Holding::Always);
        Ok((controller, policy.quantum))
    }
}

/// Puts each thread on a random core, from where it may go anywhere.
fn scatter<M: Machine>(machine: &mut M, cpus: &[PuId], seed: u64) -> Result<(), M::Error> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let threads: Vec<_> = machine.sample()?.threads.iter().map(|thread| thread.id).collect();
    let mut put = |target: &mut dyn FnMut() -> Target| {
        let change = |thread| Move { thread, change: Change::Affinity(target()) };
        let moves: Vec<Move> = threads.iter().copied().map(change).collect();
        machine.apply(&moves).map(drop)
    };
    put(&mut || Target::Cpus(cpus.choose(&mut random).copied().into_iter().collect()))?;
    put(&mut || Target::Os)
}
