//! `stay`: leaves everything to the OS. The baseline that every other policy
//! is compared with, and the template to copy for a new one.
//!
//! To add a policy: copy this file, rename what it defines, add the module to
//! `lib.rs` and its entry to the list in `registry.rs`. Tests that run over the
//! whole list check the rules that the comments below name.

use std::time::Duration;

use symbiont_machine::{Assignment, Placement};

use crate::{Entry, Policy, Requirements, View};

/// How the policy appears in the list of policies.
pub(crate) const ENTRY: Entry = Entry {
    // What a user writes after `--policy`: a single lower-case word.
    name: "stay",
    // One line, what it does in plain words.
    summary: "leaves every thread to the OS; the baseline to compare with",
    // Where it was published, if it was.
    paper: None,
    // How often it decides, unless the user says otherwise; the paper's value.
    quantum: Duration::from_millis(100),
    // Does it ask for a priority above the user's?
    boosts: false,
    // What users may set: constants of the type `Parameter`, see `Hysched::HYSTERESIS`.
    parameters: &[],
    // Makes one. Seed and parameters are in the settings: `settings.get(&PARAMETER)`.
    make: |_| Box::new(Stay),
};

/// Leaves everything to the OS.
#[derive(Debug, Clone, Copy, Default)]
// State that a policy keeps from quantum to quantum would be fields here.
pub struct Stay;

impl Policy for Stay {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    // Signals that `place` cannot do without: machines measure just these. By default there are none,
    // and this function may be left out.
    fn requirements(&self) -> Requirements {
        Requirements::of([])
    }

    // The decision. It must name every thread of the view and no other; send a
    // thread only to hardware threads that `view.allowed(thread)` has; leave a
    // thread that is not settled to the OS; and depend on nothing but the view
    // and what earlier views left in `self`. What the thread did over the last
    // quantum is in `thread.did`, what was counted in `thread.measured`; both are
    // absent for a thread just born, and each count may be by itself. The
    // reason is for people: say what decided, with its numbers.
    fn place(&mut self, view: &View<'_>) -> Placement {
        view.threads.iter().map(|t| (t.id, Assignment::os("left to the OS"))).collect()
    }
}
