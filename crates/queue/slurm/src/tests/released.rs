//! Which jobs are released, and what is learnt of them.

use proptest::prelude::*;

use super::*;

#[test]
fn jobs_are_released_to_free_cpus_once_and_never_more() {
    let (_folder, store) = store();
    let mut cluster = Fake {
        jobs: vec![waits(1, 0.0), waits(2, 0.0), waits(3, 0.0)],
        nodes: vec![node("a", 2, 1), node("b", 2, 1)],
        ..Fake::default()
    };
    let mut releaser = releaser(&mut cluster, options(), store, Observations::default());
    assert_eq!(releaser.step(10.0).unwrap().len(), 2);
    // They have not started yet, so their CPUs are idle still.
    assert_eq!(releaser.step(15.0).unwrap().len(), 0);
    assert_eq!(releaser.metrics.waiting, 1);
    drop(releaser);
    assert_eq!(cluster.calls, ["release 1 a", "release 2 b"]);
}

#[test]
fn jobs_are_released_ahead_of_free_cpus_where_that_is_asked_for() {
    let (_folder, store) = store();
    let drained = NodeState { takes_jobs: false, ..node("b", 2, 0) };
    let mut cluster = Fake {
        jobs: vec![runs(9, "a"), waits(1, 0.0), waits(2, 0.0)],
        nodes: vec![node("a", 1, 0), drained],
        ..Fake::default()
    };
    let options = ReleaseOptions { ahead: 1, ..options() };
    let mut releaser = releaser(&mut cluster, options, store, Observations::default());
    assert_eq!(releaser.step(10.0).unwrap().len(), 1);
    assert_eq!(releaser.step(15.0).unwrap().len(), 0);
    drop(releaser);
    assert_eq!(cluster.calls, ["release 1 a"]);
}

#[test]
fn a_node_is_kept_for_a_job_of_several_cpus_and_why_says_so() {
    let (_folder, store) = store();
    let wide = QueuedJob { cpus: 2, priority: 2000, ..waits(1, 0.0) };
    let runs = |id, node, ends_s| QueuedJob { ends_s: Some(ends_s), ..runs(id, node) };
    let short = |id, limit_s| QueuedJob { limit_s: Some(limit_s), ..waits(id, 0.0) };
    // Where no job may start none is kept either, and none ends sooner than what is over.
    let drained = NodeState { takes_jobs: false, ..node("c", 2, 0) };
    let mut cluster = Fake {
        jobs: vec![
            runs(8, "a", 900.0),
            runs(9, "b", 500.0),
            wide,
            waits(2, 0.0),
            waits(3, 0.0),
            short(4, 461.0),
            short(5, 460.0),
        ],
        nodes: vec![node("a", 2, 1), node("b", 2, 1), drained],
        ..Fake::default()
    };
    let mut releaser = releaser(&mut cluster, options(), store, Observations::default());
    let decisions = releaser.step(40.0).unwrap();
    let words: Vec<_> = decisions.iter().map(Decision::text).collect();
    assert_eq!(decisions.len(), 3, "{words:?}");
    assert!(words[0].starts_with("job 2 (job2) was released to a after 40 s"), "{words:?}");
    assert!(words[1].starts_with("job 5 (job5) was released to b after 40 s"), "{words:?}");
    let why = "first of the queue that fits there; by the time limits job 1, for which b is kept, starts no later";
    assert!(words[1].contains(why), "{words:?}");
    assert_eq!(
        words[2],
        "b is kept for job 1 (job1), which has waited for 40 s: its turn has come, and it has room nowhere yet"
    );
    // Once is enough.
    assert_eq!(releaser.step(45.0).unwrap().len(), 0);
    drop(releaser);
    assert_eq!(cluster.calls, ["release 2 a", "release 5 b"]);
}

#[test]
fn what_earlier_jobs_have_shown_decides_and_is_given_as_the_reason() {
    let (_folder, store) = store();
    let mut known = Observations::default();
    for (at, (name, other, elapsed_s)) in (0..)
        .zip([("x", "x", 16.0), ("x", "y", 10.0), ("y", "x", 10.0), ("y", "y", 16.0)].repeat(3))
    {
        let co_runners = vec![(key(other), 1.0)];
        let (work, error_s) = (1, 0.0);
        let run = CompletedRun { ended_s: at, work, elapsed_s, error_s, cpu_s: None, co_runners };
        known.add_run(&key(name), name, run);
    }
    let mut cluster = Fake {
        jobs: vec![runs(9, "a"), waits(1, 0.0), waits(2, 0.0), waits(3, 0.0)],
        nodes: vec![node("a", 2, 1)],
        scripts: [(9, script("x")), (1, script("x")), (2, script("y")), (3, script("y"))].into(),
        ..Fake::default()
    };
    let mut releaser = releaser(&mut cluster, options(), store, known);
    let decisions = releaser.step(10.0).unwrap();
    assert_eq!(decisions[0].job, 2, "{decisions:?}");
    let text = decisions[0].text();
    assert!(text.contains("next to x: it suits what runs there"), "{text}");
    assert!(text.contains("6 runs of its program were known"), "{text}");
}

