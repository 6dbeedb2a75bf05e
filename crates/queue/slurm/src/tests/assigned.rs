//! Which nodes jobs are assigned, and what is undone of it.

use super::*;

/// One waiting job, and one node with a CPU for it.
fn one_of_each() -> Fake {
    Fake { jobs: vec![waits(1, 0.0)], nodes: vec![node("a", 1, 1)], ..Fake::default() }
}

/// Looks once, as a releaser that knows what others have assigned from the journal alone; gives what it decided, and
/// which jobs are on their way.
fn look(cluster: &mut Fake, store: &Store, now_s: f64) -> (Vec<Decision>, Vec<u64>) {
    let mut releaser = releaser(cluster, options(), store.clone(), Observations::default());
    (releaser.step(now_s).unwrap(), releaser.on_their_way())
}

#[test]
fn a_job_that_cannot_start_where_it_was_sent_is_given_back() {
    let (_folder, store) = store();
    let mut cluster = one_of_each();
    let mut releaser = releaser(&mut cluster, options(), store.clone(), Observations::default());
    assert_eq!(releaser.step(10.0).unwrap().len(), 1);
    drop(releaser);
    // Slurm has taken it; another releaser, which knows it from the journal alone, finds it stuck.
    let mut releaser = super::releaser(&mut cluster, options(), store, Observations::default());
    assert_eq!(releaser.step(20.0).unwrap(), []);
    assert_eq!(releaser.step(69.0).unwrap(), []);
    let decisions = releaser.step(71.0).unwrap();
    assert_eq!((decisions.len(), decisions[0].node.clone()), (1, None));
    drop(releaser);
    assert_eq!(cluster.calls, ["release 1 a", "give back 1 0"]);
}

#[test]
fn a_job_that_slurm_refuses_is_a_line_and_stops_no_other() {
    let (_folder, store) = store();
    let mut cluster = Fake {
        jobs: (1..=5).map(|id| waits(id, 0.0)).collect(),
        nodes: vec![node("a", 8, 8)],
        refuses: vec![1, 2, 3, 4],
        ..Fake::default()
    };
    let mut releaser = releaser(&mut cluster, options(), store, Observations::default());
    assert_eq!(releaser.step(10.0).unwrap().len(), 1);
    let troubles = std::mem::take(&mut releaser.troubles);
    assert_eq!(troubles.len(), 4);
    assert_eq!(troubles[0], "job 1 is not released: scontrol: Invalid job id specified");
    assert_eq!(releaser.metrics.waiting, 4);
    // Once more, without a node; then it is left alone.
    for _ in 0..3 {
        releaser.step(20.0).unwrap();
    }
    assert_eq!(releaser.troubles.len(), 4);
    drop(releaser);
    assert_eq!(cluster.calls.len(), 9);
    assert_eq!(cluster.calls[5..], [1, 2, 3, 4].map(|id| format!("release {id} anywhere")));
}

#[test]
fn a_job_whose_needs_are_not_understood_starts_where_slurm_wants() {
    let (_folder, store) = store();
    let other = Needs { other: Some("licences".to_owned()), ..Needs::default() };
    let mut cluster = Fake {
        jobs: vec![
            QueuedJob { needs: other, ..waits(1, 0.0) },
            QueuedJob { nodes: 2, ..waits(2, 0.0) },
            QueuedJob { partition: "p,q".to_owned(), ..waits(3, 0.0) },
            QueuedJob { cpus: 3, ..waits(4, 0.0) },
        ],
        nodes: vec![node("a", 2, 2)],
        ..Fake::default()
    };
    let mut releaser = releaser(&mut cluster, options(), store, Observations::default());
    let decisions = releaser.step(10.0).unwrap();
    let words: Vec<_> = decisions.iter().map(Decision::text).collect();
    assert_eq!(words[0], "job 1 (job1) may start where Slurm wants: it asks for licences");
    assert!(words[1].contains("it asks for 2 nodes"), "{words:?}");
    assert!(words[2].contains("it asks for several partitions"), "{words:?}");
    assert!(words[3].contains("no node of its partition has what it asks for"), "{words:?}");
    drop(releaser);
    assert_eq!(cluster.calls, [1, 2, 3, 4].map(|id| format!("release {id} anywhere")));
}

