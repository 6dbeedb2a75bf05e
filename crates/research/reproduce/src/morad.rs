//! Figures of Morad et al. that are made on simulated machines of eight cores; those on this machine (`openmp`) and
//! what seniority does (`seniority`) have files of their own.

mod openmp;
mod seniority;

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use symbiont_sim_fast::machine::Generation;
use symbiont_synth::Ratio;

pub use self::openmp::Openmp;
pub use self::seniority::Seniority;
use super::figure::{Drawing, Figure, Paper, Point};
use super::{Context, Effort, Reproduction, Source};
use symbiont_campaign::{Error, Experiment, FinishedRunOf, Progress, carry_out, digest};
use symbiont_experiments_sim::code::{self, CODE, machine};
use symbiont_experiments_sim::phases::{
    CONTENDERS, CORES, CalibratedMachine, Figure as OfPair, MACHINES, Pair, PhasesRecord, Runs,
    SYSTEMS, SimulatedPhasesRun, SimulatedPhasesSize, plan, stages,
};
use symbiont_report::published::morad as published;
use symbiont_report::stats::{Estimate, mean};
use symbiont_report::theory::{JointState, Phase, Program, Scheduler, predict, speedups};

/// The calculation that the programs make: as in the paper, one that fits into the cache.
const CALCULATION: &str = "synthetic-integer";
/// The OS that the paper compares with.
const PAPERS: Generation = Generation::Older;
/// Of a series with another one.
const TODAY: &str = ", OS of today";
/// Simulated seconds that a second of one CPU brings, about.
const RATE: f64 = 60.0;

/// Serial phases first, simulated.
#[derive(Debug)]
pub struct SerialPhases;

const DRAWN: &str = "Phases are drawn by the length of a cycle, as our benchmark draws them; the paper does \
                     not print its lengths.";
const SYSTEM: &str = "The OS is simulated as Linux 2.6.18, the paper's, balances waiting threads and takes cores for \
                      alike; where it says so, as one of today, which has waiting threads change places and gives a \
                      lone thread the large core.";
const NO_NUMBERS: &str = "The paper's figure has no numbers; its equations (Table 1 or 3) for the mean stand \
                          next to ours.";
const ALONE: &str = "Of programs that never leave their phase: serial (S), parallel (P). Alone, a serial program is as \
                     likely on any core, as the equations have it.";
const CHAIN: &str = "Equations: the long run of the joint states of Tables 1 and 3, each phase as long as it takes there. \
                     Table 2's worst cases are of one state each.";
const SPREAD: &str = "Standard errors of published throughput follow from the jitter that Table 5 prints as a mean \
                      over all pairs, taken for that of a pair's throughput, of fifty runs, as Figs 6 and 7 are; of \
                      its tables of synthetic benchmarks the paper prints no number. No error of fairness, jitter and \
                      idle time is derived.";
const ALL_PARALLEL: &str = "Negative control: two programs without serial phases (∞:1), of which no phase is \
                            distinguished from another.";

const fn figure(id: &'static str, place: &'static str, title: &'static str) -> Figure {
    Figure {
        id,
        paper: Paper::Morad,
        place,
        title,
        quantity: "Gain in throughput",
        unit: Some("%"),
        neutral: Some(0.0),
        drawn: Drawing::Matrix { row: "program", column: "co-running with" },
        deviations: &[DRAWN, SYSTEM, ALL_PARALLEL],
    }
}

const FIGURES: &[Figure] = &[
    Figure {
        quantity: "Speedup of the serial program",
        unit: None,
        neutral: Some(1.0),
        drawn: Drawing::Lines { x: "Cores" },
        deviations: &[NO_NUMBERS, SYSTEM],
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
        drawn: Drawing::Lines { x: "Cores" },
        deviations: &[NO_NUMBERS, SYSTEM],
        ..figure(
            "morad-fig7",
            "Fig. 7",
            "A serial program co-running with a parallel one, serial phases first, simulated",
        )
    },
    Figure {
        quantity: "Speedup against running alone",
        unit: None,
        neutral: Some(1.0),
        drawn: Drawing::Table,
        deviations: &[NO_NUMBERS, SYSTEM, ALONE],
        ..figure("morad-tab3", "Tables 1 and 3", "Speedups in each joint state, simulated")
    },
    Figure {
        deviations: &[DRAWN, SYSTEM, ALL_PARALLEL, SPREAD],
        ..figure("morad-tab4", "Table 4", "Gain of each pair, asymmetric (a = 2), simulated")
    },
    figure("morad-fig8", "Fig. 8", "Gain of each pair, symmetric, simulated"),
    Figure {
        quantity: "Change",
        drawn: Drawing::Table,
        deviations: &[DRAWN, SYSTEM, ALL_PARALLEL, SPREAD],
        ..figure("morad-tab5", "Table 5 and section 7", "Means over all pairs, simulated")
    },
    Figure {
        quantity: "Mean fairness",
        neutral: None,
        drawn: Drawing::Table,
        deviations: &[DRAWN, SYSTEM, CHAIN],
        ..figure("morad-tab5-fairness", "Table 5", "Fairness under each scheduler, simulated")
    },
];

