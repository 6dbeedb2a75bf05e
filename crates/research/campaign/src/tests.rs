use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde::Deserialize;

use super::*;
use symbiont_report::stats::mean;

/// Measures gains of a few machines until they are decided.
struct Toy {
    /// By machine; another version is another machine.
    versions: Vec<u32>,
    carried_out: Mutex<Vec<String>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct ToyRun {
    machine: usize,
    repeat: u32,
}

impl Display for ToyRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "machine {} repeat {}", self.machine, self.repeat)
    }
}

impl Toy {
    const REPEATS: Repeats = Repeats { least: 2, most: 8, narrow: 0.01 };

    fn new(versions: &[u32]) -> Self {
        Self { versions: versions.to_vec(), carried_out: Mutex::default() }
    }
}

impl Experiment for Toy {
    type Run = ToyRun;
    type Record = f64;

    fn name(&self) -> String {
        "toy".to_owned()
    }

    fn basis(&self, run: &ToyRun) -> String {
        format!("machine of version {}", self.versions[run.machine])
    }

    fn next(&self, done: &[FinishedRunOf<Self>]) -> Vec<ToyRun> {
        let more = |machine: usize| {
            let own = done.iter().filter(|finished| finished.run.machine == machine);
            let gains: Vec<f64> = own.map(|finished| finished.record).collect();
            let count = gains.len() as u32;
            let decided = || Self::REPEATS.decide(&gains) != Decision::Undecided;
            let wanted = Self::REPEATS.wanted(count, decided);
            (count..wanted).map(move |repeat| ToyRun { machine, repeat }).collect::<Vec<_>>()
        };
        (0..self.versions.len()).flat_map(more).collect()
    }

    fn carry_out(&self, run: &ToyRun, _: &AtomicBool) -> Result<f64, Error> {
        self.carried_out.lock().unwrap().push(run.to_string());
        let seed = u64::from(self.versions[run.machine]) << 32 | u64::from(run.repeat);
        // Digits that a careless way through text would lose.
        Ok(Pcg64Mcg::seed_from_u64(seed).random_range(-0.1..0.1) / 3.0)
    }

    fn cost(&self, _: &ToyRun) -> Duration {
        Duration::from_millis(1)
    }
}

/// Stops after so many runs.
struct StopsAfter(u32, AtomicU32);

impl Progress for StopsAfter {
    fn begin(&mut self, _: usize, _: Option<usize>, _: Duration) {}
    fn running(&mut self, _: &str) {}
    fn done(&mut self) {
        self.1.fetch_add(1, Ordering::Relaxed);
    }
    fn note(&mut self, _: &str) {}
    fn cancelled(&self) -> bool {
        self.1.load(Ordering::Relaxed) >= self.0
    }
}

fn bits(done: &[FinishedRunOf<Toy>]) -> Vec<(ToyRun, u64)> {
    done.iter().map(|finished| (finished.run.clone(), finished.record.to_bits())).collect()
}

#[test]
fn an_interrupted_experiment_ends_with_the_same_records() {
    let folder = tempfile::tempdir().unwrap();
    let whole = carry_out(&Toy::new(&[1, 2, 3]), &folder.path().join("whole"), 2, &mut ()).unwrap();
    assert!(whole.len() >= 6);
    let (parts, mut interruptions) = (folder.path().join("parts"), 0);
    let done = loop {
        let mut progress = StopsAfter(1, AtomicU32::new(0));
        match carry_out(&Toy::new(&[1, 2, 3]), &parts, 1, &mut progress) {
            Ok(done) => break done,
            Err(Error::Cancelled) => interruptions += 1,
            Err(error) => panic!("{error}"),
        }
        // What a kill in the middle of a line leaves.
        let file = parts.join("toy.jsonl");
        let torn = std::fs::read_to_string(&file).unwrap() + "{\"key\":\"ab";
        std::fs::write(&file, torn).unwrap();
    };
    assert!(interruptions >= 3, "{interruptions}");
    assert_eq!(bits(&done), bits(&whole));
}

#[test]
fn only_what_depends_on_a_change_runs_again() {
    let folder = tempfile::tempdir().unwrap();
    let before = carry_out(&Toy::new(&[1, 2, 3]), folder.path(), 2, &mut ()).unwrap();
    let same = Toy::new(&[1, 2, 3]);
    assert_eq!(bits(&carry_out(&same, folder.path(), 2, &mut ()).unwrap()), bits(&before));
    assert!(same.carried_out.into_inner().unwrap().is_empty());
    let changed = Toy::new(&[1, 7, 3]);
    carry_out(&changed, folder.path(), 2, &mut ()).unwrap();
    let again = changed.carried_out.into_inner().unwrap();
    assert!(!again.is_empty() && again.iter().all(|run| run.starts_with("machine 1")), "{again:?}");
}

