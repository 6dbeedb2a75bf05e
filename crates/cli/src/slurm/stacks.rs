//! What the answers of nodes add to what is known of programs.
//!
//! A node reports sums since a job's start; each answer adds what is new since the one before. A job is heard of
//! from one node only, since two nodes may be one machine.

use std::collections::BTreeMap;

use symbiont_jobs::Stack;
use symbiont_model::Model;
use symbiont_wire::jobs::{Job, JobStack, NodeJobs};

use super::nodes::Answer;
use crate::identity::Identity;

/// CPU time that is worth a line in the store, seconds; at a job's end any is.
const LEAST_GAIN_S: f64 = 1.0;
/// CPU time after which a job without a stack shows that its node's policy estimates none, seconds.
const SHOWS_S: f64 = 10.0;
/// How long a job is remembered after it was last heard of, seconds: longer than nodes report it.
const REMEMBERED_S: f64 = 1800.0;

/// What is new of a job's program.
#[derive(Debug, Clone, PartialEq)]
pub struct Gained {
    /// The job.
    pub job: u64,
    /// Its program.
    pub program: Identity,
    /// What was counted since it was last heard of.
    pub stack: Option<Stack>,
    /// CPU time of all of it, seconds; once, when it has ended.
    pub cpu_s: Option<f64>,
}

/// What was heard of a job.
#[derive(Debug)]
struct Heard {
    node: String,
    at_s: f64,
    /// What the store has of it already.
    counted: JobStack,
    /// Had it ended?
    is_over: bool,
}

/// What nodes have answered so far.
#[derive(Debug)]
pub struct NodeStacks {
    processor: String,
    core: &'static str,
    components: Vec<String>,
    heard: BTreeMap<u64, Heard>,
    /// Hardware threads per core, of each node that answered last time it was asked.
    widths: BTreeMap<String, usize>,
    /// What was said of nodes whose stacks are not used.
    said: BTreeMap<String, String>,
}

impl NodeStacks {
    /// Of nodes that this model is of.
    pub fn of(model: &Model) -> Self {
        let mut components: Vec<String> = model.components.names().map(str::to_owned).collect();
        components.sort();
        Self {
            processor: model.machine.clone(),
            core: model.core.name(),
            components,
            heard: BTreeMap::new(),
            widths: BTreeMap::new(),
            said: BTreeMap::new(),
        }
    }

    /// Nodes that answered last time they were asked.
    pub fn answering(&self) -> usize {
        self.widths.len()
    }

    /// Hardware threads per core of the widest of some nodes; none: none of them has answered.
    pub fn width<'n>(&self, nodes: impl Iterator<Item = &'n str>) -> Option<usize> {
        nodes.filter_map(|node| self.widths.get(node).copied()).max()
    }

    /// Takes an answer; `program` gives the program of a user's job. What is wrong with a node becomes a line,
    /// once.
    pub fn hear(
        &mut self,
        answer: Answer,
        now_s: f64,
        program: impl Fn(u64, u32) -> Option<Identity>,
        lines: &mut Vec<String>,
    ) -> Vec<Gained> {
        let Answer { node, jobs } = answer;
        self.heard.retain(|_, heard| now_s - heard.at_s < REMEMBERED_S);
        let jobs = match jobs {
            Ok(jobs) => jobs,
            Err(why) => {
                self.widths.remove(&node);
                self.say(&node, Some(format!("does not say what its jobs need: {why}")), lines);
                return Vec::new();
            }
        };
        let of_core = jobs.core_types.iter().find(|of| of.core == self.core);
        let width = of_core.map_or(1, |of| of.hardware_threads_per_core as usize);
        self.widths.insert(node.clone(), width);
        let trouble = self.trouble(&jobs);
        let is_other = trouble.is_some();
        self.say(&node, trouble, lines);
        let gained = |job: &Job| {
            let program = program(job.job, job.user)?;
            let new = || Heard {
                node: node.clone(),
                at_s: now_s,
                counted: JobStack::default(),
                is_over: false,
            };
            let heard = self.heard.entry(job.job).or_insert_with(new);
            if heard.node != node {
                return None;
            }
            heard.at_s = now_s;
            let stack = job.stacks.iter().find(|stack| stack.core == self.core && !is_other);
            let gained = stack.and_then(|stack| heard.gained(stack, job.ended));
            let processor = self.processor.clone();
            let stack =
                gained.map(|(components, counted_s)| Stack { processor, components, counted_s });
            let cpu_s = (job.ended && !heard.is_over).then_some(job.run_time_s);
            heard.is_over = job.ended;
            (stack.is_some() || cpu_s.is_some()).then_some(Gained {
                job: job.job,
                program,
                stack,
                cpu_s,
            })
        };
        jobs.jobs.iter().filter_map(gained).collect()
    }

    /// Why the stacks of a node are not used.
    fn trouble(&self, node: &NodeJobs) -> Option<String> {
        let processor = node.processor.as_deref().unwrap_or("an unknown processor");
        if processor != self.processor {
            return Some(format!(
                "has {processor}, the model is of {}: what its jobs need is not used",
                self.processor
            ));
        }
        let stacks = || node.jobs.iter().flat_map(|job| &job.stacks);
        let others = |stack: &&JobStack| !stack.components.keys().eq(&self.components);
        if let Some(other) = stacks().filter(|stack| stack.core == self.core).find(others) {
            let names: Vec<&str> = other.components.keys().map(String::as_str).collect();
            return Some(format!(
                "counts {}, the model is of {}: what its jobs need is not used",
                names.join(" + "),
                self.components.join(" + ")
            ));
        }
        let ran = node.jobs.iter().any(|job| job.run_time_s >= SHOWS_S);
        (ran && stacks().next().is_none()).then(|| {
            format!(
                "places jobs by policy '{}', which does not estimate what they need",
                node.policy
            )
        })
    }

    fn say(&mut self, node: &str, trouble: Option<String>, lines: &mut Vec<String>) {
        match trouble {
            Some(trouble) if self.said.get(node) == Some(&trouble) => {}
            Some(trouble) => {
                lines.push(format!("node {node} {trouble}"));
                self.said.insert(node.to_owned(), trouble);
            }
            None => drop(self.said.remove(node)),
        }
    }
}

