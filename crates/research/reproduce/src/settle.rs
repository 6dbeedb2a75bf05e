//! Figures of Settle et al. (cache activity vectors), made on the simulated SMT core of its Table 3.
//!
//! # Approach
//! Jobs run cycle by cycle from continuous traces of whole programs ([`play`]), since where in a cache lines lie is
//! what it is all about. Three kinds of runs: each program alone (predictability, heat maps), all pairs (conflicts,
//! correlation), and mixes of four jobs on two hardware threads by a schedule.
//!
//! The paper gives neither the threshold, nor the number of super-sets, the weights, or the period. They are chosen on
//! mixes that are not reported ([`choice`]): the setting with the highest mean gain in IPC there. The
//! sensitivity to each is a figure of its own.

mod alone;
mod choice;
mod linux;
mod mixes;
mod pairs;
mod play;
mod queues;
mod real;
mod scheduler;
mod scoring;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use super::figure::{Drawing, Figure, Paper};
use super::own::ProgramUse;
use super::{Context, Effort, Reproduction, Source, described};
pub use real::OnThisMachine;
use symbiont_campaign::{Error, Progress};
use symbiont_experiments_sim::code::described as said_of;

use play::{Players, ScheduleRun, Traces};
use scheduler::Intervals;

/// Cache activity vectors, simulated.
#[derive(Debug)]
pub struct ActivityVectors;

const XSIM: &str = "xsim";
const PENTIUM4: &str = "pentium4-ht";

/// Ours for the paper's programs, by its names.
const COUNTERPARTS: [(&str, &str); 9] = [
    ("gzip", "gzip"),
    ("mesa", "povray"),
    ("mcf", "network"),
    ("equake", "cg"),
    ("ammp", "particles"),
    ("twolf", "minisat"),
    ("parser", "gawk"),
    ("perlbmk", "perl"),
    ("bzip2", "bzip2"),
];

/// Ours for a program of the paper.
fn counterpart(program: &str) -> Option<&'static str> {
    COUNTERPARTS.iter().find(|(theirs, _)| *theirs == program).map(|(_, ours)| *ours)
}

/// The paper's programs by their full names, those of COUNTERPARTS first.
const CPU2000: [&str; 15] = [
    "164.gzip",
    "177.mesa",
    "181.mcf",
    "183.equake",
    "188.ammp",
    "300.twolf",
    "197.parser",
    "253.perlbmk",
    "256.bzip2",
    "175.vpr",
    "176.gcc",
    "179.art",
    "186.crafty",
    "254.gap",
    "255.vortex",
];
/// Figures that all of them run in, not only the first nine.
const OF_EIGHT_JOBS: [&str; 6] = [
    "settle-fig7",
    "settle-fig8",
    "settle-fig9",
    "settle-fig10",
    "settle-fig11",
    "settle-linux-controls",
];

/// Ours, in the order of the paper's nine.
fn ours() -> impl Iterator<Item = &'static str> {
    COUNTERPARTS.iter().map(|(_, ours)| *ours)
}

/// All programs that run, of both machines.
fn programs() -> BTreeSet<&'static str> {
    ours().chain(linux::programs()).collect()
}

/// How much is run.
#[derive(Debug, Clone, Copy)]
struct Size {
    /// Cycles of a sample.
    sample: u64,
    /// Samples alone and in pairs, the first of which warm up.
    pairs: (u32, u32),
    /// Samples that the work of each job of a mix takes alone.
    work: u32,
    /// Samples that the work of each of eight jobs takes alone.
    linux: u32,
    /// Mixes that settings are chosen on.
    training: usize,
    /// Samples that the work of each of their jobs takes alone.
    choice: u32,
}

/// The paper's samples have five million cycles.
const QUICK: Size =
    Size { sample: 100_000, pairs: (8, 2), work: 6, linux: 4, training: 3, choice: 6 };
const FULL: Size =
    Size { sample: 250_000, pairs: (14, 4), work: 24, linux: 8, training: 6, choice: 8 };

const PROGRAMS: &str = "povray, network, cg, particles, minisat, gawk and perl stand for mesa, mcf, equake, ammp, twolf, \
                        parser and perlbmk; gzip and bzip2 for themselves, of today.";
const SAMPLES: &str = "Samples of 0.25 (quick: 0.1) instead of 5 million cycles, from the middle of each program, instead of \
                       a billion instructions.";
const CONTROLS: &str = "How much of a gain is the vectors' is shown by `settle-controls`.";
const ORDER: &str = "In what order jobs begin is not stated: drawn.";
const OPEN: &str = "The paper does not say above which count a bit is set, how many super-sets there are, how factors \
                    are weighted and how long a sample of the scheduler is: chosen on mixes that are not shown \
                    (`settle-sensitivity`).";
const FIT: &str = "For each pair of programs, a line through its samples: IPC of both over bits that are set in both.";
const WORK: &str = "Each job has the work that it does alone in 24 (quick: 6) samples, and leaves when it is complete: the \
                    gain in IPC is that of the time for all. In a fixed time, a schedule that prefers fast jobs would gain \
                    IPC by that alone.";

