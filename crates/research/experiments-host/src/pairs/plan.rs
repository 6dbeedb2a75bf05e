//! What is measured, and for how long; pure functions.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::limit::least_limit;

/// Rounds: enough for intervals, and no more than are of use.
const LEAST_ROUNDS: u32 = 2;
const MOST_ROUNDS: u32 = 8;
/// Windows of this length and more are long enough; rounds come first from there on.
const LONG: Duration = Duration::from_millis(500);
/// Windows lie between these.
const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(5);
/// Slowdown that is reckoned with before it is known: that of programs that share all of a core.
const RECKONED: f64 = 2.0;

/// One program, alone or co-running with one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PairCell {
    /// The program.
    pub program: String,
    /// On the other hardware thread.
    pub co_runner: Option<String>,
    /// Which of several such measurements in a round, from 0.
    pub take: u32,
}

impl fmt::Display for PairCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.co_runner {
            None if self.take > 0 => write!(f, "{}, alone, {}", self.program, self.take + 1),
            None => write!(f, "{}, alone", self.program),
            Some(co_runner) => write!(f, "{} + {co_runner}", self.program),
        }
    }
}

/// Of which programs of a pair a measurement gives the speed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sides {
    /// Of both: each pair is measured once in a round.
    Both,
    /// Of the first; the other one is repeated meanwhile: each pair is measured in both orders.
    First,
}

/// Most measurements of a program alone in a round.
const MOST_TAKES: f64 = 3.0;

/// How often each of this many programs is measured alone in a round. All its slowdowns rest on that, so that it is
/// worth the root of their number.
fn takes(programs: usize) -> u32 {
    (programs as f64).sqrt().round().clamp(1.0, MOST_TAKES) as u32
}

/// All cells of a round: each program alone, several times where there are many, and each pair, a program with
/// itself included.
#[must_use]
pub fn cells(programs: &[String], sides: Sides) -> Vec<PairCell> {
    let takes = takes(programs.len());
    let alone = programs.iter().flat_map(|program| {
        (0..takes).map(|take| PairCell { program: program.clone(), co_runner: None, take })
    });
    let pairs = programs.iter().enumerate().flat_map(|(at, program)| {
        let first = if sides == Sides::Both { at } else { 0 };
        programs.iter().skip(first).map(|co_runner| PairCell {
            program: program.clone(),
            co_runner: Some(co_runner.clone()),
            take: 0,
        })
    });
    alone.chain(pairs).collect()
}

/// Rounds, each of which measures each cell for the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// How many rounds there are.
    pub rounds: u32,
    /// How long each measurement counts.
    pub window: Duration,
}

/// The limit is too short for this many programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "{cells} measurements in each of {LEAST_ROUNDS} rounds, and before them which hardware threads share a core, take \
     {least} s at least: give --limit {least}s, or fewer or shorter programs",
    least = least_limit(*.needed).as_secs_f64().ceil()
)]
pub struct TooShort {
    /// Measurements of a round.
    pub cells: usize,
    /// The least that they take.
    pub needed: Duration,
}

/// The same window for each of this many cells of a round, and as many rounds as that time allows, where each
/// measurement takes so much around its window.
///
/// # Errors
/// When two rounds of the shortest windows take longer.
pub fn windows(cells: usize, time: Duration, around: Duration) -> Result<Plan, TooShort> {
    let count = u32::try_from(cells.max(1)).unwrap_or(u32::MAX);
    let window =
        |rounds: u32| (time / count.saturating_mul(rounds)).checked_sub(around).unwrap_or_default();
    let long = (LEAST_ROUNDS..=MOST_ROUNDS).rev().find(|rounds| window(*rounds) >= LONG);
    let rounds = long.unwrap_or(LEAST_ROUNDS);
    if window(rounds) < SHORTEST {
        let needed = (around + SHORTEST) * count.saturating_mul(LEAST_ROUNDS);
        return Err(TooShort { cells, needed });
    }
    Ok(Plan { rounds, window: window(rounds).min(LONGEST) })
}

