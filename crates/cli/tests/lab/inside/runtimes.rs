//! Programs of real runtimes count the CPUs under Symbiont that they count without it, on cores of two threads.
//!
//! # Problem
//! Runtimes size themselves by their affinity mask. Where cores have siblings, policies put threads to other targets
//! than on a machine without: one of two siblings, a whole core, all cores but one.
//!
//! # Approach
//! The programs are this machine's (`scripts/runtimes`), brought along: each has one busy thread for some seconds,
//! then a parallel phase that is sized by what the runtime says, and prints what it counts in each phase. Each is run
//! without Symbiont, twice, and then by `symbiont run` in each way and place; the outputs are compared.
//!
//! # Terms
//! *Way*: options of `symbiont run`, so a policy. *Place*: alone, or co-running with a serial program.
//! *Counts*: for each phase and quantity, all values that occurred. A run *differs* if its counts are not those of
//! the unmanaged ones, or if it ends badly. A *control* is a way that holds masks: programs must differ there.
//!
//! # Properties
//! - Unmanaged, all counts are the guest's CPUs; no run differs but for controls, of which each has one that does
//!   (`programs_count_the_cpus_that_they_count_unmanaged`).
//!
//! # What falls short
//! CPUs take turns here, so that each executes an eighth of what it would in the guest's time: a nudge takes 0.5 ms
//! (median; on a real CPU 28 µs), eight of them 4 ms. Programs look at their masks where threads meet, so when
//! those that slept wake elsewhere and are looked at each 10 ms: under `random` both OpenMPs see a target once in
//! half of their runs or more, and not a moment later, with a quantum of 160 ms as with one of 20 ms.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::Value;
use symbiont_linux::launch::be_urgent;

use super::workers::{self, WORKER};
use crate::given::{Given, RUNTIMES, Runtimes, Way};
use crate::test_folder::{TIMEOUT, TestFolder, wait_until};

/// The role of the serial program.
pub const SERIAL: &str = "serial";
const PLACES: [&str; 2] = ["alone", "co-running"];
/// A serial program looks so often whether it is to end.
const LOOK: Duration = Duration::from_millis(200);

/// The role of what keeps turns short, and how often it wakes.
pub const TICKS: &str = "ticks";
const TICK: Duration = Duration::from_micros(100);

/// Values by phase and quantity.
type Counts = BTreeMap<(String, String), BTreeSet<i64>>;

/// A line of a program.
#[derive(Deserialize)]
struct Line {
    phase: String,
    of: String,
    count: i64,
}

fn counts(output: &str) -> Result<Counts, String> {
    let mut counts = Counts::new();
    for line in output.lines() {
        let Line { phase, of, count } =
            serde_json::from_str(line).map_err(|why| format!("{why}: {line}"))?;
        counts.entry((phase, of)).or_default().insert(count);
    }
    Ok(counts)
}

/// What was counted otherwise.
fn differences(expected: &Counts, counts: &Counts) -> Vec<String> {
    let all: BTreeSet<_> = expected.keys().chain(counts.keys()).collect();
    let differ = all.into_iter().filter(|key| expected.get(key) != counts.get(key));
    let say = |(phase, of): &(String, String)| {
        let [counted, expected] =
            [counts, expected].map(|counts| counts.get(&(phase.clone(), of.clone())));
        let [counted, expected] = [counted, expected].map(|values| values.into_iter().flatten());
        let (counted, expected): (Vec<_>, Vec<_>) = (counted.collect(), expected.collect());
        format!("{phase} {of}: {counted:?} instead of {expected:?}")
    };
    differ.map(say).collect()
}

/// Spins until a program has said in its output that it ends.
pub fn serial(output: &str) {
    let parent = rustix::process::getppid();
    let has_ended = || fs::read_to_string(output).is_ok_and(|said| said.contains("\"end\""));
    while rustix::process::getppid() == parent && !has_ended() {
        let begin = Instant::now();
        while begin.elapsed() < LOOK {
            workers::spin(1000);
        }
    }
}

