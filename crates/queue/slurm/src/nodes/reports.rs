//! What the answers of nodes add to what is known of programs: CPI stacks, where there is a model; what was learned of
//! programs that shared cores; CPU times of jobs that have ended.
//!
//! ```text
//! an answer of a node  →  a line, once, if it is of no use: no answer, another processor, other stacks
//! each of its jobs whose program is known, and of which no other node has reported:
//!     add what the store does not have yet of its stack, and of the jobs next to it
//!     add its CPU time, once, when it has ended
//! ```
//!
//! # Properties
//! - Nothing is added twice (`each_answer_adds_what_is_new`,
//!   `a_daemon_that_began_anew_is_heard_from_its_beginning`).
//! - What does not fit is not used, and said once
//!   (`trouble_with_a_node_is_said_once_and_nothing_of_it_is_used`).
//! - A job counts for the program of its user (`jobs_that_are_not_known_or_another_users_are_left_out`).

use std::collections::BTreeMap;

use symbiont_jobs::{Identity, NextTo, ProgramKey, Stack};
use symbiont_model::Model;
use symbiont_wire::jobs::{Job, JobStack, NextToJob, NodeJobs};

use super::poller::NodeAnswer;
use super::progress::JobProgress;
use crate::tracked::TrackedJobs;

/// CPU time after which a job without a stack shows that its node's policy estimates none, seconds.
const SHOWS_S: f64 = 10.0;
/// How long a node's progress with a job is remembered without a report, seconds: longer than nodes report a job after
/// its end.
const REMEMBERED_S: f64 = 1800.0;

/// What an answer adds on a job.
#[derive(Debug, Clone, PartialEq)]
pub struct JobUpdate {
    /// The job.
    pub job: u64,
    /// Its program.
    pub program: Identity,
    /// What was counted of it.
    pub stack: Option<Stack>,
    /// What was learned of it next to other programs.
    pub next_to: Vec<(ProgramKey, NextTo)>,
    /// CPU time of all of it, seconds; once, when it has ended.
    pub cpu_s: Option<f64>,
}

/// What nodes have answered so far.
#[derive(Debug)]
pub struct NodeReports {
    /// The processor whose nodes are of use: that of the model, or of the node that answered first.
    processor: Option<String>,
    /// The stacks that are of use, where there is a model.
    format: Option<StackFormat>,
    /// Hardware threads per core, of each node that answered when it was last asked.
    widths: BTreeMap<String, usize>,
    /// The trouble with each node that is of no use, as it was reported.
    reported: BTreeMap<String, String>,
}

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

/// What of a node's answer is of use.
struct Usable {
    stacks: bool,
    next_to: bool,
}

impl NodeReports {
    /// Of nodes whose processor this model is of; without one, of nodes of one processor.
    pub fn of(model: Option<&Model>) -> Self {
        Self {
            processor: model.map(|model| model.machine.clone()),
            format: model.map(StackFormat::of),
            widths: BTreeMap::new(),
            reported: BTreeMap::new(),
        }
    }

    /// The processor of the nodes, once it is known.
    pub fn processor(&self) -> Option<&str> {
        self.processor.as_deref()
    }

    /// How many nodes answered when they were last asked.
    pub fn answering(&self) -> usize {
        self.widths.len()
    }

