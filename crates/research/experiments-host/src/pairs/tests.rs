use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::harness::Machine;
use proptest::prelude::*;
use symbiont_campaign::InRound;

use super::evaluate::Speeds;
use super::kernels::CpuCell;
use super::sharing::judge;
use super::threads::{cpu_cells, several, slowdowns};
use super::*;
use crate::bench::Noise;

/// A stand-in for a machine: two hardware threads share a core where their halved numbers are equal, and programs slow
/// each other down as a table says.
struct Stub {
    name: &'static str,
    names: Vec<String>,
    table: Vec<Vec<f64>>,
    measured: Mutex<Vec<PairCell>>,
    /// After so many measurements, the user stops it.
    stops_after: usize,
    count: AtomicUsize,
}

impl Stub {
    fn new(table: Vec<Vec<f64>>) -> Self {
        let names = (0..table.len()).map(|at| format!("p{at}")).collect();
        let (measured, count) = (Mutex::new(Vec::new()), AtomicUsize::new(0));
        Self { name: "programs", names, table, measured, stops_after: usize::MAX, count }
    }

    fn slowdown(&self, victim: &str, other: &str) -> f64 {
        let at = |name: &str| self.names.iter().position(|it| it == name).unwrap();
        self.table[at(victim)][at(other)]
    }
}

impl Bench for Stub {
    type Cell = PairCell;

    fn name(&self) -> String {
        self.name.to_owned()
    }

    fn basis(&self, _: &PairCell) -> String {
        String::new()
    }

    fn measure(&self, cell: &PairCell, _: &AtomicBool) -> Result<Speeds, Error> {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        if number >= self.stops_after {
            return Err(Error::Cancelled);
        }
        self.measured.lock().unwrap().push(cell.clone());
        // The machine becomes slower all the time, the same for all.
        let clock = 1.0 / (1.0 + 1e-6 * number as f64);
        let other = cell.co_runner.as_deref();
        let speed = |victim: &str, other: Option<&str>| {
            clock / other.map_or(1.0, |other| self.slowdown(victim, other))
        };
        let second = other.map(|other| speed(other, Some(&cell.program)));
        let noise = Noise { others_cpus: 0.5, stolen_cpus: 0.0 };
        Ok(Speeds { first: speed(&cell.program, other), second, seconds: 0.5, noise })
    }

    fn cost(&self, _: &PairCell) -> Duration {
        Duration::ZERO
    }
}

fn bounds(rounds: u32) -> Bounds {
    Bounds { rounds, seed: 1, deadline: Instant::now() + Duration::from_secs(3600), last: true }
}

fn table(count: usize) -> Vec<Vec<f64>> {
    (0..count)
        .map(|v| (0..count).map(|o| 1.0 + 0.1 * v as f64 + 0.05 * (v * o) as f64).collect())
        .collect()
}

/// Times that each cell counts.
fn times(even: &Even<PairCell>) -> BTreeMap<PairCell, u32> {
    let mut times = BTreeMap::new();
    for done in &even.done {
        *times.entry(done.run.cell.clone()).or_default() += 1;
    }
    times
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn what_is_interrupted_is_even_and_goes_on(count in 2_usize..5, rounds in 2_u32..5, stops_after in 0_usize..60) {
        let folder = tempfile::tempdir().unwrap();
        let stub = Stub { stops_after, ..Stub::new(table(count)) };
        let cells = cells(&stub.names, Sides::Both);
        let whole = (stops_after / cells.len()).min(rounds as usize) as u32;
        let first = measure_evenly(&stub, &cells, bounds(rounds), folder.path(), &mut ());
        match first {
            Ok(even) => {
                prop_assert_eq!((even.rounds, even.planned), (whole, rounds));
                let times = times(&even);
                prop_assert_eq!(times.len(), cells.len());
                prop_assert!(times.values().all(|times| *times == whole));
            }
            Err(error) => prop_assert!(whole == 0 && matches!(error, Error::Cancelled)),
        }
        // The same command again: nothing is measured twice, and all is there.
        let again = Stub { stops_after: usize::MAX, ..Stub::new(table(count)) };
        let even = measure_evenly(&again, &cells, bounds(rounds), folder.path(), &mut ()).unwrap();
        prop_assert_eq!(even.rounds, rounds);
        let all = stub.measured.lock().unwrap().len() + again.measured.lock().unwrap().len();
        prop_assert_eq!(all, cells.len() * rounds as usize);
        let found = matrix(&stub.names, &even.done).unwrap();
        for (victim, other, slowdown, _) in found.cells() {
            prop_assert!((slowdown.value / stub.slowdown(victim, other) - 1.0).abs() < 1e-3);
        }
    }
}