const MORE: &str = "Of the programs of Table 5, metis, gcc, fftw, gnugo, iverilog and sqlite stand for vpr, gcc, art, crafty, gap \
                    and vortex, the others as in the mixes of four.";
const VECTORS_FILE: &str = "Vectors are made from each program alone on the simulated Pentium 4, one for each sample instead \
                            of 50 million instructions. Settings are those chosen for the mixes of four; a time slice is \
                            0.5 (quick: 0.2) million cycles.";
const THIRDS: &str = "The paper does not say what is good, moderate and bad: here the lowest, middle and highest third \
                      of all counts of overlapping bits that jobs of the workload had in a pool.";

const fn figure(id: &'static str, place: &'static str, title: &'static str) -> Figure {
    Figure {
        id,
        paper: Paper::Settle,
        place,
        title,
        quantity: "Gain over round robin",
        unit: Some("%"),
        neutral: Some(0.0),
        drawn: Drawing::Dots,
        deviations: &[PROGRAMS, SAMPLES, OPEN, ORDER, WORK, CONTROLS],
    }
}

const fn table(id: &'static str, place: &'static str, title: &'static str) -> Figure {
    Figure {
        quantity: "Value",
        neutral: None,
        drawn: Drawing::Table,
        deviations: &[PROGRAMS, SAMPLES, OPEN],
        ..figure(id, place, title)
    }
}

const fn share(id: &'static str, place: &'static str, title: &'static str) -> Figure {
    Figure {
        quantity: "Share",
        neutral: None,
        deviations: &[MORE, VECTORS_FILE, THIRDS],
        ..figure(id, place, title)
    }
}

const fn map(id: &'static str, title: &'static str) -> Figure {
    Figure {
        quantity: "Accesses per super-set over the mean",
        unit: None,
        neutral: Some(1.0),
        drawn: Drawing::Matrix { row: "super-set", column: "sample" },
        deviations: &[PROGRAMS, SAMPLES],
        ..figure(id, "Fig. 2", title)
    }
}

const FIGURES: &[Figure] = &[
    Figure {
        deviations: &[
            PROGRAMS,
            SAMPLES,
            "The text prints numbers of gzip co-running with gzip, and that conflicts are more than 30 % on average.",
        ],
        ..table("settle-fig1", "Fig. 1", "Misses of the L2 in pairs, and conflicts, simulated")
    },
    map("settle-fig2a", "Activity of the L1 data cache, gzip, simulated"),
    map("settle-fig2b", "Activity of the L1 data cache, perl, simulated"),
    map("settle-fig2c", "Activity of the L1 data cache, network, simulated"),
    map("settle-fig2d", "Activity of the L1 data cache, povray, simulated"),
    Figure {
        unit: None,
        deviations: &[PROGRAMS, SAMPLES, OPEN, FIT],
        ..table(
            "settle-fig3",
            "Fig. 3, section 2.3",
            "Pairs by correlation of L2 overlap and IPC, simulated",
        )
    },
    Figure {
        unit: None,
        deviations: &[PROGRAMS, SAMPLES, OPEN, FIT],
        ..table("settle-tab1", "Table 1", "Correlation of overlapping bits and IPC, simulated")
    },
    table("settle-tab2", "Table 2", "Predictability of activity vectors, simulated"),
    figure(
        "settle-tab4",
        "Table 4",
        "Kick-outs avoided and IPC gained in mixes of four, simulated",
    ),
    Figure {
        deviations: &[
            "Negative controls: with vectors shuffled between jobs, or caches of its own for each job, nothing may be \
             gained over the same scores with the super-sets of each job in an order of its own. Scores change \
             jobs less often than round robin does (`settle-turns`), and gain by that in samples as short as \
             these, whatever vectors say.",
        ],
        ..figure(
            "settle-controls",
            "our controls",
            "What is gained without a signal or contention, simulated",
        )
    },
    Figure {
        unit: None,
        ..table("settle-turns", "our controls", "How often schedules change jobs, simulated")
    },
    share("settle-fig7", "Fig. 7", "Invocations with a better job in the pool, simulated"),
    share("settle-fig8", "Fig. 8", "Decisions of the default scheduler, simulated"),
    share("settle-fig9", "Fig. 9", "Better jobs in the pool of bad decisions, simulated"),
    Figure {
        quantity: "Gain over Linux",
        deviations: &[
            MORE,
            VECTORS_FILE,
            WORK,
            "The paper's bars have no numbers: four of six workloads miss more than 4 % \
                      less, with a similar gain in IPC.",
        ],
        ..figure(
            "settle-fig10",
            "Fig. 10, Table 5",
            "Misses of the L2 avoided and IPC gained, eight jobs, simulated",
        )
    },
    Figure {
        quantity: "Change of the time of completion; lower is better",
        deviations: &[MORE, VECTORS_FILE, WORK],
        ..figure("settle-fig11", "Fig. 11", "Finish times over those under Linux, simulated")
    },
    Figure {
        quantity: "Gain in IPC",
        deviations: &[
            MORE,
            VECTORS_FILE,
            WORK,
            "Negative controls: with vectors of another job, or caches of its own for each job, nothing may be gained \
             over the same choice with the super-sets of each job in an order of its own.",
        ],
        ..figure(
            "settle-linux-controls",
            "our controls",
            "Linux without a signal or contention, simulated",
        )
    },
    Figure {
        quantity: "Gain in IPC over super-sets elsewhere",
        ..figure(
            "settle-sensitivity",
            "ours",
            "Sensitivity to what the paper leaves open, simulated",
        )
    },
];

