//! `symbiont replay`, from outside.
#![allow(clippy::unwrap_used, reason = "a failed test panics")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use symbiont_counters::catalogue::Catalogue;
use symbiont_machine::{
    Ability, Assignment, Change, GroupReading, Lifecycle, Move, Outcome, Placement, Program,
    ProgramId, RunState, Sample, Signal, Support, ThreadId, ThreadSample, Timestamp,
};
use symbiont_topology::{PuId, Topology};
use symbiont_trace::{Header, Recorder};

const QUANTUM: Duration = Duration::from_millis(100);

fn replay(args: &[&str], file: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_symbiont"));
    // A relative path is shown as it was written.
    command.current_dir(file.parent().unwrap()).arg("replay").args(args);
    command.arg(file.file_name().unwrap()).stdin(Stdio::null()).output().unwrap()
}

fn stdout(args: &[&str], file: &Path) -> String {
    let output = replay(args, file);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The one line that says what is wrong.
fn refused(args: &[&str], file: &Path) -> String {
    let output = replay(args, file);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{output:?}");
    let shown = String::from_utf8(output.stderr).unwrap();
    assert!(shown.starts_with("symbiont: ") && shown.lines().count() == 1, "{shown}");
    shown
}

fn header() -> Header {
    Header {
        topology: Topology::synthetic("core:2 smt:2").unwrap(),
        support: Support {
            signals: [(Signal::RunStates, Ability::Full), (Signal::Ipc, Ability::Full)].into(),
            affinity: Ability::Full,
            boost: Ability::Full,
            idle_class: Ability::Full,
            scheduler: Support::no_scheduler(),
            enrolment: Ability::Full,
        },
        policy: "static".into(),
        quantum: QUANTUM,
        programs: programs(),
        processor: Some("Test Processor 1".into()),
    }
}

fn programs() -> Vec<Program> {
    let named = ["compress", "solve"].into_iter().zip(0..);
    named.map(|(name, id)| Program::new(ProgramId(id), name)).collect()
}

/// A recording of two programs of one thread each: eight quanta on cores of their own, then eight on
/// one core, where they need 1.5 and 1.2 times as many cycles for an instruction. The last line but
/// one comes late.
fn recording(folder: &Path) -> PathBuf {
    let catalogue = include_str!("../../host/linux/tests/counting/stand-in.toml");
    let catalogue = Catalogue::parse("stand-in", catalogue).unwrap();
    let counting = Arc::new(catalogue.counting(&[Signal::Ipc].into()));
    let path = folder.join("run.jsonl");
    let mut recorder = Recorder::create(&path, &header()).unwrap();
    let ids = [1000u32, 2000].map(|n| ThreadId { process: n, thread: n, born: 5, generation: 0 });
    let (mut ran, mut work) = ([0u64; 2], [0u64; 2]);
    for quantum in 0..16u32 {
        let together = quantum >= 8;
        let late = u64::from(quantum >= 14) * 300;
        let mut placement = Placement::new();
        let mut moves = Vec::new();
        let threads = (0..2).map(|at| {
            if quantum > 0 {
                let cycles = [1.0, 2.0][at] * if together { [1.5, 1.2][at] } else { 1.0 };
                ran[at] += 100_000_000;
                work[at] += (100_000_000.0 / cycles) as u64 / 1000;
            }
            let reading = GroupReading {
                opened: Timestamp(0),
                enabled: Duration::from_nanos(ran[at]),
                running: Duration::from_nanos(ran[at]),
                counts: vec![ran[at], work[at]],
            };
            let cpu = if together { at as u32 } else { 2 * at as u32 };
            let next = if quantum >= 7 { at as u32 } else { 2 * at as u32 };
            let why = format!("planned for CPU {next}");
            let wanted = Assignment::on(PuId(next).into(), why);
            if quantum == 0 || quantum == 7 {
                let change = Change::Affinity(wanted.target.clone());
                moves.push((Move { thread: ids[at], change }, Outcome::Done));
            }
            placement.insert(ids[at], wanted);
            ThreadSample {
                id: ids[at],
                program: ProgramId(at as u32),
                state: RunState::Runnable,
                run_time: Duration::from_nanos(ran[at]),
                wait_time: Duration::ZERO,
                switches: 1,
                cpu: Some(PuId(cpu)),
                allowed: Arc::new("0-3".parse().unwrap()),
                lifecycle: Lifecycle::Settled,
                kept: false,
                cookie: None,
                counts: vec![Ok(reading)],
            }
        });
        let sample = Sample {
            at: Timestamp((u64::from(quantum) * 100 + late) * 1_000_000),
            threads: threads.collect(),
            programs: programs(),
            counting: Some(Arc::clone(&counting)),
            ended: Vec::new(),
        };
        recorder.record(&sample, &placement, moves.iter().map(|(m, o)| (m, o))).unwrap();
    }
    path
}

/// What is known beforehand of these programs.
fn slowdowns(folder: &Path, machine: &str) -> String {
    let path = folder.join("slowdowns.json");
    let text = format!(
        r#"{{"machine": "{machine}", "programs": ["compress", "solve"],
            "slowdowns": [[1.9, 1.4], [1.3, 1.8]]}}"#
    );
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// Compares with a file in `golden`; with `UPDATE_GOLDEN=1` writes it.
fn golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(&path).unwrap(), "{}", path.display());
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}

