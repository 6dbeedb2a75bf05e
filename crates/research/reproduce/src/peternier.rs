//! Figures of Peternier et al. (WorkOver), made on the simulated Bulldozer and POWER7.

mod alone;
mod pairs;
mod real;
mod scimark;
#[cfg(test)]
mod tests;

use super::figure::{Drawing, Figure, Paper};
use super::own::ProgramUse;
use super::{Context, Effort, Reproduction, Source};
use symbiont_campaign::{Error, Progress};
use symbiont_report::published::peternier::TABLES;

pub use real::Overhead;

/// Spreading FPU-hungry threads, simulated.
#[derive(Debug)]
pub struct WorkOver;

const BULLDOZER: &str = "opteron-6282se";
const POWER7: &str = "power7-755";

/// Ours for the paper's programs, by its names.
const COUNTERPARTS: [(&str, &str); 17] = [
    ("perl", "perl"),
    ("bzip2", "bzip2"),
    ("gcc", "gcc"),
    ("mcf", "network"),
    ("gobmk", "gnugo"),
    ("hmmer", "hmmer"),
    ("h264ref", "x264"),
    ("soplex", "glpk"),
    ("bwaves", "lbm"),
    ("povray", "povray"),
    ("sphinx3", "cg"),
    ("gromacs", "gromacs"),
    ("FFT", "scimark-fft"),
    ("SOR", "scimark-sor"),
    ("MC", "scimark-montecarlo"),
    ("MM", "scimark-sparse"),
    ("LU", "scimark-lu"),
];

/// Ours for a program of the paper.
fn counterpart(program: &str) -> Option<&'static str> {
    COUNTERPARTS.iter().find(|(theirs, _)| *theirs == program).map(|(_, ours)| *ours)
}

/// Ours that are run for a program of the paper in pairs: those nearest to its printed FPU usage and misses
/// of the L2. Namesakes of today are not always: hmmer and x264 use vector instructions.
const NEAREST: [(&str, &str); 4] =
    [("hmmer", "gnugo"), ("mcf", "bfs"), ("sphinx3", "fftw"), ("h264ref", "zstd")];

/// Ours for a program of the paper in pairs.
fn nearest(program: &str) -> Option<&'static str> {
    let near = NEAREST.iter().find(|(theirs, _)| *theirs == program).map(|(_, ours)| *ours);
    near.or_else(|| counterpart(program))
}

/// All of ours that stand for a program of the paper.
pub(super) fn stand_ins(program: &str) -> Vec<&'static str> {
    let theirs = if program == "perlbench" { "perl" } else { program };
    let mut all: Vec<&'static str> =
        [counterpart(theirs), nearest(theirs)].into_iter().flatten().collect();
    all.dedup();
    all
}

const PAIRS: &str = "In pairs gnugo, bfs, fftw, zstd and lbm stand for hmmer, mcf, sphinx3, h264ref and bwaves: of our \
                     programs they are nearest to the printed FPU usage and misses of the L2.";
const PROGRAMS: &str = "network, gnugo, x264, glpk, lbm and cg stand for mcf, gobmk, h264ref, soplex, bwaves and \
                        sphinx3; milc and tonto have no counterpart.";
const TIME: &str = "Each program has the work that it does alone in a fixed time; the gain is that of the time until all \
                    have ended once. Those that have ended are started anew, so that the last ones do not run alone.";
const SCORES: &str = "Sums of speedups over alone (STP) stand for the paper's sums of scores.";
const BELOW: &str = "The published values are bounds: the paper says that its standard deviations are below them, of 10 runs. \
                     In section 5.4 it says only of the OS that it is more noisy.";
const CAUSES: &str = "Misses of the L2 per instruction stand next to each gain: what they explain is not due to the \
                      floating-point units.";
const LEVELS: &str = "Held against the cycle level (`symbiont check-sim --groups 16`), the simulated Bulldozer errs by \
                      2.8 % in STP and ranks slowdowns alike to 0.86; the POWER7 by 5.4 % and to 0.84 in SMT2, by \
                      3.9 % and to 0.86 in SMT4.";
const CONTROLS: &str = "Negative controls: with measurements shuffled between programs, or execution units and \
                        caches private to each thread, nothing may be gained. \"OS, older\" balances as Linux 2.6.18 \
                        did (the paper has 2.6.32 and 3.0): with a thread on each hardware thread none waits, so that it can \
                        make no difference but where threads begin.";
const SCIMARK: &str = "Kernels in C, written anew, without a Java machine and its other threads. A thread runs each for \
                       about two seconds, all in an order of its own.";
const MODULE: &str = "On Bulldozer hardware CYCLES_FPU_EMPTY sees both threads of a module, so that an integer \
                      thread that co-runs with a floating-point thread reads as FPU-intensive. Ranks change with the \
                      co-runners then, so that threads go on moving from tier to tier; by counters of their own, \
                      floating-point threads stay on their modules once all have been measured.";

