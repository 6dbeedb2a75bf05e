//! Model files: text, versioned, and refused where they do not fit.
//!
//! # Problem
//! Coefficients hold for one microarchitecture, one core type, one way of
//! reading its counters. Used elsewhere they give numbers that look right.
//!
//! # Approach
//! A model file says where it comes from: machine, core type, catalogue,
//! the formulas of its components, the programs it was trained on, when, and
//! how large its errors are. [`Model::load`] compares that with what is here. A
//! checksum (FNV-1a, 64 bits, over all that follows its line) shows damage and
//! edits. TOML, so that people can read it.
//!
//! What a formula means is compared by its text. An event whose encoding was
//! corrected under the same name is not noticed.
//!
//! # Properties
//! - What is written is read back (`what_is_written_is_read_back`).
//! - Damage anywhere is refused (`any_damage_is_refused`), as is any other text
//!   (`any_text_is_read_or_refused_without_panic`).
//! - A refusal says file, reason, and what to do
//!   (`models_that_do_not_fit_are_refused_with_the_reason`).

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use symbiont_counters::catalogue::Catalogue;
use symbiont_topology::CoreKind;

use crate::{Components, Fit, SmtMode, Throttling};

mod document;
mod error;
#[cfg(test)]
mod tests;

#[cfg(fuzzing)]
pub(crate) use document::sealed;
pub use error::{ModelError, Problem};

/// Version of the format that is written, and the only one that is read.
pub const VERSION: u32 = 5;

/// How the names of simulated machines end in model files.
pub const SIMULATED: &str = " (simulated)";

/// Everything that was learnt about sharing a core on one machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// The machine, as its owner or its firmware names it.
    pub machine: String,
    /// The core type.
    pub core: CoreKind,
    /// Name of the event catalogue.
    pub catalogue: String,
    /// The stack, with the formulas of its components.
    pub components: Components,
    /// How it was trained.
    pub training: Training,
    /// What was fitted, by SMT mode.
    pub modes: BTreeMap<SmtMode, TrainedMode>,
}

/// Where a model comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Training {
    /// When it was fitted, as RFC 3339 has it.
    pub date: String,
    /// Programs of the training set.
    pub programs: Vec<String>,
    /// Length of a quantum in milliseconds.
    pub quantum_ms: u64,
    /// What else a reader should know.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// What was fitted for one SMT mode.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainedMode {
    /// The coefficients.
    pub fit: Fit,
    /// Throttled against isolated speed, if that was measured.
    pub throttling: Option<Throttling>,
    /// Cross-validated errors.
    pub scores: Vec<Score>,
}

/// What is left out of a fold's training set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Holdout {
    /// All observations with any of the programs.
    Programs,
    /// The observations of this combination of programs only.
    Combinations,
}

/// A cross-validated figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Score {
    /// What predicted: a form, an inversion or a baseline, by name.
    pub of: String,
    /// What was predicted: `slowdown`, or the name of a component.
    pub predicts: String,
    /// What was left out of training.
    pub holdout: Holdout,
    /// Predictions.
    pub count: u64,
    /// Mean absolute relative error.
    pub mean_absolute: f64,
    /// Share of predictions within ±5 %.
    pub within: f64,
}

/// The machine that a model shall be used on.
#[derive(Debug, Clone, Copy)]
pub struct Here<'a> {
    /// Its name.
    pub machine: &'a str,
    /// Its core types.
    pub sorts: &'a [CoreKind],
    /// The catalogue that its counters are read by.
    pub catalogue: &'a Catalogue,
}

impl Model {
    /// Reads a model file that fits this machine.
    ///
    /// # Errors
    /// When it cannot be read, is damaged or of another version, or does not
    /// fit: see [`Problem`].
    pub fn load(path: &Path, here: &Here<'_>) -> Result<Self, ModelError> {
        let wrong = |problem| ModelError { path: path.to_owned(), problem };
        let text = symbiont_safe_open::read_to_string(path).map_err(|e| wrong(Problem::Io(e)))?;
        let model = Self::parse(&text).map_err(wrong)?;
        model.fits(here).map_err(wrong)?;
        Ok(model)
    }

    /// Writes a model file: to another name first, which is then renamed, so that no reader ever sees half of it.
    ///
    /// # Errors
    /// When the file cannot be written, or a number is not finite.
    pub fn save(&self, path: &Path) -> Result<(), ModelError> {
        let wrong = |problem| ModelError { path: path.to_owned(), problem };
        let text = self.to_text().map_err(wrong)?;
        let written = symbiont_safe_open::output::replace_by(path, 0o644, text.as_bytes());
        written.map_err(|error| wrong(Problem::Io(error)))
    }

    /// Reads the text of a model file.
    ///
    /// # Errors
    /// When it is damaged or of another version.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        document::read(text)
    }

    /// The text of a model file.
    ///
    /// # Errors
    /// [`Problem::Content`] when it could not be read back, as with a number
    /// that is not finite.
    pub fn to_text(&self) -> Result<String, Problem> {
        document::write(self)
    }

    /// Was it trained on a simulated machine? Pair speeds of such a one were never shown to be those of hardware.
    #[must_use]
    pub fn is_simulated(&self) -> bool {
        self.machine.ends_with(SIMULATED)
    }

    /// Does it hold for this machine?
    ///
    /// # Errors
    /// The first thing that differs.
    pub fn fits(&self, here: &Here<'_>) -> Result<(), Problem> {
        let differs =
            |found: &str, here: &str| (found != here).then(|| [found, here].map(str::to_owned));
        if let Some([found, here]) = differs(&self.machine, here.machine) {
            return Err(Problem::Machine { found, here });
        }
        if !here.sorts.contains(&self.core) {
            return Err(Problem::Core { found: self.core, here: here.sorts.to_vec() });
        }
        if let Some([found, here]) = differs(&self.catalogue, here.catalogue.name()) {
            return Err(Problem::Catalogue { found, here });
        }
        let reason = match Components::of(here.catalogue, self.components.sum()) {
            Ok(now) if now == self.components => return Ok(()),
            Ok(now) => {
                format!("it now is {now}, with other formulas than when the model was trained")
            }
            Err(error) => error.to_string(),
        };
        Err(Problem::Stack { stack: self.components.to_string(), reason })
    }
}