#[test]
fn a_job_is_assigned_only_nodes_that_have_what_it_asks_for() {
    let (_folder, store) = store();
    let fast = |node: NodeState| NodeState {
        features: vec!["fast".to_owned()],
        memory_mb: 1000,
        memory_free_mb: 1000,
        ..node
    };
    let large = |node: NodeState| NodeState { memory_mb: 4000, memory_free_mb: 4000, ..node };
    let needs = |needs: Needs, id| QueuedJob { needs, ..waits(id, 0.0) };
    let of_node = |mb| Needs { memory: Memory::OfNode(mb), ..Needs::default() };
    let mut cluster = Fake {
        jobs: vec![
            needs(Needs { features: vec!["fast".to_owned()], ..Needs::default() }, 1),
            needs(of_node(2500), 2),
            // No room in the memory next to job 2.
            needs(of_node(2000), 3),
            needs(Needs { excluded: vec!["b".to_owned()], ..Needs::default() }, 4),
            QueuedJob { partition: "q".to_owned(), ..waits(5, 0.0) },
        ],
        nodes: vec![large(node("b", 8, 8)), fast(node("a", 8, 8))],
        selection: Selection { with_memory: true, ..Selection::default() },
        ..Fake::default()
    };
    // Without memory of its own a job would get all of the node's.
    for at in [0, 3, 4] {
        cluster.jobs[at].needs.memory = Memory::OfNode(100);
    }
    let mut releaser = releaser(&mut cluster, options(), store, Observations::default());
    releaser.step(10.0).unwrap();
    drop(releaser);
    cluster.calls.sort();
    assert_eq!(cluster.calls, ["release 1 a", "release 2 b", "release 4 a", "release 5 anywhere"]);
}

#[test]
fn jobs_take_whole_cores_where_slurm_gives_them() {
    let (_folder, store) = store();
    let two_threads = NodeState { cpus_of_core: 2, ..node("a", 8, 8) };
    let mut cluster = Fake {
        jobs: (1..=8).map(|id| waits(id, 0.0)).collect(),
        nodes: vec![two_threads],
        ..Fake::default()
    };
    let mut releaser = releaser(&mut cluster, options(), store, Observations::default());
    assert_eq!(releaser.step(10.0).unwrap().len(), 4);
    assert!(releaser.troubles[0].starts_with("Slurm gives jobs 2 CPUs at least"));
    assert_eq!(releaser.step(15.0).unwrap().len(), 0);
}

#[test]
fn no_job_is_assigned_a_node_that_is_reserved_before_it_ends() {
    let (_folder, store) = store();
    let mut cluster = Fake {
        jobs: vec![
            QueuedJob { limit_s: Some(600.0), ..waits(1, 0.0) },
            QueuedJob { limit_s: Some(60.0), ..waits(2, 0.0) },
        ],
        nodes: vec![node("a", 8, 8)],
        reservations: vec![Reservation { nodes: vec!["a".to_owned()], from_s: 100.0 }],
        ..Fake::default()
    };
    let mut releaser = releaser(&mut cluster, options(), store, Observations::default());
    releaser.step(10.0).unwrap();
    drop(releaser);
    assert_eq!(cluster.calls, ["release 2 a"]);
}

#[test]
fn a_node_that_is_kept_for_a_job_of_one_partition_is_not_filled_by_another_partition() {
    let (_folder, store) = store();
    let both = |node: NodeState| NodeState { partitions: vec!["p".into(), "q".into()], ..node };
    let mut cluster = Fake {
        jobs: vec![
            runs(9, "a"),
            QueuedJob { cpus: 2, priority: 2000, ..waits(1, 0.0) },
            QueuedJob { partition: "q".to_owned(), ..waits(2, 0.0) },
        ],
        nodes: vec![both(node("a", 2, 1))],
        ..Fake::default()
    };
    cluster.jobs[0].ends_s = Some(500.0);
    let mut releaser = releaser(&mut cluster, options(), store, Observations::default());
    let decisions = releaser.step(10.0).unwrap();
    assert!(decisions[0].is_kept, "{decisions:?}");
    drop(releaser);
    assert_eq!(cluster.calls, Vec::<String>::new());
}

#[test]
fn a_job_that_slurm_can_never_start_where_it_was_sent_is_given_back_at_once() {
    let (_folder, store) = store();
    let mut cluster = one_of_each();
    look(&mut cluster, &store, 10.0);
    cluster.jobs[0].reason = "BadConstraints".to_owned();
    cluster.jobs[0].priority = 0;
    assert_eq!(look(&mut cluster, &store, 11.0).0.len(), 1);
    // With the priority that it had.
    assert_eq!(cluster.calls, ["release 1 a", "give back 1 999"]);
}

#[test]
fn a_job_that_is_requeued_does_not_wait_for_its_node_again() {
    let (_folder, store) = store();
    let mut cluster = one_of_each();
    look(&mut cluster, &store, 10.0);
    cluster.jobs[0].state = State::Running;
    assert_eq!(look(&mut cluster, &store, 15.0).1, Vec::<u64>::new());
    cluster.jobs[0].state = State::Pending;
    cluster.jobs[0].reason = "BeginTime".to_owned();
    assert_eq!(look(&mut cluster, &store, 20.0).0.len(), 1);
    assert_eq!(look(&mut cluster, &store, 25.0).0[0].node.as_deref(), Some("a"));
    assert_eq!(cluster.calls, ["release 1 a", "give back 1 0", "release 1 a"]);
}

