//! Why a model file is refused.

use std::path::PathBuf;

use symbiont_topology::CoreKind;

use super::VERSION;

/// A model file that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("model {}: {problem}", path.display())]
pub struct ModelError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong.
    #[source]
    pub problem: Problem,
}

/// What is wrong with a model.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// It cannot be read or written.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// It is of another version of the format.
    #[error("its format is version {0}, this Symbiont reads version {VERSION}; train it again")]
    Version(u32),
    /// It is no model file, or has been changed.
    #[error("damaged: {0}; train it again, or restore it from a copy")]
    Damaged(String),
    /// It holds what no model can hold.
    #[error("{0}; train it again")]
    Content(String),
    /// It was trained on another machine.
    #[error("trained on '{found}', this is '{here}'; train one here")]
    Machine {
        /// Machine of the model.
        found: String,
        /// This machine.
        here: String,
    },
    /// It was trained on another core type.
    #[error("trained on {found:?} cores, and the cores here are {here:?}; train one for them")]
    Core {
        /// Core type of the model.
        found: CoreKind,
        /// Core types here.
        here: Vec<CoreKind>,
    },
    /// It was trained with another catalogue.
    #[error("trained with event catalogue '{found}', this machine's is '{here}'; train one here")]
    Catalogue {
        /// Catalogue of the model.
        found: String,
        /// Catalogue here.
        here: String,
    },
    /// The catalogue no longer measures the same stack.
    #[error("trained on stack {stack}: {reason}; train it again")]
    Stack {
        /// The model's stack.
        stack: String,
        /// How the catalogue differs.
        reason: String,
    },
}
