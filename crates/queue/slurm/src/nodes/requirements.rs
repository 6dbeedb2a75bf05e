//! What a node has to be for its answers to be of use.
//!
//! ```text
//! another processor than the model's, or than the first node's  →  nothing of it is used
//! other stacks than the model's, or a policy that estimates none  →  its stacks are not used
//! no model, and a policy that learns nothing of shared cores  →  a line; there is nothing to use
//! ```

use symbiont_model::Model;
use symbiont_wire::jobs::{Job, JobStack, NodeJobs};

/// CPU time after which a job without a stack shows that its node's policy estimates none, seconds.
const SHOWS_S: f64 = 10.0;

/// The stacks that a model takes.
#[derive(Debug)]
struct StackFormat {
    core: &'static str,
    components: Vec<String>,
}

impl StackFormat {
    fn of(model: &Model) -> Self {
        let mut components: Vec<String> = model.components.names().map(str::to_owned).collect();
        components.sort();
        Self { core: model.core.name(), components }
    }
}

/// What of a node's answer is of use, and why not all of it.
#[derive(Debug)]
pub struct Usable {
    /// Its jobs' stacks?
    pub stacks: bool,
    /// What was learned of jobs next to each other?
    pub next_to: bool,
    /// The trouble with the node.
    pub trouble: Option<String>,
}

/// What nodes have to be.
#[derive(Debug)]
pub struct Requirements {
    /// That of the model, or of the node that answered first.
    processor: Option<String>,
    /// The stacks that a model takes, where there is one.
    format: Option<StackFormat>,
}

impl Requirements {
    /// Nodes whose processor this model is of; without one, nodes of one processor.
    pub fn of(model: Option<&Model>) -> Self {
        Self {
            processor: model.map(|model| model.machine.clone()),
            format: model.map(StackFormat::of),
        }
    }

    /// The processor, once it is known.
    pub fn processor(&self) -> Option<&str> {
        self.processor.as_deref()
    }

    /// Checks an answer. Without a model, the first one decides which processor nodes have to have.
    pub fn check(&mut self, node: &NodeJobs) -> Usable {
        if self.processor.is_none() {
            self.processor.clone_from(&node.processor);
        }
        let other_processor = self.other_processor(node);
        let next_to = other_processor.is_none();
        let trouble = other_processor.or_else(|| self.trouble(node));
        Usable { stacks: trouble.is_none() && self.format.is_some(), next_to, trouble }
    }

    /// Hardware threads per core, of the cores that the model is of.
    pub fn width(&self, node: &NodeJobs) -> usize {
        let is_ours = |core: &str| self.format.as_ref().is_none_or(|format| core == format.core);
        let widths = node.core_types.iter().filter(|of| is_ours(&of.core));
        widths.map(|of| of.hardware_threads_per_core as usize).max().unwrap_or(1)
    }

    /// The stack of a job on the cores that the model is of.
    pub fn stack<'j>(&self, job: &'j Job) -> Option<&'j JobStack> {
        let format = self.format.as_ref()?;
        job.stacks.iter().find(|stack| stack.core == format.core)
    }

    /// Why nothing of a node is used: it has another processor.
    fn other_processor(&self, node: &NodeJobs) -> Option<String> {
        let wanted = self.processor.as_deref()?;
        let processor = node.processor.as_deref().unwrap_or("an unknown processor");
        let of =
            if self.format.is_some() { "the model is of" } else { "others that are asked have" };
        (processor != wanted)
            .then(|| format!("has {processor}, {of} {wanted}: what its jobs need is not used"))
    }

    /// Why a node is of no use, though its processor fits: its stacks to the model, or without one what it learns.
    fn trouble(&self, node: &NodeJobs) -> Option<String> {
        let ran = || node.jobs.iter().any(|job| job.run_time_s >= SHOWS_S);
        let Some(StackFormat { core, components }) = &self.format else {
            let learns = ["auto", "learned"].contains(&node.policy.as_str());
            return (!learns && ran()).then(|| {
                format!(
                    "places jobs by policy '{}', which does not learn which of them suit each other on a core",
                    node.policy
                )
            });
        };
        let stacks = || node.jobs.iter().flat_map(|job| &job.stacks);
        let others = |stack: &&JobStack| !stack.components.keys().eq(components);
        if let Some(other) = stacks().filter(|stack| stack.core == *core).find(others) {
            let names: Vec<&str> = other.components.keys().map(String::as_str).collect();
            return Some(format!(
                "counts {}, the model is of {}: what its jobs need is not used",
                names.join(" + "),
                components.join(" + ")
            ));
        }
        (ran() && stacks().next().is_none()).then(|| {
            format!(
                "places jobs by policy '{}', which does not estimate what they need",
                node.policy
            )
        })
    }
}