#[test]
fn a_job_that_has_waited_for_the_maximum_is_released_first() {
    let (_folder, store) = store();
    let mut cluster = Fake {
        jobs: vec![waits(1, 5000.0), waits(2, 0.0)],
        nodes: vec![node("a", 1, 1)],
        ..Fake::default()
    };
    let mut releaser = releaser(&mut cluster, options(), store, Observations::default());
    let decisions = releaser.step(5001.0).unwrap();
    assert_eq!((decisions.len(), decisions[0].job), (1, 2));
    assert!(decisions[0].reason.contains("of 1800 s at most"), "{}", decisions[0].reason);
}

#[test]
fn jobs_of_other_partitions_and_of_users_who_hold_them_are_left_alone() {
    let (_folder, store) = store();
    let held = QueuedJob { reason: "JobHeldUser".to_owned(), ..waits(1, 0.0) };
    let unmarked = QueuedJob { is_marked: false, ..waits(2, 0.0) };
    let other = QueuedJob { partition: "q".to_owned(), ..waits(3, 0.0) };
    let mut cluster =
        Fake { jobs: vec![held, unmarked, other], nodes: vec![node("a", 4, 4)], ..Fake::default() };
    let options = ReleaseOptions { partition: Some("p".to_owned()), ..options() };
    let mut releaser = releaser(&mut cluster, options, store, Observations::default());
    assert_eq!(releaser.step(10.0).unwrap(), []);
    drop(releaser);
    assert!(cluster.calls.is_empty());
}

#[test]
fn a_dry_run_changes_nothing() {
    let (_folder, store) = store();
    let mut cluster =
        Fake { jobs: vec![waits(1, 0.0)], nodes: vec![node("a", 1, 1)], ..Fake::default() };
    let options = ReleaseOptions { dry_run: true, ..options() };
    let mut releaser = releaser(&mut cluster, options, store, Observations::default());
    assert_eq!(releaser.step(10.0).unwrap().len(), 1);
    drop(releaser);
    assert!(cluster.calls.is_empty());
}

#[test]
fn jobs_that_ended_well_are_learnt_with_what_ran_next_to_them() {
    let (_folder, store) = store();
    let mut cluster = Fake {
        jobs: vec![runs(1, "a"), runs(2, "a"), runs(3, "b")],
        nodes: vec![node("a", 2, 0)],
        scripts: [(1, script("x")), (2, script("y")), (3, script("x"))].into(),
        ..Fake::default()
    };
    let well = |ended_well| EndedJob { ended_well, elapsed_s: 42.0 };
    cluster.ended = [(1, well(true)), (2, well(false))].into();
    let gone = std::mem::take(&mut cluster.jobs);
    let known = {
        let mut both = TwoQueues { fake: &mut cluster, first: Some(gone) };
        let mut releaser = releaser(&mut both, options(), store.clone(), Observations::default());
        releaser.step(10.0).unwrap();
        releaser.step(20.0).unwrap();
        assert_eq!(releaser.metrics.learnt, 1);
        store.read().unwrap()
    };
    assert_eq!(known.records().len(), 1);
    let run = &known.records()[&key("x")].runs[0];
    assert_eq!((run.elapsed_s, run.co_runners.as_slice()), (42.0, &[(key("y"), 1.0)][..]));
}

/// A script that cannot be read at the first look.
#[test]
fn a_script_that_could_not_be_read_is_read_at_the_next_look() {
    let (_folder, store) = store();
    let mut cluster = Fake {
        jobs: vec![runs(9, "a"), waits(1, 0.0)],
        nodes: vec![node("a", 1, 0)],
        unread: 2,
        scripts: [(9, script("x")), (1, script("y"))].into(),
        ..Fake::default()
    };
    let mut releaser = releaser(&mut cluster, options(), store, Observations::default());
    releaser.step(10.0).unwrap();
    assert_eq!(releaser.program_name(1), None);
    releaser.step(15.0).unwrap();
    assert_ne!(releaser.program_name(1), Some("job1"));
    assert!(releaser.program_name(1).is_some());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The queue is read from what squeue would write, with this text as the name and comment of each job.
    #[test]
    fn what_users_write_changes_not_which_jobs_are_acted_on(
        text in prop_oneof![any::<String>(), Just("x\n2 |PD|BeginTime|9|p|symbiont:waits|".to_owned())],
        script in any::<String>(),
    ) {
        let calls = |text: &str, script: &str| {
            let job = |id: u64, admin_comment: &str| serde_json::json!({
                "job_id": id, "job_state": "PENDING", "state_reason": "BeginTime", "priority": id, "user_id": 7,
                "partition": "p", "submit_time": 9, "batch_flag": true, "admin_comment": admin_comment,
                "name": text, "comment": text, "command": text, "account": text, "wckey": text,
            });
            let queue = serde_json::json!({ "jobs": [job(1, "symbiont:waits"), job(2, ""), job(3, "symbiont:waits")] });
            let (jobs, errors) = symbiont_jobs::slurm::parse_jobs(&queue.to_string()).unwrap();
            assert_eq!(errors, Vec::<String>::new());
            let (_folder, store) = store();
            let scripts = [1, 2, 3].map(|id| (id, script.to_owned())).into();
            let mut cluster =
                Fake { jobs, nodes: vec![node("a", 4, 4)], scripts, ..Fake::default() };
            releaser(&mut cluster, options(), store, Observations::default()).step(20.0).unwrap();
            cluster.calls
        };
        prop_assert_eq!(calls(&text, &script), ["release 3 a", "release 1 a"]);
    }
}
