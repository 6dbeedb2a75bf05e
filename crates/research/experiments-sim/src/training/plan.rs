//! The runs of a training.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;
use serde::{Deserialize, Serialize};

/// One run on one core.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrainingRun {
    /// A program alone, with the core in the SMT mode of so many threads; 1:
    /// isolated.
    Alone {
        /// The program.
        program: String,
        /// Threads that the core is set up for.
        width: usize,
    },
    /// Programs that share the core.
    Together(Vec<String>),
    /// A program co-running with so many processes of no-operations that as many threads run.
    Nops {
        /// The program.
        program: String,
        /// Threads that run.
        width: usize,
    },
}

impl fmt::Display for TrainingRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Alone { program, width: 1 } => write!(f, "{program} isolated"),
            Self::Alone { program, width } => write!(f, "{program} alone in smt{width}"),
            Self::Together(programs) => f.write_str(&programs.join(" + ")),
            Self::Nops { program, width } => write!(f, "{program} + {} nops", width - 1),
        }
    }
}

impl TrainingRun {
    /// The programs that it runs.
    #[must_use]
    pub fn programs(&self) -> &[String] {
        match self {
            Self::Alone { program, .. } | Self::Nops { program, .. } => {
                std::slice::from_ref(program)
            }
            Self::Together(programs) => programs,
        }
    }

    /// Threads that it runs.
    #[must_use]
    pub fn threads(&self) -> usize {
        match self {
            Self::Alone { .. } => 1,
            Self::Together(programs) => programs.len(),
            Self::Nops { width, .. } => *width,
        }
    }
}

/// How large a training is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrainingSize {
    /// Length of a quantum.
    pub quantum: Duration,
    /// Quanta of each run.
    pub quanta: usize,
    /// Groups of four; none: SMT4 is not trained.
    pub fours: usize,
}

impl Default for TrainingSize {
    /// Pairs and 300 groups of four, 10 s each.
    fn default() -> Self {
        Self { quantum: Duration::from_millis(100), quanta: 100, fours: 300 }
    }
}

/// Readings of a run alone for each quantum.
const READINGS: u32 = 5;

impl TrainingSize {
    /// How often a run is read, and how long a stretch each reading covers. Runs alone are
    /// read more often: within a stretch, cycles are taken to grow evenly with the
    /// instructions, and phases may be shorter than a quantum.
    #[must_use]
    pub fn readings(&self, run: &TrainingRun) -> (usize, Duration) {
        match run {
            TrainingRun::Alone { .. } | TrainingRun::Nops { .. } => {
                (self.quanta * READINGS as usize, self.quantum / READINGS)
            }
            TrainingRun::Together(_) => (self.quanta, self.quantum),
        }
    }

    /// Widths of groups that are trained.
    #[must_use]
    pub fn widths(&self) -> Vec<usize> {
        if self.fours > 0 { vec![2, 4] } else { vec![2] }
    }
}

/// The runs that show what processes of no-operations cost their co-runners.
#[must_use]
pub fn nops(programs: &[String], size: &TrainingSize) -> Vec<TrainingRun> {
    let widths = size.widths();
    let of = |program: &String| {
        let one = |&width: &usize| TrainingRun::Nops { program: program.clone(), width };
        widths.iter().map(one).collect::<Vec<_>>()
    };
    programs.iter().flat_map(of).collect()
}

/// The runs: alone first, then pairs; then groups of four, each as often with one program as with any other,
/// but for one.
#[must_use]
pub fn plan(programs: &[String], size: &TrainingSize, seed: u64) -> Vec<TrainingRun> {
    let widths = [vec![1], size.widths()].concat();
    let alone = programs.iter().flat_map(|program| {
        let one = |&width: &usize| TrainingRun::Alone { program: program.clone(), width };
        widths.iter().map(one).collect::<Vec<_>>()
    });
    let mut runs: Vec<TrainingRun> = alone.collect();
    for (at, one) in programs.iter().enumerate() {
        let others = programs.iter().skip(at);
        let pair = |other: &String| TrainingRun::Together(vec![one.clone(), other.clone()]);
        runs.extend(others.map(pair));
    }
    runs.extend(fours(programs, size.fours, seed).into_iter().map(TrainingRun::Together));
    runs
}

/// Groups of four, each as often with one program as with any other, but for one. Of more groups the
/// first ones are the same.
fn fours(programs: &[String], count: usize, seed: u64) -> Vec<Vec<String>> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut deck: Vec<&String> = Vec::new();
    let (mut fours, mut drawn) = (Vec::new(), BTreeSet::new());
    // Groups that were drawn before are not drawn again, as long as there are others.
    let mut attempts = 20 * count;
    while fours.len() < count && !programs.is_empty() {
        let mut group = Vec::with_capacity(4);
        while group.len() < 4 {
            if deck.is_empty() {
                deck = programs.iter().collect();
                deck.shuffle(&mut random);
            }
            group.extend(deck.pop().cloned());
        }
        group.sort();
        attempts = attempts.saturating_sub(1);
        if drawn.insert(group.clone()) || attempts == 0 {
            fours.push(group);
        }
    }
    fours
}

/// The width of whose groups none can be judged, if there is one: whichever group's programs are left
/// out, no other group remains to fit on.
pub(super) fn unjudged(runs: &[TrainingRun], size: &TrainingSize) -> Option<usize> {
    let groups = |width: usize| -> Vec<BTreeSet<&String>> {
        let of_width = runs.iter().filter_map(|run| match run {
            TrainingRun::Together(programs) if programs.len() == width => Some(programs),
            _ => None,
        });
        of_width.map(|programs| programs.iter().collect()).collect()
    };
    let judged = |groups: &[BTreeSet<&String>]| {
        groups.iter().any(|group| groups.iter().any(|other| other.is_disjoint(group)))
    };
    size.widths().into_iter().find(|width| !judged(&groups(*width)))
}
