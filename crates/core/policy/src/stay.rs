//! `stay`: leaves everything to the OS. The baseline that every other policy
//! is compared with.

use std::time::Duration;

use symbiont_machine::{Assignment, Placement};

use crate::{Entry, Policy, View};

/// How the policy appears in the list of policies.
pub(crate) const ENTRY: Entry = Entry {
    name: "stay",
    summary: "leaves every thread to the OS; the baseline to compare with",
    paper: None,
    quantum: Duration::from_millis(100),
    boosts: false,
    parameters: &[],
    make: |_| Box::new(Stay),
};

/// Leaves everything to the OS.
#[derive(Debug, Clone, Copy, Default)]
pub struct Stay;

impl Policy for Stay {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn place(&mut self, view: &View<'_>) -> Placement {
        view.threads.iter().map(|t| (t.id, Assignment::os("left to the OS"))).collect()
    }
}