impl Source for ActivityVectors {
    fn name(&self) -> &'static str {
        "cache activity vectors, simulated"
    }

    fn figures(&self) -> &'static [Figure] {
        FIGURES
    }

    fn uses(&self, _: &Context<'_>) -> Vec<ProgramUse> {
        let all: Vec<&'static str> = FIGURES.iter().map(|figure| figure.id).collect();
        let one = |full: &'static str| {
            let (_, short) = full.split_once('.')?;
            let figures = match counterpart(short) {
                Some(_) => all.clone(),
                None => OF_EIGHT_JOBS.to_vec(),
            };
            let by = linux::counterpart(short)?.to_owned();
            Some(ProgramUse { program: Some(full), by, traced: true, figures })
        };
        CPU2000.into_iter().filter_map(one).collect()
    }

    fn missing(&self, context: &Context<'_>) -> Option<String> {
        let missing: Vec<&str> = programs()
            .into_iter()
            .filter(|name| !play::path(&context.traces, name).exists())
            .collect();
        let said = || {
            format!(
                "{} has no continuous traces of {}: `scripts/traces.py --continuous 60 {}` makes them",
                context.traces.display(),
                missing.join(", "),
                missing.join(" ")
            )
        };
        (!missing.is_empty()).then(said)
    }

    fn reproduce(
        &self,
        context: &Context<'_>,
        progress: &mut dyn Progress,
    ) -> Result<Reproduction, Error> {
        let size = if context.effort == Effort::Quick { QUICK } else { FULL };
        let machine = described(XSIM)?;
        let traces = Traces::read(&context.traces, programs())?;
        let none = Intervals::new();
        let mut carry_out = |name: &str, runs: Vec<ScheduleRun>| {
            let name = format!("settle-{name}");
            let players =
                Players { name, machine: &machine, traces: &traces, intervals: &none, runs };
            symbiont_campaign::carry_out(&players, &context.records, context.workers, progress)
        };
        let mut reproduced = Reproduction::default();
        let alone = alone::Alone::of(&carry_out("alone", alone::runs(ours(), &size))?, &size);
        let pairs = carry_out("pairs", pairs::runs(&size))?;
        let chosen = choice::choose(&size, &alone, context.seed, &mut carry_out)?;
        let drawn = mixes::mixes(context.seed);
        let mixes = carry_out("mixes", mixes::runs(&drawn, &size, &chosen.scoring, &alone))?;
        reproduced.points.extend(alone.points(&chosen.scoring));
        reproduced.points.extend(pairs::points(&pairs, &size, &chosen.scoring)?);
        reproduced.points.extend(mixes::points(&drawn, &mixes)?);
        reproduced.points.insert("settle-sensitivity", chosen.points);
        reproduced.facts.push(said_of(&machine));
        let pentium4 = described(PENTIUM4)?;
        let played = |name: &str, intervals: &Intervals, runs, progress: &mut dyn Progress| {
            let name = format!("settle-{name}");
            let players = Players { name, machine: &pentium4, traces: &traces, intervals, runs };
            symbiont_campaign::carry_out(&players, &context.records, context.workers, progress)
        };
        let runs = alone::runs(linux::programs(), &Size { pairs: (size.pairs.0, 0), ..size });
        let known = played("linux-alone", &none, runs, progress)?;
        let known = alone::Alone::of(&known, &Size { pairs: (size.pairs.0, 0), ..size });
        let scoring = scoring::Scoring {
            thresholds: known.thresholds(chosen.scoring.super_sets, chosen.threshold, 1.0),
            average: known.misses(),
            ..chosen.scoring
        };
        let runs = linux::runs((size.linux, size.sample), &scoring, &known, context.seed);
        let done = played("linux", &known.intervals(), runs, progress)?;
        reproduced.points.extend(linux::points(&done)?);
        reproduced.facts.push(said_of(&pentium4));
        let instructions: Vec<String> =
            traces.instructions().map(|(name, count)| format!("{name} {count}")).collect();
        reproduced.facts.push(("Instructions of each trace".to_owned(), instructions.join(", ")));
        reproduced.facts.push(("Settings".to_owned(), chosen.said));
        Ok(reproduced)
    }
}
