//! The daemons of the nodes: which are asked, and what their answers add to what is known.

use std::collections::{BTreeMap, BTreeSet};

use symbiont_jobs::Observations;
use symbiont_jobs::slurm::NodeState;
use symbiont_model::{Model, SmtMode};

use super::nodes::{Asked, Poller};
use super::stacks::{Gained, NodeStacks};
use crate::identity::Identity;

/// The daemons of the nodes, and what they have answered.
#[derive(Debug)]
pub struct Daemons {
    model: Option<Model>,
    poller: Poller,
    stacks: NodeStacks,
    /// The processor of the nodes, until one has answered.
    presumed: Option<String>,
    /// The nodes of each partition that is looked at.
    nodes: BTreeMap<String, Vec<Asked>>,
}

impl Daemons {
    /// Of nodes that a model is of, if there is one.
    pub fn new(model: Option<Model>, poller: Poller) -> Self {
        let stacks = NodeStacks::of(model.as_ref());
        Self { model, poller, stacks, presumed: None, nodes: BTreeMap::new() }
    }

    /// Until a node answers, nodes are taken to be those that most was learned on.
    #[must_use]
    pub fn presuming(self, known: &Observations) -> Self {
        Self { presumed: known.processor_of_most_pairs().map(str::to_owned), ..self }
    }

    /// Asks the nodes of a partition from now on.
    pub fn ask(&mut self, partition: &str, nodes: &[NodeState]) {
        let asked = nodes
            .iter()
            .map(|node| Asked { name: node.name.clone(), address: node.address.clone() });
        let asked: Vec<Asked> = asked.collect();
        if self.nodes.get(partition) == Some(&asked) {
            return;
        }
        self.nodes.insert(partition.to_owned(), asked);
        let all: BTreeSet<&Asked> = self.nodes.values().flatten().collect();
        self.poller.ask(all.into_iter().cloned().collect());
    }

    /// Programs that share a core of these nodes at most; until one has answered, as many as the model knows, or two.
    pub fn width(&self, nodes: &[NodeState]) -> usize {
        let modes = self.model.iter().flat_map(|model| model.modes.keys());
        let widest = modes.map(|mode: &SmtMode| mode.threads()).max();
        let of_nodes = self.stacks.width(nodes.iter().map(|node| node.name.as_str()));
        of_nodes.or(widest).unwrap_or(2)
    }

    /// What nodes have answered since the last call; `program` gives the program of a user's job. Each node that
    /// is of no use becomes a line.
    pub fn hear(
        &mut self,
        now_s: f64,
        program: impl Fn(u64, u32) -> Option<Identity>,
    ) -> (Vec<Gained>, Vec<String>) {
        let (mut gained, mut lines) = (Vec::new(), Vec::new());
        for answer in self.poller.answers() {
            gained.extend(self.stacks.hear(answer, now_s, &program, &mut lines));
        }
        (gained, lines)
    }

    /// Nodes that answered when they were asked last.
    pub fn answering(&self) -> usize {
        self.stacks.answering()
    }

    /// The model, if there is one.
    pub fn model(&self) -> Option<&Model> {
        self.model.as_ref()
    }

    /// The processor of the nodes, once it is known.
    pub fn processor(&self) -> Option<&str> {
        self.stacks.processor().or(self.presumed.as_deref())
    }
}
