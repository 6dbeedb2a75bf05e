//! What the answers of nodes add to what is known of programs: their stacks, where there is a model, and what was learned
//! of programs that shared cores.
//!
//! A node reports sums since a job's start; each answer adds what is new since the one before. A job is heard of
//! from one node only, since two nodes may be one machine.

use std::collections::BTreeMap;

use symbiont_jobs::{NextTo, ProgramKey, Stack};
use symbiont_model::Model;
use symbiont_wire::jobs::{Job, JobStack, NextToJob, NodeJobs};

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
    /// What was learned of it next to others since then.
    pub next_to: Vec<(ProgramKey, NextTo)>,
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
    /// CPU times next to other jobs that the store has already.
    together_s: BTreeMap<u64, f64>,
    /// Had it ended?
    is_over: bool,
}

/// What nodes have answered so far.
#[derive(Debug)]
pub struct NodeStacks {
    /// That of the model, or of the node that answered first.
    processor: Option<String>,
    stacks: Option<Wanted>,
    heard: BTreeMap<u64, Heard>,
    /// Hardware threads per core, of each node that answered last time it was asked.
    widths: BTreeMap<String, usize>,
    /// What was said of nodes whose stacks are not used.
    said: BTreeMap<String, String>,
}

/// The stacks that a model takes.
#[derive(Debug)]
struct Wanted {
    core: &'static str,
    components: Vec<String>,
}

impl Wanted {
    fn of(model: &Model) -> Self {
        let mut components: Vec<String> = model.components.names().map(str::to_owned).collect();
        components.sort();
        Self { core: model.core.name(), components }
    }
}

impl NodeStacks {
    /// Of nodes that this model is of; without one, of nodes of one processor.
    pub fn of(model: Option<&Model>) -> Self {
        Self {
            processor: model.map(|model| model.machine.clone()),
            stacks: model.map(Wanted::of),
            heard: BTreeMap::new(),
            widths: BTreeMap::new(),
            said: BTreeMap::new(),
        }
    }

    /// The processor of the nodes, once it is known.
    pub fn processor(&self) -> Option<&str> {
        self.processor.as_deref()
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
        let is_wanted = |core: &str| self.stacks.as_ref().is_none_or(|wanted| core == wanted.core);
        let widths = jobs.core_types.iter().filter(|of| is_wanted(&of.core));
        let width = widths.map(|of| of.hardware_threads_per_core as usize).max().unwrap_or(1);
        self.widths.insert(node.clone(), width);
        if self.processor.is_none() {
            self.processor.clone_from(&jobs.processor);
        }
        let is_other = self.is_other(&jobs);
        let trouble = is_other.clone().or_else(|| self.trouble(&jobs));
        let has_trouble = trouble.is_some();
        self.say(&node, trouble, lines);
        let owners: BTreeMap<u64, u32> = jobs.jobs.iter().map(|job| (job.job, job.user)).collect();
        let key = |job: u64| Some(program(job, *owners.get(&job)?)?.key);
        let gained = |job: &Job| {
            let program = program(job.job, job.user)?;
            let new = || Heard {
                node: node.clone(),
                at_s: now_s,
                counted: JobStack::default(),
                together_s: BTreeMap::new(),
                is_over: false,
            };
            let heard = self.heard.entry(job.job).or_insert_with(new);
            if heard.node != node {
                return None;
            }
            heard.at_s = now_s;
            let processor = || self.processor.clone().unwrap_or_default();
            let wanted = self.stacks.as_ref().filter(|_| !has_trouble);
            let stack = wanted.and_then(|of| job.stacks.iter().find(|stack| stack.core == of.core));
            let gained = stack.and_then(|stack| heard.gained(stack, job.ended));
            let stack = gained.map(|(components, counted_s)| Stack {
                processor: processor(),
                components,
                counted_s,
            });
            let together = job.next_to.iter().filter(|_| is_other.is_none());
            let next_to = together.filter_map(|next| {
                let (other, together_s) = (key(next.job)?, heard.gained_next_to(next, job.ended)?);
                Some((other, NextTo { processor: processor(), ln: next.ln, together_s }))
            });
            let next_to: Vec<(ProgramKey, NextTo)> = next_to.collect();
            let cpu_s = (job.ended && !heard.is_over).then_some(job.run_time_s);
            heard.is_over = job.ended;
            let is_new = stack.is_some() || cpu_s.is_some() || !next_to.is_empty();
            is_new.then_some(Gained { job: job.job, program, stack, next_to, cpu_s })
        };
        jobs.jobs.iter().filter_map(gained).collect()
    }

