//! Which runs a campaign holds, and in what order.

use std::fmt;
use std::time::Duration;

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};
use symbiont_campaign::Repeats;
use symbiont_report::theory::NINE;
use symbiont_synth::Ratio;

/// The policy that the others are compared with.
pub const BASELINE: &str = "stay";
/// The policy that is tried.
pub const TRIED: &str = "phases";
/// Both, in the order of tables.
pub const POLICIES: [&str; 2] = [BASELINE, TRIED];

/// The largest change of the serial program's speedup that is of no interest.
const NARROW: f64 = 0.03;

/// Time that a run takes besides its measurement: starting, enrolling, ending.
const AROUND: Duration = Duration::from_millis(550);

/// How large it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PhasesSize {
    /// Rounds of the headline cell, (∞:1) co-running with (1:∞).
    pub headline_rounds: u32,
    /// Fewest of them, after which none follows once the serial program is decided; absent: all of them.
    pub headline_least: Option<u32>,
    /// Length of its runs.
    pub headline_time: Duration,
    /// Ratios of the matrix; each unordered pair is a cell.
    pub matrix_ratios: Vec<Ratio>,
    /// Rounds of the matrix.
    pub matrix_rounds: u32,
    /// Length of its runs.
    pub matrix_time: Duration,
    /// Whose CPU time is weighed against whose, in the headline cell and the matrix.
    pub groupings: Vec<Grouping>,
    /// Rounds of the real programs.
    pub real_rounds: u32,
    /// Time that the serial one of them takes alone on the idle machine.
    pub real_time: Duration,
}

impl PhasesSize {
    /// Nine minutes.
    #[must_use]
    pub fn full() -> Self {
        Self {
            headline_rounds: 12,
            headline_least: None,
            headline_time: Duration::from_secs(3),
            matrix_ratios: ratios(&["inf:1", "1:1", "1:inf"]),
            matrix_rounds: 4,
            matrix_time: Duration::from_millis(1500),
            groupings: Grouping::ALL.into(),
            real_rounds: 4,
            real_time: Duration::from_secs(2),
        }
    }

    /// A look: two to three minutes, with wide intervals.
    #[must_use]
    pub fn short() -> Self {
        Self {
            headline_rounds: 4,
            headline_least: None,
            headline_time: Duration::from_secs(2),
            matrix_ratios: ratios(&["inf:1", "1:1", "1:inf"]),
            matrix_rounds: 2,
            matrix_time: Duration::from_secs(1),
            groupings: Grouping::ALL.into(),
            real_rounds: 2,
            real_time: Duration::from_millis(1500),
        }
    }

    /// One figure with its decision: about a minute.
    #[must_use]
    pub fn quick() -> Self {
        Self {
            headline_rounds: 6,
            headline_least: Some(3),
            headline_time: Duration::from_millis(1500),
            matrix_rounds: 0,
            real_time: Duration::from_secs(1),
            ..Self::short()
        }
    }

    /// How often the headline cell is repeated.
    #[must_use]
    pub fn headline_repeats(&self) -> Repeats {
        let most = self.headline_rounds;
        let least = self.headline_least.unwrap_or(most);
        Repeats { least, most, narrow: NARROW }
    }

    /// All pairs of the paper's nine ratios in one session, and nothing else: as long as the whole.
    #[must_use]
    pub fn with_all_ratios(self) -> Self {
        let (matrix_ratios, matrix_time) = (ratios(&NINE), Duration::from_millis(900));
        let groupings = vec![Grouping::OneSession];
        Self { matrix_ratios, matrix_time, groupings, headline_rounds: 0, real_rounds: 0, ..self }
    }

    /// Only these parts of it; all if none is named.
    #[must_use]
    pub fn only(self, parts: &[Part]) -> Self {
        let rounds = |part: Part, rounds: u32| {
            if parts.is_empty() || parts.contains(&part) { rounds } else { 0 }
        };
        Self {
            headline_rounds: rounds(Part::Headline, self.headline_rounds),
            matrix_rounds: rounds(Part::Matrix, self.matrix_rounds),
            real_rounds: rounds(Part::Real, self.real_rounds),
            ..self
        }
    }
}

/// Ratios from labels that are known to be good (`the_sizes_hold_all_their_ratios`).
pub fn ratios(labels: &[&str]) -> Vec<Ratio> {
    labels.iter().filter_map(|label| label.parse().ok()).collect()
}

/// Whose CPU time the kernel weighs against whose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grouping {
    /// All programs in one session: every thread is weighed alone.
    OneSession,
    /// Each program in a session of its own: with autogroup, the programs get
    /// equal shares however many threads they have.
    OwnSessions,
}

impl Grouping {
    /// Both.
    pub const ALL: [Self; 2] = [Self::OneSession, Self::OwnSessions];

    /// For people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OneSession => "one session",
            Self::OwnSessions => "own sessions",
        }
    }

    /// For names of files.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Self::OneSession => "one-session",
            Self::OwnSessions => "own-sessions",
        }
    }
}