#[test]
fn a_failed_run_ends_the_experiment_and_what_was_finished_is_kept() {
    struct Failing(Toy);
    impl Experiment for Failing {
        type Run = ToyRun;
        type Record = f64;
        fn name(&self) -> String {
            self.0.name()
        }
        fn basis(&self, run: &ToyRun) -> String {
            self.0.basis(run)
        }
        fn next(&self, done: &[FinishedRunOf<Self>]) -> Vec<ToyRun> {
            let all = (0..2).map(|machine| ToyRun { machine, repeat: 0 });
            if done.is_empty() { all.collect() } else { Vec::new() }
        }
        fn carry_out(&self, run: &ToyRun, stop: &AtomicBool) -> Result<f64, Error> {
            match run.machine {
                0 => self.0.carry_out(run, stop),
                _ => Err(Error::evaluation("no such machine")),
            }
        }
        fn cost(&self, run: &ToyRun) -> Duration {
            self.0.cost(run)
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let error = carry_out(&Failing(Toy::new(&[1, 2])), folder.path(), 1, &mut ()).unwrap_err();
    assert!(error.to_string().contains("no such machine"), "{error}");
    let text = std::fs::read_to_string(folder.path().join("toy.jsonl")).unwrap();
    assert_eq!(text.lines().count(), 1);
}

#[test]
fn repeats_end_when_the_interval_decides() {
    let repeats = Repeats { least: 3, most: 10, narrow: 0.005 };
    assert_eq!(repeats.decide(&[]), Decision::Undecided);
    assert_eq!(repeats.decide(&[0.1]), Decision::Undecided);
    assert_eq!(repeats.decide(&[0.1, 0.11, 0.09]), Decision::Differs);
    assert_eq!(repeats.decide(&[0.001, -0.001, 0.0, 0.001, -0.001]), Decision::Equal);
    assert_eq!(repeats.decide(&[0.1, -0.1, 0.05]), Decision::Undecided);
    assert_eq!(repeats.looks().collect::<Vec<_>>(), [3, 6, 10]);
    assert_eq!(repeats.wanted(0, || true), 3);
    assert_eq!(repeats.wanted(2, || true), 3, "fewer than the fewest");
    assert_eq!(repeats.wanted(3, || true), 3);
    assert_eq!(repeats.wanted(3, || false), 6);
    assert_eq!(repeats.wanted(4, || true), 6, "no one looks there");
    assert_eq!(repeats.wanted(10, || false), 10, "the cap");
    assert_eq!(Repeats::exactly(5).looks().collect::<Vec<_>>(), [5]);
}

/// Compares two contenders as the runner would, the second `gain` better; repeats spread by 3 %, and
/// workloads differ by themselves.
fn verdict(gain: f64, seed: u64) -> Decision {
    let repeats = Repeats { least: 5, most: 20, narrow: 0.01 };
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut gains = Vec::new();
    loop {
        let mut noise =
            || 1.0 + 0.03 * (random.random_range(-1.0..1.0) + random.random_range(-1.0..1.0));
        gains.push(noise() * (1.0 + gain) / noise() - 1.0);
        let count = gains.len() as u32;
        let decided = || repeats.decide(&gains) != Decision::Undecided;
        if repeats.wanted(count, decided) == count {
            return repeats.decide(&gains);
        }
    }
}

#[test]
fn equal_contenders_are_rarely_found_different() {
    let wrong = (0..1000).filter(|seed| verdict(0.0, *seed) == Decision::Differs).count();
    assert!(wrong <= 40, "{wrong} of 1,000, where 25 are allowed for");
}

#[test]
fn a_difference_of_five_percent_is_mostly_found() {
    let found = (0..100).filter(|seed| verdict(0.05, *seed) == Decision::Differs).count();
    assert!(found >= 80, "{found} of 100");
}

fn row(workload: &str, contender: &str, repeat: u32, speedups: [f64; 2]) -> Row {
    let programs = vec![format!("{workload}-a"), "shared".to_owned()];
    let (workload, contender) = (workload.to_owned(), contender.to_owned());
    Row { workload, programs, contender, repeat, speedups: speedups.to_vec() }
}

#[test]
fn gains_are_paired_by_repeat() {
    let rows = Rows(vec![
        row("w", "own", 0, [0.6, 0.6]),
        row("w", "own", 1, [0.3, 0.3]),
        row("w", "own", 2, [0.9, 0.9]),
        row("w", "os", 1, [0.25, 0.25]),
        row("w", "os", 0, [0.5, 0.5]),
    ]);
    let gains = rows.gains("w", "own", "os", Metric::Stp);
    assert_eq!(gains.len(), 2, "repeat 2 has no counterpart");
    assert!(gains.iter().all(|gain| (gain - 0.2).abs() < 1e-12), "{gains:?}");
    let slower = rows.gains("w", "own", "os", Metric::Antt);
    assert!((mean(&slower).unwrap() - (1.0 / 1.2 - 1.0)).abs() < 1e-12);
    let gain = rows.gain("w", "absent", Metric::Stp, 1);
    assert!(gain.is_err());
}

#[test]
fn the_time_until_all_have_ended_is_that_of_the_slowest() {
    let rows = Rows(vec![row("w", "own", 0, [0.5, 0.4]), row("w", "os", 0, [0.8, 0.2])]);
    let of = |metric| rows.gains("w", "own", "os", metric);
    assert_eq!(of(Metric::Slowest), [1.0], "ended in half the time");
    assert!(of(Metric::Stp)[0] < 0.0, "with less throughput");
    assert_eq!(Metric::Slowest.of(&[]), None);
}

#[test]
fn gains_headroom_and_losers_over_workloads() {
    let mut rows = Vec::new();
    for (at, workload) in ["u", "v", "w"].into_iter().enumerate() {
        for repeat in 0..3 {
            let base = 0.5 + 0.001 * f64::from(repeat);
            let gain = [0.10, 0.20, -0.05][at];
            rows.push(row(workload, "random", repeat, [base, base]));
            rows.push(row(workload, "own", repeat, [base * (1.0 + gain), base * (1.0 + gain)]));
            rows.push(row(workload, "oracle", repeat, [base * 1.25, base * 1.25]));
        }
    }
    let rows = Rows(rows);
    let gain = rows.gain("own", "random", Metric::Stp, 1).unwrap();
    assert!((gain.value - 0.25 / 3.0).abs() < 1e-9, "{gain:?}");
    assert!(gain.interval.is_some_and(|interval| interval.contains(gain.value)));
    let captured = rows.captured("own", "random", "oracle", 1).unwrap().value;
    assert!((captured - 1.0 / 3.0).abs() < 1e-9, "{captured}");
    let losers = rows.losers("own", "random", Repeats::exactly(3));
    assert_eq!(losers.iter().map(|loser| loser.workload.as_str()).collect::<Vec<_>>(), ["w"]);
    assert_eq!(losers[0].programs, ["w-a", "shared"]);
    let level = rows.level("random", Metric::Stp, 1).unwrap();
    assert!((level.value - 1.002).abs() < 1e-9, "{level:?}");
    assert_eq!(rows.captured("own", "random", "random", 1), None);
}

/// Fails so often before it succeeds.
struct Failing {
    times: u32,
    with: fn() -> Error,
    carried_out: AtomicU32,
}

impl Experiment for Failing {
    type Run = u32;
    type Record = u32;

    fn name(&self) -> String {
        "failing".to_owned()
    }

    fn basis(&self, _: &u32) -> String {
        String::new()
    }

    fn next(&self, done: &[FinishedRunOf<Self>]) -> Vec<u32> {
        if done.is_empty() { vec![7] } else { Vec::new() }
    }

    fn carry_out(&self, run: &u32, _: &AtomicBool) -> Result<u32, Error> {
        let before = self.carried_out.fetch_add(1, Ordering::Relaxed);
        if before < self.times { Err((self.with)()) } else { Ok(*run) }
    }

    fn cost(&self, _: &u32) -> Duration {
        Duration::ZERO
    }

    fn attempts(&self) -> u32 {
        3
    }
}

/// Attempts that it took, and how it ended.
fn failing(times: u32, with: fn() -> Error) -> (u32, Result<usize, Error>) {
    let folder = tempfile::tempdir().unwrap();
    let experiment = Failing { times, with, carried_out: AtomicU32::new(0) };
    let ended = carry_out(&experiment, folder.path(), 1, &mut ()).map(|done| done.len());
    (experiment.carried_out.into_inner(), ended)
}

#[test]
fn a_run_that_fails_is_tried_again_a_few_times() {
    let wrong = || Error::Unmanaged("another manager holds the lock".to_owned());
    assert!(matches!(failing(0, wrong), (1, Ok(1))));
    assert!(matches!(failing(2, wrong), (3, Ok(1))));
    let (attempts, ended) = failing(3, wrong);
    assert!(matches!(ended, Err(Error::Hopeless { attempts: 3, .. })), "{ended:?}");
    assert_eq!(attempts, 3);
    let said = ended.unwrap_err().to_string();
    assert!(said.starts_with("a run (7) failed 3 times, the last time: "), "{said}");
    assert!(matches!(failing(1, || Error::Cancelled), (1, Err(Error::Cancelled))));
}

#[test]
fn what_is_no_folder_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    for output in [file.clone(), file.join("out"), file.join("deeper/out")] {
        let error = make_folder(&output).unwrap_err().to_string();
        assert_eq!(error, format!("{} is not a folder", file.display()));
    }
    assert!(make_folder(&folder.path().join("new/out")).is_ok());
}