#[test]
fn nodes_that_a_user_asks_for_later_are_left_to_the_user() {
    let (_folder, store) = store();
    let mut cluster = one_of_each();
    look(&mut cluster, &store, 10.0);
    cluster.jobs[0].asked = "b".to_owned();
    assert_eq!(look(&mut cluster, &store, 100.0).1, Vec::<u64>::new());
    assert_eq!(cluster.calls, ["release 1 a"]);
}

#[test]
fn what_has_not_started_is_given_back_at_the_end() {
    let (_folder, store) = store();
    let mut cluster = Fake {
        jobs: vec![waits(1, 0.0), waits(2, 0.0)],
        nodes: vec![node("a", 2, 2)],
        ..Fake::default()
    };
    let mut releaser = releaser(&mut cluster, options(), store.clone(), Observations::default());
    releaser.step(10.0).unwrap();
    drop(releaser);
    // Slurm has given up the second one in the meantime.
    (cluster.jobs[1].priority, cluster.jobs[1].reason) = (0, "BadConstraints".to_owned());
    let mut releaser =
        super::releaser(&mut cluster, options(), store.clone(), Observations::default());
    assert_eq!(releaser.finish(11.0).len(), 2);
    drop(releaser);
    assert_eq!(cluster.calls[2..], ["ends soon", "give back 1 0", "give back 2 998"]);
    assert!(Journal::next_to(store.path()).read().unwrap().is_empty());
}

#[test]
fn a_job_that_slurm_assigned_but_reported_as_refused_is_given_back() {
    let (_folder, store) = store();
    let mut cluster = one_of_each();
    (cluster.refuses, cluster.does_refused) = (vec![1], true);
    assert_eq!(look(&mut cluster, &store, 10.0).0.len(), 0);
    assert_eq!(cluster.jobs[0].asked, "a");
    look(&mut cluster, &store, 71.0);
    assert_eq!(cluster.calls, ["release 1 a", "give back 1 0"]);
}

#[test]
fn a_job_that_was_given_back_in_part_gets_its_priority_at_the_next_look() {
    let (_folder, store) = store();
    let mut cluster = one_of_each();
    look(&mut cluster, &store, 10.0);
    (cluster.jobs[0].priority, cluster.jobs[0].reason) = (0, "BadConstraints".to_owned());
    cluster.fails_to_give_back = true;
    look(&mut cluster, &store, 11.0);
    // Slurm has started over with it.
    (cluster.jobs[0].priority, cluster.jobs[0].reason) = (1, "Priority".to_owned());
    cluster.fails_to_give_back = false;
    for now_s in [12.0, 13.0] {
        look(&mut cluster, &store, now_s);
    }
    assert_eq!(cluster.calls, ["release 1 a", "give back 1 999", "give back 1 999"]);
}

#[test]
fn the_priority_of_a_job_that_is_held_is_left_alone() {
    let (_folder, store) = store();
    let mut cluster = one_of_each();
    look(&mut cluster, &store, 10.0);
    (cluster.jobs[0].priority, cluster.jobs[0].reason) = (0, "JobHeldUser".to_owned());
    look(&mut cluster, &store, 71.0);
    look(&mut cluster, &store, 72.0);
    assert_eq!(cluster.calls, ["release 1 a", "give back 1 0"]);
}

#[test]
fn a_requeue_that_is_seen_before_the_run_gives_back_at_once() {
    let (_folder, store) = store();
    let mut cluster = one_of_each();
    look(&mut cluster, &store, 10.0);
    cluster.jobs[0].restarts = 1;
    assert_eq!(look(&mut cluster, &store, 11.0).0.len(), 1);
    assert_eq!(cluster.calls, ["release 1 a", "give back 1 0"]);
}

#[test]
fn a_job_that_got_a_start_time_of_its_own_waits_for_that() {
    let (_folder, store) = store();
    let mut cluster = one_of_each();
    for restarts in [0, 1] {
        cluster.jobs[0].eligible_s = Some(7200.0);
        cluster.jobs[0].restarts = restarts;
        assert_eq!(look(&mut cluster, &store, 10.0).0.len(), 0);
    }
    // Slurm lets one that it has requeued wait for two minutes.
    cluster.jobs[0].eligible_s = Some(cluster.jobs[0].submitted_s + 121.0);
    look(&mut cluster, &store, 15.0);
    assert_eq!(cluster.calls, ["release 1 a"]);
}

#[test]
fn jobs_that_are_left_to_slurm_take_cpus_too() {
    let (_folder, store) = store();
    let other = Needs { other: Some("licences".to_owned()), ..Needs::default() };
    let mut cluster = Fake {
        jobs: vec![QueuedJob { needs: other, ..waits(1, 0.0) }, waits(2, 0.0), waits(3, 0.0)],
        nodes: vec![node("a", 2, 2)],
        ..Fake::default()
    };
    look(&mut cluster, &store, 10.0);
    assert_eq!(cluster.calls, ["release 1 anywhere", "release 2 a"]);
}