#[test]
fn a_deadline_ends_it_before_anything_else_begins() {
    let folder = tempfile::tempdir().unwrap();
    let stub = Stub::new(table(2));
    let over = Bounds { deadline: Instant::now(), ..bounds(2) };
    let cells = cells(&stub.names, Sides::Both);
    // What is measured before the first look at the clock may be kept, and counts if it is a whole round.
    match measure_evenly(&stub, &cells, over, folder.path(), &mut ()) {
        Err(error) => assert!(matches!(error, Error::Cancelled)),
        Ok(even) => assert!(times(&even).values().all(|times| *times == even.rounds)),
    }
}

fn sharing(slowdown: f64) -> Sharing {
    let pair = |one, other| (PuId(one), PuId(other));
    let near = |value: f64| vec![value, value * 1.01, value * 0.99];
    judge(&[(pair(0, 1), near(slowdown)), (pair(0, 2), near(1.02))].into())
}

fn set(text: &str) -> CpuSet {
    text.parse().unwrap()
}

#[test]
fn a_core_is_chosen_by_the_user_by_measuring_or_by_the_topology() {
    let cores = [set("0-1"), set("2-3")];
    let may = set("0-3");
    let choose = |named: Option<&CpuSet>, sharing: Option<&Sharing>, cores: &[CpuSet]| {
        choose(named, sharing, cores, &may)
    };
    let pair = |one, other| (PuId(one), PuId(other));
    let shared = sharing(1.9);
    assert_eq!(
        choose(Some(&set("1,2")), Some(&shared), &cores).unwrap(),
        (pair(1, 2), CpuChoice::User)
    );
    assert_eq!(choose(None, Some(&shared), &cores).unwrap(), (pair(0, 1), CpuChoice::Measured));
    let unclear = sharing(1.35);
    assert_eq!(choose(None, Some(&unclear), &cores).unwrap(), (pair(0, 1), CpuChoice::Topology));
    assert_eq!(choose(None, None, &cores).unwrap(), (pair(2, 3), CpuChoice::Topology));
    let said = |sharing: Option<&Sharing>, cores: &[CpuSet]| {
        choose(None, sharing, cores).unwrap_err().to_string()
    };
    let single: Vec<CpuSet> = (0..4).map(|cpu| PuId(cpu).into()).collect();
    assert!(
        said(Some(&unclear), &single)
            .starts_with("Whether hardware threads share a core here could not")
    );
    let none = sharing(1.0);
    let apart = said(Some(&none), &single);
    assert!(
        apart.starts_with("No two hardware threads share a core here (2 pairs of CPUs measured"),
        "{apart}"
    );
    assert!(said(Some(&none), &cores).contains("although /sys says that some do"));
    assert!(said(None, &single).contains("for x86-64"));
}

#[test]
fn cpus_that_cannot_be_used_are_refused() {
    let said = |cpus: &str| check(&set(cpus), &set("0-3")).map_err(|why| why.to_string());
    assert_eq!(said("1,3"), Ok(()));
    assert!(said("2").unwrap_err().contains("two CPUs are expected, such as 0,1; '2' names 1"));
    assert!(said("0-2").unwrap_err().contains("names 3"));
    assert!(said("3,4").unwrap_err().contains("cpu4 cannot be used; this process may run on 0-3"));
}

#[test]
fn one_cpu_is_too_few_whatever_it_is_for() {
    let said =
        |may: &str, there: &str| several(&set(may), &set(there)).map_err(|why| why.to_string());
    assert_eq!(said("0-1", "0-3"), Ok(()));
    assert!(said("0", "0").unwrap_err().starts_with("This machine has one CPU only"));
    let limited = said("2", "0-3").unwrap_err();
    assert!(
        limited.starts_with("This process may use one CPU only, cpu2,")
            && !limited.contains("--cpus"),
        "{limited}"
    );
}

