use proptest::prelude::*;
use symbiont_jobs::{Flat, ProgramNumber, Rules};

use super::*;

/// Programs 0 and 1 are slow next to each other's like and fast next to the other kind.
fn table() -> PairTable {
    PairTable::new(&[vec![1.8, 1.1], vec![1.1, 1.8]]).unwrap()
}

fn flat(programs: usize) -> PairTable {
    PairTable::new(&vec![vec![1.0; programs]; programs]).unwrap()
}

fn cluster(nodes: usize, table: &PairTable) -> Cluster<'_> {
    Cluster { nodes, table, every_s: 10.0 }
}

fn job(id: u64, submitted_s: f64, run_s: f64, slots: usize, program: u32) -> QueuedJob {
    QueuedJob { id, submitted_s, run_s, slots, requested_s: run_s, program }
}

fn rules() -> Rules {
    Rules { most_wait_s: 50_000.0, ..Rules::default() }
}

#[test]
fn jobs_run_for_as_long_as_their_slowdowns_say() {
    let table = table();
    let both = [job(1, 0.0, 100.0, 1, 0), job(2, 0.0, 400.0, 1, 0)];
    let played = play(&cluster(1, &table), &both, &Scheduler::<Flat>::FirstCome);
    // The first takes 180 s; the second did 100 of its 400 s by then, and is alone from then on.
    let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-6, "{a} {b}");
    close(played.times_s[0].1, 180.0);
    close(played.times_s[1].1, 180.0 + 300.0);
    close(played.slowdown, f64::midpoint(1.8, 480.0 / 400.0));
    let wide = [job(1, 0.0, 100.0, 2, 1)];
    close(play(&cluster(1, &table), &wide, &Scheduler::<Flat>::FirstCome).slowdown, 1.8);
}

#[test]
fn backfilling_does_not_delay_the_first_job() {
    let flat = flat(1);
    // One node runs a job for 1,000 s; the next needs a whole node; then short jobs and long ones.
    let mut jobs = vec![job(1, 0.0, 1000.0, 1, 0), job(2, 1.0, 500.0, 2, 0)];
    jobs.push(job(3, 2.0, 2000.0, 1, 0));
    jobs.push(job(4, 3.0, 100.0, 1, 0));
    let start = |scheduler: Scheduler<'_, Flat>| {
        let played = play(&cluster(1, &flat), &jobs, &scheduler);
        played.times_s.iter().map(|(start, _)| *start).collect::<Vec<f64>>()
    };
    let [in_order, filled] = [start(Scheduler::FirstCome), start(Scheduler::Backfill)];
    assert_eq!(in_order[1], filled[1], "the wide job starts when the node is free");
    assert!(filled[3] < 20.0 && in_order[3] > 1000.0, "{filled:?} {in_order:?}");
    assert!(filled[2] > filled[1], "a long job would delay it: {filled:?}");
}

#[test]
fn without_interference_nothing_is_gained() {
    let flat = flat(4);
    let workload = generate(400, 4, 40, 1.5, 3);
    let known = PairTable::new(&vec![vec![1.0; 4]; 4]).unwrap();
    let by = |scheduler| play(&cluster(20, &flat), &workload, &scheduler).slowdown;
    assert_eq!(by(Scheduler::Partners(&known, rules())), 1.0);
    assert_eq!(by(Scheduler::FirstCome), 1.0);
}

#[test]
fn partners_that_disturb_each_other_less_save_time() {
    let table = table();
    let workload = generate(600, 2, 40, 2.0, 5);
    let by = |scheduler| play(&cluster(20, &table), &workload, &scheduler);
    let backfill = by(Scheduler::Backfill);
    let partners = by(Scheduler::Partners(&table, rules()));
    assert!(partners.slowdown < 0.93 * backfill.slowdown, "{partners:?} {backfill:?}");
    assert!(partners.throughput > backfill.throughput);
}

