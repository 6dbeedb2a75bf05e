use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::{Flat, ProgramNumber, Release, Running};

/// Slowdowns by a table: victim by co-runner, which add up.
#[derive(Debug)]
struct Table(Vec<Vec<f64>>);

impl Predict for Table {
    fn slowdown(&self, victim: ProgramNumber, co_runners: &[ProgramNumber]) -> f64 {
        let of = |other: &ProgramNumber| self.0[victim.0 as usize][other.0 as usize];
        1.0 + co_runners.iter().map(of).sum::<f64>()
    }
}

fn job(id: u64, program: u32) -> Job {
    Job {
        id,
        program: ProgramNumber(program),
        priority: 5,
        submitted_s: id as f64,
        slots: 1,
        limit_s: f64::INFINITY,
    }
}

fn node(name: &str, slots: usize, running: &[u32]) -> Node {
    node_until(name, slots, &running.iter().map(|&one| (one, f64::INFINITY)).collect::<Vec<_>>())
}

/// Programs and the times at which they end, by their limits.
fn node_until(name: &str, slots: usize, running: &[(u32, f64)]) -> Node {
    let run = |&(program, ends_s)| Running { program: ProgramNumber(program), slots: 1, ends_s };
    let running: Vec<_> = running.iter().map(run).collect();
    Node { name: name.to_owned(), slots, free: slots - running.len(), running }
}

fn releases(
    queue: &[Job],
    nodes: &[Node],
    now_s: f64,
    rules: &Rules,
    predict: &impl Predict,
) -> Vec<Release> {
    choose(queue, nodes, now_s, rules, predict).releases
}

fn released(releases: &[Release]) -> Vec<(u64, &str)> {
    releases.iter().map(|release| (release.job, release.node.as_str())).collect()
}

/// 0 and 1 disturb their own kind and not each other.
fn two_kinds() -> Table {
    Table(vec![vec![0.5, 0.1], vec![0.1, 0.5]])
}

const RULES: Rules = Rules {
    most_wait_s: 1000.0,
    window: 8,
    priority_spread: None,
    least_gain: 0.01,
    reservations: 1,
};

#[test]
fn the_best_partner_of_what_runs_is_released_with_the_reason() {
    let queue = [job(1, 0), job(2, 0), job(3, 1)];
    let releases = releases(&queue, &[node("a", 2, &[0])], 10.0, &RULES, &two_kinds());
    assert_eq!(released(&releases), [(3, "a")]);
    let Reason::Partner { first, first_cost, cost, overtaken } = releases[0].reason else {
        panic!("{releases:?}")
    };
    assert_eq!((first, overtaken), (1, 2));
    assert!(cost < first_cost);
    assert!((releases[0].slowdown - 1.1).abs() < 1e-9 && (releases[0].cost - 0.2).abs() < 1e-9);
}

#[test]
fn a_job_that_suits_every_partner_is_not_spent_on_the_first() {
    // 2 is easy next to all; 0 next to 1 costs as little as 0 next to 2.
    let table = Table(vec![vec![0.5, 0.1, 0.1], vec![0.1, 0.5, 0.1], vec![0.1, 0.1, 0.1]]);
    let queue = [job(1, 2), job(2, 1), job(3, 2), job(4, 1)];
    let releases = releases(&queue, &[node("a", 2, &[0])], 10.0, &RULES, &table);
    assert_eq!(released(&releases), [(2, "a")]);
}

#[test]
fn jobs_spread_over_nodes_before_they_share_one() {
    let queue = [job(1, 0), job(2, 0), job(3, 1)];
    let nodes = [node("a", 2, &[]), node("b", 2, &[])];
    let releases = releases(&queue, &nodes, 10.0, &RULES, &two_kinds());
    assert_eq!(released(&releases), [(1, "a"), (2, "b"), (3, "a")]);
}