#[test]
fn replay_shows_what_a_recording_holds_and_what_a_policy_decides() {
    let folder = tempfile::tempdir().unwrap();
    let file = recording(folder.path());
    golden("replay-random.txt", &stdout(&["--policy", "random"], &file));
}

#[test]
fn replay_compares_predicted_with_measured_slowdowns() {
    let folder = tempfile::tempdir().unwrap();
    let file = recording(folder.path());
    // With two threads and two cores the oracle gives each a core: one more thread than that is
    // needed to see it pair, so a machine of one core is recorded.
    let text = std::fs::read_to_string(&file).unwrap();
    let one_core = folder.path().join("one-core.jsonl");
    let topology = |text: &str| serde_json::to_string(&Topology::synthetic(text).unwrap()).unwrap();
    let text = text.replacen(&topology("core:2 smt:2"), &topology("core:1 smt:4"), 1);
    std::fs::write(&one_core, text).unwrap();
    let known = slowdowns(folder.path(), "Test Processor 1");
    let args = ["--policy", "oracle", "--slowdowns", &known];
    let json: Value =
        serde_json::from_str(&stdout(&[&args[..], &["--json"]].concat(), &one_core)).unwrap();
    let predictions = json["predictions"].as_array().unwrap();
    assert_eq!(predictions.len(), 2, "{json}");
    assert!((predictions[0]["predicted"].as_f64().unwrap() - 1.4).abs() < 1e-9);
    assert!((predictions[1]["predicted"].as_f64().unwrap() - 1.3).abs() < 1e-9);
    assert_eq!(predictions[0]["cpi_alone"], Value::Null, "on one core nothing ran alone");
    let policy = json["decided"]["programs"][0]["predicted_slowdown"]["mean"].as_f64().unwrap();
    assert!((policy - 1.4).abs() < 1e-9);
}

#[test]
fn replay_measures_slowdown_against_quanta_alone() {
    let folder = tempfile::tempdir().unwrap();
    let file = recording(folder.path());
    let known = slowdowns(folder.path(), "Test Processor 1");
    let args = ["--policy", "oracle", "--slowdowns", &known];
    let text = stdout(&args, &file);
    // Each thread is decided to have a core of its own, which is no co-run to compare.
    assert!(!text.contains("measured slowdowns"), "{text}");
    golden("replay-oracle.txt", &text);
}

#[test]
fn replay_refuses_slowdowns_of_another_machine() {
    let folder = tempfile::tempdir().unwrap();
    let file = recording(folder.path());
    let known = slowdowns(folder.path(), "Another Processor");
    let shown = refused(&["--policy", "oracle", "--slowdowns", &known], &file);
    assert!(
        shown.contains("'Another Processor'") && shown.contains("'Test Processor 1'"),
        "{shown}"
    );
    let shown = refused(&["--policy", "oracle"], &file);
    assert!(shown.contains("--slowdowns"), "{shown}");
    let shown = refused(&["--policy", "hysched"], &file);
    assert!(shown.contains("run.jsonl: policy 'hysched' needs ") && shown.contains("not recorded"));
}

