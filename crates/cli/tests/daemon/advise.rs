//! `symbiont advise`: on this very machine, with programs of the test.

use std::process::{Child, Command, Output, Stdio};

use libtest_mimic::Trial;
use rustix::process::Signal;
use serde_json::Value;

use crate::schema::{follows, schema};
use crate::service::{Service, command};
use crate::test_folder::{Program, TestFolder, is_alive, send, stderr, wait_until};
use crate::trials::{BUSY, skip, trial};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("advice_finds_busy_programs_and_names_them", found),
        trial("advice_changes_nothing", unchanged),
        trial("advice_reports_a_program_that_ended", ended),
        trial("advice_refuses_a_wrong_pid", wrong),
        trial("advice_as_json_follows_its_schema", json),
        trial("advice_says_what_a_daemon_manages_already", managed),
    ]
}

/// Longer than any of these tests waits.
const LONG: &str = "10min";

fn busy(place: &TestFolder) -> Program {
    place.start(Command::new("sh").args(["-c", BUSY]).stdin(Stdio::null()))
}

fn start(place: &TestFolder, words: &[&str]) -> Child {
    let words = [&["advise"], words].concat();
    let mut advise = command(env!("CARGO_BIN_EXE_symbiont").as_ref(), &words, &place.state_dir());
    advise.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn output(place: &TestFolder, words: &[&str]) -> Output {
    start(place, words).wait_with_output().unwrap()
}

/// What is advised, with all programs counting as busy that ran at all.
fn advice(place: &TestFolder, words: &[&str]) -> Value {
    let output = output(place, &[&["--json", "--busy", "0"], words].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn of(advice: &Value, process: u32) -> Option<&Value> {
    advice["programs"].as_array().unwrap().iter().find(|program| program["process"] == process)
}

fn status(program: &Program, field: &str) -> String {
    let status = std::fs::read_to_string(format!("/proc/{}/status", program.id())).unwrap();
    status.lines().find(|line| line.starts_with(field)).unwrap().to_owned()
}

/// What a manager would change of it: mask, nice value and class.
fn settings(program: &Program) -> (String, Vec<String>) {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", program.id())).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    // Priority, nice value, real-time priority, class.
    let of_scheduler = [15, 16, 37, 38].map(|at| fields[at].to_owned());
    (status(program, "Cpus_allowed:"), of_scheduler.to_vec())
}

fn found() {
    let place = TestFolder::new();
    let (one, other) = (busy(&place), busy(&place));
    let sleeper = place.start(Command::new("sleep").arg("1000").stdin(Stdio::null()));
    let state = |program: &Program| status(program, "State:") + &status(program, "Name:");
    wait_until("it sleeps", || state(&sleeper).contains('S') && state(&sleeper).contains("sleep"));
    let mut seen = Value::Null;
    wait_until("both are found", || {
        seen = advice(&place, &["--for", "300ms"]);
        [&one, &other].iter().all(|program| of(&seen, program.id()).is_some())
    });
    for program in [&one, &other] {
        let listed = of(&seen, program.id()).unwrap();
        assert_eq!((&listed["name"], &listed["threads"]), (&"sh".into(), &1.into()), "{listed}");
        assert!(listed["run_time_s"].as_f64().unwrap() > 0.0 && listed["ended"] == false);
        assert!(!listed["ran_on"].as_array().unwrap().is_empty());
        assert!(!listed["plans"][0]["reason"].as_str().unwrap().is_empty(), "{listed}");
    }
    assert_eq!(of(&seen, sleeper.id()), None, "it did not run: {seen}");
    assert!(seen["others"]["programs"].as_u64().unwrap() >= 1);
    // In words, as a user sees it.
    let text = output(&place, &["--for", "300ms", "--busy", "0"]);
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("Policy auto: ") && text.contains("nothing was changed"), "{text}");
    assert!(!place.state_dir().exists(), "no lock, no journal");
    [one, other, sleeper].iter().for_each(Program::kill_all);
}

/// Also where the policy would place them at once.
fn unchanged() {
    let place = TestFolder::new();
    let programs = [busy(&place), busy(&place)];
    let pids = programs.iter().map(|p| p.id().to_string()).collect::<Vec<_>>().join(",");
    let before = programs.each_ref().map(settings);
    let advise = start(&place, &["--policy", "random", "--pid", &pids, "--for", LONG, "--json"]);
    programs.iter().for_each(|program| wait_until_watched(&advise, program.id()));
    let begin = programs.each_ref().map(cpu_ticks);
    wait_until("they have run", || {
        assert!(is_alive(advise.id()));
        assert_eq!(programs.each_ref().map(settings), before, "while it watches");
        programs.iter().zip(begin).all(|(program, begin)| cpu_ticks(program) >= begin + 50)
    });
    send(advise.id(), Signal::INT);
    let output = advise.wait_with_output().unwrap();
    assert!(output.status.success(), "^C ends it earlier: {}", stderr(&output));
    let advice: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(programs.each_ref().map(settings), before, "after it");
    assert!(!place.state_dir().exists(), "no lock, no journal");
    assert_eq!(advice["programs"].as_array().unwrap().len(), 2, "{advice}");
    if advice["machine"]["hardware_threads"] == 1 {
        return skip("one hardware thread leaves nothing to choose");
    }
    assert_eq!(advice["changes"], true, "{advice}");
    let apply = advice["apply"].as_array().unwrap();
    let last = apply.last().unwrap().as_str().unwrap();
    assert!(last.starts_with("symbiont attach --pid "), "{apply:?}");
    assert!(programs.iter().all(|program| last.contains(&program.id().to_string())));
    programs.iter().for_each(Program::kill_all);
}

/// Waits until files of the process are open there: signals are caught from before then.
fn wait_until_watched(advise: &Child, process: u32) {
    let files = format!("/proc/{}/fd", advise.id());
    let wanted = format!("{process}/task/{process}/schedstat");
    wait_until("it is watched", || {
        let files = std::fs::read_dir(&files).unwrap().flatten();
        let mut targets = files.filter_map(|file| std::fs::read_link(file.path()).ok());
        targets.any(|target| target.ends_with(&wanted))
    });
}

fn cpu_ticks(program: &Program) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", program.id())).unwrap();
    stat.rsplit(')').next().unwrap().split_whitespace().nth(11).unwrap().parse().unwrap()
}

fn ended() {
    let place = TestFolder::new();
    let program = busy(&place);
    let pid = program.id().to_string();
    let advise = start(&place, &["--pid", &pid, "--for", LONG, "--json", "--busy", "0"]);
    wait_until_watched(&advise, program.id());
    let begin = cpu_ticks(&program);
    wait_until("it has run", || cpu_ticks(&program) >= begin + 40);
    program.kill_all();
    drop(program);
    // Nothing is left to watch: it ends by itself.
    let output = advise.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let advice: Value = serde_json::from_slice(&output.stdout).unwrap();
    let listed = &advice["programs"][0];
    assert_eq!((&listed["name"], &listed["ended"]), (&"sh".into(), &true.into()), "{advice}");
    assert_eq!(listed["threads"], 1, "{listed}");
    assert!(listed["run_time_s"].as_f64().unwrap() > 0.0);
    assert!(
        advice["apply"].as_array().unwrap().iter().all(|c| !c.as_str().unwrap().contains(&pid))
    );
}

fn wrong() {
    let place = TestFolder::new();
    let refused = |pid: &str, why: &str| {
        let output = output(&place, &["--pid", pid]);
        assert!(!output.status.success() && output.stdout.is_empty());
        assert!(stderr(&output).contains(why), "{}", stderr(&output));
    };
    refused("4194304", "--pid 4194304: there is no such process");
    refused("0", "--pid 0: there is no such process");
    let (ready, is_ready) = std::sync::mpsc::channel();
    let (end, is_over) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || {
        ready.send(rustix::thread::gettid().as_raw_nonzero().get()).unwrap();
        is_over.recv().unwrap_err();
    });
    let tid = is_ready.recv().unwrap();
    refused(&tid.to_string(), &format!("a thread of process {}", std::process::id()));
    drop(end);
    thread.join().unwrap();
    let output = output(&place, &["--policy", "none-such"]);
    assert!(!output.status.success() && stderr(&output).contains("none-such"));
}

