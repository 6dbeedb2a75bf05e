use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::campaign::in_order;
use super::kernels::{Kernel, Outcome};
use super::record::{OpenmpRecord, TimeSpent};
use super::*;
use crate::harness::Programs;
use crate::phases::Grouping;
use crate::worlds::scripts::script;

fn compiler() -> Option<PathBuf> {
    let found = Command::new("cc").arg("--version").output().is_ok_and(|o| o.status.success());
    if !found {
        eprintln!("skipped: there is no C compiler");
    }
    found.then(|| "cc".into())
}

#[test]
fn a_round_holds_each_cell_once_and_takes_what_it_says() {
    for (size, most) in [(OpenmpSize::full(), 10.0), (OpenmpSize::short(), 2.0)] {
        let cells = size.cells();
        let names: BTreeSet<String> = cells.iter().map(ToString::to_string).collect();
        assert_eq!(names.len(), cells.len());
        // 6 alone, 21 pairs under 2 policies.
        assert_eq!(cells.len(), 6 + 21 * 2);
        let (alone, both) = (size.time + plan::AROUND, size.time * 4 + plan::AROUND);
        let round = alone * 6 + both * 42;
        let minutes = f64::from(size.rounds) * round.as_secs_f64() / 60.0;
        assert!(minutes < most, "{minutes}");
    }
}

#[test]
fn kernels_compute_the_same_with_any_number_of_threads() {
    let Some(compiler) = compiler() else { return };
    let folder = tempfile::tempdir().unwrap();
    let program = kernels::build(&compiler, folder.path(), &()).unwrap();
    for name in KERNELS {
        let run = |threads| -> Outcome {
            let words = kernels::command(&program, name, 1, threads);
            let ran = Command::new(&words[0]).args(&words[1..]).output().unwrap();
            assert!(ran.status.success(), "{ran:?}");
            serde_json::from_slice(&ran.stdout).unwrap()
        };
        let (one, three) = (run(1), run(3));
        assert_eq!(one.sum, three.sum, "{name}");
        // Both are given in whole microseconds.
        assert!(one.parallel_s <= one.end - one.begin + 2e-6, "{name}: {one:?}");
    }
}

#[test]
fn kernels_are_reported_as_they_were_asked_for() {
    let names = ["jacobi", "cg", "lu"].map(str::to_owned);
    let kernel = |name: &String| Kernel {
        name: name.clone(),
        steps: 1,
        parallel: 0.5,
        single_s: 1.0,
        sum: String::new(),
    };
    let fitted: Vec<Kernel> = names.iter().rev().map(kernel).collect();
    let ordered: Vec<String> = in_order(&names, &fitted).into_iter().map(|k| k.name).collect();
    assert_eq!(ordered, names);
}

#[test]
fn a_record_shows_where_time_went() {
    let of = |end: f64, cpu_s: f64| Outcome {
        begin: 0.0,
        end,
        parallel_s: 1.0,
        cpu_s,
        sum: String::new(),
    };
    let outcomes = vec![of(2.0, 1.5), of(4.0, 1.0), of(2.5, 0.5), of(4.75, 2.0)];
    let both = OpenmpRecord { outcomes, managed: None };
    assert_eq!(both.spent(), Some(TimeSpent { cpu_s: 5.0, alone_s: 0.75 }));
    let alone = OpenmpRecord { outcomes: vec![of(1.0, 1.0)], managed: None };
    assert_eq!(alone.spent(), None);
}

/// A manager that runs the jobs of a file and does nothing else.
const MANAGER: &str = r#"#!/usr/bin/env python3
import json, subprocess, sys, tomllib
option = {a.split("=", 1)[0]: a.split("=", 1)[1] for a in sys.argv if "=" in a}
jobs = tomllib.load(open(option["--job"], "rb"))["job"]
running = [subprocess.Popen(job["command"], stdout=open(job["stdout"], "w")) for job in jobs]
status = max(job.wait() for job in running)
report = {"manager": {"cpu_ns": 1, "quanta": 1, "thread_quanta": 1}, "lateness_ms": None}
json.dump(report, open(option["--report-file"], "w"))
sys.exit(status)
"#;

fn options(folder: &Path, compiler: PathBuf) -> OpenmpOptions {
    let manager = script(folder, "manager", MANAGER);
    let programs = Programs { symbiont: manager.clone(), synth: manager };
    let size = OpenmpSize {
        kernels: ["montecarlo", "sort"].map(str::to_owned).into(),
        groupings: vec![Grouping::OneSession],
        rounds: 2,
        time: Duration::from_millis(20),
    };
    OpenmpOptions {
        programs,
        compiler,
        output: folder.join("out"),
        size,
        seed: 1,
        slow: Vec::new(),
    }
}

/// The report: a campaign that gave up as its runs began late, on a busy machine, goes on.
fn finished(options: &OpenmpOptions) -> symbiont_report::Report {
    for _ in 0..20 {
        match run(options, &mut ()) {
            Ok(report) => return report,
            Err(error) => assert!(format!("{error:?}").contains(" late"), "{error:?}"),
        }
    }
    panic!("its runs always begin late");
}

#[test]
fn two_kernels_go_on_where_they_stopped() {
    let Some(compiler) = compiler() else { return };
    let python = Command::new("python3").args(["-c", "import tomllib"]).status();
    if !python.is_ok_and(|status| status.success()) {
        eprintln!("skipped: there is no Python 3.11");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path(), compiler);
    let html = finished(&options).html().unwrap();
    assert!(html.contains("montecarlo and sort") && html.contains("SPEC OMP2001"), "{html}");
    let path = folder.path().join("out/openmp.jsonl");
    let lines = std::fs::read_to_string(&path).unwrap();
    // In each of two rounds: two alone, three pairs under two policies.
    assert_eq!(lines.lines().count(), 2 * (2 + 3 * 2));
    let kept: Vec<&str> = lines.lines().take(10).collect();
    std::fs::write(&path, kept.join("\n") + "\n").unwrap();
    finished(&options);
    let again = std::fs::read_to_string(&path).unwrap();
    assert_eq!(again.lines().count(), 16);
    assert!(again.lines().zip(&kept).all(|(line, kept)| line == *kept));
    // Of the first round alone; nothing is run for that, and nothing lost.
    let one =
        OpenmpOptions { size: OpenmpSize { rounds: 1, ..options.size.clone() }, ..options.clone() };
    let report = run(&one, &mut ()).unwrap();
    assert!(report.facts.contains(&("Runs".to_owned(), "8".to_owned())), "{:?}", report.facts);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), again);
}
