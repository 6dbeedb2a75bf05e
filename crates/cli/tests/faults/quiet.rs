//! Runs that change nothing, and reports about what was done.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use serde_json::Value;
use symbiont_trace::Reader;

use crate::settings::{changed, own};
use crate::test_folder::{TestFolder, stderr, wait_until};
use crate::trials::{own_cpus, trial};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("dry_run_changes_nothing_and_reports_what_it_would_have_done", dry_run),
        trial("report_for_people_and_for_programs", reports),
        trial("report_explains_where_programs_ran_with_which_co_runners_and_why", explains),
    ]
}

fn dry_run() {
    let (place, own) = (TestFolder::new(), own());
    let (stop, record) = (place.path("stop"), place.path("recording.jsonl"));
    let busy = "while [ ! -e \"$0\" ]; do :; done";
    let program = ["sh", "-c", busy, stop.to_str().expect("UTF-8")];
    let options = ["--dry-run", "--policy", "random", "--quantum", "10ms", "--record"];
    let options = [&options[..], &[record.to_str().expect("UTF-8")]].concat();
    let program = place.start(place.run(&options, &program).stderr(Stdio::piped()));
    wait_until("the manager is there", || place.manager().is_some());
    let begin = Instant::now();
    // On a busy machine it takes a while until the program has started and would be moved.
    let would_move = || own_cpus().len() < 2 || has_moves(&record);
    wait_until("the program would have been moved", || {
        let changed = changed(program.id(), &own);
        assert!(changed.is_empty(), "{changed:?}");
        begin.elapsed() >= Duration::from_secs(1) && would_move()
    });
    let journals: Vec<_> = place.journals().iter().map(std::fs::read_to_string).collect();
    let says_no_change = |text: &std::io::Result<String>| {
        let text = text.as_ref();
        text.is_ok_and(|text| text.lines().skip(1).all(|line| is_as_it_came(line, own.nice)))
    };
    assert!(journals.iter().all(says_no_change), "{journals:?}");
    std::fs::write(stop, "").expect("a file");
    let output = program.output();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let said = stderr(&output);
    assert!(said.contains("dry run: nothing was changed"), "{said}");
    if own_cpus().len() > 1 {
        assert!(said.contains("would have been made"), "reports the moves: {said}");
    }
}

/// Does a line of a journal only keep what a thread had when it came? Threads are noted if their
/// settings were chosen, as when this test itself was started by `nice` or `taskset`.
fn is_as_it_came(line: &str, nice: i32) -> bool {
    let line: Value = serde_json::from_str(line).expect("JSON");
    let saved = &line["saved"][1];
    let is_usual = saved["nice"] == 0 && saved["mask"] == "all" && saved["class"] == "other";
    saved["nice"] == nice && !is_usual
}

/// Has any move been recorded by now?
fn has_moves(record: &Path) -> bool {
    let Ok(mut reader) = Reader::open(record) else { return false };
    let mut quanta = std::iter::from_fn(|| reader.next_quantum().ok().flatten());
    quanta.any(|quantum| !quantum.moves.is_empty())
}

/// Where a program ran, with which co-runners, and why.
fn explains() {
    let place = TestFolder::new();
    let jobs = place.path("jobs.toml");
    // A second: longer than a program takes to settle, also where births are scanned for.
    let times = 2_000_000;
    let busy = format!("i=0; while [ $i -lt {times} ]; do i=$((i+1)); done");
    let job = |name: &str| format!("[[job]]\nname = '{name}'\ncommand = ['sh', '-c', '{busy}']\n");
    std::fs::write(&jobs, format!("{}{}", job("first"), job("second"))).expect("a file");
    let report = |form: &str| {
        let mut run = place.symbiont("run");
        run.args(["--policy", "never-twice", "--quantum", "10ms", "--report", form, "--job"]);
        let output = run.arg(&jobs).output().expect("symbiont starts");
        assert!(output.status.success(), "{output:?}");
        stderr(&output)
    };
    let json: Value = serde_json::from_str(&report("json")).expect("JSON and nothing else");
    let summary = &json["summary"];
    for (program, name) in ["first", "second"].into_iter().enumerate() {
        let shown = &summary["programs"][program];
        assert_eq!((&shown["name"], &shown["threads"]), (&name.into(), &1.into()), "{summary}");
        assert!(shown["run_time_s"].as_f64() > Some(0.0), "{shown}");
        let shares =
            shown["cpus"].as_array().expect("CPUs").iter().map(|cpu| cpu["share"].as_f64());
        assert!((shares.flatten().sum::<f64>() - 1.0).abs() < 1e-6, "{shown}");
        assert!(shown["co_runners"]["thread_quanta"].as_u64() > Some(0), "{shown}");
        let reasons = shown["reasons"].as_array().expect("reasons").iter();
        let mut reasons = reasons.filter_map(|reason| reason["pattern"].as_str());
        let wanted = format!("no other thread of '{name}' is dealt to its core");
        assert!(reasons.any(|reason| reason == wanted), "{shown}");
        assert_eq!(shown["predicted_slowdown"], Value::Null, "{shown}");
        assert_eq!(summary["threads"][program]["program"], name, "{summary}");
    }
    let text = report("text");
    for word in ["  first: 1 thread, ", "    ran on ", "    why ", "no other thread of 'second'"] {
        assert!(text.contains(word), "{word} is missing in {text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}

fn reports() {
    let place = TestFolder::new();
    let script = "echo out; exit 5";
    let text = place.run(&["--policy", "stay", "--report", "text"], &["sh", "-c", script]);
    let text = { text }.output().expect("symbiont starts");
    assert_eq!((text.status.code(), text.stdout.as_slice()), (Some(5), &b"out\n"[..]));
    let said = stderr(&text);
    assert!(said.starts_with("symbiont: policy stay, quantum "), "{said}");
    assert!(said.contains("sh: "), "{said}");

    let json = place.run(&["--policy", "stay", "--report", "json"], &["sh", "-c", script]);
    let json = { json }.output().expect("symbiont starts");
    let report: Value = serde_json::from_slice(&json.stderr).expect("JSON and nothing else");
    assert_eq!(report["jobs"][0]["exit_code"], 5, "{report}");
    assert_eq!(report["policy"], "stay", "{report}");
    assert!(report["quanta"].as_u64() >= Some(1), "{report}");

    let file = place.path("report.json");
    let options =
        ["--policy", "stay", "--report", "json", "--report-file", file.to_str().expect("UTF-8")];
    let output = place.run(&options, &["sh", "-c", "exit 6"]).output().expect("symbiont starts");
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(6), ""));
    let report: Value =
        serde_json::from_slice(&std::fs::read(file).expect("a report")).expect("JSON");
    assert_eq!(report["jobs"][0]["exit_code"], 6, "{report}");
}