fn json() {
    let place = TestFolder::new();
    let program = busy(&place);
    let pid = program.id().to_string();
    let schema = schema("advise");
    let mut seen = Value::Null;
    wait_until("it is planned for", || {
        seen = advice(&place, &["--pid", &pid, "--for", "300ms"]);
        seen["programs"][0]["plans"][0].is_object()
    });
    let places = ["", "/machine", "/policy", "/others", "/programs/0", "/programs/0/plans/0"];
    follows(&schema, &seen, &places);
    follows(&schema, &seen, &["/programs/0/co_runners", "/programs/0/ran_on/0"]);
    // Of nothing at all.
    let sleeper = place.start(Command::new("sleep").arg("1000").stdin(Stdio::null()));
    let idle = advice(&place, &["--pid", &sleeper.id().to_string(), "--for", "50ms"]);
    follows(&schema, &idle, &[""]);
    assert_eq!(idle["changes"], false);
    [program, sleeper].iter().for_each(Program::kill_all);
}

fn managed() {
    let service = Service::start("stay");
    let (theirs, mine) = (busy(&service.place), busy(&service.place));
    let pid = theirs.id().to_string();
    assert!(service.client(&["attach", "--pid", &pid]).status.success());
    let pids = format!("{pid},{}", mine.id());
    let mut seen = Value::Null;
    wait_until("both are seen", || {
        seen = advice(&service.place, &["--policy", "random", "--pid", &pids, "--for", "4s"]);
        seen["programs"].as_array().unwrap().len() == 2
    });
    assert_eq!(seen["daemon"]["policy"], "stay");
    let manager = |program: &Program| of(&seen, program.id()).unwrap()["managed_by"].clone();
    assert_eq!((manager(&theirs), manager(&mine)), (service.id().into(), Value::Null), "{seen}");
    if seen["changes"] == true {
        assert_eq!(
            seen["apply"],
            serde_json::json!([format!("symbiont attach --pid {}", mine.id())])
        );
        assert!(seen["notes"].to_string().contains("by stay, not by random"), "{seen}");
    }
    [theirs, mine].iter().for_each(Program::kill_all);
}