#[test]
fn a_shuffled_table_is_that_of_other_programs() {
    let rows: Vec<Vec<f64>> =
        (0..6).map(|a| (0..6).map(|b| 1.0 + f64::from(10 * a + b) / 100.0).collect()).collect();
    let table = PairTable::new(&rows).unwrap();
    let shuffled = table.shuffled(1);
    let own = |table: &PairTable| -> Vec<f64> {
        (0..6).map(|at| table.slowdown_of(ProgramNumber(at), Some(ProgramNumber(at)))).collect()
    };
    assert_ne!(own(&table), own(&shuffled));
    let sorted = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values
    };
    assert_eq!(sorted(own(&table)), sorted(own(&shuffled)));
    assert_eq!(PairTable::new(&[vec![1.0, 2.0]]), Err(TableError::Values));
    assert_eq!(PairTable::new(&[vec![f64::NAN]]), Err(TableError::Values));
}

#[test]
fn equal_seeds_draw_equal_workloads() {
    let workload = generate(50, 7, 20, 1.0, 9);
    assert_eq!(workload, generate(50, 7, 20, 1.0, 9));
    assert_ne!(workload, generate(50, 7, 20, 1.0, 10));
}

#[test]
fn the_load_is_what_was_asked_for() {
    let workload = generate(5000, 3, 100, 1.25, 2);
    let work: f64 = workload.iter().map(|job| job.run_s * job.slots as f64).sum();
    let last = workload.last().unwrap().submitted_s;
    let load = work / 100.0 / last;
    assert!((load / 1.25 - 1.0).abs() < 0.1, "{load}");
}

#[test]
fn a_log_gives_times_and_sizes_and_the_seed_its_programs() {
    let line = |id: u32, submit: u32, run: u32, processors: u32, asked: i32| {
        format!("{id} {submit} -1 {run} {processors} -1 -1 -1 {asked} -1 1 1 1 -1 1 -1 -1 -1\n")
    };
    let text = ["; a log\n".to_owned(), line(7, 100, 60, 1, 90), line(9, 160, 30, 64, -1)].concat();
    let log = symbiont_jobs::swf::read(&text).unwrap();
    let workload = given(&log.jobs, 1, 3);
    assert_eq!(
        workload,
        [QueuedJob { requested_s: 90.0, ..job(7, 0.0, 60.0, 1, 0) }, job(9, 60.0, 30.0, 2, 0),]
    );
    // 120 s of slots in 60 s.
    assert_eq!([0.25, 0.5, 1.0, 9.0].map(|load| nodes_for(&workload, load)), [2, 2, 1, 1]);
    assert_eq!([nodes_for(&[], 1.0), nodes_for(&workload[..1], 1.0)], [1, 1]);
    let many: String = (1..=200).map(|id| line(id, 30 * id, 600, 1, -1)).collect();
    let many = symbiont_jobs::swf::read(&many).unwrap().jobs;
    let programs = |seed| given(&many, 5, seed).iter().map(|job| job.program).collect::<Vec<_>>();
    assert_eq!(programs(1), programs(1));
    assert_ne!(programs(1), programs(2));
    let drawn = given(&many, 5, 1);
    assert!((0..5).all(|program| drawn.iter().any(|job| job.program == program)));
    let nodes = nodes_for(&drawn, 1.0);
    assert_eq!(nodes, 10, "20 slots are busy at a time");
    let table = flat(5);
    let played = play(&cluster(nodes, &table), &drawn, &Scheduler::<Flat>::FirstCome);
    assert!(played.wait_s[0] < 60.0, "{:?}", played.wait_s);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn never_more_than_the_slots(seed in any::<u64>(), nodes in 1_usize..6, load in 0.5_f64..3.0) {
        let table = table();
        let workload = generate(60, 2, 2 * nodes, load, seed);
        let schedulers =
            [Scheduler::FirstCome, Scheduler::Backfill, Scheduler::Partners(&table, rules())];
        for scheduler in schedulers {
            let played = play(&cluster(nodes, &table), &workload, &scheduler);
            let jobs = || workload.iter().zip(&played.times_s);
            for (job, (start, end)) in jobs() {
                prop_assert!(*start >= job.submitted_s && *end >= start + job.run_s - 1e-6);
            }
            for (_, (at, _)) in jobs() {
                let busy: usize =
                    jobs().filter(|(_, (s, e))| s <= at && at < e).map(|(job, _)| job.slots).sum();
                prop_assert!(busy <= 2 * nodes, "{busy} of {}", 2 * nodes);
            }
        }
    }
}
