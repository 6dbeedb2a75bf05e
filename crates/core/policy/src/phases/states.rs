//! Which programs were in which phases together, and for how long (Morad et
//! al., Fig. 1 and 2).

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use symbiont_machine::ProgramId;

use super::{Phase, ProgramPhase};

/// More different joint states than this are not distinguished.
const MOST: usize = 256;

/// The phase of each program at one time.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct JointState(BTreeMap<ProgramId, Phase>);

impl JointState {
    /// The joint state of programs in these phases.
    pub(super) fn of(programs: &BTreeMap<ProgramId, ProgramPhase>) -> Self {
        Self(programs.iter().map(|(id, program)| (*id, program.phase)).collect())
    }

    /// The phases, ordered by program.
    pub fn phases(&self) -> impl Iterator<Item = (ProgramId, Phase)> {
        self.0.iter().map(|(id, phase)| (*id, *phase))
    }
}

/// As in the paper, in the order of the programs: `S,P`. `I`: idle; `?`: not
/// known yet.
impl fmt::Display for JointState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = |phase: &Phase| match phase {
            Phase::Serial => "S",
            Phase::Parallel => "P",
            Phase::Idle => "I",
            Phase::Unknown => "?",
        };
        let letters: Vec<&str> = self.0.values().map(letter).collect();
        f.write_str(&letters.join(","))
    }
}

/// Time in each joint state, and changes between them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JointStates {
    /// Time in each.
    pub time: BTreeMap<JointState, Duration>,
    /// Time in states beyond those that are distinguished.
    pub beyond: Duration,
    /// Times that one joint state followed another.
    pub changes: u64,
    last: Option<JointState>,
}

impl JointStates {
    /// Adds a quantum of this length.
    pub(super) fn add(&mut self, state: JointState, over: Duration) {
        if self.time.contains_key(&state) || self.time.len() < MOST {
            *self.time.entry(state.clone()).or_default() += over;
        } else {
            self.beyond += over;
        }
        self.changes += u64::from(self.last.as_ref().is_some_and(|last| *last != state));
        self.last = Some(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(phases: &[Phase]) -> JointState {
        JointState((0u32..).map(ProgramId).zip(phases.iter().copied()).collect())
    }

    #[test]
    fn time_and_changes_are_counted() {
        use Phase::{Idle, Parallel, Serial};
        let mut states = JointStates::default();
        let quantum = Duration::from_millis(20);
        for phases in [[Serial, Parallel], [Serial, Parallel], [Idle, Parallel], [Serial, Parallel]]
        {
            states.add(state(&phases), quantum);
        }
        assert_eq!(states.time[&state(&[Serial, Parallel])], 3 * quantum);
        assert_eq!(states.changes, 2);
        assert_eq!(state(&[Serial, Parallel, Idle]).to_string(), "S,P,I");
    }

    #[test]
    fn there_is_a_bound_on_states() {
        let mut states = JointStates::default();
        for code in 0..1024u32 {
            let phases: Vec<Phase> = (0..10)
                .map(|bit| if code >> bit & 1 == 0 { Phase::Serial } else { Phase::Parallel })
                .collect();
            states.add(state(&phases), Duration::from_secs(1));
        }
        assert_eq!(states.time.len(), MOST);
        assert_eq!(states.beyond, Duration::from_secs(1024 - MOST as u64));
    }
}
