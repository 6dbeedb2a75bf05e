use std::time::Duration;

use symbiont_model::Depth;

use super::measure::FittedModels;
use super::plan::Done;
use super::*;
use symbiont_campaign::InRound;
use symbiont_campaign::harness::Verdict::{Fail, Pass};

/// Runs in which decisions take so many ms, the first one 700 ms.
fn records(ms: impl Fn(Load) -> f64) -> Vec<Done> {
    let of_round = |round| Load::all().into_iter().map(move |cell| InRound { round, cell });
    let times = |load: Load| vec![700.0, ms(load), ms(load), 500.0];
    (0..2).flat_map(of_round).map(|run| Done { record: times(run.cell), run }).collect()
}

#[test]
fn verdicts_follow_the_runs() {
    // Time in proportion to the square of threads: 0.14 ms for 40, 95 ms for 1,024.
    let square = |load: Load| 9e-5 * f64::from(load.threads).powi(2);
    let good = evaluate(&records(square)).unwrap();
    assert_eq!(good.rows.len(), 28);
    assert!(good.checks.len() == 6 && good.checks.iter().all(|check| check.verdict == Pass));
    for row in &good.rows {
        assert_eq!(row.growth.is_none(), row.load.threads == 16);
        assert!(row.growth.is_none_or(|growth| (growth - 2.0).abs() < 1e-9));
        assert_eq!((row.first_ms.value, row.most_ms), (700.0, 500.0));
    }
    let slow = evaluate(&records(|load| square(load) * 1.2)).unwrap();
    let failed = slow.checks.iter().filter(|check| check.verdict == Fail);
    assert_eq!(failed.count(), 4, "those of 1,024 threads");
    page::page(&slow).html().unwrap();
    assert!(evaluate(&[]).is_err());
}

#[test]
fn real_decisions_are_timed() {
    let mut known = FittedModels::new().unwrap();
    for (smt, threads) in [(2, 16), (4, 16)] {
        let load = Load { stack: Depth::Coarse, smt, threads };
        let times = known.measure(load, 3).unwrap();
        assert_eq!(times.len(), 4, "the first one and three more");
        assert!(times.iter().all(|ms| *ms > 0.0));
    }
}

#[test]
fn the_sizes_take_what_they_say() {
    assert!(Size::full().estimate() < Duration::from_secs(600));
    assert!(Size::short().estimate() < Duration::from_secs(90));
}