#[test]
fn slowdowns_of_cpus_are_those_of_rounds() {
    let speeds = |first, second| Speeds { first, second, seconds: 0.1, noise: Noise::default() };
    let done = |round, cpu, other, first, second| symbiont_campaign::FinishedRun {
        run: InRound { round, cell: CpuCell { cpu, other } },
        record: speeds(first, second),
    };
    let even = Even {
        done: vec![
            done(0, 0, None, 8.0, None),
            done(0, 1, None, 2.0, None),
            done(0, 0, Some(1), 4.0, Some(1.0)),
            done(1, 1, None, 4.0, None),
            done(1, 0, Some(1), 4.0, Some(1.0)),
            done(1, 0, None, 4.0, None),
        ],
        rounds: 2,
        planned: 2,
    };
    assert_eq!(slowdowns(&even), [((PuId(0), PuId(1)), vec![2.0, 2.0])].into());
    let cells = cpu_cells(&[(PuId(0), PuId(1)), (PuId(1), PuId(2))]);
    assert_eq!(cells.len(), 3 + 2, "each alone once");
}

fn found(chosen: CpuChoice, slowdown: f64) -> (tempfile::TempDir, Found) {
    let folder = tempfile::tempdir().unwrap();
    let stub = Stub::new(table(3));
    let cells = cells(&stub.names, Sides::Both);
    let even = measure_evenly(&stub, &cells, bounds(2), folder.path(), &mut ()).unwrap();
    let matrix = matrix(&stub.names, &even.done).unwrap();
    let found = Found {
        sharing: Some(sharing(slowdown)),
        cores: vec![set("0,2"), set("1")],
        cpus: (PuId(0), PuId(1)),
        chosen,
        method: Method::Work,
        plan: Plan { rounds: 2, window: Duration::from_millis(500) },
        even: Even { planned: 3, ..even },
        matrix,
    };
    (folder, found)
}

fn page_of(found: &Found) -> String {
    page::page(found).html().unwrap()
}

#[test]
fn the_page_says_what_was_measured_and_what_limits_it() {
    let (_folder, mut of_core) = found(CpuChoice::Measured, 1.9);
    let page = page_of(&of_core);
    for needle in [
        "3 programs in all pairs on cpu0 and cpu1, two hardware threads of a core",
        "It ended after 2 of 3 rounds.",
        "Other programs used 0.50 CPUs",
        "found to share a core: {0-1}",
        "/sys says something else of cpu0 and cpu1: share a core; cpu0 and cpu2: two cores.",
        "The 9 pairs that sums predict worst",
        "pairs.csv",
    ] {
        assert!(page.contains(needle), "{needle} in {page}");
    }
    assert!(!page.contains("do not share a core"));
    assert!(
        page.contains("These commands take the former")
            && page.contains("simulate --pairs pairs.csv")
    );
    assert!(page.contains("(slower)") && page.contains("Orange is slower than alone"));
    assert!(!page.contains("One round"));
    of_core.even.rounds = 1;
    assert!(page_of(&of_core).contains("One round gives no intervals"));
    of_core.sharing = None;
    assert!(page_of(&of_core).contains("Not measured: the kernels"));
    let of_two = page_of(&found(CpuChoice::User, 1.0).1);
    assert!(of_two.contains("cpu0 and cpu1 do not share a core, as measured"), "{of_two}");
    assert!(!of_two.contains("two hardware threads of a core, measured"));
    assert!(of_two.contains("Do not simulate with it") && !of_two.contains("--policy learned"));
    let undecided = page_of(&found(CpuChoice::Topology, 1.35).1);
    assert!(undecided.contains("could not be decided by measuring"));
    assert!(undecided.contains("If the two CPUs share a core, these commands"));
}

#[test]
fn the_files_have_what_was_found_and_no_commands() {
    let (folder, found) = found(CpuChoice::Measured, 1.9);
    files::write(folder.path(), &Machine::read(), &found).unwrap();
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    assert_eq!(read("pairs.csv"), found.matrix.csv());
    let data: serde_json::Value = serde_json::from_str(&read("pairs.json")).unwrap();
    assert_eq!(data["programs"], serde_json::json!(["p0", "p1", "p2"]));
    assert_eq!(data["slowdowns"][2][1]["n"], 2);
    assert_eq!((&data["rounds"], &data["rounds_planned"]), (&2.into(), &3.into()));
    assert_eq!(data["sharing"][0]["measured"], "shared");
    assert_eq!(data["sharing"][0]["siblings_by_sys"], false);
    let elsewhere = folder.path().join("nowhere");
    assert!(
        files::write(&elsewhere, &Machine::read(), &found)
            .unwrap_err()
            .to_string()
            .contains("nowhere")
    );
}