#[test]
fn an_overdue_job_starts_first_where_it_costs_least() {
    let mut late = job(9, 1);
    late.submitted_s = -2000.0;
    late.priority = 0;
    let queue = [job(1, 0), late];
    let nodes = [node("a", 2, &[1]), node("b", 2, &[0])];
    let releases = releases(&queue, &nodes, 10.0, &RULES, &two_kinds());
    assert_eq!(released(&releases), [(9, "b"), (1, "a")]);
    assert_eq!(releases[0].reason, Reason::Overdue { waited_s: 2010.0 });
}

#[test]
fn a_node_is_kept_for_an_overdue_job_that_does_not_fit() {
    let wide = Job { slots: 2, submitted_s: -2000.0, ..job(9, 1) };
    let nodes = [node("a", 2, &[1]), node("b", 3, &[0, 0])];
    let choice = choose(&[job(1, 0), job(2, 0), wide], &nodes, 10.0, &RULES, &Flat);
    assert_eq!(released(&choice.releases), [(1, "b")]);
    assert_eq!(choice.kept, [(9, "a".to_owned())]);
}

#[test]
fn a_node_is_kept_for_the_first_job_that_fits_nowhere() {
    let wide = |id| Job { slots: 2, ..job(id, 1) };
    let nodes = [("a", f64::INFINITY), ("b", 500.0), ("c", 400.0), ("d", 600.0)];
    let nodes = nodes.map(|(name, ends_s)| node_until(name, 2, &[(0, ends_s)]));
    let chosen = |queue: &[Job]| {
        let choice = choose(queue, &nodes, 10.0, &RULES, &Flat);
        let jobs: Vec<u64> = choice.releases.iter().map(|release| release.job).collect();
        (jobs, choice.kept)
    };
    // The node where all ends first, for one job of several slots.
    let queue = [job(1, 0), wide(2), wide(3), job(4, 0), job(5, 0), job(6, 0)];
    assert_eq!(chosen(&queue), (vec![1, 4, 5], vec![(2, "c".to_owned())]));
    // One that is larger than all nodes has no turn.
    let queue = [Job { slots: 3, ..job(1, 0) }, wide(2), job(3, 0)];
    assert_eq!(chosen(&queue), (vec![3], vec![(2, "c".to_owned())]));
    // As many jobs are before it as slots are free: its turn has not come.
    let queue = [job(1, 0), job(2, 0), job(3, 0), job(4, 0), wide(5)];
    assert_eq!(chosen(&queue), (vec![1, 2, 3, 4], Vec::new()));
}

#[test]
fn a_kept_node_is_filled_by_jobs_that_end_in_time_or_fit_next_to_it() {
    let short = |id, limit_s| Job { limit_s, ..job(id, 0) };
    let wide = Job { slots: 3, ..job(1, 1) };
    let chosen = |queue: &[Job], ends: &[f64]| {
        let running: Vec<_> = ends.iter().map(|&ends_s| (0, ends_s)).collect();
        let nodes = [node_until("a", 4, &running)];
        let releases = releases(queue, &nodes, 10.0, &RULES, &Flat);
        releases.iter().map(|release| (release.job, release.kept_for)).collect::<Vec<_>>()
    };
    // It has room from 110 s on, when one of two ends: until then, for 100 s, there is a slot.
    let queue = [wide, job(2, 0), short(3, 101.0), short(4, 100.0), short(5, 1.0)];
    assert_eq!(chosen(&queue, &[900.0, 110.0]), [(4, Some(1)), (5, Some(1))]);
    assert_eq!(chosen(&queue[..3], &[900.0, 110.0]), []);
    // Where both end by then, a slot is left next to it.
    assert_eq!(chosen(&queue[..3], &[110.0, 110.0]), [(2, Some(1))]);
    // Where no limit is known, none may start.
    assert_eq!(chosen(&queue, &[900.0, f64::INFINITY, f64::INFINITY]), []);
    // One that is overdue is filled in like others.
    let late = Job { submitted_s: -2000.0, ..short(5, 50.0) };
    let wide = Job { submitted_s: -3000.0, ..wide };
    assert_eq!(chosen(&[wide, late], &[900.0, 110.0]), [(5, Some(1))]);
}