struct Trial<'a, 'p> {
    stages: &'a [CalibratedMachine<'p>],
    size: SimulatedPhasesSize,
    seed: u64,
    profile: String,
}

impl Experiment for Trial<'_, '_> {
    type Run = SimulatedPhasesRun;
    type Record = PhasesRecord;

    fn name(&self) -> String {
        "serial-phases".to_owned()
    }

    fn basis(&self, run: &SimulatedPhasesRun) -> String {
        let machine =
            self.stages.get(run.machine).map_or_else(String::new, |s| machine(s.description()));
        digest(&[CODE, &machine, &self.profile])
    }

    fn next(&self, done: &[FinishedRunOf<Self>]) -> Vec<SimulatedPhasesRun> {
        if done.is_empty() { plan(&self.size, self.seed) } else { Vec::new() }
    }

    fn carry_out(&self, run: &SimulatedPhasesRun, _: &AtomicBool) -> Result<PhasesRecord, Error> {
        let missing = || Error::evaluation(format!("there is no machine {}", run.machine));
        Ok(self.stages.get(run.machine).ok_or_else(missing)?.carry_out(run)?)
    }

    fn cost(&self, run: &SimulatedPhasesRun) -> Duration {
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
    ) -> Result<Reproduction, Error> {
        let profile = context.library.load(CALCULATION);
        let profile = profile.map_err(Error::evaluation)?;
        let size = match context.effort {
            Effort::Quick => SimulatedPhasesSize::quick(),
            Effort::Full => SimulatedPhasesSize::full(),
        };
        let stages = stages(&profile)?;
        let digested = code::profile(&profile);
        let trial = Trial { stages: &stages, size, seed: context.seed, profile: digested };
        let finished = carry_out(&trial, &context.records, context.workers, progress)?;
        let factors: Vec<f64> = stages.iter().map(CalibratedMachine::factor).collect();
        let runs = Runs { finished: &finished, factors: &factors, seed: context.seed };
        let mut reproduced = Reproduction::default();
        for (id, machine, at) in [("morad-fig6", 0, 0), ("morad-fig7", 0, 1)] {
            reproduced.points.insert(id, by_cores(&runs, &trial.size, machine, at)?);
        }
        let (mut means, mut states, mut fairness) = (Vec::new(), Vec::new(), Vec::new());
        for (id, machine) in [("morad-fig8", 0), ("morad-tab4", 1)] {
            let pairs = |os| runs.pairs(machine, os, &trial.size.matrix_ratios);
            let of_paper = pairs(PAPERS)?;
            reproduced.points.insert(id, gains(&runs, machine, &of_paper)?);
            states.extend(by_state(&runs, machine, &of_paper)?);
            fairness.extend(levels(&runs, machine, &of_paper)?);
            for os in SYSTEMS {
                means.extend(means_of(&runs, machine, os, &pairs(os)?)?);
            }
        }
        reproduced.points.insert("morad-tab3", states);
        reproduced.points.insert("morad-tab5", means);
        reproduced.points.insert("morad-tab5-fairness", fairness);
        let machines = stages.iter().map(|runner| code::described(runner.description()));
        reproduced.facts.extend(machines);
        reproduced.facts.push(("Calculation".to_owned(), format!("{CALCULATION} in all programs")));
        reproduced.facts.push(("Runs".to_owned(), finished.len().to_string()));
        Ok(reproduced)
    }
}

/// Fig. 6 (the OS) or 7.
fn by_cores(
    runs: &Runs<'_>,
    size: &SimulatedPhasesSize,
    machine: usize,
    at: usize,
) -> Result<Vec<Point>, Error> {
    let (scheduler, table) = [(Scheduler::Baseline, 1), (Scheduler::Proposed, 3)][at];
    let mut points = Vec::new();
    for cores in &size.cores {
        let of = |os| runs.serial_speedup(machine, *cores, (os, CONTENDERS[at]));
        let [ours, today] = [of(PAPERS)?, of(Generation::Today)?];
        let model = runs.model(machine, *cores);
        let equation = model.map(|model| speedups(scheduler, model, JointState::SP).avg);
        let equation = equation.map(|value| {
            let series = format!("equations of Table {table}");
            Point::new(series, cores.to_string(), Estimate::exact(value))
        });
        let ours = Point::new(CONTENDERS[at], cores.to_string(), ours);
        let today = Point::new(format!("{}{TODAY}", CONTENDERS[at]), cores.to_string(), today);
        let all = [Some(ours), equation, Some(today)];
        points.extend(all.into_iter().flatten().map(|it| it.x(f64::from(*cores))));
    }
    Ok(points)
}

