//! How the timeout of seniority changes fairness, with phases of several lengths, on a simulated machine of eight
//! equal cores.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use symbiont_sim_fast::description::Description;
use symbiont_sim_fast::machine::Generation;
use symbiont_synth::Ratio;

use super::{CALCULATION, RATE, figure};
use crate::figure::{Drawing, Figure, Paper, Point};
use crate::{Context, Effort, Reproduction, Source};
use symbiont_campaign::{Error, Experiment, FinishedRunOf, Progress, carry_out, digest};
use symbiont_experiments_sim::code::{self, CODE, machine};
use symbiont_experiments_sim::phases::{
    BASELINE, CalibratedMachine, MACHINES, Part, PhasesRecord, RunKind, SimulatedPhasesRun,
};
use symbiont_report::metrics::fairness;
use symbiont_report::stats::{mean, mean_estimate};

/// Seconds; 0: none is senior.
const TIMEOUTS: [f64; 5] = [0.0, 0.1, 0.3, 1.0, 3.0];
/// Mean lengths of a phase, in seconds.
const PHASES: [f64; 3] = [0.05, 0.2, 1.0];
/// Cores of the machine.
const CORES: u32 = 8;
const OS: Generation = Generation::Today;

/// The sweep.
#[derive(Debug)]
pub struct Seniority;

const FIGURES: &[Figure] = &[Figure {
    paper: Paper::Symbiont,
    quantity: "Gain in fairness",
    drawn: Drawing::Lines { x: "Timeout (s)" },
    deviations: &[
        "Two programs that are parallel for half or four fifths of their time alone, eight threads each; \
         fairness (eq. 4 of Morad et al.) of single runs of 20 s. Timeout 0: no program is senior.",
    ],
    ..figure(
        "symbiont-seniority",
        "ours",
        "Fairness over that under the OS, by timeout of seniority, simulated",
    )
}];

struct Sweep<'p> {
    runner: CalibratedMachine<'p>,
    rounds: u32,
    seed: u64,
    profile: String,
}

/// Of programs, parallel to serial.
const PAIRS: [[&str; 2]; 3] = [["1:1", "1:1"], ["1:1", "4:1"], ["4:1", "4:1"]];

fn pairs() -> impl Iterator<Item = [Ratio; 2]> {
    let pair = |[a, b]: [&str; 2]| Some([a.parse().ok()?, b.parse().ok()?]);
    PAIRS.into_iter().filter_map(pair)
}

fn contender(timeout: f64) -> String {
    format!("phases seniority={}ms", 1e3 * timeout)
}

impl Experiment for Sweep<'_> {
    type Run = SimulatedPhasesRun;
    type Record = PhasesRecord;

    fn name(&self) -> String {
        "seniority".to_owned()
    }

    fn basis(&self, _: &SimulatedPhasesRun) -> String {
        digest(&[CODE, &machine(self.runner.description()), &self.profile])
    }

    fn next(&self, done: &[FinishedRunOf<Self>]) -> Vec<SimulatedPhasesRun> {
        let mut runs = Vec::new();
        for (round, phase) in (0..self.rounds).flat_map(|round| PHASES.map(|phase| (round, phase)))
        {
            let run = |what| SimulatedPhasesRun {
                part: Part::Matrix,
                machine: 0,
                cores: CORES,
                round,
                time: Duration::from_secs(20),
                phase: Duration::from_secs_f64(phase),
                seed: self.seed.wrapping_add(u64::from(round)),
                what,
            };
            for ratios in pairs() {
                let contenders = TIMEOUTS.map(contender).into_iter().chain([BASELINE.to_owned()]);
                runs.extend(
                    contenders
                        .map(|contender| run(RunKind::Together { ratios, os: OS, contender })),
                );
            }
            let alone =
                BTreeMap::from_iter(pairs().flatten().map(|ratio| (ratio.to_string(), ratio)));
            runs.extend(alone.into_values().map(|ratio| run(RunKind::Alone { ratio, os: OS })));
        }
        if done.is_empty() { runs } else { Vec::new() }
    }

    fn carry_out(&self, run: &SimulatedPhasesRun, _: &AtomicBool) -> Result<PhasesRecord, Error> {
        Ok(self.runner.carry_out(run)?)
    }

    fn cost(&self, run: &SimulatedPhasesRun) -> Duration {
        run.time.div_f64(RATE)
    }
}

impl Source for Seniority {
    fn name(&self) -> &'static str {
        "seniority, simulated"
    }

    fn figures(&self) -> &'static [Figure] {
        FIGURES
    }

    fn reproduce(
        &self,
        context: &Context<'_>,
        progress: &mut dyn Progress,
    ) -> Result<Reproduction, Error> {
        let profile = context.library.load(CALCULATION).map_err(Error::evaluation)?;
        let description = Description::named(MACHINES[0].0).map_err(Error::evaluation)?;
        let runner = CalibratedMachine::new(description, &profile)?;
        let rounds = if context.effort == Effort::Quick { 2 } else { 8 };
        let sweep = Sweep { runner, rounds, seed: context.seed, profile: code::profile(&profile) };
        let done = carry_out(&sweep, &context.records, context.workers, progress)?;
        let mut reproduced = Reproduction::default();
        reproduced.points.insert(FIGURES[0].id, points(&done, rounds)?);
        reproduced.facts.push(code::described(sweep.runner.description()));
        reproduced.facts.push(("Runs".to_owned(), done.len().to_string()));
        Ok(reproduced)
    }
}

fn points(done: &[FinishedRunOf<Sweep<'_>>], rounds: u32) -> Result<Vec<Point>, Error> {
    let find = |round, phase: f64, what: &RunKind| {
        let is = |run: &SimulatedPhasesRun| {
            (run.round, run.phase) == (round, Duration::from_secs_f64(phase)) && run.what == *what
        };
        done.iter().find(|done| is(&done.run)).map(|done| &done.record.performance)
    };
    let fair = |round, phase, ratios: [Ratio; 2], contender: String| {
        let together = find(round, phase, &RunKind::Together { ratios, os: OS, contender })?;
        let alone =
            |at: usize| find(round, phase, &RunKind::Alone { ratio: ratios[at], os: OS })?.first();
        fairness(&[together.first()? / alone(0)?, together.get(1)? / alone(1)?])
    };
    let mut points = Vec::new();
    for (phase, timeout) in PHASES.iter().flat_map(|p| TIMEOUTS.map(|timeout| (*p, timeout))) {
        let gain = |round: u32| {
            let gains = pairs().filter_map(|pair| {
                let os = fair(round, phase, pair, BASELINE.to_owned())?;
                Some(fair(round, phase, pair, contender(timeout))? / os - 1.0)
            });
            mean(&gains.collect::<Vec<_>>())
        };
        let gains: Vec<f64> = (0..rounds).filter_map(gain).collect();
        let gain = mean_estimate(&gains).map_err(Error::evaluation)?;
        let series = format!("phases of {phase} s");
        points.push(Point::new(series, timeout.to_string(), gain.percent()).x(timeout));
    }
    Ok(points)
}