#[test]
fn replay_refuses_what_is_no_recording() {
    let folder = tempfile::tempdir().unwrap();
    let whole = std::fs::read_to_string(recording(folder.path())).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    let file = folder.path().join("bad.jsonl");
    let future = whole.replacen("\"version\":2", "\"version\":99", 1);
    for (text, wanted) in [
        (
            format!("{}\noops\n{}\n", lines[..4].join("\n"), lines[4]),
            "bad.jsonl, line 5: damaged: ",
        ),
        (format!("{}\n{}\n", lines[0], lines[2].replace("\"at\":", "\"at\":-")), "line 2: damaged"),
        (lines[0].replace("quantum", "quantity"), "bad.jsonl, line 1: damaged: "),
        (future, "bad.jsonl: the recording has format version 99"),
        (String::new(), "bad.jsonl: the recording is empty"),
        ("{}\n".to_owned(), "bad.jsonl: this is not a recording"),
        ("\0\u{1}binary".to_owned(), "bad.jsonl: this is not a recording"),
        (whole.replacen("\"static\"", "\"newer\"", 1), "no policy is called 'newer'"),
    ] {
        std::fs::write(&file, &text).unwrap();
        let shown = refused(&[], &file);
        assert!(shown.contains(wanted), "{wanted} in {shown}");
    }
    let missing = refused(&[], &folder.path().join("none.jsonl"));
    assert!(missing.contains("none.jsonl: cannot open the recording: No such file"), "{missing}");
    let directory = folder.path().join("folder");
    std::fs::create_dir(&directory).unwrap();
    assert!(
        refused(&[], &directory).contains("folder: cannot open the recording: it is a directory")
    );
    let fifo = folder.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    assert!(refused(&[], &fifo).contains("fifo: cannot open the recording: it is a pipe"));
}

#[test]
fn replay_leaves_out_a_line_that_was_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    let file = recording(folder.path());
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, &whole[..whole.len() - 30]).unwrap();
    let text = stdout(&["--policy", "stay"], &file);
    assert!(text.contains("15 quanta") && text.contains("line 17 ends in the middle"), "{text}");
    // With its header alone it is a recording of nothing.
    let header = whole.iter().position(|&byte| byte == b'\n').unwrap();
    std::fs::write(&file, &whole[..=header]).unwrap();
    let text = stdout(&["--policy", "stay"], &file);
    assert!(text.contains("0 quanta"), "{text}");
}

#[test]
fn replay_of_the_recorded_policy_agrees() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("real.jsonl");
    let state = folder.path().join("state");
    std::fs::create_dir(&state).unwrap();
    let mut run = Command::new(env!("CARGO_BIN_EXE_symbiont"));
    run.args(["run", "--policy", "never-twice", "--quantum", "20ms", "--record"]).arg(&file);
    run.arg("--state-dir").arg(&state).env("XDG_STATE_HOME", folder.path());
    let ran = run.args(["--", "sh", "-c", "sleep 0.5 & sleep 0.5; wait"]).output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    if !String::from_utf8_lossy(&ran.stderr).is_empty() {
        let _ = writeln!(std::io::stderr(), "{}", String::from_utf8_lossy(&ran.stderr));
    }
    let json: Value = serde_json::from_str(&stdout(&["--json"], &file)).unwrap();
    assert_eq!(json["policy"], "never-twice");
    let difference = &json["differences"][0];
    assert_eq!(difference["program"], "sh");
    assert!(difference["decisions"].as_u64().unwrap() > 0);
    assert_eq!(difference["same"], difference["decisions"], "{difference}");
    let other: Value =
        serde_json::from_str(&stdout(&["--json", "--policy", "stay"], &file)).unwrap();
    assert_eq!(other["differences"][0]["decisions"], difference["decisions"]);
}
