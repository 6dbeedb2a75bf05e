use std::sync::atomic::AtomicBool;

use symbiont_profile::trace::{
    About, Code, DataAccess, FLAGS, Leaves, StaticInstruction, StaticOp, WindowEncoder, write,
};
use symbiont_profile::{OpClass, Operand};
use symbiont_sim_cycle::SuperSetIndexing;
use symbiont_sim_fast::description::Description;
use tempfile::TempDir;

use super::mixes::{gain, kicked_out};
use super::play::{FINEST, PlayRecord, Players, Schedule, ScheduleRun, Traces, path};
use super::scheduler::{By, Intervals};
use super::scoring::{CacheCounts, Scoring, VECTORS};
use symbiont_campaign::Experiment;

/// Instructions of a synthetic program.
const INSTRUCTIONS: u64 = 200_000;
/// Sets of the L2, and its ways.
const SETS: u64 = 1024;
const WAYS: u64 = 8;
/// By how many sets the memory of each job is shifted: by some pages, as the streams of the traces are.
const MOVED: [u64; 4] = [0, 9 * 64, 2 * 64, 12 * 64];

/// Which half of the sets each job uses. Jobs of one half are those that schedules without vectors, too, run
/// together half of the time, in turn or by residence.
const HALF: [u64; 4] = [0, 1, 1, 0];
/// Sets that a job uses.
const USED: u64 = 64;

/// Four programs, each of which loads all ways of some sets again and again: the first and the last of the same sets,
/// the others of others.
fn synthetic() -> (TempDir, Traces) {
    let folder = TempDir::new().unwrap();
    let one = |class, reads: &[u8], writes: &[u8]| StaticInstruction {
        length: 4,
        ops: vec![StaticOp {
            class,
            reads: reads.to_vec(),
            writes: writes.to_vec(),
            operand: Operand::default(),
        }],
    };
    let load = one(OpClass::Load, &[3], &[4]);
    let branch = one(OpClass::Branch, &[FLAGS], &[]);
    for ((job, moved), half) in (0_u64..).zip(MOVED).zip(HALF) {
        let code = || Code {
            start: 0x40_1000,
            leaves: Leaves::Conditionally,
            instructions: vec![load.clone(), branch.clone()],
        };
        let first = SETS + half * (SETS / 2) - moved;
        let mut encoder = WindowEncoder::new(0, 0, &[], &[]).unwrap();
        for number in 0..INSTRUCTIONS / 2 {
            let (set, way) = ((first + number % USED) % SETS, number / USED % WAYS);
            let address = 0x1000_0000 + (way * SETS + set) * 64;
            let access = DataAccess { instruction: 0, class: OpClass::Load, address };
            encoder.executed(0, code, false, &[access]).unwrap();
        }
        let about = About {
            program: job.to_string(),
            command: Vec::new(),
            digest: "00".to_owned(),
            instructions: INSTRUCTIONS,
            gaps: Vec::new(),
        };
        let raw = encoder.finish(Some(0x40_1008)).unwrap();
        let file = path(folder.path(), &job.to_string());
        write(&file, &about, std::iter::once(Ok((0, 1.0, 0, raw)))).unwrap();
    }
    let traces = Traces::read(folder.path(), ["0", "1", "2", "3"]).unwrap();
    (folder, traces)
}

fn activity() -> Scoring {
    Scoring {
        super_sets: 32,
        reading: SuperSetIndexing::Contiguous,
        thresholds: [20; VECTORS],
        overlap: [0.0, 0.0, 0.0, 0.0, 1.0, 1.0],
        misses: 0.0,
        average: 0.01,
        resident: 4.0,
        vectors_of: None,
        elsewhere: None,
    }
}

fn mix(schedule: Schedule, private: bool) -> ScheduleRun {
    ScheduleRun {
        jobs: ["0", "1", "2", "3"].map(str::to_owned).to_vec(),
        schedule,
        called: "a schedule".to_owned(),
        samples: (300, 20_000),
        targets: vec![100_000; 4],
        private,
    }
}

/// Carries runs out on the simulated core.
fn played(runs: Vec<ScheduleRun>, intervals: &Intervals) -> Vec<PlayRecord> {
    let (_folder, traces) = synthetic();
    let machine = Description::named("xsim").unwrap();
    let name = "synthetic".to_owned();
    let players = Players { name, machine: &machine, traces: &traces, intervals, runs };
    let stop = AtomicBool::new(false);
    players.runs.iter().map(|run| players.carry_out(run, &stop).unwrap()).collect()
}

fn alone(program: &str) -> ScheduleRun {
    ScheduleRun {
        jobs: vec![program.to_owned()],
        samples: (6, 40_000),
        targets: Vec::new(),
        ..mix(Schedule::Together, false)
    }
}