/// Tables 1 (the OS) and 3: the first of two programs, in the phases that are named.
fn by_state(runs: &Runs<'_>, machine: usize, pairs: &[Pair]) -> Result<Vec<Point>, Error> {
    let mut points = Vec::new();
    let Some(model) = runs.model(machine, CORES) else { return Ok(points) };
    let kind = if MACHINES[machine].1 > 1.0 { "asymmetric" } else { "symmetric" };
    let states = [
        (JointState::SS, "(S,S)"),
        (JointState::SP, "(S,P)"),
        (JointState::PS, "(P,S)"),
        (JointState::PP, "(P,P)"),
    ];
    for (state, named) in states {
        let is = |ratio: Ratio, phase: Phase| match phase {
            Phase::Serial => ratio == Ratio::SERIAL,
            Phase::Parallel => ratio == Ratio::PARALLEL,
        };
        let slots = |pair: &Pair| -> Vec<usize> {
            let other = |slot: usize| pair.ratios[1 - slot];
            let holds =
                |slot: &usize| is(pair.ratios[*slot], state.own) && is(other(*slot), state.other);
            [0, 1].into_iter().filter(holds).collect()
        };
        let Some(pair) = pairs.iter().find(|pair| !slots(pair).is_empty()) else { continue };
        let alone = model.performance_alone(state.own);
        for (scheduler, table, contender) in
            [(Scheduler::Baseline, 1, CONTENDERS[0]), (Scheduler::Proposed, 3, CONTENDERS[1])]
        {
            let speedup = |pair: &Pair, drawn: &[usize]| {
                let own =
                    slots(pair).into_iter().map(|slot| pair.performance(slot, contender, drawn));
                mean(&own.collect::<Vec<_>>()).unwrap_or(f64::NAN) / alone
            };
            let ours = runs.over(std::slice::from_ref(pair), speedup)?;
            let equation = Estimate::exact(speedups(scheduler, model, state).avg);
            let place = format!("{kind} {named}");
            points.push(Point::new(contender, place.clone(), ours));
            points.push(Point::new(format!("equations of Table {table}"), place, equation));
        }
    }
    Ok(points)
}

/// As in the paper's tables.
fn label(ratio: Ratio) -> String {
    ratio.to_string().replace("inf", "∞")
}

/// Pairs of which no program has serial phases.
fn all_parallel(pairs: &[Pair]) -> Vec<Pair> {
    pairs.iter().filter(|pair| pair.ratios == [Ratio::PARALLEL; 2]).cloned().collect()
}

/// Mean gain in throughput over the OS, %.
fn throughput(runs: &Runs<'_>, pairs: &[Pair], own: &str) -> Result<Estimate, Error> {
    let [os, ..] = CONTENDERS;
    let gain = |pair: &Pair, drawn: &[usize]| {
        pair.throughput(own, drawn) / pair.throughput(os, drawn) - 1.0
    };
    Ok(runs.over(pairs, gain)?.percent())
}

/// Standard error of the published change of the mean throughput of so many pairs, %.
fn error_of_change(machine: usize, pairs: usize) -> Option<f64> {
    published::TABLE_5.error_of_change(|row| of_machine(row, machine), pairs)
}

/// What is printed of a machine.
fn of_machine(row: published::Row, machine: usize) -> published::Outcome {
    if MACHINES[machine].1 > 1.0 { row.asymmetric } else { row.symmetric }
}

/// Table 4 or Fig. 8.
fn gains(runs: &Runs<'_>, machine: usize, pairs: &[Pair]) -> Result<Vec<Point>, Error> {
    let [_, own, _] = CONTENDERS;
    let control = match all_parallel(pairs).as_slice() {
        [] => None,
        pairs => Some(throughput(runs, pairs, own)?),
    };
    let point = |pair: &Pair| {
        let gain = throughput(runs, std::slice::from_ref(pair), own)?;
        let [one, other] = pair.ratios.map(label);
        let printed =
            published::TABLE_4.percent(&one, &other).filter(|_| MACHINES[machine].1 > 1.0);
        let error = error_of_change(machine, 1);
        let point = Point::new(other, one, gain).published(printed).published_error(error);
        // The pair without serial phases is its own control: what is gained there has no cause of the paper's.
        Ok(point.control("serial phases", control))
    };
    pairs.iter().map(point).collect()
}

