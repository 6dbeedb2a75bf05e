//! FPU usage and misses of the L2 of each program alone (Tables 1 and 2).

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use symbiont_machine::Signals;
use symbiont_policy::{Settings, find};
use symbiont_sim_fast::fast::TableBuilder;
use symbiont_sim_fast::program::{Shape, SimProgram};

use super::{BULLDOZER, POWER7, counterpart};
use crate::compared::PreparedMachine;
use crate::figure::Point;
use crate::{Context, Reproduction, described};
use symbiont_campaign::{Error, Experiment, FinishedRunOf, Progress, carry_out, digest};
use symbiont_experiments_sim::{Runner, Setup, SimulateError};
use symbiont_report::published::peternier::TABLES;
use symbiont_report::stats::{Estimate, mean};

/// Multiplications of small matrices, as the paper calls them.
const MATRICES: [(&str, &str); 2] =
    [("Integer", "matrix-integer"), ("Floating point", "matrix-float")];

/// What a program does alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Usage {
    /// Mean of the policy's signal over its periods.
    pub fpu: f64,
    /// Misses of the L2 per 100 cycles.
    pub l2: f64,
}

struct Alone<'a, 'p> {
    ready: &'a PreparedMachine<'p>,
    programs: Vec<String>,
    time: Duration,
    seed: u64,
}

impl Experiment for Alone<'_, '_> {
    type Run = String;
    type Record = Usage;

    fn name(&self) -> String {
        format!("peternier-alone-{}", self.ready.builder.description().name)
    }

    fn basis(&self, run: &String) -> String {
        let settings = format!("{:?} {}", self.time, self.seed);
        digest(&[&self.ready.basis_of(run), &settings])
    }

    fn next(&self, done: &[FinishedRunOf<Self>]) -> Vec<String> {
        if done.is_empty() { self.programs.clone() } else { Vec::new() }
    }

    fn carry_out(&self, run: &String, _: &AtomicBool) -> Result<Usage, Error> {
        Ok(observe(&self.ready.builder, self.ready.profile(run)?, self.time, self.seed)?)
    }

    fn cost(&self, _: &String) -> Duration {
        self.time.mul_f64(0.02)
    }
}

/// Runs a program by itself, counted as for the policy.
pub(super) fn observe<'p>(
    builder: &TableBuilder<'p>,
    profile: &'p symbiont_profile::Profile,
    time: Duration,
    seed: u64,
) -> Result<Usage, SimulateError> {
    let policy = find("fpu")?;
    let setup = Setup { alone: time, until: time, seed, ..Setup::default() };
    let signals = Signals::new();
    let runner = Runner { level: builder, setup: &setup, signals: &signals };
    let name = profile.program.clone();
    let program = SimProgram { name, profile, shape: Shape::Single, target: None };
    let (mut usage, mut done) = (Vec::new(), (0.0, 0.0));
    let made = (policy.make)(&Settings { seed, ..Settings::default() });
    runner.once(&[program], made, policy.quantum, seed, &mut |controller| {
        let measured = controller.last().and_then(|step| step.measurements.values().next());
        usage.extend(measured.and_then(|measured| measured.value("fpu_usage")));
        let truth = controller.machine().truth().next();
        done = truth.map_or(done, |it| (it.done.l2_misses, it.done.all_cycles()));
        Ok(())
    })?;
    let l2 = 100.0 * done.0 / f64::max(done.1, 1.0);
    Ok(Usage { fpu: mean(&usage).unwrap_or(f64::NAN), l2 })
}

/// Carries the runs out and adds both tables.
pub(super) fn add(
    full: bool,
    context: &Context<'_>,
    progress: &mut dyn Progress,
    reproduced: &mut Reproduction,
) -> Result<(), Error> {
    let runs = |program| context.own.or(program, counterpart(program));
    let pairs = TABLES.iter().filter_map(|row| Some((row, runs(row.program)?)));
    let pairs: Vec<_> = pairs.collect();
    let ours = pairs.iter().map(|(_, ours)| *ours).chain(MATRICES.map(|(_, ours)| ours));
    let programs: Vec<String> = ours.map(str::to_owned).collect();
    let profiles = context.profiles(&programs)?;
    let time = Duration::from_secs(if full { 20 } else { 5 });
    for (at, (id, machine)) in
        [("peternier-tab1", BULLDOZER), ("peternier-tab2", POWER7)].into_iter().enumerate()
    {
        let ready = PreparedMachine::new(described(machine)?, &profiles, &[1], context)?;
        let programs = programs.clone();
        let runs = Alone { ready: &ready, programs, time, seed: context.seed };
        let done = carry_out(&runs, &context.records, context.workers, progress)?;
        let mut points = Vec::new();
        for (row, ours) in &pairs {
            let Some(found) = done.iter().find(|done| done.run == *ours) else { continue };
            let of = |what, ours, published: [Option<f64>; 2]| {
                let point = Point::new(row.program, what, Estimate::exact(ours));
                point.published(published[at])
            };
            points.push(of("FPU usage", found.record.fpu, row.fpu));
            points.push(of("misses of the L2 per 100 cycles", found.record.l2, row.l2));
        }
        reproduced.points.insert(id, points);
        let matrix = |(theirs, ours): (&str, &str)| {
            let found = done.iter().find(|done| done.run == ours)?;
            Some(Point::new(theirs, machine, Estimate::exact(found.record.fpu)))
        };
        let matrices = MATRICES.into_iter().filter_map(matrix);
        reproduced.points.entry("peternier-fig6").or_default().extend(matrices);
    }
    Ok(())
}
