//! The daemons of the nodes: which are asked, and what their answers add to what is known.

use std::collections::{BTreeMap, BTreeSet};

use symbiont_jobs::slurm::NodeState;
use symbiont_model::{Model, SmtMode};

use super::nodes::{Asked, Poller};
use super::stacks::{Gained, NodeStacks};
use crate::identity::Identity;

/// The daemons of the nodes, and what they have answered.
#[derive(Debug)]
pub struct Daemons {
    model: Model,
    poller: Poller,
    stacks: NodeStacks,
    /// The nodes of each partition that is looked at.
    nodes: BTreeMap<String, Vec<Asked>>,
}

impl Daemons {
    /// Of nodes that a model is of.
    pub fn new(model: Model, poller: Poller) -> Self {
        let stacks = NodeStacks::of(&model);
        Self { model, poller, stacks, nodes: BTreeMap::new() }
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

    /// Programs that share a core of these nodes at most; until one has answered, as many as the model knows.
    pub fn width(&self, nodes: &[NodeState]) -> usize {
        let widest = self.model.modes.keys().map(|mode: &SmtMode| mode.threads()).max();
        let of_nodes = self.stacks.width(nodes.iter().map(|node| node.name.as_str()));
        of_nodes.or(widest).unwrap_or(1)
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

    /// The model.
    pub fn model(&self) -> &Model {
        &self.model
    }
}