#[test]
fn jobs_that_use_other_sets_run_together_and_gain() {
    let control = Scoring { vectors_of: Some(vec![3, 0, 1, 2]), ..activity() };
    let scored = Schedule::Scored;
    let records = played(
        vec![
            mix(Schedule::RoundRobin, false),
            mix(scored(activity()), false),
            mix(scored(control), false),
            mix(scored(Scoring { elsewhere: Some(1), ..activity() }), false),
            mix(Schedule::RoundRobin, true),
            mix(scored(activity()), true),
        ],
        &Intervals::new(),
    );
    let by_turns = |own: &PlayRecord, base: &PlayRecord| gain(own, base, 4).unwrap();
    let [base, own, shuffled, elsewhere, base_private, own_private] = records.as_slice() else {
        panic!()
    };
    assert!(by_turns(own, base) > 0.1, "{}", by_turns(own, base));
    assert!(kicked_out(own)[0] < 0.5 * kicked_out(base)[0], "{:?}", kicked_out(own));
    // The controls. With another's vectors a schedule still changes jobs less often than in turn.
    assert!(by_turns(own, shuffled) > 0.5, "{}", by_turns(own, shuffled));
    assert!(by_turns(own, elsewhere) > 0.1, "{}", by_turns(own, elsewhere));
    assert!(by_turns(own_private, base_private).abs() < 0.02);
    assert_eq!([kicked_out(base_private), kicked_out(own_private)], [[0.0; 2]; 2]);
}

#[test]
fn a_run_alone_knows_where_a_program_is() {
    let record = played(vec![alone("0")], &Intervals::new()).remove(0);
    let last = &record.samples.last().unwrap().turns[0];
    let uses = &last.caches[2].uses;
    assert_eq!(uses.len(), FINEST);
    let (lower, upper) = uses.split_at(FINEST / 2);
    assert!(upper.iter().all(|count| *count == 0), "{uses:?}");
    let used = FINEST * USED as usize / SETS as usize;
    let busy = |count: &u32| *count > 20;
    assert!(lower[..used].iter().all(busy) && !lower[used..].iter().any(busy), "{uses:?}");
    assert_eq!(record.makespan(1), None);
}

#[test]
fn a_missing_trace_is_an_error_that_names_it() {
    let folder = TempDir::new().unwrap();
    let error = Traces::read(folder.path(), ["nothing"]).unwrap_err().to_string();
    assert!(error.contains("nothing.trace"), "{error}");
}

/// The same vectors all the time, of each program where it runs in the mix.
fn known() -> Intervals {
    let counts = |job: usize| {
        let busy = |set: usize| u32::from(set / 8 == HALF[job] as usize * 8);
        let uses = (0..FINEST).map(|set| 1000 * busy(set)).collect();
        let caches = vec![
            CacheCounts::default(),
            CacheCounts::default(),
            CacheCounts { uses, misses: vec![0; FINEST], kicked_out: 0 },
        ];
        (job.to_string(), vec![(u64::MAX, caches)])
    };
    (0..4).map(counts).collect()
}

#[test]
fn linux_gains_by_vectors_that_are_known_beforehand() {
    let run = |by, private| mix(Schedule::Linux(by, activity()), private);
    let elsewhere = Scoring { elsewhere: Some(1), ..activity() };
    let runs = vec![
        run(By::Default, false),
        run(By::Vectors, false),
        run(By::OthersVectors, false),
        mix(Schedule::Linux(By::Vectors, elsewhere), false),
        run(By::Default, true),
        run(By::Vectors, true),
    ];
    let records = played(runs, &known());
    let [base, own, others, elsewhere, base_private, own_private] = records.as_slice() else {
        panic!()
    };
    let gained = |own: &PlayRecord, base: &PlayRecord| gain(own, base, 4).unwrap();
    assert!(gained(own, base) > 0.1, "{}", gained(own, base));
    assert!(gained(own, others) > 0.1, "{}", gained(own, others));
    assert!(gained(own, elsewhere) > 0.1, "{}", gained(own, elsewhere));
    // One of them ends a sample later, that is all.
    let private = gained(own_private, base_private);
    assert!(private.abs() < 0.1 && private.abs() < 0.1 * gained(own, base), "{private}");
    let kept = |record: &PlayRecord| record.decisions.iter().filter(|it| it.chosen == 0).count();
    assert_eq!(kept(base), base.decisions.len());
    assert!(kept(own) < own.decisions.len());
}

#[test]
fn each_program_of_the_paper_has_a_stand_in_that_runs() {
    use super::*;
    let library = symbiont_experiments_sim::Library::default();
    let context = Context {
        records: std::path::PathBuf::new(),
        effort: Effort::Quick,
        seed: 1,
        workers: 1,
        library: &library,
        own: crate::own::OwnPrograms::default(),
        traces: std::path::PathBuf::new(),
        workload: None,
        pairs: Vec::new(),
        prepare: &|_, _, _| Ok(()),
    };
    let uses = ActivityVectors.uses(&context);
    assert_eq!(uses.len(), CPU2000.len());
    let of = |figure: &str| -> BTreeSet<&str> {
        let here = uses.iter().filter(|one| one.figures.contains(&figure));
        here.map(|one| one.by.as_str()).collect()
    };
    assert_eq!(of("settle-tab4"), ours().collect());
    assert_eq!(of("settle-fig10"), linux::programs().into_iter().chain(ours()).collect());
    let known = |id: &&str| FIGURES.iter().any(|figure| figure.id == *id);
    assert!(OF_EIGHT_JOBS.iter().all(known));
}
