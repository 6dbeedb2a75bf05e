//! What a policy asks of the machine that it runs on, and of its user.

use symbiont_machine::{Signal, Signals};

use crate::MissingInput;

/// What a policy asks of a machine and of its user. It may differ before and after the policy knows
/// what the machine offers ([`Policy::offer`](crate::Policy::offer)).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Requirements {
    /// Signals that it cannot do without. A machine that cannot measure all of them cannot run it.
    pub required: Signals,
    /// Signals that it uses where the machine can measure them.
    pub optional: Signals,
    /// Signals that may take the place of a required one, as the policy decides once it knows which
    /// of them the machine can measure.
    pub alternatives: Signals,
    /// The input that it cannot do without and was not given; it leaves everything to the OS then.
    pub missing_input: Option<MissingInput>,
}

impl Requirements {
    /// These signals, and nothing else.
    #[must_use]
    pub fn of(required: impl IntoIterator<Item = Signal>) -> Self {
        Self { required: required.into_iter().collect(), ..Self::default() }
    }

    /// What a machine is asked for before the policy knows it.
    #[must_use]
    pub fn asked(&self) -> Signals {
        self.required.union(&self.alternatives).copied().collect()
    }

    /// What a machine measures once the policy knows it.
    #[must_use]
    pub fn measured(&self) -> Signals {
        self.required.union(&self.optional).copied().collect()
    }
}
