//! What is known of programs, and what is predicted from it.

use symbiont_jobs::slurm::NodeState;
use symbiont_jobs::{
    CombinedPredictor, Numbering, Observations, SharedCores, Store, StoreError, learn,
};
use symbiont_model::Model;

/// What is known of programs, as the store has it.
#[derive(Debug)]
pub struct Knowledge {
    store: Store,
    observations: Observations,
    /// What was made of the observations last, until they change.
    predictor: Option<Predictor>,
}

impl Knowledge {
    /// What a store was read to hold.
    pub fn new(store: Store, observations: Observations) -> Self {
        Self { store, observations, predictor: None }
    }

    /// All observations.
    pub fn observations(&self) -> &Observations {
        &self.observations
    }

    /// Adds to what is known, here and in the store.
    pub fn update(&mut self, add: impl FnOnce(&mut Observations)) -> Result<(), StoreError> {
        self.observations = self.store.update(add)?;
        self.predictor = None;
        Ok(())
    }

    /// Takes out the predictor for such nodes; it is made anew if more is known by now, or the last was for others.
    pub fn take_predictor(&mut self, model: Option<&Model>, nodes: NodeKind) -> Predictor {
        match self.predictor.take() {
            Some(made) if made.nodes == nodes => made,
            _ => Predictor::new(&self.observations, model, nodes),
        }
    }

    /// Keeps a predictor for the next time.
    pub fn keep_predictor(&mut self, predictor: Predictor) {
        self.predictor = Some(predictor);
    }
}

/// What of nodes a prediction depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeKind {
    /// CPUs of the largest.
    pub cpus: usize,
    /// Programs that share a core at most.
    pub width: usize,
    /// Their processor, where it is known.
    pub processor: Option<String>,
}

impl NodeKind {
    /// Nodes of which no more is known than Slurm says.
    pub fn of(nodes: &[NodeState]) -> Self {
        let cpus = nodes.iter().map(|node| node.cpus).max().unwrap_or(1);
        Self { cpus, width: 1, processor: None }
    }
}

/// Predicts slowdowns on nodes of one kind, from all that is known.
#[derive(Debug)]
pub struct Predictor {
    nodes: NodeKind,
    /// Numbers of programs, by which predictions name them.
    pub numbering: Numbering,
    /// The prediction.
    pub combined: CombinedPredictor,
}

impl Predictor {
    /// From run times; from what was learned on cores of the nodes' processor, where that is known; with a model from
    /// CPI stacks, too.
    fn new(observations: &Observations, model: Option<&Model>, nodes: NodeKind) -> Self {
        let mut numbering = Numbering::of(observations);
        let learned = learn(observations, &mut numbering, nodes.cpus as f64);
        let combined = match model {
            Some(model) => {
                CombinedPredictor::new(learned, model, nodes.width, observations, &numbering)
            }
            None => CombinedPredictor::of_run_times(learned),
        };
        let on_cores = |of: &str| SharedCores::new(observations, &numbering, of, nodes.width);
        let shared_cores = nodes.processor.as_deref().map(on_cores).unwrap_or_default();
        Self { combined: combined.with_shared_cores(shared_cores), nodes, numbering }
    }
}