#[test]
fn a_lower_priority_outside_the_spread_is_never_preferred() {
    let first = Job { priority: 100, ..job(1, 0) };
    let partner = Job { priority: 80, ..job(2, 1) };
    let rules = |spread| Rules { priority_spread: Some(spread), ..RULES };
    let start = |spread| {
        let nodes = [node("a", 2, &[0])];
        releases(&[first, partner], &nodes, 10.0, &rules(spread), &two_kinds())[0].job
    };
    assert_eq!((start(19), start(20)), (1, 2));
}

#[test]
fn a_gain_that_is_too_small_overtakes_no_job() {
    let table = Table(vec![vec![0.101, 0.1], vec![0.1, 0.1]]);
    let queue = [job(1, 0), job(2, 1)];
    let releases = releases(&queue, &[node("a", 2, &[0])], 10.0, &RULES, &table);
    assert_eq!(releases[0].reason, Reason::First);
}

#[test]
fn a_prediction_that_is_no_number_predicts_nothing() {
    let table = Table(vec![vec![f64::NAN, f64::INFINITY], vec![f64::NAN, f64::NAN]]);
    let queue = [job(1, 0), job(2, 1)];
    let releases = releases(&queue, &[node("a", 3, &[0])], 10.0, &RULES, &table);
    assert_eq!(released(&releases), [(1, "a"), (2, "a")]);
    assert!(releases.iter().all(|release| release.cost == 0.0));
}

/// Counts what it is asked.
struct Counting(Table, Cell<usize>);

impl Predict for Counting {
    fn slowdown(&self, victim: ProgramNumber, co_runners: &[ProgramNumber]) -> f64 {
        self.1.set(self.1.get() + 1);
        self.0.slowdown(victim, co_runners)
    }
}

#[test]
fn predictions_grow_no_faster_than_the_queue() {
    // None is overdue, and all are.
    for now_s in [0.0, 1e6] {
        let predictions = |scale: u32| {
            let kinds = |v: u32| (0..50).map(|c| f64::from((v * c) % 7) / 10.0).collect();
            let counting = Counting(Table((0..50).map(kinds).collect()), Cell::new(0));
            let queue: Vec<_> = (0..1000 * scale).map(|id| job(id.into(), id * 7 % 50)).collect();
            let node = |at: u32| node(&format!("n{at}"), 4, &[at % 50, at * 3 % 50]);
            let nodes: Vec<_> = (0..100 * scale).map(node).collect();
            let releases = releases(&queue, &nodes, now_s, &RULES, &counting);
            assert_eq!(releases.len(), 200 * scale as usize);
            counting.1.get()
        };
        let (one, ten) = (predictions(1), predictions(10));
        assert!(ten < 10 * one, "{ten} {one}");
    }
}

fn jobs() -> impl Strategy<Value = Vec<Job>> {
    let one = (0u32..4, 0u64..4, 0u32..200, 1usize..3, 1u32..400);
    prop::collection::vec(one, 0..40).prop_map(|jobs| {
        let numbered = jobs.into_iter().zip(1..);
        let make = |((program, priority, submitted, slots, limit), id)| {
            let (submitted_s, limit_s) = (f64::from(submitted), f64::from(limit));
            Job { id, program: ProgramNumber(program), priority, submitted_s, slots, limit_s }
        };
        numbered.map(make).collect()
    })
}

fn nodes() -> impl Strategy<Value = Vec<Node>> {
    let runs = (0u32..4, (201u32..500).prop_map(f64::from));
    let one = (prop::collection::vec(runs, 0..3), 0usize..3);
    prop::collection::vec(one, 0..6).prop_map(|nodes| {
        let make = |(at, (running, free)): (usize, (Vec<(u32, f64)>, usize))| {
            node_until(&format!("n{at}"), running.len() + free, &running)
        };
        nodes.into_iter().enumerate().map(make).collect()
    })
}

