use std::time::Duration;

use super::*;
use symbiont_campaign::InRound;
use symbiont_campaign::harness::Verdict::{Fail, Pass};

/// Runs in which reading takes so many µs.
fn records(read_us: impl Fn(Load) -> f64) -> Vec<Done> {
    let of_round = |round| Load::all().into_iter().map(move |cell| InRound { round, cell });
    (0..2)
        .flat_map(of_round)
        .map(|run| {
            let record = Costs {
                counted: run.cell.threads,
                open_us: 50.0,
                read_us: read_us(run.cell),
                turn_us: 5.0,
                close_us: 20.0,
                event_bytes: Some(1_000.0),
            };
            Done { run, record }
        })
        .collect()
}

#[test]
fn verdicts_follow_the_runs() {
    let good = evaluate(&records(|_| 4.0)).unwrap();
    assert!(good.checks.len() == 6 && good.checks.iter().all(|check| check.verdict == Pass));
    let slow = |load: Load| if load.threads == 1024 { 11.0 } else { 9.0 };
    let bad = evaluate(&records(slow)).unwrap();
    let verdicts: Vec<_> = bad.checks.iter().map(|check| check.verdict).collect();
    assert_eq!(verdicts, [Pass, Pass, Fail, Pass, Pass, Fail]);
    let mut few = records(|_| 4.0);
    few[0].record.counted -= 1;
    let few = evaluate(&few).unwrap();
    assert_eq!(few.checks.iter().filter(|check| check.verdict == Fail).count(), 1);
    page::page(&few).html().unwrap();
    assert!(evaluate(&[]).is_err());
}

#[test]
fn the_share_is_of_one_cpu() {
    let evaluation = evaluate(&records(|_| 5.0)).unwrap();
    let share = |threads| {
        let row = evaluation.rows.iter().find(|row| row.load.threads == threads).unwrap();
        row.share.value
    };
    assert!((share(128) - 128.0 * 5.0 / 100_000.0).abs() < 1e-12);
    assert!((share(1024) - 0.0512).abs() < 1e-12);
}

/// Can anything be counted here? Says so if not.
fn can_count() -> bool {
    let support = symbiont_linux::perf::support();
    if let Err(error) = &support.software {
        eprintln!("skipped: {error}");
    }
    support.software.is_ok()
}

#[test]
fn a_cell_counts_all_its_threads() {
    if !can_count() {
        return;
    }
    for activity in [Activity::Quiet, Activity::Active] {
        let costs = measure(Load { activity, threads: 16 }, 3).unwrap();
        assert_eq!(costs.counted, 16);
        for cost in [costs.open_us, costs.read_us, costs.turn_us, costs.close_us] {
            assert!(cost > 0.0, "{costs:?}");
        }
    }
}

#[test]
fn the_report_is_made_from_what_was_kept() {
    if !can_count() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let size = Size { rounds: 1, quanta: 1 };
    let options = CountingOptions { output: folder.path().to_owned(), size, seed: 1 };
    let first = run(&options, &mut ()).unwrap();
    assert!(folder.path().join("read.svg").is_file());
    let lines = || {
        let text = std::fs::read_to_string(folder.path().join("counters.jsonl")).unwrap();
        text.lines().count()
    };
    assert_eq!(lines(), 6);
    assert_eq!(run(&options, &mut ()).unwrap().blocks, first.blocks);
    assert_eq!(lines(), 6);
}

#[test]
fn the_sizes_take_what_they_say() {
    assert!(Size::full().estimate() < Duration::from_secs(180));
    assert!(Size::short().estimate() < Duration::from_secs(30));
}
