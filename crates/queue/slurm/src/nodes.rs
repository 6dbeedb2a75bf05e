//! The daemons of the nodes: which of them are asked ([`poller`]), whose answers are of use ([`requirements`]), and
//! what these add to what is known of programs ([`reports`]).

mod poller;
mod reports;
mod requirements;

use std::collections::{BTreeMap, BTreeSet};

use symbiont_jobs::Observations;
use symbiont_jobs::slurm::NodeState;
use symbiont_model::{Model, SmtMode};

use self::poller::NodeAddress;
pub use self::poller::NodePoller;
pub use self::reports::JobUpdate;
use self::reports::NodeReports;
use crate::knowledge::NodeKind;
use crate::tracked::TrackedJobs;

/// The daemons of the nodes, and what they have answered.
#[derive(Debug)]
pub struct NodeDaemons {
    model: Option<Model>,
    poller: NodePoller,
    reports: NodeReports,
    /// The processor that the nodes are taken to have until one has answered.
    presumed: Option<String>,
    /// The nodes that are asked, by the partitions for whose jobs they are.
    nodes: BTreeMap<String, Vec<NodeAddress>>,
}

impl NodeDaemons {
    /// With a model of the nodes' processor, if there is one.
    pub fn new(model: Option<Model>, poller: NodePoller) -> Self {
        let reports = NodeReports::of(model.as_ref());
        Self { model, poller, reports, presumed: None, nodes: BTreeMap::new() }
    }

    /// Until a node answers, the nodes are taken to have the processor on which most was learned.
    #[must_use]
    pub fn presuming(self, known: &Observations) -> Self {
        Self { presumed: known.processor_of_most_pairs().map(str::to_owned), ..self }
    }

    /// Asks these nodes of a partition from now on.
    pub fn ask(&mut self, partition: &str, nodes: &[NodeState]) {
        let asked = nodes
            .iter()
            .map(|node| NodeAddress { name: node.name.clone(), address: node.address.clone() });
        let asked: Vec<NodeAddress> = asked.collect();
        if self.nodes.get(partition) == Some(&asked) {
            return;
        }
        self.nodes.insert(partition.to_owned(), asked);
        let all: BTreeSet<&NodeAddress> = self.nodes.values().flatten().collect();
        self.poller.ask(all.into_iter().cloned().collect());
    }

    /// What of these nodes predictions depend on. Until one of them has answered, as many programs share a core as the
    /// model knows, or two.
    pub fn kind(&self, nodes: &[NodeState]) -> NodeKind {
        let modes = self.model.iter().flat_map(|model| model.modes.keys());
        let widest = modes.map(|mode: &SmtMode| mode.threads()).max();
        let of_nodes = self.reports.width(nodes.iter().map(|node| node.name.as_str()));
        let processor = self.reports.processor().or(self.presumed.as_deref());
        NodeKind {
            width: of_nodes.or(widest).unwrap_or(2),
            processor: processor.map(str::to_owned),
            ..NodeKind::of(nodes)
        }
    }

    /// What the answers since the last call add, and a line for each node that is of no use.
    pub fn take_updates(
        &mut self,
        jobs: &mut TrackedJobs,
        now_s: f64,
    ) -> (Vec<JobUpdate>, Vec<String>) {
        let (mut updates, mut lines) = (Vec::new(), Vec::new());
        for answer in self.poller.answers() {
            updates.extend(self.reports.read(answer, jobs, now_s, &mut lines));
        }
        (updates, lines)
    }

    /// How many nodes answered when they were last asked.
    pub fn answering(&self) -> usize {
        self.reports.answering()
    }

    /// The model, if there is one.
    pub fn model(&self) -> Option<&Model> {
        self.model.as_ref()
    }
}

/// Why a model may say little of the nodes' cores; none: it was trained on hardware.
pub fn model_doubt(model: &Model) -> Option<String> {
    model.is_simulated().then(|| {
        format!(
            "trained on {}; simulated pair speeds do not choose pairs on real hardware (symbiont machines NAME)",
            model.machine
        )
    })
}