const fn figure(id: &'static str, place: &'static str, title: &'static str) -> Figure {
    Figure {
        id,
        paper: Paper::Peternier,
        place,
        title,
        quantity: "Gain of WorkOver",
        unit: Some("%"),
        neutral: Some(0.0),
        drawn: Drawing::Dots,
        deviations: &[PAIRS, TIME, CAUSES, LEVELS],
    }
}

const fn table(id: &'static str, place: &'static str, title: &'static str) -> Figure {
    Figure {
        quantity: "Value",
        unit: None,
        neutral: None,
        drawn: Drawing::Table,
        deviations: &[
            PROGRAMS,
            "The paper's misses per cycle have no unit; ours are misses per 100 cycles.",
        ],
        ..figure(id, place, title)
    }
}

const fn scimark(id: &'static str, place: &'static str, title: &'static str) -> Figure {
    Figure { deviations: &[SCIMARK, SCORES, LEVELS], ..figure(id, place, title) }
}

const FIGURES: &[Figure] = &[
    Figure {
        deviations: &[
            "The paper prints bars of counts, no numbers: close to none of the cycles for one, close \
                       to all (Bulldozer) or many operations (POWER7) for the other.",
        ],
        ..table("peternier-fig6", "Fig. 6", "FPU usage of matrix kernels, simulated")
    },
    table("peternier-tab1", "Table 1, Fig. 7 and 8", "FPU usage alone, Bulldozer, simulated"),
    table("peternier-tab2", "Table 2, Fig. 9 and 10", "FPU usage alone, POWER7, simulated"),
    figure("peternier-fig11", "Fig. 11", "Integer and floating-point pairs, Bulldozer, simulated"),
    figure(
        "peternier-fig12a",
        "Fig. 12a",
        "Integer and floating-point pairs, POWER7 in SMT2, simulated",
    ),
    figure(
        "peternier-fig12b",
        "Fig. 12b",
        "Integer and floating-point pairs, POWER7 in SMT4, simulated",
    ),
    scimark("peternier-fig13", "Fig. 13", "SciMark, Bulldozer, simulated"),
    scimark("peternier-fig14a", "Fig. 14", "SciMark, POWER7 in SMT2, simulated"),
    scimark("peternier-fig14b", "Fig. 14", "SciMark, POWER7 in SMT4, simulated"),
    Figure {
        quantity: "Standard deviation",
        neutral: None,
        deviations: &[TIME, SCORES, BELOW],
        ..figure(
            "peternier-stability",
            "section 5.4, 5.6, 5.7",
            "Standard deviation of runs under the OS and WorkOver, simulated",
        )
    },
    Figure {
        deviations: &[CONTROLS],
        ..figure(
            "peternier-controls",
            "our controls",
            "Gain over the OS without a signal or contention, simulated",
        )
    },
    Figure {
        deviations: &[MODULE],
        ..figure(
            "peternier-module",
            "section 4.2, our reading",
            "Whose use of the FPU the counter sees, Bulldozer, simulated",
        )
    },
    Figure {
        quantity: "Moves per period",
        unit: None,
        neutral: None,
        deviations: &[MODULE],
        ..figure(
            "peternier-moves",
            "section 4.3, our reading",
            "Moves per period of one second, Bulldozer, simulated",
        )
    },
];

/// Table 1 of programs alone, in its quickest form.
#[cfg(test)]
pub(super) fn usage(
    context: &Context<'_>,
    progress: &mut dyn Progress,
) -> Result<Vec<super::Point>, Error> {
    let mut reproduced = Reproduction::default();
    alone::add(false, context, progress, &mut reproduced)?;
    Ok(reproduced.points.remove("peternier-tab1").unwrap_or_default())
}

impl Source for WorkOver {
    fn name(&self) -> &'static str {
        "WorkOver, simulated"
    }

    fn figures(&self) -> &'static [Figure] {
        FIGURES
    }

    fn uses(&self, context: &Context<'_>) -> Vec<ProgramUse> {
        let in_tables = ["peternier-tab1", "peternier-tab2"];
        let alone = TABLES.iter().filter_map(|row| {
            let by = context.own.or(row.program, counterpart(row.program))?;
            Some(ProgramUse::of(row.program, by, &in_tables))
        });
        let pairs = pairs::CASES.iter().flat_map(|case| case.uses(&context.own));
        alone.chain(pairs).chain(scimark::uses(&context.own)).collect()
    }

    fn reproduce(
        &self,
        context: &Context<'_>,
        progress: &mut dyn Progress,
    ) -> Result<Reproduction, Error> {
        let full = context.effort == Effort::Full;
        let mut reproduced = Reproduction::default();
        alone::add(full, context, progress, &mut reproduced)?;
        for case in &pairs::CASES {
            pairs::add(case, full, context, progress, &mut reproduced)?;
        }
        scimark::add(full, context, progress, &mut reproduced)?;
        Ok(reproduced)
    }
}