fn table() -> impl Strategy<Value = Table> {
    prop::collection::vec(prop::collection::vec(0.0..1.0, 4), 4).prop_map(Table)
}

fn rules() -> impl Strategy<Value = Rules> {
    (0.0..300.0, 1usize..12, prop::option::of(0u64..3)).prop_map(|(wait, window, spread)| Rules {
        most_wait_s: wait,
        window,
        priority_spread: spread,
        least_gain: 0.0,
        reservations: 1,
    })
}

fn free_after(nodes: &[Node], queue: &[Job], releases: &[Release]) -> BTreeMap<String, isize> {
    let mut free: BTreeMap<_, _> =
        nodes.iter().map(|node| (node.name.clone(), node.free as isize)).collect();
    for release in releases {
        let job = queue.iter().find(|job| job.id == release.job).unwrap();
        *free.get_mut(&release.node).unwrap() -= job.slots as isize;
    }
    free
}

/// When so many slots of a node are free, by the limits of what runs there.
fn free_at(node: &Node, slots: usize) -> f64 {
    let times = node.running.iter().map(|job| job.ends_s).filter(|time| {
        let ended = node.running.iter().filter(|job| job.ends_s <= *time);
        node.free + ended.map(|job| job.slots).sum::<usize>() >= slots
    });
    times.fold(f64::INFINITY, f64::min)
}

