//! `symbiont simulate`, `machines` and `workloads`, from outside.
#![allow(clippy::unwrap_used, reason = "a failed test panics")]

use std::path::Path;

use assert_cmd::Command;
use serde_json::Value;

fn symbiont(args: &[&str]) -> Command {
    let mut command = Command::cargo_bin("symbiont").unwrap();
    // No folder of profiles there: the synthetic programs are left.
    let folder = env!("CARGO_TARGET_TMPDIR");
    command.current_dir(folder).env("XDG_CACHE_HOME", folder).args(args);
    command
}

fn stdout(args: &[&str]) -> String {
    let output = symbiont(args).assert().success();
    String::from_utf8(output.get_output().stdout.clone()).unwrap()
}

/// The one line that tells what was wrong.
fn refused(args: &[&str]) -> String {
    let output = symbiont(args).assert().failure();
    let told = String::from_utf8(output.get_output().stderr.clone()).unwrap();
    assert_eq!(told.lines().count(), 1, "{told}");
    told
}

const SMALL: [&str; 13] = [
    "simulate",
    "--machine",
    "power8-s812l",
    "--cores",
    "2",
    "--smt",
    "2",
    "--alone",
    "300ms",
    "--repeats",
    "2",
    "--apps",
    "synthetic-streaming*2,synthetic-integer,synthetic-float",
];

fn small<'a>(more: &[&'a str]) -> Vec<&'a str> {
    SMALL.iter().copied().chain(more.iter().copied()).collect()
}

#[test]
fn a_report_says_what_it_rests_on() {
    let text = stdout(&small(&["--policy", "random"]));
    assert!(text.starts_with("simulated on power8-s812l"), "{text}");
    for needle in ["unchecked", "are assumed", "not POWER runs", "STP ", "ANTT ", "synthetic"] {
        assert!(text.contains(needle), "{needle} in {text}");
    }
    let json: Value = serde_json::from_str(&stdout(&small(&["--json"]))).unwrap();
    assert_eq!(json["provenance"]["simulated"], true);
    assert_eq!(json["provenance"]["checked"], "unchecked");
    assert_eq!(json["policy"], "stay");
    assert_eq!(json["apps"].as_array().unwrap().len(), 4);
}

#[test]
fn equal_seeds_print_equal_bytes() {
    let run = |seed| stdout(&small(&["--json", "--policy", "random", "--seed", seed]));
    assert_eq!(run("1"), run("1"));
    assert_ne!(run("1"), run("2"));
}

#[test]
fn a_timeline_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("timeline.jsonl");
    let args = small(&["--timeline"]);
    let mut command = symbiont(&args);
    command.arg(&path).assert().success();
    let lines = std::fs::read_to_string(&path).unwrap();
    assert!(lines.lines().count() > 2);
    let first: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    assert_eq!(first["threads"].as_array().unwrap().len(), 4);
}

#[test]
fn machines_are_listed_with_their_sources() {
    let list = stdout(&["machines"]);
    for name in ["power8-s812l", "zen4", "alder-lake", "xsim", "morad-8-asymmetric"] {
        assert!(list.lines().any(|line| line.starts_with(name)), "{name} in {list}");
    }
    let json: Value = serde_json::from_str(&stdout(&["machines", "zen4", "--json"])).unwrap();
    let values = json["values"].as_array().unwrap();
    assert!(values.len() > 50);
    assert!(values.iter().all(|value| !value["source"].as_str().unwrap().is_empty()));
}

#[test]
fn programs_are_listed() {
    let text = stdout(&["workloads", "--profiles", "/nonexistent"]);
    assert!(text.contains("synthetic-streaming"), "{text}");
}

#[test]
fn bad_input_is_one_clear_line() {
    let machine = |name| refused(&["simulate", "--machine", name]);
    assert!(machine("power8").contains("no machine 'power8'; the nearest: power8-s812l"));
    assert!(machine("no/such.toml").contains("machine no/such.toml: No such file"));
    let xeon = |more: &[&'static str]| {
        let args = ["simulate", "--machine", "xeon-e5-2620v4"];
        refused(&args.iter().chain(more).copied().collect::<Vec<_>>())
    };
    assert!(xeon(&["--cores", "9"]).contains("8 cores of 2 hardware threads, not 9 cores"));
    let near = xeon(&["--apps", "synthetic-strem"]);
    assert!(near.contains("no program 'synthetic-strem'; the nearest: synthetic-streaming"));
    let crowded = xeon(&["--cores", "1", "--apps", "synthetic-integer*3"]);
    assert!(crowded.contains("3 threads for 2 hardware threads"), "{crowded}");
    assert!(xeon(&["--policy", "phasse"]).contains("did you mean 'phases'"));
    assert!(xeon(&["--apps", "a@b"]).contains("'a@b': `b` is no ratio"));
}

#[test]
fn a_bad_description_names_line_key_and_reason() {
    let carried = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sim/machines/zen4.toml");
    let text = std::fs::read_to_string(carried).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.toml");
    let mine = path.to_str().unwrap();
    std::fs::write(&path, text.replace("rob = { entries = 320", "rob = { entries = -3")).unwrap();
    let told = refused(&["simulate", "--machine", mine]);
    assert!(told.contains("mine.toml:") && told.contains("core.performance.rob.entries"), "{told}");
    std::fs::write(&path, text.replace("dispatch = 6\n", "")).unwrap();
    let told = refused(&["simulate", "--machine", mine]);
    assert!(told.contains("core.performance.dispatch: missing"), "{told}");
}

#[test]
fn the_levels_are_held_against_each_other() {
    let asked = ["check-sim", "--apps", "synthetic-integer,synthetic-float", "--counted", "2000"];
    let text = stdout(&asked);
    for needle in ["simulated on xeon-e5-2620v4", "SMT2, 3 groups", "slowdown", "STP", "memory"] {
        assert!(text.contains(needle), "{needle} in {text}");
    }
    let json: Value = serde_json::from_str(&stdout(&[&asked[..], &["--json"]].concat())).unwrap();
    assert_eq!(json["simulated"], true);
    assert_eq!(json["compared"][0]["slowdown"]["values"], 6);
    assert!(refused(&[&asked[..], &["--smt", "4"]].concat()).contains("2 hardware threads"));
}
