//! Figures of Morad et al. that are made on simulated machines of eight cores.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use symbiont_synth::Ratio;

use super::figure::{Drawn, Figure, Paper, Point};
use super::{Context, Effort, Reproduced, Source};
use symbiont_campaign::harness::{Error, Progress};
use symbiont_campaign::{Done, Experiment, carry_out, digest};
use symbiont_experiment::theory::phases::{JointState, Scheduler, speedups};
use symbiont_report::published::phases as published;
use symbiont_report::stats::Estimate;
use symbiont_simulated::code::{self, CODE, machine};
use symbiont_simulated::phases::{
    CONTENDERS, CalibratedMachine, Figure as OfPair, MACHINES, Pair, PhasesRecord, Run, Runs, Size,
    plan, stages,
};

/// The calculation that the programs make: as in the paper, one that fits into the cache.
pub(super) const CALCULATION: &str = "synthetic-integer";
/// Simulated seconds that a second of one CPU brings, about.
pub(super) const RATE: f64 = 60.0;

/// Serial phases first, simulated.
#[derive(Debug)]
pub struct SerialPhases;

const DRAWN: &str = "Phases are drawn by the length of a cycle, as our benchmark draws them; the paper does \
                     not print its lengths.";
const LONE: &str = "The simulated OS gives a lone thread the large core, where the paper's model takes any \
                    core as likely.";
const NO_NUMBERS: &str = "The paper's figure has no numbers; \"published\" is its equation (Table 1 or 3) for \
                          the mean.";

const fn figure(id: &'static str, place: &'static str, title: &'static str) -> Figure {
    Figure {
        id,
        paper: Paper::Morad,
        place,
        title,
        quantity: "Gain in throughput",
        unit: Some("%"),
        neutral: Some(0.0),
        drawn: Drawn::Matrix { row: "program", column: "co-running with" },
        deviations: &[DRAWN, LONE],
    }
}

const FIGURES: &[Figure] = &[
    Figure {
        quantity: "Speedup of the serial program",
        unit: None,
        neutral: Some(1.0),
        drawn: Drawn::Lines { x: "Cores" },
        deviations: &[NO_NUMBERS],
        ..figure(
            "morad-fig6",
            "Fig. 6",
            "A serial program co-running with a parallel one, OS, simulated",
        )
    },
    Figure {
        quantity: "Speedup of the serial program",
        unit: None,
        neutral: Some(1.0),
        drawn: Drawn::Lines { x: "Cores" },
        deviations: &[NO_NUMBERS],
        ..figure(
            "morad-fig7",
            "Fig. 7",
            "A serial program co-running with a parallel one, serial phases first, simulated",
        )
    },
    figure("morad-tab4", "Table 4", "Gain of each pair, asymmetric (a = 2), simulated"),
    figure("morad-fig8", "Fig. 8", "Gain of each pair, symmetric, simulated"),
    Figure {
        quantity: "Change",
        drawn: Drawn::Table,
        ..figure("morad-tab5", "Table 5 and section 7", "Means over all pairs, simulated")
    },
];

struct Trial<'a, 'p> {
    stages: &'a [CalibratedMachine<'p>],
    size: Size,
    seed: u64,
    profile: String,
}

impl Experiment for Trial<'_, '_> {
    type Run = Run;
    type Record = PhasesRecord;

    fn name(&self) -> String {
        "serial-phases".to_owned()
    }

    fn basis(&self, run: &Run) -> String {
        let machine =
            self.stages.get(run.machine).map_or_else(String::new, |s| machine(s.description()));
        digest(&[CODE, &machine, &self.profile])
    }

    fn next(&self, done: &[Done<Self>]) -> Vec<Run> {
        if done.is_empty() { plan(&self.size, self.seed) } else { Vec::new() }
    }

    fn carry_out(&self, run: &Run, _: &AtomicBool) -> Result<PhasesRecord, Error> {
        let missing = || Error::Evaluation(format!("there is no machine {}", run.machine));
        Ok(self.stages.get(run.machine).ok_or_else(missing)?.carry_out(run)?)
    }

    fn cost(&self, run: &Run) -> Duration {
        run.time.div_f64(RATE)
    }
}