proptest! {
    #[test]
    fn never_more_than_the_slots(queue in jobs(), nodes in nodes(), table in table(), rules in rules()) {
        let releases = releases(&queue, &nodes, 200.0, &rules, &table);
        prop_assert!(free_after(&nodes, &queue, &releases).values().all(|free| *free >= 0));
        let ids: BTreeSet<_> = releases.iter().map(|release| release.job).collect();
        prop_assert_eq!(ids.len(), releases.len());
    }

    #[test]
    fn no_job_waits_past_the_maximum_while_a_slot_is_free(
        queue in jobs(), nodes in nodes(), table in table(), rules in rules(),
    ) {
        let queue: Vec<_> = queue.into_iter().map(|job| Job { slots: 1, ..job }).collect();
        let releases = releases(&queue, &nodes, 200.0, &rules, &table);
        let started: BTreeSet<_> = releases.iter().map(|release| release.job).collect();
        let late = |job: &&Job| job.waited_s(200.0) >= rules.most_wait_s;
        let waiting = queue.iter().filter(late).filter(|job| !started.contains(&job.id));
        let oldest = waiting.min_by(|a, b| a.age_order(b));
        if let Some(oldest) = oldest {
            prop_assert!(free_after(&nodes, &queue, &releases).values().all(|free| *free == 0));
            // Nor does a job that is younger, or not overdue, have what it waits for.
            for job in queue.iter().filter(|job| started.contains(&job.id)) {
                prop_assert!(late(&job) && job.age_order(oldest).is_lt());
            }
        }
    }

    #[test]
    fn all_slots_are_used_while_jobs_wait(
        queue in jobs(), nodes in nodes(), table in table(), rules in rules(),
    ) {
        let queue: Vec<_> = queue.into_iter().map(|job| Job { slots: 1, ..job }).collect();
        let releases = releases(&queue, &nodes, 200.0, &rules, &table);
        let slots: usize = nodes.iter().map(|node| node.free).sum();
        prop_assert_eq!(releases.len(), slots.min(queue.len()));
    }

    #[test]
    fn jobs_on_kept_nodes_delay_none_that_they_are_kept_for(
        queue in jobs(), nodes in nodes(), table in table(), rules in rules(),
    ) {
        let Choice { releases, kept } = choose(&queue, &nodes, 200.0, &rules, &table);
        let job = |id: u64| queue.iter().find(|job| job.id == id).unwrap();
        for (wide, name) in kept {
            let mut node = nodes.iter().find(|node| node.name == name).unwrap().clone();
            let put = |node: &mut Node, id: u64| {
                let Job { program, slots, limit_s, .. } = *job(id);
                node.running.push(Running { program, slots, ends_s: 200.0 + limit_s });
                node.free -= slots;
            };
            let here = || releases.iter().filter(|one| one.node == name);
            here().filter(|one| one.kept_for.is_none()).for_each(|one| put(&mut node, one.job));
            let before = free_at(&node, job(wide).slots);
            here().filter(|one| one.kept_for == Some(wide)).for_each(|one| put(&mut node, one.job));
            prop_assert!(before > 200.0 && free_at(&node, job(wide).slots) <= before);
        }
    }

    #[test]
    fn no_slot_is_free_for_which_a_job_waits(
        queue in jobs(), nodes in nodes(), table in table(), rules in rules(),
    ) {
        let Choice { releases, kept } = choose(&queue, &nodes, 200.0, &rules, &table);
        let mut free = free_after(&nodes, &queue, &releases);
        free.retain(|name, _| kept.iter().all(|(_, kept)| kept != name));
        let most = free.values().copied().max().unwrap_or(0);
        let waits = |job: &&Job| releases.iter().all(|release| release.job != job.id);
        let fits = queue.iter().filter(waits).find(|job| job.slots as isize <= most);
        prop_assert!(fits.is_none(), "{fits:?} {free:?}");
    }

    #[test]
    fn the_order_of_the_input_does_not_matter(
        (queue, shuffled) in jobs().prop_flat_map(|jobs| (Just(jobs.clone()), Just(jobs).prop_shuffle())),
        (nodes, other) in nodes().prop_flat_map(|all| (Just(all.clone()), Just(all).prop_shuffle())),
        table in table(),
        rules in rules(),
    ) {
        let one = releases(&queue, &nodes, 200.0, &rules, &table);
        prop_assert_eq!(one, releases(&shuffled, &other, 200.0, &rules, &table));
    }

    #[test]
    fn a_flat_prediction_is_first_come_first_served(
        queue in jobs(), nodes in nodes(), window in 1usize..12,
    ) {
        let rules = Rules { window, most_wait_s: 1e9, ..RULES };
        let mut queue: Vec<_> =
            queue.into_iter().map(|job| Job { slots: 1, priority: 0, ..job }).collect();
        let releases = releases(&queue, &nodes, 200.0, &rules, &Flat);
        queue.sort_by(Job::age_order);
        let first: Vec<_> = queue.iter().take(releases.len()).map(|job| job.id).collect();
        let started: Vec<_> = releases.iter().map(|release| release.job).collect();
        prop_assert_eq!(started, first);
        prop_assert!(releases.iter().all(|release| release.reason == Reason::First));
    }
}

proptest! {
    #[test]
    fn no_job_starts_where_it_is_not_taken(
        jobs in 1..12_u64,
        taken in prop::collection::vec(prop::collection::vec(any::<bool>(), 3), 12),
    ) {
        let queue: Vec<Job> =
            (0..jobs).map(|id| Job { slots: 1 + id as usize % 2, ..job(id, id as u32 % 2) }).collect();
        let nodes = [node("0", 2, &[0]), node("1", 2, &[]), node("2", 3, &[1])];
        let takes = |id: u64, node: &str| taken[id as usize][node.parse::<usize>().unwrap()];
        let admits = |job: &Job, node: &str| takes(job.id, node);
        for now_s in [10.0, 1e6] {
            let Choice { releases, kept } =
                choose_among(&queue, &nodes, now_s, &RULES, &two_kinds(), Some(&admits));
            prop_assert!(releases.iter().all(|one| takes(one.job, &one.node)));
            prop_assert!(kept.iter().all(|(id, node)| takes(*id, node)));
        }
    }
}