    /// Hardware threads per core of the widest of some nodes; none: none of them has answered.
    pub fn width<'n>(&self, nodes: impl Iterator<Item = &'n str>) -> Option<usize> {
        nodes.filter_map(|node| self.widths.get(node).copied()).max()
    }

    /// Reads an answer. Trouble with the node becomes a line.
    pub fn read(
        &mut self,
        answer: NodeAnswer,
        tracked: &mut TrackedJobs,
        now_s: f64,
        lines: &mut Vec<String>,
    ) -> Vec<JobUpdate> {
        let NodeAnswer { node, jobs } = answer;
        let jobs = match jobs {
            Ok(jobs) => jobs,
            Err(why) => {
                self.widths.remove(&node);
                let trouble = format!("does not say what its jobs need: {why}");
                self.report_once(&node, Some(trouble), lines);
                return Vec::new();
            }
        };
        self.widths.insert(node.clone(), self.width_of(&jobs));
        if self.processor.is_none() {
            self.processor.clone_from(&jobs.processor);
        }
        let other_processor = self.other_processor(&jobs);
        let next_to = other_processor.is_none();
        let trouble = other_processor.or_else(|| self.trouble(&jobs));
        let usable = Usable { stacks: trouble.is_none(), next_to };
        self.report_once(&node, trouble, lines);
        let owners: BTreeMap<u64, u32> = jobs.jobs.iter().map(|job| (job.job, job.user)).collect();
        let update = |job: &Job| {
            let program = program_of(tracked, job.job, job.user)?.clone();
            let key = |next: &NextToJob| {
                let program = program_of(tracked, next.job, *owners.get(&next.job)?)?;
                Some((next.clone(), program.key.clone()))
            };
            let partners = job.next_to.iter().filter(|_| usable.next_to).filter_map(key).collect();
            let progress = progress(tracked, job.job, &node, now_s)?;
            self.update(job, program, partners, progress, &usable)
        };
        jobs.jobs.iter().filter_map(update).collect()
    }

    fn width_of(&self, node: &NodeJobs) -> usize {
        let is_ours = |core: &str| self.format.as_ref().is_none_or(|format| core == format.core);
        let widths = node.core_types.iter().filter(|of| is_ours(&of.core));
        widths.map(|of| of.hardware_threads_per_core as usize).max().unwrap_or(1)
    }

    /// What a report adds on a job; none: nothing.
    fn update(
        &self,
        job: &Job,
        program: Identity,
        partners: Vec<(NextToJob, ProgramKey)>,
        progress: &mut JobProgress,
        usable: &Usable,
    ) -> Option<JobUpdate> {
        let processor = || self.processor.clone().unwrap_or_default();
        let format = self.format.as_ref().filter(|_| usable.stacks);
        let stack = format.and_then(|of| job.stacks.iter().find(|stack| stack.core == of.core));
        let new = stack.and_then(|stack| progress.new_stack(stack, job.ended));
        let stack = new.map(|(components, counted_s)| Stack {
            processor: processor(),
            components,
            counted_s,
        });
        let next_to = partners.into_iter().filter_map(|(next, other)| {
            let together_s = progress.new_time_next_to(&next, job.ended)?;
            Some((other, NextTo { processor: processor(), ln: next.ln, together_s }))
        });
        let next_to: Vec<(ProgramKey, NextTo)> = next_to.collect();
        let cpu_s = (job.ended && !progress.is_over).then_some(job.run_time_s);
        progress.is_over = job.ended;
        let is_new = stack.is_some() || cpu_s.is_some() || !next_to.is_empty();
        is_new.then_some(JobUpdate { job: job.job, program, stack, next_to, cpu_s })
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

    /// Reports a trouble with a node once, until it is over.
    fn report_once(&mut self, node: &str, trouble: Option<String>, lines: &mut Vec<String>) {
        match trouble {
            Some(trouble) if self.reported.get(node) == Some(&trouble) => {}
            Some(trouble) => {
                lines.push(format!("node {node} {trouble}"));
                self.reported.insert(node.to_owned(), trouble);
            }
            None => drop(self.reported.remove(node)),
        }
    }
}

/// The program of a user's job.
fn program_of(tracked: &TrackedJobs, job: u64, user: u32) -> Option<&Identity> {
    tracked.identity(job).filter(|program| program.key.user == user)
}

/// The progress of a job on this node; none: another node has reported it.
fn progress<'t>(
    tracked: &'t mut TrackedJobs,
    job: u64,
    node: &str,
    now_s: f64,
) -> Option<&'t mut JobProgress> {
    let progress = &mut tracked.track(job).progress;
    if progress.as_ref().is_some_and(|one| now_s - one.at_s >= REMEMBERED_S) {
        *progress = None;
    }
    let progress = progress.get_or_insert_with(|| JobProgress::new(node, now_s));
    if progress.node != node {
        return None;
    }
    progress.at_s = now_s;
    Some(progress)
}

#[cfg(test)]
mod tests {
    use symbiont_jobs::ProgramKey;
    use symbiont_wire::jobs::{CoreType, VERSION};

    use super::*;
    use crate::tests::model;
    use crate::tracked::JobProgram;

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

    /// Jobs 1 to 9 are user 7's, and their programs are known.
    fn tracked() -> TrackedJobs {
        let mut tracked = TrackedJobs::default();
        for job in 1..=9 {
            let key = ProgramKey { user: 7, digest: format!("a{job}") };
            let identity = Identity { key, name: format!("program{job}") };
            tracked.track(job).program = Some(JobProgram { identity, work: job });
        }
        tracked
    }

    struct Hearing {
        reports: NodeReports,
        tracked: TrackedJobs,
        lines: Vec<String>,
    }

    impl Hearing {
        fn new(model: Option<&Model>) -> Self {
            Self { reports: NodeReports::of(model), tracked: tracked(), lines: Vec::new() }
        }

        fn hear(&mut self, node: &str, jobs: Result<NodeJobs, String>) -> Vec<JobUpdate> {
            let answer = NodeAnswer { node: node.to_owned(), jobs };
            self.reports.read(answer, &mut self.tracked, 100.0, &mut self.lines)
        }
    }

    fn memory(gained: &JobUpdate) -> (f64, f64) {
        let stack = gained.stack.as_ref().unwrap();
        let rounded = |value: f64| (value * 1e9).round() / 1e9;
        (rounded(stack.components["memory"]), rounded(stack.counted_s))
    }

    #[test]
    fn each_answer_adds_what_is_new() {
        let mut hearing = Hearing::new(Some(&model()));
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
        let mut hearing = Hearing::new(Some(&model()));
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
            let mut hearing = Hearing::new(model.as_ref());
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
        let mut hearing = Hearing::new(Some(&model()));
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
            let mut hearing = Hearing::new(Some(&model()));
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
                (hearing.reports.answering(), hearing.reports.width(["n1"].into_iter())),
                (1, Some(2))
            );
            hearing.hear("n1", answer);
            assert_eq!(hearing.lines.len(), 2);
        }
    }
}