impl Heard {
    /// What was counted since the answer before, and for how long; none: nothing that is worth a line.
    fn gained(
        &mut self,
        stack: &JobStack,
        has_ended: bool,
    ) -> Option<(BTreeMap<String, f64>, f64)> {
        if stack.counted_s < self.counted.counted_s {
            // The daemon has begun anew.
            self.counted = JobStack::default();
        }
        let before = &self.counted;
        let gained_s = stack.counted_s - before.counted_s;
        if gained_s <= 0.0 || (gained_s < LEAST_GAIN_S && !has_ended) {
            return None;
        }
        let part = |(name, mean): (&String, &f64)| {
            let known = before.components.get(name).copied().unwrap_or(0.0) * before.counted_s;
            (name.clone(), ((mean * stack.counted_s - known) / gained_s).max(0.0))
        };
        let components = stack.components.iter().map(part).collect();
        self.counted = stack.clone();
        Some((components, gained_s))
    }
}

#[cfg(test)]
mod tests {
    use symbiont_jobs::ProgramKey;
    use symbiont_wire::jobs::{CoreType, VERSION};

    use super::*;
    use crate::slurm::tests::model;

    fn stack(counted_s: f64, memory: f64) -> JobStack {
        let components = [("base".to_owned(), 1.0 - memory), ("memory".to_owned(), memory)].into();
        JobStack { core: "performance".to_owned(), counted_s, components }
    }

    fn job(job: u64, stack: Option<JobStack>) -> Job {
        let run_time_s = stack.as_ref().map_or(20.0, |stack| stack.counted_s);
        Job { job, user: 7, ended: false, run_time_s, stacks: stack.into_iter().collect() }
    }

    fn node(jobs: Vec<Job>) -> NodeJobs {
        let core = "performance".to_owned();
        NodeJobs {
            version: VERSION,
            processor: Some("A processor".to_owned()),
            policy: "symbiotic".to_owned(),
            core_types: vec![CoreType { core, hardware_threads_per_core: 2 }],
            jobs,
        }
    }

    /// Jobs of user 7 are known up to 9.
    fn program(job: u64, user: u32) -> Option<Identity> {
        let key = ProgramKey { user, digest: format!("a{job}") };
        (user == 7 && job <= 9).then(|| Identity { key, name: format!("program{job}") })
    }

    struct Hearing {
        stacks: NodeStacks,
        lines: Vec<String>,
    }

    impl Hearing {
        fn new() -> Self {
            Self { stacks: NodeStacks::of(&model()), lines: Vec::new() }
        }

        fn hear(&mut self, node: &str, jobs: Result<NodeJobs, String>) -> Vec<Gained> {
            let answer = Answer { node: node.to_owned(), jobs };
            self.stacks.hear(answer, 100.0, program, &mut self.lines)
        }
    }