/// The parts, evaluated apart as their runs differ in length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// (∞:1) co-running with (1:∞), many rounds.
    Headline,
    /// All pairs of ratios, few rounds.
    Matrix,
    /// Two real programs.
    Real,
}

impl Part {
    /// For names of files.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Self::Headline => "headline",
            Self::Matrix => "matrix",
            Self::Real => "real",
        }
    }
}

/// One synthetic program.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SyntheticProgram {
    /// Parallel to serial work.
    pub ratio: Ratio,
    /// Seed of its phases.
    pub seed: u64,
}

/// What a run measures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunKind {
    /// One program, not managed.
    Alone {
        /// The program.
        program: SyntheticProgram,
    },
    /// Two programs side by side, managed.
    Together {
        /// The programs.
        programs: [SyntheticProgram; 2],
        /// By which policy.
        policy: String,
        /// In whose sessions.
        grouping: Grouping,
    },
    /// The serial one of the real programs, not managed.
    RealAlone,
    /// Both real programs side by side, managed.
    RealTogether {
        /// By which policy.
        policy: String,
        /// In whose sessions.
        grouping: Grouping,
    },
}

impl RunKind {
    /// Policy and sessions of a managed run.
    #[must_use]
    pub fn managed(&self) -> Option<(&str, Grouping)> {
        match self {
            Self::Together { policy, grouping, .. } | Self::RealTogether { policy, grouping } => {
                Some((policy, *grouping))
            }
            Self::Alone { .. } | Self::RealAlone => None,
        }
    }
}

/// One run of a campaign.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PhasesRun {
    /// Of which part.
    pub part: Part,
    /// In which round, from 0.
    pub round: u32,
    /// How long it measures; of real programs, what the serial one takes alone.
    pub time: Duration,
    /// What it measures.
    pub what: RunKind,
}

impl PhasesRun {
    /// A name that no other run of the campaign has, fit for a folder.
    #[must_use]
    pub fn id(&self) -> String {
        let what = match &self.what {
            RunKind::Alone { program } => format!("alone-{}", program.ratio),
            RunKind::Together { programs: [a, b], policy, grouping } => {
                format!("{}-{}-{policy}-{}", a.ratio, b.ratio, grouping.id())
            }
            RunKind::RealAlone => "alone".to_owned(),
            RunKind::RealTogether { policy, grouping } => format!("{policy}-{}", grouping.id()),
        };
        format!("{}-{:03}-{}", self.part.id(), self.round, what.replace(':', "to"))
    }
}

impl fmt::Display for PhasesRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            RunKind::Alone { program } => write!(f, "{} alone", program.ratio),
            RunKind::Together { programs: [a, b], policy, grouping } => {
                write!(f, "{} co-running with {}, {policy}, {}", a.ratio, b.ratio, grouping.name())
            }
            RunKind::RealAlone => f.write_str("real program alone"),
            RunKind::RealTogether { policy, grouping } => {
                write!(f, "real programs, {policy}, {}", grouping.name())
            }
        }
    }
}

/// All runs of a campaign in the order in which they are to be carried out.
#[must_use]
pub fn plan(size: &PhasesSize, seed: u64) -> Vec<PhasesRun> {
    let mut rng = Pcg64::seed_from_u64(seed);
    let mut runs = Vec::new();
    let headline = [Ratio::PARALLEL, Ratio::SERIAL];
    for round in 0..size.headline_rounds {
        let cells = [(Ratio::PARALLEL, Ratio::SERIAL)];
        let part = (Part::Headline, round, size.headline_time);
        runs.extend(one_round(part, &headline, &cells, &size.groupings, &mut rng));
    }
    let ratios = &size.matrix_ratios;
    let cells: Vec<(Ratio, Ratio)> = ratios
        .iter()
        .enumerate()
        .flat_map(|(i, a)| ratios.iter().skip(i).map(|b| (*a, *b)))
        .collect();
    for round in 0..size.matrix_rounds {
        let part = (Part::Matrix, round, size.matrix_time);
        runs.extend(one_round(part, ratios, &cells, &size.groupings, &mut rng));
    }
    for round in 0..size.real_rounds {
        runs.extend(real_round(round, size.real_time, &mut rng));
    }
    runs
}

/// About how long runs take, one after the other.
#[must_use]
pub fn estimate<'a>(runs: impl IntoIterator<Item = &'a PhasesRun>) -> Duration {
    let with_others = |run: &PhasesRun| match run.what {
        // Fixed work co-running with others: by the model, at most half as long again.
        RunKind::RealTogether { .. } => run.time * 3 / 2 + AROUND,
        _ => run.time + AROUND,
    };
    runs.into_iter().map(with_others).sum()
}