    /// Why nothing of a node is used.
    fn is_other(&self, node: &NodeJobs) -> Option<String> {
        let wanted = self.processor.as_deref()?;
        let processor = node.processor.as_deref().unwrap_or("an unknown processor");
        let of =
            if self.stacks.is_some() { "the model is of" } else { "others that are asked have" };
        (processor != wanted)
            .then(|| format!("has {processor}, {of} {wanted}: what its jobs need is not used"))
    }

    /// Why the stacks of a node are not used, or without a model what was learned there.
    fn trouble(&self, node: &NodeJobs) -> Option<String> {
        let ran = || node.jobs.iter().any(|job| job.run_time_s >= SHOWS_S);
        let Some(Wanted { core, components }) = &self.stacks else {
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
    /// CPU time next to another job since the answer before; none: nothing that is worth a line.
    fn gained_next_to(&mut self, next: &NextToJob, has_ended: bool) -> Option<f64> {
        let known_s = self.together_s.entry(next.job).or_default();
        if next.together_s < *known_s {
            // The daemon has begun anew.
            *known_s = 0.0;
        }
        let gained_s = next.together_s - *known_s;
        if gained_s <= 0.0 || (gained_s < LEAST_GAIN_S && !has_ended) {
            return None;
        }
        *known_s = next.together_s;
        Some(gained_s)
    }

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
        let stacks = stack.into_iter().collect();
        Job { job, user: 7, run_time_s, stacks, ..Job::default() }
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
            Self { stacks: NodeStacks::of(Some(&model())), lines: Vec::new() }
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
    fn what_was_learned_of_two_jobs_is_that_of_their_programs() {
        let next = |job, ln, together_s| NextToJob { job, ln, together_s };
        let with = |next_to, ended| Job { next_to, ended, ..job(1, None) };
        let of =
            |one: Job| Ok(NodeJobs { policy: "auto".to_owned(), ..node(vec![one, job(2, None)]) });
        let gained = |hearing: &mut Hearing, node: &str, one| -> Vec<(String, f64, f64)> {
            let gained = hearing.hear(node, of(one)).into_iter().flat_map(|one| one.next_to);
            let rounded = |value: f64| (value * 1e9).round() / 1e9;
            gained.map(|(key, next)| (key.digest, next.ln, rounded(next.together_s))).collect()
        };
        for model in [None, Some(model())] {
            let mut hearing = Hearing { stacks: NodeStacks::of(model.as_ref()), lines: Vec::new() };
            let mut learned = |next_to, ended| gained(&mut hearing, "n1", with(next_to, ended));
            // Job 11 is not known.
            let first = learned(vec![next(2, -0.2, 3.0), next(11, -0.4, 3.0)], false);
            assert_eq!(first, [("a2".to_owned(), -0.2, 3.0)]);
            assert_eq!(learned(vec![next(2, -0.2, 3.5)], false), [], "too little");
            assert_eq!(learned(vec![next(2, -0.3, 4.2)], true), [("a2".to_owned(), -0.3, 1.2)]);
            let anew = learned(vec![next(2, -0.1, 2.0)], true);
            assert_eq!(anew, [("a2".to_owned(), -0.1, 2.0)], "the daemon has begun anew");
            let processor = Some("Another".to_owned());
            let other =
                NodeJobs { processor, ..of(with(vec![next(2, -0.2, 9.0)], false)).unwrap() };
            assert_eq!(hearing.hear("n2", Ok(other)), []);
            let line = hearing.lines.last().unwrap();
            assert!(line.contains("has Another") && line.contains("A processor: what"), "{line}");
        }
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
