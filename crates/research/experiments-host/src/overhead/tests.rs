use std::time::Duration;

use serde_json::json;

use super::evaluate::Line;
use super::*;
use symbiont_campaign::InRound;
use symbiont_campaign::harness::Verdict::{self, Fail, Pass};
use symbiont_campaign::harness::stand_in::script;
use symbiont_campaign::harness::{Costs, Lateness, Managed, Programs};

/// Runs whose manager takes `fixed + per_thread · threads` µs per quantum.
fn records(cost_us: impl Fn(f64) -> f64, rss_kb: u64, late_ms: f64) -> Vec<Done> {
    let rounds = (0..2).flat_map(|round| Load::ALL.map(|cell| InRound { round, cell }));
    rounds
        .map(|run| {
            let threads = u64::from(run.cell.threads());
            let quanta = 100;
            let cpu_ns = (cost_us(threads as f64) * 1e3) as u64 * quanta;
            let thread_quanta = quanta * threads;
            let (median, p95, max) = (late_ms, 2.0 * late_ms, 9.0 * late_ms);
            let managed = Managed {
                manager: Costs { cpu_ns, start_ns: 0, quanta, thread_quanta, rss_kb: Some(rss_kb) },
                lateness_ms: Some(Lateness { median, p95, max, missed: 0 }),
                ..Managed::default()
            };
            let load = json!({
                "count": threads, "busy": 0, "wakes_per_s": 10.0, "work": 20, "elapsed_s": 1.0,
                "wakes": 1, "busy_iterations": 0, "cpu_s": null,
            });
            let load = serde_json::from_value(load).unwrap();
            Done { run, record: OverheadRecord { wall_s: 1.5, load, managed } }
        })
        .collect()
}

fn verdicts(evaluation: &Evaluation, words: &str) -> Vec<Verdict> {
    let checks = evaluation.checks.iter().filter(|check| check.requirement.contains(words));
    checks.map(|check| check.verdict).collect()
}

#[test]
fn verdicts_follow_the_runs() {
    let good = evaluate(&records(|n| 20.0 + 3.0 * n, 9_000, 1.0)).unwrap();
    assert!(good.checks.iter().all(|check| check.verdict == Pass), "{:?}", good.checks);
    assert_eq!(good.checks.len(), 4 + 1 + 4 + 2);

    let bad = evaluate(&records(|n| 0.02 * n * n, 25_000, 6.0)).unwrap();
    assert_eq!(verdicts(&bad, "lateness"), [Fail; 2]);
    assert_eq!(verdicts(&bad, "linearly"), [Fail]);
    // 0.02 µs · n: 0.16, 1.28, 10.24, 41.
    assert_eq!(verdicts(&bad, "µs per thread"), [Pass, Pass, Fail, Fail]);
    // 25,000 KiB is within 20 MiB + 4 KiB · n only for 2,048.
    assert_eq!(verdicts(&bad, "memory"), [Fail, Fail, Fail, Pass]);
}

#[test]
fn costs_are_per_thread_and_quantum() {
    let evaluation = evaluate(&records(|n| 20.0 + 3.0 * n, 9_000, 1.0)).unwrap();
    let row = evaluation.rows.iter().find(|row| row.load == Load::Sleepers(8)).unwrap();
    assert!((row.cost_us.value - (20.0 / 8.0 + 3.0)).abs() < 1e-9);
    assert!((row.threads.value - 8.0).abs() < 1e-9);
    let line = evaluation.cost_line.unwrap();
    assert!((line.fixed - 20.0).abs() < 1e-6 && (line.per_thread - 3.0).abs() < 1e-9);
}

#[test]
fn a_line_is_found_again() {
    let line = Line::fit(&[(1.0, 5.0), (2.0, 7.0), (10.0, 23.0)]).unwrap();
    assert!((line.fixed - 3.0).abs() < 1e-9 && (line.per_thread - 2.0).abs() < 1e-9);
    assert_eq!(Line::fit(&[(1.0, 5.0)]), None);
    assert_eq!(Line::fit(&[]), None);
}

#[test]
fn what_the_kernel_does_not_report_is_undecided() {
    let mut runs = records(|n| n, 9_000, 1.0);
    runs[0].record.managed.manager.rss_kb = None;
    let evaluation = evaluate(&runs).unwrap();
    assert_eq!(runs[0].run.cell, Load::Sleepers(8));
    assert_eq!(verdicts(&evaluation, "memory"), [Verdict::Undecided, Pass, Pass, Pass]);
    page::page(&evaluation).html().unwrap();
}

#[test]
fn nothing_finished_is_an_error() {
    assert!(evaluate(&[]).is_err());
}

#[test]
fn the_experiment_runs_goes_on_and_writes_the_report() {
    let folder = tempfile::tempdir().unwrap();
    let load = json!({
        "count": 8, "busy": 0, "wakes_per_s": 10.0, "work": 20, "elapsed_s": 1.0,
        "wakes": 1, "busy_iterations": 0, "cpu_s": 0.1,
    });
    let reported = json!({
        "manager": {"cpu_ns": 1000, "quanta": 10, "thread_quanta": 80, "rss_kb": 4000},
        "lateness_ms": {"median": 0.1, "p95": 0.2, "max": 0.3}, "more": [1, 2, 3],
    });
    let text = format!(
        "#!/bin/sh\necho '{load}'\nfor word in \"$@\"; do case $word in\n\
         --report-file=*) echo '{reported}' > \"${{word#*=}}\" ;;\nesac; done\n"
    );
    let symbiont = script(folder.path(), "symbiont", &text);
    let mut watched = load;
    watched["watched"] = json!({"quanta": 10, "thread_quanta": 90, "cpu_ns": 900_000});
    let synth = script(folder.path(), "symbiont-synth", &format!("#!/bin/sh\necho '{watched}'\n"));
    let options = OverheadOptions {
        programs: Programs { symbiont, synth },
        output: folder.path().join("out"),
        size: Size { rounds: 1, time: Duration::from_millis(10) },
        seed: 1,
    };
    let first = run(&options, &mut ()).unwrap();
    let lines =
        || std::fs::read_to_string(options.output.join("overhead.jsonl")).unwrap().lines().count();
    assert_eq!(lines(), Load::ALL.len());
    assert!(options.output.join("cost.svg").is_file());
    let bare = "a bare loop that only wakes and reads two files of each thread: 10";
    assert!(format!("{first:?}").contains(bare), "{first:?}");
    // Nothing is left to do; the report is made anew from what was kept.
    let again = run(&options, &mut ()).unwrap();
    assert_eq!(lines(), Load::ALL.len());
    assert_eq!(first.blocks, again.blocks);
}

#[test]
fn the_sizes_take_what_they_say() {
    let minutes = |size: &Size| size.estimate().as_secs_f64() / 60.0;
    assert!(minutes(&Size::full()) < 9.0);
    assert!(minutes(&Size::short()) < 1.5);
}
