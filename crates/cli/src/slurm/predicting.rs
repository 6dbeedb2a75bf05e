//! What predicts slowdowns, from all that is known.

use symbiont_jobs::{Combined, Numbering, Observations, learn};
use symbiont_model::Model;

/// For nodes of so many CPUs, and programs that share a core.
#[derive(Debug)]
pub struct Predicting {
    cpus: usize,
    width: usize,
    /// Numbers of programs.
    pub numbering: Numbering,
    /// The prediction.
    pub combined: Combined,
}

impl Predicting {
    /// From run times, and with a model from stacks too.
    pub fn new(known: &Observations, model: Option<&Model>, cpus: usize, width: usize) -> Self {
        let mut numbering = Numbering::of(known);
        let learned = learn(known, &mut numbering, cpus as f64);
        let combined = match model {
            Some(model) => Combined::new(learned, model, width, known, &numbering),
            None => Combined::of_run_times(learned),
        };
        Self { cpus, width, numbering, combined }
    }

    /// Is it for these nodes?
    pub fn is_for(&self, cpus: usize, width: usize) -> bool {
        (self.cpus, self.width) == (cpus, width)
    }
}
