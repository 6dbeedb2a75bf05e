//! Trains interference models: from runs alone and together to coefficients, and to how far the models err.
//!
//! # Problem
//! A model's coefficients come from measured runs. Whether it may be used depends on its error on programs that
//! it has not seen. None of this is needed where threads are placed.
//!
//! # Approach
//! As Feliu et al., sections 3.2 and 6.1.
//!
//! | step | here |
//! |---|---|
//! | the same instructions alone and in an SMT group | [`align`](align()), [`Profile`] |
//! | coefficients by least squares | [`fit`](fit()), [`fit_throttling`] |
//! | errors on programs that were left out | [`TrainingSet`], [`Validation`] |
//! | programs whose interference is known, for tests | [`synthetic`] |
//!
//! Everything is a function over plain values.
//!
//! # Terms and units
//! As in [`symbiont_model`]. *Fold*: a model that was fitted without some programs, and its predictions of those.
//!
//! # Properties
//! - Known coefficients are recovered (`known_coefficients_are_recovered`).
//! - A fold's model has seen no observation of its programs (`a_fold_knows_nothing_of_its_programs`).

mod align;
mod baseline;
mod eigen;
mod errors;
mod fit;
mod observation;
pub mod synthetic;
#[cfg(test)]
mod testing;
mod throttling;
mod validate;

pub use align::{AlignError, Aligned, Profile, Quantum, Together, align};
pub use errors::{BIN, BINS, Errors};
pub use fit::{FitError, Weighting, fit, fit_weighted};
pub use observation::{Observation, ObservationError, Observed};
pub use throttling::fit_throttling;
pub use validate::{Fold, PairTables, Predictor, TrainingSet, Validation, ValidationError};