impl Source for SerialPhases {
    fn name(&self) -> &'static str {
        "serial phases, simulated"
    }

    fn figures(&self) -> &'static [Figure] {
        FIGURES
    }

    fn reproduce(
        &self,
        context: &Context<'_>,
        progress: &mut dyn Progress,
    ) -> Result<Reproduced, Error> {
        let profile = context.library.load(CALCULATION);
        let profile = profile.map_err(|error| Error::Evaluation(error.to_string()))?;
        let size = match context.effort {
            Effort::Quick => Size::quick(),
            Effort::Full => Size::full(),
        };
        let stages = stages(&profile)?;
        let digested = code::profile(&profile);
        let trial = Trial { stages: &stages, size, seed: context.seed, profile: digested };
        let finished = carry_out(&trial, &context.records, context.workers, progress)?;
        let factors: Vec<f64> = stages.iter().map(CalibratedMachine::factor).collect();
        let runs = Runs { finished: &finished, factors: &factors, seed: context.seed };
        let mut reproduced = Reproduced::default();
        for (id, machine, at) in [("morad-fig6", 0, 0), ("morad-fig7", 0, 1)] {
            reproduced.points.insert(id, by_cores(&runs, &trial.size, machine, at)?);
        }
        let mut means = Vec::new();
        for (id, machine) in [("morad-fig8", 0), ("morad-tab4", 1)] {
            let pairs = runs.pairs(machine, &trial.size.matrix_ratios)?;
            reproduced.points.insert(id, gains(&runs, machine, &pairs)?);
            means.extend(means_of(&runs, machine, &pairs)?);
        }
        reproduced.points.insert("morad-tab5", means);
        let machines = stages.iter().map(|runner| code::described(runner.description()));
        reproduced.facts.extend(machines);
        reproduced.facts.push(("Calculation".to_owned(), format!("{CALCULATION} in all programs")));
        reproduced.facts.push(("Runs".to_owned(), finished.len().to_string()));
        Ok(reproduced)
    }
}

/// Fig. 6 (the OS) or 7.
fn by_cores(runs: &Runs<'_>, size: &Size, machine: usize, at: usize) -> Result<Vec<Point>, Error> {
    let scheduler = [Scheduler::Baseline, Scheduler::Proposed][at];
    let point = |cores: &u32| {
        let ours = runs.serial_speedup(machine, *cores, CONTENDERS[at])?;
        let model = runs.model(machine, *cores);
        let said = model.map(|model| speedups(scheduler, model, JointState::SP).avg);
        let point = Point::new(CONTENDERS[at], cores.to_string(), ours);
        Ok(point.x(f64::from(*cores)).published(said))
    };
    size.cores.iter().map(point).collect()
}

/// As in the paper's tables.
fn label(ratio: Ratio) -> String {
    ratio.to_string().replace("inf", "∞")
}

/// Table 4 or Fig. 8.
fn gains(runs: &Runs<'_>, machine: usize, pairs: &[Pair]) -> Result<Vec<Point>, Error> {
    let [os, own, _] = CONTENDERS;
    let point = |pair: &Pair| {
        let gain = runs.over(std::slice::from_ref(pair), |pair, drawn| {
            pair.throughput(own, drawn) / pair.throughput(os, drawn) - 1.0
        })?;
        let [one, other] = pair.ratios.map(label);
        let printed =
            published::TABLE_4.percent(&one, &other).filter(|_| MACHINES[machine].1 > 1.0);
        Ok(Point::new(other, one, gain.percent()).published(printed))
    };
    pairs.iter().map(point).collect()
}

/// Table 5, and what section 7 says of throughput and idle time.
fn means_of(runs: &Runs<'_>, machine: usize, pairs: &[Pair]) -> Result<Vec<Point>, Error> {
    let [os, own, no_seniority] = CONTENDERS;
    let kind = if MACHINES[machine].1 > 1.0 { published::ASYMMETRIC } else { published::SYMMETRIC };
    let outcome = |row: published::Row| if machine == 0 { row.symmetric } else { row.asymmetric };
    let printed = outcome(published::TABLE_5.improvement);
    let idle = |of: &str| published::headline(&format!("idle time, synthetic, {kind}, {of}"));
    let idle = idle("proposed").zip(idle("baseline")).map(|(new, old)| 100.0 * (new / old - 1.0));
    let gain = published::headline(&format!("mean gain in throughput, synthetic, {kind}"));
    let rows: [(&str, OfPair, Option<f64>); 4] = [
        ("fairness of single runs", Pair::fairness_of_runs, Some(printed.fairness)),
        ("fairness of mean speedups", Pair::fairness, Some(printed.fairness)),
        ("jitter", Pair::jitter, Some(-printed.jitter)),
        ("idle time", Pair::idle, idle),
    ];
    let mut points = Vec::new();
    let mut add =
        |what: &str, printed: Option<f64>, ours: &dyn Fn(&str) -> Result<Estimate, Error>| {
            points.push(Point::new(what, kind, ours(own)?.percent()).published(printed));
            let series = format!("{what}, without seniority");
            points.push(Point::new(series, kind, ours(no_seniority)?.percent()));
            Ok::<(), Error>(())
        };
    // The mean of the pairs' gains (Table 4); of all else the change of the mean (Table 5).
    add("throughput", gain, &|to| {
        runs.over(pairs, |pair, drawn| {
            pair.throughput(to, drawn) / pair.throughput(os, drawn) - 1.0
        })
    })?;
    for (what, of, printed) in rows {
        add(what, printed, &|to| runs.change(pairs, of, (os, to)))?;
    }
    Ok(points)
}