/// As many rounds of whole runs as that time allows, of programs that take so long alone.
///
/// # Errors
/// When two rounds take longer.
pub fn whole_runs(
    alone: &BTreeMap<String, Duration>,
    time: Duration,
    around: Duration,
) -> Result<u32, TooShort> {
    let programs = alone.len();
    let all: Duration = alone.values().sum();
    let takes = takes(programs);
    let cells = programs * (programs + takes as usize);
    let around = around * u32::try_from(cells).unwrap_or(u32::MAX);
    let round = all.mul_f64(f64::from(takes) + RECKONED * programs as f64) + around;
    let rounds = (time.as_secs_f64() / round.as_secs_f64().max(1e-9)) as u32;
    if rounds < LEAST_ROUNDS {
        return Err(TooShort { cells, needed: round * LEAST_ROUNDS });
    }
    Ok(rounds.min(MOST_ROUNDS))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::pairs::limit::{AROUND, for_sharing};

    fn names(count: usize) -> Vec<String> {
        (0..count).map(|number| format!("p{number}")).collect()
    }

    proptest! {
        #[test]
        fn each_pair_is_measured_equally_often(count in 1_usize..20) {
            let programs = names(count);
            let mut both: BTreeMap<(String, String), u32> = BTreeMap::new();
            let mut first = both.clone();
            let pair = |cell: &PairCell| Some((cell.program.clone(), cell.co_runner.clone()?));
            for (one, other) in cells(&programs, Sides::Both).iter().filter_map(pair) {
                *both.entry((one.clone(), other.clone())).or_default() += 1;
                if one != other {
                    *both.entry((other, one)).or_default() += 1;
                }
            }
            for key in cells(&programs, Sides::First).iter().filter_map(pair) {
                *first.entry(key).or_default() += 1;
            }
            for times in [both, first] {
                prop_assert_eq!(times.len(), count * count);
                prop_assert!(times.values().all(|times| *times == 1), "{:?}", times);
            }
            let mut cells = cells(&programs, Sides::Both);
            cells.retain(|it| it.co_runner.is_none());
            let takes = takes(count) as usize;
            prop_assert_eq!(cells.len(), takes * count);
            let alone = cells.into_iter().step_by(takes);
            prop_assert_eq!(alone.map(|it| it.program).collect::<Vec<_>>(), programs);
        }

        #[test]
        fn a_plan_stays_within_its_time(cells in 1_usize..2000, seconds in 1_u64..40_000) {
            let time = Duration::from_secs(seconds);
            match windows(cells, time, AROUND) {
                Ok(Plan { rounds, window }) => {
                    prop_assert!((window + AROUND) * rounds * cells as u32 <= time);
                    prop_assert!((SHORTEST..=LONGEST).contains(&window) && rounds >= LEAST_ROUNDS);
                }
                Err(TooShort { needed, .. }) => {
                    prop_assert!(needed > time);
                    prop_assert!(windows(cells, needed + Duration::from_micros(1), AROUND).is_ok());
                    let limit = least_limit(needed);
                    prop_assert!(windows(cells, limit - for_sharing(limit), AROUND).is_ok());
                }
            }
        }

        #[test]
        fn whole_runs_stay_within_their_time(
            runs in prop::collection::vec(1_u64..20_000, 1..8), seconds in 1_u64..20_000,
        ) {
            let alone: BTreeMap<String, Duration> =
                names(runs.len()).into_iter().zip(runs.iter().map(|ms| Duration::from_millis(*ms))).collect();
            let time = Duration::from_secs(seconds);
            // At the slowdown that is reckoned with.
            let round: Duration = cells(&names(runs.len()), Sides::First)
                .iter()
                .map(|cell| alone[&cell.program] * if cell.co_runner.is_some() { 2 } else { 1 } + AROUND)
                .sum();
            match whole_runs(&alone, time, AROUND) {
                Ok(rounds) => {
                    prop_assert!(rounds >= LEAST_ROUNDS && round * rounds <= time + Duration::from_millis(1));
                }
                Err(error) => prop_assert!(error.needed + Duration::from_millis(1) > time),
            }
        }
    }

    #[test]
    fn more_time_gives_longer_windows_then_more_rounds_then_ends_early() {
        let plan = |seconds| windows(10, Duration::from_secs(seconds), AROUND).unwrap();
        assert_eq!((plan(10).rounds, plan(10).window.as_millis()), (2, 100));
        assert_eq!((plan(18).rounds, plan(27).rounds), (2, 3));
        assert_eq!((plan(3600).rounds, plan(3600).window), (MOST_ROUNDS, LONGEST));
    }
}
