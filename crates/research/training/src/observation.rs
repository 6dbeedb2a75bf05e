//! What models are fitted on: groups of threads that ran together, quantum by quantum, with each thread's own
//! stack alone.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use symbiont_model::{CpiStack, Shares, SmtMode, StackError};

/// A program among certain co-runners, in any order.
pub(crate) type Case = (Arc<str>, Vec<Arc<str>>);

/// One thread of a group over one quantum.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Observed {
    /// Its program.
    pub program: Arc<str>,
    /// Its stack over the same instructions alone, throttled to the group's
    /// SMT mode.
    pub alone: CpiStack,
    /// Its stack in the group.
    pub together: CpiStack,
}

impl Observed {
    /// CPI with co-runners over throttled CPI.
    #[must_use]
    pub fn slowdown(&self) -> f64 {
        self.together.cpi() / self.alone.cpi()
    }

    /// The components with co-runners over throttled CPI; they sum to the slowdown.
    #[must_use]
    pub fn relative(&self) -> Vec<f64> {
        self.together.relative_to(self.alone.cpi())
    }
}

/// A group of two to eight threads on one core over one quantum.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<Observed>", into = "Vec<Observed>")]
pub struct Observation(Vec<Observed>);

/// Why threads make no observation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ObservationError {
    /// Fewer than two threads, or more than eight.
    #[error("{0} threads share no core; a group has two to eight")]
    Size(usize),
    /// Stacks of different lengths.
    #[error(transparent)]
    Stack(#[from] StackError),
}

impl TryFrom<Vec<Observed>> for Observation {
    type Error = ObservationError;

    fn try_from(threads: Vec<Observed>) -> Result<Self, ObservationError> {
        Self::new(threads)
    }
}

impl From<Observation> for Vec<Observed> {
    fn from(observation: Observation) -> Self {
        observation.0
    }
}

impl Observation {
    /// An observation of the threads of a group.
    ///
    /// # Errors
    /// When there are not two to eight, or their stacks differ in length.
    pub fn new(threads: Vec<Observed>) -> Result<Self, ObservationError> {
        if SmtMode::of(threads.len()).is_none() {
            return Err(ObservationError::Size(threads.len()));
        }
        let want = threads.first().map_or(0, |thread| thread.alone.parts().len());
        let stacks = threads.iter().flat_map(|thread| [&thread.alone, &thread.together]);
        let odd = stacks.map(|stack| stack.parts().len()).find(|&got| got != want);
        odd.map_or(Ok(Self(threads)), |got| Err(StackError::Length { got, want }.into()))
    }

    /// Its threads.
    #[must_use]
    pub fn threads(&self) -> &[Observed] {
        &self.0
    }

    /// Number of components of its stacks.
    #[must_use]
    pub fn components(&self) -> usize {
        self.0.first().map_or(0, |thread| thread.alone.parts().len())
    }

    /// The programs that take part.
    #[must_use]
    pub fn programs(&self) -> BTreeSet<Arc<str>> {
        self.0.iter().map(|thread| Arc::clone(&thread.program)).collect()
    }

    /// Each thread's program among the others'.
    pub(crate) fn cases(&self) -> Vec<Case> {
        let others = |victim: usize| {
            let others = self.0.iter().enumerate().filter(|(at, _)| *at != victim);
            let mut others: Vec<_> = others.map(|(_, other)| Arc::clone(&other.program)).collect();
            others.sort_unstable();
            others
        };
        let one = |(at, thread): (usize, &Observed)| (Arc::clone(&thread.program), others(at));
        self.0.iter().enumerate().map(one).collect()
    }

    /// Shares of all threads alone.
    #[must_use]
    pub fn alone(&self) -> Vec<Shares> {
        self.0.iter().map(|thread| thread.alone.shares()).collect()
    }

    /// Shares of all threads with co-runners.
    #[must_use]
    pub fn together(&self) -> Vec<Shares> {
        self.0.iter().map(|thread| thread.together.shares()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(parts: &[f64]) -> Observed {
        let stack = CpiStack::new(parts.to_vec()).unwrap();
        Observed { program: "a".into(), alone: stack.clone(), together: stack }
    }

    #[test]
    fn only_groups_that_share_a_core_are_observed() {
        for size in [0, 1, 9] {
            let refused = Observation::new(vec![thread(&[1.0]); size]);
            assert_eq!(refused, Err(ObservationError::Size(size)));
        }
        let uneven = Observation::new(vec![thread(&[1.0]), thread(&[1.0, 2.0])]);
        assert_eq!(uneven, Err(StackError::Length { got: 2, want: 1 }.into()));
    }

    #[test]
    fn a_written_observation_reads_back_and_a_damaged_one_is_refused() {
        let observation = Observation::new(vec![thread(&[1.0, 0.5]); 2]).unwrap();
        let text = serde_json::to_string(&observation).unwrap();
        assert_eq!(serde_json::from_str::<Observation>(&text).unwrap(), observation);
        assert!(serde_json::from_str::<Observation>(&text.replace("0.5", "0.5,3")).is_ok());
        assert!(serde_json::from_str::<Observation>(&text.replacen("0.5", "0.5,3", 1)).is_err());
        assert!(serde_json::from_str::<Observation>("[]").is_err());
    }
}
