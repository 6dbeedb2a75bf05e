//! Interference model: what threads that share a core cost each other.
//!
//! # Problem
//! Which threads should share a core depends on how much they slow each other down there. Trying all
//! combinations takes too long; a model predicts it from what each thread does where it is.
//!
//! # Approach
//! Feliu et al., section 3. A thread's CPI stack, normalised ([`Shares`]), says
//! how likely it needs what. Per component, coefficients say how that grows with
//! co-runners (`symbiont-training` fits them):
//!
//! | step | here |
//! |---|---|
//! | the stack of a thread, from a catalogue's formulas, coarse or fine | [`Components`], [`CpiStack`], [`Depth`] |
//! | coefficients of one SMT mode | [`SmtModel`], [`Fit`] |
//! | stacks alone, from co-running stacks | [`SmtModel::invert`], [`Inversion`] |
//! | slowdowns of all possible groups | [`Interference`], [`Costs`] |
//! | a file that holds it all | [`Model`] |
//!
//! Beyond the paper: other objectives ([`Objective`]), and what groups did as a correction of what is
//! predicted of them ([`Interference::corrected_by`]).
//!
//! # Terms and units
//! *Throttled*: alone, with the core in the SMT mode of the group. *Shares*: components over the stack's own
//! CPI; they sum to 1. *Slowdown*: co-running CPI / throttled CPI. *Victim*: the thread whose slowdown is
//! meant. *Form*: which terms predict a slowdown. CPI in cycles per instruction; errors are relative.
//!
//! # Properties
//! - The inverse is exact where all components grow alike
//!   (`the_published_inverse_is_exact_where_all_components_grow_alike`).
//! - Whatever the coefficients, predictions are finite and positive
//!   (`predictions_are_finite_and_positive`) and inverted stacks are stacks
//!   (`whatever_the_coefficients_the_result_is_a_stack`).
//! - Without δ the sum of slowdowns is the same for every coschedule
//!   (`without_interaction_no_pairing_is_better_than_another`).
//! - Figure 2 of the paper is reproduced (`figure_2_is_reproduced`).
//! - What was not measured is absent, never zero
//!   (`a_missing_component_is_named_with_the_reason`,
//!   `an_unmeasured_quantum_is_no_quantum_of_zero_cycles`).

mod costs;
mod depth;
mod fitted;
mod forward;
#[cfg(fuzzing)]
pub mod fuzzing;
mod interference;
mod inverse;
mod mode;
mod objective;
mod smt;
mod stack;
mod stored;
#[cfg(test)]
mod testing;
mod throttling;

pub use costs::Costs;
pub use depth::{Depth, UnknownDepth};
pub use fitted::Fit;
pub use forward::{Coefficients, LEAST_SLOWDOWN, Prediction, Terms, component_sums};
pub use interference::{CoRunObservation, Interference};
pub use inverse::{InverseEstimate, Inversion, LEAST_EIGENVALUE, invert};
pub use mode::{SmtMode, UnknownMode};
pub use objective::{Objective, antt, stp};
pub use smt::{Form, SmtModel};
pub use stack::{Components, ComponentsError, CpiStack, Shares, StackError};
pub use stored::{
    Here, Holdout, Model, ModelError, Problem, SIMULATED, Score, TrainedMode, Training, VERSION,
};
pub use throttling::Throttling;