/// Fairness under each scheduler: printed, measured here, and by the paper's own equations, which say how much of a
/// change is theirs.
fn levels(runs: &Runs<'_>, machine: usize, pairs: &[Pair]) -> Result<Vec<Point>, Error> {
    let [os, own, no_seniority] = CONTENDERS;
    let symmetric = MACHINES[machine].1 == 1.0;
    let kind = if symmetric { published::SYMMETRIC } else { published::ASYMMETRIC };
    let printed = |row: published::Row| {
        if symmetric { row.symmetric.fairness } else { row.asymmetric.fairness }
    };
    let [baseline, proposed] =
        [published::TABLE_5.baseline, published::TABLE_5.proposed].map(printed);
    let ours = |of: &str| runs.over(pairs, |pair, drawn| 100.0 * pair.fairness_of_runs(of, drawn));
    let mut points = vec![
        Point::new(os, kind, ours(os)?).published(Some(baseline)),
        Point::new(own, kind, ours(own)?).published(Some(proposed)),
        Point::new(no_seniority, kind, ours(no_seniority)?),
    ];
    if let Some(model) = runs.model(machine, CORES) {
        let chain = |ratio: Ratio| {
            let parallel = ratio.parallel_share();
            Program::new(parallel, 1.0 - parallel).ok()
        };
        for (scheduler, of) in [(Scheduler::Baseline, os), (Scheduler::Proposed, own)] {
            let of_pair = |pair: &Pair| {
                let [one, other] = pair.ratios.map(chain);
                Some(100.0 * predict(scheduler, model, one?, other?).fairness())
            };
            let all: Vec<f64> = pairs.iter().filter_map(of_pair).collect();
            let series = format!("{of}, equations");
            points.extend(mean(&all).map(|mean| Point::new(series, kind, Estimate::exact(mean))));
        }
    }
    Ok(points)
}

const THROUGHPUT: &str = "throughput";

/// A figure of pairs under a contender, %.
type Of<'r> = dyn Fn(&[Pair], &str) -> Result<Estimate, Error> + 'r;

/// Table 5, and what section 7 says of throughput and idle time; where the OS is the paper's, next to what it prints.
fn means_of(
    runs: &Runs<'_>,
    machine: usize,
    system: Generation,
    pairs: &[Pair],
) -> Result<Vec<Point>, Error> {
    let [os, own, no_seniority] = CONTENDERS;
    let kind = if MACHINES[machine].1 > 1.0 { published::ASYMMETRIC } else { published::SYMMETRIC };
    let printed = of_machine(published::TABLE_5.improvement, machine);
    let idle = |of: &str| published::headline(&format!("idle time, synthetic, {kind}, {of}"));
    let idle = idle("proposed").zip(idle("baseline")).map(|(new, old)| 100.0 * (new / old - 1.0));
    let gain = published::headline(&format!("mean gain in throughput, synthetic, {kind}"));
    let rows: [(&str, OfPair, Option<f64>); 4] = [
        ("fairness of single runs", Pair::fairness_of_runs, Some(printed.fairness)),
        // Of the same printed value another reading: it is judged once.
        ("fairness of mean speedups", Pair::fairness, None),
        ("jitter", Pair::jitter, Some(-printed.jitter)),
        ("idle time", Pair::idle, idle),
    ];
    let mut points = Vec::new();
    let mut add = |what: &str, printed: Option<f64>, of: &Of<'_>| {
        // Without serial phases there is hardly any jitter or idle time, of which a share could change.
        let without = match all_parallel(pairs).as_slice() {
            pairs if !pairs.is_empty() && !["jitter", "idle time"].contains(&what) => {
                Some(of(pairs, own)?)
            }
            _ => None,
        };
        let (printed, on) = match system {
            PAPERS => (printed, ""),
            _ => (None, TODAY),
        };
        let error = error_of_change(machine, pairs.len()).filter(|_| what == THROUGHPUT);
        let point = Point::new(format!("{what}{on}"), kind, of(pairs, own)?).published(printed);
        points.push(point.published_error(error).control("serial phases", without));
        let series = format!("{what}, without seniority{on}");
        points.push(Point::new(series, kind, of(pairs, no_seniority)?));
        Ok::<(), Error>(())
    };
    // The mean of the pairs' gains (Table 4); of all else the change of the mean (Table 5).
    add(THROUGHPUT, gain, &|pairs, to| throughput(runs, pairs, to))?;
    for (what, of, printed) in rows {
        add(what, printed, &|pairs, to| Ok(runs.change(pairs, of, (os, to))?.percent()))?;
    }
    Ok(points)
}
