use symbiont_jobs::ProgramKey;
use symbiont_wire::jobs::{CoreType, JobStack, NodeJobs, VERSION};

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
    let of = |one: Job| Ok(NodeJobs { policy: "auto".to_owned(), ..node(vec![one, job(2, None)]) });
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
        let other = NodeJobs { processor, ..of(with(vec![next(2, -0.2, 9.0)], false)).unwrap() };
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
        (Err("at n1 port 5: it hangs".to_owned()), "does not say what its jobs need: at n1 port 5"),
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
        assert!(hearing.lines[0].starts_with(&format!("node n1 {line}")), "{:?}", hearing.lines);
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
