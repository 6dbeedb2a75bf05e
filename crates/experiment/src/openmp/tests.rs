use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::campaign::Options;
use super::*;
use crate::harness::stand_in::script;
use crate::harness::{Journal, Programs};
use crate::phases::Grouping;

fn compiler() -> Option<PathBuf> {
    let found = Command::new("cc").arg("--version").output().is_ok_and(|o| o.status.success());
    if !found {
        eprintln!("skipped: there is no C compiler");
    }
    found.then(|| "cc".into())
}

#[test]
fn a_round_holds_each_run_once() {
    let runs = plan(&Size::full(), 1);
    let ids: BTreeSet<String> = runs.iter().map(Run::id).collect();
    assert_eq!(ids.len(), runs.len());
    // 10 alone, 55 pairs × 2 policies × 2 groupings.
    assert_eq!(runs.len(), 5 * (10 + 55 * 4));
    assert_eq!(plan(&Size::short(), 1).len(), 10 + 55 * 2);
}

#[test]
fn kernels_compute_the_same_with_any_number_of_threads() {
    let Some(compiler) = compiler() else { return };
    let folder = tempfile::tempdir().unwrap();
    let program = kernels::build(&compiler, folder.path(), &()).unwrap();
    for name in KERNELS {
        let run = |threads| kernels::run(&program, name, 1, threads, folder.path(), &()).unwrap();
        let (one, three) = (run(1), run(3));
        assert_eq!(one.sum, three.sum, "{name}");
        // Both are told in whole microseconds.
        assert!(one.parallel_s <= one.end - one.begin + 2e-6, "{name}: {one:?}");
    }
}

#[test]
fn it_is_told_where_time_went() {
    let told =
        |end: f64, cpu_s: f64| Told { begin: 0.0, end, parallel_s: 1.0, cpu_s, sum: String::new() };
    let kernels = ["a", "b"].map(str::to_owned);
    let (policy, grouping) = ("stay".to_owned(), Grouping::OneSession);
    let both = Record {
        run: Run { round: 0, what: What::Both { kernels, policy, grouping } },
        wall_s: 5.0,
        attempts: 1,
        told: vec![told(2.0, 1.5), told(4.0, 1.0), told(2.5, 0.5), told(4.75, 2.0)],
        managed: None,
    };
    assert_eq!(both.spent(), Some(Spent { cpu_s: 5.0, alone_s: 0.75 }));
    let alone = Record { told: vec![told(1.0, 1.0)], ..both };
    assert_eq!(alone.spent(), None);
}

/// A manager that runs the jobs of a file and does nothing else.
const MANAGER: &str = r#"#!/usr/bin/env python3
import json, subprocess, sys, tomllib
option = {a.split("=", 1)[0]: a.split("=", 1)[1] for a in sys.argv if "=" in a}
jobs = tomllib.load(open(option["--job"], "rb"))["job"]
running = [subprocess.Popen(job["command"], stdout=open(job["stdout"], "w")) for job in jobs]
status = max(job.wait() for job in running)
told = {"manager": {"cpu_ns": 1, "quanta": 1, "thread_quanta": 1}, "lateness_ms": None}
json.dump(told, open(option["--report-file"], "w"))
sys.exit(status)
"#;

fn options(folder: &Path, compiler: PathBuf) -> Options {
    let manager = script(folder, "manager", MANAGER);
    let programs = Programs { symbiont: manager.clone(), synth: manager };
    let size = Size {
        kernels: ["montecarlo", "sort"].map(str::to_owned).into(),
        groupings: vec![Grouping::OneSession],
        rounds: 2,
        time: Duration::from_millis(20),
    };
    Options { programs, compiler, output: folder.join("out"), size, seed: 1, slow: Vec::new() }
}

#[test]
fn a_campaign_of_two_kernels_goes_on_where_it_stopped() {
    let Some(compiler) = compiler() else { return };
    let python = Command::new("python3").args(["-c", "import tomllib"]).status();
    if !python.is_ok_and(|status| status.success()) {
        eprintln!("skipped: there is no Python 3.11");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path(), compiler);
    let report = Campaign::run(&options, &mut ()).unwrap();
    let html = report.html().unwrap();
    assert!(html.contains("montecarlo and sort") && html.contains("SPEC OMP2001"), "{html}");
    let path = folder.path().join("out/runs.jsonl");
    let lines = std::fs::read_to_string(&path).unwrap();
    // In each of two rounds: two alone, three pairs under two policies.
    assert_eq!(lines.lines().count(), 2 * (2 + 3 * 2));
    let kept: Vec<&str> = lines.lines().take(10).collect();
    std::fs::write(&path, kept.join("\n") + "\n").unwrap();
    Campaign::run(&options, &mut ()).unwrap();
    let (_, records) = Journal::open::<Record>(&path).unwrap();
    assert_eq!(records.len(), 16);
    assert!(
        records[..10]
            .iter()
            .zip(&kept)
            .all(|(r, line)| { serde_json::from_str::<Record>(line).unwrap() == *r })
    );
    let both: Vec<_> = records.iter().filter_map(Record::took).collect();
    assert_eq!(both.len(), 12);
    assert!(both.iter().all(|took| took.programs.iter().flatten().all(|s| *s > 0.0)));
    // Of the first round alone; nothing is run for that, and nothing lost.
    let one = Options { size: Size { rounds: 1, ..options.size.clone() }, ..options.clone() };
    let report = Campaign::run(&one, &mut ()).unwrap();
    assert!(report.facts.contains(&("Runs".to_owned(), "8".to_owned())), "{:?}", report.facts);
    assert_eq!(Journal::open::<Record>(&path).unwrap().1.len(), 16);
    let other = Options { seed: 2, ..options };
    assert!(Campaign::run(&other, &mut ()).is_err());
}