fn one_round(
    (part, round, time): (Part, u32, Duration),
    ratios: &[Ratio],
    cells: &[(Ratio, Ratio)],
    groupings: &[Grouping],
    rng: &mut Pcg64,
) -> Vec<PhasesRun> {
    let mut runs = Vec::new();
    // Seeds stay below 2⁵³, so that any reader of JSON gets them right.
    let mut program =
        |ratio: Ratio| SyntheticProgram { ratio, seed: u64::from(rng.random::<u32>()) };
    for &ratio in ratios {
        let what = RunKind::Alone { program: program(ratio) };
        runs.push(PhasesRun { part, round, time, what });
    }
    for &(a, b) in cells {
        let programs = [program(a), program(b)];
        for policy in POLICIES {
            for &grouping in groupings {
                let what = RunKind::Together { programs, policy: policy.to_owned(), grouping };
                runs.push(PhasesRun { part, round, time, what });
            }
        }
    }
    runs.shuffle(rng);
    runs
}

fn real_round(round: u32, time: Duration, rng: &mut Pcg64) -> Vec<PhasesRun> {
    let mut whats = vec![RunKind::RealAlone];
    for policy in POLICIES {
        whats.extend(
            Grouping::ALL
                .map(|grouping| RunKind::RealTogether { policy: policy.to_owned(), grouping }),
        );
    }
    whats.shuffle(rng);
    whats.into_iter().map(|what| PhasesRun { part: Part::Real, round, time, what }).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_round_holds_each_run_once() {
        let size = PhasesSize::full();
        let runs = plan(&size, 1);
        let ids: BTreeSet<String> = runs.iter().map(PhasesRun::id).collect();
        assert_eq!(ids.len(), runs.len());
        let of_round = |part, round| {
            runs.iter().filter(move |run| run.part == part && run.round == round).count()
        };
        // Headline: 2 alone, 2 policies × 2 groupings. Matrix: 3 alone, 6 cells × 4.
        // Real: 1 alone, 2 policies × 2 groupings.
        for (part, rounds, each) in [
            (Part::Headline, size.headline_rounds, 6),
            (Part::Matrix, size.matrix_rounds, 27),
            (Part::Real, size.real_rounds, 5),
        ] {
            assert!(rounds > 0 && (0..rounds).all(|round| of_round(part, round) == each));
        }
    }

    #[test]
    fn parts_that_are_not_asked_for_are_left_out() {
        let parts = [Part::Headline, Part::Matrix, Part::Real];
        let whole = plan(&PhasesSize::short(), 1);
        assert_eq!(plan(&PhasesSize::short().only(&[]), 1), whole);
        assert_eq!(plan(&PhasesSize::short().only(&parts), 1), whole);
        for part in parts {
            let some = plan(&PhasesSize::short().only(&[part]), 1);
            assert_eq!(some.len(), whole.iter().filter(|run| run.part == part).count());
            assert!(some.iter().all(|run| run.part == part));
        }
    }

    #[test]
    fn policies_meet_the_same_programs() {
        let runs = plan(&PhasesSize::full(), 1);
        for (i, run) in runs.iter().enumerate() {
            let RunKind::Together { programs, .. } = &run.what else { continue };
            for other in runs.iter().skip(i) {
                let RunKind::Together { programs: theirs, .. } = &other.what else { continue };
                let same_cell = programs.map(|p| p.ratio) == theirs.map(|p| p.ratio);
                if same_cell && (run.part, run.round) == (other.part, other.round) {
                    assert_eq!(programs, theirs);
                }
            }
        }
    }

    #[test]
    fn a_seed_fixes_the_plan() {
        assert_eq!(plan(&PhasesSize::full(), 7), plan(&PhasesSize::full(), 7));
        assert_ne!(plan(&PhasesSize::full(), 7), plan(&PhasesSize::full(), 8));
    }

    #[test]
    fn the_order_within_a_round_is_random() {
        let first_is_alone = (0..20)
            .map(|seed| plan(&PhasesSize::short(), seed))
            .filter(|runs| matches!(runs.first().map(|r| &r.what), Some(RunKind::Alone { .. })))
            .count();
        assert!((1..20).contains(&first_is_alone));
    }

    #[test]
    fn the_sizes_hold_all_their_ratios() {
        assert_eq!(PhasesSize::full().matrix_ratios.len(), 3);
        assert_eq!(PhasesSize::short().matrix_ratios.len(), 3);
        assert_eq!(PhasesSize::short().with_all_ratios().matrix_ratios.len(), 9);
    }

    #[test]
    fn the_sizes_take_what_they_say() {
        let minutes = |size: &PhasesSize| estimate(&plan(size, 1)).as_secs_f64() / 60.0;
        assert!(minutes(&PhasesSize::full()) < 10.0);
        assert!(minutes(&PhasesSize::full().with_all_ratios()) < 10.0);
        assert!(minutes(&PhasesSize::short()) < 3.0);
    }

    #[test]
    fn names_fit_for_folders() {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "-.".contains(c);
        assert!(plan(&PhasesSize::full(), 1).iter().all(|run| run.id().chars().all(allowed)));
    }
}
