//! Activity vectors on this machine: real programs, scheduled by Linux and by the policy `activity`.
//!
//! # Approach
//! Eight memory-hungry programs share two hardware threads: those of a core where it has two, else the first two.
//! First their slowdowns in pairs are measured ([`matrix`]): where co-runners do not slow each other down, no schedule
//! gains. Then all run at the same time ([`contest`]), in rounds: under Linux, under `activity`, and, as a control,
//! under `activity` with vectors of other programs. While Linux schedules, its decisions are recorded and judged
//! as the paper does it ([`decisions`]).

mod contest;
mod decisions;
mod matrix;
mod programs;
#[cfg(test)]
mod tests;

use symbiont_policy::{Parameter, activity::Activity};
use symbiont_profile::vectors::Vectors;
use symbiont_topology::HostTopology;

use super::linux::DecisionShares;
use crate::figure::{Drawing, Figure, Paper, Point};
use crate::{Context, Effort, Reproduction, Source, on_path};
use contest::{Contender, Contest};
use matrix::Matrix;
use programs::{Capture, PROGRAMS};
use symbiont_campaign::{Error, Progress, Repeats, carry_out};
use symbiont_experiments_host::harness::{MeasuredRun, Programs, Site};
use symbiont_report::published::settle::{BAD_DECISIONS, BETTER_CHOICES, LATE, OPPORTUNITY};
use symbiont_report::stats::{Estimate, StatsError, mean, mean_estimate, median};

/// Activity vectors on this machine.
#[derive(Debug)]
pub struct OnThisMachine;

const PAIRED: &str = "Paired with the run under Linux of the same round.";
const SHARED: &str = "Eight memory-hungry programs of two seconds each on two hardware threads; where those are of \
                      different cores, they share at most a last-level cache, whose sets vectors of the L2 do not describe.";

const fn figure(id: &'static str, place: &'static str, title: &'static str) -> Figure {
    Figure {
        id,
        paper: Paper::Settle,
        place,
        title,
        quantity: "Gain over Linux",
        unit: Some("%"),
        neutral: Some(0.0),
        drawn: Drawing::Dots,
        deviations: &[SHARED, PAIRED],
    }
}

const FIGURES: &[Figure] = &[
    Figure {
        quantity: "Time over that alone",
        unit: None,
        neutral: Some(1.0),
        drawn: Drawing::Matrix { row: "program", column: "co-runner" },
        deviations: &[
            "Each on a hardware thread of its own; the one that ends first runs again until the other one has ended.",
        ],
        ..figure("settle-real-matrix", "ours", "Slowdowns of pairs, measured")
    },
    Figure {
        quantity: "Share",
        neutral: None,
        drawn: Drawing::Table,
        deviations: &[
            SHARED,
            "By the tracepoints of this kernel's scheduler. A pool is all jobs that are ready, not those of one CPU's \
             queue. Thirds of the range of overlapping bits are good, moderate and bad, as in Fig. 8.",
        ],
        ..figure("settle-real-decisions", "Fig. 7, 8, 9", "Decisions of this kernel, measured")
    },
    figure("settle-real-gain", "section 5.2", "What the policy `activity` gains, measured"),
    Figure {
        quantity: "Change of the time of completion; lower is better",
        ..figure("settle-real-finish", "Fig. 11", "Finish times over those under Linux, measured")
    },
];

/// A command on these hardware threads.
fn on_cpus(cpus: &[u32]) -> Vec<String> {
    let list = cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    vec!["taskset".to_owned(), "-c".to_owned(), list]
}

/// Two hardware threads that share as much as can be.
fn two_cpus() -> Result<[u32; 2], Error> {
    let host = HostTopology::read().map_err(Error::evaluation)?;
    let cores = host.cores().iter().map(|core| &core.cpus);
    let sets = cores.chain(host.llcs().iter().map(|llc| &llc.cpus));
    let all = host.cpus();
    let found = sets.chain([&all]).find(|cpus| cpus.len() > 1);
    let mut cpus = found.into_iter().flat_map(|cpus| cpus.iter().map(|cpu| cpu.0));
    let pair = cpus.next().zip(cpus.next()).map(|(one, other)| [one, other]);
    pair.ok_or_else(|| Error::evaluation("two hardware threads are needed, and one is online"))
}

/// The default of a parameter.
fn usual<T: symbiont_policy::Typed>(parameter: &Parameter<T>) -> T
where
    Parameter<T>: symbiont_policy::Declared,
{
    symbiont_policy::Settings::default().get(parameter)
}

