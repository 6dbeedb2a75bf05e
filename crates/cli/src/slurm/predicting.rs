//! What predicts slowdowns, from all that is known.

use symbiont_jobs::{Combined, Numbering, Observations, SharedCores, learn};
use symbiont_model::Model;

/// For nodes of so many CPUs, and programs that share a core.
#[derive(Debug)]
pub struct Predicting {
    cpus: usize,
    width: usize,
    processor: Option<String>,
    /// Numbers of programs.
    pub numbering: Numbering,
    /// The prediction.
    pub combined: Combined,
}

impl Predicting {
    /// From run times; from what was learned on cores of this processor, where it is known; and with a model from
    /// stacks too.
    pub fn new(
        known: &Observations,
        model: Option<&Model>,
        processor: Option<&str>,
        (cpus, width): (usize, usize),
    ) -> Self {
        let mut numbering = Numbering::of(known);
        let learned = learn(known, &mut numbering, cpus as f64);
        let combined = match model {
            Some(model) => Combined::new(learned, model, width, known, &numbering),
            None => Combined::of_run_times(learned),
        };
        let on_cores = |of: &str| SharedCores::new(known, &numbering, of, width);
        let combined = combined.with_shared_cores(processor.map(on_cores).unwrap_or_default());
        Self { cpus, width, processor: processor.map(str::to_owned), numbering, combined }
    }

    /// Is it for these nodes?
    pub fn is_for(&self, processor: Option<&str>, (cpus, width): (usize, usize)) -> bool {
        (self.processor.as_deref(), self.cpus, self.width) == (processor, cpus, width)
    }
}
