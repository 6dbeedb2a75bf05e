use std::collections::BTreeMap;

use super::super::scheduler::Decision;
use super::*;
use symbiont_campaign::{FinishedRun, InRound};

fn run(round: u32, contender: Contender, seconds: &[f64]) -> MeasuredRun<Contest> {
    let decisions = if contender == Contender::Recorded {
        [[1.0, 0.0], [0.0, 1.0]].map(|it| Decision { overlaps: it.to_vec(), chosen: 0 }).to_vec()
    } else {
        Vec::new()
    };
    let record = contest::ContestRecord { seconds: seconds.to_vec(), moves: 0, decisions };
    FinishedRun { run: InRound { round, cell: contender }, record }
}

#[test]
fn gains_and_finish_times_are_paired_by_round() {
    let mut done = Vec::new();
    for (round, factor) in [(0, 1.0), (1, 3.0)] {
        let times = |times: [f64; 3]| times.map(|time| time * factor);
        done.push(run(round, Contender::Stay, &times([1.0, 2.0, 4.0])));
        done.push(run(round, Contender::Activity, &times([0.5, 2.0, 5.0])));
        done.push(run(round, Contender::OthersVectors, &times([1.0, 2.0, 4.0])));
        done.push(run(round, Contender::Recorded, &times([1.0, 2.0, 4.0])));
    }
    let figures: BTreeMap<&str, Vec<Point>> = evaluate(&done, 2).unwrap().into_iter().collect();
    let value = |figure: &str, series: &str, at: &str| {
        let points = &figures[figure];
        let found = points.iter().find(|it| it.series.starts_with(series) && it.at == at);
        (found.unwrap().ours.unwrap().value * 10.0).round() / 10.0
    };
    assert_eq!(value("settle-real-gain", "activity", "time for all"), -20.0);
    assert_eq!(value("settle-real-gain", "activity, vectors of another", "time for all"), 0.0);
    let early = ["early", "median", "late"].map(|it| value("settle-real-finish", it, "activity"));
    assert_eq!(early, [-50.0, 0.0, 25.0]);
    assert_eq!(value("settle-real-decisions", "a better job", "this kernel"), 50.0);
    assert_eq!(value("settle-real-decisions", "bad", "this kernel"), 50.0);
    let without: Vec<_> =
        done.into_iter().filter(|it| it.run.cell != Contender::Recorded).collect();
    let figures: BTreeMap<&str, Vec<Point>> = evaluate(&without, 2).unwrap().into_iter().collect();
    assert!(figures["settle-real-decisions"].is_empty());
}

#[test]
fn slowdowns_are_over_the_time_alone_of_the_same_round() {
    let run = |round, programs: &[&str], seconds: &[f64]| FinishedRun {
        run: InRound { round, cell: matrix::MatrixCell::of(programs) },
        record: seconds.to_vec(),
    };
    let done = [
        run(0, &["stream"], &[2.0]),
        run(0, &["join"], &[3.0]),
        run(0, &["stream", "join"], &[3.0, 3.75]),
        run(1, &["stream"], &[4.0]),
        run(1, &["join"], &[6.0]),
        run(1, &["stream", "join"], &[6.0, 7.5]),
    ];
    let points = matrix::points(&done).unwrap();
    let found: Vec<_> = points
        .iter()
        .map(|it| (it.series.as_str(), it.at.as_str(), it.ours.unwrap().value))
        .collect();
    assert_eq!(found, [("join", "stream", 1.25), ("stream", "join", 1.5)]);
    // Two repetitions of `stream`, three of `join` are in half of the time.
    let seconds = matrix::seconds(&done);
    assert_eq!((seconds["stream"], seconds["join"]), (1.5, 1.5));
}
