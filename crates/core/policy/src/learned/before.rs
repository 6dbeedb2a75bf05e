//! What was learned of pairs of programs, for the next time that they run.
//!
//! Of a pair that is kept, what the co-runner takes is kept with half the variance of its difference to the co-runner
//! that it is compared with best: how fast a program is alone is learned anew, and variances of what co-runners take
//! have most of that in them.
//!
//! Property: what was learned is there the next time (`what_was_learned_is_there_the_next_time`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use symbiont_topology::CoreKind;

use super::row::{Belief, Kind, Origin, Row};

/// Programs that are kept.
const MOST_PROGRAMS: usize = 256;
/// Co-runners that are kept of one.
const MOST_CO_RUNNERS: usize = 32;
/// Variance by which a pair may be another one the next time, in squares of ln: other inputs, other versions.
const NEXT_TIME: f64 = 0.02 * 0.02;

/// What programs take from each other on a core of this machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LearnedPairs {
    /// Those that ran last come first.
    pub programs: Vec<LearnedProgram>,
}

/// What co-runners take from a program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LearnedProgram {
    /// Its name.
    pub program: String,
    /// The cores that it ran on.
    pub core: CoreKind,
    /// Co-runners.
    pub next_to: Vec<NextTo>,
}

/// A co-runner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NextTo {
    /// Its name.
    pub program: String,
    /// What it adds to the natural logarithm of instructions per cycle.
    pub ln: f64,
    /// Variance of that.
    pub variance: f64,
}

impl LearnedPairs {
    /// Is there nothing?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.programs.is_empty()
    }

    /// What is known now, and of programs that did not run what was known before.
    pub(super) fn of(known: &[(&Origin, Kind, &Row)], before: &Self) -> Self {
        let names: BTreeMap<Kind, &str> =
            known.iter().map(|((name, _), kind, _)| (*kind, name.as_str())).collect();
        let mut programs: Vec<LearnedProgram> =
            known.iter().filter_map(|(origin, _, row)| program(row, origin, &names)).collect();
        for old in &before.programs {
            let is_it =
                |new: &&mut LearnedProgram| (&new.program, new.core) == (&old.program, old.core);
            match programs.iter_mut().find(is_it) {
                Some(new) => keep(new, &old.next_to),
                None => programs.push(old.clone()),
            }
        }
        programs.truncate(MOST_PROGRAMS);
        Self { programs }
    }
}

fn program(row: &Row, origin: &Origin, names: &BTreeMap<Kind, &str>) -> Option<LearnedProgram> {
    let next_to = |(other, belief): (Kind, Belief)| {
        let program = (*names.get(&other)?).to_owned();
        Some(NextTo { program, ln: belief.mean, variance: belief.variance })
    };
    let next_to: Vec<NextTo> = row.compared().into_iter().filter_map(next_to).collect();
    let (program, core) = origin.clone();
    (!next_to.is_empty()).then_some(LearnedProgram { program, core, next_to })
}

/// Adds co-runners that were known before.
fn keep(new: &mut LearnedProgram, before: &[NextTo]) {
    for old in before {
        if new.next_to.len() < MOST_CO_RUNNERS
            && !new.next_to.iter().any(|next| next.program == old.program)
        {
            new.next_to.push(old.clone());
        }
    }
}

/// The same, to be looked up.
#[derive(Debug, Clone, Default)]
pub(super) struct Index {
    /// Co-runners of a program.
    pub of: BTreeMap<Origin, Vec<(Origin, Belief)>>,
    /// Programs by their co-runner.
    pub next_to: BTreeMap<Origin, Vec<(Origin, Belief)>>,
}

impl Index {
    pub fn new(pairs: &LearnedPairs) -> Self {
        let mut index = Self::default();
        for LearnedProgram { program, core, next_to } in pairs.programs.iter().take(MOST_PROGRAMS) {
            let is_sound = |next: &&NextTo| next.ln.is_finite() && next.variance >= 0.0;
            for next in next_to.iter().filter(is_sound).take(MOST_CO_RUNNERS) {
                let belief = Belief { mean: next.ln, variance: next.variance + NEXT_TIME };
                let [of, other] = [program, &next.program].map(|name| (name.clone(), *core));
                index.of.entry(of.clone()).or_default().push((other.clone(), belief));
                index.next_to.entry(other).or_default().push((of, belief));
            }
        }
        index
    }
}