    fn memory(gained: &Gained) -> (f64, f64) {
        let stack = gained.stack.as_ref().unwrap();
        let rounded = |value: f64| (value * 1e9).round() / 1e9;
        (rounded(stack.components["memory"]), rounded(stack.counted_s))
    }

    #[test]
    fn each_answer_adds_what_is_new() {
        let mut hearing = Hearing::new();
        let first = hearing.hear("n1", Ok(node(vec![job(1, Some(stack(2.0, 0.5)))])));
        assert_eq!((memory(&first[0]), first[0].program.key.digest.as_str()), ((0.5, 2.0), "a1"));
        assert_eq!(first[0].cpu_s, None);
        // The same again, and too little more.
        assert_eq!(hearing.hear("n1", Ok(node(vec![job(1, Some(stack(2.0, 0.5)))]))), []);
        assert_eq!(hearing.hear("n1", Ok(node(vec![job(1, Some(stack(2.5, 0.4)))]))), []);
        let more = hearing.hear("n1", Ok(node(vec![job(1, Some(stack(4.0, 0.75)))])));
        assert_eq!(memory(&more[0]), (1.0, 2.0));
        // Another node's daemon is this one's, by another name.
        assert_eq!(hearing.hear("n2", Ok(node(vec![job(1, Some(stack(9.0, 0.0)))]))), []);
        let ended = Job { ended: true, ..job(1, Some(stack(4.5, 0.75))) };
        let last = hearing.hear("n1", Ok(node(vec![ended.clone()])));
        assert_eq!((memory(&last[0]), last[0].cpu_s), ((0.75, 0.5), Some(4.5)));
        assert_eq!(hearing.hear("n1", Ok(node(vec![ended]))), []);
        assert_eq!(hearing.lines, Vec::<String>::new());
    }

    #[test]
    fn a_daemon_that_began_anew_is_heard_from_its_beginning() {
        let mut hearing = Hearing::new();
        hearing.hear("n1", Ok(node(vec![job(1, Some(stack(5.0, 0.5)))])));
        let anew = hearing.hear("n1", Ok(node(vec![job(1, Some(stack(2.0, 1.0)))])));
        assert_eq!(memory(&anew[0]), (1.0, 2.0));
    }

    #[test]
    fn jobs_that_are_not_known_or_another_users_are_left_out() {
        let mut hearing = Hearing::new();
        let others = Job { user: 8, ..job(2, Some(stack(5.0, 0.5))) };
        let jobs = vec![others, job(11, Some(stack(5.0, 0.5)))];
        assert_eq!(hearing.hear("n1", Ok(node(jobs))), []);
        assert_eq!(hearing.lines, Vec::<String>::new());
    }

    #[test]
    fn trouble_with_a_node_is_said_once_and_nothing_of_it_is_used() {
        let with = |change: fn(&mut NodeJobs)| {
            let mut other = node(vec![job(1, Some(stack(5.0, 0.5)))]);
            change(&mut other);
            Ok(other)
        };
        for (answer, line) in [
            (
                Err("at n1 port 5: it hangs".to_owned()),
                "does not say what its jobs need: at n1 port 5",
            ),
            (
                with(|node| node.processor = Some("Another".to_owned())),
                "has Another, the model is of A processor: what its jobs need is not used",
            ),
            (
                with(|node| {
                    node.jobs[0].stacks[0].components.insert("odd".to_owned(), 0.1);
                }),
                "counts base + memory + odd, the model is of base + memory",
            ),
            (
                with(|node| node.jobs = vec![job(1, None)]),
                "places jobs by policy 'symbiotic', which does not estimate what they need",
            ),
        ] {
            let mut hearing = Hearing::new();
            for _ in 0..3 {
                assert_eq!(hearing.hear("n1", answer.clone()), []);
            }
            assert_eq!(hearing.lines.len(), 1, "{:?}", hearing.lines);
            assert!(
                hearing.lines[0].starts_with(&format!("node n1 {line}")),
                "{:?}",
                hearing.lines
            );
            // Once it answers as it should, its trouble would be said again.
            let well = || Ok(node(vec![job(2, Some(stack(5.0, 0.5)))]));
            assert_eq!(hearing.hear("n1", well()).len(), 1);
            assert_eq!(
                (hearing.stacks.answering(), hearing.stacks.width(["n1"].into_iter())),
                (1, Some(2))
            );
            hearing.hear("n1", answer);
            assert_eq!(hearing.lines.len(), 2);
        }
    }
}