/// Wakes all the time. CPUs that execute by counting take turns, each of an eighth of the time to the next timer
/// of the guest: so no other CPU goes on for long while one is waited for.
pub fn ticks() {
    let _ = be_urgent();
    let parent = rustix::process::getppid();
    while rustix::process::getppid() == parent {
        std::thread::sleep(TICK);
    }
}

/// What came of the runs of a program in a way and place, or of a way in a place.
#[derive(Default)]
struct Cell {
    ran: u32,
    differ: u32,
    /// Of runs that report them.
    moves: Vec<u64>,
}

/// Runs a command to its end; gives what is then in the file that it writes to.
fn ended(place: &TestFolder, command: &mut Command, output: &Path) -> Result<String, String> {
    let error = place.path("error");
    command.stdin(Stdio::null()).stderr(File::create(&error).unwrap());
    let mut program = place.start(command);
    let begin = Instant::now();
    let status = loop {
        if let Some(status) = program.0.try_wait().unwrap() {
            break status;
        }
        if begin.elapsed() > TIMEOUT {
            return Err(format!("not done after {} s", TIMEOUT.as_secs()));
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let error = fs::read_to_string(error).unwrap();
    let output = fs::read_to_string(output).unwrap_or_default();
    if !status.success() || error.contains("unmanaged") {
        return Err(format!("{status}: {}", error.trim()));
    }
    Ok(output)
}

/// What a program counts without Symbiont.
fn unmanaged(command: &[String]) -> Counts {
    let place = TestFolder::new();
    let output = place.path("output");
    let mut program = Command::new(&command[0]);
    program.args(&command[1..]).stdout(File::create(&output).unwrap());
    counts(&ended(&place, &mut program, &output).unwrap()).unwrap()
}

/// What a program writes under Symbiont, and how many moves were reported.
fn managed(
    command: &[String],
    way: &Way,
    co_running: bool,
    run: u32,
) -> (Result<String, String>, Option<u64>) {
    let place = TestFolder::new();
    let (output, report) = (place.path("output"), place.path("report"));
    let mut symbiont = Command::new(env!("CARGO_BIN_EXE_symbiont"));
    symbiont.args(["run", "--state-dir"]).arg(place.state_dir()).args(&way.options);
    // Every other run alone, symbiont is the parent instead of what becomes the program.
    if co_running || run % 2 == 1 {
        symbiont.args(["--report", "json", "--report-file"]).arg(&report);
    }
    if co_running {
        let jobs = place.path("jobs.toml");
        let serial = [super::INIT, WORKER, SERIAL, output.to_str().unwrap()];
        let text = format!(
            "[[job]]\nname = 'program'\ncommand = {command:?}\nstdout = {output:?}\n\
             [[job]]\nname = 'serial'\ncommand = {serial:?}\n"
        );
        fs::write(&jobs, text).unwrap();
        symbiont.arg("--job").arg(jobs);
    } else {
        symbiont.arg("--").args(command).stdout(File::create(&output).unwrap());
    }
    let said = ended(&place, &mut symbiont, &output);
    wait_until("the manager is gone", || place.manager().is_none());
    let report = fs::read_to_string(report).ok();
    let moves = report
        .and_then(|report| serde_json::from_str::<Value>(&report).ok()?["moves"]["done"].as_u64());
    (said, moves)
}

/// Everything that came, by way, program and place.
type Cells<'a> = BTreeMap<(&'a str, &'a str, &'static str), Cell>;

fn print(runtimes: &Runtimes, cells: &Cells<'_>) {
    let names: Vec<&str> = runtimes.ways.iter().map(|way| way.name.as_str()).collect();
    println!("| runs that differ, of all | | {} |", names.join(" | "));
    println!("|---|---|{}", "---|".repeat(names.len()));
    for place in PLACES {
        for program in runtimes.programs.keys() {
            let row = names.iter().map(|way| match cells.get(&(*way, program.as_str(), place)) {
                Some(cell) => format!("{}/{}", cell.differ, cell.ran),
                None => String::new(),
            });
            println!("| {program} | {place} | {} |", row.collect::<Vec<_>>().join(" | "));
        }
        let row = names.iter().map(|name| {
            let of_way = cells.iter().filter(|((way, _, at), _)| way == name && *at == place);
            let moves: Vec<u64> = of_way.flat_map(|(_, cell)| cell.moves.iter().copied()).collect();
            match (moves.iter().min(), moves.iter().max()) {
                (Some(least), Some(most)) => format!("{least} to {most}"),
                _ => String::new(),
            }
        });
        println!("| moves | {place} | {} |", row.collect::<Vec<_>>().join(" | "));
    }
}

/// Controls once, co-running, and first: what can find nothing need not go on.
fn all_runs(runtimes: &Runtimes) -> Vec<(u32, &Way, &str, &'static str)> {
    let mut runs = Vec::new();
    for run in 0..runtimes.runs {
        let controls = runtimes.ways.iter().filter(|way| way.control && run == 0);
        for way in controls.chain(runtimes.ways.iter().filter(|way| !way.control)) {
            let places = if way.control { &PLACES[1..] } else { &PLACES };
            for name in runtimes.programs.keys() {
                runs.extend(places.iter().map(|place| (run, way, name.as_str(), *place)));
            }
        }
    }
    runs
}

pub fn table(given: &Given) {
    let _ticks = TestFolder::new().start(Command::new(super::INIT).args([WORKER, TICKS]));
    let begin = Instant::now();
    let runtimes: Runtimes = serde_json::from_slice(&fs::read(RUNTIMES).unwrap()).unwrap();
    // LLVM's OpenMP shares memory between programs.
    fs::create_dir_all("/dev/shm").unwrap();
    for (path, text) in &runtimes.files {
        fs::create_dir_all(Path::new(path).parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let cpus = BTreeSet::from([i64::try_from(given.cpus().len()).unwrap()]);
    let mut expected = BTreeMap::new();
    for (name, command) in &runtimes.programs {
        let [first, second] = [(); 2].map(|()| unmanaged(command));
        assert_eq!(first, second, "{name} does not count the same twice, unmanaged");
        assert!(
            !first.is_empty() && first.values().all(|counts| *counts == cpus),
            "{name}: {first:?}"
        );
        expected.insert(name.as_str(), first);
    }
    println!("unmanaged: all as given, after {:.0} s", begin.elapsed().as_secs_f64());
    let last = runtimes.minutes.map(|minutes| begin + Duration::from_secs_f64(minutes * 60.0));
    let is_over = || last.is_some_and(|last| Instant::now() > last);
    let mut cells = Cells::new();
    let mut wrong = Vec::new();
    let runs = all_runs(&runtimes);
    for (done, (run, way, name, place)) in runs.iter().copied().enumerate() {
        if is_over() {
            break;
        }
        if done > 0 && done % 5 == 0 {
            let wrong = wrong.len();
            println!(
                "{done} of {} runs, {wrong} differ but for controls; now {}",
                runs.len(),
                way.name
            );
        }
        let (said, moves) = managed(&runtimes.programs[name], way, place == PLACES[1], run);
        let differ = match said.and_then(|said| counts(&said)) {
            Ok(counts) => differences(&expected[name], &counts).join("; "),
            Err(why) => why,
        };
        let cell = cells.entry((&way.name, name, place)).or_default();
        cell.ran += 1;
        cell.moves.extend(moves);
        if !differ.is_empty() {
            cell.differ += 1;
            let line = format!("{name}, {}, {place}, run {run}: {differ}", way.name);
            println!("{line}");
            wrong.extend((!way.control).then_some(line));
        }
    }
    print(&runtimes, &cells);
    let is_tried = |name: &str| runtimes.ways.iter().any(|way| way.name == name && !way.control);
    let differ =
        |way: &Way| cells.iter().any(|((name, ..), cell)| *name == way.name && cell.differ > 0);
    for way in runtimes.ways.iter().filter(|way| way.control) {
        assert!(differ(way), "{}: no run differs, so nothing can be found", way.name);
    }
    assert!(wrong.is_empty(), "{}", wrong.join(" | "));
    assert!(cells.keys().any(|(name, ..)| is_tried(name)), "nothing was tried");
}