impl Source for OnThisMachine {
    fn name(&self) -> &'static str {
        "cache activity vectors, on this machine"
    }

    fn figures(&self) -> &'static [Figure] {
        FIGURES
    }

    fn simulated(&self) -> bool {
        false
    }

    fn missing(&self, _: &Context<'_>) -> Option<String> {
        let missing =
            ["cc", "taskset", "qemu-x86_64"].into_iter().find(|program| !on_path(program))?;
        Some(format!("{missing} is not installed (packages gcc, util-linux, qemu-user)"))
    }

    fn reproduce(
        &self,
        context: &Context<'_>,
        progress: &mut dyn Progress,
    ) -> Result<Reproduction, Error> {
        let quick = context.effort == Effort::Quick;
        let (pairs, rounds) = if quick { (2, 2) } else { (3, 10) };
        let site = Site::new(&context.records, Repeats::exactly(rounds), context.seed)?;
        let folder = site.folder.join("settle-real-programs");
        let symbiont = Programs::next_to_this_one()?.symbiont;
        let cpus = two_cpus()?;
        programs::build(&folder, &|| progress.cancelled())?;
        let capture = Capture { symbiont: &symbiont, folder: &folder, machine: &site.machine };
        let captured = carry_out(&capture, &site.folder, context.workers, progress)?;
        let vectors: Vec<Vectors> = captured.into_iter().map(|done| done.record).collect();
        let others = folder.join("of-another");
        programs::write(&folder, &vectors, 0)?;
        programs::write(&others, &vectors, PROGRAMS.len() / 2)?;
        let courses = programs::known(&vectors)?
            .vectors(usual(&Activity::SUPER_SETS), usual(&Activity::THRESHOLD));

        let in_pairs = if quick { &PROGRAMS[..4] } else { &PROGRAMS[..] };
        let matrix = Matrix { folder: folder.clone(), programs: in_pairs, cpus };
        let of_pairs = Site::new(&context.records, Repeats::exactly(pairs), context.seed)?;
        let done = of_pairs.carry_out(&matrix, progress)?;
        let mut reproduced =
            Reproduction { facts: site.machine.facts(), ..Reproduction::default() };
        reproduced.points.insert("settle-real-matrix", matrix::points(&done)?);

        let records = rustix::process::geteuid().is_root();
        let alone = matrix::seconds(&done);
        let contest = Contest { symbiont, folder, others, cpus, alone, courses, records };
        let done = site.carry_out(&contest, progress)?;
        reproduced.points.extend(evaluate(&done, rounds)?);
        if !records {
            let why = "not recorded: the scheduler's tracepoints take root".to_owned();
            reproduced.facts.push(("Decisions of Linux".to_owned(), why));
        }
        Ok(reproduced)
    }
}

type Points = Vec<(&'static str, Vec<Point>)>;

fn evaluate(done: &[MeasuredRun<Contest>], rounds: u32) -> Result<Points, StatsError> {
    let find = |round: u32, contender: Contender| {
        let is =
            |done: &&MeasuredRun<Contest>| (done.run.round, done.run.cell) == (round, contender);
        done.iter().find(is).map(|done| &done.record)
    };
    let last = |seconds: &[f64]| seconds.iter().copied().fold(0.0, f64::max);
    let middle = |seconds: &[f64]| mean(seconds).unwrap_or(f64::NAN);
    let mut gains = Vec::new();
    for (what, of) in [("time for all", &last as &dyn Fn(&[f64]) -> f64), ("mean time", &middle)] {
        for contender in [Contender::Activity, Contender::OthersVectors] {
            let gain = |round| {
                let (own, base) = (find(round, contender)?, find(round, Contender::Stay)?);
                Some(of(&base.seconds) / of(&own.seconds) - 1.0)
            };
            let all: Vec<f64> = (0..rounds).filter_map(gain).collect();
            gains.push(Point::new(contender.to_string(), what, mean_estimate(&all)?.percent()));
        }
    }
    let mut finish = Vec::new();
    for contender in [Contender::Activity, Contender::OthersVectors] {
        let changes = |round, contender| -> Option<[f64; 3]> {
            let (own, base) = (find(round, contender)?, find(round, Contender::Stay)?);
            let pairs = own.seconds.iter().zip(&base.seconds);
            let mut all: Vec<f64> = pairs.map(|(own, base)| own / base - 1.0).collect();
            all.sort_by(f64::total_cmp);
            Some([*all.first()?, median(&all)?, *all.last()?])
        };
        for (at, what) in ["early", "median", "late"].into_iter().enumerate() {
            let mean = |contender| {
                let values = (0..rounds).filter_map(|round| Some(changes(round, contender)?[at]));
                mean_estimate(&values.collect::<Vec<_>>()).map(Estimate::percent)
            };
            let mut point = Point::new(what, contender.to_string(), mean(contender)?);
            if contender == Contender::Activity {
                let printed = (what == "late").then_some(LATE);
                let control = Some(mean(Contender::OthersVectors)?);
                point = point.published(printed).control("vectors of other programs", control);
            }
            finish.push(point);
        }
    }
    let judged: Vec<DecisionShares> = (0..rounds)
        .filter_map(|round| find(round, Contender::Recorded))
        .map(|record| DecisionShares::of(&record.decisions))
        .collect();
    let mut decisions = Vec::new();
    let mut add = |what: &str, published, of: &dyn Fn(&DecisionShares) -> f64| {
        let shares: Vec<f64> = judged.iter().map(of).collect();
        let point = Point::new(what, "this kernel", mean_estimate(&shares)?);
        decisions.push(point.published(published));
        Ok(())
    };
    if !judged.is_empty() {
        let share = |judged: &DecisionShares| judged.opportunity.value;
        add("a better job was there (Fig. 7)", Some(OPPORTUNITY), &share)?;
        let of = ["good (Fig. 8)", "moderate (Fig. 8)", "bad (Fig. 8)"].into_iter().enumerate();
        for (at, what) in of {
            add(what, (at == 2).then_some(BAD_DECISIONS), &|judged| judged.classes[at].value)?;
        }
        add("of the bad, at least one better (Fig. 9)", Some(BETTER_CHOICES.0), &|judged| {
            judged.better[0].value
        })?;
        add("of the bad, at least two better (Fig. 9)", Some(BETTER_CHOICES.1), &|judged| {
            judged.better[1].value
        })?;
    }
    Ok(vec![
        ("settle-real-gain", gains),
        ("settle-real-finish", finish),
        ("settle-real-decisions", decisions),
    ])
}
